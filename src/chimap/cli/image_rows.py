"""Images on the command line: their options, and rows for a fit or for a fitted model."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from chimap._errors import InputError
from chimap.cli import flag_values, messages, show

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from chimap.data import Source
    from chimap.data.labels import Labels
    from chimap.engines import Stopwatch
    from chimap.images import ImageHistograms
    from chimap.images.reading import ImageSet
    from chimap.images.table import PartFolder
    from chimap.models.predictor import Predictor

    CheckLabels = Callable[[np.ndarray | None, str], object]


@dataclasses.dataclass(frozen=True)
class ImageSettings:
    """The options for images and their defaults.

    Parameters
    ----------
    descriptors : NAMES
        What to see in pictures, separated by commas: sift, sift-rgb, sift-hsv, sift-opponent, hog, hog-blocks, phog,
        colour, lbp. sift, hog, hog-blocks and phog see shapes, lbp textures.
    words : N
        Number of visual words: kinds of patches that are counted, for each of --descriptors. More are more accurate and
        take longer.
    coding : NAME
        Which visual words each patch counts for: hard (the nearest) or soft (the 5 nearest).
    grids : GRIDS
        Into which cells a picture is divided for counting, as ROWSxCOLUMNS, several with commas between them.
    step : PIXELS
        Distance between neighbouring patches of --descriptors sift, in pixels.
    sizes : PIXELS
        Widths of a quarter of a patch of --descriptors sift, in pixels, one for each scale.
    strict
        Stop at a picture that cannot be read, instead of leaving it out.
    """

    descriptors: str = "sift"
    words: int = 600
    coding: str = "hard"
    grids: str = "1x1,2x2,4x4"
    step: int = 3
    sizes: str = "4,6,8,10"
    part: str | None = None
    strict: bool = False

    def check(self) -> None:
        """Raise ValueError, naming the flag, before any image is read, for settings that cannot work."""
        from chimap.images.descriptors import CATALOGUE
        from chimap.images.vocabulary import CODINGS

        names = flag_values.listed(self.descriptors)
        unknown = [name for name in names if name not in CATALOGUE]
        if unknown or not names or len(set(names)) < len(names):
            raise InputError(
                f"--descriptors must be different names among {', '.join(CATALOGUE)}, with commas; got "
                f"{self.descriptors!r}."
            )
        flag_values.check_known(self.coding, CODINGS, "--coding")
        flag_values.check_least(self.words, "--words")
        flag_values.check_least(self.step, "--step")
        flag_values.whole_numbers(self.sizes, "--sizes")
        grids_of(self.grids)

    def check_unused(self, data: str) -> None:
        """Raise ValueError, naming the first one, if image options are set but DATA holds no images."""
        for field in dataclasses.fields(self):
            if getattr(self, field.name) != field.default:
                raise InputError(f"--{field.name} is for images, but {data} holds rows of bins; leave it out.")

    def histograms(self, seed: int, jobs: int | None) -> ImageHistograms:
        """Return the unfitted histograms of these settings."""
        from chimap.images import SIFT, ImageHistograms
        from chimap.images.descriptors import CATALOGUE

        descriptors = {}
        sizes = tuple(flag_values.whole_numbers(self.sizes, "--sizes"))
        for name in flag_values.listed(self.descriptors):
            descriptor = CATALOGUE[name]
            if isinstance(descriptor, SIFT):
                descriptor = dataclasses.replace(descriptor, step=self.step, sizes=sizes)
            descriptors[name] = descriptor
        return ImageHistograms(
            descriptors,
            n_words=self.words,
            coding=self.coding,
            grids=grids_of(self.grids),
            n_jobs=jobs,
            random_state=seed,
        )


def grids_of(text: str) -> tuple[tuple[int, int], ...]:
    """Return the (rows, columns) of each grid. Raise ValueError, naming the flag, for bad text.

    >>> grids_of("1x1, 3x1")
    ((1, 1), (3, 1))
    """
    grids = []
    for word in flag_values.listed(text) or [text]:
        rows, _, columns = word.partition("x")
        if not (rows.isdecimal() and columns.isdecimal() and int(rows) and int(columns)):
            raise InputError(f"--grids must be ROWSxCOLUMNS with commas, such as 1x1,2x2,3x1; got {word!r}.")
        grids.append((int(rows), int(columns)))
    return tuple(grids)


def open_set(data: str, labels: Labels, part: str | None) -> ImageSet:
    """Open the images of DATA, with one label each or none. If ``part`` is given, return only that part."""
    from chimap.images.reading import open_images

    with show.busy(f"opening {data}"):
        images = open_images(data, labels)
    return images if part is None else images.part(part)


def warn_of(report: str | None) -> None:
    """Warn of images that were left out, if any."""
    if report:
        messages.say("warning", f"{report} They are left out.")


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
    """Describe the images of a fit: the rows of all images, the fitted histograms, and a folder or None.

    The words are learned from the images that are not held out. With a checkpoint, the folder keeps the rows until the
    model is written.
    """
    import numpy as np

    from chimap.images.histogram_source import ImageSource
    from chimap.images.table import PartFolder

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
    model: Predictor, data: str, labels: Labels, part: str | None, silent: bool, check_labels: CheckLabels | None
) -> Source:
    """Describe the images of DATA in the same way as the training images of the model.

    ``check_labels`` runs first. Where labels are not read, as for a prediction, broken images keep their places and
    have empty rows. Raise DataError if the model was fitted on rows.
    """
    from chimap._validation import DataError
    from chimap.data.labels import IGNORE_LABELS
    from chimap.images.histogram_source import ImageSource

    histograms: ImageHistograms | None = model.histograms
    if histograms is None:
        raise DataError(
            f"{data} holds images, but the model was fitted on rows of bins and cannot describe images. Write rows "
            "with the same words (chimap features IMAGES --like WORDS), or fit a model on images (chimap fit IMAGES)."
        )
    images = open_set(data, labels, part)
    if check_labels is not None:
        check_labels(images.labels, images.name)
    source = ImageSource(images, histograms, show.progress(silent), blanks=labels is IGNORE_LABELS)
    warn_of(None if source.unread else source.report)
    return source


def blocks_flag(histograms: ImageHistograms) -> str:
    """Return the --blocks flag that gives each descriptor its own kernel, or "" for a single descriptor."""
    blocks = [f"{name}={columns.start}:{columns.stop}" for name, columns in histograms.blocks_.items()]
    return f"--blocks {','.join(blocks)}" if len(blocks) > 1 else ""
