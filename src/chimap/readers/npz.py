"""An ``.npz`` file of dense rows or of CSR parts, decompressed as it is read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap._validation import DataError
from chimap.data.labels import Labels, clean_labels
from chimap.data.rows import check_columns, chunk_dtype, csr_row_bytes, csr_rows, matrix_shape, row_ranges
from chimap.data.source import Chunk, StoredSource
from chimap.readers.io.files import split_member
from chimap.readers.io.numpy_files import Archive
from chimap.readers.label_files import one_column, read_labels
from chimap.readers.stored_arrays import label_beside, names_beside
from chimap.readers.stored_matrices import check_borders

CSR_PARTS = ("data", "indices", "indptr", "shape")


class NpzSource(StoredSource):
    """The rows of an ``.npz`` file: ``X``, or the parts of a CSR matrix, or a named member.

    Members are decompressed while they are read, again in each pass, so that memory does not grow with the file.
    Members of up to 64 MiB together are decompressed once and kept, in their stored type. CSR parts are ``data``,
    ``indices``, ``indptr`` and ``shape``, as ``scipy.sparse.save_npz`` writes them. Names of columns are
    ``column_names``, ``feature_names``, ``columns`` or ``vocabulary``.

    Parameters
    ----------
    path : str or path
        The file, or ``file.npz::member`` for a dense array of another name than ``X``.
    labels : str, array or file of labels, default=None
        ``"::member"`` or the name of a member of this file, or an array or file, see ``read_labels``. None takes ``y``
        from this file if it is there.
    member : str, default=None
        The array of the rows, an alternative to ``::member``; for CSR parts the beginning of their names, such as
        ``train_``.
    id : str or int, default=None
        The member that names the rows. None takes ``row_ids``, ``ids``, ``row_names`` or ``sample_id``.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    DataError
        If the archive is damaged or lacks an array; the message names file and member.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/two.npz", x_train=np.eye(3), y_train=[0, 1, 2])
    ...     source = NpzSource(f"{folder}/two.npz::x_train", labels="::y_train")
    ...     source.n_rows, source.labels()
    (3, array([0, 1, 2]))
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        labels: Labels = None,
        member: str | None = None,
        *,
        id: str | int | None = None,
    ) -> None:
        file, member_of_path = split_member(path)
        member = member or member_of_path
        archive = Archive(file)
        self.path = self._stored = archive.path
        self.name = self.path.name if member is None else f"{self.path.name}::{member}"
        self._rows = _find_rows(archive, member)
        self.n_rows, self.n_features = self._rows.n_rows, self._rows.n_features
        self.dtype, self.is_sparse = self._rows.dtype, self._rows.is_sparse
        self.row_bytes = self._rows.row_bytes
        self.column_names, self.row_ids = names_beside(
            archive.members, archive.read, (self.n_rows, self.n_features), str(self.path), id
        )
        where, shape_of = str(self.path), lambda name: archive.header(name).shape
        label, column, self.notes = label_beside(
            labels, archive.members, shape_of, self.n_rows, "", member or "X", where
        )
        if label is None:
            self._y = read_labels(labels, self.n_rows)
        else:
            at = f"labels in {where}::{label}"
            self._y = clean_labels(one_column(archive.read(label), column, at), self.n_rows, at)
        used = {label, str(id).removeprefix("::")}
        self.columns_aside = tuple(
            name for name in archive.members if name not in used and self._may_be_column(archive, name)
        )

    def _may_be_column(self, archive: Archive, member: str) -> bool:
        """Return whether an array has one value per row."""
        try:
            header = archive.header(member)
        except DataError:
            return False
        return header.shape == (self.n_rows,) and header.dtype.kind in "iufbUS"

    def chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        start = 0
        for X in self._rows.blocks(row_ranges(self.n_rows, chunk_rows)):
            yield self._chunk(X, start)
            start += X.shape[0]
        self.path.check_unchanged()


def _find_rows(archive: Archive, member: str | None) -> _DenseMember | _CsrMember:
    prefixes = _prefixes(archive)
    if member is not None and member not in archive.members and member in prefixes:
        return _CsrMember(archive, member)
    if member is not None or "X" in archive.members:
        return _DenseMember(archive, member or "X")
    if "format" in archive.members:
        kind = str(archive.read("format").astype(str).item())
        if kind != "csr":
            raise DataError(
                f"{archive.path}: a sparse matrix in format {kind!r}; rows can be read in format 'csr' only. "
                "Save X.tocsr()."
            )
    if "" in prefixes:
        return _CsrMember(archive, "")
    choices = openable(archive)
    hint = (
        f"Name the rows as {' or '.join(repr(f'{archive.path.name}::{name}') for name in choices[:6])}, and their "
        "labels as '::' followed by a member."
        if choices
        else "None of them holds rows."
    )
    raise DataError(
        f"{archive.path}: no array X and no CSR parts ({', '.join(CSR_PARTS)}); it holds {archive.listing()}. {hint}"
    )


def openable(archive: Archive) -> list[str]:
    """Return the names that can follow ``::`` as rows: arrays of two axes or more, and prefixes of CSR parts."""
    prefixes = _prefixes(archive)
    csr_members = {prefix + part for prefix in prefixes for part in CSR_PARTS}
    dense = [name for name in archive.members if name not in csr_members and _holds_rows(archive, name)]
    return sorted([*(prefix for prefix in prefixes if prefix), *dense], key=archive.members_order)


def _holds_rows(archive: Archive, name: str) -> bool:
    try:
        header = archive.header(name)
    except DataError:
        return False
    return len(header.shape) >= 2 and header.dtype.kind in "fiub"


def _prefixes(archive: Archive) -> list[str]:
    """Return the prefixes of the names of CSR parts, "" for ``data`` itself."""
    starts = [name.removesuffix("indptr") for name in archive.members if name.endswith("indptr")]
    return [start for start in starts if all(start + part in archive.members for part in CSR_PARTS)]


class _DenseMember:
    is_sparse = False

    def __init__(self, archive: Archive, member: str) -> None:
        where = f"{archive.path}::{member}"
        header = archive.header(member)
        self.n_rows, self.n_features = matrix_shape(header.shape, where)
        if header.fortran_order and self.n_features > 1:
            raise DataError(
                f"{where}: stored in Fortran order, so its rows cannot be read one after the other. "
                f"Save it as np.savez(path, {member}=np.ascontiguousarray(X)), or as .npy."
            )
        self.dtype = chunk_dtype(header.dtype, where)
        self.row_bytes = float(self.n_features * self.dtype.itemsize)
        self._archive, self._member = archive, member
        archive.hold([member])

    def blocks(self, ranges: Iterable[tuple[int, int]]) -> Iterator[np.ndarray]:
        with self._archive.stream(self._member) as values:
            for start, stop in ranges:
                rows = values.take((stop - start) * self.n_features).reshape(-1, self.n_features)
                yield _arrays.as_rows(rows, self.dtype)


class _CsrMember:
    is_sparse = True

    def __init__(self, archive: Archive, prefix: str) -> None:
        shape = tuple(_whole_numbers(archive, f"{prefix}shape").tolist())
        self.n_rows, self.n_features = matrix_shape(shape, str(archive.path))
        self._archive, self._data, self._indices = archive, f"{prefix}data", f"{prefix}indices"
        values, columns = archive.header(self._data), archive.header(self._indices)
        self._indptr = _whole_numbers(archive, f"{prefix}indptr")
        sizes = [values.shape, columns.shape]
        check_borders(self._indptr, self.n_rows, "rows", sizes, f"{archive.path}::{prefix}indptr")
        if columns.dtype.kind not in "iu":
            raise DataError(f"{archive.path}::{self._indices}: expected whole numbers, got dtype {columns.dtype}.")
        self.dtype = chunk_dtype(values.dtype, f"{archive.path}::{self._data}")
        self.row_bytes = csr_row_bytes(int(self._indptr[-1]), self.n_rows, self.dtype)
        archive.hold([self._data, self._indices])

    def blocks(self, ranges: Iterable[tuple[int, int]]) -> Iterator[Rows]:
        with self._archive.stream(self._data) as values, self._archive.stream(self._indices) as columns:
            for start, stop in ranges:
                indptr = self._indptr[start : stop + 1]
                count = int(indptr[-1] - indptr[0])
                data, indices = values.take(count), columns.take(count)
                check_columns(indices, indptr, start, self.n_features, str(self._archive.path))
                yield csr_rows(data, indices, indptr, self.n_features, self.dtype)


def _whole_numbers(archive: Archive, member: str) -> np.ndarray:
    """Return a member of whole numbers as int64, of shape (n,). Raises DataError rather than round other numbers."""
    values = archive.read(member).reshape(-1)
    if values.dtype.kind not in "iuf" or np.any(values != np.round(values)) or np.any(np.abs(values) >= 2.0**63):
        raise DataError(f"{archive.path}::{member}: expected whole numbers. Write the file again.")
    return values.astype(np.int64)
