"""Images on the command line: what is opened, which are left out, rows for a fit and for a fitted model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from chimap.cli import _errors, _show
from chimap.cli._image_options import ImageSettings

if TYPE_CHECKING:
    from chimap.data import ImageSet, Source
    from chimap.vision import ImageHistograms


def holds_images(data: str) -> bool:
    """Whether DATA are images rather than rows."""
    from chimap.data.image_kind import holds_images

    layout, path = layout_of(data)
    return layout is not None or holds_images(path)


def layout_of(data: str) -> tuple[str | None, str]:
    """The data set and the path of ``caltech101:PATH``; None and DATA without the name of a data set.

    Raises ValueError for a name without a path, and for an unknown one before a path that is there.

    >>> layout_of("voc2007:photos"), layout_of("s3://photos")
    (('voc2007', 'photos'), (None, 's3://photos'))
    """
    from chimap.data.image_sets import CATALOGUE

    name, _, path = data.partition(":")
    if name in CATALOGUE and path:
        return name, path
    if not Path(data).exists():
        if name in CATALOGUE:
            raise ValueError(f"{data} names a data set without its folder; give {name}:FOLDER.")
        if path and Path(path).exists():
            raise ValueError(f"{data}: no data set is called {name!r}; known are {', '.join(CATALOGUE)}.")
    return None, data


def open_set(data: str, labels: str | None, part: str | None) -> ImageSet:
    """The images of DATA with one label each, or none; of one part if it is named."""
    from chimap.data import open_images
    from chimap.vision.source import check_single_labels

    layout, path = layout_of(data)
    with _show.busy(f"opening {data}"):
        images = open_images(path, labels, layout)
    check_single_labels(images)
    return images if part is None else images.part(part)


def warn_of(report: str | None) -> None:
    """Say which images were left out, if any."""
    if report:
        _errors.say("warning", f"{report} They are left out.")


def training_rows(
    data: str,
    labels: str | None,
    settings: ImageSettings,
    test_fraction: float,
    seed: int,
    jobs: int | None,
    silent: bool,
) -> tuple[Source, ImageHistograms, dict[str, float]]:
    """Rows of all images of DATA; how they were made, with words of those that are not held out; seconds by stage."""
    import numpy as np

    from chimap.data.split import drawn_for_test
    from chimap.engines import Stopwatch
    from chimap.vision.source import ImageSource, readable

    settings.check()
    clock = Stopwatch()
    images = open_set(data, labels, settings.part)
    with clock("check images"):
        images, report = readable(images, _show.progress(silent), strict=settings.strict)
    warn_of(report)
    training = np.flatnonzero(~drawn_for_test(0, len(images), test_fraction, seed))
    histograms = settings.histograms(seed, jobs)
    with clock("words"):
        histograms.fit(images.take(training), progress=_show.progress(silent))
    with clock("describe"):
        source = ImageSource(images, histograms, _show.progress(silent), strict=True)
    return source, histograms, clock.seconds


def rows_for(model: Any, data: str, labels: str | None, part: str | None, silent: bool) -> Source:
    """Rows of the images of DATA, made as those that the model was fitted on.

    Raises DataError for a model that was fitted on rows.
    """
    from chimap._validation import DataError
    from chimap.vision.source import ImageSource

    histograms = getattr(model, "histograms_", None)
    if histograms is None:
        raise DataError(
            f"{data} holds images, but the model was fitted on rows of bins and does not know how to make them. Write "
            "rows with the words of those: chimap features IMAGES --like WORDS; or fit on images: chimap fit IMAGES."
        )
    source = ImageSource(open_set(data, labels, part), histograms, _show.progress(silent))
    warn_of(source.report)
    return source


def images_of(source: Source) -> ImageSet | None:
    """The images that the rows of a source are of, in the order of the rows; None for other rows."""
    from chimap.data.split import PartSource
    from chimap.vision.source import ImageSource

    if isinstance(source, PartSource):
        images = images_of(source.whole)
        return None if images is None else images.take(source.places)
    return source.images if isinstance(source, ImageSource) else None
