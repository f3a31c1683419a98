"""Groups of features that are used or left out together: the l21 norm, by exact block coordinate descent.

The problem is

    min_{w, b}  sum_i w_i loss(y_i, z_i'w + b) + alpha sum_g weight_g |w_g|_2.

Its core is a quadratic function plus the norm (``GroupQuadratic``),

    min_W  tr(W'HW)/2 - tr(W'V) + sum_g level_g |w_g|_2,

with H (D, D) positive semi-definite and W, V (D, t). A sweep minimises over one group after the other, in O(D^2 t)
operations for all of them; the set-up takes the eigenvectors of the diagonal blocks, O(sum_g |g|^3). Memory holds H, a
copy ordered by groups if they are not consecutive, and the eigenvectors.

For the square loss, H is the scatter Hc of the moments and V is Vc (``SquareProblem``): no further pass over the rows
is taken. Other losses (``LossProblem``) take a proximal quasi-Newton method whose metric is Hc: a step is one pass over
the rows in O(n D t) operations, and some sweeps over the groups. ``follow`` walks a path of strengths from the largest
down. ``group_lasso_path`` is the square loss with scikit-learn's scaling of the strength.

The group solver of skglm (0.5) on equivalent rows (``sparse.equivalent_rows``) was tried in its place: for one target,
64 to 256 features and 4 groups it took 7 to 12 times as long, at residuals ten times as large, so the descent stays.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, starmap
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from chimap import _loops
from chimap._messages import Message
from chimap._validation import DataError, check_positive
from chimap.losses import CATALOGUE, FeatureRows, Loss, LossAt, LossSums, Square
from chimap.moments import Moments, Symmetric
from chimap.penalties import L2, L21
from chimap.solvers.base import Evidence, Needs, Problem, Solver, required
from chimap.solvers.descent import Descent, ObjectiveValue, descend
from chimap.solvers.findings import Findings, KernelPath
from chimap.solvers.held_out import HeldOut, ValidationRows, by_folds
from chimap.solvers.lbfgs import Rows
from chimap.solvers.passes import PassesSolver, loss_of, shifted, step_outputs, unshifted
from chimap.solvers.ridge import LinearSolution, solution
from chimap.solvers.sparse import SparsePath

SWEEPS = 5  # sweeps over the active groups between two evaluations of the gradient of all groups
_MOST_NEWTON = 60
_NOISE = np.finfo(float).eps


class GroupQuadratic:
    """q(W) = tr(W'HW)/2 - tr(W'V), with the eigenvectors of the blocks of H that belong to the groups of a penalty.

    With the other groups fixed, the best weights of a group solve (H_gg + level/|w_g| I) w_g = c_g. In the eigenvectors
    of H_gg this is a single equation for the length |w_g|. A sweep solves it for each group in turn, for all targets at
    once. If each group is the many features of a kernel and there are few groups, few sweeps suffice, because the
    blocks carry the ill-conditioning.

    Parameters
    ----------
    H : ndarray of shape (D, D), float64
        Symmetric positive semi-definite matrix. It is not copied.
    penalty : L21
        Penalty whose groups divide the columns.

    References
    ----------
    Qin, Scheinberg and Goldfarb, Efficient block-coordinate descent algorithms for the group lasso (2013).
    """

    def __init__(self, H: np.ndarray, penalty: L21):
        self.H = H
        order = np.concatenate(penalty.members)
        self._starts = np.cumsum([0, *(len(columns) for columns in penalty.members)])
        # The compiled loop needs the columns of a group side by side.
        self._order = None if np.array_equal(order, np.arange(order.size)) else order
        self._by_group = np.ascontiguousarray(H if self._order is None else H[order][:, order])
        spectra = [_spectrum(self._by_group[g, g]) for g in starmap(slice, pairwise(self._starts))]
        self._values = np.concatenate([values for values, _ in spectra])
        self._vectors = np.concatenate([vectors.ravel() for _, vectors in spectra])
        self._offsets = np.cumsum([0, *(vectors.size for _, vectors in spectra)])

    def sweep(self, W: np.ndarray, V: np.ndarray, penalty: L21, active: np.ndarray, times: int = SWEEPS) -> np.ndarray:
        """Return W (D, t) after ``times`` sweeps over the active groups (indices).

        A sweep minimises q + penalty over one group after the other.
        """
        order = slice(None) if self._order is None else self._order
        swept, pull = np.array(W[order], np.float64, order="C"), np.ascontiguousarray(V[order])
        _loops.sweep_groups(
            self._by_group,
            pull,
            swept,
            self._starts,
            active,
            self._values,
            self._vectors,
            self._offsets,
            penalty.levels(),
            penalty.shared,
            times,
            8 * _NOISE,
            _MOST_NEWTON,
        )
        if self._order is None:
            return swept
        moved = np.empty_like(swept)
        moved[self._order] = swept
        return moved

    def minimise(
        self, V: np.ndarray, penalty: L21, start: np.ndarray, tolerance: float, max_rounds: int = 2000
    ) -> Descent:
        """Minimise q(W) + penalty(W) for all columns of V (D, t), until no residual exceeds ``tolerance``.

        Only the groups that are in use or violate their optimality condition are swept, ``SWEEPS`` times between two
        evaluations of all groups.
        """

        def evaluate(W: np.ndarray) -> ObjectiveValue:
            product = self.H @ W
            smooth = (W * (product / 2 - V)).sum(axis=0, keepdims=penalty.shared)
            values = (smooth.sum(axis=1) if penalty.shared else smooth) + penalty.values(W)
            residuals = penalty.residuals(W, product - V)
            used = np.flatnonzero(((residuals > tolerance) | (penalty.norms(W) > 0)).any(axis=1))
            return ObjectiveValue(values, residuals.max(axis=0), used)

        def step(W: np.ndarray, at: ObjectiveValue) -> np.ndarray:
            return self.sweep(W, V, penalty, at.more)

        return descend(evaluate, step, start, tolerance, max_rounds)


def _spectrum(square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues, raised to the rounding of the largest where they are below it, and the eigenvectors."""
    values, vectors = np.linalg.eigh(square)
    return np.maximum(values, values.size * _NOISE * max(values[-1], np.finfo(float).tiny)), vectors


TOLERANCE = 1e-7  # of a path from moments
PASSES_TOLERANCE = 1e-6
SEARCH_TOLERANCE = 1e-3  # of residuals while strengths are compared
_SEARCH_PASSES = 60  # most passes per strength while strengths are compared
_PATIENCE = 4  # a search by passes ends after this number of strengths without a lower held-out loss


@dataclass(frozen=True)
class GroupSolution(LinearSolution):
    """A linear model with group weights, and how near it is to the minimum.

    Parameters
    ----------
    coef : ndarray of shape (D, t)
        Weights of the features.
    intercept : ndarray of shape (t,)
        Intercepts of the targets.
    alpha : float
        Strength of the penalty.
    objective : float
        Objective at the weights, summed over targets.
    residual : float
        Largest violation of a group's optimality condition, relative to its strength.
    evaluations : int
        Evaluations of the gradient. For losses that need them, each is a pass over the rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(100, 4))
    >>> moments = Moments(4, 1).update(Z, Z[:, 0])
    >>> problem = SquareProblem(moments, L21(1.0, [slice(0, 2), slice(2, 4)], 4))
    >>> solution = problem.solve(problem.largest / 10, problem.zero())
    >>> bool(solution.residual < 1e-6)
    True
    """

    objective: float
    residual: float
    evaluations: int


class GroupDescent(ABC):
    """sum loss + alpha sum_g weight_g |w_g|_2 over rows, b not penalised: what ``follow`` solves along a path."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """Smallest strength at which all weights are zero."""

    @property
    @abstractmethod
    def at_zero(self) -> float:
        """Objective at zero weights."""

    @abstractmethod
    def zero(self) -> LinearSolution:
        """Return zero weights with the best intercepts."""

    @abstractmethod
    def solve(self, alpha: float, start: LinearSolution) -> GroupSolution:
        """Return the minimum at a strength.

        Parameters
        ----------
        alpha : float
            Strength of the penalty.
        start : LinearSolution
            Weights to start from.

        Returns
        -------
        GroupSolution
            Weights (D, t) and intercepts (t,). A ConvergenceWarning is issued if they miss the tolerance.
        """


class SquareProblem(GroupDescent):
    """Minimise sum (z'w + b - y)^2 / 2 + alpha sum_g weight_g |w_g|_2 from moments; b is not penalised.

    The strength is that of ``losses.Square`` and ``penalties.L21``.

    Parameters
    ----------
    moments : Moments
        Moments of all rows.
    penalty : L21
        The groups, their weights, and whether targets share them. Its strength is not used.
    tolerance : float, default=1e-07
        Largest violation of a group's optimality condition, relative to its strength, at which the descent stops.

    Raises
    ------
    DataError
        If the moments have no rows, or the targets are too large to be squared.

    References
    ----------
    Bazavan, Li and Sminchisescu, Fourier kernel learning, eq. 19, with the square loss.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(100, 4))
    >>> moments = Moments(4, 1).update(Z, Z[:, 0])
    >>> problem = SquareProblem(moments, L21(1.0, [slice(0, 2), slice(2, 4)], 4))
    >>> solution = problem.solve(problem.largest / 10, problem.zero())
    >>> bool(solution.coef[0, 0] > 0.5), solution.coef[2:].tolist()  # the second group is left out
    (True, [[0.0], [0.0]])
    """

    def __init__(self, moments: Moments, penalty: L21, tolerance: float = TOLERANCE):
        moments.check_rows()
        self.moments, self.penalty, self.tolerance = moments, penalty, tolerance
        self._V = moments.cross_scatter()
        self._constant = float(moments.target_scatter().sum()) / 2
        if not (np.isfinite(self._V).all() and np.isfinite(self._constant)):
            raise DataError(
                "the objective of the square loss is not finite: the targets y are too large to be squared. Divide "
                "them by their scale."
            )
        self._quadratic = GroupQuadratic(full_scatter(moments), penalty)

    @property
    def largest(self) -> float:
        return largest_alpha(self.moments, self.penalty)

    @property
    def at_zero(self) -> float:
        return self._constant

    def zero(self) -> LinearSolution:
        return solution(self.moments, np.zeros_like(self._V), 0.0)

    def solve(self, alpha: float, start: LinearSolution) -> GroupSolution:
        penalty = self.penalty.with_alpha(alpha)
        minimum = self._quadratic.minimise(self._V, penalty, start.coef, self.tolerance)
        residual = float(minimum.at.residuals.max())
        warn_if_short(residual, self.tolerance, alpha, minimum.evaluations)
        plain = solution(self.moments, minimum.x, float(alpha))
        return GroupSolution(
            plain.coef,
            plain.intercept,
            plain.alpha,
            float(minimum.at.values.sum()) + self._constant,
            residual,
            minimum.evaluations,
        )


def largest_alpha(moments: Moments, penalty: L21) -> float:
    """Return the smallest strength at which all weights are zero under the square loss."""
    return penalty.with_alpha(1.0).largest(moments.cross_scatter())


def full_scatter(moments: Moments) -> np.ndarray:
    """Return both triangles of Hc, (D, D) float64."""
    square = np.empty((moments.n_features, moments.n_features))
    moments.scatter_into(square)
    for first in range(0, square.shape[0], 256):  # mirror block by block, which needs no second matrix
        rows = slice(first, first + 256)
        corner = np.triu(square[rows, rows])
        square[rows, rows] = corner + np.triu(corner, 1).T
        square[first + 256 :, rows] = square[rows, first + 256 :].T
    return square


def follow(
    problem: GroupDescent,
    alphas: Sequence[float] | np.ndarray,
    on_solution: Callable[[GroupSolution], bool | None] | None = None,
) -> list[GroupSolution]:
    """Solve at several strengths from the largest down, each solution starting from the one before.

    Parameters
    ----------
    problem : GroupDescent
        ``SquareProblem`` or ``LossProblem``.
    alphas : sequence of float
        Strengths, in any order.
    on_solution : callable, default=None
        Called with each solution. The path ends when it returns True.

    Returns
    -------
    list of GroupSolution
        The solutions in descending order of strength.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(100, 4))
    >>> moments = Moments(4, 1).update(Z, Z[:, 0])
    >>> problem = SquareProblem(moments, L21(1.0, [slice(0, 2), slice(2, 4)], 4))
    >>> path = follow(problem, [problem.largest / 2, problem.largest / 10])
    >>> [bool(solution.coef[0, 0] > 0.4) for solution in path]
    [True, True]
    """
    for alpha in alphas:
        check_positive(float(alpha), Message("each of {alpha}"))
    path: list[GroupSolution] = []
    last = problem.zero()
    for alpha in np.sort(np.asarray(alphas, dtype=np.float64))[::-1]:
        last = problem.solve(float(alpha), last)
        path.append(last)
        if on_solution is not None and on_solution(last):
            break
    return path


def warn_if_short(residual: float, tolerance: float, alpha: float, evaluations: int) -> None:
    """Issue a ConvergenceWarning if the residual is above the tolerance."""
    if residual > tolerance:
        warnings.warn(
            f"the group weights at strength {alpha:.4g} stopped after {evaluations} evaluations at a residual of "
            f"{residual:.2g}, short of tolerance={tolerance:g}. Use a larger strength.",
            ConvergenceWarning,
            stacklevel=3,
        )


# share of the trace added to the metric's diagonal: exceeds the rounding of float32 products
_LEAST_RIDGE = 1e-7
_INTERCEPT_STEPS = 100


class LossProblem(GroupDescent):
    """Minimise sum loss(y, z'w + b) + alpha sum_g weight_g |w_g|_2 over rows that are read again; b is not penalised.

    A loss lies below a parabola: sum loss <= value + G'dW + curvature/2 |dW|^2 in the metric Hc of the moments of all
    rows, and separately for the intercept. A step lowers this bound plus the penalty by a few sweeps over the groups,
    which read no row; steps are Anderson-mixed. Together this is a proximal quasi-Newton method with one pass per step.
    Scores, slopes and sums are in float64 whatever the dtype of the features, so that the optimality conditions can be
    met to 1e-6. The solutions are for features and targets less the shifts.

    Parameters
    ----------
    loss : Loss
        The loss. Each pass checks the domain of its targets.
    rows : callable
        Returns sums over the rows, as for ``lbfgs``. Features and targets are less the shifts of the moments.
    whole : Moments
        Moments of all these rows, or of more.
    penalty : L21
        The groups, their weights, and whether targets share them. Its strength is not used.
    tolerance : float, default=1e-06
        Largest violation of a group's optimality condition, relative to its strength, at which the descent stops.
    max_passes : int, default=1000
        Largest number of passes of a solution.
    metric : GroupQuadratic, default=None
        ``metric_of`` the moments, if it is at hand. None computes it.
    warns : bool, default=True
        Whether a solution that misses the tolerance issues a ConvergenceWarning.

    Examples
    --------
    >>> from chimap.losses import Logistic
    >>> from chimap.solvers.lbfgs import over
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(200, 4))
    >>> y = np.where(Z[:, :1] > 0, 1.0, -1.0)
    >>> penalty = L21(1.0, [slice(0, 2), slice(2, 4)], 4)
    >>> problem = LossProblem(Logistic(), over(lambda: [(Z, y)]), Moments(4, 1).update(Z, y), penalty)
    >>> solution = problem.solve(problem.largest / 2, problem.zero())
    >>> bool(solution.coef[0, 0] > 0), solution.coef[2:].tolist()
    (True, [[0.0], [0.0]])
    """

    def __init__(
        self,
        loss: Loss,
        rows: Rows,
        whole: Moments,
        penalty: L21,
        tolerance: float = PASSES_TOLERANCE,
        max_passes: int = 1000,
        metric: GroupQuadratic | None = None,
        warns: bool = True,
    ):
        self.loss, self.rows, self.penalty = loss, rows, penalty
        self.tolerance, self.max_passes, self.warns = tolerance, max_passes, warns
        self._mean = whole.mean - whole.shifts[0]
        self._count = whole.count
        self.metric = metric or metric_of(whole, penalty)
        self._shape = (whole.n_features, whole.n_targets)
        self._zero: np.ndarray | None = None

    @property
    def largest(self) -> float:
        x = self._at_zero()
        _, gradient = self._pass(x)
        return self.penalty.with_alpha(1.0).largest(gradient[:-1])

    @property
    def at_zero(self) -> float:
        return float(self._pass(self._at_zero())[0].sum())

    def zero(self) -> LinearSolution:
        x = self._at_zero()
        return LinearSolution(x[:-1], x[-1].copy(), 0.0)

    def solve(self, alpha: float, start: LinearSolution) -> GroupSolution:
        penalty, curvature = self.penalty.with_alpha(alpha), self.loss.curvature
        # Divide the bound by the curvature, so that the metric itself is the matrix of its quadratic part.
        bound = penalty.with_alpha(penalty.alpha / curvature)

        def evaluate(x: np.ndarray) -> ObjectiveValue:
            values, gradient = self._pass(x)
            residuals = penalty.residuals(x[:-1], gradient[:-1])
            used = np.flatnonzero(((residuals > self.tolerance) | (penalty.norms(x[:-1]) > 0)).any(axis=1))
            intercepts = np.abs(gradient[-1]) / alpha
            if penalty.shared:
                values, intercepts = values.sum(keepdims=True), intercepts.max(keepdims=True)
            return ObjectiveValue(
                values + penalty.values(x[:-1]), np.maximum(residuals.max(axis=0), intercepts), (gradient, used)
            )

        def step(x: np.ndarray, at: ObjectiveValue) -> np.ndarray:
            gradient, used = at.more
            V = self.metric.H @ x[:-1] - gradient[:-1] / curvature
            W = self.metric.sweep(x[:-1], V, bound, used)
            return np.vstack([W, x[-1] - gradient[-1] / (curvature * self._count)])

        x = np.vstack([start.coef, start.intercept + self._mean @ start.coef])
        end = descend(evaluate, step, x, self.tolerance, self.max_passes)
        residual = float(end.at.residuals.max())
        if self.warns:
            warn_if_short(residual, self.tolerance, alpha, end.evaluations)
        W = end.x[:-1]
        return GroupSolution(
            W, end.x[-1] - self._mean @ W, float(alpha), float(end.at.values.sum()), residual, end.evaluations
        )

    def _at_zero(self) -> np.ndarray:
        """Return zero weights and the intercepts that are best with them, (D + 1, t)."""
        if self._zero is not None:
            return self._zero

        def evaluate(x: np.ndarray) -> ObjectiveValue:
            values, gradient = self._pass(x)
            return ObjectiveValue(values, np.abs(gradient[-1]) / self._count, gradient[-1])

        def step(x: np.ndarray, at: ObjectiveValue) -> np.ndarray:
            moved = x.copy()
            moved[-1] -= at.more / (self.loss.curvature * self._count)
            return moved

        x = np.zeros((self._shape[0] + 1, self._shape[1]))
        self._zero = descend(evaluate, step, x, self.tolerance, _INTERCEPT_STEPS).x
        return self._zero

    def _pass(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the summed losses (t,) and their gradients (D + 1, t) in the weights of centred features."""
        W = x[:-1]
        sums = self.rows(LossAt(self.loss, W, x[-1] - self._mean @ W, np.float64))
        if sums.count == 0:
            raise DataError("no rows: the chunks of a pass are empty.")
        values, gradient = sums.values, np.vstack([sums.coef, sums.intercept])
        if not (np.isfinite(values).all() and np.isfinite(gradient).all()):
            raise DataError(
                f"the objective of the {self.loss.name} loss is not finite: the targets y are too large, or the "
                "features of a channel are. Divide the targets by their scale."
            )
        gradient[:-1] -= np.outer(self._mean, gradient[-1])
        return values, gradient


def metric_of(whole: Moments, penalty: L21) -> GroupQuadratic:
    """Return Hc with a small ridge, which bounds the Hessian of a loss of curvature 1 over these rows."""
    square = full_scatter(whole)
    square[np.diag_indices_from(square)] += _LEAST_RIDGE * float(np.trace(square)) or 1.0
    return GroupQuadratic(square, penalty)


def group_lasso_path(moments: Moments, alphas: np.ndarray, groups: Sequence[np.ndarray]) -> SparsePath:
    """Minimise sum (z'w + b - y)^2 / (2n) + alpha sum_g sqrt(|g|) |w_g|_2, target by target.

    Parameters
    ----------
    moments : Moments
        Moments of all n rows.
    alphas : ndarray of shape (s,)
        Strengths, scaled as scikit-learn's: they weigh the penalty against the mean loss of a row.
    groups : sequence of index arrays
        Columns of each group. Each column is in exactly one group.

    Returns
    -------
    SparsePath
        Solutions in descending order of alpha; each search starts from the solution before.

    Raises
    ------
    DataError
        If the moments have no rows.
    """
    alphas = np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
    path = follow(SquareProblem(moments, _by_size(moments, groups)), moments.count * alphas)
    solutions = [
        LinearSolution(solution.coef, solution.intercept, float(alpha))
        for solution, alpha in zip(path, alphas, strict=True)
    ]
    return SparsePath(alphas, solutions, np.array([solution.residual for solution in path]))


def largest_group_alpha(moments: Moments, groups: Sequence[np.ndarray]) -> float:
    """Return the least strength of ``group_lasso_path`` at which all weights are zero."""
    return largest_alpha(moments, _by_size(moments, groups)) / moments.count


def _by_size(moments: Moments, groups: Sequence[np.ndarray]) -> L21:
    """Return the norm of groups whose weights are the roots of their sizes."""
    return L21(1.0, groups, moments.n_features, [len(group) ** 0.5 for group in groups])


class GroupPathProblem(Problem):
    """The path of strengths of a loss with the norm of groups, each solution starting from the one before.

    A rule gives the strengths of the path to ``along``.

    Attributes
    ----------
    moments : FoldMoments
        Moments of all rows, fold by fold.
    whole : Moments
        Their sum.
    smallest : float
        End of a path, as a share of the strength at which all weights are zero.
    path : list of GroupSolution
        The solutions that strengths were compared by, or that lead to the chosen one.
    place : int
        Place in the path of the chosen strength.
    """

    rule = "path folds"
    smallest: ClassVar[float]

    def __init__(self, loss: str | Loss, evidence: Evidence):
        self.moments = required(evidence.moments, "moments")
        self.whole, self.n_folds = self.moments.whole(), len(self.moments.folds)
        self._alphas: np.ndarray | None = None
        self.penalty = required(evidence.penalty, "groups of features")
        self.loss = loss_of(loss, self.whole)
        self._progress, self._held_folds = evidence.progress, evidence.held_folds
        self.path: list[GroupSolution] = []
        self.place = 0
        self._solution: GroupSolution | None = None

    @property
    def n_rows(self) -> int:
        return self.whole.n_rows

    @property
    @abstractmethod
    def largest(self) -> float:
        """Smallest strength at which all weights are zero."""

    def usual_alpha(self) -> float:
        """Return the strength in the middle between the largest and the smallest of a path."""
        return self.largest * self.smallest**0.5

    def along(self, alphas: np.ndarray) -> None:
        """Take the strengths of the path, descending."""
        self._alphas = alphas

    @property
    def findings(self) -> Findings:
        assert self._solution is not None
        return Findings(
            kernel_weights=self._weights(self._solution),
            kkt_residual=self._solution.residual,
            objective=self._solution.objective,
            path=KernelPath(
                np.array([point.alpha for point in self.path]),
                np.array([self._weights(point) for point in self.path]),
                np.array([point.objective for point in self.path]),
                np.array([point.residual for point in self.path]),
                self.place,
            ),
            n_iter=self.passes,
        )

    def _weights(self, solution: LinearSolution) -> np.ndarray:
        return np.ascontiguousarray(self.penalty.norms(solution.coef).T) / np.sqrt(2)


class GroupProblem(GroupPathProblem):
    """The path of the square loss, from moments."""

    needs: ClassVar[Needs] = "moments"
    smallest: ClassVar[float] = 1e-3

    @property
    def largest(self) -> float:
        return largest_alpha(self.whole, self.penalty)

    def path_of(self, moments: Moments, alphas: np.ndarray) -> SparsePath:
        """Return the solutions for some of the rows, as near to the minimum as a comparison needs."""
        path = follow(
            SquareProblem(moments, self.penalty, SEARCH_TOLERANCE), alphas, lambda solution: self._progress.advance()
        )
        return SparsePath(alphas, list[LinearSolution](path), np.array([point.residual for point in path]))

    def solve(self, alpha: float) -> GroupSolution:
        """See ``Problem``: the whole path is followed."""
        alphas = np.array([alpha]) if self._alphas is None else self._alphas
        self._progress.stage("path", alphas.size, "values")
        self.path = follow(SquareProblem(self.whole, self.penalty), alphas, lambda solution: self._progress.advance())
        self.place = int(np.flatnonzero(alphas == alpha)[0])
        self._solution = self.path[self.place]
        return self._solution

    def held_out(self, solution: LinearSolution, validation: ValidationRows | None) -> HeldOut | None:
        """See ``Problem``: rows are left out with their folds, or each by a Newton step."""
        if validation is None:
            return None
        if not validation.leaves_folds:
            strengths = _ridge_strengths(self.penalty, solution)
            return step_outputs(Square(), shifted(solution, self.whole), strengths, self.whole, validation)

        def without(fold: int) -> LinearSolution:
            part = SquareProblem(self.whole - self.moments.folds[fold], self.penalty, SEARCH_TOLERANCE)
            return shifted(part.solve(solution.alpha, part.zero()), self.whole)

        return by_folds(validation, without, self.whole.shifts[1], np.unique(validation.folds).tolist())


class GroupPassesProblem(GroupPathProblem):
    """The path of any smooth loss, by passes over the rows; strengths are compared on fold 0."""

    needs: ClassVar[Needs] = "rows"
    rule = "path holdout"
    counts: ClassVar[str] = "passes"
    stage: ClassVar[str] = "passes"
    smallest: ClassVar[float] = 1e-2  # the number of passes grows as the strength falls
    loss: Loss

    def __init__(self, loss: str | Loss, evidence: Evidence):
        super().__init__(loss, evidence)
        self.rows, self.passes = required(evidence.rows, "rows"), 0
        self._metric = metric_of(self.whole, self.penalty)
        self._everything = self._of_folds(range(self.n_folds), is_search=False)
        self._has_searched = False

    @property
    def largest(self) -> float:
        return self._everything.largest

    def search(self, path_of: Callable[[float], np.ndarray]) -> list[float]:
        """Follow the path of all folds but 0, and return the losses on fold 0, as far as they fall.

        ``path_of(largest)`` returns the strengths. The path ends when the loss has not fallen for ``_PATIENCE`` of
        them.
        """
        part, losses = self._of_folds(range(1, self.n_folds), is_search=True), list[float]()

        def is_enough(solution: GroupSolution) -> bool:
            losses.append(held_out_loss(self.loss, self.rows, solution))
            return len(losses) - 1 - int(np.argmin(losses)) >= _PATIENCE

        self.path, self._has_searched = follow(part, path_of(part.largest), is_enough), True
        return losses

    def solve(self, alpha: float) -> LinearSolution:
        """See ``Problem``: from the solution that the search found, or down the path."""
        if self._has_searched:
            self.place = next(i for i, point in enumerate(self.path) if point.alpha == alpha)
            self._solution = self._everything.solve(alpha, self.path[self.place])
        else:
            self.path = follow(self._everything, [alpha] if self._alphas is None else self._alphas)
            self.place, self._solution = len(self.path) - 1, self.path[-1]
        return unshifted(self._solution, self.whole)

    def held_out(self, solution: LinearSolution, validation: ValidationRows | None) -> HeldOut | None:
        """See ``Problem``: rows are left out with their folds, or each by a Newton step."""
        if validation is None:
            return None
        assert self._solution is not None
        if validation.leaves_folds or (self._has_searched and self._held_folds == (0,)):
            return by_folds(validation, self._without, self.whole.shifts[1], self._held_folds)
        strengths = _ridge_strengths(self.penalty, self._solution)
        return step_outputs(self.loss, self._solution, strengths, self.whole, validation)

    def _without(self, fold: int) -> LinearSolution:
        """Return the model of all folds but one; the search has that without fold 0."""
        if fold == 0 and self._has_searched:
            return self.path[self.place]
        assert self._solution is not None
        others = self._of_folds([k for k in range(self.n_folds) if k != fold], is_search=True)
        return others.solve(self._solution.alpha, others.zero())

    def _of_folds(self, folds: Sequence[int], *, is_search: bool) -> LossProblem:
        """Return the problem of some folds; that of a search is solved roughly."""

        def sums(at: LossAt) -> LossSums:
            self.passes += 1
            self._progress.advance()
            return self.rows.sums(at, folds)

        if not is_search:
            return LossProblem(self.loss, sums, self.whole, self.penalty, metric=self._metric)
        return LossProblem(
            self.loss, sums, self.whole, self.penalty, SEARCH_TOLERANCE, _SEARCH_PASSES, self._metric, warns=False
        )


class GroupSolver(Solver):
    """The square loss with the norm of groups, from moments."""

    name: ClassVar[str] = "groups"
    needs: ClassVar[Needs] = "moments"

    def supports(self, loss: str | Loss, penalty: type = L2) -> bool:
        return penalty is L21 and (loss == Square.name or loss == Square())

    def problem(self, loss: str | Loss, evidence: Evidence) -> Problem:
        return GroupProblem(loss, evidence)

    def working_bytes(self, sizes: Sequence[int], n_folds: int) -> int:
        """Return the bytes of moments outside a fold, the eigenvectors of the blocks, and their workspace."""
        rest_bytes = Symmetric.nbytes(sum(sizes)) if n_folds > 1 else 0
        return rest_bytes + 8 * (sum(size * size for size in sizes) + 3 * max(sizes) ** 2)


class GroupPassesSolver(GroupSolver):
    """Any smooth loss with the norm of groups, by passes over the rows."""

    name: ClassVar[str] = "groups by passes"
    needs: ClassVar[Needs] = "rows"
    n_vectors: ClassVar[int] = PassesSolver.n_vectors

    def supports(self, loss: str | Loss, penalty: type = L2) -> bool:
        if penalty is not L21 or not (isinstance(loss, Loss) or loss in CATALOGUE):
            return False
        # A step is bounded by a parabola, and an exponential is below none.
        return (CATALOGUE[loss] if isinstance(loss, str) else loss).domain != "count"

    def problem(self, loss: str | Loss, evidence: Evidence) -> Problem:
        return GroupPassesProblem(loss, evidence)


def held_out_loss(loss: Loss, rows: FeatureRows, solution: LinearSolution) -> float:
    """Return the mean loss over the rows of fold 0, summed over targets. Raise DataError if it has no rows."""
    sums = rows.sums(LossAt(loss, solution.coef, solution.intercept), [0])
    if sums.count == 0:
        raise DataError(
            "fold 0 holds no rows: there are too few to choose a strength. Use fewer folds, or give one strength."
        )
    return float(sums.values.sum()) / sums.count


def _ridge_strengths(penalty: L21, solution: LinearSolution) -> np.ndarray:
    """Return the strengths (D,) of the ridge penalty with the same gradient as the norm at the solution.

    They are weight_g alpha / |w_g|, the norms being means over targets. Features without weights get a strength beyond
    all others.
    """
    norms = penalty.norms(solution.coef).mean(axis=1)
    levels = solution.alpha * penalty.levels()
    group_strengths = np.divide(levels, norms, out=np.full(norms.shape, np.inf), where=norms > 0)
    largest = 1e9 * max(float(group_strengths[np.isfinite(group_strengths)].max(initial=0.0)), solution.alpha)
    strengths = np.empty(penalty.n_features)
    for members, strength in zip(penalty.members, group_strengths, strict=True):
        strengths[members] = min(strength, largest)
    return strengths


BY_SUMS, BY_PASSES = GroupSolver(), GroupPassesSolver()
