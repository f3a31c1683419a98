"""Readers of files and of objects of other libraries, as sources of rows.

``open_source`` finds the right source by the type of its argument and the ending of the file. To support a new kind of
file, add one module with a ``Source`` and one line to ``READERS`` in ``chimap.readers.catalogue``. Another package adds
a reader by an entry point of the group ``chimap.readers``.
"""

from __future__ import annotations

from chimap.data.reading import READINGS, Reading
from chimap.readers.arrow import ArrowSource
from chimap.readers.batches import BatchSource
from chimap.readers.catalogue import READERS, Reader, check_rows_order, of_file, opener_of
from chimap.readers.csv import CsvSource
from chimap.readers.dask import DaskSource
from chimap.readers.joins import table_of
from chimap.readers.label_files import read_labels
from chimap.readers.matrix_market import MatrixMarketSource
from chimap.readers.molecules import (
    FINGERPRINTS,
    AtomPairCounts,
    MoleculeBlocks,
    MorganCounts,
    MorganKeys,
    TorsionCounts,
)
from chimap.readers.named_counts import NamedCounts
from chimap.readers.npy import NpySource
from chimap.readers.npz import NpzSource
from chimap.readers.opening import open_source, task_words
from chimap.readers.stored_arrays import Hdf5Source, ZarrSource
from chimap.readers.svmlight import SvmlightSource
from chimap.readers.words import WordCounts

_readings: tuple[type[Reading], ...] = (WordCounts, *FINGERPRINTS.values(), NamedCounts)
READINGS.update({reading.__name__: reading for reading in _readings})

__all__ = [
    "open_source",
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
    "WordCounts",
    "MoleculeBlocks",
    "MorganCounts",
    "MorganKeys",
    "AtomPairCounts",
    "TorsionCounts",
    "NamedCounts",
    "read_labels",
    "READERS",
    "Reader",
    "of_file",
    "check_rows_order",
    "opener_of",
    "table_of",
    "task_words",
]
