"""Functions of single entries: logarithms, square roots, presence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap import _arrays
from chimap._onnx import Value, log_of_one_more
from chimap._types import Rows
from chimap.normalizations.base import OfRows


class OfMagnitudes(OfRows):
    """Base of normalisations that take a function of the magnitude of every entry, with the sign of the entry."""

    takes_signs: ClassVar[bool] = True
    joins_bins: ClassVar[bool] = False

    function: ClassVar[np.ufunc]
    inverse: ClassVar[np.ufunc]

    def __call__(self, rows: Rows, blocks: Sequence[np.ndarray]) -> Rows:
        return _arrays.map_values(rows, self.redone)

    def of_total(self, values: np.ndarray, total: float | np.ndarray) -> np.ndarray:
        """Return the entries as in any row."""
        return self.redone(values)

    def undone(self, values: np.ndarray) -> np.ndarray:
        return np.copysign(self.inverse(np.abs(values)), values)

    def redone(self, values: np.ndarray) -> np.ndarray:
        return np.copysign(self.function(np.abs(values)), values)


@dataclass(frozen=True)
class Log1p(OfMagnitudes):
    """ln(1 + |x|) of every entry, with the sign of x."""

    name: ClassVar[str] = "log1p"
    about: ClassVar[str] = "log(1 + x) of each entry"
    function: ClassVar[np.ufunc] = np.log1p
    inverse: ClassVar[np.ufunc] = np.expm1

    def onnx(self, x: Value, blocks: Sequence[np.ndarray], n_bins: int) -> Value:
        return x.apply("Sign") * log_of_one_more(x.apply("Abs"))


@dataclass(frozen=True)
class Roots(OfMagnitudes):
    """sqrt(|x|) of every entry, with the sign of x: the map of the Hellinger kernel."""

    name: ClassVar[str] = "sqrt"
    about: ClassVar[str] = "the square root of each entry"
    function: ClassVar[np.ufunc] = np.sqrt
    inverse: ClassVar[np.ufunc] = np.square

    def onnx(self, x: Value, blocks: Sequence[np.ndarray], n_bins: int) -> Value:
        return x.apply("Sign") * x.apply("Abs").apply("Sqrt")


@dataclass(frozen=True)
class Presence(OfRows):
    """1 where x > 0, else 0: for tables in which it matters what is there, and amounts are mostly noise."""

    name: ClassVar[str] = "presence"
    about: ClassVar[str] = "1 for each entry above 0"
    scale: ClassVar[str] = "1 where a bin is filled, else 0"
    takes_signs: ClassVar[bool] = False
    joins_bins: ClassVar[bool] = False
    ignores_totals: ClassVar[bool] = True

    def __call__(self, rows: Rows, blocks: Sequence[np.ndarray]) -> Rows:
        return _arrays.map_values(rows, lambda values: (values > 0).astype(values.dtype))

    def of_total(self, values: np.ndarray, total: float | np.ndarray) -> np.ndarray:
        """Return the entries as in any row."""
        return (values > 0).astype(values.dtype)

    def onnx(self, x: Value, blocks: Sequence[np.ndarray], n_bins: int) -> Value:
        return (x > 0.0).cast(x.dtype)
