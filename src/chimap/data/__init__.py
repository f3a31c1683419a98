"""Sources: rows of histograms on disk or in memory, read in chunks under a memory budget.

``open_source`` finds the right source by the type of its argument and the ending of the file. To support a new kind of
file, add one module with a ``Source`` and one line to ``ENDINGS`` in ``chimap.data.catalogue``.
"""

from __future__ import annotations

from chimap.data.catalogue import ENDINGS
from chimap.data.covariates import with_covariates
from chimap.data.doubts import DataWarning
from chimap.data.formats.arrays import ArraySource
from chimap.data.formats.arrow import ArrowSource
from chimap.data.formats.batches import BatchSource
from chimap.data.formats.csv import CsvSource
from chimap.data.formats.dask import DaskSource
from chimap.data.formats.frames import FrameSource
from chimap.data.formats.matrix_market import MatrixMarketSource
from chimap.data.formats.molecules import AtomPairCounts, MorganCounts, MorganKeys, TorsionCounts
from chimap.data.formats.named_counts import NamedCounts
from chimap.data.formats.npy import NpySource
from chimap.data.formats.npz import NpzSource
from chimap.data.formats.stored_arrays import Hdf5Source, ZarrSource
from chimap.data.formats.svmlight import SvmlightSource
from chimap.data.formats.words import WordCounts
from chimap.data.label_files import read_labels
from chimap.data.labels import check_labels
from chimap.data.opening import open_source
from chimap.data.source import Chunk, Source
from chimap.data.split import PerClassSplits, split_by, split_source
from chimap.data.synthetic import write_histograms
from chimap.data.views import matched

__all__ = [
    "open_source",
    "Source",
    "Chunk",
    "ArraySource",
    "NpySource",
    "NpzSource",
    "ArrowSource",
    "ZarrSource",
    "Hdf5Source",
    "CsvSource",
    "MatrixMarketSource",
    "BatchSource",
    "DaskSource",
    "SvmlightSource",
    "FrameSource",
    "matched",
    "DataWarning",
    "WordCounts",
    "MorganCounts",
    "MorganKeys",
    "AtomPairCounts",
    "TorsionCounts",
    "NamedCounts",
    "split_source",
    "split_by",
    "PerClassSplits",
    "write_histograms",
    "check_labels",
    "read_labels",
    "with_covariates",
    "ENDINGS",
]
