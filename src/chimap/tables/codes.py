"""Tables of the codes of an ``AnchorMap``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._types import Rows
from chimap.features.additive import AnchorMap
from chimap.features.additive.codes import look_up


@dataclass(frozen=True, eq=False)
class CodeTables:
    """f_c(x) = intercept_c + sum_i tables[i, code of x_i, c]: exact up to rounding, for every value.

    map : the fitted ``AnchorMap`` that encodes. tables : (bins, n_codes, t) float32. intercept : (t,) float64.
    """

    map: AnchorMap
    tables: np.ndarray
    intercept: np.ndarray

    @classmethod
    def of(cls, psi: AnchorMap, coef: np.ndarray, intercept: np.ndarray) -> CodeTables:
        """Of weights (D, t) of the features of a fitted map that has codes."""
        tables = psi.tables_by_bin(np.asarray(coef, np.float64).T)
        return cls(psi, np.ascontiguousarray(tables, dtype=np.float32), np.asarray(intercept, np.float64))

    @property
    def n_bins(self) -> int:
        """Bins a row."""
        return int(self.tables.shape[0])

    @property
    def n_outputs(self) -> int:
        """t."""
        return int(self.tables.shape[2])

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        return self.tables.nbytes

    @property
    def worst_error(self) -> float:
        """Of sums in float32 alone."""
        sizes = np.abs(self.tables).max(axis=(1, 2)).astype(np.float64)
        return float(2.0**-20 * sizes.sum())

    def describe(self) -> str:
        """'50 codes a bin'."""
        return f"{self.tables.shape[1]} codes a bin"

    def scores(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """(scores (n, t) float64, outside (n,) bool) of rows, which are checked; no row is outside."""
        scores = look_up(self.map.encode(rows), self.tables) + self.intercept
        return scores, np.zeros(rows.shape[0], dtype=bool)

    def bound(self, rows: Rows) -> np.ndarray:
        """No score is further off than this, (n,): ``worst_error``."""
        return np.full(rows.shape[0], self.worst_error)
