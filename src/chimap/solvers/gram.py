"""Support vector machines by LIBSVM, and ridge, on a centred kernel matrix of all rows.

The problem of each target is

    min_{a, b}  sum_i w_i loss(y_i, f(x_i)) + alpha/2 a'K a,   f = K a + b,

with the hinge max(0, 1 - y f), where alpha is LIBSVM's 1/C, or the square (y - f)^2 / 2. Ridge costs n^3/3 operations
and a further (n, n) matrix; LIBSVM takes between n^2 and n^3 operations and a cache of ``CACHE_MIB`` a thread.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from chimap import _threads
from chimap._cholesky import factorise, solve
from chimap._messages import Message
from chimap._validation import DataError

CACHE_MIB = 100  # LIBSVM's cache of kernel values, on each thread
_MOST_STEPS = 10_000_000  # LIBSVM's own limit, which scikit-learn removes
_LEAST_OUTPUT = 1e-9  # at a cost of errors at which outputs are smaller, every weight is at its bound


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
            Message(
                "LIBSVM stopped after {:,} steps at {alpha=:g}. Give a larger {alpha}.", _MOST_STEPS, alpha
            ),
            ConvergenceWarning,
            stacklevel=2,
        )
    return duals * (1 / alpha / cost), intercept


def ridge(
    gram: np.ndarray, targets: np.ndarray, w: np.ndarray, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise sum w (K a + b - y)^2 / 2 + alpha/2 a'K a over a (n, t) and b (t,), b not penalised.

    The solution satisfies (K + alpha diag(1/w)) a = y - b and sum a = 0.
    """
    factor = ridge_factor(gram, w, alpha)
    solution = solve(factor, np.column_stack([targets, np.ones(len(gram))]))
    ones = solution[:, -1]
    intercept = solution[:, :-1].sum(axis=0) / ones.sum()
    return solution[:, :-1] - np.outer(ones, intercept), intercept


def ridge_factor(gram: np.ndarray, w: np.ndarray, alpha: float) -> np.ndarray:
    """Return the Cholesky factor (n, n), an upper triangle, of K + alpha diag(1/w).

    Raises DataError if the matrix is not positive definite to rounding.
    """
    square = np.array(gram, order="C")
    square[np.diag_indices_from(square)] += alpha / w
    if not factorise(square):
        raise DataError(
            Message(
                "{alpha=:g} is too small: the kernel matrix is singular to rounding. Use a larger one, or "
                "{alpha='auto'}.",
                alpha,
            )
        )
    return square


SOLVERS = {"hinge": support_vectors, "square": ridge}
