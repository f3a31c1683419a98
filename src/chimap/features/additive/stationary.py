"""The map of additive stationary kernels: a sampled spectrum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays, _loops, _threads
from chimap._errors import InputError
from chimap._types import Array, ArrayLike, ArrayMap, MatrixLike, Rows, Transformed
from chimap._validation import check_positive, validated_rows
from chimap.features.additive.differences import PAIRS, Differences, best_period, data_spectrum
from chimap.features.additive.homogeneous import check_waves
from chimap.features.base import Features, FeatureSettings, Footprint
from chimap.kernels import Kernel
from chimap.kernels.stationary import StationaryKernel, stationary_by_name, stationary_gaussian
from chimap.model_files import Transformer

if TYPE_CHECKING:
    from sklearn.utils import Tags


_BLOCK_NUMBERS = 2**22  # entries of a block of rows that is made dense and mapped at once


class StationaryMap(ClassNamePrefixFeaturesOutMixin, Transformer, BaseEstimator):
    """Map bins to samples of the spectrum of an additive stationary kernel.

        Psi(x) = [sqrt(kap_0), sqrt(2 kap_j) cos(j L x / w), sqrt(2 kap_j) sin(j L x / w), j = 1..m], bin by bin.

    n_terms = 2m + 1, L = 2 pi / period, and w is the width of the kernel; column q * bins + i is term q of bin i. Bins
    may have either sign. The features of 0 are not 0 (the cosines), so sparse rows become dense ones.

    Parameters
    ----------
    kernel : str or StationaryKernel, default=stationary_gaussian
        A stationary kernel or its name, such as "additive-gaussian".
    n_terms : int, default=5
        Features for each bin; odd.
    window : str, default="least-squares"
        "least-squares" (the spectrum whose kernel is closest on the differences of the data), "rectangular" (spectrum
        of the signature cut to one period, negatives set to 0) or "uniform" (the spectrum itself, sampled).
    period : float or str, default="auto"
        A positive number, in units of the width, or "auto" for the period whose kernel is closest on the differences.

    Attributes
    ----------
    kernel_ : StationaryKernel
        The exact kernel.
    period_ : float
        The period.
    amplitudes_ : ndarray of shape (m + 1,)
        sqrt(kap_0), sqrt(2 kap_1), ....
    n_features_in_ : int
        Number of bins.

    References
    ----------
    Vedaldi and Zisserman, Efficient additive kernels via explicit feature maps, eq. 18 (two windows: sec. 4).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((50, 4))
    >>> psi = StationaryMap("additive-gaussian", n_terms=7).fit(X)
    >>> Z = psi.transform(X)
    >>> bool(abs(Z @ Z.T - psi.kernel_(X)).mean() < 0.01)
    True
    """

    n_features_in_: int
    kernel_: StationaryKernel
    period_: float
    amplitudes_: np.ndarray

    def __init__(
        self,
        kernel: str | Kernel = stationary_gaussian,
        n_terms: int = 5,
        window: str = "least-squares",
        period: float | str = "auto",
    ):
        self.kernel = kernel
        self.n_terms = n_terms
        self.window = window
        self.period = period

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> StationaryMap:
        """Choose the spectrum on the differences of values within the bins of rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            Rows to fit on.
        y : None, default=None
            Not used; accepted for pipelines of scikit-learn.

        Returns
        -------
        StationaryMap
            The fitted map itself.

        Raises
        ------
        ValueError
            If a parameter is out of range, or the kernel is not stationary.
        DataError
            If an entry is NaN or infinite.
        """
        self.kernel_ = self._checked_kernel()
        rows = validated_rows(self, X, reset=True, signed=True)
        m, differences = self.n_terms // 2, Differences.of(rows, self.kernel_)
        if self.period == "auto":
            self.period_ = best_period(self.kernel_, differences, m, self.window)
        else:
            self.period_ = float(self.period)
        spectrum = data_spectrum(self.kernel_, differences, self.period_, m, self.window)
        self.amplitudes_ = np.sqrt(spectrum * np.r_[1.0, np.full(m, 2.0)])
        return self

    def _checked_kernel(self) -> StationaryKernel:
        check_positive(self.n_terms, "n_terms", integer=True)
        check_waves(self.n_terms, self.window, self.period, "StationaryMap")
        try:
            kernel = stationary_by_name(self.kernel) if isinstance(self.kernel, str) else self.kernel
        except KeyError:
            kernel = None
        if not isinstance(kernel, StationaryKernel):
            raise InputError(
                f"StationaryMap maps stationary kernels, such as 'additive-gaussian'; got {self.kernel!r}."
            )
        return kernel

    def transform(self, X: MatrixLike) -> Transformed:
        """Return the features of rows, dense.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            Rows of any library: numpy, scipy, torch or cupy.

        Returns
        -------
        array of shape (n, n_terms * bins)
            A tensor of torch or an array of cupy gives one on the same device, other rows a numpy array.
        """
        check_is_fitted(self)
        rows = validated_rows(self, X, reset=False, signed=True, on_device=True)
        if _arrays.is_on_device(rows):
            return self.array_features(rows)
        out = np.empty((rows.shape[0], self._n_features_out), dtype=rows.dtype)
        self.features_into(rows, out)
        return out

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write the features of checked rows, minus a shift, into an array.

        Parameters
        ----------
        rows : ndarray or CSR matrix of shape (n, bins)
            Checked rows in float32 or float64.
        out : ndarray of shape (n, n_terms * bins)
            Array that receives the features, of the dtype of the rows.
        shift : ndarray of shape (n_terms * bins,), default=None
            Subtracted from the features of every row; None subtracts nothing.
        """
        period, size = self.period_ * self.kernel_.width, max(1, _BLOCK_NUMBERS // rows.shape[1])
        for first in range(0, rows.shape[0], size):
            block = _arrays.to_dense(_arrays.take_rows(rows, slice(first, first + size)))
            z = out[first : first + size].reshape(block.shape[0], -1, block.shape[1])

            def fill(part: slice, block: np.ndarray = block, z: np.ndarray = z) -> None:
                _loops.stationary_features(block[part], self.amplitudes_, period, z[part])

            _threads.over_rows(block.shape[0], block.shape[1], fill)
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)

    def array_features(self, rows: Array) -> Array:
        """Return the features of checked dense rows by operations of the rows' array library.

        Parameters
        ----------
        rows : array of shape (n, bins)
            Checked dense rows of any library with the Python array API.

        Returns
        -------
        array of shape (n, n_terms * bins)
            Features in the library, on the device and in the dtype of the rows.
        """
        xp = _arrays.namespace(rows)
        turns = xp.astype(rows, xp.float64) / (self.period_ * self.kernel_.width)
        angle = 2 * np.pi * (turns - xp.round(turns))
        constant, *others = self.amplitudes_.tolist()
        terms = [xp.ones_like(angle) * constant]
        for j, amplitude in enumerate(others, start=1):
            terms += [amplitude * xp.cos(j * angle), amplitude * xp.sin(j * angle)]
        features = xp.astype(xp.stack(terms, axis=1), rows.dtype)
        return xp.reshape(features, (rows.shape[0], self._n_features_out))

    def bound(self, like: Array) -> ArrayMap:
        """Return ``array_features`` as a function for arrays such as ``like``.

        Parameters
        ----------
        like : array of torch, cupy or numpy
            Any array of the library, device and dtype of the rows to come.
        """
        return self.array_features

    def describe(self) -> str:
        """Return a short description of the fitted map, such as "StationaryMap, 5 terms per bin"."""
        return f"StationaryMap, {self.n_terms} term{'s' if self.n_terms != 1 else ''} per bin"

    @property
    def _n_features_out(self) -> int:
        return (2 * self.amplitudes_.size - 1) * int(self.n_features_in_)

    # --- the map as a family of features (see ``Family``)

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """Return whether the map serves a kernel: it does for stationary ones.

        Parameters
        ----------
        kernel : Kernel
            Kernel to map.
        """
        return isinstance(kernel, StationaryKernel)

    @classmethod
    def of(cls, settings: FeatureSettings, seed: int) -> Features:
        """Return an unfitted map for the settings of an estimator; an even number of terms is raised by one.

        Parameters
        ----------
        settings : FeatureSettings
            What the estimator asks for.
        seed : int
            Not used: nothing is random.
        """
        return cls(settings.exact, settings.terms() | 1)

    @classmethod
    def footprint(cls, settings: FeatureSettings, n_bins: int) -> Footprint:
        """Return the sizes that the memory of a fit depends on.

        Parameters
        ----------
        settings : FeatureSettings
            What the estimator asks for.
        n_bins : int
            Bins of a row.
        """
        return Footprint((settings.terms() | 1) * n_bins)

    @classmethod
    def fitting_bytes(cls, settings: FeatureSettings, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """Return the bytes that fitting takes beside the rows: those of the differences that the period is chosen on.

        Parameters
        ----------
        settings : FeatureSettings
            What the estimator asks for.
        n_rows : int
            Rows of the sample.
        row_bytes : float
            Bytes of a row.
        itemsize : int
            Bytes of a number.
        """
        return 32 * PAIRS

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
