"""Mapped rows u in which an exponential kernel is exp(-|u - v|^2 / 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from chimap import _arrays, _blas, _loops, _threads
from chimap._onnx import Value
from chimap._types import CSR, Array, ArrayMap, Rows, Shape
from chimap.features.additive.base import AdditiveMap
from chimap.features.additive.identity import IdentityMap
from chimap.features.over_map import fitted_map
from chimap.kernels import Anisotropic, Exponential, Kernel, OnColumns, Product


def takes(kernel: Kernel) -> bool:
    """Return whether a kernel is exponential over an additive or the linear kernel, or a product of such kernels."""
    if isinstance(kernel, Product):
        return all(takes(part) for part in kernel.kernels)
    if isinstance(kernel, OnColumns | Anisotropic):
        return takes(kernel.kernel)
    return isinstance(kernel, Exponential)


@dataclass(frozen=True, eq=False)
class GaussianFactor:
    """A factor exp(-gamma D^2) over some columns (None for all), and the map with these squared distances D^2."""

    kernel: Exponential
    columns: np.ndarray | None
    map: AdditiveMap | IdentityMap


@dataclass(frozen=True, eq=False)
class UnitGaussianMap:
    """The map u(x) = scale (Psi(x) - centre) with K(x, y) = exp(-|u(x) - u(y)|^2 / 2).

    Psi are the mapped bins of all factors of the kernel side by side, and ``scale`` (p,) is sqrt(2 gamma) of the factor
    of each mapped bin. Subtracting the ``centre`` (p,) removes what all rows share, which would make |u|^2 and u.v
    cancel. It is 0 for mapped bins that are empty in half of the rows or more, whose mean is no larger than their
    spread, so that zeros stay zeros. ``centre`` and ``scale`` are float64; ``centred`` lists the mapped bins whose
    centre is not 0.
    """

    factors: list[GaussianFactor]
    centre: Annotated[np.ndarray, Shape("p")]
    scale: Annotated[np.ndarray, Shape("p")]
    centred: np.ndarray

    @property
    def n_mapped(self) -> int:
        """Number of mapped bins, p."""
        return int(self.centre.size)

    def describe(self) -> str:
        """Return a short description of the maps, such as "OptimalMap, 1 term per bin"."""
        return ", ".join(dict.fromkeys(factor.map.describe() for factor in self.factors))

    def mapped(self, rows: Rows) -> Rows:
        """Return Psi of checked rows, (n, p): CSR of CSR rows, in new memory."""
        parts = [mapped_by(factor.map, _columns_of(rows, factor.columns)) for factor in self.factors]
        return parts[0] if len(parts) == 1 else _arrays.stack_columns(parts)

    def products(self, rows: Rows, others: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write u(x_i) . others[:, j] into out[i, j] for checked rows x_i, and return |u|^2 / 2.

        ``others`` (p, m) have the dtype of the rows.
        """
        if _arrays.is_sparse(rows):
            return self._sparse_products(rows, others, out)
        u = _arrays.to_dense(self.mapped(rows))
        centre, scale = self._numbers(u.dtype)
        halves = np.empty(u.shape[0], u.dtype)
        _threads.over_rows(
            u.shape[0], u.shape[1], lambda part: _loops.centre_rows(centre, scale, halves[part], u[part])
        )
        _blas.project(u, others, u, out)
        return halves

    def _sparse_products(self, rows: CSR, others: np.ndarray, out: np.ndarray) -> np.ndarray:
        u, dense, halves = self.split(rows)
        _blas.sparse_product(u, others, out)
        if dense.shape[1]:
            _blas.multiply(dense, np.ascontiguousarray(others[self.centred]), out, add=True)
        return halves

    def split(self, rows: CSR) -> tuple[CSR, np.ndarray, np.ndarray]:
        """Return u of CSR rows as CSR without the centred bins, these bins (n, centred), dense, and |u|^2 / 2, (n,)."""
        u = _arrays.to_sparse(self.mapped(rows))
        data = u.data.copy() if np.shares_memory(u.data, rows.data) else u.data
        u = _arrays.csr(data, u.indices, u.indptr, u.shape)
        centre, scale = self._numbers(u.dtype)
        places = np.full(self.n_mapped, -1, np.int32)
        places[self.centred] = np.arange(self.centred.size)
        dense = np.tile(-(scale * centre)[self.centred], (u.shape[0], 1))
        halves = np.empty(u.shape[0], u.dtype)
        _loops.centre_sparse(u.data, u.indices, u.indptr, places, centre, scale, dense, halves)
        return u, dense, halves

    def values(self, rows: Rows) -> Rows:
        """Return u of checked rows, (n, p), dense or CSR like the rows."""
        if not _arrays.is_sparse(rows):
            centre, scale = self._numbers(rows.dtype)
            return np.asarray((self.mapped(rows) - centre) * scale)
        u, dense, _ = self.split(rows)
        n, k = dense.shape
        centred = _arrays.csr(dense.reshape(-1), np.tile(self.centred, n), k * np.arange(n + 1), u.shape)
        return _arrays.as_rows(u + centred)

    def bound(self, like: Array) -> ArrayMap:
        """Return the map to u for arrays such as ``like``, by operations of its library, on its device."""
        xp = _arrays.namespace(like)
        centre, scale = _arrays.as_like(self.centre, like), _arrays.as_like(self.scale, like)
        chosen = [
            None if factor.columns is None else xp.asarray(factor.columns, device=like.device)
            for factor in self.factors
        ]

        def values(rows: Array) -> Array:
            parts = [
                factor.map.array_features(rows if columns is None else xp.take(rows, columns, axis=1))
                for factor, columns in zip(self.factors, chosen, strict=True)
            ]
            psi = parts[0] if len(parts) == 1 else xp.concat(parts, axis=1)
            return (psi - centre) * scale

        return values

    def _numbers(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        return self.centre.astype(dtype), self.scale.astype(dtype)

    def onnx(self, x: Value) -> Value:
        """Return the mapped rows (n, p), scaled and centred, as nodes of an ONNX graph, in float64.

        Kernel values minus 1 suffer cancellation, and whitening magnifies the rounding.
        """
        columns = [x if factor.columns is None else x.take(factor.columns, 1) for factor in self.factors]
        mapped = [factor.map.onnx(own) for factor, own in zip(self.factors, columns, strict=True)]
        return x.graph.concatenated(mapped, 1).cast(np.float64) * self.scale + -(self.centre * self.scale)


def unit_gaussian_map(
    kernel: Kernel, rows: Rows, template: AdditiveMap | None, n_terms: int
) -> tuple[UnitGaussianMap, Kernel]:
    """Return the map for a kernel, fitted to checked rows, and the kernel with its gammas as numbers.

    gamma="mean" is 1 / mean D^2 of the mapped rows. ``template`` is the additive map, unfitted; None is ``OptimalMap``.
    Raises DataError for "mean" if all rows are equal.
    """
    factors, centres, scales = [], [], []
    for exponential, columns in _factors(kernel, None):
        block = _columns_of(rows, columns)
        psi = fitted_map(exponential, block, n_terms, template)
        mean, filled, variance = _spread(mapped_by(psi, block))
        # The mean of |a - b|^2 over pairs of rows is twice their variance, so no distances are needed.
        exponential = exponential.of_mean_distance(2 * variance, block.shape[0])
        factors.append(GaussianFactor(exponential, columns, psi))
        centres.append(np.where(filled > 0.5, mean, 0.0))
        scales.append(np.full(mean.size, np.sqrt(2.0 * float(exponential.gamma))))
    centre = np.concatenate(centres)
    fitted = _with_gammas(kernel, iter(factors))
    return UnitGaussianMap(factors, centre, np.concatenate(scales), np.flatnonzero(centre)), fitted


def mapped_by(psi: AdditiveMap | IdentityMap, rows: Rows) -> Rows:
    """Return Psi of checked rows: CSR for CSR rows, dense for dense ones."""
    if _arrays.is_sparse(rows):
        return psi.transform_sparse(rows)
    out = np.empty((rows.shape[0], psi._n_features_out), rows.dtype)
    psi.transform_into(rows, out)
    return out


def _columns_of(rows: Rows, columns: np.ndarray | None) -> Rows:
    return rows if columns is None else _arrays.take_columns(rows, columns)


def _factors(kernel: Any, columns: np.ndarray | None) -> Iterator[tuple[Exponential, np.ndarray | None]]:
    """Yield the exponential kernels whose product is this kernel, with their columns."""
    if isinstance(kernel, Product):
        for part in kernel.kernels:
            yield from _factors(part, columns)
    elif isinstance(kernel, OnColumns):
        yield from _factors(kernel.kernel, kernel.columns if columns is None else columns[kernel.columns])
    elif isinstance(kernel, Anisotropic):
        yield from _factors(kernel.product, columns)
    else:
        yield kernel, columns


def _with_gammas(kernel: Kernel, factors: Iterator[GaussianFactor]) -> Kernel:
    """Return the kernel with the exponential kernels of its factors put in."""
    if isinstance(kernel, Product):
        return Product(tuple(_with_gammas(part, factors) for part in kernel.kernels))
    if isinstance(kernel, OnColumns):
        return replace(kernel, kernel=_with_gammas(kernel.kernel, factors))
    if isinstance(kernel, Anisotropic):
        _with_gammas(kernel.product, factors)
        return kernel
    return next(factors).kernel


def _spread(u: Rows) -> tuple[np.ndarray, np.ndarray, float]:
    """Return means (p,) of mapped rows, shares of non-zero rows (p,), and the variance summed over columns."""
    n, p = u.shape
    if _arrays.is_sparse(u):
        u = _arrays.without_zeros(u)
        filled = np.bincount(u.indices, minlength=p)
        mean = np.bincount(u.indices, u.data, minlength=p) / n
        squares = np.square(u.data - mean[u.indices]).sum() + ((n - filled) * mean**2).sum()
    else:
        filled = np.count_nonzero(u, axis=0)
        mean = u.mean(axis=0, dtype=np.float64)
        size = max(1, _NUMBERS // p)
        differences = (u[first : first + size] - mean for first in range(0, n, size))
        squares = sum(float(np.einsum("ij,ij->", block, block)) for block in differences)
    return mean, filled / n, float(squares) / max(1, n - 1)


_NUMBERS = 2**17  # differences from the mean that are in memory at once
