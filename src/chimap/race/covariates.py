"""Counts beside covariates: which kernel of the covariates, and of what weight, is added to the kernel of the counts.

    K(x, y) = K_counts(x, y) + w K_covariates(x, y)

Machines of a sample on the kernel matrix, each with its own strength by left-out rows, compare a linear and a gaussian
kernel over a grid of weights w with the counts alone. The weight is 0, and the covariates are not used, unless the
left-out outputs are better by more than two standard errors of the difference, of groups where rows have them: the best
of the grid is a little better by chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._messages import Message
from chimap._progress import Progress
from chimap._validation import AUTO
from chimap.data import ArraySource, Source
from chimap.data.covariates import Widened
from chimap.data.source import choose_rows
from chimap.features.covariates import Covariates
from chimap.machines.base import named_settings
from chimap.models.model import Model
from chimap.race.gamma import exact_machine_of
from chimap.race.runner import Fit
from chimap.recipe import Recipe
from chimap.recipe.task import Task, scoring_of
from chimap.recipe.weights import with_weights
from chimap.selection.jackknife import deviations_of, error_of_mean, parts_of_rows, standard_error
from chimap.selection.scoring import OutputScore

REFUSED = {
    "n_principal": "principal components",
    "learner": "a learned kernel",
    "normalize by labels": "a normalisation that learns from labels",
}
KERNELS = ("linear", "gaussian")
WEIGHTS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)  # times the scatter of the counts over that of the covariates
MOST_ROWS = 1500  # of the sample: a machine of so many takes a fraction of a second
_CLEAR = 2  # standard errors by which covariates must better the outputs
_SCATTER_ROWS = 500  # whose kernel values give the scatter of the counts


@dataclass(frozen=True, eq=False)
class _LeftOut:
    """Outputs of left-out rows of a machine, and how far they are from the targets."""

    outputs: np.ndarray
    errors: np.ndarray  # mean squared errors of the rows, (n,)


@dataclass(frozen=True, eq=False)
class _ComparedRows:
    """Rows of a sample, on which machines are compared, with targets as labels: of classes 1 and -1.

    Strengths are then chosen by squared error, as the machines are compared, and not by a score that jumps.
    """

    recipe: Recipe
    counts: Source
    groups: np.ndarray | None
    learn: Fit

    @property
    def scored(self) -> np.ndarray:
        """Places of the rows that are scored: those whose labels weights of bins do not know."""
        hidden = self.counts.hidden
        return np.arange(self.counts.n_rows) if hidden is None else np.flatnonzero(hidden)

    @property
    def scored_groups(self) -> np.ndarray | None:
        """Groups of these rows."""
        return None if self.groups is None else self.groups[self.scored]

    def left_out(self, recipe: Recipe, rows: Source) -> tuple[Model, _LeftOut]:
        """Return the machine of these rows, and the outputs of each by a machine without it."""
        model = self.learn(recipe, rows, self.groups)
        outputs, labels = np.asarray(model.learned.findings.held_out, np.float64)[self.scored], rows.labels()
        assert labels is not None
        targets = labels[self.scored]
        return model, _LeftOut(outputs, np.nanmean((outputs - targets.reshape(outputs.shape)) ** 2, axis=1))


def with_covariates(
    recipe: Recipe, source: Source, task: Task, groups: np.ndarray | None, learn: Fit, progress: Progress
) -> tuple[Recipe, Source]:
    """Return the recipe and the rows with the covariates that add to the counts; both as they are without any.

    Parameters
    ----------
    recipe : Recipe
        The settings of the counts, as a race has chosen them.
    source : Source
        The rows, with ``covariates`` if there are any.
    task : Task
        The targets.
    groups : array of shape (n,) or None
        Groups of the rows, which are left out together.
    learn : callable
        Returns the model of a recipe, for rows and their groups.
    progress : Progress
        Informed of the machines.
    """
    if source.covariates is None:
        return recipe, source
    for name in named_settings(recipe).keys() & REFUSED.keys():
        raise InputError(Message("{covariates} cannot be combined with {}: leave one of them out.", REFUSED[name]))
    progress.stage("covariates", 2 + len(KERNELS) * (1 + len(WEIGHTS)), "machines")
    places = choose_rows(source.n_rows, MOST_ROWS, recipe.seed)
    table, y = source.covariates.take(places), source.labels()
    assert y is not None
    codec = task.codec_of(y[places])
    targets = np.asarray(codec.encode(y[places])) if recipe.is_classifier else y[places]
    targets = targets[:, 0] if targets.ndim == 2 and targets.shape[1] == 1 else targets
    rows: Source = ArraySource(source.take(places), targets, column_names=source.column_names)
    if source.hidden is not None:
        rows.hidden = source.hidden[places]
    if source.weights is not None:
        rows = with_weights(rows, source.weights[places])
    of_rows = None if groups is None else groups[places]
    if of_rows is not None and np.unique(of_rows).size < 2:
        of_rows = None
    exact = replace(
        exact_machine_of(recipe),
        alpha=AUTO,
        threshold=None,
        time_limit=None,
        keeps_posterior=False,
        is_classifier=False,
        scoring=None,
        positive=None,
    )
    sample = _ComparedRows(exact, rows, of_rows, learn)
    model, alone = sample.left_out(sample.recipe, rows)
    progress.advance()
    if recipe.leaves_open("gamma") and model.gamma is not None:  # the sum has no gamma of its own to choose
        recipe = recipe.with_values(gamma=model.gamma)
        sample = replace(sample, recipe=replace(sample.recipe, gamma=model.gamma))
    scatter = _scatter(model, rows, recipe.seed)
    both: tuple[Covariates, _LeftOut] | None = None
    others: tuple[Covariates, _LeftOut] | None = None
    for kernel in KERNELS:
        unit = Covariates.fitted(table, kernel)
        columns = unit.columns(table, "covariates")
        own = ArraySource(columns, rows.labels())
        own.weights = rows.weights
        recipe_alone = replace(sample.recipe, kernel="linear", normalize=None, blocks=None, bin_weights=None, map=None)
        others = _better(others, unit, sample.left_out(recipe_alone, own)[1])
        progress.advance()
        ratio = scatter / max(float(columns.var(axis=0).sum()), 1e-12)
        for weight in WEIGHTS:
            weighted = replace(unit, weight=weight * ratio)
            both_columns = Widened(rows, np.sqrt(weighted.weight) * columns, unit.column_names)
            wide_recipe = replace(sample.recipe, covariate_columns=unit)
            both = _better(both, weighted, sample.left_out(wide_recipe, both_columns)[1])
            progress.advance()
    assert both is not None
    assert others is not None
    score = codec.score(y[places], scoring_of(recipe.scoring, recipe.is_classifier, y[places]), rows.weights)
    chosen = _told(both[0], score, sample, alone, others[1], both[1])
    gain = alone.errors - both[1].errors
    if gain.mean() <= _CLEAR * error_of_mean(gain, sample.scored_groups) or chosen.scores["covariates add"] < 0:
        return replace(recipe, covariate_columns=replace(chosen, weight=0.0)), source
    final = replace(Covariates.fitted(source.covariates, chosen.kernel), weight=chosen.weight)
    chosen = replace(chosen, codes=final.codes, features=final.features)
    return replace(recipe, covariate_columns=chosen), chosen.widened(source)


def _better(
    best: tuple[Covariates, _LeftOut] | None, columns: Covariates, found: _LeftOut
) -> tuple[Covariates, _LeftOut]:
    return (columns, found) if best is None or found.errors.mean() < best[1].errors.mean() else best


def _scatter(model: Model, rows: Source, seed: int) -> float:
    """Return the mean squared distance of rows from their mean in the space of the kernel of the counts."""
    places = choose_rows(rows.n_rows, _SCATTER_ROWS, seed)
    prepared = model.preparation(rows.take(places), places, rows.name)
    gram = model.kernel(_arrays.as_rows(prepared, np.float64))
    return float(np.diagonal(gram).mean() - gram.mean())


def _told(
    columns: Covariates,
    score: OutputScore,
    sample: _ComparedRows,
    counts: _LeftOut,
    covariates: _LeftOut,
    both: _LeftOut,
) -> Covariates:
    """Return the covariates with the scores of each and of both, and the errors of their differences."""
    places = sample.scored
    parts = parts_of_rows(places.size, sample.scored_groups, sample.recipe.seed)
    scores, deviations = {}, {}
    for name, found in {"counts": counts, "covariates": covariates, "both": both}.items():
        scores[name] = float(score(found.outputs, places))
        deviations[name] = deviations_of(score.without_each(found.outputs, places, parts))
    for name, other in (("counts add", "covariates"), ("covariates add", "counts")):
        scores[name] = scores["both"] - scores[other]
        scores[f"error of {name}"] = standard_error(deviations["both"] - deviations[other])
    return replace(columns, scores=scores, measure=score.name, n_scored=places.size)
