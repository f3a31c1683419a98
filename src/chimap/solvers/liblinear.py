"""Linear support vector machines, one class against the rest, by LIBLINEAR on features in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from sklearn.svm import LinearSVC

from chimap import _arrays
from chimap._types import Rows
from chimap.losses import Loss
from chimap.moments.kept import KeptFeatures
from chimap.solvers.base import Evidence, Needs
from chimap.solvers.kept_problem import KeptProblem
from chimap.solvers.ridge import LinearSolution

SEARCH_TOLERANCE = 3e-3
_MOST_ITERATIONS = 10_000  # over the rows
_BIAS_SCALE = (
    1.0  # of the constant feature whose weight is the intercept: penalised as the others, scikit-learn's
)
_USUAL_COST = (
    10.0  # of an error, for features of mean squared norm 1: where the search for the strength begins
)


class HingeProblem(KeptProblem):
    """alpha/2 (|w|^2 + b^2) + sum_r max(0, 1 - y_r (w . z_r + b)) for one target after the other.

    The targets take turns although LIBLINEAR would let threads run: all its fits draw from one random generator, so
    that fits side by side differ from run to run, and each has a copy of the features.

    Source: Hsieh, Chang, Lin, Keerthi and Sundararajan, A dual coordinate descent method for large-scale linear SVM
    (2008).
    """

    tolerance = 1e-4  # scikit-learn's
    search_tolerance = SEARCH_TOLERANCE

    def __init__(self, kept: KeptFeatures, seed: int, on_target: Callable[[], None]):
        super().__init__(kept)
        self.seed, self._on_target = seed, on_target

    def usual_alpha(self) -> float:
        """Strengths that fit do so in units of the mean squared norm of the features."""
        return usual_alpha(self.kept.Z, self.kept.weights)

    def losses(self, targets: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """max(0, 1 - y s), 0 where a target is missing."""
        return np.asarray((targets != 0) * np.maximum(1 - targets * outputs, 0))

    def fit_part(self, alpha: float, rows: slice, tolerance: float) -> LinearSolution:
        """See ``KeptProblem``."""
        Z, Y = self.kept.of(rows)
        return margins(
            Z, Y, self.kept.weights[rows], alpha, tolerance, self.seed, lambda passes: self._on_target()
        )


def usual_alpha(Z: Rows, weights: np.ndarray) -> float:
    """Where the search for the strength begins, for features Z (n, D), dense or CSR, of rows with weights (n,), or
    (n, t) of their targets."""
    values = _arrays.stored_values(Z)
    mean_square = float(np.vdot(values, values)) / Z.shape[0]
    return (mean_square or 1.0) * float(weights.mean()) / _USUAL_COST


def margins(
    Z: Rows,
    Y: np.ndarray,
    weights: np.ndarray,
    alpha: float,
    tolerance: float,
    seed: int,
    on_target: Callable[[int], None],
) -> LinearSolution:
    """The machines of targets Y (n, t), 1 or -1, 0 where one is missing, one after the other.

    Z (n, D): features, dense or CSR, of rows with ``weights`` (n,), or (n, t) of their targets.
    on_target: told of passes over the rows.
    """
    svm = LinearSVC(
        loss="hinge", C=1 / alpha, tol=tolerance, intercept_scaling=_BIAS_SCALE,
        max_iter=_MOST_ITERATIONS, random_state=seed,
    )  # fmt: skip
    coef, intercept = np.zeros((Z.shape[1], Y.shape[1])), np.empty(Y.shape[1])
    for t, y in enumerate(Y.T):
        seen, passes = y != 0, 0
        if not seen.any() or np.all(y[seen] == y[seen][0]):  # one side alone: its sign is the minimum
            intercept[t] = y[seen][0] if seen.any() else 0.0
        else:
            some = _arrays.take_rows(Z, np.flatnonzero(seen)) if not seen.all() else Z
            own = weights if weights.ndim == 1 else weights[:, t]
            svm.fit(some, y[seen], sample_weight=own[seen])
            coef[:, t], intercept[t], passes = svm.coef_[0], svm.intercept_[0], int(np.max(svm.n_iter_))
        on_target(passes)
    return LinearSolution(coef, intercept, alpha)


class HingeSolver:
    """LIBLINEAR on the features of all rows, without a matrix of them squared."""

    name: ClassVar[str] = "liblinear"
    needs: ClassVar[Needs] = "features"
    n_vectors: ClassVar[int] = 4  # weights now, the best, of one target, as they are returned

    def supports(self, loss: str | Loss) -> bool:
        """See ``Solver``."""
        return loss == "hinge"

    def problem(self, loss: str | Loss, evidence: Evidence) -> HingeProblem:
        """See ``Solver``."""
        if evidence.kept is None:
            raise TypeError("LIBLINEAR needs the features of all rows")
        return HingeProblem(evidence.kept, evidence.seed, evidence.on_step)
