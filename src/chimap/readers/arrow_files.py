"""Parquet and Arrow IPC files as parts of a data set: found, opened, read in batches, and named in each error."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np

from chimap import _threads
from chimap._messages import Message
from chimap._types import Group
from chimap._validation import DataError
from chimap.data.label_kinds import duration_as_text, time_as_text
from chimap.data.table import counting
from chimap.readers.io.files import DataFile, StoredFiles, existing_file, files_under, is_folder

if TYPE_CHECKING:
    import pyarrow as pa

PARQUET = (".parquet", ".pq")
IPC = (".feather", ".arrow", ".ipc")
# Parquet is read page by page, not a whole row group at once. Writers limit pages and dictionaries to 1 MiB each.
_PAGES_BYTES = 3 * 2**20
_BUFFER_BYTES = 2**16
_STREAM_MARK = b"\xff" * 4  # the first bytes of an IPC stream; an IPC file begins with the name of the format
_MISSING_KEY = "__HIVE_DEFAULT_PARTITION__"


def is_text_type(kind: pa.DataType) -> bool:
    """Return whether a type of Arrow is text, plain or dictionary-encoded."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_written_as_text(kind: pa.DataType) -> bool:
    """Return whether a text file has a type of Arrow as text: text and bytes of text, dates, times and durations."""
    from pyarrow import types

    plain = kind.value_type if types.is_dictionary(kind) else kind
    return is_text_type(kind) or bool(_is_binary(plain) or types.is_temporal(plain))


def _is_binary(kind: pa.DataType) -> bool:
    from pyarrow import types

    return any(
        test(kind)
        for test in (types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_binary_view)
    )


def may_be_classes(kind: pa.DataType) -> bool:
    """Return whether a type of Arrow is one that names of classes have: text, codes of a dictionary, or booleans."""
    from pyarrow import types

    return is_written_as_text(kind) or bool(types.is_dictionary(kind) or types.is_boolean(kind))


def is_list(kind: pa.DataType) -> bool:
    """Return whether a type of Arrow is a list, of fixed length or not."""
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def is_number(kind: pa.DataType) -> bool:
    """Return whether a type of Arrow is a number that numpy has too."""
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def is_decimal(kind: pa.DataType) -> bool:
    """Return whether a type of Arrow is a decimal number."""
    from pyarrow import types

    return bool(types.is_decimal(kind))


_MOST_DIGITS_OF_INT64 = 18
_UNITS = ("s", "ms", "us", "ns")  # of durations


def as_written(column: pa.Array, where: str) -> pa.Array:
    """Return a column as a text file would have it: bytes, dates and times as text, decimals as numbers.

    Times are as ``time_as_text`` has them. Text that is encoded by a dictionary stays encoded.
    Raises DataError, naming ``where``, for bytes that are not text in UTF-8.
    """
    import pyarrow
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind) and not is_text_type(kind):
        column = column.dictionary_decode()
        kind = column.type
    if types.is_decimal(kind):
        is_whole = kind.scale <= 0 and kind.precision <= _MOST_DIGITS_OF_INT64
        return column.cast(pyarrow.int64() if is_whole else pyarrow.float64())
    if types.is_temporal(kind):
        encoded = (column.combine_chunks() if hasattr(column, "chunks") else column).dictionary_encode()
        units = 10 ** (9 - 3 * _UNITS.index(kind.unit)) if types.is_duration(kind) else 0
        values = encoded.dictionary.cast(pyarrow.int64() if units else pyarrow.string()).to_pylist()
        texts = [duration_as_text(value * units) if units else time_as_text(value) for value in values]
        return pyarrow.array(texts, pyarrow.string()).take(encoded.indices)
    if not _is_binary(kind):
        return column
    try:
        return column.cast(pyarrow.binary()).cast(pyarrow.string())
    except pyarrow.ArrowInvalid as error:
        raise DataError(
            f"{where}: bytes that are not text in UTF-8 ({error}). Write the column as text, or leave it out."
        ) from error


def as_values(column: pa.ChunkedArray, where: str) -> np.ndarray:
    """Return the values of a column that is neither bins nor labels; text as objects, None where it is missing."""
    column = as_written(column, where)
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    return np.asarray(column.to_numpy(zero_copy_only=False))


def masked_values(column: pa.ChunkedArray) -> np.ma.MaskedArray:
    """Return a column that is not text as an array, masked where it is null; objects if they are no plain numbers."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    missing = column.is_null().to_numpy(zero_copy_only=False)
    if pyarrow.types.is_null(column.type):
        return np.ma.MaskedArray(np.zeros(len(column)), missing)
    if not pyarrow.types.is_primitive(column.type):
        return np.ma.MaskedArray(np.array([*column.to_pylist(), None], dtype=object)[:-1], missing)
    if column.null_count:
        column = column.fill_null(False if pyarrow.types.is_boolean(column.type) else 0)
    return np.ma.MaskedArray(column.to_numpy(zero_copy_only=False), missing)


def checked_codes(column: pa.ChunkedArray, where: str) -> np.ndarray:
    """Return the codes of a dictionary-encoded column, -1 where a value is missing; refuse codes it does not hold."""
    codes = column.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    if codes.size and (codes.min() < -1 or codes.max() >= len(column.dictionary)):
        raise DataError(f"{where}: a code outside its dictionary. The file is damaged; write it again.")
    return codes


class ArrowPart(ABC):
    """One file: its columns, and the number of rows of each of its row groups (record batches in IPC).

    Parameters
    ----------
    file : DataFile
        The file.
    keys : dict of str
        Partition keys from the names of its folders, ``{"year": "2024"}`` for ``year=2024/``, "" for a missing value.
    """

    def __init__(self, file: DataFile, keys: dict[str, str]) -> None:
        self.file, self.keys = file, keys
        self.schema: pa.Schema = None
        self.group_rows: list[int] = []

    @abstractmethod
    def batches(self, group: int, columns: list[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a row group as record batches. Raises DataError where they cannot be decoded."""

    @abstractmethod
    def held_bytes(self, columns: list[str], row_bytes: float) -> float:
        """Return the bytes that an open row group holds while ``columns`` are read as rows of ``row_bytes`` bytes."""

    @contextmanager
    def _naming(self, place: str = "") -> Iterator[None]:
        """Turn errors of the library into DataError with the file and the place."""
        import pyarrow

        try:
            yield
        except (pyarrow.ArrowException, OSError) as error:
            raise DataError(
                f"{self.file}{place}: cannot be read ({str(error).strip()}). The file is damaged, cut off or of "
                "another kind; copy or write it again."
            ) from error

    @contextmanager
    def _opened(self) -> Iterator[Group]:
        import pyarrow

        if not self.file.is_local:
            with self.file.open() as opened:
                yield pyarrow.PythonFile(opened, mode="r")
            return
        self.file.check_unchanged()
        with pyarrow.OSFile(self.file.address) as opened:
            yield opened


class ParquetPart(ArrowPart):
    """A Parquet file."""

    def __init__(self, file: DataFile, keys: dict[str, str]) -> None:
        super().__init__(file, keys)
        from pyarrow import parquet

        with self._opened() as opened, self._naming():
            reader = parquet.ParquetFile(opened)
            self.schema = reader.schema_arrow
            groups = [reader.metadata.row_group(i) for i in range(reader.num_row_groups)]
        self.group_rows = [group.num_rows for group in groups]
        self._leaf_bytes: dict[str, int] = {}  # by path of the column, in the row group where it is largest
        for group in groups:
            for leaf in (group.column(i) for i in range(group.num_columns)):
                # A dictionary is held twice: as it was read, and as values.
                size = min(_PAGES_BYTES, 2 * leaf.total_uncompressed_size + leaf.total_compressed_size) + _BUFFER_BYTES
                self._leaf_bytes[leaf.path_in_schema] = max(size, self._leaf_bytes.get(leaf.path_in_schema, 0))

    def batches(self, group: int, columns: list[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield record batches as ``Part`` does."""
        from pyarrow import parquet

        with self._opened() as opened, self._naming(f", row group {group}"):
            with _memory_of_the_system():
                reader = parquet.ParquetFile(
                    opened, buffer_size=_BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True
                )
            yield from reader.iter_batches(
                batch_rows, row_groups=[group], columns=columns, use_threads=_threads.count() > 1
            )

    def held_bytes(self, columns: list[str], row_bytes: float) -> float:
        """Return the bytes of decoded pages as ``Part`` does; they do not depend on the rows."""
        wanted = set(columns)
        return sum(
            size for path, size in self._leaf_bytes.items() if path in wanted or path.partition(".")[0] in wanted
        )


class IpcPart(ArrowPart):
    """A Feather file of version 2, that is, an Arrow IPC file; its record batches are the row groups."""

    def __init__(self, file: DataFile, keys: dict[str, str]) -> None:
        super().__init__(file, keys)
        from pyarrow import ipc

        with self._opened() as opened, self._naming():
            if opened.read(4) == _STREAM_MARK:
                raise DataError(
                    f"{file}: an Arrow IPC stream, which can only be read from its start; write it with "
                    "pyarrow.ipc.new_file, or as Parquet."
                )
            opened.seek(0)
            self.schema = ipc.open_file(opened).schema
            if not self.schema.names:
                raise DataError(f"{file}: no columns. Write it again, with bins.")
            # The number of rows of a batch is only in its message, so read it with the smallest column alone.
            reader = ipc.open_file(opened, options=ipc.IpcReadOptions(included_fields=[self._smallest()]))
            self.group_rows = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]

    def batches(self, group: int, columns: list[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield record batches as ``Part`` does."""
        from pyarrow import ipc

        with self._opened() as opened, self._naming(f", row group {group}"):
            included = [self.schema.get_field_index(name) for name in columns]
            options = ipc.IpcReadOptions(included_fields=included, use_threads=_threads.count() > 1)
            batch = ipc.open_file(opened, options=options).get_batch(group)
            batch.validate()
            for start in range(0, batch.num_rows, batch_rows):
                yield batch.slice(start, batch_rows)

    def held_bytes(self, columns: list[str], row_bytes: float) -> float:
        """Return the bytes of a whole batch, twice because decompression makes a copy, as ``Part`` does."""
        return 2 * row_bytes * max(self.group_rows, default=0)

    def _smallest(self) -> int:
        from pyarrow import types

        bits = [kind.bit_width if types.is_primitive(kind) else 2**31 for kind in self.schema.types]
        return min(range(len(bits)), key=bits.__getitem__)


@contextmanager
def _memory_of_the_system() -> Iterator[None]:
    """Make readers that are opened in the block decode into memory of the system's allocator.

    Arrow's own pool keeps freed memory, separately for each of its threads: half as much again as the budget of a small
    fit. A reader takes the pool that is the default when it is made; there is no other way to choose one.
    """
    import pyarrow

    usual = pyarrow.default_memory_pool()
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    try:
        yield
    finally:
        pyarrow.set_memory_pool(usual)


def find_parts(address: str) -> list[ArrowPart]:
    """Return the opened parts of a file or folder, in the order of their paths.

    Raises FileNotFoundError if the path does not exist, and DataError for a folder without parts and for a part that
    cannot be opened.
    """
    return [
        (IpcPart if file.suffix in IPC else ParquetPart)(existing_file(file), _keys(inner))
        for inner, file in part_files(address).items()
    ]


def files_of(parts: Sequence[ArrowPart]) -> StoredFiles:
    """Return the files of parts, in their order."""
    return StoredFiles({f"{place} {part.file.name}": part.file for place, part in enumerate(parts)})


def part_files(address: str) -> dict[str, DataFile]:
    """Return the files of the parts of a folder by their path in it, or a single file by an empty path.

    In folders, names that begin with a point or an underscore are skipped, and so are files with other endings.
    """
    if not is_folder(address):
        return {"": existing_file(address)}
    files = {
        inner: file
        for inner, file in files_under(address).items()
        if inner.lower().endswith(PARQUET + IPC) and not any(step[0] in "._" for step in inner.split("/"))
    }
    if not files:
        raise DataError(
            Message(
                "{}: a folder without parts; expected files that end in {}, or images in a folder for each class. "
                "Name the folder that holds them, or a file; a folder of texts for each class is read with {}.",
                address,
                ", ".join(PARQUET + IPC),
                counting("WordCounts", "text"),
            )
        )
    return files


def _keys(inner: str) -> dict[str, str]:
    pairs = (step.partition("=") for step in inner.split("/")[:-1])
    return {key: "" if value == _MISSING_KEY else unquote(value) for key, equals, value in pairs if equals}
