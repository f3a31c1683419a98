"""The map of the linear kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from chimap import _arrays


class IdentityMap:
    """Psi(x) = x, with the face of an additive map: what random features of the Gaussian kernel are drawn over."""

    def fit(self, X: Any, y: Any = None) -> IdentityMap:
        """Take the number of bins from rows X (n, bins)."""
        self.n_features_in_ = X.shape[1]
        return self

    @property
    def _n_features_out(self) -> int:
        return int(self.n_features_in_)

    def describe(self) -> str:
        """'the bins as they are'."""
        return "the bins as they are"

    def array_features(self, rows: Any) -> Any:
        """Rows of any kind of array as they are."""
        return rows

    def transform_into(self, rows: np.ndarray, out: np.ndarray) -> None:
        """Copy dense rows into ``out``."""
        out[:] = rows

    def transform_sparse(self, rows: Any) -> Any:
        """CSR rows as they are."""
        return _arrays.as_rows(rows)
