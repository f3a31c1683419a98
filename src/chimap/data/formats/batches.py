"""Rows that a function of the user yields in batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._frames import is_frame, without_index
from chimap._types import JSON, Rows
from chimap._validation import DataError
from chimap.data.formats.frames import checked_names_of, matrix_of, naming_index
from chimap.data.io.stream import StreamSource
from chimap.data.label_kinds import is_text
from chimap.data.labels import clean_labels
from chimap.data.rows import chunk_dtype, csr_rows, digest, matrix_shape
from chimap.data.table import check_same_names

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class BatchSource(StreamSource):
    """Rows from an iterator of batches, such as a data loader or the chunks of a data frame.

    All batches are read once when the source is made, to learn the size and the labels.

    Parameters
    ----------
    make_batches : callable
        A function without arguments that returns a new iterator at each call, over the same rows in the same order. A
        batch is X of shape (rows, n_features), dense or scipy sparse, or a tuple (X, y). Batches may have any size,
        but a batch is in memory as a whole. The columns of data frames are matched by name to those of the first
        one, and their indices name the rows.
    name : str, default="batches"
        Name for messages.
    reads_labels : bool, default=True
        Whether y is read; rows to predict need none.

    Raises
    ------
    ValueError
        If ``make_batches`` cannot be called.
    DataError
        If a pass gives another width, other labels, or more or fewer rows than the first one; the message names the
        batch.

    Examples
    --------
    >>> X, y = np.eye(5), np.arange(5)
    >>> source = BatchSource(lambda: ((X[i : i + 2], y[i : i + 2]) for i in range(0, 5, 2)))
    >>> [chunk.X.shape for chunk in source.chunks(3)], source.labels()
    ([(3, 5), (2, 5)], array([0, 1, 2, 3, 4]))
    """

    def __init__(
        self,
        make_batches: Callable[[], Iterable[object]],
        name: str = "batches",
        *,
        reads_labels: bool = True,
    ) -> None:
        if not callable(make_batches):
            raise InputError(
                f"make_batches must be a function that gives a new iterator at each call; got "
                f"{type(make_batches).__name__}. An iterator serves one pass only; pass the function that makes it."
            )
        self._make, self.name, self._reads_labels = make_batches, name, reads_labels
        self._names: tuple[str, ...] | None = None  # of the first data frame, if batches are data frames
        self.n_rows = self.n_features = n_bytes = 0
        dtypes, labels, sums, ids = [], [], [], []
        for number, batch in enumerate(self._make()):
            X, y = self._parts(batch, number)
            ids.append(naming_index(batch[0] if isinstance(batch, tuple) else batch))
            if number == 0:
                self.n_features, self.is_sparse = (
                    matrix_shape(X.shape, self._where(0))[1],
                    _arrays.is_sparse(X),
                )
                self.has_labels = y is not None
            self._check(X, y, number)
            dtypes.append(chunk_dtype(X.dtype, self._where(number)))
            labels.append(y)
            sums.append(float(_arrays.stored_values(X).sum(dtype=np.float64)))
            size = _arrays.stored_bytes(X)
            n_bytes += size
            self.held_bytes = max(self.held_bytes, 2.0 * size)
            self.n_rows += X.shape[0]
        if self.n_rows == 0:
            raise DataError(f"{self.name}: no batches. Give at least one row.")
        self.column_names, self.dtype = self._names, np.result_type(*dtypes)
        dense = self.n_features * self.dtype.itemsize
        self.row_bytes = float(n_bytes / self.n_rows if self.is_sparse else dense)
        self._digest = digest(np.array(sums))
        known = [part for part in ids if part is not None]
        if len(known) == len(ids):
            self.row_ids = np.concatenate(known)
        self._y = _joined([y for y in labels if y is not None], self.name, self.n_rows)

    def _blocks(self) -> Iterator[Rows]:
        start = 0
        for number, batch in enumerate(self._make()):
            X, y = self._parts(batch, number)
            self._check(X, y, number)
            stop = start + X.shape[0]
            if self._y is not None and stop <= self.n_rows and _differ(y, self._y[start:stop]):
                raise DataError(
                    f"{self._where(number)}: other labels than in the first pass. Each call must give the same rows in "
                    "the same order; switch shuffling off."
                )
            start = stop
            rows = _arrays.as_rows(X, self.dtype)
            if _arrays.is_sparse(rows):
                rows = csr_rows(rows.data, rows.indices, rows.indptr, self.n_features, self.dtype)
            yield rows

    def _parts(self, batch: object, number: int) -> tuple[Rows, np.ndarray | None]:
        """Return X, with two axes, and y."""
        where = self._where(number)
        X, y = batch if isinstance(batch, tuple) and len(batch) == 2 else (batch, None)
        is_named = is_frame(X)
        if number and is_named != (self._names is not None):
            raise DataError(
                f"{where}: {'' if is_named else 'no '}names of columns, unlike the first batch. Give data frames, or "
                "arrays, in all batches."
            )
        if is_named:
            X = self._by_name(X, where)
        elif _arrays.is_sparse(X):
            X = _arrays.as_csr(X)
        else:
            try:
                X = np.asarray(X)
            except ValueError as error:
                raise DataError(f"{where}: not a table of numbers ({error}). Give X or (X, y).") from error
            if X.ndim < 2:
                raise DataError(f"{where}: expected rows of bins, got shape {X.shape}. Give X or (X, y).")
            X = X.reshape(X.shape[0], math.prod(X.shape[1:]))
        return X, clean_labels(y, X.shape[0], where) if y is not None and self._reads_labels else None

    def _by_name(self, frame: pd.DataFrame | pl.DataFrame | pa.Table, where: str) -> np.ndarray:
        """Return the columns of a data frame in the order of the first batch, whose names are kept."""
        frame = without_index(frame)
        names = checked_names_of(frame, where)
        self._names = self._names or tuple(names)
        check_same_names(names, self._names, where)
        places = {name: place for place, name in enumerate(names)}
        return matrix_of(frame, [places[name] for name in self._names], names, where)

    def _check(self, X: Rows, y: np.ndarray | None, number: int) -> None:
        """Refuse a batch that differs in kind from the first one."""
        if X.shape[1] != self.n_features:
            raise DataError(
                f"{self._where(number)}: {X.shape[1]} bins per row, expected {self.n_features} as in the first batch. "
                "All batches must have the same bins in the same order."
            )
        for what, has, expected in (
            ("sparse", _arrays.is_sparse(X), self.is_sparse),
            ("with labels", y is not None, self.has_labels),
        ):
            if has != expected:
                raise DataError(
                    f"{self._where(number)}: {'' if has else 'not '}{what}, unlike the first batch. Give all batches "
                    "in the same form, X or (X, y)."
                )

    def _where(self, number: int) -> str:
        return f"{self.name}, batch {number}"

    def _content(self) -> JSON:
        return {"digest": self._digest}


def _joined(labels: list[np.ndarray], name: str, n_rows: int) -> np.ndarray | None:
    """Return the labels of all batches, masked where they are missing."""
    known = [y for y in labels if not np.ma.getmaskarray(y).all()]
    for number, y in enumerate(labels):
        if not np.ma.getmaskarray(y).all() and is_text(y) != is_text(known[0]):
            raise DataError(
                f"{name}, batch {number}: labels {y.dtype}, but {known[0].dtype} in the first batch. Labels must be "
                "all text or all numbers."
            )
    if not labels:
        return None
    kind = known[0].dtype if known else labels[0].dtype
    parts = [y if not np.ma.getmaskarray(y).all() else _no_labels(y.shape, kind) for y in labels]
    return clean_labels(
        np.ma.concatenate(parts) if _any_masked(parts) else np.concatenate(parts), n_rows, name
    )


def _any_masked(parts: list[np.ndarray]) -> bool:
    return any(np.ma.is_masked(y) for y in parts)


def _no_labels(shape: tuple[int, ...], kind: np.dtype) -> np.ndarray:
    """Return labels of a batch that has none, of the type that those of other batches have."""
    return np.ma.MaskedArray(np.zeros(shape, kind), True)


def _differ(y: np.ndarray | None, known: np.ndarray) -> bool:
    """Return whether labels, or which of them are missing, differ between two passes."""
    missing = np.ma.getmaskarray(known)
    if y is None or not np.array_equal(np.ma.getmaskarray(y), missing):
        return True
    found, first = np.ma.getdata(y)[~missing], np.ma.getdata(known)[~missing]
    both_nan = (found != found) & (first != first)  # entries of tasks that are missing
    return bool(np.any((found != first) & ~both_nan))
