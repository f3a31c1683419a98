"""Run a fit from beginning to end.

``fit`` is the trunk of the package: every estimator that learns from a source of rows ends up here, with a ``Recipe``.
The task says what the labels are, the facts what the rows are like. A race chooses what is open, the machine that the
rows get gives the rest its value, and ``learn`` makes a model: the collector (``fit.collecting``) for what the
objective needs plans the memory and draws a sample; the method fits the features on it; passes over the rows collect
the evidence; and the objective chooses the strength and solves for the weights. Machines of one pass (``fit.rivals``)
learn first, and replace it where they predict as well; ``improved`` goes on to a larger machine while that predicts
better.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from chimap._memory import budgets
from chimap._pieces import held_by
from chimap._progress import compilation
from chimap._threads import suited, threads
from chimap._types import ArrayLike, Scoring
from chimap._validation import check_weights
from chimap.data import Source
from chimap.engines import Engine, Progress, Stopwatch, can_keep, engine_of
from chimap.explain.background import RowStatistics
from chimap.features.base import LinearForm
from chimap.features.principal import PrincipalCoordinates
from chimap.fit.checkpoint import Checkpoint, FittedOnSample, SavedState, resumable
from chimap.fit.collecting import COLLECTORS, FitRun, Passes, Sample, check_request
from chimap.fit.improve import ModelAndOutputs, improved
from chimap.fit.rivals import Rivals
from chimap.losses import Observed
from chimap.machines.base import Facts, Plan, Request
from chimap.machines.explicit import advised
from chimap.machines.method import Method
from chimap.machines.rows import PreparedRows
from chimap.models.answers import Distances, learned_answers
from chimap.models.learned import Learned
from chimap.models.model import Model
from chimap.models.schema import RowSchema
from chimap.race.choose import Attempts, Raced, race
from chimap.race.gamma import plan_for
from chimap.recipe import Recipe
from chimap.recipe.task import HeldOutRows, Task, scoring_of
from chimap.selection.choose import ChosenSolution
from chimap.selection.learning_curve import LearningCurve
from chimap.solvers.base import WatchedRows

if TYPE_CHECKING:
    from distributed import Client


def fit(
    recipe: Recipe,
    source: Source,
    engine: str | Client | Engine = "local",
    progress: Progress | None = None,
    *,
    groups: ArrayLike | None = None,
    unlabelled: Source | None = None,
    checkpoint: Checkpoint | str | Path | None = None,
    has_curve: bool = False,
    races: bool = False,
) -> Model:
    """Return the model of a source of rows.

    Parameters
    ----------
    recipe : Recipe
        The settings that are asked for.
    source : Source
        The rows and their labels or targets.
    engine : str, dask.distributed.Client or Engine, default="local"
        Where chunks of rows are processed.
    progress : Progress or None, default=None
        Informed of the stages and of each step within them.
    groups : array of shape (n,) or None, default=None
        The group of each row; the rows of a group are held out together.
    unlabelled : Source or None, default=None
        Rows without targets. They contribute to the principal components only.
    checkpoint : Checkpoint, str, Path or None, default=None
        The file to write the state of the fit to, and to resume from if it exists. It is removed at the end; a
        ``Checkpoint`` object is not.
    has_curve : bool, default=False
        Whether to keep the sums in parts that give a learning curve, if the memory budget allows it.
    races : bool, default=False
        Whether a race chooses the settings that are left to it.

    Raises
    ------
    ValueError
        If settings contradict each other.
    DataError
        If the rows or targets cannot be used, or the checkpoint belongs to another fit.
    MemoryBudgetError
        If the memory budget is too small.
    """
    progress, clock = progress or Progress(), Stopwatch()
    ends_at = None if recipe.time_limit is None else time.monotonic() + recipe.time_limit
    task, source, groups = Task.of(source, recipe, groups)
    shown = scoring_of(recipe.scoring, recipe.is_classifier, source.labels())
    request = Request(can_keep(engine), checkpoint is not None, unlabelled is not None, has_curve, races=races)
    check_request(recipe, task.has_gaps, request)

    def fitted(raced: Raced, log: Checkpoint | None) -> Model:
        facts = Facts.of(raced.rows, task, groups, request)
        plan = plan_for(raced.recipe, facts, recipe, groups, fit_candidate)
        with advised(plan), progress, engine_of(engine) as running, compilation(clock, progress):
            progress.step(f"fitting {plan.n_rows:,} rows", plan.ahead)
            run = FitRun(running, progress, clock, request, log, raced.result, ends_at)
            again = replace(run, checkpoint=None, ends_at=None)
            learn_more = partial(_learned_again, task, again, shown)
            silently = partial(
                _learned_again, task, replace(again, progress=Progress()), shown
            )  # of no stage of the plan
            rivals = Rivals.of(plan, raced.result, task, raced.rows, groups, silently, progress)
            first = learn(plan, raced.rows, groups, task, replace(run, watch=rivals.contest), shown, unlabelled)
            first, plan, result = rivals.decided(first, raced.result, progress)
            model = improved(first, plan, task, raced.rows, groups, learn_more, progress)
        return replace(raced, result=result).finished(model, clock.seconds)

    progress.steps(2 if races and recipe.has_race else 1)
    n_rows = source.n_rows + (0 if unlabelled is None else unlabelled.n_rows)
    with threads(suited(recipe.n_jobs, n_rows)), resumable(checkpoint, recipe) as (log, known):
        attempts = Attempts(race(recipe, source, task, groups, fit_candidate, progress, request, known))
        for raced in attempts:
            with attempts.held(raced):
                return fitted(raced, log)
    raise AssertionError("attempts end by a model or an error")


def fit_candidate(recipe: Recipe, source: Source, groups: np.ndarray | None) -> Model:
    """Return the model of a candidate of a race, in the least memory: where others fit, none is worth more."""
    return fit(replace(recipe, memory=next(budgets(recipe.memory))), source, groups=groups)


def learn(
    plan: Plan,
    source: Source,
    groups: np.ndarray | None,
    task: Task,
    run: FitRun,
    shown: Scoring,
    unlabelled: Source | None = None,
) -> ModelAndOutputs:
    """Learn features and weights, with a value for every setting. See ``fit``; ``shown`` is the score of the curve."""
    recipe = plan.recipe
    method = Method.of(recipe, source.column_names, has_gaps=task.has_gaps, from_race=plan.numbers_of_race)
    collectors, clock = COLLECTORS[method.objective.solver.needs], run.clock
    collectors.check(run.request)
    sources = [source] if unlabelled is None else [source, unlabelled]
    with clock("sample"):
        saved = run.resumed(method, sources, plan)
        if saved is None:
            method = method.fitted_to(source, task.codec, method.hidden(source, groups, run.watch))
        else:
            method = method.resumed(saved.fitted.seed, saved.fitted.normalization)
        method = method if groups is None else method.of_groups()
        prepared = _prepared_rows(method, task, source, groups, saved, run.watch)
        collector = collectors.planned(method, plan, prepared, run, saved)
        rows = collector.rows
        sample = collector.sample(run.progress, saved)
    fitted = saved.fitted if saved is not None else learn_features(method, rows, sample, run)
    sample = sample.after_features()
    passes = Passes(method, rows, sources, fitted, collector.chunk_rows, run, saved)
    principal = passes.components(sample.rows)
    features: Any = fitted.features if principal is None else PrincipalCoordinates(fitted.features, principal)
    collected = collector.collect(passes, features, sample)
    learned = method.objective.learn(collected.evidence, features, clock, run.progress)
    check_weights(learned.solution.coef, learned.solution.alpha)
    curve = collector.curve(collected, learned, shown, clock)
    learned = rows.calibrated(learned.in_units(rows.codec.units))
    found = learned.findings
    learned = replace(learned, findings=found.at(source.places_in_file(), source.row_ids))
    kept = features.simplified(learned.solution.coef, learned.solution.intercept)
    keeps_distances = run.request.races and recipe.is_classifier
    distances = collector.distances(kept.features, learned.held_out, sample) if keeps_distances else None
    schema = RowSchema.of(recipe.estimator, source)
    model = model_of_fit(
        method, task, schema, fitted, kept, learned, rows.held_out_rows(learned.held_out), curve, distances
    )
    return ModelAndOutputs(model, learned.held_out, found)


def _learned_again(
    task: Task,
    run: FitRun,
    shown: Scoring,
    plan: Plan,
    source: Source,
    groups: np.ndarray | None,
    watch: WatchedRows | None = None,
) -> ModelAndOutputs:
    """Return what is learned by another plan, or from some of the rows; see ``improve.Learn``."""
    return learn(plan, source, groups, task, replace(run, watch=watch), shown)


def model_of_fit(
    method: Method,
    task: Task,
    schema: RowSchema,
    fitted: FittedOnSample,
    kept: LinearForm,
    learned: ChosenSolution,
    held_out: HeldOutRows | None,
    curve: LearningCurve | None,
    distances: Distances | None = None,
) -> Model:
    """Return the model of what a fit has learned.

    kept: the weights, and the features in the form in which the model keeps them. distances: of held-out rows to the
    nearest of the others, if they were measured.
    """
    recipe, loss = replace(method.recipe, seed=fitted.seed), learned.loss
    plain = loss.loss if isinstance(loss, Observed) else loss
    task = replace(task, codec=fitted.codec)
    has_posterior = recipe.keeps_posterior and recipe.n_principal is None
    return Model(
        recipe,
        task,
        schema,
        kept.features,
        fitted.features.kernel_,
        kept.coef,
        kept.intercept,
        learned_answers(task, held_out, plain, distances),
        fitted.normalization,
        learned.posterior() if has_posterior else None,
        Learned(
            learned.solution.alpha,
            plain,
            learned.selection,
            learned.n_passes,
            learned.n_rows,
            learned.findings,
            fitted.rows,
            fitted.width_search,
            curve,
        ),
    )


def _prepared_rows(
    method: Method,
    task: Task,
    source: Source,
    groups: np.ndarray | None,
    saved: SavedState | None,
    watch: WatchedRows | None = None,
) -> PreparedRows:
    """Return the rows of the source with their checks, their targets and their folds."""
    codec = task.codec if saved is None else saved.fitted.codec
    hidden = method.hidden(source, groups, watch)
    folds = method.folds(source, groups, hidden)
    leaves_folds = groups is not None or method.holding.splitter is not None
    seed = method.recipe.seed
    return PreparedRows(source, method.preparation(source), codec, folds, seed, groups, leaves_folds, hidden)


def learn_features(method: Method, rows: PreparedRows, sample: Sample, run: FitRun) -> FittedOnSample:
    """Learn the features on the sample, together with all else that precedes the passes."""
    places = rows.sampled() if sample.order is None else sample.order
    for some, numbers in ((sample.drawn, places), (sample.others, sample.places)):
        if some is not None:
            rows.prepare.warn_of_dominance(some, numbers, rows.source.name)
    with run.clock("map"), held_by(run.engine.pieces):
        features = method.features(sample.drawn, sample.weights)
    features, widths = method.adapted(features, rows, sample.drawn, run.clock, run.progress)
    found = RowStatistics.of(sample.drawn)
    return FittedOnSample(method.recipe.seed, rows.codec, features, method.normalization, found, widths)
