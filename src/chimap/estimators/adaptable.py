"""Features whose widths are free, as the search for widths takes them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from chimap._types import Rows
from chimap.features.fourier.features import FourierFeatures
from chimap.features.fourier.pullback import Slopes
from chimap.features.fourier.skewed import SkewedFourierFeatures


class Adaptable(Protocol):
    """Fitted features of any widths; see ``WidthFeatures``."""

    @property
    def start_(self) -> np.ndarray:
        """Log widths (r,) to start from."""
        ...

    @property
    def names_(self) -> list[str]:
        """Of the widths."""
        ...

    @property
    def columns_(self) -> np.ndarray:
        """The width of each column (bins,)."""
        ...

    @property
    def unit_(self) -> FourierFeatures | SkewedFourierFeatures:
        """The features at widths 1."""
        ...

    @property
    def n_components(self) -> int:
        """Features."""
        ...

    @property
    def n_widths(self) -> int:
        """r."""
        ...

    def at(self, log_widths: np.ndarray) -> Any:
        """Plain features with these widths (r,)."""
        ...

    def pullback_at(self, features: Any, rows: Rows, slopes: Slopes) -> np.ndarray:
        """dL/d log s (r,) of checked rows."""
        ...
