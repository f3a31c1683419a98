"""Exact fits: ridge, or another exact machine, on the kernel matrix of all rows.

``fit.in_rows`` prepares the rows and calls ``solve_exactly``, which chooses the strength and gamma by leaving rows out
(``selection.leave_one_out``) and solves. The kernel matrix must fit in the memory budget (``check_room``).
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold

from chimap import _threads
from chimap._memory import budget_for, room_in
from chimap._validation import MemoryBudgetError, check_choice, check_positive, format_bytes
from chimap.features.exact import ExactFeatures
from chimap.kernels import Exponential
from chimap.losses import Loss
from chimap.moments import fold_of_rows
from chimap.selection import SelectionResult
from chimap.selection.learning_curve import LearningCurve
from chimap.selection.leave_one_out import OCTAVES, LeaveOut
from chimap.selection.scoring import OutputScore
from chimap.solvers import LinearSolution
from chimap.solvers.exact import DualRidge, lift
from chimap.solvers.exact_machines import exact_machine
from chimap.solvers.from_moments import RidgeSolver
from chimap.solvers.held_out import noise_of
from chimap.solvers.observed_exact import ExactRidge, is_shared
from chimap.solvers.posterior import DualPosterior

_TILE = 512


class ExactRows:
    """The rows of an exact fit and the kernel matrix between them, for ``selection.leave_one_out``.

    A single matrix is kept. With twice the gamma, an entry exp(-gamma D^2) becomes its square, and with half of it its
    square root, so another gamma takes one pass over the matrix and no product.
    """

    def __init__(
        self,
        features: ExactFeatures,
        Y: np.ndarray,
        row_weights: np.ndarray | None,
        dtype: np.dtype,
        loss: str | Loss = "square",
    ):
        self.features, self.Y, self.row_weights, self.dtype = features, Y, row_weights, dtype
        self._machine = exact_machine(loss).make
        self._rows: np.ndarray | None = None
        self._ridge: ExactRidge | None = None
        self._octaves = 0

    def gamma(self, octaves: int) -> float | None:
        """Return 2^octaves times the gamma of the features; None if the kernel has none."""
        kernel = self.features.kernel_
        return float(kernel.gamma) * 2.0**octaves if isinstance(kernel, Exponential) else None

    def ridge(self, rows: np.ndarray | None, octaves: int) -> ExactRidge:
        """Return the machine of these rows, or of all if None, and free the one made before for other rows."""
        if self._ridge is None or rows is not self._rows:
            self._ridge = None  # free the old matrix before the new one is allocated
            features = self.features if rows is None else self.features.take(rows)
            n = features._n_features_out
            square = np.empty((n, n), dtype=self.dtype)
            chosen: slice | np.ndarray = slice(None) if rows is None else rows
            weights = None if self.row_weights is None else self.row_weights[chosen]
            values = features.gram_into(square)
            diagonal = lift(square, values) if features.is_centred else values
            self._ridge = self._machine(square, diagonal, self.Y[chosen], weights)
            self._rows, self._octaves = rows, 0
        _raise_below(self._ridge.square, octaves - self._octaves)
        self._octaves = octaves
        return self._ridge

    def posterior(self, alpha: float, octaves: int) -> DualPosterior | None:
        """Return how certain the machine of all rows is; the factor is computed again if it is no longer in memory."""
        ridge = self.ridge(None, octaves)
        if not isinstance(ridge, DualRidge) or (ridge.factor_of != alpha and ridge.solve(alpha) is None):
            return None
        return DualPosterior.of(ridge, self.dtype)


def _raise_below(square: np.ndarray, octaves: int) -> None:
    """Raise the entries below the diagonal to the power 2^octaves, in place."""
    n, step = square.shape[0], np.square if octaves > 0 else np.sqrt

    def part(first: int) -> None:
        rows = slice(first, min(first + _TILE, n))
        for start in range(0, rows.start, _TILE):
            tile = square[rows, start : start + _TILE]
            for _ in range(abs(octaves)):
                step(tile, out=tile)
        corner = np.tril(square[rows, rows], -1)
        for _ in range(abs(octaves)):
            step(corner, out=corner)
        square[rows, rows] = corner

    if octaves:
        _threads.tasks(range(0, n, _TILE), part)


@dataclass(frozen=True)
class ExactSettings:
    """Settings of an exact fit.

    Parameters
    ----------
    alphas : sequence of float or None
        Strengths to choose from, or None for a search.
    chooses_gamma : bool
        Whether gamma is chosen too; otherwise it stays as the features have it.
    selection : {"auto", "leave-one-out"}, int or splitter
        Rows that are left out together: each alone, folds, or the test sets of a splitter of scikit-learn, which must
        partition the rows.
    groups : array of shape (n,) or None
        Rows of a group are left out together.
    row_weights : array of shape (n,) or (n, t), or None
        Weights of the rows, or of their targets.
    dtype : dtype
        Precision of the kernel matrix.
    seed : int
        Seed of the order of the rows.
    is_settled : bool, default=False
        Whether a race has chosen: the first of ``alphas`` that can be solved is taken.
    loss : str or Loss, default="square"
        What the machine minimises.
    """

    alphas: Sequence[float] | None
    chooses_gamma: bool
    selection: Any
    groups: np.ndarray | None
    row_weights: np.ndarray | None
    dtype: np.dtype
    seed: int
    is_settled: bool = False
    loss: str | Loss = "square"


def check_room(n_rows: int, needed: int, budget: int) -> None:
    """Raise MemoryBudgetError if the bytes needed for the kernel matrix and the rows exceed the budget."""
    if needed > room_in(budget):
        raise MemoryBudgetError(
            f"memory of {format_bytes(budget)} is too small for the kernel matrix of {n_rows:,} rows: it takes "
            f"{format_bytes(budget_for(needed))}. Give that much, take fewer rows, or use features='landmarks'."
        )


def exact_bytes(n_rows: int, row_bytes: float, dtype: np.dtype) -> int:
    """Return the bytes of an exact fit: the matrix, three copies of the rows, and columns of the inverse per thread."""
    return int(dtype.itemsize * n_rows * (n_rows + 512 * _threads.count()) + 3 * n_rows * row_bytes)


def order_of(
    settings: ExactSettings, y: np.ndarray | None, n_rows: int
) -> tuple[np.ndarray, list[np.ndarray] | None]:
    """Return an order in which rows that are left out together are adjacent, and their places in it.

    The places are None if each row is left out alone.
    """
    rng = np.random.default_rng(settings.seed)
    groups = _groups(settings, y, n_rows)
    if groups is None:
        return rng.permutation(n_rows), None
    rng.shuffle(groups)
    edges = np.cumsum([0, *(group.size for group in groups)])
    return np.concatenate(groups), [np.arange(a, b) for a, b in pairwise(edges)]


def _groups(settings: ExactSettings, y: np.ndarray | None, n_rows: int) -> list[np.ndarray] | None:
    """Return the rows that are left out together; None if each is left out alone."""
    selection, groups = settings.selection, settings.groups
    if isinstance(selection, str):
        check_choice(selection, "selection (of features='exact')", ("auto", "leave-one-out"))
        if groups is None:
            return None
        return [np.flatnonzero(groups == group) for group in np.unique(groups)]
    if isinstance(selection, numbers.Integral):
        check_positive(selection, "selection (folds)", integer=True)
        if groups is None:
            folds = fold_of_rows(0, n_rows, int(selection), settings.seed)
            return [fold for k in range(int(selection)) if (fold := np.flatnonzero(folds == k)).size]
        selection = GroupKFold(int(selection))
    test_sets = [np.asarray(test) for _, test in selection.split(np.empty((n_rows, 0)), y, groups)]
    if not np.array_equal(np.sort(np.concatenate(test_sets)), np.arange(n_rows)):
        raise ValueError(
            f"selection={selection!r} must hold every row out once for features='exact'; its test sets hold "
            f"{sum(test_set.size for test_set in test_sets)} rows of {n_rows}. Use a splitter such as KFold or "
            "GroupKFold."
        )
    return test_sets


@dataclass(frozen=True)
class ExactFit:
    """What an exact fit has learned.

    Parameters
    ----------
    solution : LinearSolution
        Weights of the kernel values, (n, t), and intercepts (t,).
    held_out : array of shape (n, t)
        Outputs for each row when it, or its group, is left out, in the original order of the rows; NaN for rows that
        are never left out.
    selection : SelectionResult
        The settings that were compared.
    noise : array of shape (t,) or None, default=None
        Variance of the targets.
    posterior : callable, default=lambda: None
        Computes, when called, how certain the machine is. It returns None for targets with missing entries and for
        losses other than the square.
    curve : LearningCurve or None, default=None
        How the score grows with the rows.
    """

    solution: LinearSolution
    held_out: np.ndarray
    selection: SelectionResult
    noise: np.ndarray | None = None
    posterior: Callable[[], DualPosterior | None] = lambda: None
    curve: LearningCurve | None = None


def solve_exactly(
    features: ExactFeatures,
    Y: np.ndarray,
    order: np.ndarray,
    groups: list[np.ndarray] | None,
    score: OutputScore,
    shift: np.ndarray,
    settings: ExactSettings,
    on_score: Callable[[float, float], None],
) -> ExactFit:
    """Choose the settings and solve for the weights.

    ``features`` are fitted on the rows in ``order``, and are set to the chosen gamma. ``Y`` (n, t) are the targets in
    that order, less ``shift`` (t,).
    """
    weights = None if settings.row_weights is None else settings.row_weights[order]
    rows = ExactRows(features, Y, weights, settings.dtype, settings.loss)
    rule = LeaveOut(
        rows,
        Y,
        _ScoreOfResiduals(score, Y + shift, order),
        groups,
        settings.alphas,
        OCTAVES if settings.chooses_gamma and rows.gamma(0) is not None else 0,
        on_score,
        weights,
        settings.is_settled,
    )
    choice = rule.choose()
    gamma = rows.gamma(choice.octaves)
    if gamma is not None:
        features.with_gamma(gamma)
    held_out = np.empty_like(choice.held_out)
    held_out[order] = choice.held_out + shift
    machine = choice.solution
    solution = LinearSolution(machine.weights, machine.intercept + shift, machine.alpha)
    if not RidgeSolver().supports(settings.loss) or not is_shared(Y, weights):
        return ExactFit(solution, held_out, choice.result, curve=choice.curve)
    residuals = machine.alpha * (machine.weights if weights is None else machine.weights / weights[:, None])
    was_held_out = ~np.isnan(choice.held_out[:, 0])
    noise = noise_of(
        residuals[was_held_out],
        Y[was_held_out] - choice.held_out[was_held_out],
        None if weights is None else weights[was_held_out],
    )
    return ExactFit(
        solution,
        held_out,
        choice.result,
        noise,
        lambda: rows.posterior(machine.alpha, choice.octaves),
        choice.curve,
    )


@dataclass(frozen=True)
class _ScoreOfResiduals:
    """The user's score, as a function of residuals and the places of their rows in the order of the fit."""

    score: OutputScore
    Y: np.ndarray
    order: np.ndarray

    @property
    def name(self) -> str:
        return self.score.name

    def __call__(self, residuals: np.ndarray, rows: np.ndarray) -> float:
        return self.score(self.Y[rows] - residuals, self.order[rows])
