"""A table of image histograms in the making: a folder of finished parts, from which an interrupted job resumes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import numpy as np

from chimap import _files
from chimap._errors import InputError
from chimap._types import JSON
from chimap._validation import DataError
from chimap.data.label_kinds import is_text
from chimap.engines import Progress
from chimap.images.histogram_source import fingerprint_of
from chimap.images.histograms import ImageHistograms
from chimap.images.reading import ImageSet
from chimap.images.vocabulary import Arrays
from chimap.model_files import model_file
from chimap.readers.io.files import needed

PART_IMAGES = 256
_JOB, _WORDS, _LOCK = "job", "words", "lock"


class TablePart(NamedTuple):
    """A finished part of the table."""

    rows: np.ndarray  # (n, columns) float32
    images: np.ndarray  # indices of the images of the rows, (n,)
    broken: dict[str, str]  # why other images have no row, by name


class PartFolder:
    """The folder OUTPUT.parts: the description of the job, the words, and finished parts of 256 images.

    ``learning`` are the images that words are learned from; None is all of ``images``. Raises DataError if the folder
    exists and belongs to other images or settings, OSError if another process uses it.
    """

    def __init__(
        self, output: Path, images: ImageSet, histograms: ImageHistograms, learning: ImageSet | None = None
    ) -> None:
        self.path, self._images = output.with_name(f"{output.name}.parts"), images
        self._learning = images if learning is None else learning
        arrays: dict[str, np.ndarray] = {}
        settings = model_file.encode(histograms.get_params(), "settings", arrays)
        job = _files.plain_json({"images": fingerprint_of(images), "settings": settings})
        if learning is not None:
            job["learning"] = _files.plain_json(fingerprint_of(learning))
        learned = getattr(histograms, "vocabularies_", None)
        arrays |= {} if learned is None else {f"given.{i}": v.centres for i, v in enumerate(learned) if v is not None}
        self.path.mkdir(exist_ok=True)
        self._claim = _files.claim(self.path / _LOCK)  # refuses a second process that writes the same output
        if not (self.path / _JOB).exists():
            _files.write_tensors(self.path / _JOB, _JOB, {"job": job}, arrays)
            return
        meta, tensors = _files.read_tensors(self.path / _JOB, _JOB)
        same = tensors.keys() == arrays.keys() and all(np.array_equal(tensors[k], arrays[k]) for k in tensors)
        if meta["job"] != job or not same:
            self._claim.close()
            inputs = ("images", "learning")
            changed = "images" if any(meta["job"].get(name) != job.get(name) for name in inputs) else "settings"
            raise DataError(
                f"{self.path} holds parts of a job with other {changed}. Use those again to resume the job, or "
                "remove the folder to start afresh."
            )

    @property
    def numbers(self) -> range:
        """Numbers of all parts, finished or not."""
        return range(-(-len(self._images) // PART_IMAGES))

    def images_of(self, number: int) -> np.ndarray:
        """Return the indices of the images of a part."""
        return np.arange(number * PART_IMAGES, min((number + 1) * PART_IMAGES, len(self._images)))

    def completed(self, histograms: ImageHistograms, strict: bool, progress: Progress) -> ImageHistograms:
        """Describe the images of the missing parts and return the fitted histograms.

        If the histograms are not fitted, their words are learned first. Raises DataError where no words can be learned,
        and then removes the folder; also raises it if all images are broken.
        """
        try:
            fitted = self._fitted(histograms, progress)
        except DataError:
            self.remove()
            raise
        except BaseException:
            self.remove_if_unused()
            raise
        missing = self.missing
        progress.stage("describing", sum(self.images_of(number).size for number in missing), "images")
        try:
            for number in missing:
                self._describe(number, fitted, strict, progress)
        except BaseException:
            self._claim.close()  # lets the next call, also of this process, resume from the finished parts
            raise
        broken = self.broken()
        if len(broken) == len(self._images):
            raise DataError(
                f"{self._images.name}: all {len(self._images)} images are broken. {next(iter(broken.values()))}"
            )
        return fitted

    @property
    def missing(self) -> list[int]:
        """Numbers of the parts that are not finished."""
        return [number for number in self.numbers if not self._file(number).exists()]

    def _fitted(self, histograms: ImageHistograms, progress: Progress) -> ImageHistograms:
        """Return the histograms with the words of an earlier call, or learn and save the words now."""
        if hasattr(histograms, "vocabularies_"):
            return histograms
        if (self.path / _WORDS).exists():
            return ImageHistograms.load(self.path / _WORDS)
        histograms.fit(self._learning, progress=progress, keep=self._keep)
        histograms.save(self.path / _WORDS)
        return histograms

    def _keep(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Return the arrays of a file of the folder; if it does not exist, make and write them first."""
        file = self.path / quote(name, safe="")
        if not file.exists():
            _files.write_tensors(file, name, {}, make())
        return _files.read_tensors(file, name)[1]

    def _describe(self, number: int, histograms: ImageHistograms, strict: bool, progress: Progress) -> None:
        """Describe the images of a part, and write the part."""
        reader = histograms.rows(self._images, self.images_of(number), strict=strict)
        rows, kept = [np.zeros((0, histograms.n_columns), np.float32)], []
        try:
            for i, row in reader:
                rows.append(row[None])
                kept.append(i)
                progress.advance()
        except DataError:
            if len(reader.broken) < len(reader.rows):
                raise  # all images of a part may be broken, as long as some of the job are not
        broken = {self._images.names[i]: why for i, why in reader.broken.items()}
        arrays: dict[str, np.ndarray] = {"rows": np.concatenate(rows), "images": np.array(kept, np.int64)}
        _files.write_tensors(self._file(number), "part", {"broken": broken}, arrays)

    def __iter__(self) -> Iterator[TablePart]:
        for number in self.numbers:
            meta, arrays = _files.read_tensors(self._file(number), "part")
            yield TablePart(arrays["rows"], arrays["images"], meta["broken"])

    def broken(self) -> dict[str, str]:
        """Return the reasons why images are broken, by name, over all parts."""
        reasons: dict[str, str] = {}
        for number in self.numbers:
            reasons |= _files.read_header(self._file(number))["broken"]
        return reasons

    def remove(self) -> None:
        """Remove the folder when the job is done."""
        self._claim.close()
        shutil.rmtree(self.path)

    def remove_if_unused(self) -> None:
        """Remove the folder of a failed job if it holds nothing to resume from."""
        if not any(name.name not in (_JOB, _LOCK) for name in self.path.iterdir()):
            self.remove()

    def _file(self, number: int) -> Path:
        return self.path / f"part-{number:06d}"


def columns_of(part: TablePart, images: ImageSet) -> JSON:
    """Return the labels, where there are any, and the names of the images of a part."""
    names = [images.names[i] for i in part.images]
    return ({} if images.labels is None else {"y": images.labels[part.images]}) | {"name": names}


@dataclass(frozen=True)
class WrittenTable:
    """Summary of a table that was written."""

    histograms: ImageHistograms
    n_rows: int
    broken: dict[str, str]  # why an image has no row, by its name
    n_resumed: int  # images that an earlier call had described


def write_table(
    images: ImageSet,
    histograms: ImageHistograms,
    output: str | Path,
    progress: Progress | None = None,
    *,
    strict: bool = False,
    overwrite: bool = False,
) -> WrittenTable:
    """Write the histograms of all images to a file: ``.parquet`` or ``.zarr``, with columns X, y, if any, and name.

    The output appears only when it is complete. Until then the work lies in a folder next to it, OUTPUT.parts, from
    which another call with the same images and settings resumes. Histograms that are not fitted learn their words from
    these images first. With ``strict`` a broken image is an error; otherwise it has no row.
    """
    output, progress = Path(output), progress or Progress()
    _files.check_free(output, overwrite)
    write = writer(output)
    parts = PartFolder(output, images, histograms)
    n_left = sum(parts.images_of(number).size for number in parts.missing)
    with progress:
        fitted = parts.completed(histograms, strict, progress)
        broken = parts.broken()
        progress.stage("writing", len(images) - len(broken), "images")
        write(output, parts, images, fitted.n_columns, progress)
    parts.remove()
    return WrittenTable(fitted, len(images) - len(broken), broken, len(images) - n_left)


def writer(output: Path) -> Callable[[Path, PartFolder, ImageSet, int, Progress], None]:
    """Return the function that writes a path with this ending; raises ValueError for other endings."""
    if output.suffix.lower() not in FORMATS:
        raise InputError(f"{output}: the ending must be {' or '.join(FORMATS)}.")
    return FORMATS[output.suffix.lower()]


def _write_parquet(output: Path, parts: PartFolder, images: ImageSet, n_columns: int, progress: Progress) -> None:
    arrow = needed("pyarrow", "Parquet files")
    parquet = needed("pyarrow.parquet", "Parquet files")
    row = arrow.list_(arrow.float32(), n_columns)
    label = [] if images.labels is None else [("y", arrow.array(images.labels[:1]).type)]
    schema = arrow.schema([("X", row), *label, ("name", arrow.string())])
    with _files.replacing(output) as unfinished, parquet.ParquetWriter(unfinished, schema, compression="zstd") as file:
        for part in parts:
            lists = arrow.FixedSizeListArray.from_arrays(arrow.array(part.rows.ravel()), n_columns)
            table = arrow.table({"X": lists, **columns_of(part, images)}, schema=schema)
            if table.num_rows:
                file.write_table(table)
            progress.advance(table.num_rows)


def _write_zarr(output: Path, parts: PartFolder, images: ImageSet, n_columns: int, progress: Progress) -> None:
    zarr = needed("zarr", "Zarr stores")
    unfinished, chunk = parts.path / "store.zarr", max(1, min(PART_IMAGES, 2**22 // (4 * n_columns)))
    root = zarr.open_group(str(unfinished), mode="w")
    n_rows = len(images) - len(parts.broken())
    X = root.create_array("X", shape=(n_rows, n_columns), chunks=(chunk, n_columns), dtype="float32")
    others: dict[str, list[np.ndarray]] = {}
    start = 0
    for part in parts:
        X[start : start + len(part.rows)] = part.rows
        for name, values in columns_of(part, images).items():
            others.setdefault(name, []).append(np.asarray(values))
        start += len(part.rows)
        progress.advance(len(part.rows))
    for name, values in others.items():
        joined = np.concatenate([v for v in values if v.size])
        # Zarr format 3 has no text of fixed width, only of variable length
        root.create_array(name, data=joined.astype(np.dtypes.StringDType()) if is_text(joined) else joined)
    output = Path(os.path.realpath(output))  # a link stays, and its target is replaced
    if output.is_dir():  # os.replace fails for a full folder: the old one goes with the parts
        os.replace(output, parts.path / "replaced.zarr")
    os.replace(unfinished, output)


FORMATS = {".parquet": _write_parquet, ".zarr": _write_zarr}
