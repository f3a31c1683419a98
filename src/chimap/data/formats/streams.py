"""Objects of other libraries that yield batches: lazy frames, relations, data sets and loaders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from chimap._validation import DataError
from chimap.data.column_choice import chosen
from chimap.data.formats.batches import BatchSource
from chimap.data.formats.table_batches import TableBatches, Tables, TableSource, schema_of
from chimap.data.io.files import needed
from chimap.data.label_names import shown
from chimap.data.labels import UNREAD, Labels
from chimap.data.source import Source
from chimap.data.table import ColumnChoice

BATCH = 4096  # rows that are requested at a time


class LoaderBatches:
    """Batches of a torch ``DataLoader``: X, or (X, y), as numpy arrays."""

    def __init__(self, loader: Iterable[object]) -> None:
        if type(getattr(loader, "sampler", None)).__name__ in ("RandomSampler", "WeightedRandomSampler"):
            raise DataError(
                "DataLoader: it shuffles, so that each pass would read the rows in another order. Make it with "
                "shuffle=False; the order does not matter to a fit."
            )
        self._loader = loader

    def __call__(self) -> Iterator[object]:
        """Yield X, or (X, y), of each batch."""
        for batch in self._loader:
            if isinstance(batch, list | tuple) and len(batch) in (1, 2):
                yield tuple(np.asarray(part) for part in batch) if len(batch) == 2 else np.asarray(batch[0])
            elif isinstance(batch, dict):
                raise DataError(
                    f"DataLoader: batches are dictionaries of {shown(sorted(map(str, batch)))}. Give "
                    "open_source(lambda: ((b['x'], b['y']) for b in loader))."
                )
            else:
                yield np.asarray(batch)


def is_stream(X: object) -> bool:
    """Return whether X yields batches, without importing any library."""
    return _opener(X) is not None


def stream_source(X: object, labels: Labels = None, choice: ColumnChoice | None = None) -> Source:
    """Return a source of the batches of a lazy or streaming object of another library.

    Parameters
    ----------
    X : object
        A polars LazyFrame, a DuckDB relation, a pyarrow Dataset or Scanner, a Hugging Face Dataset or a torch
        DataLoader.
    labels : str, default=None
        Name of a column; None for a DataLoader, whose batches are (X, y).
    choice : ColumnChoice, default=None
        Which columns are bins and ids.
    """
    opener = _opener(X)
    if opener is None:
        raise TypeError(f"{type(X).__name__} does not yield batches.")
    return opener(X, labels, choice or ColumnChoice())


def stream_columns(X: object) -> tuple[str, ...] | None:
    """Return the names of all columns of an object that yields tables; None for any other object."""
    tables = tables_of(X) if _opener(X) is _table_source else None
    return None if tables is None else tuple(schema_of(tables, type(X).__name__).names)


def _opener(X: object) -> Callable[[object, Labels, ColumnChoice], Source] | None:
    modules = type(X).__module__.split(".")
    if modules[:3] == ["torch", "utils", "data"] and hasattr(X, "batch_size"):
        return _loader_source
    return _table_source if tables_of(X) is not None else None


def _loader_source(X: Any, labels: Labels, choice: ColumnChoice) -> Source:
    if labels is not None and labels is not UNREAD:
        raise DataError("DataLoader: labels are in its batches, (X, y); leave labels out.")
    batches = BatchSource(LoaderBatches(X), "DataLoader", reads_labels=labels is not UNREAD)
    return chosen(batches, choice)


def _table_source(X: object, labels: Labels, choice: ColumnChoice) -> Source:
    tables, name = tables_of(X), type(X).__name__
    if labels is not None and labels is not UNREAD and not isinstance(labels, str):
        raise DataError(
            f"{name}: labels must name one of its columns, or several with commas between them, 'a,b'; got "
            f"{type(labels).__name__}. Add the labels to it as a column."
        )
    assert tables is not None
    return TableSource(TableBatches(tables, name, labels, choice, _class_names(X)), name)


def _class_names(X: object) -> dict[str, list[str]]:
    """Return the names of the classes of each column that holds their numbers, as Hugging Face's ``ClassLabel``."""
    features = getattr(X, "features", None) or {}
    return {name: list(kind.names) for name, kind in features.items() if type(kind).__name__ == "ClassLabel"}


def tables_of(X: object) -> Tables | None:
    """Return a function that makes a new iterator of the Arrow tables of a lazy or streaming object, or None."""
    modules, name = type(X).__module__.split("."), type(X).__name__
    is_known = (
        (modules[0], name) == ("polars", "LazyFrame")
        or modules[0] in ("duckdb", "_duckdb", "datasets")
        or (modules[0] == "pyarrow" and modules[-1] == "_dataset")
    )
    return _tables_of(X) if is_known else None


def _tables_of(X: Any) -> Tables | None:
    if hasattr(X, "collect_batches"):  # polars
        return lambda: (
            frame.to_arrow() for frame in X.collect_batches(chunk_size=BATCH, maintain_order=True)
        )
    if hasattr(X, "with_format") and hasattr(X, "iter"):  # Hugging Face
        return lambda: X.with_format("arrow").iter(batch_size=BATCH)
    if hasattr(X, "__arrow_c_stream__"):  # DuckDB, and others
        return lambda: iter(needed("pyarrow", "Arrow streams").RecordBatchReader.from_stream(X))
    if hasattr(X, "scanner"):  # a data set of pyarrow
        return lambda: iter(X.to_batches(batch_size=BATCH))
    if hasattr(X, "to_batches"):  # a scanner of pyarrow, which has the size of its batches
        return lambda: iter(X.to_batches())
    return None
