"""Random Fourier features of the skewed multiplicative kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from sklearn.utils import check_random_state

from chimap import _arrays
from chimap._errors import InputError
from chimap._onnx import Value
from chimap._types import Array, ArrayLike, MatrixLike, RandomState, Rows, Shape
from chimap._validation import validated_rows
from chimap.features.base import Footprint, median_bytes
from chimap.features.fourier.base import RandomFeatures
from chimap.features.fourier.sampling import BY_QUANTILE, cauchy, sech
from chimap.features.mapped_functions import MappedModel, dense
from chimap.kernels import Kernel, SkewedChi2, SkewedIntersection, as_kernel
from chimap.kernels.skewed import NEAR, Skewed

if TYPE_CHECKING:
    from sklearn.utils import Tags


_QUANTILES = {SkewedChi2: sech, SkewedIntersection: cauchy}


class SkewedFourierFeatures(RandomFeatures):
    """Random Fourier features of the skewed multiplicative kernels.

    z(x) . z(y) approximates the kernel by cosines and sines of w'(ln(x + c) - ln(m + c)), with m the mean of the rows:
    the kernel depends on differences alone, and for nearly equal rows ln(x + c) itself has lost the digits of their
    differences. The entries of w are sigma h(u), u uniform: h(u) = (2/pi) ln tan(pi u / 2) for skewed chi2 (the
    hyperbolic secant distribution), h(u) = tan(pi (u - 1/2)) for skewed intersection (the Cauchy distribution).

    Parameters
    ----------
    kernel : str or Kernel, default="skewed-chi2"
        "skewed-chi2", "skewed-intersection", or such an object with its c and sigma; c = "auto" is taken from the data:
        the median of the non-zero bins, or more where the kernel would be close to zero.
    n_components : int or None, default=None
        D, the number of features. None is 1024, or the number of the
        estimator that is given the features.
    sampling : str, default="iid"
        "iid" or "qmc". (Orthogonal directions need the Gaussian kernel.)
    form : str, default="pair"
        "pair" or "offset", as in ``FourierFeatures``.
    random_state : int, RandomState or None, default=None
        Seed or generator for the frequencies. None differs at each fit.

    Attributes
    ----------
    kernel_ : SkewedChi2 or SkewedIntersection
        The exact kernel, its c a number.
    centre_ : ndarray of shape (bins,)
        m.
    projection_ : Matrix
        The projection onto the frequencies.
    frequencies_ : ndarray of shape (bins, frequencies)
        The frequencies w.
    offset_ : ndarray of shape (frequencies,)
        Offsets of the angles; zero for pairs.
    n_features_in_ : int
        Number of bins.

    References
    ----------
    Li, Ionescu and Sminchisescu, Random Fourier approximations for skewed multiplicative histogram kernels. Fourier
    kernel learning, Table 1.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(16), size=50)
    >>> features = SkewedFourierFeatures(n_components=4096, random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> bool(abs(Z @ Z.T - features.kernel_(X)).max() < 0.1)
    True
    """

    _takes_signs = True

    centre_: Annotated[np.ndarray, Shape("n_features_in_")]
    _logarithm: Skewed  # the kernel whose ln(x + c) are the inputs

    def __init__(
        self,
        kernel: str | Kernel = "skewed-chi2",
        n_components: int | None = None,
        sampling: str = "iid",
        form: str = "pair",
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.sampling = sampling
        self.form = form
        self.random_state = random_state

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Features``: skewed kernels."""
        return isinstance(kernel, Skewed)

    def footprint(self, n_bins: int) -> Footprint:
        return self._of_waves(n_bins)

    def fitting_bytes(self, n_rows: int, row_bytes: float, itemsize: int) -> int:
        return median_bytes(self.exact_kernel, n_rows, row_bytes, itemsize)

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> SkewedFourierFeatures:
        """Take c and the centre from rows, whose entries are all above -c, and draw the frequencies."""
        self._check_features(tuple(BY_QUANTILE))
        kernel = as_kernel(self.kernel)
        if not isinstance(kernel, Skewed):
            raise InputError(
                f"SkewedFourierFeatures draws features of skewed-chi2 and skewed-intersection; got {kernel.name!r}. "
                "FourierFeatures takes exponential kernels, NystroemFeatures every kernel."
            )
        self._signed = True  # bins may be negative down to -c, which the logarithm checks
        rows = validated_rows(self, X, reset=True, signed=self._signed)
        self.kernel_ = kernel.fitted(rows)
        self._logarithm = self.kernel_  # stays as it is where kernel_ is later given widths
        self.centre_ = self._logarithm.centre(rows)
        if not _arrays.stored_values(rows).min(initial=0) + rows.dtype.type(self._logarithm.c) > 0:
            self._logarithm.logarithms(rows, self.centre_)  # names the entry by row and column
        random = check_random_state(self.random_state)
        rng = np.random.default_rng(random.randint(2**31))
        drawn = BY_QUANTILE[self.sampling](
            rows.shape[1], self._n_frequencies, rng, rows.dtype, _QUANTILES[type(self.kernel_)]
        )
        self._keep(drawn.scaled(self.kernel_.sigma), rng, rows.dtype)
        return self

    @property
    def n_inputs(self) -> int:
        return int(self.n_features_in_)

    def _describe_inputs(self) -> str:
        return f"ln(x + {self._logarithm.c:.4g})"

    def _inputs(self, block: Rows, buffer: np.ndarray) -> Rows:
        buffer[:] = self._logarithm.logarithms(_arrays.as_rows(block), self.centre_)
        return buffer

    def _array_inputs(self, rows: Array) -> Array:
        c, xp, m = float(self._logarithm.c), _arrays.namespace(rows), _arrays.as_like(self.centre_, rows)
        if not bool(xp.all(rows > -c)):
            self._logarithm.logarithms(_arrays.to_host(rows), self.centre_)  # raises an error that names the place
        share = (rows - m) / (m + c)
        return xp.where(xp.abs(share) < NEAR, xp.log1p(share), xp.log((rows + c) / (m + c)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True  # or down to -c, which scales with the data
        return tags

    def onnx(self, x: Value) -> Value:
        # ONNX has no log1p, so the logarithm of ratios close to 1 is taken in float64.
        c, centre = float(self.kernel_.c), self.centre_.astype(np.float64)
        ratio = (x.cast(np.float64) + c) / (centre + c)
        return self._onnx_waves(ratio.apply("Log").cast(x.dtype))

    def mapped_model(self, coef: np.ndarray, intercept: np.ndarray) -> MappedModel:

        def rows(X: Rows) -> np.ndarray:
            return np.asarray(self._logarithm.logarithms(dense(X), self.centre_))

        return MappedModel(rows, np.arange(self.n_features_in_), self._waves(coef, intercept))
