"""The map that compresses any long map to its best few terms under the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated

import numpy as np
from numpy.linalg import eigh

from chimap import _arrays, _loops
from chimap._onnx import Value
from chimap._types import JSON, Rows, Shape
from chimap.features.additive.base import AdditiveMap, check_map
from chimap.features.additive.densities import counted, density, value_counts
from chimap.features.additive.optimal import OptimalMap
from chimap.kernels import AdditiveKernel, Kernel
from chimap.model_files import register
from chimap.model_files.restoring import Agreeing

_POINTS, _POINTS_A_BIN = 512, 64  # points of the densities: of all values, and of each bin
_TABLE_BYTES = 3 * 2**17  # bytes for each term of a long map while its table is built, over six decades or so
_LONG_NUMBERS = 2**17  # long features of a few rows that fit into the cache together


class CompressedMap(AdditiveMap):
    """Map bins to the n_terms best combinations of the terms of a long map c, for all bins or bin by bin.

        Psi_i(x) = U_i' c(x).

    U holds the leading eigenvectors of the second moments E[c(x) c(x)'] over the density of the non-zero values, so no
    other n_terms combinations keep more of c's kernel. With an accurate long map Psi reaches the Eckart-Young limit of
    the kernel under that density. Bin by bin it adapts to bins of different ranges and densities, at the cost of
    evaluating the long map; for all bins together ``OptimalMap`` reaches that limit without a long map.

    Parameters
    ----------
    kernel : str or AdditiveKernel, default="chi2"
        Any additive kernel that ``base`` takes.
    n_terms : int, default=3
        Features for each bin.
    base : AdditiveMap or None, default=None
        The long map, unfitted; None is ``OptimalMap(n_terms=4 * n_terms + 8)``.
    per_bin : bool, default=False
        Choose combinations for each bin from its own values; bins without values take those of all bins together.

    Attributes
    ----------
    base_ : AdditiveMap
        The fitted long map.
    combinations_ : ndarray of shape (bins or 1, base terms, n_terms)
        The combinations U.
    eigenvalues_ : ndarray of shape (bins or 1, n_terms)
        Their eigenvalues, largest first.
    scales_ : ndarray of shape (bins,)
        Numbers that bins are divided by before the long map; 1 without ``per_bin``.
    kernel_ : AdditiveKernel
        The exact kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from chimap import DirectMap, chi2
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=100) * np.logspace(0, 4, 8)
    >>> def error(psi):
    ...     Z = psi.fit_transform(X)
    ...     return float(abs(Z @ Z.T - chi2(X)).mean() / chi2(X).mean())
    >>> long, short = DirectMap(n_terms=16), DirectMap(n_terms=3)
    >>> bool(error(CompressedMap(n_terms=3, base=long)) < error(short) / 2)
    True
    >>> bool(error(CompressedMap(n_terms=3, per_bin=True)) < error(CompressedMap(n_terms=3)))
    True
    """

    scales_: Annotated[np.ndarray, Shape("n_features_in_")]
    base_: AdditiveMap
    eigenvalues_: np.ndarray
    combinations_: Annotated[np.ndarray, Shape("tables", "long", "n_terms")]

    def __init__(
        self, kernel: str | Kernel = "chi2", n_terms: int = 3, base: AdditiveMap | None = None, per_bin: bool = False
    ):
        self.kernel = kernel
        self.n_terms = n_terms
        self.base = base
        self.per_bin = per_bin

    def _checked_kernel(self) -> AdditiveKernel:
        kernel = super()._checked_kernel()
        if self.base is not None:
            check_map(self.base)
            self.base.changed(kernel=kernel)._checked_kernel()
        return kernel

    @property
    def _base(self) -> AdditiveMap:
        return self.base or OptimalMap(n_terms=4 * self.n_terms + 8)

    def _fit_rows(self, rows: Rows) -> None:
        magnitudes = _arrays.map_values(rows, np.abs)
        self.scales_ = np.ones(rows.shape[1])
        if self.per_bin:
            # k(cx, cy) = c^gamma k(x, y), so bins may be scaled; on one scale the long map is accurate for all of them.
            self.scales_ = _scales(*_arrays.values_by_bin(magnitudes))
            magnitudes = _arrays.scale_columns(magnitudes, 1 / self.scales_)
        self.base_ = self._base.changed(kernel=replace(self.kernel_, is_signed=False)).fit(magnitudes)
        if self.per_bin or self.base_._differs_by_bin:
            self._fit_by_bin(magnitudes)
        else:
            largest = float(self.base_.largest_.max(initial=0.0))
            points, counts = density(*value_counts(magnitudes, self.base_.smallest_, largest), _POINTS)
            moments = self._moments(points, counts, np.zeros(points.size, np.int64), [0, points.size])
            self.eigenvalues_, self.combinations_ = self._leading(moments)

    def _fit_by_bin(self, magnitudes: Rows) -> None:
        values, starts = _arrays.values_by_bin(magnitudes)
        parts = [density(*counted(values[a:b]), _POINTS_A_BIN) for a, b in pairwise(starts)]
        points, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
        edges = np.r_[0, np.cumsum([len(part[0]) for part in parts])]
        bins = np.repeat(np.arange(len(parts)), np.diff(edges))
        moments = self._moments(points, counts, bins, edges)
        empty = starts[1:] == starts[:-1]
        shares = np.diff(starts)
        if shares.any():
            moments[empty] = np.average(moments, axis=0, weights=shares)
        self.eigenvalues_, self.combinations_ = self._leading(moments)

    def _moments(
        self, points: np.ndarray, counts: np.ndarray, bins: np.ndarray, edges: Sequence[int] | np.ndarray
    ) -> np.ndarray:
        """Return E[c c'] (groups, terms, terms) over points; group g has the points edges[g]:edges[g + 1]."""
        c = np.empty((1, self.base_._n_terms_out, points.size))
        self.base_._evaluate_signed(points[None], bins, c)
        out = np.empty((len(edges) - 1, c.shape[1], c.shape[1]))
        for g in range(out.shape[0]):
            part = slice(edges[g], edges[g + 1])
            features, weights = c[0][:, part], counts[part]
            out[g] = (features * (weights / weights.sum())) @ features.T
        return out

    def _leading(self, moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = eigh(moments)
        kept = min(self.n_terms, values.shape[1])
        eigenvalues = np.zeros((values.shape[0], self.n_terms))
        combinations = np.zeros((*values.shape, self.n_terms))
        eigenvalues[:, :kept] = np.maximum(values[:, ::-1][:, :kept], 0)
        combinations[:, :, :kept] = vectors[:, :, ::-1][:, :, :kept]
        # The sign of an eigenvector is arbitrary: make its largest entry positive.
        tops = np.take_along_axis(combinations, np.abs(combinations).argmax(axis=1)[:, None], axis=1)
        return eigenvalues, combinations * np.where(tops < 0, -1.0, 1.0)

    def _fitting_bytes(self, n_values: int, n_rows: int, itemsize: int) -> int:
        # the magnitudes, their scaled copy and, sorted by bin, their float64 copy
        copies = (3 * itemsize + 8) * n_values if self.per_bin else itemsize * n_values
        fitting = self._base._fitting_bytes(0 if self.per_bin else n_values, n_rows, itemsize)
        return copies + max(fitting, _TABLE_BYTES * self._base._terms_at_most)

    @property
    def _n_terms_out(self) -> int:
        return int(self.combinations_.shape[2])

    @property
    def _differs_by_bin(self) -> bool:
        return self.per_bin or self.base_._differs_by_bin

    def _prepare(self, dtype: np.dtype) -> None:
        self.base_._prepare(dtype)

    def _evaluate(self, magnitudes: np.ndarray, bins: np.ndarray, out: np.ndarray) -> None:
        n_long = self.base_._n_terms_out
        # (terms, base terms, columns), so that columns are contiguous
        combinations = np.ascontiguousarray(self.combinations_.transpose(2, 1, 0))
        if self._differs_by_bin:
            combinations = (combinations * self.scales_ ** (self.kernel_.gamma / 2))[:, :, bins]
            magnitudes = magnitudes * (1 / self.scales_).astype(magnitudes.dtype)[bins]
        combinations = combinations.astype(magnitudes.dtype)
        size = max(1, _LONG_NUMBERS // max(1, n_long * magnitudes.shape[1]))
        long = np.empty((min(size, magnitudes.shape[0]), n_long, magnitudes.shape[1]), magnitudes.dtype)
        for part in _arrays.slices(magnitudes.shape[0], size):
            block = long[: magnitudes[part].shape[0]]
            self.base_._evaluate_rows(magnitudes[part], bins, block)
            _loops.combined_terms(block, combinations, out[part])

    def _onnx_terms(self, x: Value) -> Value:
        if self._differs_by_bin:
            base_terms = self.base_._onnx_signed(x * (1 / self.scales_))
            combinations = self.combinations_ * self.scales_[:, None, None] ** (self.kernel_.gamma / 2)
            rows = base_terms.transposed(0, 2, 1).expanded(2)  # (n, bins, 1, base terms)
            return (rows @ combinations).reshaped(0, 0, self.n_terms).transposed(0, 2, 1)
        base_terms = self.base_._onnx_signed(x)
        return x.graph.constant(self.combinations_[0].T.astype(x.dtype)) @ base_terms


def _scales(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return a power of two, which rounds nothing, near the mean of each bin's values (of all, for empty bins)."""
    lengths = np.diff(starts)
    bins = np.repeat(np.arange(lengths.size), lengths)
    sums = np.bincount(bins, weights=values, minlength=lengths.size)
    common = values.mean() if values.size else 1.0
    means = np.where(lengths > 0, sums / np.maximum(lengths, 1), common)
    return np.exp2(np.round(np.log2(np.clip(means, 2.0**-100, 2.0**100))))


def _agreeing(state: JSON, sizes: dict[str, int]) -> Agreeing:
    base = state["base_"]
    n_tables = state["n_features_in_"] if state["per_bin"] or base._differs_by_bin else 1
    return [
        ("bins of the long map", base.n_features_in_, state["n_features_in_"]),
        ("terms of the long map", base._n_terms_out, sizes["long"]),
        ("tables", sizes["tables"], n_tables),
    ]


register(CompressedMap, agreeing=_agreeing)
