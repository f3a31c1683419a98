"""Machines on a centred kernel matrix of all rows: support vectors by LIBSVM, and ridge."""

from __future__ import annotations

import numpy as np

from chimap import _threads

CACHE_MIB = 100  # of LIBSVM, a thread


def support_vectors(
    gram: np.ndarray, targets: np.ndarray, w: np.ndarray, cost: float
) -> tuple[np.ndarray, np.ndarray]:
    """Weights (n, t) and intercepts (t,) of the hinge loss: for targets -1 and 1 (n, t) and weights w (n,) of the rows,
    each column by itself."""
    from sklearn import config_context
    from sklearn.svm import SVC

    alpha, intercept = np.zeros(targets.shape), np.zeros(targets.shape[1])

    def solve(t: int) -> None:
        if np.ptp(targets[:, t]) == 0:  # a fold without the class
            intercept[t] = targets[0, t]
            return
        with config_context(
            assume_finite=True, skip_parameter_validation=True
        ):  # on few rows half of the time
            machine = SVC(kernel="precomputed", C=cost, cache_size=CACHE_MIB).fit(gram, targets[:, t], w)
        alpha[machine.support_, t], intercept[t] = machine.dual_coef_[0], machine.intercept_[0]

    _threads.tasks(range(targets.shape[1]), solve)
    return alpha, intercept


def ridge(gram: np.ndarray, targets: np.ndarray, w: np.ndarray, cost: float) -> tuple[np.ndarray, np.ndarray]:
    """The minimum of 1/(2C) alpha' K alpha + 1/2 sum w (K alpha + b - y)^2, with b free:
    (K + diag(1/w)/C) alpha = y - b and sum alpha = 0."""
    from scipy.linalg import solve

    ridged = gram + np.diag(1 / (cost * w))
    solution = solve(ridged, np.column_stack([targets, np.ones(len(gram))]), assume_a="pos")
    ones = solution[:, -1]
    intercept = solution[:, :-1].sum(axis=0) / ones.sum()
    return solution[:, :-1] - np.outer(ones, intercept), intercept


SOLVERS = {"hinge": support_vectors, "square": ridge}
