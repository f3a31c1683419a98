"""Histograms of images in the making: a folder of finished parts, from which a job that was cut off goes on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import numpy as np

from chimap import _files
from chimap._types import JSON
from chimap._validation import DataError
from chimap.engines import Progress
from chimap.images.histogram_source import fingerprint_of
from chimap.images.histograms import ImageHistograms
from chimap.images.reading import ImageSet
from chimap.images.word_learner import Arrays
from chimap.model_files import model_file

PART_IMAGES = 256
_JOB, _WORDS, _LOCK = "job", "words", "lock"


class Part(NamedTuple):
    """Rows (n, columns) float32 of the images with these numbers, and why others are broken, by name."""

    rows: np.ndarray
    images: np.ndarray
    broken: dict[str, str]


class PartFolder:
    """The folder OUTPUT.parts: what the job is, the words, and finished parts of 256 images.

    learning: images that words are learned from; None is all of them.

    Raises DataError if the folder is there, but of other images or other settings.
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
        arrays |= (
            {}
            if learned is None
            else {f"given.{i}": v.centres for i, v in enumerate(learned) if v is not None}
        )
        self.path.mkdir(exist_ok=True)
        self._claim = _files.claim(self.path / _LOCK)  # two processes that write one output
        if not (self.path / _JOB).exists():
            _files.write_tensors(self.path / _JOB, _JOB, {"job": job}, arrays)
            return
        meta, tensors = _files.read_tensors(self.path / _JOB, _JOB)
        same = tensors.keys() == arrays.keys() and all(np.array_equal(tensors[k], arrays[k]) for k in tensors)
        if meta["job"] != job or not same:
            self._claim.close()
            read = ("images", "learning")
            what = "images" if any(meta["job"].get(name) != job.get(name) for name in read) else "settings"
            raise DataError(
                f"{self.path} holds parts of a job with other {what}. Give those again to go on with it, or remove the "
                "folder to begin anew."
            )

    @property
    def numbers(self) -> range:
        """Of all parts that there will be."""
        return range(-(-len(self._images) // PART_IMAGES))

    def images_of(self, number: int) -> np.ndarray:
        """The images of a part."""
        return np.arange(number * PART_IMAGES, min((number + 1) * PART_IMAGES, len(self._images)))

    def completed(self, histograms: ImageHistograms, strict: bool, progress: Progress) -> ImageHistograms:
        """Describe the images that are missing, in words that are learned first where they are; the histograms.

        Raises DataError where no words can be learned, and no folder is left; or where all images are broken.
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
            self._claim.close()  # what is done serves the next call, of this process too
            raise
        broken = self.broken()
        if len(broken) == len(self._images):
            raise DataError(
                f"{self._images.name}: all {len(self._images)} images are broken. {next(iter(broken.values()))}"
            )
        return fitted

    @property
    def missing(self) -> list[int]:
        """Numbers of the parts that are not there yet."""
        return [number for number in self.numbers if not self._file(number).exists()]

    def _fitted(self, histograms: ImageHistograms, progress: Progress) -> ImageHistograms:
        """The histograms, their words as they were learned the first time; learned now if that is new."""
        if hasattr(histograms, "vocabularies_"):
            return histograms
        if (self.path / _WORDS).exists():
            return ImageHistograms.load(self.path / _WORDS)
        histograms.fit(self._learning, progress=progress, keep=self._keep)
        histograms.save(self.path / _WORDS)
        return histograms

    def _keep(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Arrays of a file of the folder, made and written if it is not there yet."""
        file = self.path / quote(name, safe="")
        if not file.exists():
            _files.write_tensors(file, name, {}, make())
        return _files.read_tensors(file, name)[1]

    def _describe(self, number: int, histograms: ImageHistograms, strict: bool, progress: Progress) -> None:
        """Describe the images of a part, and write it."""
        reader = histograms.rows(self._images, self.images_of(number), strict=strict)
        rows, kept = [np.zeros((0, histograms.n_columns), np.float32)], []
        try:
            for i, row in reader:
                rows.append(row[None])
                kept.append(i)
                progress.advance()
        except DataError:
            if len(reader.broken) < len(reader.rows):
                raise  # all of a part may be broken, as long as not all of the job are
        broken = {self._images.names[i]: why for i, why in reader.broken.items()}
        arrays: dict[str, np.ndarray] = {"rows": np.concatenate(rows), "images": np.array(kept, np.int64)}
        _files.write_tensors(self._file(number), "part", {"broken": broken}, arrays)

    def __iter__(self) -> Iterator[Part]:
        for number in self.numbers:
            meta, arrays = _files.read_tensors(self._file(number), "part")
            yield Part(arrays["rows"], arrays["images"], meta["broken"])

    def broken(self) -> dict[str, str]:
        """Why images are broken, by name, of all parts."""
        reasons: dict[str, str] = {}
        for number in self.numbers:
            reasons |= _files.read_header(self._file(number))["broken"]
        return reasons

    def remove(self) -> None:
        """The job is done."""
        self._claim.close()
        shutil.rmtree(self.path)

    def remove_if_unused(self) -> None:
        """The job failed: what could not go on from here is not left behind."""
        if not any(name.name not in (_JOB, _LOCK) for name in self.path.iterdir()):
            self.remove()

    def _file(self, number: int) -> Path:
        return self.path / f"part-{number:06d}"


def columns_of(part: Part, images: ImageSet) -> JSON:
    """Of the images of a part: labels, where there are any, and names."""
    names = [images.names[i] for i in part.images]
    return ({} if images.labels is None else {"y": images.labels[part.images]}) | {"name": names}
