"""Rows of a race: which rows are learned from and which are scored, round by round."""

from __future__ import annotations

from typing import Any

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._types import Rows
from chimap._validation import DataError
from chimap.data.forward import LATEST, ForwardSplits
from chimap.machines.base import HoldOut
from chimap.selection.leave_one_out import parts_of
from chimap.solvers.exact import is_shared

ROUNDS = (750, 1500, 3000)  # rows that candidates learn from
HELD_OUT = 4000  # rows that score the last round, whose candidates are the closest to each other
HELD_OUT_BEFORE = 2000  # rows that score earlier rounds, and every round of several tasks
FEW = 2000  # with fewer rows, all are held out in turn
_FOLDS = 4
FEWEST_BY_ROUNDS = 120  # fewer rows cannot tell more than one round on two splits does
_MOST_TASKS = 3  # tasks with missing entries to compare on: together, about the entries of one full task
_FEWEST_ENTRIES = 2  # entries of a task, both to learn from and to score


def latest_rows(time: np.ndarray) -> HoldOut:
    """Return how a race holds out the latest rows; ``time`` (n_rows,) is that of all rows that may be sampled."""

    def hold_out(
        places: np.ndarray, y: np.ndarray, groups: np.ndarray | None, is_classification: bool, seed: int
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        rng = np.random.RandomState(seed % 2**32)
        ((train, test),) = ForwardSplits(time[places], 1, LATEST).split(y, y, groups)
        lost = np.setdiff1d(y[test], y[train]) if is_classification and y.ndim == 1 else y[:0]
        if lost.size:
            raise DataError(
                Message("{time}: all sampled rows of class {} are among the latest. Leave its rows out.", lost[0])
            )
        return [(rng.permutation(train), rng.permutation(test))]

    return hold_out


def held_out_rows(
    places: np.ndarray, y: np.ndarray, groups: np.ndarray | None, is_classification: bool, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs (rows to learn from, rows to score), in random order if rounds take fewer of them.

    The sample are the rows at ``places`` of the source, with labels ``y`` and ``groups``.

    Many rows have one split; few rows are all held out in turn. Raise DataError if there are too few rows or groups
    to hold any out.
    """
    from sklearn.model_selection import (
        GroupKFold,
        GroupShuffleSplit,
        KFold,
        ShuffleSplit,
        StratifiedKFold,
        StratifiedShuffleSplit,
    )

    n = places.size
    rng, test_size = np.random.RandomState(seed % 2**32), min(most_held_out(y), max(n // 3, n - ROUNDS[-1]))
    is_classification = is_classification and y.ndim == 1
    if groups is not None and np.unique(groups).size < 2:
        raise DataError("all rows are of one group: none can be held out. Leave groups out, or give several groups.")
    if n < 4:
        raise DataError(
            Message("n_samples = {} are too few to compare kernels on held-out rows. Name one: {kernel='chi2'}.", n)
        )
    stratifies = is_classification and np.unique(y, return_counts=True)[1].min() >= 2
    splitter: Any
    if n >= FEW:
        kinds = GroupShuffleSplit, StratifiedShuffleSplit, ShuffleSplit
        make = kinds[0] if groups is not None else kinds[1] if stratifies else kinds[2]
        size: float = test_size / n if groups is not None else test_size
        splitter = make(1, test_size=size, random_state=rng)
    elif groups is not None:
        splitter = GroupKFold(min(_FOLDS, np.unique(groups).size))
    else:
        fewest = int(np.unique(y, return_counts=True)[1].min()) if stratifies else n
        folds = max(2, min(_FOLDS, fewest))
        splitter = (StratifiedKFold if stratifies else KFold)(folds, shuffle=True, random_state=rng)
    splits = splitter.split(np.zeros(n), y if stratifies or groups is not None else None, groups)
    return [
        (rng.permutation(train), rng.permutation(test) if test.size > HELD_OUT_BEFORE else test)
        for train, test in splits
    ]


def in_groups(groups: np.ndarray | None, n_rows: int, seed: int) -> np.ndarray:
    """Return a random order of the rows, (n_rows,), in which the rows of a group are adjacent."""
    order = np.random.default_rng(seed).permutation(n_rows)
    if groups is None:
        return order
    _, first, number = np.unique(groups[order], return_index=True, return_inverse=True)
    return order[np.argsort(first[number], kind="stable")]


def left_out_together(groups: np.ndarray | None, Y: np.ndarray) -> list[np.ndarray] | None:
    """Return the adjacent rows that are left out together, given the groups of ordered rows; None for single rows.

    Targets (n, t) with missing entries are left out in parts, as each part takes a solution for every target.
    """
    parts = None
    if groups is not None:
        edges = np.flatnonzero(groups[1:] != groups[:-1]) + 1
        parts = np.split(np.arange(groups.size), edges)
    return parts if is_shared(Y, None) else parts_of(parts, *Y.shape)


def n_repeated(rows: Rows, groups: np.ndarray | None) -> int:
    """Return the number of rows, dense or CSR, that have an identical copy in another group; each is one without."""
    rows = _arrays.without_zeros(_arrays.to_sparse(rows))
    edges = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    keys = [rows.indices[a:b].tobytes() + rows.data[a:b].tobytes() for a, b in edges]
    _, number = np.unique(np.array([hash(key) for key in keys]), return_inverse=True)
    of_row = np.arange(rows.shape[0]) if groups is None else np.unique(groups, return_inverse=True)[1]
    pairs = np.unique(np.column_stack([number, of_row]), axis=0)  # each content once for every group that has it
    return int((np.bincount(pairs[:, 0])[number] > 1).sum())


def most_held_out(y: np.ndarray) -> int:
    """Return the number of rows that the last round is scored on; y: labels, or those of several tasks."""
    return HELD_OUT if y.ndim == 1 else HELD_OUT_BEFORE


def rows_of_round(
    splits: list[tuple[np.ndarray, np.ndarray]], rounds: dict[int, int], n_rows: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the splits of the round that learns from ``n_rows``; early rounds score fewer rows."""
    most = HELD_OUT if n_rows == max(rounds) else HELD_OUT_BEFORE
    return [(train[:n_rows], test[:most]) for train, test in splits[: rounds[n_rows]]]


def rounds_of(splits: list[tuple[np.ndarray, np.ndarray]]) -> dict[int, int]:
    """Return the rows of each round, mapped to the number of splits that it takes.

    Few rows take all splits in the last round; many rows have only one split.
    """
    most = max(train.size for train, _ in splits)
    if most < FEWEST_BY_ROUNDS:
        return {most: min(2, len(splits))}
    if len(splits) == 1:
        return dict.fromkeys([n for n in ROUNDS if n < most] + [min(most, ROUNDS[-1])], 1)
    return {-(-most // 2): 1, -(-3 * most // 4): 1, most: len(splits)}


def shared_tasks(
    y: np.ndarray, splits: list[tuple[np.ndarray, np.ndarray]], fewest: int, is_classification: bool
) -> np.ndarray:
    """Return those of several tasks that every round learns from and is scored on.

    With missing entries, each task needs its own factorisation while all share one kernel: the few tasks with the most
    information represent the others. Raise DataError if there are none.
    """
    if y.ndim == 1:
        return y
    parts = [part for train, test in splits for part in (train[:fewest], test)]
    shared = np.flatnonzero(np.all([(~np.isnan(y[part])).sum(axis=0) >= _FEWEST_ENTRIES for part in parts], axis=0))
    if shared.size < 2:
        raise DataError(
            "fewer than two tasks have enough labels to compare kernels on held-out rows. Name a kernel, such as "
            "'exp-chi2', or fit the tasks one by one."
        )
    if not np.isnan(y[:, shared]).any():
        return y[:, shared]
    is_labelled = ~np.isnan(y[:, shared])
    ones = (y[:, shared] == 1).sum(axis=0)
    rarer = np.minimum(ones, is_labelled.sum(axis=0) - ones) if is_classification else is_labelled.sum(axis=0)
    return y[:, np.sort(shared[np.argsort(-rarer, kind="stable")[:_MOST_TASKS]])]
