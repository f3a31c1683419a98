"""Run a fit from beginning to end.

``fit`` is the trunk of the package: every estimator that learns from a source of rows ends up here, with a ``Recipe``
of checked settings. It plans the memory (``fit.plan``), draws a sample and learns the features on it, passes over all
rows chunk by chunk (``fit.passes``: principal components first, if asked for; then sums of features and targets), and
hands the sums to the objective (``fit.solving``), which chooses the strength and solves for the weights. A fit that
keeps every row (``features="exact"``) branches off to ``fit.in_rows``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._types import Scoring
from chimap._validation import check_width
from chimap.backends import check_device, on_host
from chimap.data import Source
from chimap.engines import Engine, Progress, Stopwatch
from chimap.engines.memory import FIRST_ROWS
from chimap.explain import mean_and_deviation
from chimap.features.principal import PrincipalFeatures
from chimap.fit.checkpoint import Checkpoint, Standing
from chimap.fit.in_rows import check_in_rows, fit_in_rows
from chimap.fit.learning_curve import learning_curve, planned
from chimap.fit.passes import Passes
from chimap.fit.plan import Plan
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
    check_request(
        recipe.objective, recipe.device, recipe.n_principal,
        can_keep=engine.can_keep, has_checkpoint=checkpoint is not None, has_unlabelled=unlabelled is not None,
    )  # fmt: skip
    if recipe.keeps_rows:
        check_in_rows(
            recipe, can_keep=engine.can_keep, has_checkpoint=checkpoint is not None,
            has_unlabelled=unlabelled is not None,
        )  # fmt: skip
        return fit_in_rows(recipe, source, progress, clock, groups)
    for joined in sources[1:]:
        check_width(np.empty((0, joined.n_features)), sources[0].n_features, recipe.estimator)
    with clock("sample"):
        progress.stage("sampling", None)
        saved = None if checkpoint is None else checkpoint.open(recipe, sources)
        recipe = recipe if saved is None else recipe.with_seed(saved.known.seed)
        rows = _prepared_rows(recipe, source, groups, saved)
        may_keep = engine.can_keep and checkpoint is None
        recipe, rows, plan = planned(recipe, rows, engine, saved, may_keep=may_keep, has_curve=has_curve)
        witnesses = _witnessed(recipe, rows, plan)
        sample, witness_rows = rows.sample_beside(witnesses) if saved is None else (None, None)
    known = saved.known if saved is not None else _learn_features(recipe, rows, sample, clock, progress)
    first_rows = None if sample is None else _arrays.take_rows(sample, slice(FIRST_ROWS)).copy()
    del sample  # from here on only the first rows are needed
    passes = Passes(recipe, rows, sources, known, plan, engine, checkpoint, clock, progress)
    principal = passes.components(saved, first_rows)
    features: Any = known.features if principal is None else PrincipalFeatures(known.features, principal)
    if recipe.objective.needs == "features":
        evidence = passes.keep(features, first_rows)
    else:
        evidence = passes.learn(features, first_rows, saved, principal)
        witness_rows = rows.take(witnesses) if witness_rows is None and witnesses.size else witness_rows
        evidence = passes.with_rows(evidence, features, witnesses, witness_rows)
    learned = recipe.objective.learn(evidence, features, clock, progress)
    curve = None
    if has_curve or passes.sums:
        with clock("learning curve"):
            curve = learning_curve(recipe, rows, evidence, learned, passes.sums, shown)
    coef, intercept = learned.solution.coef, learned.solution.intercept
    if principal is not None:
        coef, intercept = features.folded(coef, intercept)
    return FitResult(
        known, learned, coef, intercept, passes.shift, source.n_features, clock.seconds, plan.chunk_rows,
        HeldOutRows.of(learned.held_out, rows.labels, source.weights), curve,
    )  # fmt: skip


def _prepared_rows(
    recipe: Recipe, source: Source, groups: np.ndarray | None, saved: Standing | None
) -> PreparedRows:
    """Return the rows of the source with their checks, their targets and their folds."""
    codec = recipe.codec.of(source.labels()) if saved is None else saved.known.codec
    preparation = recipe.preparation(recipe.design.parts(source.n_features), source.column_names)
    folds = recipe.holding.folds(source.n_rows, source.labels(), groups, recipe.seed)
    return PreparedRows(source, preparation, codec, folds, recipe.seed)


def _witnessed(recipe: Recipe, rows: PreparedRows, plan: Plan) -> np.ndarray:
    """Return the places of the rows to compute held-out outputs for; none where the solver keeps all rows."""
    if recipe.objective.needs == "features":
        return np.zeros(0, dtype=np.intp)
    return rows.witnesses(plan.job.n_features, recipe.dtype.itemsize, recipe.budget)


def _learn_features(
    recipe: Recipe, rows: PreparedRows, sample: Any, clock: Stopwatch, progress: Progress
) -> Known:
    """Learn the features on the sample, together with all else that precedes the passes."""
    with clock("map"):
        features = recipe.design.fit(sample, recipe.seed)
    features, attributes = recipe.design.learn(features, recipe, rows, sample, clock, progress)
    return Known(recipe.seed, rows.codec, features, mean_and_deviation(sample) | attributes)


def check_request(
    objective: Objective,
    device: str,
    n_principal: int | Sequence[int] | None,
    *,
    can_keep: bool,
    has_checkpoint: bool,
    has_unlabelled: bool,
) -> None:
    """Raise ValueError for settings that cannot be combined."""
    check_device(device)
    keeps = objective.needs == "features"
    if not on_host(device) and (has_checkpoint or not can_keep):
        raise ValueError(
            f"device={device!r} keeps its moments on the device: use engine='local' and no checkpoint."
        )
    if keeps and has_checkpoint:
        raise ValueError(
            "loss='hinge' keeps the features of all rows in memory and cannot write a checkpoint."
        )
    if keeps and not can_keep:
        raise ValueError(
            "loss='hinge' keeps the features of all rows in the memory of one process: use engine='local', or "
            "loss='squared_hinge', whose passes run on the workers."
        )
    if has_unlabelled and n_principal is None:
        raise ValueError("unlabelled rows contribute to principal components only: give n_principal.")
