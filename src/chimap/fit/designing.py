"""What a design of features does, and what it is told of the fit that it belongs to.

A ``Design`` belongs to the recipe. Before the rows are read it gives the parts and their sizes, for the memory plan;
then it fits the features on a sample. ``design.PlainDesign`` has a given kernel for each block; learners of kernels
have designs of their own, which adapt the features to the targets in ``learn``.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from chimap._types import Parameters, Rows
from chimap.engines import Progress, Stopwatch
from chimap.features.base import FittedFeatures
from chimap.fit.design import FeatureBlock
from chimap.fit.rows import PreparedRows


class Conditions(Protocol):
    """What a design may know of a fit; a ``Recipe`` has it."""

    @property
    def seed(self) -> int:
        """Seed of all random numbers of the fit."""
        ...

    @property
    def dtype(self) -> np.dtype:
        """Precision of the features."""
        ...

    @property
    def budget(self) -> int:
        """Memory budget in bytes."""
        ...

    @property
    def changes_rows(self) -> bool:
        """Whether preparation changes the numbers of the rows."""
        ...


class Design(Protocol):
    """How features are made: from settings, a sample of rows and, for some, the labels of more rows."""

    def parts(self, n_columns: int) -> list[FeatureBlock]:
        """Return the blocks of the columns, by which rows are checked and normalised."""
        ...

    def sized(self, n_columns: int) -> list[FeatureBlock]:
        """Return parts whose features have the sizes of the model's features."""
        ...

    def fit(self, sample: Rows, seed: int, sample_weight: np.ndarray | None = None) -> Any:
        """Return features fitted on prepared rows, or an object for ``learn`` to adapt.

        ``sample_weight`` are the weights (n,) of the rows, or None if they were drawn by weight.
        """
        ...

    def learn(
        self,
        features: Any,
        conditions: Conditions,
        rows: PreparedRows,
        sample: Rows,
        clock: Stopwatch,
        progress: Progress,
    ) -> tuple[FittedFeatures, Parameters]:
        """Return features adapted to ``rows``, and further attributes that were learned, by name."""
        ...
