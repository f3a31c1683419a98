"""Ridge of several targets with missing entries, by conjugate gradients that all targets share.

The problem is, for each target j, which is observed in the rows O_j alone,

    min_{w, b}  sum_{i in O_j} (z_i'w + b - y_ij)^2 / 2 + alpha/2 |w|^2.

Its normal equations have a matrix of their own,

    (H_j + alpha I) w_j = v_j,   H_j = sum_{i in O_j} (z_i - m_j)(z_i - m_j)',

so that direct solution takes one matrix and one factor per target: t times the sums of a single target, in time and in
memory. But the matrix Hc of all rows is near every H_j: where a quarter of the entries is missing, H_j is about three
quarters of it. So one factor of Hc + alpha I, in D^3/3 operations, preconditions the conjugate gradients of all
targets, which take their steps together. A step is two products over the rows, Z P and Z' (mask o (Z P)), which give
H_j p_j of every target at once. It takes a pass over the rows in O(n D t) operations, and one or two dozen steps reach
rounding, because the eigenvalues of the preconditioned matrices lie between the least share of a direction that a
target observes and one. Memory holds the factor and a dozen arrays of the size of the weights (D, t).

Rows that arrive once, in batches, cannot be passed over again: ``ObservedMoments`` gives the same sums from moments.
The rows O_j are all rows but those where target j is missing, so

    H_j = H - sum_{i not in O_j} z_i z_i',

and a missing entry adds nothing to the products of features and targets. So one (D, D) matrix per target suffices
besides the moments of all rows: that of the rows where the target is missing. Targets without missing entries have
none. A sum costs O(D^2 t) operations per fold, whatever the number of rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from chimap._messages import Message
from chimap.losses import Loss, LossAt, LossSums, Observed, ObservedCurvature, Square
from chimap.moments import FoldMoments, Targets, split, weighted
from chimap.penalties import L2
from chimap.solvers.base import Evidence, Needs, Solver
from chimap.solvers.passes import TOLERANCE, PassesProblem
from chimap.solvers.ridge import LinearSolution

Pair = tuple[np.ndarray, np.ndarray]
"""An array of the shape of the weights (D, t), and one of the shape of the outputs at the mean row (t,)."""

_MOST_STEPS = 300
_FINAL_RESIDUAL = {4: 1e-6, 8: 1e-11}  # residual relative to that at zero weights, by the bytes of a feature
_SEARCH_RESIDUAL = 3e-3


class ObservedRidgeProblem(PassesProblem):
    """Minimise the sum over observed entries of |z'w + b - y|^2 / 2, plus alpha/2 |w|^2."""

    def __init__(self, loss: str | Loss, evidence: Evidence):
        super().__init__(loss, evidence)
        self._at_zero: dict[tuple[int, ...], Pair] = {}

    def _fit(self, alpha: float, without: int | None, start: LinearSolution, tolerance: float) -> LinearSolution:
        self._whiten(alpha, without)
        folds = self._others(without)
        final = _FINAL_RESIDUAL[self.moments.dtype.itemsize]
        goal = final if tolerance <= TOLERANCE else max(_SEARCH_RESIDUAL, final)
        return _ConjugateGradients(self, alpha, folds).from_(start, goal)

    def preconditioned(self, G: np.ndarray) -> np.ndarray:
        """Return (Hc + alpha I)^-1 G at the strength of the fit, with Hc of all rows but the fold that is left out."""
        return self._factor.solve(G)

    def gradient_at_zero(self, folds: Sequence[int]) -> Pair:
        """Return the gradients at zero weights and intercepts, which do not depend on the strength."""
        if tuple(folds) not in self._at_zero:
            W = np.zeros((self.whole.n_features, self.whole.n_targets))
            self._at_zero[tuple(folds)] = self.product(W, np.zeros(W.shape[1]), self.loss, folds)
        return self._at_zero[tuple(folds)]

    def product(self, W: np.ndarray, b: np.ndarray, loss: Loss, folds: Sequence[int]) -> Pair:
        """Return the gradients (D, t) and (t,) of a loss at weights and intercepts, by one pass."""
        self.passes += 1
        self._on_pass()
        sums = self.rows.sums(LossAt(loss, W, b), folds)
        return sums.coef, sums.intercept


class _ConjugateGradients:
    """Preconditioned conjugate gradients, with separate step lengths for each target.

    The unknowns are the weights W and the outputs c = b + W'm at the mean row m. In these coordinates the matrix of all
    rows has two blocks, Hc + alpha I and n, which are the preconditioner.
    """

    def __init__(self, problem: ObservedRidgeProblem, alpha: float, folds: Sequence[int]):
        self.problem, self.alpha, self.folds = problem, alpha, folds
        self.mean = problem.whole.feature_sum / problem.whole.count
        self.count = problem.whole.count

    def from_(self, start: LinearSolution, goal: float) -> LinearSolution:
        """Return the minimum, to a residual of the share ``goal`` of that at zero weights.

        The start counts missing entries as zeros, and so falls short of the minimum by about the share of entries that
        a target observes. It is scaled to its best length, which its gradient and that at zero determine.
        """
        first = self._about_mean(self.problem.gradient_at_zero(self.folds))
        W, c = start.coef, start.intercept + self.mean @ start.coef
        G, g = self._gradient(W, c, self.problem.loss, 0.0)
        product = G - first[0] + self.alpha * W, g - first[1]
        length = _divided(-self._inner((W, c), first), self._inner((W, c), product))
        W, c = length * W, length * c
        residual = -first[0] - length * product[0], -first[1] - length * product[1]
        scale = self._inner(first, self._preconditioned(first))
        direction = self._preconditioned(residual)
        size = self._inner(residual, direction)
        for _ in range(_MOST_STEPS):
            if (size <= goal**2 * scale).all():
                break
            P, p = direction
            product = self._gradient(P, p, ObservedCurvature(), self.alpha)
            curvature = self._inner(direction, product)
            step = _divided(size, curvature)
            W, c = W + step * P, c + step * p
            residual = residual[0] - step * product[0], residual[1] - step * product[1]
            ahead = self._preconditioned(residual)
            before, size = size, self._inner(residual, ahead)
            turn = _divided(size, before)
            direction = ahead[0] + turn * P, ahead[1] + turn * p
        else:
            worst = float(np.sqrt(np.max(size / np.where(scale > 0, scale, 1))))
            warnings.warn(
                Message(
                    "conjugate gradients stopped after {} passes at {:.1g} of the residual of zero weights, short "
                    "of {:g}. Give a larger {alpha}, or {precision='float64'}.",
                    _MOST_STEPS,
                    worst,
                    goal,
                ),
                ConvergenceWarning,
                stacklevel=2,
            )
        return LinearSolution(W, c - self.mean @ W, self.alpha)

    def _gradient(self, W: np.ndarray, c: np.ndarray, loss: Loss, alpha: float) -> Pair:
        G, g = self._about_mean(self.problem.product(W, c - self.mean @ W, loss, self.folds))
        return G + alpha * W, g

    def _about_mean(self, gradient: Pair) -> Pair:
        G, g = gradient
        return G - np.outer(self.mean, g), g

    def _preconditioned(self, gradient: Pair) -> Pair:
        G, g = gradient
        return self.problem.preconditioned(G), g / self.count

    @staticmethod
    def _inner(left: Pair, right: Pair) -> np.ndarray:
        return np.asarray(np.einsum("dt,dt->t", left[0], right[0]) + left[1] * right[1])


def _divided(sizes: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Divide, with 0 wherever the divisor is not positive."""
    return np.divide(sizes, by, out=np.zeros_like(sizes), where=by > 0)


class ObservedRidgeSolver(Solver):
    """Ridge of targets with missing entries, from moments of all rows and passes over them."""

    name: ClassVar[str] = "observed ridge"
    needs: ClassVar[Needs] = "rows"
    n_vectors: ClassVar[int] = 12  # weights, residuals, directions, and temporary products

    def supports(self, loss: str | Loss, penalty: type = L2) -> bool:
        return penalty is L2 and loss == Observed(Square())

    def problem(self, loss: str | Loss, evidence: Evidence) -> ObservedRidgeProblem:
        return ObservedRidgeProblem(loss, evidence)


class ObservedMoments:
    """Moments of all rows, and of the rows where each target is missing: ``FeatureRows`` for quadratic losses.

    Parameters
    ----------
    moments : FoldMoments
        Moments of all rows, which the caller updates. Call ``put`` with every batch before it is added to them.
    """

    def __init__(self, moments: FoldMoments):
        self.moments = moments
        self._missed: dict[int, FoldMoments] = {}

    @property
    def gaps(self) -> set[int]:
        """Targets with at least one missing entry."""
        return set(self._missed)

    def put(self, fold: int, Z: np.ndarray, Y: Targets) -> None:
        """Add features (rows, D) less the shift, with targets (rows, t) that may be missing. Neither is changed."""
        plain, weights = split(Y)
        missing = np.isnan(np.asarray(plain))
        for target in np.flatnonzero(missing.any(axis=0)).tolist():
            rows = np.flatnonzero(missing[:, target])
            if target not in self._missed:
                whole = self.moments
                bare = FoldMoments(len(whole.folds), whole.shift.size, 0, whole.shift, np.zeros(0), whole.dtype)
                self._missed[target] = bare
            no_targets = np.zeros((rows.size, 0))
            targets = weighted(no_targets, None if weights is None else weights[rows])
            self._missed[target].add_shifted(fold, Z[rows], targets)

    def release_buffers(self) -> None:
        """Release the memory of the batches."""
        for missed in self._missed.values():
            missed.release_buffers()

    def sums(self, at: LossAt, folds: Sequence[int]) -> LossSums:
        """See ``FeatureRows``; for losses whose gradient at a target y and a score s is s - y, or s."""
        pull = -float(at.loss.gradient(np.array([1.0]), np.array([0.0]))[0])
        sums, W, b = at.empty(), at.coef, at.intercept
        n_targets = self.moments.target_shift.size
        for fold in folds:
            whole = self.moments.folds[fold]
            HW, s, n = (whole.features @ W, np.outer(whole.feature_sum, np.ones(b.size)), np.full(b.size, whole.count))
            for target, missed in self._missed.items():
                missing, columns = missed.folds[fold], slice(target, None, n_targets)
                if missing.n_rows:
                    HW[:, columns] -= missing.features @ W[:, columns]
                    s[:, columns] -= missing.feature_sum[:, None]
                    n[columns] -= missing.count
            n_solutions = W.shape[1] // n_targets  # side by side
            V = pull * np.tile(whole.cross, (1, n_solutions))
            T, Q = (pull * np.tile(sums, n_solutions) for sums in (whole.target_sum, whole.target_squares))
            at_W = np.einsum("dt,dt->t", s, W)
            sums.coef += HW + s * b - V
            sums.intercept += at_W + n * b - T
            quadratic = np.einsum("dt,dt->t", W, HW - 2 * V) + b * (2 * at_W + n * b - 2 * T) + Q
            sums.values += quadratic / 2
            sums.count += whole.count
        return sums
