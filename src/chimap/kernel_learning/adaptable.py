"""Features with adjustable widths, as the search for widths takes them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from chimap._types import Rows
from chimap.features.fourier.base import Slopes
from chimap.features.fourier.features import FourierFeatures
from chimap.features.fourier.skewed import SkewedFourierFeatures


class Adaptable(Protocol):
    """Fitted features that can take any widths; see ``WidthFeatures``."""

    @property
    def start_(self) -> np.ndarray:
        """Log widths (r,) from which the search starts."""
        ...

    @property
    def names_(self) -> list[str]:
        """Names of the widths."""
        ...

    @property
    def columns_(self) -> np.ndarray:
        """Index of the width of each column, (bins,)."""
        ...

    @property
    def unit_(self) -> FourierFeatures | SkewedFourierFeatures:
        """The features with all widths at 1."""
        ...

    @property
    def n_components(self) -> int:
        """Number of features."""
        ...

    @property
    def n_widths(self) -> int:
        """Number of widths, r."""
        ...

    def at(self, log_widths: np.ndarray) -> Any:
        """Return plain features with these log widths (r,)."""
        ...

    def pullback_at(self, features: Any, rows: Rows, slopes: Slopes) -> np.ndarray:
        """Return dL/d log s (r,) for checked rows."""
        ...
