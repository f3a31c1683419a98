"""Why an optimiser ended, in words."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize, rosen, rosen_der

from chimap.solvers.lbfgs import stop_reason


def reason(start: float = -1.2, **options: float) -> str:
    return stop_reason(minimize(rosen, np.array([start, 1.0]), jac=rosen_der, method="L-BFGS-B", options=options))


def test_in_words():
    assert reason(maxiter=2) == "the limit of iterations was reached"
    assert reason(maxfun=2) == "the limit of evaluations was reached"
    assert reason(ftol=0.5) == "the objective no longer falls"
    assert reason(start=1.0) == "the gradient is almost zero"
