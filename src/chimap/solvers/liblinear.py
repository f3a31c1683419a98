"""Linear support vector machines, one class against the rest, by LIBLINEAR on features in memory.

The problem of each target, with labels y_i of -1 and 1, is

    min_{w, b}  sum_i w_i max(0, 1 - y_i (z_i'w + b))^p + alpha/2 (|w|^2 + b^2 / c^2),

with p = 1 for the hinge and 2 for the squared hinge, where b / c is the weight of a constant feature c. It is 1, as in
scikit-learn, or the root mean square length of the rows where that is less: beside a constant many times their length
all rows look alike, and LIBLINEAR does not converge.

LIBLINEAR solves it by dual coordinate
descent, in O(nnz) operations per iteration for features with nnz nonzero entries. Memory holds the features of all rows
and a copy of them in LIBLINEAR's format.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from chimap import _arrays
from chimap._messages import Message
from chimap._types import Rows
from chimap.losses import Loss, SquaredHinge
from chimap.penalties import L2
from chimap.solvers.base import Evidence, Needs, Solver
from chimap.solvers.kept_problem import KeptProblem
from chimap.solvers.ridge import LinearSolution

SEARCH_TOLERANCE = 3e-3
_MOST_ITERATIONS = 10_000  # limit of passes over the rows
_MOST_CONSTANT = 1.0  # largest value of the constant feature, whose weight is penalised like the others
_USUAL_COST = 10.0  # cost of an error at which the search begins, for features of mean squared norm 1


class HingeProblem(KeptProblem):
    """Minimise alpha/2 (|w|^2 + b^2/c^2) + sum_r max(0, 1 - y_r (w . z_r + b))^p, one target after the other.

    The targets take turns although LIBLINEAR would let threads run: all its fits draw from one random generator, so
    that parallel fits differ from run to run, and each has a copy of the features.

    References
    ----------
    Hsieh, Chang, Lin, Keerthi and Sundararajan, A dual coordinate descent method for large-scale linear SVM (2008).
    """

    name: ClassVar[str] = "hinge"
    tolerance = 1e-4  # scikit-learn's
    search_tolerance = SEARCH_TOLERANCE

    def __init__(self, evidence: Evidence):
        super().__init__(evidence)
        self.seed, self._on_target = evidence.seed, evidence.progress.advance

    def usual_alpha(self) -> float:
        """Return the usual strength, in units of the mean squared norm of the features."""
        return usual_alpha(self.kept.Z, self.kept.weights)

    def losses(self, targets: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Return max(0, 1 - y s), and 0 where a target is missing."""
        return np.asarray((targets != 0) * np.maximum(1 - targets * outputs, 0))

    def fit_part(self, alpha: float, rows: slice | np.ndarray, tolerance: float) -> LinearSolution:
        Z, Y = self.kept.of(rows)
        weights = self.kept.weights[rows]
        return margins(Z, Y, weights, alpha, tolerance, self.seed, lambda passes: self._on_target(), self.name)


class SquaredHingeProblem(HingeProblem):
    """The same for p = 2."""

    name: ClassVar[str] = SquaredHinge.name
    loss: Loss | None = SquaredHinge()

    def losses(self, targets: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Return max(0, 1 - y s)^2, and 0 where a target is missing."""
        return np.square(super().losses(targets, outputs))


def usual_alpha(Z: Rows, weights: np.ndarray) -> float:
    """Return the strength at which the search begins.

    Z (n, D) are features, dense or CSR; ``weights`` are (n,) for the rows, or (n, t) for their targets.
    """
    return _mean_square(Z) * float(weights.mean()) / _USUAL_COST


def _mean_square(Z: Rows) -> float:
    """Return the mean squared length of rows, 1 if all are empty."""
    values = _arrays.stored_values(Z)
    return float(np.vdot(values, values)) / Z.shape[0] or 1.0


def margins(
    Z: Rows,
    Y: np.ndarray,
    weights: np.ndarray,
    alpha: float,
    tolerance: float,
    seed: int,
    on_target: Callable[[int], None],
    loss: str = "hinge",
) -> LinearSolution:
    """Fit targets Y (n, t) one after the other: 1 or -1, and 0 where one is missing.

    Z (n, D) are features, dense or CSR; ``weights`` are (n,) for the rows, or (n, t) for their targets. ``on_target``
    is called after each target with its passes over the rows. ``loss`` is "hinge" or "squared_hinge".
    """
    from sklearn.svm import LinearSVC

    svm = LinearSVC(
        loss=loss,
        dual=True,
        C=1 / alpha,
        tol=tolerance,
        intercept_scaling=min(_MOST_CONSTANT, float(np.sqrt(_mean_square(Z)))),
        max_iter=_MOST_ITERATIONS,
        random_state=seed,
    )
    is_unfinished = False
    coef, intercept = np.zeros((Z.shape[1], Y.shape[1])), np.empty(Y.shape[1])
    for t, y in enumerate(Y.T):
        seen, passes = y != 0, 0
        if not seen.any() or np.all(y[seen] == y[seen][0]):  # with one class alone, its sign minimises the loss
            intercept[t] = y[seen][0] if seen.any() else 0.0
        else:
            rows = _arrays.take_rows(Z, np.flatnonzero(seen)) if not seen.all() else Z
            row_weights = weights if weights.ndim == 1 else weights[:, t]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # it advises settings that are not ours
                svm.fit(rows, y[seen], sample_weight=row_weights[seen])
            coef[:, t], intercept[t], passes = svm.coef_[0], svm.intercept_[0], int(np.max(svm.n_iter_))
        is_unfinished |= passes >= _MOST_ITERATIONS
        on_target(passes)
    if is_unfinished:
        warnings.warn(
            Message(
                "LIBLINEAR stopped after {:,} passes: {alpha=:g} is too small for rows of this length, whose usual "
                "strength is {:.3g}. Give a larger {alpha}, {alpha='auto'} or {loss='squared_hinge'}.",
                _MOST_ITERATIONS,
                alpha,
                usual_alpha(Z, weights),
            ),
            ConvergenceWarning,
            stacklevel=2,
        )
    return LinearSolution(coef, intercept, alpha)


class HingeSolver(Solver):
    """LIBLINEAR on the features of all rows, without a (D, D) matrix."""

    name: ClassVar[str] = "liblinear"
    needs: ClassVar[Needs] = "features"
    n_vectors: ClassVar[int] = 4  # weights: current, best, of one target, as returned
    copies_features: ClassVar[bool] = True

    def supports(self, loss: str | Loss, penalty: type = L2) -> bool:
        return penalty is L2 and loss == "hinge"

    def problem(self, loss: str | Loss, evidence: Evidence) -> HingeProblem:
        return HingeProblem(evidence)


class SquaredHingeSolver(HingeSolver):
    """LIBLINEAR for the squared hinge of sparse features; see ``machines.sparse_margins``."""

    name: ClassVar[str] = "liblinear squared"

    def supports(self, loss: str | Loss, penalty: type = L2) -> bool:
        return penalty is L2 and loss in (SquaredHinge.name, SquaredHinge())

    def problem(self, loss: str | Loss, evidence: Evidence) -> SquaredHingeProblem:
        return SquaredHingeProblem(evidence)
