"""Covariates: columns that stand beside the counts of a row, such as age, sex and batch."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TypeGuard

import numpy as np

from chimap import _arrays
from chimap._frames import is_frame, names_of
from chimap._messages import Message, Parameter, shown
from chimap._types import JSON, ArrayLike, Rows
from chimap._validation import DataError
from chimap.data.frames import column_of
from chimap.data.label_kinds import is_number, is_text, stands_for_missing, texts_of
from chimap.data.labels import clean_labels
from chimap.data.reading import readers
from chimap.data.rows import digest
from chimap.data.source import Chunk, CovariateTable, Source
from chimap.data.table import NoColumnError, instead, words_of
from chimap.data.views import View

_FACTOR = re.compile(r"C\((.*)\)")


def table_of_values(data: object, n_rows: int, factors: Collection[str] = ()) -> CovariateTable:
    """Return the covariates of ``n_rows`` rows from a data frame, a mapping of names to values, or an array.

    Those whose names are ``factors`` are categories though they hold numbers.

    Raises DataError if their number of rows is another, or a value is infinite.
    """
    if is_frame(data):
        names: Sequence[object] = [*names_of(data)]
        columns = [column_of(data, place) for place in range(len(names))]
    elif isinstance(data, Mapping):
        names, columns = [*data], [*data.values()]
    else:
        array = np.asarray(data)
        array = array[:, None] if array.ndim == 1 else array
        if array.ndim != 2:
            raise DataError(Message("{covariates} must have a row for each row of X; got {} axes.", array.ndim))
        names, columns = [f"covariate {j}" for j in range(array.shape[1])], [*array.T]
    if not names:
        raise DataError(Message("{covariates} has no columns: name one, or leave it out."))
    pairs = zip(map(str, names), columns, strict=True)
    values = tuple(_cleaned(column, n_rows, name, name in factors) for name, column in pairs)
    return CovariateTable(tuple(map(str, names)), values)


def table_of_columns(source: Source, words: str | Sequence[str], role: str = "covariates") -> CovariateTable:
    """Return columns of the data that a source was opened from; ``C(name)`` is a category though it is of numbers.

    ``role`` is the parameter that names them, for errors.

    ``TABLE::name`` is a column of another table, joined by the ids of the rows. Raises DataError for a column that
    is not there, and for one that is the labels or the ids of the rows.
    """
    names = covariate_names(words)
    read = []
    for name in names:
        column, is_factor = unwrapped(name)
        _check_role(source, column, role)
        try:
            values = source.column_with_gaps(column)
        except NoColumnError as error:
            raise _not_there(source, column, role) from error
        read.append(_cleaned(values, source.n_rows, column, is_factor))
    return CovariateTable(tuple(unwrapped(name)[0].rpartition("::")[2] for name in names), tuple(read), tuple(names))


def covariate_names(words: str | Sequence[str]) -> list[str]:
    """Return the covariates that a text with commas, or a list, names; ``TABLE::a,b`` are two of the same table.

    >>> covariate_names("age, C(batch)"), covariate_names("meta.tsv::age,sex")
    (['age', 'C(batch)'], ['meta.tsv::age', 'meta.tsv::sex'])
    """
    names: list[str] = []
    table, _, inside = words.rpartition("::") if isinstance(words, str) else ("", "", "")
    if os.path.isfile(table):  # whatever its name holds
        words = [f"{table}::{word}" for word in words_of(inside)]
    for word in words_of(words):
        table, colons, _ = (names[-1] if names else "").rpartition("::")
        is_inside = isinstance(words, str) and colons and "::" not in str(word)
        names.append(f"{table}::{str(word).strip()}" if is_inside else str(word).strip())
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated:
        raise DataError(Message("{covariates} names {!r} twice.", repeated[0]))
    if not names:
        raise DataError(Message("{covariates} names no column: name one, or leave it out."))
    return names


def unwrapped(name: str) -> tuple[str, bool]:
    """Return the name of a column, and whether ``C(..)`` says that its numbers are levels of a category.

    >>> unwrapped("C(batch)"), unwrapped("meta.tsv::C(batch)"), unwrapped("age")
    (('batch', True), ('meta.tsv::batch', True), ('age', False))
    """
    table, colons, column = name.rpartition("::")
    found = _FACTOR.fullmatch(column)
    return (name, False) if found is None else (f"{table}{colons}{found[1].strip()}", True)


def _check_role(source: Source, column: str, role: str) -> None:
    if source.row_ids is not None and column == source.id_name:
        raise DataError(
            Message(
                "{}: {!r} is the id of the rows, which no other row shares: leave it out of {}.",
                source.name,
                column,
                Parameter(role),
            )
        )
    if column in (source.column_names or ()):
        raise DataError(
            Message(
                "{}: {!r} is a bin of the rows. Leave it out of {}, or set it aside where the data are opened.",
                source.name,
                column,
                Parameter(role),
            )
        )


def _not_there(source: Source, column: str, role: str) -> NoColumnError:
    """Return the error of a covariate that the data do not have, with names like it."""
    table, colons, name = column.rpartition("::")
    of_rows = [*source.columns_aside, *source.metadata, *(source.column_names or ())]
    others = readers().table_of(table).names if colons else of_rows
    there = instead(name, others, f"there are {shown(others)}")
    return NoColumnError(
        Message("{}: no column {!r} for {}{}.", table if colons else source.name, name, Parameter(role), there)
    )


def _cleaned(values: ArrayLike, n_rows: int, name: str, is_factor: bool = False) -> np.ma.MaskedArray:
    """Return values as float64, or as text where one of them is no number; masked where they are missing.

    Values that are all missing are float64: they suit numbers and categories.
    """
    if np.shape(values)[:1] != (n_rows,):
        raise DataError(
            Message("{covariates}, {!r}: {:,} values for {:,} rows. Give one for each.", name, np.size(values), n_rows)
        )
    labels = clean_labels(values, n_rows, str(Message("{covariates}, {!r}", name)))
    if labels.ndim != 1:
        raise DataError(Message("{covariates}, {!r}: one value for each row is needed.", name))
    missing, data = np.ma.getmaskarray(labels).copy(), np.ma.getdata(labels)
    if is_text(data):
        words, place = np.unique(np.char.strip(texts_of(data)), return_inverse=True)
        known = [word for word in words.tolist() if word and not stands_for_missing(word)]
        missing |= ~np.isin(words, known)[place]
        data = words[place]
        if not is_factor and all(map(is_number, known)):
            data = np.zeros(n_rows)
            data[~missing] = words[place[~missing]].astype(float)
    if missing.all():
        return np.ma.MaskedArray(np.zeros(n_rows), missing)
    if is_factor and not is_text(data):
        return np.ma.MaskedArray(texts_of(data), missing)
    if is_text(data):
        return np.ma.MaskedArray(data, missing)
    numbers = np.where(missing, 0.0, data.astype(np.float64))
    broken = np.flatnonzero(~np.isfinite(numbers))
    if broken.size:
        raise DataError(
            Message("{covariates}, {!r}, row {}: {} is no finite number.", name, broken[0], numbers[broken[0]])
        )
    return np.ma.MaskedArray(numbers, missing)


class Widened(View):
    """The rows of a source with more columns behind its own.

    Parameters
    ----------
    source : Source
        The source to read.
    columns : ndarray of shape (n_rows, k)
        The further columns.
    names : sequence of str
        Their names.
    """

    def __init__(self, source: Source, columns: np.ndarray, names: Sequence[str]) -> None:
        super().__init__(source)
        self._columns, k = columns.astype(source.dtype), columns.shape[1]
        self.n_features = source.n_features + k
        own = source.column_names or tuple(f"bin {place}" for place in range(source.n_features))
        self.column_names = (*own, *names)
        self.row_bytes = source.row_bytes + k * (source.dtype.itemsize + (4 if source.is_sparse else 0))
        self.held_bytes = source.held_bytes + source.row_bytes
        self.covariates = None

    def take(self, rows: np.ndarray) -> Rows:
        return side_by_side(self.whole.take(rows), self._columns[rows])

    def fingerprint(self) -> JSON:
        """Return the fingerprint of the rows, together with a digest of the further columns."""
        whole = self.whole.fingerprint()
        return {**whole, "shape": [self.n_rows, self.n_features], "covariates": digest(self._columns)}

    def _changed(self, chunk: Chunk) -> Chunk:
        own = self._columns[chunk.start : chunk.start + chunk.X.shape[0]]
        return replace(chunk, X=side_by_side(chunk.X, own))


def side_by_side(rows: Rows, columns: np.ndarray) -> Rows:
    """Return rows (n, p), dense or CSR, with dense columns (n, k) behind them."""
    columns = columns.astype(rows.dtype, copy=False)
    return _arrays.stack_columns([rows, _arrays.to_sparse(columns) if _arrays.is_sparse(rows) else columns])


def with_covariates(X: object, covariates: object) -> Source:
    """Return rows with covariates beside them, for a model that takes them: ``model.predict(with_covariates(X, C))``.

    Parameters
    ----------
    X : array, sparse matrix, data frame, path or Source of n rows
        The counts.
    covariates : array, data frame or mapping of n rows, or str or sequence of str
        The covariates: their values, in the order of the rows, or the names of columns of X, see
        ``HistogramClassifier``. The columns of an array are called "covariate 0", "covariate 1", ...

    Returns
    -------
    Source
        The rows, with their covariates.

    Raises
    ------
    DataError
        If their numbers of rows differ, a covariate is no number and no category, or there is no column of a name.

    Examples
    --------
    >>> import numpy as np
    >>> rows = with_covariates(np.eye(3), {"age": [30, 40, 50], "sex": ["F", "M", None]})
    >>> rows.covariates.names
    ('age', 'sex')
    """
    if names_columns(covariates):
        aside = columns_aside(covariates)
        source = X if isinstance(X, Source) else readers().open_source(X, with_labels=False, aside=aside)
        table = table_of_columns(source, covariates)
    else:
        source = X if isinstance(X, Source) else readers().open_source(X, with_labels=False)
        table = table_of_values(covariates, source.n_rows + source.n_left_out)
    return beside(source, table)


def names_columns(covariates: object) -> TypeGuard[str | Sequence[str]]:
    """Return whether covariates are names of columns, and not values.

    >>> names_columns("age,sex"), names_columns(["age"]), names_columns(np.eye(2)), names_columns(None)
    (True, True, False, False)
    """
    if isinstance(covariates, str):
        return True
    return isinstance(covariates, list | tuple) and all(isinstance(name, str) for name in covariates)


def columns_aside(words: str | Sequence[str]) -> list[str]:
    """Return the columns that covariates name in the data themselves, which are no bins.

    >>> columns_aside("age,C(batch)"), columns_aside("meta.tsv::age")
    (['age', 'batch'], [])
    """
    return [unwrapped(name)[0] for name in covariate_names(words) if "::" not in name]


def beside(source: Source, covariates: CovariateTable) -> Source:
    """Return the source with covariates of its rows, or of all rows of its data, of which it leaves some out."""
    n_rows = covariates.n_rows
    if n_rows != source.n_rows:
        places = source.places_in_file()
        if n_rows != source.n_rows + source.n_left_out or int(places.max()) >= n_rows:
            raise DataError(
                Message(
                    "{covariates} has {:,} rows, but {} has {:,}: give one for each row, in their order.",
                    n_rows,
                    source.name,
                    source.n_rows,
                )
            )
        covariates = covariates.take(places)
    source = copy(source)
    source.covariates = covariates
    pairs = zip(covariates.names, covariates.values, strict=True)
    gaps = [f"{name} in {np.ma.count_masked(values):,}" for name, values in pairs if np.ma.count_masked(values)]
    if gaps:
        told = f"covariates are missing: {', '.join(gaps)} of {source.n_rows:,} rows."
        source.notes = (*source.notes, f"{told} A number stands at its mean there.")
    return source
