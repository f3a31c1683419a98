"""Open a set of images: folders, archives and tables."""

from __future__ import annotations

import csv
import json
import os
import threading
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from chimap._validation import DataError
from chimap.data.labels import Labels, check_labels, numbers_or_text
from chimap.data.table import only_label
from chimap.images.reading.decoding import ImageError
from chimap.images.reading.files import FolderFiles, ImageFiles, open_files
from chimap.images.reading.image_set import ImageSet
from chimap.readers.arrow_files import PARQUET, ArrowPart, find_parts
from chimap.readers.image_names import ENDINGS, TAR, ZIP, is_image_name
from chimap.readers.io.files import existing_file, is_folder, needed, plain_path
from chimap.readers.label_files import read_labels

if TYPE_CHECKING:
    import pyarrow as pa


# folders at the top that are splits of a data set rather than classes
SPLITS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}


def class_folders(files: ImageFiles) -> ImageSet:
    """Return the images of CLASS/IMAGE, or of SPLIT/CLASS/IMAGE with splits called train, val or test.

    A folder around all of these is skipped. The class is the first folder; deeper ones are ignored. If no image is in a
    folder, there are no labels. Raises DataError if there are no images, and if some are in class folders and others
    are not.
    """
    names = [path for path in files.paths if is_image_name(path)]
    if not names:
        raise DataError(
            f"{files.name}: no images in it, of {len(files.paths)} files. Images end in {', '.join(ENDINGS)}; put them "
            "into one folder for each class."
        )
    steps = [name.split("/") for name in _inside(names)]
    splits = None
    if all(len(s) > 1 and s[0].lower() in SPLITS for s in steps):
        splits = np.array([SPLITS[s[0].lower()] for s in steps])
        steps = [s[1:] for s in steps]
    return ImageSet(files, names, _classes(files, names, steps), splits)


def _inside(names: list[str]) -> list[str]:
    """Return the paths without the folders that hold everything, as long as a folder remains for the class."""
    while all(name.count("/") >= 2 for name in names) and len({n.partition("/")[0] for n in names}) == 1:
        if names[0].partition("/")[0].lower() in SPLITS:
            break
        names = [name.partition("/")[2] for name in names]
    return names


def _classes(files: ImageFiles, names: list[str], steps: list[list[str]]) -> np.ndarray | None:
    loose = [name for name, s in zip(names, steps, strict=True) if len(s) == 1]
    if len(loose) == len(names):
        return None
    if loose:
        raise DataError(
            f"{files.where(loose[0])}: in no folder of a class, as {len(names) - len(loose)} other images are. Move it "
            "into one, or pass a CSV file of paths and labels."
        )
    return np.array([s[0] for s in steps])


PATH_COLUMNS = ("path", "image", "file", "filename", "file_name", "image_path", "name")
LABEL_COLUMNS = ("label", "class", "y", "category", "target", "labels")
SPLIT_COLUMNS = ("split", "part", "subset")
BYTES_COLUMNS = ("image", "img", "bytes", "jpg", "jpeg", "png", "content")


def listed_images(path: str, labels: Labels = None) -> ImageSet:
    """Return the images of a CSV or TSV file that has one line per image, with its path and its label.

    Paths are relative to the folder of the file. With a heading, columns are found by name (``PATH_COLUMNS``,
    ``LABEL_COLUMNS``, ``SPLIT_COLUMNS``); ``labels`` names another column of labels, or is an array or file, see
    ``read_labels``. Without a heading, the first column holds the paths and the second the labels. Raises DataError,
    naming the line, for lines of another length and for paths that do not exist.
    """
    file = existing_file(path)
    heading, records = _records(file.address)
    of_path, of_label, of_split = _columns(file.address, heading, records[0], labels)
    names = [record[of_path] for record in records]
    folder = os.path.dirname(file.address) or "."
    missing = [n for n, name in enumerate(names) if not os.path.isfile(os.path.join(folder, name))]
    if missing:
        raise DataError(
            f"{file}, line {missing[0] + 1 + (heading is not None)}: no file {os.path.join(folder, names[missing[0]])} "
            f"({len(missing)} of {len(names)} are missing). Paths start at the folder of the table."
        )
    y = None if of_label is None else numbers_or_text([r[of_label] for r in records], f"labels in {file}")
    if labels is not None and of_label is None:
        y = read_labels(labels, len(names))
    splits = None if of_split is None else np.array([record[of_split] for record in records])
    return ImageSet(_Listed(folder, names), names, y, splits)


class _Listed(FolderFiles):
    """The files of a folder that a table names; other files there are ignored."""

    def __init__(self, folder: str, names: list[str]) -> None:
        self.name, self.paths, self._addresses = folder, names, {}

    def where(self, path: str) -> str:
        return os.path.join(self.name, path)


def _records(path: str) -> tuple[list[str] | None, list[list[str]]]:
    """Return the heading, if there is one, and the lines that are not blank."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            records = [r for r in csv.reader(file, delimiter="\t" if path.endswith(".tsv") else ",") if r]
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not text in UTF-8 ({error}). Save it as UTF-8.") from error
    records = [[field.strip() for field in record] for record in records]
    heading = records.pop(0) if records and not any(map(is_image_name, records[0])) else None
    if not records:
        raise DataError(f"{path}: no lines with images. Write one line per image: path,label.")
    width = len(heading or records[0])
    for number, record in enumerate(records, 1 + (heading is not None)):
        if len(record) != width:
            raise DataError(f"{path}, line {number}: {len(record)} columns, where the first line has {width}.")
    return heading, records


def _columns(
    path: str, heading: list[str] | None, first: list[str], labels: Labels
) -> tuple[int, int | None, int | None]:
    """Return the columns of paths, labels and splits."""
    if heading is None:
        has_labels = len(first) > 1 and labels is None
        return 0, 1 if has_labels else None, None
    of_path = _column(heading, PATH_COLUMNS)
    if of_path is None:
        raise DataError(
            f"{path}: no column of paths among {', '.join(heading)}; call it {' or '.join(PATH_COLUMNS[:3])}."
        )
    named = isinstance(labels, str) and labels in heading
    of_label = heading.index(str(labels)) if named else None
    if labels is None:
        usual = only_label([name for name in heading if name.lower() in LABEL_COLUMNS], path)
        of_label = None if usual is None else heading.index(usual)
    return of_path, of_label, _column(heading, SPLIT_COLUMNS)


def _column(heading: list[str], names: tuple[str, ...]) -> int | None:
    lower = [name.lower() for name in heading]
    return next((lower.index(name) for name in names if name in lower), None)


def parquet_images(path: str, labels: Labels = None) -> ImageSet:
    """Return the images of a Parquet file, or a folder of them, with a column of the bytes of image files.

    The bytes are a binary column with a name in ``BYTES_COLUMNS``, or a struct with a field ``bytes``, as data set hubs
    write them. The column of labels is ``labels``, or one of ``LABEL_COLUMNS``. If the schema has names for its
    numbers, labels are the names.
    """
    files = ParquetImages(path)
    y = None
    column = files.label_column(labels)
    if column is not None:
        y = check_labels(files.values(column), len(files.paths), f"labels in {path}::{column}")
        names = files.class_names(column)
        y = y if names is None else np.array(names)[y]
    elif labels is not None:
        y = read_labels(labels, len(files.paths))
    return ImageSet(files, files.paths, y)


class ParquetImages(ImageFiles):
    """The bytes in a column of Parquet files, by row; the last row group that was read is kept."""

    def __init__(self, path: str) -> None:
        self.name = str(path)
        self._parts = find_parts(path)
        self._column = self._bytes_column()
        self._lock = threading.Lock()
        self._held: tuple[tuple[int, int], list[Any]] | None = None
        self._rows: dict[str, tuple[int, int, int]] = {}
        for p, part in enumerate(self._parts):
            for group, count in enumerate(part.group_rows):
                for row in range(count):
                    self._rows[f"row {len(self._rows)}"] = (p, group, row)
        self.paths = list(self._rows)
        if not self.paths:
            raise DataError(f"{self.name}: no rows in it. Write it again.")

    def read(self, path: str) -> bytes:
        """Return the content of a row, see ``ImageFiles``."""
        p, group, row = self._rows[path]
        with self._lock:
            if self._held is None or self._held[0] != (p, group):
                self._held = None  # frees the old group before the next is read
                self._held = (p, group), self._group(self._parts[p], group, self._column)
            value = self._held[1][row]
        content = value.get("bytes") if isinstance(value, dict) else value
        if content is None:
            raise ImageError(f"{self.where(path)}: no bytes in it. Remove the row.")
        return bytes(content)

    def label_column(self, labels: Labels) -> str | None:
        """Return the column of labels: the one that ``labels`` names, or the one with a name in ``LABEL_COLUMNS``."""
        names = self._parts[0].schema.names
        if isinstance(labels, str):
            return labels if labels in names else None
        usual = [name for name in names if name.lower() in LABEL_COLUMNS]
        return only_label(usual, self.name) if labels is None else None

    def values(self, column: str) -> np.ndarray:
        """Return a whole column, (n,)."""
        groups = ((part, g) for part in self._parts for g in range(len(part.group_rows)))
        return np.array([value for part, g in groups for value in self._group(part, g, column)])

    def class_names(self, column: str) -> list[str] | None:
        """Return the names that the numbers of a column stand for, or None.

        The schema holds them in the convention of the package ``datasets``.
        """
        metadata = (self._parts[0].schema.metadata or {}).get(b"huggingface")
        features = json.loads(metadata).get("info", {}).get("features", {}) if metadata else {}
        return features.get(column, {}).get("names")

    @staticmethod
    def _group(part: ArrowPart, group: int, column: str) -> list[Any]:
        batches = part.batches(group, [column], max(1, part.group_rows[group]))
        return [value for batch in batches for value in batch.column(0).to_pylist()]

    def _bytes_column(self) -> str:
        types = needed("pyarrow", "Parquet files").types
        schema = self._parts[0].schema
        fitting = [f.name for f in schema if _holds_bytes(types, f.type)]
        named = [name for name in fitting if name.lower() in BYTES_COLUMNS]
        if len(named or fitting) != 1:
            raise DataError(
                f"{self.name}: expected one column with the bytes of images, called {' or '.join(BYTES_COLUMNS[:3])}; "
                f"its columns are {', '.join(f'{f.name} ({f.type})' for f in schema)}. Rows of "
                "histograms open with open_source."
            )
        return (named or fitting)[0]


def _holds_bytes(types: ModuleType, kind: pa.DataType) -> bool:
    if types.is_struct(kind):
        return kind.get_field_index("bytes") >= 0
    return bool(types.is_binary(kind) or types.is_large_binary(kind))


TABLES = (".csv", ".tsv")


def open_images(path: str | os.PathLike[str] | ImageSet, labels: Labels = None) -> ImageSet:
    """Open the images at a path, with labels where there are any.

    Parameters
    ----------
    path : str, Path or ImageSet
        A folder or an archive (tar, also compressed, or zip) with a folder for each class, and perhaps folders for
        train, val and test around these; a CSV or TSV file of paths and labels; or a Parquet file, or a folder of them,
        with the bytes of images. An ``ImageSet`` is returned as it is.
    labels : str, array or None, default=None
        Name of a column of a table; or an array or a file of labels,
        one per image in the order of ``names``, see ``read_labels``. None takes the labels found at the path.

    Returns
    -------
    ImageSet
        The images.

    Raises
    ------
    FileNotFoundError
        If there is nothing at the path.
    ImportError
        If a package is not installed.
    DataError
        If the folder has no images, the kind of file is unknown, or the labels do not fit.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("dark", "light"):
    ...         (Path(folder) / name).mkdir()
    ...         Image.new("RGB", (8, 8), "black" if name == "dark" else "white").save(Path(folder) / name / "1.png")
    ...     images = open_images(folder)
    >>> len(images.names), images.labels.tolist()
    (2, ['dark', 'light'])
    """
    if isinstance(path, ImageSet):
        return path
    address = plain_path(path)
    if not is_folder(address):
        name = existing_file(address).name.lower()
        if name.endswith(TABLES):
            return listed_images(address, labels)
        if name.endswith(PARQUET):
            return parquet_images(address, labels)
        if not name.endswith(TAR + ZIP):
            raise DataError(
                f"{address}: unknown kind of file. Images come in a folder, an archive ({', '.join(TAR + ZIP)}), a "
                f"table of paths ({', '.join(TABLES)}) or a table of bytes ({', '.join(PARQUET)})."
            )
    files = open_files(address)
    # a table of histograms may lie among the images that it was made from
    has_images = any(map(is_image_name, files.paths))
    if is_folder(address) and not has_images and any(path.endswith(PARQUET) for path in files.paths):
        return parquet_images(address, labels)
    images = class_folders(files)
    return images if labels is None else replace(images, labels=read_labels(labels, len(images)))
