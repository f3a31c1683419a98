"""Images on the command line: open them, drop broken ones, and make rows for a fit or for a fitted model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from chimap.cli.support import errors, show
from chimap.cli.support.image_options import ImageSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from chimap.data import Source
    from chimap.data.labels import Labels
    from chimap.engines import Stopwatch
    from chimap.images import ImageHistograms
    from chimap.images.parts import PartFolder
    from chimap.images.reading import ImageSet

    CheckLabels = Callable[[np.ndarray | None, str], object]
    from sklearn.base import BaseEstimator


def holds_images(data: str) -> bool:
    """Return whether DATA holds images rather than rows."""
    from chimap.data.image_names import holds_images

    return holds_images(data)


def open_set(data: str, labels: Labels, part: str | None) -> ImageSet:
    """Open the images of DATA, with one label each or none. If ``part`` is given, return only that part."""
    from chimap.images.histogram_source import check_single_labels
    from chimap.images.reading import open_images

    with show.busy(f"opening {data}"):
        images = open_images(data, labels)
    check_single_labels(images)
    return images if part is None else images.part(part)


def warn_of(report: str | None) -> None:
    """Warn of images that were left out, if any."""
    if report:
        errors.say("warning", f"{report} They are left out.")


def readable_set(
    data: str, labels: str | None, settings: ImageSettings, silent: bool, clock: Stopwatch
) -> tuple[ImageSet, np.ndarray]:
    """Return the images of DATA that can be decoded, and their labels. Raise DataError if there are no labels."""
    from chimap._validation import DataError
    from chimap.images.histogram_source import readable

    settings.check()
    images = open_set(data, labels, settings.part)
    if images.labels is None:
        raise DataError(
            f"{images.name} has no labels. Put the images of each class into a folder named after it, or give a CSV "
            "of paths and labels."
        )
    with clock("check images"):
        images, report = readable(images, show.progress(silent), strict=settings.strict)
    warn_of(report)
    assert images.labels is not None
    return images, images.labels


def training_rows(
    images: ImageSet,
    settings: ImageSettings,
    is_held_out: np.ndarray,
    seed: int,
    jobs: int | None,
    silent: bool,
    clock: Stopwatch,
    checkpoint: Path | None,
) -> tuple[Source, ImageHistograms, PartFolder | None]:
    """Describe the images of a fit.

    Returns
    -------
    Source
        Rows of all images.
    ImageHistograms
        Fitted histograms. The words are learned from the images that are not held out.
    PartFolder or None
        With a checkpoint, the folder that keeps the rows until the model is written.
    """
    import numpy as np

    from chimap.images.histogram_source import ImageSource
    from chimap.images.parts import PartFolder

    histograms, learning = settings.histograms(seed, jobs), images.take(np.flatnonzero(~is_held_out))
    if checkpoint is None:
        with clock("words"):
            histograms.fit(learning, progress=show.progress(silent))
        with clock("describe"):
            return ImageSource(images, histograms, show.progress(silent), strict=True), histograms, None
    parts = PartFolder(checkpoint, images, histograms, learning)
    with clock("describe"), show.progress(silent) as progress:
        histograms = parts.completed(histograms, True, progress)
    described = ((int(i), row) for part in parts for i, row in zip(part.images, part.rows, strict=True))
    return ImageSource(images, histograms, described=described), histograms, parts


def rows_for(
    model: BaseEstimator,
    data: str,
    labels: Labels,
    part: str | None,
    silent: bool,
    check_labels: CheckLabels | None,
) -> Source:
    """Describe the images of DATA in the same way as the training images of the model.

    ``check_labels`` runs first. Raise DataError if the model was fitted on rows.
    """
    from chimap._validation import DataError
    from chimap.images.histogram_source import ImageSource

    histograms = getattr(model, "histograms_", None)
    if histograms is None:
        raise DataError(
            f"{data} holds images, but the model was fitted on rows of bins and cannot describe images. Write rows "
            "with the same words (chimap features IMAGES --like WORDS), or fit a model on images (chimap fit IMAGES)."
        )
    images = open_set(data, labels, part)
    if check_labels is not None:
        check_labels(images.labels, images.name)
    source = ImageSource(images, histograms, show.progress(silent))
    warn_of(source.report)
    return source


def images_of(source: Source) -> ImageSet | None:
    """Return the images that the rows describe, in the order of the rows, or None if the rows are not of images."""
    from chimap.data.split import PartSource
    from chimap.images.histogram_source import ImageSource

    if isinstance(source, PartSource):
        images = images_of(source.whole)
        return None if images is None else images.take(source.places)
    return source.images if isinstance(source, ImageSource) else None
