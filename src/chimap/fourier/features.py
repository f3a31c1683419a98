"""Random Fourier features of the exponential kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from chimap import _arrays, _loops, _threads
from chimap._validation import check_choice, check_histograms, check_positive
from chimap.fourier.sampling import CATALOGUE as SAMPLING
from chimap.kernels import Exponential, as_kernel
from chimap.maps import AdditiveMap, OptimalMap, check_map

_BLOCK_ROWS = 512  # rows mapped, projected and turned into cosines while they are in cache
_SPARSE_BELOW = 0.04  # density of the mapped rows under which the sparse product beats the dense one


class FourierFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """z(x) with z(x) . z(y) ~ exp(-gamma D^2(x, y)), D^2 the squared distance of an additive kernel.

    Since D^2 = |Psi(x) - Psi(y)|^2 for the map Psi of the additive kernel, this is a Gaussian kernel of the
    mapped rows: with the columns of W drawn from N(0, 2 gamma I),

        pair:    z(x) = [cos(W' Psi(x)), sin(W' Psi(x))] / sqrt(D/2),  D/2 frequencies
        offset:  z(x) = sqrt(2/D) cos(W' Psi(x) + b),  b uniform on [0, 2 pi],  D frequencies.

    At the same D the pair costs half the projection and, for kernels near 1, has the smaller variance.

    Parameters
    ----------
    kernel : "exp-chi2", "exp-intersection", "exp-jensen-shannon", "exp-hellinger" or an ``Exponential``.
    n_components : D, the features in all.
    gamma : number, or "mean": 1 / mean D^2 over pairs of the training rows. An ``Exponential`` brings its own.
    map : the additive map Psi (unfitted); None is ``OptimalMap(n_terms=n_terms)``, exact to about 0.5 % at two terms.
    n_terms : terms a bin of that default map.
    sampling : "orthogonal" or "iid".
    form : "pair" or "offset".
    random_state : int, RandomState or None.

    Learned: ``kernel_`` (an ``Exponential``), ``gamma_``, ``map_``, ``frequencies_`` (mapped bins, frequencies),
    ``offset_`` (frequencies,), zero for pairs.

    Source: Li, Lebanon and Sminchisescu, Algorithm 2; Sreekanth, Vedaldi, Jawahar and Zisserman, Generalized RBF
    feature maps.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(16), size=50)
    >>> features = FourierFeatures("exp-chi2", n_components=4096, random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> bool(abs(Z @ Z.T - features.kernel_(X)).max() < 0.1)
    True
    """

    def __init__(
        self,
        kernel: Any = "exp-chi2",
        n_components: int = 1024,
        gamma: Any = "mean",
        map: Any = None,
        n_terms: int = 2,
        sampling: str = "orthogonal",
        form: str = "pair",
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.gamma = gamma
        self.map = map
        self.n_terms = n_terms
        self.sampling = sampling
        self.form = form
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> FourierFeatures:
        """Fit the map and gamma on rows X (n, bins) and draw the frequencies; y is not used."""
        kernel = self._check_parameters()
        self._signed = kernel.kernel.is_signed
        rows = self._rows(X, reset=True)
        random = check_random_state(self.random_state)
        self.kernel_ = kernel.fitted(rows, random.randint(2**31))
        self.gamma_ = float(self.kernel_.gamma)
        template = OptimalMap(n_terms=self.n_terms) if self.map is None else self.map
        self.map_ = _fitted_map(template, kernel.kernel, rows)
        self._draw(np.random.default_rng(random.randint(2**31)), rows.dtype)
        return self

    def _check_parameters(self) -> Exponential:
        check_positive(self.n_components, "n_components", integer=True)
        check_choice(self.sampling, "sampling", tuple(SAMPLING))
        check_choice(self.form, "form", ("pair", "offset"))
        kernel = as_kernel(self.kernel, self.gamma)
        if not isinstance(kernel, Exponential):
            raise ValueError(
                f"FourierFeatures draws features of exponential kernels; got {kernel.name!r}. Use "
                f"'exp-{kernel.name}', or one of the additive maps for {kernel.name!r} itself."
            )
        return kernel

    def _draw(self, rng: np.random.Generator, dtype: np.dtype) -> None:
        is_pair = self.form == "pair"
        m = (self.n_components + 1) // 2 if is_pair else self.n_components
        frequencies = SAMPLING[self.sampling](self.map_._n_features_out, m, rng, dtype)
        frequencies *= dtype.type(np.sqrt(2 * self.gamma_))
        self.frequencies_ = frequencies
        offset = rng.uniform(0, 2 * np.pi, m).astype(dtype)
        if is_pair:
            # Pairs need no offset; with n_components odd the last frequency has no sine, and an offset stands in
            # for it: a pair of sqrt(2/D) cos, sin and a cosine with offset add as much to the kernel per feature.
            offset[: self.n_components // 2] = 0
        self.offset_ = offset
        self._n_features_out = self.n_components

    def transform(self, X: Any) -> np.ndarray:
        """Features (n, n_components), dense, in the floating type of X."""
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        out = np.empty((rows.shape[0], self.n_components), dtype=rows.dtype)
        self.features_into(rows, out)
        return out

    def features_into(self, rows: Any, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Features minus ``shift`` (n_components,) of checked rows into ``out`` (n, n_components), of their dtype."""
        frequencies = self.frequencies_.astype(out.dtype, copy=False)
        shift = np.zeros(out.shape[1], out.dtype) if shift is None else shift.astype(out.dtype, copy=False)
        m = frequencies.shape[1]
        scale = out.dtype.type(np.sqrt(2.0 / self.n_components))
        n_block = min(_BLOCK_ROWS, rows.shape[0])
        mapped = np.empty((n_block, frequencies.shape[0]), dtype=out.dtype)
        angles = np.empty((n_block, m), dtype=out.dtype)
        offset = self.offset_.astype(out.dtype, copy=False)
        for first in range(0, rows.shape[0], _BLOCK_ROWS):
            z = out[first : first + _BLOCK_ROWS]
            a = angles[: z.shape[0]]
            block = _arrays.take_rows(rows, slice(first, first + _BLOCK_ROWS))
            self._project(block, frequencies, mapped[: z.shape[0]], a)
            _waves(a, scale, offset, shift, z)

    def _project(self, block: Any, frequencies: np.ndarray, mapped: np.ndarray, out: np.ndarray) -> None:
        """out = Psi(block) @ frequencies."""
        if _arrays.is_sparse(block):
            features = self.map_.transform_sparse(block)
            if features.nnz < _SPARSE_BELOW * mapped.size:
                _arrays.sparse_product(features, frequencies, out)
                return
            features.toarray(out=mapped)
        else:
            self.map_.transform_into(block, mapped)
        _arrays.product_into(mapped, frequencies, out)

    def _rows(self, X: Any, *, reset: bool) -> Any:
        rows = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=False
        )
        rows = _arrays.as_rows(rows)
        check_histograms(rows, signed=self._signed)
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _waves(a: np.ndarray, scale: Any, offset: np.ndarray, shift: np.ndarray, z: np.ndarray) -> None:
    """Angles a to features z, on all threads."""
    _threads.over_rows(
        z.shape[0], z.shape[1], lambda rows: _loops.waves(a[rows], scale, offset, shift, z[rows])
    )


def _fitted_map(template: AdditiveMap, kernel: Any, rows: Any) -> AdditiveMap:
    """A clone of the map, set to the additive kernel that the exponential is of, fitted on the rows."""
    check_map(template)
    fitted = type(template)(**template.get_params(deep=False))
    return fitted.set_params(kernel=kernel).fit(rows)
