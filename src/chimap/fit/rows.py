"""Rows and targets on their way into features: read, checked, normalised, encoded, and divided into folds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chimap import _arrays
from chimap.data import Source
from chimap.data.source import choose_rows
from chimap.fit.design import Part, check_rows, normalised, sample_size
from chimap.fit.targets import Codec


@dataclass(frozen=True)
class Preparation:
    """Rows as features take them: checked, in one precision, and their blocks l1-normalised if asked."""

    parts: list[Part]
    dtype: np.dtype
    normalizes: bool

    def __call__(self, X: Any, first_row: int | np.ndarray, name: str) -> Any:
        """Rows of ``name`` that begin at a row, or are these; an error names the row."""
        rows = _arrays.as_rows(X, self.dtype)
        del X  # as it came, where it was converted
        check_rows(rows, self.parts, name, first_row)
        return normalised(rows, self.parts) if self.normalizes else rows


@dataclass(frozen=True)
class PreparedRows:
    """A source with all that is done to its rows before they are mapped."""

    source: Source
    prepare: Preparation
    codec: Codec
    n_folds: int
    seed: int

    def sample(self) -> Any:
        """Prepared rows for what depends on the data."""
        size = sample_size(self.source, self.prepare.parts)
        chosen = choose_rows(self.source.n_rows, size, self.seed)
        return self.prepare(self.source.take(chosen), chosen, self.source.name)

    def over(self, source: Source, n_folds: int) -> PreparedRows:
        """Other rows of the same kind."""
        return replace(self, source=source, n_folds=n_folds)
