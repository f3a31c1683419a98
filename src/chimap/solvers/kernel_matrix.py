"""Machines on the kernel matrix between all rows of a fit (``features="exact"``).

``EXACT_MACHINES`` is the catalogue of their solvers by loss. Each minimises sum_i w_i loss(y_i, f(x_i)) plus a multiple
of alpha |f|^2 over f = sum_j K(., x_j) a_j + b; ``exact``, ``exact_margins`` and ``exact_observed`` give the methods
and their costs. ``KernelMatrix`` computes the matrix, one at a time, for all rows or some of them and for any gamma,
and ``KernelProblem`` is the problem of all rows: the rule ``selection.leave_one_out`` chooses between its machines.
Exponential kernels keep every row for prediction; an additive one keeps its map alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from chimap import _threads
from chimap._messages import Message
from chimap._validation import DataError
from chimap.features.exact import KeptRows, RowKernel
from chimap.losses import CATALOGUE, Loss, Square, SquaredHinge, check_loss
from chimap.moments import Moments, of_entries, of_rows
from chimap.penalties import L2
from chimap.solvers.base import Evidence, KernelRows, Needs, Problem, Solver, required
from chimap.solvers.exact import STEPS, DualRidge, DualSolution, ExactSolver, is_shared, lift
from chimap.solvers.exact_iterated import DualIterated
from chimap.solvers.exact_margins import DualMargins, margin_bytes
from chimap.solvers.exact_observed import ObservedDualRidge
from chimap.solvers.findings import Findings
from chimap.solvers.held_out import HeldOut, ValidationRows, noise_of
from chimap.solvers.posterior import DualPosterior, Posterior
from chimap.solvers.ridge import Factor, LinearSolution

MOST_MAPPED = 4096  # features of a map whose scatter is still factorised for the deviations of predictions
_PIECE_ROWS = 2048
# Share of the rounding by large weights that is left in the sums of those of equal rows.
_ROUNDING_IN_SUMS = 0.2
_MOST_ROUNDING = 0.005  # share of the spread of the targets that rounding may move outputs by without a word

# Limit of the operations of a step in a trial. Beyond it, most rows are within the margin, as with ridge.
_MOST_OPERATIONS = 5e10


class ExactMachine(NamedTuple):
    """How the solver of a loss is made, with the arguments of ``exact_ridge``.

    Attributes
    ----------
    make : callable
        Makes the solver for a fit.
    tried : callable
        Makes it for trials, without refinement: the score of held-out rows shows if rounding spoils a solution. It has
        no solution where that would take long.
    bytes_beside : callable
        Returns the bytes that it takes besides the kernel matrix, given the number of rows.
    """

    make: Callable[..., ExactSolver]
    tried: Callable[..., ExactSolver]
    bytes_beside: Callable[[int], int]


def exact_ridge(
    square: np.ndarray, diagonal: np.ndarray, Y: np.ndarray, row_weights: np.ndarray | None = None, steps: int = STEPS
) -> ExactSolver:
    """Return the ridge solver for targets (n, t), NaN where an entry is missing.

    ``row_weights`` are (n,), or (n, t) for the targets, or None. See ``DualRidge`` for the other parameters.
    """
    solver = DualRidge if is_shared(Y, row_weights) else ObservedDualRidge
    return solver(square, diagonal, Y, row_weights, steps)


EXACT_MACHINES = {
    Square.name: ExactMachine(exact_ridge, partial(exact_ridge, steps=0), lambda n_rows: 0),
    SquaredHinge.name: ExactMachine(
        DualMargins, partial(DualMargins, steps=0, most_operations=_MOST_OPERATIONS), margin_bytes
    ),
}
"""Solvers by the name of their loss; those of losses with ``Loss.has_parabola`` are ridge with iterated weights."""

EXACT_LOSSES = (*EXACT_MACHINES, *(name for name, loss in CATALOGUE.items() if loss.has_parabola))
"""Names of the losses that machines on a kernel matrix minimise."""


def is_iterated(loss: str | Loss) -> bool:
    """Return whether the machine of a loss is ridge with iterated weights."""
    kind = CATALOGUE.get(loss) if isinstance(loss, str) else loss
    return kind is not None and kind.has_parabola


def has_exact_machine(loss: str | Loss) -> bool:
    """Return whether machines on a kernel matrix minimise the loss."""
    return is_iterated(loss) or _name(loss) in EXACT_MACHINES


def exact_machine(loss: str | Loss) -> ExactMachine:
    """Return the solver of a loss that has one."""
    if not is_iterated(loss):
        return EXACT_MACHINES[_name(loss)]
    make = partial(DualIterated, loss=check_loss(loss, CATALOGUE))
    return ExactMachine(make, partial(make, steps=0), lambda n_rows: 0)


def bytes_beside(loss: str | Loss, n_rows: int) -> int:
    """See ``ExactMachine``. A loss without a solver takes 0 bytes: its fit is refused."""
    return exact_machine(loss).bytes_beside(n_rows) if has_exact_machine(loss) else 0


def _name(loss: str | Loss) -> str:
    return loss if isinstance(loss, str) else loss.name


class KernelValues(Protocol):
    """The values of a kernel between rows, at any gamma: a part of ``RowKernel``."""

    @property
    def _n_features_out(self) -> int: ...

    @property
    def is_centred(self) -> bool:
        """See ``RowKernel``."""
        ...

    def gram_into(self, square: np.ndarray) -> np.ndarray:
        """See ``RowKernel``."""
        ...

    def change_octaves(self, square: np.ndarray, before: int, after: int) -> None:
        """See ``RowKernel``."""
        ...


class MatrixMachine:
    """A machine on the kernel matrix of some rows, which is changed in place for another gamma.

    The solution for one gamma is close to that for the next, from which a machine with margins starts.

    Parameters
    ----------
    values : KernelValues
        The kernel values of the n rows.
    Y : ndarray of shape (n, t)
        Targets.
    row_weights : ndarray of shape (n,) or (n, t), or None
        Weights of the rows.
    dtype : dtype
        Precision of the matrix.
    make : callable
        Makes the solver: an entry of ``ExactMachine``.

    Attributes
    ----------
    diagonal : ndarray of shape (n,)
        Diagonal of the kernel.
    """

    def __init__(
        self,
        values: KernelValues,
        Y: np.ndarray,
        row_weights: np.ndarray | None,
        dtype: np.dtype,
        make: Callable[..., ExactSolver],
    ):
        n = values._n_features_out
        square = np.empty((n, n), dtype=dtype)
        self.diagonal = values.gram_into(square)
        self.lifted = lift(square, self.diagonal) if values.is_centred else self.diagonal
        self._values, self._octaves = values, 0
        self._solver = make(square, self.lifted, Y, row_weights)

    def at(self, octaves: int) -> ExactSolver:
        """Return the solver at 2^octaves times the gamma of the values."""
        self._values.change_octaves(self._solver.square, self._octaves, octaves)
        self._octaves = octaves
        return self._solver


class KernelMatrix:
    """The kernel matrix between all rows of a fit, and the machines that are solved on it.

    A single matrix is kept, and changed in place for another gamma.
    """

    def __init__(
        self,
        features: RowKernel,
        Y: np.ndarray,
        row_weights: np.ndarray | None,
        dtype: np.dtype,
        loss: str | Loss = "square",
    ):
        self.features, self.Y, self.row_weights, self.dtype = features, Y, row_weights, dtype
        self._machine = exact_machine(loss).make
        self._rows: np.ndarray | None = None
        self._of_rows: MatrixMachine | None = None

    def gamma(self, octaves: int) -> float | None:
        """Return 2^octaves times the gamma of the features; None if the kernel has none."""
        return self.features.gamma_at(octaves)

    def solver(self, rows: np.ndarray | None, octaves: int) -> ExactSolver:
        """Return the machine of these rows, or of all if None, and free the one made before for other rows."""
        if self._of_rows is None or rows is not self._rows:
            self._of_rows = None  # free the old matrix before the new one is allocated
            features = self.features if rows is None else self.features.take(rows)
            chosen: slice | np.ndarray = slice(None) if rows is None else rows
            weights = None if self.row_weights is None else self.row_weights[chosen]
            self._of_rows = MatrixMachine(features, self.Y[chosen], weights, self.dtype, self._machine)
            self._rows = rows
        return self._of_rows.at(octaves)

    @property
    def diagonal(self) -> np.ndarray:
        """K_ii of the rows of the machine made last."""
        assert self._of_rows is not None
        return self._of_rows.diagonal

    def solved(self, alpha: float, octaves: int) -> DualRidge | None:
        """Return ridge of all rows with the factor of a strength, which is computed again if it is not in memory."""
        ridge = self.solver(None, octaves)
        if not isinstance(ridge, DualRidge) or (ridge.factor_of != alpha and ridge.solve(alpha) is None):
            return None
        return ridge

    def posterior(self, alpha: float, octaves: int, unit: float = 1.0) -> DualPosterior | None:
        """Return how certain the machine of all rows is, see ``solved``."""
        ridge = self.solved(alpha, octaves)
        return None if ridge is None else DualPosterior.of(ridge, self.dtype, unit)


def exact_bytes(n_rows: int, row_bytes: float, dtype: np.dtype) -> int:
    """Return the bytes of an exact fit: the matrix, three copies of the rows, and columns of the inverse per thread."""
    return int(dtype.itemsize * n_rows * (n_rows + 512 * _threads.count()) + 3 * n_rows * row_bytes)


@dataclass(frozen=True)
class ChosenMachine:
    """A machine of all rows at the setting that a rule has chosen.

    Parameters
    ----------
    solution : DualSolution
        The solution on all rows.
    octaves : int
        Octaves from the gamma of the features to that of the machine.
    held_out : ndarray of shape (n, t)
        Outputs for each row when it is left out, less the shift; NaN for rows that never are.
    result : object
        The settings that were compared, a ``SelectionResult``; None if there were none.
    open : sequence of str, default=()
        Which of "alpha" and "gamma" were left open, so that more rows may change them.
    growth : sequence of (int, float), default=()
        Rows learned from, and score, of machines of fewer rows and of all.
    """

    solution: DualSolution
    octaves: int
    held_out: np.ndarray
    result: object = None
    open: Sequence[str] = ()
    growth: Sequence[tuple[int, float]] = ()


class KernelProblem(Problem):
    """The machines on the kernel matrix of all rows.

    A rule compares them, and gives the best one to ``adopt``: its factor is in memory then, and its rows have been left
    out. Without a rule, ``solve`` solves at the gamma of the features, and no rows are left out.

    Attributes
    ----------
    first : KernelRows
        The rows that settings are compared on: all.
    matrix : KernelMatrix
        Their kernel matrix.
    chosen : ChosenMachine or None
        The machine that was adopted.
    """

    needs: ClassVar[Needs] = "kernel"
    rule = "leave out"

    def __init__(self, loss: str | Loss, evidence: Evidence):
        self.first = required(evidence.kernel, "the kernel matrix of all rows")
        Y = self.first.Y + self.first.shift
        self.loss = check_loss(loss, CATALOGUE).fitted(float(np.nanstd(Y)) or 1.0, float(np.nanmean(Y)))
        self.matrix = KernelMatrix(self.first.features, self.first.Y, self.first.weights, self.first.dtype, self.loss)
        self.chosen: ChosenMachine | None = None

    @property
    def n_rows(self) -> int:
        return self.first.order.size

    def usual_alpha(self) -> float:
        """Return the mean scatter of a row."""
        return self.matrix.solver(None, 0).scale() or 1.0

    def adopt(self, chosen: ChosenMachine) -> LinearSolution:
        """Take the machine that a rule has chosen, set the features to its gamma, and return its solution."""
        self.chosen = chosen
        machine = _rounded_little(self.first, self.matrix.diagonal, chosen.solution)
        self.first.features.set_octaves(chosen.octaves)
        self._solution = LinearSolution(machine.weights, machine.intercept + self.first.shift, machine.alpha)
        return self._solution

    def solve(self, alpha: float) -> LinearSolution:
        """See ``Problem``; the weights are those of the rows, in the order of the matrix."""
        if self.chosen is None or self.chosen.solution.alpha != alpha:
            return self.adopt(solved_alone(self.matrix, alpha))
        return self._solution

    def held_out(self, solution: LinearSolution, validation: ValidationRows | None) -> HeldOut | None:
        """See ``Problem``: the rows that were left out when the machine was chosen."""
        held_out = self._left_out
        seen = np.flatnonzero(~np.isnan(held_out).all(axis=1))
        return HeldOut(seen, held_out[seen], self._noise()) if seen.size else None

    @property
    def _left_out(self) -> np.ndarray:
        """Outputs (n, t) for the rows in the order of the source; NaN where a row was not left out."""
        assert self.chosen is not None
        held_out = np.empty_like(self.chosen.held_out)
        held_out[self.first.order] = self.chosen.held_out + self.first.shift
        return held_out

    @property
    def findings(self) -> Findings:
        return Findings(self.first.order, self._left_out)

    @property
    def growth(self) -> tuple[str, Sequence[tuple[int, float]]] | None:
        """See ``Problem``: machines of fewer rows, which the factor of all contains."""
        return None if self.chosen is None else (self.first.score.name, self.chosen.growth)

    @property
    def _is_certain(self) -> bool:
        """Whether noise and posterior are defined: for the square loss of targets that share rows and weights."""
        return self.loss == Square() and is_shared(self.first.Y, self.first.weights)

    def _noise(self) -> np.ndarray | None:
        """Return the variance of the targets (t,) about the outputs of a machine without uncertainty."""
        rows, chosen = self.first, self.chosen
        assert chosen is not None
        if not self._is_certain or not rows.has_noise:
            return None
        seen = np.flatnonzero(~np.isnan(chosen.held_out[:, 0]))
        alpha, residuals = chosen.solution.alpha, rows.Y[seen] - chosen.held_out[seen]
        weights = np.ones(rows.order.size) if rows.weights is None else rows.weights
        if rows.groups is None:
            duals = chosen.solution.weights[seen]
            variances = np.divide(residuals, duals, out=np.ones_like(residuals), where=duals != 0)
        else:
            ridge = self.matrix.solved(alpha, chosen.octaves)
            groups = [group for group in rows.groups if np.isin(group[0], seen)]
            if ridge is None:
                return None
            variances = np.concatenate(ridge.variances(groups))
        factors = of_entries(weights)[seen] * of_entries(variances) / alpha
        counts = None if rows.counts is None else rows.counts[seen]
        return noise_of(residuals, factors, weights[seen], counts)

    def posterior(self, solution: LinearSolution) -> DualPosterior | Posterior | None:
        rows = self.first
        if not self._is_certain or self.chosen is None:
            return None
        if rows.features.is_centred:
            return posterior_of_map(rows.features.mapped_rows, solution.alpha, rows.weights, rows.dtype, rows.unit)
        return self.matrix.posterior(solution.alpha, self.chosen.octaves, rows.unit)


def solved_alone(matrix: KernelMatrix, alpha: float) -> ChosenMachine:
    """Return the machine of all rows at a strength and the gamma of the features, with no row left out.

    Raises DataError if the matrix is not positive definite to rounding.
    """
    ridge = matrix.solver(None, 0)
    machine = ridge.solve(alpha)
    if machine is None:
        raise DataError(
            Message(
                "{alpha=:g} is too small: the kernel matrix is singular to rounding. Use a larger one, "
                "{alpha='auto'} or {precision='float64'}.",
                alpha,
            )
        )
    return ChosenMachine(ridge.finished(machine), 0, np.full(matrix.Y.shape, np.nan))


class KernelSolver(Solver):
    """The machines on the kernel matrix of all rows."""

    name: ClassVar[str] = "exact"
    needs: ClassVar[Needs] = "kernel"
    leaves_out: ClassVar[bool] = True

    def supports(self, loss: str | Loss, penalty: type = L2) -> bool:
        return penalty is L2 and has_exact_machine(loss)

    def problem(self, loss: str | Loss, evidence: Evidence) -> KernelProblem:
        return KernelProblem(loss, evidence)


def _rounded_little(rows: KernelRows, diagonal: np.ndarray, machine: DualSolution) -> DualSolution:
    """Return the machine such that rounding of kernel values moves its outputs f = sum_j K_j a_j little, or warn.

    Each value K(x, x_j), or weight a_j, is off by up to eps of its size, independently of the others, and an output by
    eps times the root of K_xx sum_j K_jj a_j^2: much where strengths are small beside what rounding leaves of the
    kernel, as with repeated rows, or with so small a gamma that all values are close to 1. Repeated rows with unlike
    targets have large weights of both signs, and only their sum matters: the first of equal rows takes it. Nothing
    helps a tiny gamma, as the values of new rows are rounded as well.
    """
    before = _share_of_rounding(rows, diagonal, machine)
    if before <= _MOST_ROUNDING:
        return machine
    weights = np.zeros_like(machine.weights)
    np.add.at(weights, rows.features.first_equal(), machine.weights)
    machine = replace(machine, weights=weights)
    share = max(_ROUNDING_IN_SUMS * before, _share_of_rounding(rows, diagonal, machine))
    if share > _MOST_ROUNDING:
        warnings.warn(
            Message(
                "rounding to {} moves the outputs by about {:.2g} % of the spread of the targets, at {alpha=:g}. Use "
                "a larger {alpha}, a larger {gamma} if the kernel has one, or {precision='float64'}.",
                str(rows.dtype),
                100 * share,
                machine.alpha,
            ),
            ConvergenceWarning,
            stacklevel=2,
        )
    return machine


def _share_of_rounding(rows: KernelRows, diagonal: np.ndarray, machine: DualSolution) -> float:
    """Return how far rounding moves outputs, as a share of the spread of the targets; see ``_rounded_little``."""
    sizes = np.sqrt(diagonal.mean() * (diagonal[:, None] * np.square(machine.weights)).sum(axis=0))
    spread = np.nanstd(rows.Y, axis=0)
    return float(np.finfo(rows.dtype).eps * np.max(sizes / np.where(spread > 0, spread, np.inf)))


def posterior_of_map(
    rows: KeptRows | None, alpha: float, weights: np.ndarray | None, dtype: np.dtype, unit: float
) -> Posterior | None:
    """Return the posterior of the weights of an additive kernel's map, from the scatter of the mapped rows.

    It is None for more than ``MOST_MAPPED`` features, and for several maps.
    """
    if rows is None or rows.n_columns > MOST_MAPPED:
        return None
    weights = None if weights is None else of_rows(weights)
    moments = Moments(rows.n_columns, 0, rows.column_means(), np.zeros(0))
    for first in range(0, rows.n_rows, _PIECE_ROWS):
        places = np.arange(first, min(first + _PIECE_ROWS, rows.n_rows))
        Z = rows.take(places).centred() + moments.shifts[0]
        moments.update(Z, np.zeros((places.size, 0)), None if weights is None else weights[places])
    factor = Factor(rows.n_columns)
    factor.of(moments, alpha)
    return Posterior.of(factor, moments.mean, moments.count, alpha, dtype, unit=unit)
