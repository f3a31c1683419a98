"""Fits that keep every row: ridge on the kernel matrix, its settings chosen by leaving rows out."""

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
from chimap.solvers.exact import DualRidge
from chimap.solvers.exact_machines import exact_machine
from chimap.solvers.from_moments import RidgeSolver
from chimap.solvers.held_out import noise_of
from chimap.solvers.observed_exact import ExactRidge, is_shared
from chimap.solvers.posterior import DualPosterior

_TILE = 512


class ExactRows:
    """The rows of an exact fit and the kernel among them, for ``selection.leave_one_out``.

    One matrix is kept: a kernel exp(-gamma D^2) at twice gamma is its square, at half of it its square root, so that
    other gammas cost a pass over it and no product.
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
        """Gamma 2^octaves times that of the features; None where the kernel has none."""
        kernel = self.features.kernel_
        return float(kernel.gamma) * 2.0**octaves if isinstance(kernel, Exponential) else None

    def ridge(self, rows: np.ndarray | None, octaves: int) -> ExactRidge:
        """Of these rows, or of all; the machine of other rows that was made before is gone."""
        if self._ridge is None or rows is not self._rows:
            self._ridge = None  # let go before there is another
            features = self.features if rows is None else self.features.take(rows)
            n = features._n_features_out
            square = np.empty((n, n), dtype=self.dtype)
            chosen: slice | np.ndarray = slice(None) if rows is None else rows
            weights = None if self.row_weights is None else self.row_weights[chosen]
            self._ridge = self._machine(square, features.gram_into(square), self.Y[chosen], weights)
            self._rows, self._octaves = rows, 0
        _raise_below(self._ridge.square, octaves - self._octaves)
        self._octaves = octaves
        return self._ridge

    def posterior(self, alpha: float, octaves: int) -> DualPosterior | None:
        """How sure the machine of all rows is; its factor is made again where another one is in memory."""
        ridge = self.ridge(None, octaves)
        if not isinstance(ridge, DualRidge) or (ridge.factor_of != alpha and ridge.solve(alpha) is None):
            return None
        return DualPosterior.of(ridge, self.dtype)


def _raise_below(square: np.ndarray, octaves: int) -> None:
    """square_ij <- square_ij^(2^octaves) below the diagonal."""
    n, step = square.shape[0], np.square if octaves > 0 else np.sqrt

    def part(first: int) -> None:
        own = slice(first, min(first + _TILE, n))
        for start in range(0, own.start, _TILE):
            tile = square[own, start : start + _TILE]
            for _ in range(abs(octaves)):
                step(tile, out=tile)
        corner = np.tril(square[own, own], -1)
        for _ in range(abs(octaves)):
            step(corner, out=corner)
        square[own, own] = corner

    if octaves:
        _threads.tasks(range(0, n, _TILE), part)


@dataclass(frozen=True)
class ExactSettings:
    """What an exact fit is asked for.

    alphas: to choose from, or None for a search. chooses_gamma: whether gamma is chosen too, or stays where the
    features have it. selection: "auto" or "leave-one-out", a number of folds, or a splitter of scikit-learn whose test
    sets are a partition of the rows. groups (n,): rows of one group are left out together; None where there are none.
    row_weights (n,), or (n, t) of the targets, or None. seed: of the order of rows. is_settled: whether a race has
    chosen: the first of alphas that can be solved is taken. loss: what the machine minimises.
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
    """Raise MemoryBudgetError where the kernel matrix and the rows, as they are and mapped, are above the budget."""
    if needed > room_in(budget):
        raise MemoryBudgetError(
            f"memory of {format_bytes(budget)} is too small for the kernel matrix of {n_rows:,} rows: it takes "
            f"{format_bytes(budget_for(needed))}. Give that much, take fewer rows, or use features='landmarks'."
        )


def exact_bytes(n_rows: int, row_bytes: float, dtype: np.dtype) -> int:
    """What an exact fit takes: the matrix, three copies of the rows, and columns of the inverse of every thread."""
    return int(dtype.itemsize * n_rows * (n_rows + 512 * _threads.count()) + 3 * n_rows * row_bytes)


def order_of(
    settings: ExactSettings, y: np.ndarray | None, n_rows: int
) -> tuple[np.ndarray, list[np.ndarray] | None]:
    """(order of the rows in which those that are left out together follow each other, places of these or None)."""
    rng = np.random.default_rng(settings.seed)
    groups = _groups(settings, y, n_rows)
    if groups is None:
        return rng.permutation(n_rows), None
    rng.shuffle(groups)
    edges = np.cumsum([0, *(group.size for group in groups)])
    return np.concatenate(groups), [np.arange(a, b) for a, b in pairwise(edges)]


def _groups(settings: ExactSettings, y: np.ndarray | None, n_rows: int) -> list[np.ndarray] | None:
    """Rows that are left out together; None: each alone."""
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
            return [own for k in range(int(selection)) if (own := np.flatnonzero(folds == k)).size]
        selection = GroupKFold(int(selection))
    parts = [np.asarray(test) for _, test in selection.split(np.empty((n_rows, 0)), y, groups)]
    if not np.array_equal(np.sort(np.concatenate(parts)), np.arange(n_rows)):
        raise ValueError(
            f"selection={selection!r} must hold every row out once for features='exact'; its test sets are "
            f"{sum(part.size for part in parts)} rows of {n_rows}. Use a splitter such as KFold or GroupKFold."
        )
    return parts


@dataclass(frozen=True)
class ExactFit:
    """Weights of kernel values (n, t), intercepts (t,), what was chosen, and ``held_out`` (n, t): what the machine says
    of each row when that row, or its group, is left out, in the order in which the rows came; NaN of others.
    curve: how the score grows with the rows, or None.

    noise (t,): the variance of the targets. posterior: how sure the machine is, made when it is asked for; None for
    targets with missing entries, and for other losses than the square.
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
    """Choose and solve. features: fitted on the rows in ``order``, whose gamma is set to the chosen one; Y (n, t):
    their targets less ``shift`` (t,), in that order."""
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
    seen = ~np.isnan(choice.held_out[:, 0])
    noise = noise_of(
        residuals[seen], Y[seen] - choice.held_out[seen], None if weights is None else weights[seen]
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
    """The user's score, of residuals of rows by their places in the order of the fit."""

    score: OutputScore
    Y: np.ndarray
    order: np.ndarray

    @property
    def name(self) -> str:
        return self.score.name

    def __call__(self, residuals: np.ndarray, rows: np.ndarray) -> float:
        return self.score(self.Y[rows] - residuals, self.order[rows])
