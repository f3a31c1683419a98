"""Which rows are held out to choose a setting, from the parameter ``selection``.

``holding_out`` checks the parameter when the recipe is made; ``HoldingOut.folds`` assigns each row of a source to a
fold when the fit begins.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import ArrayLike
from chimap._validation import ParameterError, check_choice, check_positive
from chimap.moments import DealtFolds, GivenFolds, RowFolds
from chimap.recipe.task import checked_groups
from chimap.selection.base import USUAL_FOLDS
from chimap.solvers.base import Asked

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator


_HELD_PARTS = 5  # selection="holdout" holds out one part of so many
_SQUARE_LOSS = Message("{loss='square'}")


@dataclass(frozen=True)
class HoldingOut:
    """How rows are held out.

    Parameters
    ----------
    asked : {"nothing", "gcv", "folds", "holdout", "splitter", "leave-out"}
        What chooses: nothing is open; generalised cross-validation without folds; folds; the score of one part of the
        rows; the test sets of ``splitter``; or each row, or group of rows, left out of one machine.
    n_folds : int
        Number of folds that memory is planned for.
    n_group_folds : int
        Number of folds that choose if rows come in groups; 0 if groups are refused.
    splitter : splitter of scikit-learn or None, default=None
        Yields the test sets.
    """

    asked: Asked
    n_folds: int
    n_group_folds: int
    splitter: BaseCrossValidator | None = None

    def of_groups(self) -> HoldingOut:
        """Return how rows in groups are held out: always by folds of whole groups.

        Where nothing is open, the folds serve held-out outputs alone.

        Raises
        ------
        ValueError
            If generalised cross-validation was asked for by name: it leaves out single rows.
        """
        if self.asked == "gcv" and not self.n_group_folds:
            raise InputError(
                Message(
                    "{selection='gcv'} leaves out single rows, which the other rows of their groups tell about: leave "
                    "{selection} to {selection='auto'}, or give a number of folds; both leave out whole {groups}."
                )
            )
        if self.asked == "gcv":
            return replace(self, asked="folds", n_folds=self.n_group_folds)
        return replace(self, n_folds=USUAL_FOLDS) if self.asked == "nothing" else self

    def folds(self, n_rows: int | None, y: ArrayLike | None, groups: np.ndarray | None, seed: int) -> RowFolds:
        """Assign each row to a fold, the rows of a group to the same one.

        ``n_rows`` is None where it is not known, ``y`` are labels for the splitter, and ``groups`` (n_rows,) is the
        group of each row. Raises DataError if there is not one group for each row, or all rows have the same, and
        ValueError if the test sets of the splitter do not hold every row out exactly once or part rows of a group, or
        if it does not know ``n_rows``.
        """
        if groups is not None and n_rows is not None:
            groups = checked_groups(groups, n_rows)
        if self.splitter is not None:
            if n_rows is None and self.asked == "nothing":
                return DealtFolds(1, seed)
            if n_rows is None:
                raise InputError(
                    Message("rows that come in batches cannot use a splitter: give {selection} as a number of folds.")
                )
            return _split(self.splitter, n_rows, y, groups)
        if self.asked == "leave-out":
            return DealtFolds(1, seed) if groups is None else GivenFolds(groups, int(groups.max()) + 1)
        if groups is not None:
            n_folds = _HELD_PARTS if self.asked == "holdout" else self.of_groups().n_folds
            return folds_of_groups(groups, n_folds, self.asked == "holdout")
        if self.asked == "holdout":
            return DealtFolds(2, seed, _HELD_PARTS if n_rows is None else max(2, min(_HELD_PARTS, n_rows // 2)))
        return DealtFolds(self.n_folds if n_rows is None else max(1, min(self.n_folds, n_rows // 2)), seed)


APART = HoldingOut("holdout", 2, _HELD_PARTS)
"""One part of the rows that alone is scored: a normalisation or weights of bins may know the labels of all others."""


def can_score_one_part(selection: Any) -> bool:
    """Whether a value of ``selection`` can do with scores of one part of the rows."""
    return isinstance(selection, str) and selection in ("auto", "holdout")


def check_apart(selection: Any, normalize: Any) -> None:
    """Raise InputError for a ``selection`` that scores rows whose labels a normalisation has seen."""
    if not can_score_one_part(selection):
        raise InputError(
            Message(
                "{normalize=} learns from the labels of four fifths of the rows, and only the others can be scored; "
                "{selection=} scores others. Use {selection='auto'}, or {normalize='tf-idf'}.",
                normalize,
                selection,
            )
        )


def without_units_of(places: np.ndarray, n_rows: int, groups: np.ndarray | None) -> np.ndarray:
    """Return which rows (n_rows,) are neither at ``places`` nor of the group of a row there."""
    units = np.arange(n_rows) if groups is None else groups
    return np.isin(units, units[places], invert=True)


def part_of(hidden: np.ndarray, groups: np.ndarray | None, seed: int) -> np.ndarray:
    """Return some of the rows that are ``hidden`` (n,), whole groups: a part of all rows, or all if they are fewer."""
    units = np.arange(hidden.size) if groups is None else np.unique(groups, return_inverse=True)[1]
    sizes = np.bincount(units[hidden], minlength=int(units.max()) + 1)
    order = np.random.default_rng(seed).permutation(np.flatnonzero(sizes))
    n_units = 1 + int(np.searchsorted(np.cumsum(sizes[order]), hidden.size // _HELD_PARTS))
    return hidden & np.isin(units, order[:n_units])


def holding_out(
    selection: Any, *, is_fixed: bool, has_gcv: bool, has_score: bool, by_name: str = _SQUARE_LOSS
) -> HoldingOut:
    """Turn the parameter ``selection`` ("auto", "gcv", "holdout", an int or a splitter) into a ``HoldingOut``.

    is_fixed: whether nothing is open. has_gcv, has_score: whether generalised cross-validation, or the score of
    held-out rows, can choose what is open. by_name: what supports generalised cross-validation, for messages. Raises
    ValueError if ``selection`` is invalid.
    """
    if isinstance(selection, str):
        check_choice(selection, "selection", ("auto", "gcv", "holdout"))
        if selection == "gcv" and not has_gcv:
            raise InputError(Message("{selection='gcv'} needs {}. Use {selection='auto'}.", by_name))
    elif not hasattr(selection, "split"):
        check_positive(selection, Message("{selection} (folds)"), integer=True)
        if selection < 2 and not is_fixed:
            raise InputError(
                Message(
                    "{selection} must be at least 2 folds to choose {alpha}; got {}. Give {alpha} as one number to fit "
                    "without folds.",
                    selection,
                )
            )
    if is_fixed:
        # held-out outputs leave the folds of a splitter out
        has_folds = not isinstance(selection, str) and hasattr(selection, "split")
        return HoldingOut("nothing", USUAL_FOLDS, 1, selection) if has_folds else HoldingOut("nothing", 1, 1)
    if isinstance(selection, str):
        if has_gcv and selection != "holdout":
            return HoldingOut("gcv", 1, USUAL_FOLDS if selection == "auto" else 0)
        if selection == "holdout" and has_score:
            return HoldingOut("holdout", 2, _HELD_PARTS)
        return HoldingOut("folds", USUAL_FOLDS, USUAL_FOLDS)
    if hasattr(selection, "split"):
        return HoldingOut("splitter", USUAL_FOLDS, USUAL_FOLDS, selection)
    return HoldingOut("folds", int(selection), int(selection))


def leaving_out(selection: Any) -> HoldingOut:
    """Turn the parameter ``selection`` into a ``HoldingOut`` for machines that leave rows out in closed form.

    "auto" and "leave-one-out" are each row (each group, if there are groups), an int is folds, a splitter test sets.
    Raises ValueError if ``selection`` is invalid.
    """
    if isinstance(selection, str):
        check_choice(selection, Message("{selection} (of {features='exact'})"), ("auto", "leave-one-out"))
        return HoldingOut("leave-out", 1, 1)
    if isinstance(selection, numbers.Integral) and selection < 2:
        raise ParameterError("selection", selection, "'auto', at least 2 folds, or a splitter of scikit-learn")
    return holding_out(selection, is_fixed=False, has_gcv=False, has_score=False)


def folds_of_groups(groups: np.ndarray, n_folds: int, is_holdout: bool = False) -> GivenFolds:
    """Assign whole groups to folds, the largest first, each to the fold that has the fewest rows."""
    sizes = np.bincount(groups)
    n_folds = min(n_folds, sizes.size)
    filled, fold_of = np.zeros(n_folds, dtype=np.int64), np.empty(sizes.size, dtype=np.int64)
    for group in np.argsort(-sizes, kind="stable"):
        # ties go to the last fold: a holdout holds out fold 0
        fold = n_folds - 1 - int(np.argmin(filled[::-1]))
        fold_of[group] = fold
        filled[fold] += sizes[group]
    folds = fold_of[groups]
    if is_holdout:
        return GivenFolds(np.minimum(folds, 1), 2, 1)
    return GivenFolds(folds, n_folds)


def _split(splitter: BaseCrossValidator, n_rows: int, y: ArrayLike | None, groups: np.ndarray | None) -> GivenFolds:
    """Return the test sets of a splitter as folds; raise ValueError unless every row is in exactly one."""
    folds = np.full(n_rows, -1)
    times = np.zeros(n_rows, dtype=np.int64)
    n_folds = 0
    for _, test in splitter.split(np.empty((n_rows, 0)), y, groups):
        folds[test] = n_folds
        times[test] += 1
        n_folds += 1
    if n_folds < 2 or (times != 1).any():
        raise InputError(
            Message(
                "{selection=} must hold every row out once; its test sets hold out {} rows of {}, {} of them more "
                "than once. Use KFold, GroupKFold or the like, or {selection='holdout'}.",
                splitter,
                int((times > 0).sum()),
                n_rows,
                int((times > 1).sum()),
            )
        )
    if groups is not None and len(set(zip(groups.tolist(), folds.tolist(), strict=True))) > np.unique(groups).size:
        raise InputError(
            Message(
                "{selection=} parts rows of a group, whose held-out answers would know them. Use GroupKFold or the "
                "like, or a number of folds, or leave {groups} out.",
                splitter,
            )
        )
    return GivenFolds(folds, n_folds)
