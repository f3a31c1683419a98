"""Logarithms of shares: counts per million of microbes, counts per ten thousand of single cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap.normalizations.base import OfRows
from chimap.normalizations.shares import Shares


@dataclass(frozen=True)
class LogShares(OfRows):
    """log(1 + s x / sum x), block by block, with s the total that rows are scaled to.

    Shares of rare bins differ by orders of magnitude. The logarithm counts a factor of two among them as much as one
    among common bins, and the total decides which shares are as good as absent: those far below 1/s.
    """

    total: ClassVar[float]
    takes_signs: ClassVar[bool] = False
    joins_bins: ClassVar[bool] = True

    def __call__(self, rows: Rows, blocks: Sequence[np.ndarray]) -> Rows:
        """See ``Normalization``."""
        shares = Shares()(rows, blocks)
        return _arrays.map_values(shares, lambda values: np.log1p(values * values.dtype.type(self.total)))

    def undone(self, values: np.ndarray) -> np.ndarray:
        """Return counts in the total that rows are scaled to."""
        return np.asarray(np.expm1(values))

    def redone(self, values: np.ndarray) -> np.ndarray:
        """See ``Normalization``."""
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
    total: ClassVar[float] = 1e4
