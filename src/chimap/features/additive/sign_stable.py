"""Signs of Cauchy projections: bits whose agreement estimates the chi2 kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays, _loops, _products, _scaling, _threads
from chimap._types import Array, ArrayLike, ArrayMap, DeviceArray, MatrixLike, RandomState, Rows, Transformed
from chimap._validation import (
    DataError,
    check_choice,
    check_positive,
    check_row_sums,
    row_sums,
    validated_rows,
)
from chimap.kernels import ArccosKernel, chi2
from chimap.model_files import Transformer

if TYPE_CHECKING:
    from sklearn.utils import Tags


_BLOCK_ROWS = 512  # rows projected together
_TILE_BYTES = 2**18  # of bits in a core's cache while the other rows pass over them


class SignStableProjection(ClassNamePrefixFeaturesOutMixin, Transformer, BaseEstimator):
    """sign(R' x) with the entries of R (bins, n_components) from Cauchy's law: for the chi2 kernel.

    Pr[signs of x and y differ] is close to arccos(K(x, y)) / pi, K the chi2 kernel of l1-normalised rows. The dot
    product of sign(R' x) / sqrt(D) therefore comes close to ``ArccosKernel(chi2)``, 1 - (2/pi) arccos K. Chance puts it
    off by a standard deviation of 1/sqrt(D) at most. What is left however large D is nothing where rows are equal or
    share no bin, and else was measured to lie between -0.02 and 0.07. Signs do not depend on the scale of a row.

    Parameters
    ----------
    n_components : D, the signs in all.
    output : "features", +-1/sqrt(D) (0 for empty rows) in the floating type of X; or "bits", uint8 (n, ceil(D/8)), in
        which component j is bit 7 - j % 8 of byte j // 8 (``numpy.packbits``), set where the sign is positive
        (nowhere for an empty row, which then differs from others by chance, and from empty ones not at all).
    random_state : int, RandomState or None.

    Learned: ``frequencies_`` (bins, n_components) float64, the matrix R; ``kernel_``, the ``ArccosKernel``.

    Source: Li, Samorodnitsky and Hopcroft, Sign Cauchy projections and chi-square kernel.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(16), size=50)
    >>> signs = SignStableProjection(n_components=4096, random_state=0).fit(X)
    >>> Z = signs.transform(X)
    >>> bool(abs(Z @ Z.T - signs.kernel_(X)).max() < 0.15)
    True
    >>> bits = signs.set_params(output="bits").transform(X)
    >>> bits.shape, bits.dtype, bool(abs(signs.estimate(bits) - Z @ Z.T).max() < 1e-12)
    ((50, 512), dtype('uint8'), True)
    """

    n_features_in_: int
    kernel_: ArccosKernel
    frequencies_: np.ndarray

    def __init__(self, n_components: int = 1024, output: str = "features", random_state: RandomState = None):
        self.n_components = n_components
        self.output = output
        self.random_state = random_state

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> SignStableProjection:
        """Draw R for the bins of rows X (n, bins), of which nothing else is looked at; y is not used."""
        self._check_parameters()
        self.kernel_ = ArccosKernel(chi2)
        rows = self._rows(X, reset=True)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        # The quantile of uniform numbers, below 2e16 by rounding. (A ratio of two normal numbers can be infinite.)
        self.frequencies_ = np.tan(np.pi * (rng.random((rows.shape[1], self.n_components)) - 0.5))
        return self

    def _check_parameters(self) -> None:
        """Refuse parameters out of range."""
        check_positive(self.n_components, "n_components", integer=True)
        check_choice(self.output, "output", ("features", "bits"))

    @property
    def _n_features_out(self) -> int:
        return -(-self.n_components // 8) if self.output == "bits" else self.n_components

    def transform(self, X: MatrixLike) -> Transformed:
        """Features (n, n_components) or bits (n, ceil(n_components/8)) of rows X (n, bins), dense or sparse; those of a
        tensor of torch (or an array of cupy) on its device.

        Raises DataError for NaN, infinite or negative entries and for rows of another width.
        """
        check_is_fitted(self)
        check_choice(self.output, "output", ("features", "bits"))
        rows = self._rows(X, reset=False)
        is_bits = self.output == "bits"
        if _arrays.is_on_device(rows):
            return self._array_bits(rows) if is_bits else self.array_features(rows)
        out = np.empty((rows.shape[0], self._n_features_out), dtype=np.uint8 if is_bits else rows.dtype)
        if not is_bits:
            self.features_into(rows, out)
            return out
        for part, projected in self._projections(rows):
            out[part] = np.packbits(projected > 0, axis=1)
        return out

    def array_features(self, rows: Array) -> Array:
        """Features (n, n_components) of checked dense rows by the operations of their own kind of array."""
        xp = _arrays.namespace(rows)
        return xp.astype(xp.sign(self._array_projections(rows)), rows.dtype) / float(
            np.sqrt(self.n_components)
        )

    def bound(self, like: Array) -> ArrayMap:
        """``array_features`` for arrays such as ``like``."""
        return self.array_features

    def _array_bits(self, rows: Array) -> Array:
        xp = _arrays.namespace(rows)
        projected = self._array_projections(rows)
        spare = xp.zeros_like(projected[:, : -self.n_components % 8])
        positive = xp.astype(xp.concat([projected, spare], axis=1) > 0, xp.uint8)
        octets = xp.reshape(positive, (rows.shape[0], self._n_features_out, 8))
        places = xp.asarray([128, 64, 32, 16, 8, 4, 2, 1], dtype=xp.uint8, device=rows.device)
        return xp.sum(octets * places, axis=2, dtype=xp.uint8)

    def _array_projections(self, rows: Array) -> Array:
        """R'x of rows of norm 1, float64: see ``_projections``."""
        xp = _arrays.namespace(rows)
        wide = xp.astype(rows, xp.float64)
        sums = xp.sum(wide, axis=1, keepdims=True)
        if not bool(xp.all(xp.isfinite(sums))):
            check_row_sums(_arrays.to_host(sums[:, 0]))
        tiny = float(np.finfo(np.float64).tiny)
        return (wide / xp.clip(sums, tiny)) @ _arrays.beside(self.frequencies_, wide)

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Features minus ``shift`` (n_components,) of checked rows into ``out`` (n, n_components), of their dtype."""
        scale = out.dtype.type(1 / np.sqrt(self.n_components))
        shift = np.zeros(out.shape[1], out.dtype) if shift is None else shift.astype(out.dtype, copy=False)
        for part, projected in self._projections(rows):
            _signs_into(projected, scale, shift, out[part])

    def estimate(self, bits: ArrayLike, others: ArrayLike | None = None) -> np.ndarray:
        """What the bits (n, ceil(n_components/8)) say of the kernel with others (m, ...), or among themselves, (n, m).

        1 - 2 h / D with h the bits that differ: the dot products of the features. cos(pi h / D), which is
        ``sin(pi / 2 * estimate)``, estimates the chi2 kernel itself.
        """
        check_is_fitted(self)
        left = self._words(bits, "bits")
        right = left if others is None else self._words(others, "others")
        out = np.empty((left.shape[0], right.shape[0]))
        tile = max(1, _TILE_BYTES // (right.shape[1] * right.itemsize))
        _threads.over_rows(
            out.shape[0], right.size, lambda part: _loops.differing_bits(left[part], right, tile, out[part])
        )
        out *= -2 / self.n_components
        out += 1
        return out

    def _projections(self, rows: Rows) -> Iterator[tuple[slice, np.ndarray]]:
        """(slice, R'x of its rows, float64) for blocks of rows; the same memory serves every block.

        In float64 whatever the rows are: an entry of R may be a million times the others, and its rounding in float32
        would be as large as they are.
        """
        n_block = min(_BLOCK_ROWS, rows.shape[0])
        buffer, projected = (np.empty((n_block, width)) for width in (rows.shape[1], self.n_components))
        for first in range(0, rows.shape[0], _BLOCK_ROWS):
            part = slice(first, min(first + _BLOCK_ROWS, rows.shape[0]))
            # of norm 1, so that no product with an entry of R is infinite
            block = _scaling.unit_rows(_arrays.as_rows(_arrays.take_rows(rows, part), np.float64))
            size = part.stop - first
            _products.project(block, self.frequencies_, buffer[:size], projected[:size])
            yield part, projected[:size]

    def _words(self, bits: ArrayLike, name: str) -> np.ndarray:
        """Packed bits as rows of 64-bit words, the last filled up by zeros."""
        n_bytes = -(-self.n_components // 8)
        bits = np.asarray(bits)
        if bits.dtype != np.uint8 or bits.ndim != 2 or bits.shape[1] != n_bytes:
            raise DataError(
                f"{name} must be uint8 (rows, {n_bytes}), as transform gives with output='bits'; got {bits.dtype} "
                f"{bits.shape}."
            )
        padded = np.zeros((bits.shape[0], -(-n_bytes // 8) * 8), dtype=np.uint8)
        padded[:, :n_bytes] = bits
        return padded.view(np.uint64)

    def _rows(self, X: MatrixLike, *, reset: bool) -> Rows | DeviceArray:
        rows = validated_rows(self, X, reset=reset, signed=False, on_device=not reset)
        if not _arrays.is_on_device(rows):
            row_sums(rows)
        return rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        if self.output == "features":
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        else:
            tags.transformer_tags.preserves_dtype = []
        return tags


def _signs_into(projected: np.ndarray, scale: np.floating, shift: np.ndarray, z: np.ndarray) -> None:
    """Projections to features, on all threads."""
    _threads.over_rows(
        z.shape[0], z.shape[1], lambda rows: _loops.signs(projected[rows], scale, shift, z[rows])
    )
