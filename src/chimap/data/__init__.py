"""Rows of histograms in chunks, as passes over them need them, and their names, ids, labels and notes."""

from __future__ import annotations

from chimap.data.arrays import ArraySource
from chimap.data.covariates import with_covariates
from chimap.data.doubts import DataWarning
from chimap.data.frames import FrameSource
from chimap.data.labels import check_labels
from chimap.data.source import Chunk, RowsInChunks, Source
from chimap.data.views import matched

__all__ = [
    "Source",
    "RowsInChunks",
    "Chunk",
    "ArraySource",
    "FrameSource",
    "matched",
    "DataWarning",
    "check_labels",
    "with_covariates",
]
