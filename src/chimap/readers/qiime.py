"""QIIME 2: tables of metadata as text, and artifacts (``.qza``) of feature tables and of metadata."""

from __future__ import annotations

import csv
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from chimap._messages import shown
from chimap._types import JSON, Group
from chimap._unicode import composed
from chimap._validation import DataError
from chimap.data.label_kinds import as_number, is_missing
from chimap.data.labels import Labels, numbers_or_text
from chimap.data.rows import check_distinct
from chimap.data.source import Source
from chimap.readers.biom import BiomJsonSource, BiomSource
from chimap.readers.columns import BATCH, Values
from chimap.readers.io.containers import Hdf5Container
from chimap.readers.io.encodings import as_utf8, encoding_of, no_text, why_no_text
from chimap.readers.io.files import (
    LARGEST_RATIO,
    LEAST_UNPACKED,
    DataFile,
    base_name,
    existing_file,
    needed,
    plain_path,
    read_piece,
)
from chimap.readers.records import Records, in_batches

# Names of the first column; "id" and "sample_name" are those of many other tables too.
_ID_HEADINGS = ("sampleid", "sample id", "sample-id", "featureid", "feature id", "feature-id")  # in any case
_ID_REMARKS = ("#SampleID", "#Sample ID", "#OTUID", "#OTU ID")
_USUAL_ID_HEADINGS = ("id", "sample_name")
_DIRECTIVE = "#q2:"
_TYPES = ("categorical", "numeric")


class QiimeMetadata(Records):
    """A table of metadata of QIIME 2: tabs between the cells, ids in the first column.

    Lines whose first cell begins with ``#`` are remarks, besides the heading and ``#q2:types``, which says of each
    column whether it is ``numeric`` or ``categorical``. Blanks around a cell do not count, a blank cell is a missing
    value, and so are cells that a line lacks at its end. A column without a type holds numbers if all of its cells
    print back from numbers, else text. Reference: QIIME 2 documentation, "Metadata in QIIME 2".
    """

    def __init__(self, address: str) -> None:
        file = self.stored = existing_file(address)
        self.address = file.address
        lines = _lines(file)
        number, heading = next(
            (number, cells) for number, cells in lines if not _is_remark(cells) or cells[0] in _ID_REMARKS
        )
        self.names = [composed(name) for name in heading]
        self.names[0] = self.names[0] or "sample-id"  # artifacts of SampleData leave the heading of the ids blank
        where = f"{file}, line {number}"
        if "" in self.names:
            raise DataError(
                f"{where}: column {self.names.index('')} of the heading has no name. Give it one, or remove it."
            )
        check_distinct(self.names, where)
        types = [""] * len(heading)
        rows: list[list[str]] = []
        for number, cells in lines:
            if cells[0] == f"{_DIRECTIVE}types" or not _is_remark(cells):
                cells = self._whole_line(cells, number)
            if cells[0] == f"{_DIRECTIVE}types":
                types = self._types(cells, number)
            elif not _is_remark(cells):
                if not cells[0]:
                    raise DataError(f"{file}, line {number}: no id in {self.names[0]!r}. Fill it, or remove the line.")
                rows.append(cells)
        if not rows:
            raise DataError(f"{file}: no rows, only a heading. Write it again.")
        self._values = [[row[0] for row in rows]] + [
            self._column(name, kind, [row[place] for row in rows])
            for place, (name, kind) in enumerate(zip(self.names, types, strict=True))
            if place
        ]

    def batches(self, columns: list[str], n_rows: int = BATCH) -> Iterator[Values]:
        """Yield fields as ``Records`` does."""
        return in_batches({name: self._values[self.names.index(name)] for name in columns}, n_rows)

    def _whole_line(self, cells: list[str], number: int) -> list[str]:
        """Return the cells of a line, as many as the heading has."""
        if len(cells) > len(self.names):
            raise DataError(
                f"{self.address}, line {number}: {len(cells)} cells, but the heading has {len(self.names)}. Name "
                "the other columns, or remove their cells."
            )
        return cells + [""] * (len(self.names) - len(cells))

    def _types(self, cells: list[str], number: int) -> list[str]:
        types = [cell.lower() for cell in cells]
        wrong = next((place for place, kind in enumerate(types) if place and kind not in ("", *_TYPES)), None)
        if wrong is not None:
            raise DataError(
                f"{self.address}, line {number}: {cells[wrong]!r} is the type of {self.names[wrong]!r}; expected "
                f"{' or '.join(_TYPES)}, or a blank cell."
            )
        return types

    def _column(self, name: str, kind: str, cells: list[str]) -> list[object]:
        """Return the values of a column, None where a cell is blank."""
        where = f"{self.address}, column {name!r}"
        if kind == "numeric":
            for cell in cells:
                if cell and as_number(cell) is None:
                    raise DataError(f"{where}: {cell!r}, but {_DIRECTIVE}types says that it is numeric. Mend it.")
            return [as_number(cell) if cell else None for cell in cells]
        if kind == "categorical" or not any(cells):
            return [cell or None for cell in cells]
        values = numbers_or_text(cells, where)
        return [None if is_missing(value) else value for value in values.tolist()]


def is_qiime_metadata(file: DataFile) -> bool:
    """Return whether a text file is metadata of QIIME 2: by its heading, or by a line of ``#q2:types`` below that."""
    lines = _lines(file)
    for _, cells in lines:
        if cells[0] in _ID_REMARKS or cells[0].lower() in _ID_HEADINGS:
            return True
        if not _is_remark(cells):
            is_usual = cells[0].lower() in _USUAL_ID_HEADINGS
            return is_usual and next((below[0] for _, below in lines), "").startswith(_DIRECTIVE)
    return False


def _is_remark(cells: list[str]) -> bool:
    return cells[0].startswith("#")


def _lines(file: DataFile) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line that is not blank, without blank cells at its end."""
    number = 0
    with as_utf8(file, encoding_of(file)) as stream:
        while line := read_piece(file, stream, 0, f"line {number + 1}"):
            number += 1
            if reason := why_no_text(line):
                raise no_text(file, number, reason)
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            cells = [cell.strip() for cell in next(csv.reader([text], dialect="excel-tab"), [])]
            while cells and not cells[-1]:
                cells.pop()
            if cells:
                yield number, cells


_TABLE = "data/feature-table.biom"


def qza_source(path: str | os.PathLike[str], labels: Labels = None) -> Source:
    """Return a source for the samples of the feature table in an artifact of QIIME 2, a ``.qza`` file.

    An artifact is a zip archive with a folder named by its UUID: ``metadata.yaml`` says its type, and a type
    ``FeatureTable[...]`` has ``data/feature-table.biom``, which is BIOM of version 2, or of version 1 in the format
    BIOMV100DirFmt. Reference: QIIME 2 documentation, "Anatomy of an Archive".
    """
    address = plain_path(path)
    member = _member(address, lambda name: name == _TABLE, f"no {_TABLE}", "Give a FeatureTable, or export it.")
    unpacked = f"zip://{member}::{address}"
    with existing_file(unpacked).open() as file:
        is_json = file.read(1) == b"{"
    if not is_json:
        return QzaSource(address, labels)
    source = BiomJsonSource(unpacked, labels)
    source.name = base_name(address)
    return source


def artifact_metadata(address: str) -> QiimeMetadata:
    """Return the table in an artifact of metadata, such as ``ImmutableMetadata`` and ``SampleData[...]``."""
    remedy = "Give ImmutableMetadata or SampleData, or a table of metadata as text."
    member = _member(address, lambda name: re.fullmatch(r"data/[^/]+\.tsv", name), "no table data/*.tsv", remedy)
    return QiimeMetadata(f"zip://{member}::{address}")


def _member(address: str, is_wanted: Callable[[str], object], missing: str, remedy: str) -> str:
    """Return the path of a file in an artifact, given its path below the UUID. Raises DataError if there is none."""
    file = existing_file(address)
    try:
        with file.open() as opened, zipfile.ZipFile(opened) as archive:
            names = {name.partition("/")[2]: name for name in archive.namelist() if "/" in name}
            found = next(filter(is_wanted, names), None)
            if found is not None:
                return names[found]
            about = (
                archive.read(names["metadata.yaml"]).decode("utf-8", "replace") if "metadata.yaml" in names else None
            )
    except zipfile.BadZipFile as error:
        raise DataError(
            f"{address}: not a zip archive as artifacts of QIIME 2 are ({error}). It is cut off or damaged; copy it "
            "again."
        ) from error
    if about is None:
        raise DataError(f"{address}: {missing} as in artifacts of QIIME 2; there are {shown(sorted(names))}. {remedy}")
    kind = re.search(r"^type:\s*(.+?)\s*$", about, re.MULTILINE)
    raise DataError(f"{address}: an artifact of type {kind[1] if kind else 'unknown'}, which has {missing}. {remedy}")


class _Artifact(Hdf5Container):
    """The HDF5 file in an artifact, which is unpacked to a temporary file: HDF5 is not read in order."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self._unpacked: IO[bytes] | None = None

    def __getstate__(self) -> JSON:
        # A copy in another process unpacks the archive itself: the temporary file cannot be sent.
        return {**self.__dict__, "_unpacked": None}

    @contextmanager
    def opened(self) -> Iterator[Group]:
        h5py = needed("h5py", "HDF5 files")
        self.check_unchanged()
        if self._unpacked is None:
            self._unpacked = self._table()
        with self.naming(f", {_TABLE}"):
            root = h5py.File(self._unpacked.name, "r")
        with root:
            yield root

    def _table(self) -> IO[bytes]:
        """Return the feature table as a temporary file."""
        with self._file.open() as opened, zipfile.ZipFile(opened) as archive:
            member = next(entry for entry in archive.infolist() if entry.filename.partition("/")[2] == _TABLE)
            if member.file_size > max(LEAST_UNPACKED, LARGEST_RATIO * member.compress_size):
                raise DataError(
                    f"{self.address}: {_TABLE} unpacks to more than {LARGEST_RATIO} times its size, which tables do "
                    "not. If this is intended, unpack it first and name the unpacked file."
                )
            unpacked = tempfile.NamedTemporaryFile(prefix="chimap-qza-", suffix=".biom")  # noqa: SIM115, it lives on
            with archive.open(member) as packed:
                shutil.copyfileobj(packed, unpacked)
        unpacked.flush()
        return unpacked


class QzaSource(BiomSource):
    """The samples of a feature table of BIOM 2 in an artifact."""

    _kind = _Artifact
