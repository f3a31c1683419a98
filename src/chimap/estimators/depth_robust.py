"""Fits that hold for shallow rows: thinned copies of the rows are learned from, and what that gains is measured.

The race sees the rows as they are, so that what it chooses is chosen by scores of these. The machine that it chose then
learns again from each row and two copies with fewer counts (``data.depth``), which are a group: they are held out
together where its strength is chosen and its probabilities are calibrated, which are those of rows of all these depths.
Ridge on an additive map has what copies add to its sums in closed form (``estimators.thinned_sums``).

The gain is that of the same machine with copies over without: rows of the data that both were not fitted on are thinned
in the same way, and answered by both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import JSON, ArrayLike
from chimap.data import Source
from chimap.data.clade_sums import check_no_sums
from chimap.data.depth import WithThinnedCopies, counts_of
from chimap.data.views import ChosenRows
from chimap.estimators.thinned_sums import ThinnedCopies, has_closed_form
from chimap.models.model import Model
from chimap.models.predict import predict_source
from chimap.recipe import Recipe
from chimap.recipe.task import checked_groups

N_COPIES = 2  # of each row
_FOLDS = 5
_FEW_ROWS = 2000  # up to this number, each fold is left out in turn; of more rows, one is
_FEWEST_ROWS = 2 * _FOLDS

Fit = Callable[[Recipe, Source, "np.ndarray | None"], Model]


def check_depth_robust(source: Source, has_checkpoint: bool, has_unlabelled: bool) -> None:
    """Raise InputError for what copies do not go with, and DataError for rows that are no counts."""
    if has_checkpoint or has_unlabelled:
        raise InputError(
            Message(
                "{depth_robust=} fits twice, and takes neither {} nor {}: leave it out, or these.",
                True,
                Message("{checkpoint}"),
                Message("{unlabelled}"),
            )
        )
    check_no_sums(source.column_names, source.name)
    first = next(iter(source.chunks(256)))
    counts_of(first.X, source.name, first.start)


def with_thinned_copies(plain: Model, recipe: Recipe, source: Source, groups: ArrayLike | None, fit: Fit) -> Model:
    """Return the machine of a model, learned again from the rows and thinned copies of them, with what that gains.

    Parameters
    ----------
    plain : Model
        The model of the rows as they are, by a fit with a race.
    recipe : Recipe
        The settings that were asked for.
    source : Source
        Rows of counts.
    groups : array of shape (n,) or None
        Group of each row.
    fit : callable
        Fits a recipe to a source with groups, without a race.
    """
    chosen = {name: value for name, value in plain.recipe.raced_settings.items() if name != "alpha"}
    recipe = recipe.with_raced(**chosen)
    of_rows = np.arange(source.n_rows) if groups is None else checked_groups(groups, source.n_rows)
    # covariates that added nothing to the first machine may add to these, which are then other machines
    is_closed = source.covariates is None and has_closed_form(plain)
    learner = ThinnedCopies(N_COPIES) if is_closed else None

    def robust(some: Source, of_some: np.ndarray) -> Model:
        copies, groups = WithThinnedCopies(some, N_COPIES, recipe.seed), np.repeat(of_some, N_COPIES + 1)
        model = fit(replace(recipe, learner=learner), copies, groups)
        return replace(model, recipe=replace(model.recipe, learner=None))

    gain = _gain(source, groups is not None, of_rows, recipe, lambda some, of: fit(recipe, some, of), robust)
    model = robust(source, of_rows)
    return replace(model, learned=replace(model.learned, race=plain.learned.race, depth_gain=gain))


def _gain(
    source: Source,
    has_groups: bool,
    groups: np.ndarray,
    recipe: Recipe,
    plain: Callable[[Source, np.ndarray | None], Model],
    robust: Callable[[Source, np.ndarray], Model],
) -> JSON | None:
    """Return scores of left-out rows, thinned and as they are, without copies and with them; None for few rows."""
    y = source.labels()
    assert y is not None
    is_one = recipe.is_classifier and y.ndim == 1
    if np.unique(groups).size < _FEWEST_ROWS or (is_one and np.unique(y, return_counts=True)[1].min() < _FOLDS):
        return None
    found = []
    for train, held in _folds(y, groups, recipe):
        without = plain(ChosenRows(source, train, y[train]), groups[train] if has_groups else None)
        with_copies = robust(ChosenRows(source, train, y[train]), groups[train])
        rows = WithThinnedCopies(ChosenRows(source, held, y[held]), 1, recipe.seed)
        answers = (each.answers.predicted(predict_source(each, rows)) for each in (without, with_copies))
        found.append([np.asarray(rows.labels()), *answers])
    labels, *of_both = (np.concatenate(some) for some in zip(*found, strict=True))
    told: JSON = {"measure": "accuracy" if recipe.is_classifier else "r2", "n_rows": labels.shape[0] // 2}
    for name, part in (("thinned", slice(1, None, 2)), ("whole", slice(0, None, 2))):
        told[name] = [_score(labels[part], answers[part], recipe.is_classifier) for answers in of_both]
    return told


def _folds(y: np.ndarray, groups: np.ndarray, recipe: Recipe) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rows to learn from and rows to answer, ascending: of each fold in turn, or of one."""
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    if recipe.is_classifier and y.ndim == 1:
        folds = StratifiedGroupKFold(_FOLDS, shuffle=True, random_state=recipe.seed).split(y, y, groups)
    else:
        folds = GroupKFold(_FOLDS, shuffle=True, random_state=recipe.seed).split(y, y, groups)
    for fold, (train, held) in enumerate(folds):
        if fold == 0 or y.shape[0] <= _FEW_ROWS:
            yield np.sort(train), np.sort(held)


def _score(y: np.ndarray, answers: np.ndarray, is_classifier: bool) -> float:
    """Return the share of right answers, or R^2, over all entries of targets that are there."""
    if is_classifier and y.ndim == 1:
        return float(np.mean(y == answers))
    y, answers = np.asarray(y, np.float64), np.asarray(answers, np.float64).reshape(y.shape)
    there = ~np.isnan(y)
    if is_classifier:
        return float(np.mean(y[there] == answers[there]))
    errors = np.where(there, np.square(y - answers), 0).sum()
    return float(1 - errors / np.where(there, np.square(y - np.nanmean(y, axis=0)), 0).sum())
