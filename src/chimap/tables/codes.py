"""Tables by the codes of an ``AnchorMap``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._types import Rows
from chimap.features.additive import AnchorMap
from chimap.features.additive.codes import look_up


@dataclass(frozen=True, eq=False)
class CodeTables:
    """f_c(x) = intercept_c + sum_i tables[i, code of x_i, c], exact up to rounding for every value.

    Parameters
    ----------
    map : AnchorMap
        The fitted map that encodes the values.
    tables : ndarray of shape (bins, n_codes, t)
        Contributions, float32.
    intercept : ndarray of shape (t,)
        Intercepts, float64.
    """

    map: AnchorMap
    tables: np.ndarray
    intercept: np.ndarray

    @classmethod
    def of(cls, psi: AnchorMap, coef: np.ndarray, intercept: np.ndarray) -> CodeTables:
        """Compute the tables from weights (D, t) of the features of a fitted map that has codes."""
        tables = psi.tables_by_bin(np.asarray(coef, np.float64).T)
        return cls(psi, np.ascontiguousarray(tables, dtype=np.float32), np.asarray(intercept, np.float64))

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return int(self.tables.shape[0])

    @property
    def n_outputs(self) -> int:
        """Number of outputs t."""
        return int(self.tables.shape[2])

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        return self.tables.nbytes

    @property
    def worst_error(self) -> float:
        """Largest error of a score, which comes from summing in float32."""
        sizes = np.abs(self.tables).max(axis=(1, 2)).astype(np.float64)
        return float(2.0**-20 * sizes.sum())

    def describe(self) -> str:
        """Return a description such as "50 codes per bin"."""
        return f"{self.tables.shape[1]} codes per bin"

    def scores(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return (scores (n, t) float64, outside (n,) bool) of checked rows; no row is outside."""
        scores = look_up(self.map.encode(rows), self.tables) + self.intercept
        return scores, np.zeros(rows.shape[0], dtype=bool)

    def bound(self, rows: Rows) -> np.ndarray:
        """Return an upper bound of the error of each row's scores, (n,), which is ``worst_error``."""
        return np.full(rows.shape[0], self.worst_error)
