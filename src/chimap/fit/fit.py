"""Run a fit from beginning to end.

``fit`` is the trunk of the package: every estimator that learns from a source of rows ends up here, with a ``Recipe``
of checked settings. The collector (``fit.collecting``) for what the objective needs plans the memory and draws a
sample; the design learns the features on it; passes over the rows collect the evidence; and the objective chooses the
strength and solves for the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._pieces import PiecesHere, held_by
from chimap._types import Scoring
from chimap._validation import check_weights, check_width
from chimap.backends import check_device, on_host
from chimap.data import Source
from chimap.engines import Engine, Progress, Stopwatch
from chimap.explain import mean_and_deviation
from chimap.features.principal import PrincipalCoordinates
from chimap.features.rounded import in_bfloat16
from chimap.fit.checkpoint import Checkpoint, Standing
from chimap.fit.collecting import COLLECTORS, Request, Sample
from chimap.fit.dominance import warn_of_dominance
from chimap.fit.passes import Passes
from chimap.fit.recipe import Objective, Recipe
from chimap.fit.result import FitResult, HeldOutRows, Known
from chimap.fit.rows import PreparedRows


def fit(
    recipe: Recipe,
    source: Source,
    engine: Engine,
    progress: Progress,
    *,
    unlabelled: Source | None = None,
    checkpoint: Checkpoint | None = None,
    clock: Stopwatch | None = None,
    groups: np.ndarray | None = None,
    has_curve: bool = False,
    shown: Scoring = None,
) -> FitResult:
    """Learn features and weights from a source of rows.

    Parameters
    ----------
    recipe : Recipe
        The checked settings.
    source : Source
        The rows and their labels or targets.
    engine : Engine
        Where chunks of rows are processed.
    progress : Progress
        Informed of the stages and of each step within them.
    unlabelled : Source or None, default=None
        Rows without targets. They contribute to the principal components only.
    checkpoint : Checkpoint or None, default=None
        The file to write the state of the fit to, and to resume from if it exists.
    clock : Stopwatch or None, default=None
        Collects the seconds of each stage.
    groups : array of shape (n,) or None, default=None
        The group of each row; the rows of a group are held out together.
    has_curve : bool, default=False
        Whether to keep the sums in parts that give a learning curve, if the memory budget allows it.
    shown : str, callable or None, default=None
        The score that the learning curve shows; None for accuracy or R^2.

    Returns
    -------
    FitResult
        Features, weights and what was learned beside them.

    Raises
    ------
    ValueError
        If settings contradict each other (see ``check_request``).
    DataError
        If the rows or targets cannot be used, or the checkpoint belongs to another fit.
    MemoryBudgetError
        If the memory budget is too small.
    """
    clock = clock or Stopwatch()
    sources = [source] if unlabelled is None else [source, unlabelled]
    request = Request(engine.can_keep, checkpoint is not None, unlabelled is not None, has_curve)
    check_request(recipe.objective, recipe.device, recipe.n_principal, request)
    for joined in sources[1:]:
        check_width(np.empty((0, joined.n_features)), sources[0].n_features, recipe.estimator)
    with clock("sample"):
        saved = None if checkpoint is None else checkpoint.open(recipe, sources)
        if saved is None:
            recipe = recipe.fitted_to(source)
        else:
            recipe = recipe.resumed(saved.known.seed, saved.known.attributes["normalization_"])
        recipe = recipe if groups is None else recipe.of_groups()
        rows = _prepared_rows(recipe, source, groups, saved)
        collector = COLLECTORS[recipe.objective.needs].planned(recipe, rows, engine, saved, request)
        recipe, rows = collector.recipe, collector.rows
        sample = collector.sample(progress, saved)
    known = (
        saved.known if saved is not None else _learn_features(recipe, rows, sample, engine, clock, progress)
    )
    sample = sample.after_features()
    passes = Passes(
        recipe, rows, sources, known, collector.chunk_rows, engine, checkpoint, saved, clock, progress
    )
    principal = passes.components(sample.rows)
    features: Any = known.features if principal is None else PrincipalCoordinates(known.features, principal)
    collected = collector.collect(passes, features, sample)
    learned = recipe.objective.learn(collected.evidence, features, clock, progress)
    check_weights(learned.solution.coef, learned.solution.alpha)
    curve = collector.curve(collected, learned, shown, clock)
    learned = learned.in_units(rows.codec.units)
    model = features.simplified(learned.solution.coef, learned.solution.intercept)
    return FitResult(
        replace(known, features=model.features), learned, model.coef, model.intercept, collected.shift,
        source.n_features, clock.seconds, collector.chunk_rows,
        HeldOutRows.of(learned.held_out, rows), curve,
    )  # fmt: skip


def _prepared_rows(
    recipe: Recipe, source: Source, groups: np.ndarray | None, saved: Standing | None
) -> PreparedRows:
    """Return the rows of the source with their checks, their targets and their folds."""
    codec = recipe.codec.of(source.labels()) if saved is None else saved.known.codec
    preparation = recipe.preparation(recipe.design.parts(source.n_features), source.column_names)
    folds = recipe.holding.folds(source.n_rows, source.labels(), groups, recipe.seed)
    leaves_folds = groups is not None or recipe.holding.splitter is not None
    return PreparedRows(source, preparation, codec, folds, recipe.seed, groups, leaves_folds)


def _learn_features(
    recipe: Recipe, rows: PreparedRows, sample: Sample, engine: Engine, clock: Stopwatch, progress: Progress
) -> Known:
    """Learn the features on the sample, together with all else that precedes the passes."""
    places = rows.sampled() if sample.order is None else sample.order
    for some, numbers in ((sample.drawn, places), (sample.beside, sample.places)):
        if some is not None:
            warn_of_dominance(some, numbers, rows.prepare.parts, rows.source.name, rows.prepare.columns)
    with clock("map"), held_by(getattr(engine, "pieces", PiecesHere)):
        features = recipe.design.fit(sample.drawn, recipe.seed, sample.weights)
    features, attributes = recipe.design.learn(features, recipe, rows, sample.drawn, clock, progress)
    if recipe.is_rounded:
        features = in_bfloat16(features, sample.drawn)
    attributes = mean_and_deviation(sample.drawn) | {"normalization_": recipe.normalize} | attributes
    return Known(recipe.seed, rows.codec, features, attributes)


def check_request(
    objective: Objective, device: str, n_principal: int | Sequence[int] | None, request: Request
) -> None:
    """Raise ValueError for settings that cannot be combined with what is asked of the fit."""
    check_device(device)
    if not on_host(device) and (request.has_checkpoint or not request.can_keep):
        raise InputError(
            Message(
                "{device=} keeps its moments on the device: use {engine='local'} and no checkpoint.", device
            )
        )
    COLLECTORS[objective.needs].check(request)
    if request.has_unlabelled and n_principal is None:
        raise InputError(
            Message("unlabelled rows contribute to principal components only: give {n_principal}.")
        )
