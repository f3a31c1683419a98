"""The Chebyshev series of the chi2 kernel."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from chimap import _loops
from chimap._onnx import Value, positive, stacked
from chimap._types import Array
from chimap._validation import check_positive
from chimap.features.additive.base import AdditiveMap
from chimap.kernels import Kernel
from chimap.model_files import register


class ChebyshevMap(AdditiveMap):
    """Map bins to the n_terms first terms of the Chebyshev series of the chi2 kernel.

        Psi_q(x) = sqrt(s) d_q(x/s),  q = 0 .. n_terms - 1,

    d_0(x) = 2x/(x+1), d_1 = -sqrt(2) L d_0, d_q = ((-1)^q 2 L d_{q-1} + (q-2) d_{q-2})/q with L = ln(x)/pi: the
    coefficients of the Chebyshev series of the kernel's integral form. The error falls as 1/n_terms. Unlike the kernel,
    the features depend on the scale of the data: they are meant for x/s in (0, 1] and are best for values near s.

    Parameters
    ----------
    kernel : str or AdditiveKernel, default="chi2"
        "chi2", or its gamma-homogeneous or signed variant.
    n_terms : int, default=3
        Features for each bin.
    scale : float or str, default="max"
        s, a positive number, or "max": the largest value of the rows that the map is fitted on. The kernel is
        homogeneous, k(x, y) = s k(x/s, y/s), so any s gives the same limit. The paper has s = 1 for rows that sum to 1.

    Attributes
    ----------
    scale_ : float
        s.
    kernel_ : AdditiveKernel
        The exact kernel.

    References
    ----------
    Li, Lebanon and Sminchisescu, A linear approximation to the chi2 kernel with geometric convergence, sec. 5.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.25, 0.75], [0.5, 0.5]])
    >>> Z = ChebyshevMap(n_terms=20, scale=1.0).fit_transform(X)
    >>> Z.shape, bool(abs(Z @ Z.T - [[1, 0.93333333], [0.93333333, 1]]).max() < 1e-2)
    ((2, 40), True)
    """

    kernels = ("chi2",)
    _maps_plain_kernel = True

    scale_: float

    def __init__(self, kernel: str | Kernel = "chi2", n_terms: int = 3, scale: float | str = "max"):
        self.kernel = kernel
        self.n_terms = n_terms
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.scale != "max":
            check_positive(self.scale, "scale (a number, or 'max')")

    def _fit_values(self, values: np.ndarray, counts: np.ndarray) -> None:
        largest = float(values.max()) if values.size else 1.0
        self.scale_ = largest if self.scale == "max" else float(self.scale)

    def _formula(self, xp: ModuleType, x: Array) -> Array:
        v = xp.astype(x, xp.float64) / self.scale_
        L = xp.log(xp.where(v > 0, v, xp.ones_like(v))) / np.pi
        terms = [2 * v / (v + 1)]
        for q in range(1, self.n_terms):
            if q == 1:
                terms.append(-(2**0.5) * L * terms[0])
            else:
                terms.append(((-1) ** q * 2 * L * terms[-1] + (q - 2) * terms[-2]) / q)
        return xp.astype(float(np.sqrt(self.scale_)) * xp.stack(terms, axis=1), x.dtype)

    def _evaluate(self, magnitudes: np.ndarray, bins: np.ndarray, out: np.ndarray) -> None:
        _loops.chebyshev_features(magnitudes, self.scale_, out)

    def _onnx_terms(self, x: Value) -> Value:
        v = x.cast(np.float64) / self.scale_
        is_positive, safe = positive(v)
        L = safe.apply("Log") / np.pi
        values = [is_positive.where(v * 2.0 / (v + 1.0) * np.sqrt(self.scale_), 0.0)]
        for q in range(1, self.n_terms):
            sign = 1.0 if q % 2 == 0 else -1.0
            next_term = L * values[-1] * (-np.sqrt(2.0) if q == 1 else sign * 2.0 / q)
            values.append(next_term if q < 3 else next_term + values[-2] * ((q - 2.0) / q))
        return stacked(values).cast(x.dtype)


register(ChebyshevMap)
