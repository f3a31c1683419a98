"""The histograms of a set of images as a source of rows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator

import numpy as np

from chimap._types import JSON, Rows
from chimap._validation import DataError
from chimap.data import ArraySource, Chunk, Source
from chimap.data.rows import digest
from chimap.engines import Progress
from chimap.images.histograms import ImageHistograms
from chimap.images.reading import ImageSet
from chimap.images.reading.reader import ImageReader


class ImageSource(Source):
    """Rows of histograms of images, each described once and kept in a temporary file that goes with the source.

    images: a set with one label an image, or none. histograms: fitted. strict: whether a broken image is an error;
    else it has no row, ``report`` names it, and ``row_ids`` are those of the others. described: (i, row) of the images
    that have one, where they are described already.
    """

    from_files = True
    can_seek = True

    def __init__(
        self,
        images: ImageSet,
        histograms: ImageHistograms,
        progress: Progress | None = None,
        *,
        strict: bool = False,
        described: Iterable[tuple[int, np.ndarray]] | None = None,
    ) -> None:
        check_single_labels(images)
        progress = progress or Progress()
        reader = None if described is not None else histograms.rows(images, strict=strict)
        kept = []
        with tempfile.TemporaryFile(prefix="chimap-histograms-") as file:
            with progress:
                progress.stage("describing", len(images), "images")
                for i, row in described or reader or ():
                    file.write(row.tobytes())
                    kept.append(i)
                    progress.advance()
            file.flush()
            # the map outlives the file, which has no name from the start
            rows = np.memmap(file, np.float32, "r", shape=(len(kept), histograms.n_columns))
        self.report = None if reader is None else reader.report()
        self._images = images.take(kept)
        self._rows = ArraySource(np.asarray(rows), self._images.labels, images.name)
        self.name, self.n_rows, self.n_features = images.name, len(kept), histograms.n_columns
        self.dtype, self.is_sparse, self.has_labels = self._rows.dtype, False, self._rows.has_labels
        self.row_bytes = self._rows.row_bytes
        self.row_ids, self.id_name = np.array(self._images.names), "name"

    @property
    def images(self) -> ImageSet:
        """The images that have rows, in their order."""
        return self._images

    def chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        """All rows, in the order of the images."""
        return self._rows.chunks(chunk_rows)

    def labels(self) -> np.ndarray | None:
        """Labels of the images that have rows, or None."""
        return self._rows.labels()

    def take(self, rows: np.ndarray) -> Rows:
        """The rows with these increasing indices."""
        return self._rows.take(rows)

    def fingerprint(self) -> JSON:
        """Of the images rather than their histograms."""
        return {
            "shape": [self.n_rows, self.n_features],
            "dtype": str(self.dtype),
            **fingerprint_of(self._images),
        }


def fingerprint_of(images: ImageSet) -> JSON:
    """Plain values that change when the images do: name, number, a digest of names, labels and some contents."""
    some = np.unique(np.linspace(0, len(images) - 1, 16).astype(np.int64))
    contents = [np.frombuffer(images.files.read(images.names[i]), np.uint8) for i in some]
    return {
        "name": images.name,
        "images": len(images),
        "digest": digest(np.array(images.names), *contents),
        "labels": None if images.labels is None else digest(images.labels),
    }


def check_single_labels(images: ImageSet) -> None:
    """Refuse labels of several classes an image."""
    if images.labels is not None and images.labels.ndim == 2:
        raise DataError(
            f"{images.name}: images of several classes at once, such as {', '.join(images.classes[:3])}. A model tells "
            f"one class from the rest: name it as the labels, such as --labels {images.classes[0]}, or "
            f"images.one_against_rest({images.classes[0]!r})."
        )


def readable(
    images: ImageSet, progress: Progress | None = None, *, strict: bool = False
) -> tuple[ImageSet, str | None]:
    """The images that can be decoded to their end, and what is wrong with the others in a sentence (None: nothing)."""
    progress = progress or Progress()
    reader = ImageReader(images, lambda i, image: None, strict=strict)
    kept = []
    with progress:
        progress.stage("checking", len(images), "images")
        for i, _ in reader:
            kept.append(i)
            progress.advance()
    return images.take(kept), reader.report()
