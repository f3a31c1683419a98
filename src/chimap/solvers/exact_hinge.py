"""Support vector machines by LIBSVM on a kernel matrix in memory.

The problem of each target, with labels y_i of -1 and 1, is

    min_{a, b}  sum_i w_i max(0, 1 - y_i f(x_i)) + alpha/2 |f|^2,   f = sum_j K(., x_j) a_j + b,

where alpha is LIBSVM's 1/C. It takes between n^2 and n^3 operations and a cache of ``CACHE_MIB`` a thread. Rows have no
closed form when they are left out: each group of them takes a machine of the others.

References
----------
Chang and Lin, LIBSVM: a library for support vector machines (2011), through scikit-learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from chimap import _threads
from chimap._messages import Message
from chimap.solvers.exact import DualRidge, DualSolution, ExactSolver

CACHE_MIB = 100  # LIBSVM's cache of kernel values, on each thread
_MOST_STEPS = 10_000_000  # LIBSVM's own limit, which scikit-learn removes
_LEAST_OUTPUT = 1e-9  # at a cost of errors at which outputs are smaller, every weight is at its bound


class DualHinge(ExactSolver):
    """Minimise sum_i w_i max(0, 1 - y_i f(x_i)) + alpha/2 |f|^2 with f = sum_j K(., x_j) a_j + b, b not penalised.

    Parameters
    ----------
    square, diagonal : ndarray
        As in ``DualRidge``.
    Y : ndarray of shape (n, t), float64
        Targets -1 and 1.
    row_weights : ndarray of shape (n,), default=None
        Positive weights of the rows. None is 1 for all.
    steps : int, default=0
        Not used: LIBSVM has no refinement.
    """

    begins_at: ClassVar[int] = 0

    def __init__(
        self,
        square: np.ndarray,
        diagonal: np.ndarray,
        Y: np.ndarray,
        row_weights: np.ndarray | None = None,
        steps: int = 0,
    ):
        self.square, self.Y = square, Y
        self._weights = np.ones(Y.shape[0]) if row_weights is None else row_weights
        self._ridge = DualRidge(square, diagonal, Y, row_weights)
        self._ridge.fill(0.0)

    def scale(self) -> float:
        """See ``DualRidge``."""
        return self._ridge.scale()

    def solve(self, alpha: float) -> DualSolution:
        """Return the solution at a strength."""
        return DualSolution(*support_vectors(self.square, self.Y, self._weights, alpha), alpha)

    def leave_one_out(self, solution: DualSolution, first: int = 0) -> np.ndarray:
        """See ``DualRidge``; it takes a machine for each row."""
        return np.concatenate(self.leave_out(solution, [np.array([row]) for row in range(first, len(self.Y))]))

    def leave_out(self, solution: DualSolution, groups: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the residuals (n_g, t) of each group of rows by the machine of the others."""
        left_out = []
        for group in groups:
            rest = np.setdiff1d(np.arange(len(self.Y)), group)
            duals, intercept = support_vectors(
                self.square[np.ix_(rest, rest)], self.Y[rest], self._weights[rest], solution.alpha
            )
            left_out.append(self.Y[group] - self.square[np.ix_(group, rest)] @ duals - intercept)
        return left_out


def support_vectors(
    gram: np.ndarray, targets: np.ndarray, w: np.ndarray, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return dual weights (n, t) and intercepts (t,) under the hinge loss, fitted column by column.

    Targets (n, t) are -1 and 1; w (n,) are the weights of the rows.
    """
    from sklearn import config_context
    from sklearn.svm import SVC

    # LIBSVM runs forever at costs far below this one, at which the solution is in proportion to the cost.
    least_cost = _LEAST_OUTPUT / (float(np.abs(gram.diagonal()).sum() * w.max()) or 1.0)
    cost = max(1 / alpha, least_cost)
    duals, intercept = np.zeros(targets.shape), np.zeros(targets.shape[1])

    def solve(t: int) -> None:
        if np.ptp(targets[:, t]) == 0:  # the fold lacks one of the classes
            intercept[t] = targets[0, t]
            return
        machine = SVC(kernel="precomputed", C=cost, cache_size=CACHE_MIB, max_iter=_MOST_STEPS)
        with config_context(
            assume_finite=True, skip_parameter_validation=True
        ):  # the checks take half of the time on few rows
            machine.fit(gram, targets[:, t], w)
        duals[machine.support_, t], intercept[t] = machine.dual_coef_[0], machine.intercept_[0]
        if machine.fit_status_:
            unfinished.append(t)

    unfinished: list[int] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # its advice is of other settings than ours
        _threads.tasks(range(targets.shape[1]), solve)
    if unfinished:
        warnings.warn(
            Message("LIBSVM stopped after {:,} steps at {alpha=:g}. Give a larger {alpha}.", _MOST_STEPS, alpha),
            ConvergenceWarning,
            stacklevel=2,
        )
    return duals * (1 / alpha / cost), intercept
