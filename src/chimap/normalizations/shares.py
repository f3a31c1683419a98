"""Each row divided by its sum, and logarithms of such shares: counts per million, counts per ten thousand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap import _arrays
from chimap._onnx import Value, log_of_one_more, row_sums
from chimap._types import Rows
from chimap.normalizations.base import OfRows

_Norms = Callable[[Rows], np.ndarray]


@dataclass(frozen=True)
class Shares(OfRows):
    """x / sum |x|, block by block: for rows whose totals mean nothing."""

    name: ClassVar[str] = "l1"
    about: ClassVar[str] = "each row divided by its sum"
    scale: ClassVar[str] = "shares of the row"
    takes_signs: ClassVar[bool] = True
    joins_bins: ClassVar[bool] = True
    ignores_totals: ClassVar[bool] = True

    def __call__(self, rows: Rows, blocks: Sequence[np.ndarray]) -> Rows:
        return divided_by(rows, blocks, _arrays.row_norms_l1)

    def of_total(self, values: np.ndarray, total: float | np.ndarray) -> np.ndarray:
        """Return the shares of the total."""
        return values / total

    def onnx(self, x: Value, blocks: Sequence[np.ndarray], n_bins: int) -> Value:
        return onnx_divided_by(x, blocks, n_bins, row_sums)


@dataclass(frozen=True)
class LogShares(OfRows):
    """log(1 + s x / sum x), block by block, with s the total that rows are scaled to.

    Shares of rare bins differ by orders of magnitude. The logarithm counts a factor of two among them as much as one
    among common bins, and the total decides which shares are as good as absent: those far below 1/s.
    """

    total: ClassVar[float]
    takes_signs: ClassVar[bool] = False
    joins_bins: ClassVar[bool] = True
    ignores_totals: ClassVar[bool] = True

    def __call__(self, rows: Rows, blocks: Sequence[np.ndarray]) -> Rows:
        shares = Shares()(rows, blocks)
        return _arrays.map_values(shares, lambda values: np.log1p(values * values.dtype.type(self.total)))

    def of_total(self, values: np.ndarray, total: float | np.ndarray) -> np.ndarray:
        """Return the logarithms of the shares of the total."""
        return np.log1p(values * (self.total / total))

    def onnx(self, x: Value, blocks: Sequence[np.ndarray], n_bins: int) -> Value:
        return log_of_one_more(onnx_divided_by(x, blocks, n_bins, row_sums) * self.total)

    def undone(self, values: np.ndarray) -> np.ndarray:
        """Return counts in the total that rows are scaled to."""
        return np.asarray(np.expm1(values))

    def redone(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(np.log1p(values))


@dataclass(frozen=True)
class LogCPM(LogShares):
    """log(1 + 10^6 x / sum x): log counts per million, for tables of species and of genes.

    References
    ----------
    Law, Chen, Shi and Smyth, voom: precision weights unlock linear model analysis tools for RNA-seq read counts, Genome
    Biology 2014 (log-cpm).
    """

    name: ClassVar[str] = "log-cpm"
    about: ClassVar[str] = "log(1 + counts per million) of each entry"
    scale: ClassVar[str] = "counts per million of the row"
    total: ClassVar[float] = 1e6


@dataclass(frozen=True)
class LogCP10K(LogShares):
    """log(1 + 10^4 x / sum x): log counts per ten thousand, as tools for single cells normalise.

    References
    ----------
    Wolf, Angerer and Theis, SCANPY: large-scale single-cell gene expression data analysis, Genome Biology 2018
    (``normalize_total`` and ``log1p``).
    """

    name: ClassVar[str] = "log-cp10k"
    about: ClassVar[str] = "log(1 + counts per ten thousand) of each entry"
    scale: ClassVar[str] = "counts per ten thousand of the row"
    total: ClassVar[float] = 1e4


def divided_by(rows: Rows, blocks: Sequence[np.ndarray], norms: _Norms) -> Rows:
    """Return rows divided, block by block, by their norms; ``norms`` returns those of rows, (n,). Empty rows stay.

    The argument is not changed.
    """
    if len(blocks) == 1 and blocks[0].size == rows.shape[1]:
        return _arrays.scale_rows(rows, _inverse(norms(rows)))
    rows = rows.copy()
    for columns in blocks:
        _arrays.scale_entries(rows, columns, _inverse(norms(_arrays.take_columns(rows, columns))))
    return rows


def _inverse(norms: np.ndarray) -> np.ndarray:
    return 1 / np.where(norms > 0, norms, 1)


def onnx_divided_by(x: Value, blocks: Sequence[np.ndarray], n_bins: int, norms: Callable[[Value], Value]) -> Value:
    """Return rows divided, block by block, by the norms (n, 1) of their parts, in float64."""
    for columns in blocks:
        is_whole = np.array_equal(columns, np.arange(n_bins))
        wide = x.cast(np.float64)
        scaled = (wide / norms(wide if is_whole else wide.take(columns, 1))).cast(x.dtype)
        if is_whole:
            x = scaled
            continue
        inside = np.zeros(n_bins, dtype=bool)
        inside[columns] = True
        x = x.graph.constant(inside).where(scaled, x)
    return x
