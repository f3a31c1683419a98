"""What a normalisation of rows does: a stage that is fitted on training rows and kept in the model.

A normalisation comes before the kernel: it turns rows as they come into rows as the features take them. Some learn
from the training rows (inverse document frequencies), or from their labels too; the others are functions of a row
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import numpy as np

from chimap._onnx import Value
from chimap._types import Rows
from chimap.data import RowsInChunks


@dataclass(frozen=True)
class KnownTargets:
    """The targets that a normalisation may learn from.

    Parameters
    ----------
    at : callable
        Returns the targets (m, t) of the rows of a slice: 1 and -1 for classes; NaN for a row whose labels are hidden
        from it, because its output is to be scored, and for a missing entry.
    n_targets : int
        Number of targets, t.
    are_classes : bool
        Whether they stand for classes.
    """

    at: Callable[[slice], np.ndarray]
    n_targets: int
    are_classes: bool


class Normalization(Protocol):
    """A normalisation.

    Attributes
    ----------
    name : str
        The value of ``normalize`` that names it.
    about : str
        What it makes of a row, in words that follow "bins: 120, ".
    scale : str
        What ``undone`` returns, in words that follow "values are "; empty where it returns entries as they came.
    takes_signs : bool
        Whether entries may be negative.
    joins_bins : bool
        Whether a normalised entry depends on the other entries of its row, or of its block.
    learns : bool
        Whether it learns from the rows of a fit, so that batches to come would change it.
    needs_labels : bool
        Whether it learns from their labels too. Rows that are scored are then hidden from it.
    ignores_totals : bool
        Whether rows times a number are normalised to the same.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    scale: ClassVar[str]
    takes_signs: ClassVar[bool]
    joins_bins: ClassVar[bool]
    learns: ClassVar[bool]
    needs_labels: ClassVar[bool]
    ignores_totals: ClassVar[bool]

    def fitted(self, source: RowsInChunks, targets: KnownTargets | None = None) -> Self:
        """Return the normalisation with all that it learns from the rows of a source, in one pass over them."""
        ...

    def __call__(self, rows: Rows, blocks: Sequence[np.ndarray]) -> Rows:
        """Return normalised rows (n, bins) of checked float rows; dense stays dense, and CSR keeps its pattern.

        ``blocks`` has the columns of each block, within which entries are joined. A row of zeros stays one.
        """
        ...

    def of_total(self, values: np.ndarray, total: float | np.ndarray) -> np.ndarray | None:
        """Return normalised entries of rows with this total; None if they depend on more of their rows."""
        ...

    def onnx(self, x: Value, blocks: Sequence[np.ndarray], n_bins: int) -> Value:
        """Return the normalised rows of rows x (n, n_bins) as nodes of an ONNX graph."""
        ...

    def undone(self, values: np.ndarray) -> np.ndarray:
        """Return normalised values as they came, or in units of the total of their row where that is not known."""
        ...

    def redone(self, values: np.ndarray) -> np.ndarray:
        """Return what ``undone`` returns these values of: its inverse."""
        ...


class OfRows(Normalization):
    """Base of normalisations whose values are not taken back; what learns has a ``fitted`` of its own."""

    scale: ClassVar[str] = ""
    learns: ClassVar[bool] = False
    needs_labels: ClassVar[bool] = False
    ignores_totals: ClassVar[bool] = False

    def fitted(self, source: RowsInChunks, targets: KnownTargets | None = None) -> Self:
        return self

    def of_total(self, values: np.ndarray, total: float | np.ndarray) -> np.ndarray | None:
        """Return None: entries depend on what else is in their row."""
        return None

    def undone(self, values: np.ndarray) -> np.ndarray:
        """Return the values, which are units of their row (shares, tf-idf) or of nothing (presence)."""
        return values

    def redone(self, values: np.ndarray) -> np.ndarray:
        """Return the values."""
        return values
