"""A source of rows that are the histograms of a set of images."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable

import numpy as np

from chimap._types import JSON
from chimap.data import ArraySource
from chimap.data.rows import digest
from chimap.engines import Progress
from chimap.images.histograms import ImageHistograms
from chimap.images.reading import ImageSet
from chimap.images.reading.reader import ImageReader


class ImageSource(ArraySource):
    """Rows of histograms of images.

    Each image is described once; the rows are kept in a temporary file that vanishes with the source.

    Parameters
    ----------
    images : ImageSet
        The images, with one label per image or none.
    histograms : ImageHistograms
        Fitted histograms.
    progress : Progress or None, default=None
        Display of progress.
    strict : bool, default=False
        Whether a broken image is an error. Otherwise it has no row, ``report`` names it, and ``row_ids`` are the names
        of the other images.
    blanks : bool, default=False
        Whether a broken image has an empty row and its reason in ``unread``, rather than no row.
    described : iterable of (i, row) or None, default=None
        Rows of the images that have one, where the images are described already.
    """

    from_files = True

    def __init__(
        self,
        images: ImageSet,
        histograms: ImageHistograms,
        progress: Progress | None = None,
        *,
        strict: bool = False,
        blanks: bool = False,
        described: Iterable[tuple[int, np.ndarray]] | None = None,
    ) -> None:
        progress = progress or Progress()
        reader = None if described is not None else histograms.rows(images, strict=strict)
        kept = []
        with tempfile.TemporaryFile(prefix="chimap-histograms-") as file:
            with progress:
                progress.stage("describing", len(images), "images")
                for i, row in described or reader or ():
                    if blanks:
                        file.seek(i * row.nbytes)  # what is skipped is zeros
                    file.write(row.tobytes())
                    kept.append(i)
                    progress.advance()
            if blanks:
                kept = [*range(len(images))]
                file.truncate(len(images) * histograms.n_columns * np.dtype(np.float32).itemsize)
            file.flush()
            # The memory map stays valid after the file is closed; the file has no name, so it is then gone.
            rows = np.memmap(file, np.float32, "r", shape=(len(kept), histograms.n_columns))
        self.report = None if reader is None else reader.report()
        self.unread = reader.broken if reader is not None and blanks else {}
        self.images = images.take(kept)
        """The images that have rows, in the order of the rows."""
        super().__init__(np.asarray(rows), self.images.labels, images.name)
        self.row_ids, self.id_name = np.array(self.images.names), "name"

    def fingerprint(self) -> JSON:
        """Return a fingerprint of the images, rather than of their histograms."""
        return {"shape": [self.n_rows, self.n_features], "dtype": str(self.dtype), **fingerprint_of(self.images)}


def fingerprint_of(images: ImageSet) -> JSON:
    """Return name, number and digests of the images: of names, labels and the contents of up to 16 files."""
    sample = np.unique(np.linspace(0, len(images) - 1, 16).astype(np.int64))
    contents = [np.frombuffer(images.files.read(images.names[i]), np.uint8) for i in sample]
    return {
        "name": images.name,
        "images": len(images),
        "digest": digest(np.array(images.names), *contents),
        "labels": None if images.labels is None else digest(images.labels),
    }


def readable(
    images: ImageSet, progress: Progress | None = None, *, strict: bool = False
) -> tuple[ImageSet, str | None]:
    """Return the images that can be decoded to their end, and a sentence on the broken ones (None if there are none).

    With ``strict``, a broken image is an error.
    """
    progress = progress or Progress()
    reader = ImageReader(images, lambda i, image: None, strict=strict)
    kept = []
    with progress:
        progress.stage("checking", len(images), "images")
        for i, _ in reader:
            kept.append(i)
            progress.advance()
    return images.take(kept), reader.report()
