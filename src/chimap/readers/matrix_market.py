"""Matrix Market text, which scipy reads as a whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap._validation import DataError
from chimap.data.labels import Labels
from chimap.data.rows import csr_row_bytes, csr_rows, matrix_shape
from chimap.data.source import BLOCK_BYTES, WholeSource
from chimap.readers.io.files import COMPRESSIONS, LARGEST_RATIO, LEAST_UNPACKED, decompressed, existing_file, read_piece
from chimap.readers.label_files import read_labels

if TYPE_CHECKING:
    import scipy.sparse as sp


_COORDINATE_BYTES = 16 + 12  # an entry as it is read (row, column and value), and the same entry in CSR


class MatrixMarketSource(WholeSource):
    """The rows, or the columns, of a Matrix Market file (``.mtx``) in coordinate or array layout.

    The first pass reads the whole matrix into memory, as CSR or as an array, where it stays. ``held_bytes`` gives the
    size beforehand, so that a fit with too small a memory budget refuses; write such data in another format.

    Rows are float64. Entries of a pattern are ones; repeated entries are added.

    Parameters
    ----------
    path : str or path
        The file, compressed if its name ends in ``.gz``, ``.bz2``, ``.xz`` or ``.zst``; addresses work too.
    labels : array or file of labels, default=None
        Labels of the rows, see ``read_labels``.
    transpose : bool, default=False
        Whether the columns of the file are the rows, as in tables of genes by cells.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    DataError
        If the matrix cannot be read; the message names the file and, where the parser knows it, the line.

    Examples
    --------
    >>> import tempfile
    >>> import scipy.io
    >>> import scipy.sparse as sp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scipy.io.mmwrite(f"{folder}/rows.mtx", sp.csr_array(np.eye(3)))
    ...     source = MatrixMarketSource(f"{folder}/rows.mtx", labels=[0, 1, 0])
    ...     [chunk.X.shape for chunk in source.chunks(2)]
    [(2, 3), (1, 3)]
    """

    dtype = np.dtype(np.float64)

    def __init__(self, path: str | os.PathLike[str], labels: Labels = None, *, transpose: bool = False) -> None:
        from scipy.io import mminfo

        self._matrix_file = self._stored = existing_file(path)
        self.name, self._transpose = self._matrix_file.name, transpose
        n_rows, n_columns, entries, layout, field, symmetry = self._parsed(mminfo)
        if field == "complex":
            raise DataError(f"{self._matrix_file}: complex numbers, expected real ones. Write the magnitudes.")
        shape = (n_columns, n_rows) if transpose else (n_rows, n_columns)
        self.n_rows, self.n_features = matrix_shape(shape, str(self._matrix_file))
        self.is_sparse = layout == "coordinate"
        stored = entries if symmetry == "general" else 2 * entries
        self._check_size(4 * entries if self.is_sparse else n_rows * n_columns, stored or n_rows * n_columns)
        if self.is_sparse:
            self.row_bytes = csr_row_bytes(stored, self.n_rows, self.dtype)
            self.held_bytes = float(_COORDINATE_BYTES * stored)
        else:
            self.row_bytes = 8.0 * self.n_features
            self.held_bytes = 2 * self.row_bytes * self.n_rows
        self._y = read_labels(labels, self.n_rows)

    def _check_size(self, least_bytes: int, n_numbers: int) -> None:
        """Refuse a heading that promises more than the file can hold, before memory is allocated for it."""
        file = self._matrix_file
        is_packed = file.suffix in COMPRESSIONS[1:]
        most = max(LEAST_UNPACKED, LARGEST_RATIO * file.size) if is_packed else file.size
        if least_bytes > most:
            raise DataError(
                f"{file}: its heading promises {n_numbers:,} numbers, more than {most:,} bytes can hold; it cannot be "
                "read. Copy or write it again."
            )

    def _whole(self) -> Rows:
        from scipy.io import mmread

        self._refuse_nul()
        X: Any = self._parsed(mmread)
        X = _arrays.as_rows(X.T if self._transpose else X, self.dtype)
        return csr_rows(X.data, X.indices, X.indptr, self.n_features, self.dtype) if self.is_sparse else X

    def _refuse_nul(self) -> None:
        """Refuse NUL bytes: scipy's reader runs past the end of its memory at one, which ends the process."""
        with decompressed(self._matrix_file) as file:
            while piece := read_piece(self._matrix_file, file, BLOCK_BYTES, "where it was scanned"):
                if b"\0" in piece:
                    raise DataError(f"{self._matrix_file}: not text, it holds NUL bytes. It is damaged; copy it again.")

    def _parsed(self, parse: Callable[[_Forward], np.ndarray | sp.coo_array]) -> np.ndarray | sp.coo_array:
        with decompressed(self._matrix_file) as file:
            try:
                return parse(_Forward(file))
            except (ValueError, OverflowError, EOFError, OSError) as error:
                raise DataError(
                    f"{self._matrix_file}: cannot be read ({error}). It is damaged, cut off or not Matrix Market; copy "
                    "it again, or write it with scipy.io.mmwrite."
                ) from error


class _Forward:
    """A stream that cannot seek.

    Given a stream that can, scipy's parser seeks back to where it stopped in a destructor, and an error there ends the
    process.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)
