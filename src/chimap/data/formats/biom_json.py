"""BIOM tables of version 1, which are JSON. Samples are rows."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from chimap._types import JSON
from chimap._validation import DataError
from chimap.data.formats.biom_text import UNIQUE
from chimap.data.formats.json_members import JsonMembers
from chimap.data.formats.stored_matrices import checked_names
from chimap.data.io.files import existing_file, file_digest
from chimap.data.labels import Labels, read_labels, shown
from chimap.data.row_file import OrderedSource, RowFile
from chimap.data.rows import matrix_shape

_REQUIRED = ("format", "matrix_type", "shape", "data", "rows", "columns")


class BiomJsonSource(OrderedSource):
    """The samples of a BIOM file of version 1 (JSON).

    Opening the file reads it twice, a piece at a time, and writes the matrix to a temporary file in the order of
    samples.

    Parameters
    ----------
    path : str or path
        The file; addresses work too.
    labels : array or file of labels, default=None
        Labels of the samples, see ``read_labels``.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    DataError
        For another version, for parts that are damaged, cut off or missing, and for ids that come twice.

    References
    ----------
    biom-format.org, "The biom file format: Version 1.0".
    """

    dtype = np.dtype(np.float64)

    def __init__(self, path: str | os.PathLike[str], labels: Labels = None) -> None:
        self.path = existing_file(path)
        self.name = self.path.name
        table = self._described()
        self._shape = self._checked_shape(table)
        self._is_sparse_text = table["matrix_type"] == "sparse"
        self.n_rows, self.n_features = matrix_shape(self._shape[::-1], str(self.path))
        self.row_ids = checked_names(
            np.array(table["columns"]), self.n_rows, f"{self.path}, columns", UNIQUE[0]
        )
        names = np.array(table["rows"])
        self.column_names = tuple(
            checked_names(names, self.n_features, f"{self.path}, rows", UNIQUE[1]).tolist()
        )
        self._y = read_labels(labels, self.n_rows)
        self.has_labels = self._y is not None
        self._open()

    def _described(self) -> JSON:
        """Return all members but the data; of rows and columns, the ids."""
        table: JSON = {}
        with self._members() as members:
            for key in members:
                if key == "data":
                    members.skip_lists()
                    table[key] = None
                elif key in ("rows", "columns"):
                    table[key] = self._ids(members.items(), key)
                else:
                    table[key] = members.value()
        missing = [key for key in _REQUIRED if key not in table]
        if missing:
            raise DataError(
                f"{self.path}: no {', '.join(missing)}; there are {shown(sorted(table))}. Write it again."
            )
        if not str(table["format"]).rpartition(" ")[2].startswith("1."):
            raise DataError(
                f"{self.path}: {table['format']}; expected version 1 in JSON. Write it again with: biom convert."
            )
        if table["matrix_type"] not in ("sparse", "dense"):
            raise DataError(
                f"{self.path}: matrix_type {table['matrix_type']!r}; expected sparse or dense. Write it again."
            )
        return table

    def _ids(self, entries: Iterator[object], key: str) -> list[str]:
        ids = []
        for place, entry in enumerate(entries):
            if not isinstance(entry, dict) or "id" not in entry:
                raise DataError(
                    f"{self.path}, {key}, entry {place}: {str(entry)[:60]}; expected an object with an 'id'. Write it "
                    "again."
                )
            ids.append(str(entry["id"]))
        return ids

    def _checked_shape(self, table: JSON) -> tuple[int, int]:
        """Return the numbers of observations and samples."""
        ids = len(table["rows"]), len(table["columns"])
        if table["shape"] != [*ids]:
            raise DataError(
                f"{self.path}: shape {table['shape']}, but {ids[0]} rows and {ids[1]} columns. Write it again."
            )
        return ids

    def _filled(self) -> RowFile:
        file = RowFile(self.n_rows, self.n_features, self.path.size // 8, self.dtype)
        seen = 0
        with self._members() as members:
            for key in members:
                if key != "data":
                    members.skip()
                    continue
                for batch in members.lists():
                    file.add(*self._entries(batch, seen))
                    seen += len(batch)
        if not self._is_sparse_text and seen != self.n_features:
            raise self._misfit(seen, f"{seen} lists; expected {self.n_features}")
        file.finish()
        return file

    def _entries(self, batch: list[object], seen: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return samples, observations and values of consecutive entries of the data."""
        try:
            numbers = np.array(batch, dtype=np.float64)
        except (ValueError, TypeError) as error:
            raise self._misfit(seen, str(error)) from error
        width = 3 if self._is_sparse_text else self.n_rows
        if numbers.shape != (len(batch), width):
            raise self._misfit(seen, f"lists of other lengths than {width}")
        if not self._is_sparse_text:
            observations, samples = np.nonzero(numbers)
            return samples, observations + seen, numbers[observations, samples]
        places, sizes = numbers[:, :2], np.array(self._shape)
        if np.any(places != np.floor(places)):
            raise self._misfit(seen, "an index is not a whole number")
        wrong = np.flatnonzero(((places < 0) | (places >= sizes)).any(axis=1))
        if wrong.size:
            raise self._misfit(seen + int(wrong[0]), "the indices {:g} and {:g}".format(*places[wrong[0]]))
        return places[:, 1].astype(np.int64), places[:, 0].astype(np.int64), numbers[:, 2]

    def _misfit(self, entry: int, fault: str) -> DataError:
        return DataError(
            f"{self.path}, from entry {entry:,} on: 'data' does not fit the shape {[*self._shape]} ({fault}). Write it "
            "again."
        )

    @contextmanager
    def _members(self) -> Iterator[JsonMembers]:
        """Open the members of the file for the block."""
        try:
            with self.path.open() as file, io.TextIOWrapper(file, "utf-8") as text:
                yield JsonMembers(text)
        except (ValueError, RecursionError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"{self.path}: not JSON ({error}). It is cut off or damaged; copy it again."
            ) from error

    def _content(self) -> JSON:
        return {"bytes": self.path.size, "digest": file_digest(self.path)}

    def _check_unchanged(self) -> None:
        self.path.check_unchanged()
