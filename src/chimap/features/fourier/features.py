"""Random Fourier features of the exponential kernels."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

from chimap import _arrays
from chimap._errors import InputError
from chimap._onnx import Value
from chimap._types import Array, ArrayLike, MatrixLike, RandomState, Rows
from chimap._validation import validated_rows
from chimap.features.additive.base import AdditiveMap
from chimap.features.additive.identity import IdentityMap
from chimap.features.base import Footprint, gamma_bytes
from chimap.features.fourier.base import RandomFeatures
from chimap.features.fourier.sampling import CATALOGUE as SAMPLING
from chimap.features.mapped_functions import MappedModel, dense
from chimap.features.over_map import FeaturesOverMap, fitted_map
from chimap.kernels import AdditiveKernel, Exponential, Kernel

_CENTRE_ROWS = 64  # rows that the means of mapped bins are computed from
_LARGE_MEAN = 16.0  # in standard deviations; larger means are subtracted


class FourierFeatures(RandomFeatures, FeaturesOverMap):
    """Random Fourier features of the exponential kernels.

    z(x) . z(y) approximates exp(-gamma D^2(x, y)), with D^2 the squared distance of an additive kernel. As D^2 is
    |Psi(x) - Psi(y)|^2 for the map Psi of the additive kernel, this is a Gaussian kernel of the mapped rows. With the
    columns of W drawn from N(0, 2 gamma I):

        pair:    z(x) = [cos(W' Psi(x)), sin(W' Psi(x))] / sqrt(D/2),  D/2 frequencies
        offset:  z(x) = sqrt(2/D) cos(W' Psi(x) + b),  b uniform on [0, 2 pi],  D frequencies.

    At the same D the pair costs half the projection and, for kernels near 1, has the smaller variance.

    A kernel of differences does not change when a constant is subtracted from all rows. Mapped bins whose mean is large
    beside their spread are projected less that mean; otherwise the float32 angles would lose all differences.

    Parameters
    ----------
    kernel : str or Exponential, default="exp-chi2"
        "exp-chi2", "exp-intersection", "exp-jensen-shannon", "exp-hellinger", "gaussian" or an ``Exponential``.
    n_components : int or None, default=None
        D, the number of features. None is 1024, or the number of the
        estimator that is given the features.
    gamma : float or str, default="mean"
        A number; "mean", 1 / mean D^2 over pairs of the training rows; or a multiple of that, such as "2*mean". An
        ``Exponential`` has its own gamma.
    map : AdditiveMap or None, default=None
        The additive map Psi, unfitted; None is ``OptimalMap(n_terms=n_terms)``, exact to about 0.5 % at two terms.
    n_terms : int, default=2
        Terms for each bin of that default map.
    sampling : str, default="orthogonal"
        "orthogonal", "structured" (fast Walsh-Hadamard transforms in place of a matrix, for thousands of inputs), "iid"
        or "qmc" (quasi-Monte-Carlo, for few inputs).
    form : str, default="pair"
        "pair" or "offset".
    random_state : int, RandomState or None, default=None
        Seed or generator for the frequencies and the rows behind gamma. None differs at each fit.

    Attributes
    ----------
    kernel_ : Exponential
        The exact kernel, its gamma a number.
    gamma_ : float or None
        gamma; None where bins have different widths.
    map_ : AdditiveMap
        The fitted map.
    centre_ : ndarray of shape (mapped bins,)
        Means that are subtracted from mapped bins; most are zero.
    projection_ : Matrix or Hadamard
        The projection onto the frequencies.
    frequencies_ : ndarray of shape (mapped bins, frequencies)
        W.
    offset_ : ndarray of shape (frequencies,)
        b; zero for pairs.
    n_features_in_ : int
        Number of bins.

    References
    ----------
    Li, Lebanon and Sminchisescu, A linear approximation to the chi2 kernel with geometric convergence, Algorithm 2.
    Sreekanth, Vedaldi, Jawahar and Zisserman, Generalized RBF feature maps.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(16), size=50)
    >>> features = FourierFeatures("exp-chi2", n_components=4096, random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> bool(abs(Z @ Z.T - features.kernel_(X)).max() < 0.1)
    True
    """

    def __init__(
        self,
        kernel: str | Kernel = "exp-chi2",
        n_components: int | None = None,
        gamma: float | str = "mean",
        map: AdditiveMap | None = None,
        n_terms: int = 2,
        sampling: str = "orthogonal",
        form: str = "pair",
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.gamma = gamma
        self.map = map
        self.n_terms = n_terms
        self.sampling = sampling
        self.form = form
        self.random_state = random_state

    map_: AdditiveMap | IdentityMap  # its features are the inputs of the projection
    gamma_: float | None

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Features``: exponential kernels."""
        return isinstance(kernel, Exponential)

    def footprint(self, n_bins: int) -> Footprint:
        kernel = self.exact_kernel
        over_map = isinstance(kernel, Exponential) and isinstance(kernel.kernel, AdditiveKernel)
        return self._of_waves(self.mapped_bins(n_bins) if over_map else n_bins)

    def fitting_bytes(self, n_rows: int, row_bytes: float, itemsize: int) -> int:
        kernel = self.exact_kernel
        if kernel.name == "gaussian":
            return gamma_bytes(kernel, n_rows, row_bytes, itemsize)
        return super().fitting_bytes(n_rows, row_bytes, itemsize)

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> FourierFeatures:
        """Fit the map and gamma on rows, and draw the frequencies."""
        kernel = self._check_parameters()
        self._signed = kernel.is_signed
        rows = validated_rows(self, X, reset=True, signed=self._signed)
        random = check_random_state(self.random_state)
        self.kernel_ = kernel.fitted(rows, random.randint(2**31))
        gamma = float(self.kernel_.gamma)
        self.gamma_ = gamma
        self.map_ = fitted_map(kernel, rows, self.n_terms, self.map)
        evenly = slice(None, None, -(-rows.shape[0] // _CENTRE_ROWS))  # at most so many rows
        self.centre_ = _centre(self.map_.mapped(_arrays.take_rows(rows, evenly)))
        rng = np.random.default_rng(random.randint(2**31))
        drawn = SAMPLING[self.sampling](self.n_inputs, self._n_frequencies, rng, rows.dtype)
        self._keep(drawn.scaled(np.sqrt(2 * gamma)), rng, rows.dtype)
        return self

    def _check_parameters(self) -> Exponential:
        self._check_features(tuple(SAMPLING))
        kernel = self.exact_kernel
        if not isinstance(kernel, Exponential):
            hint = (
                f"Use 'exp-{kernel.name}', or one of the additive maps for {kernel.name!r} itself."
                if isinstance(kernel, AdditiveKernel)
                else "SkewedFourierFeatures takes the skewed kernels, NystroemFeatures every kernel."
            )
            raise InputError(f"FourierFeatures draws features of exponential kernels; got {kernel.name!r}. {hint}")
        return kernel

    @property
    def n_inputs(self) -> int:
        return self.map_._n_features_out

    def _describe_inputs(self) -> str:
        return self.map_.describe()

    def _inputs(self, block: Rows, buffer: np.ndarray) -> Rows:
        if _arrays.is_sparse(block):
            inputs: Rows = self.map_.transform_sparse(block)
        else:
            inputs = buffer
            self.map_.transform_into(block, buffer)
        if not self.centre_.any():
            return inputs
        return _arrays.minus_row(inputs, self.centre_.astype(inputs.dtype, copy=False))

    def _array_inputs(self, rows: Array) -> Array:
        inputs = self.map_.array_features(rows)
        return inputs - _arrays.as_like(self.centre_, inputs) if self.centre_.any() else inputs

    def onnx(self, x: Value) -> Value:
        inputs = self.map_.onnx(x)
        return self._onnx_waves(inputs - self.centre_ if self.centre_.any() else inputs)

    def mapped_model(self, coef: np.ndarray, intercept: np.ndarray) -> MappedModel:
        bins = np.arange(self.map_._n_features_out) % self.n_features_in_
        return MappedModel(lambda X: dense(self.map_.mapped(X)) - self.centre_, bins, self._waves(coef, intercept))


def _centre(inputs: Rows) -> np.ndarray:
    """Return the means (n_inputs,) of dense or CSR columns that are large beside their spread, and 0 for the others."""
    wide = _arrays.as_rows(inputs, np.float64)
    means = _arrays.column_means(wide)
    with np.errstate(over="ignore", invalid="ignore"):  # columns whose squares overflow float64 get no centre
        squares = _arrays.column_means(_arrays.map_values(wide, np.square))
        is_large = means**2 > _LARGE_MEAN**2 * (squares - means**2)
    return np.where(is_large, means, 0).astype(inputs.dtype)
