"""Images on a page: examples of classes, rows whose bins are pixels, and contributions painted over them."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chimap._formatting import one_line, percent
from chimap._messages import Message
from chimap._validation import DataError
from chimap.reports.classification import ClassificationMetrics, most_confused
from chimap.reports.figures import BAD, GOOD
from chimap.reports.ranking import RankingMetrics
from chimap.reports.section import Figure, Section, image

if TYPE_CHECKING:
    from PIL import Image

    from chimap.data.reading import Reading


CONFUSED_PAIRS, IMAGES_A_PAIR = 8, 5  # confused pairs of classes to show, and images per pair
RANKED_CLASSES, IMAGES_A_CLASS = 3, 6  # best and worst classes to show, and images per class
IMAGE_HEIGHT = 88  # pixels of a small image

Reader = Callable[[int], np.ndarray]  # maps a row to its image (height, width, 3) uint8


@dataclass(frozen=True, eq=False)
class Example:
    """A small image of a page.

    Parameters
    ----------
    source : str
        The image as a data URL.
    is_right : bool
        Whether the image is of the class it is shown for.
    caption : str
        Its true and its predicted class, in words.
    """

    source: str
    is_right: bool
    caption: str


@dataclass(frozen=True, eq=False)
class ExampleRow:
    """A row of images for a pair of classes or a single class.

    Parameters
    ----------
    title : str
        The class, or the pair of classes.
    detail : str
        How often the pair was confused, or the average precision of the class.
    examples : tuple of Example
        The images.
    """

    title: str
    detail: str
    examples: tuple[Example, ...]

    def figure(self, is_marked: bool) -> Figure:
        """Return the row as a figure; with ``is_marked``, frames show which images are of the class.

        Parameters
        ----------
        is_marked : bool
            Whether to frame the images.
        """

        def draw() -> str:
            kinds = (("right" if each.is_right else "wrong") if is_marked else "" for each in self.examples)
            return "".join(
                image(e.source, e.caption, kind, e.caption) for e, kind in zip(self.examples, kinds, strict=True)
            )

        return Figure(draw, self.title, self.detail, kind="strip")


@dataclass(frozen=True, eq=False)
class Examples:
    """The images of a page.

    Parameters
    ----------
    confused : tuple of ExampleRow
        Images of the most frequent confusions.
    best : tuple of ExampleRow
        Images that rank first for the classes of the highest average precision.
    worst : tuple of ExampleRow
        Images that rank first for the classes of the lowest average precision.
    """

    confused: tuple[ExampleRow, ...]
    best: tuple[ExampleRow, ...]
    worst: tuple[ExampleRow, ...]

    def sections(self) -> tuple[Section, ...]:
        """Return a section of each kind for which there are images."""
        frames = "The highest score is on the left. Images with an orange frame are not of the class."
        pairs = (
            "True class → predicted class. For each pair, these are the images with the highest scores for the "
            "predicted class."
        )
        kinds = (
            ("Top-ranked images of the best classes", frames, self.best, True),
            ("Top-ranked images of the worst classes", "", self.worst, True),
            ("Most frequent confusions", pairs, self.confused, False),
        )
        return tuple(
            Section(title, summary, tuple(row.figure(is_marked) for row in rows), layout="stack")
            for title, summary, rows, is_marked in kinds
            if rows
        )


def examples(
    metrics: ClassificationMetrics,
    ranking: RankingMetrics,
    y_true: np.ndarray,
    y_pred: np.ndarray,
    scores: np.ndarray,
    read: Reader,
) -> Examples:
    """Choose images to show, and scale them down.

    For each of the most frequent confusions, these are the images with the highest scores for the predicted class. For
    each of the best and worst classes by average precision, they are the images with the highest scores for the class,
    whether or not they are of it.

    Parameters
    ----------
    metrics : ClassificationMetrics
        Measures with the confusion matrix.
    ranking : RankingMetrics
        Average precision of the same classes.
    y_true : ndarray of shape (n,)
        True labels.
    y_pred : ndarray of shape (n,)
        Predicted labels.
    scores : ndarray of shape (n, k)
        Scores of the classes of ``metrics``.
    read : callable
        Maps the index of a row to its image of shape (height, width, 3), uint8.

    Returns
    -------
    Examples
        The images.
    """
    order = ranking.ordered()
    best = order[:RANKED_CLASSES]
    worst = order[RANKED_CLASSES:][::-1][:RANKED_CLASSES]
    column = {name: k for k, name in enumerate(metrics.classes)}
    confused = []
    for pair in most_confused(metrics, CONFUSED_PAIRS):
        rows = np.flatnonzero((y_true == pair.true) & (y_pred == pair.predicted))
        surest = rows[np.argsort(-scores[rows, column[pair.predicted]], kind="stable")][:IMAGES_A_PAIR]
        confused.append(
            ExampleRow(
                f"{one_line(pair.true)} → {one_line(pair.predicted)}",
                f"{pair.rows} rows, {percent(pair.share)} of the true class",
                tuple(_example(read, i, False, y_true[i], y_pred[i]) for i in surest),
            )
        )
    ranked = [[_ranked(ranking, k, y_true, y_pred, scores, read) for k in classes] for classes in (best, worst)]
    return Examples(tuple(confused), tuple(ranked[0]), tuple(ranked[1]))


def _ranked(
    ranking: RankingMetrics, k: int, y_true: np.ndarray, y_pred: np.ndarray, scores: np.ndarray, read: Reader
) -> ExampleRow:
    name = ranking.classes[k]
    top_rows = np.argsort(-scores[:, k], kind="stable")[:IMAGES_A_CLASS]
    shown = tuple(_example(read, i, bool(y_true[i] == name), y_true[i], y_pred[i]) for i in top_rows)
    return ExampleRow(one_line(name), f"average precision {percent(ranking.average_precision[k])}", shown)


def _example(read: Reader, row: int, is_right: bool, true: object, predicted: object) -> Example:
    caption = (
        f"true: {one_line(true)}, predicted: {one_line(predicted)}" if true != predicted else f"true: {one_line(true)}"
    )
    return Example(small_jpeg(read(int(row))), is_right, caption)


def small_jpeg(image: np.ndarray, height: int = IMAGE_HEIGHT) -> str:
    """Return an image (height, width, 3) uint8, scaled to ``height``, as the data URL of a JPEG."""
    return jpeg(small(image, height))


def small(image: np.ndarray, height: int) -> Image.Image:
    """Scale an image (height, width, 3) uint8 to ``height``, with a width of at most three times that."""
    from PIL import Image

    width = max(1, min(3 * height, round(image.shape[1] * height / image.shape[0])))
    return Image.fromarray(image).resize((width, height), Image.Resampling.LANCZOS)


def jpeg(picture: Image.Image) -> str:
    """Return a picture as the data URL of a JPEG."""
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()


Shape = tuple[int, int]
PICTURE_SIDE = 168  # pixels on the longer side of a picture, or of the height of a photograph
_FEWEST_PIXELS = 36  # smallest number of bins that may form a picture
_LEAST_CORRELATION = 0.2  # mean correlation of vertical neighbours above which bins form a picture


def picture_shape(rows: np.ndarray) -> Shape | None:
    """Return the square shape of the pictures that rows hold, or None if vertical neighbours are not correlated.

    >>> smooth = np.cumsum(np.random.default_rng(0).random((40, 8, 8)), axis=1).reshape(40, 64)
    >>> picture_shape(smooth), picture_shape(np.random.default_rng(0).random((40, 64)))
    ((8, 8), None)
    """
    side = round(np.sqrt(rows.shape[1]))
    if side * side != rows.shape[1] or rows.shape[1] < _FEWEST_PIXELS or rows.shape[0] < 3:
        return None
    centred = rows - rows.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    varies = norms > 0
    z = np.where(varies, centred / np.where(varies, norms, 1), 0).reshape(-1, side, side)
    n_pairs = (varies.reshape(side, side)[1:] & varies.reshape(side, side)[:-1]).sum()
    near = (z[:, 1:] * z[:, :-1]).sum()
    far = (z[:, side // 2 :] * z[:, : side - side // 2]).sum()
    is_picture = n_pairs > 0 and near / n_pairs > _LEAST_CORRELATION and near > 2 * far
    return (side, side) if is_picture else None


def check_shape(shape: Shape, n_bins: int) -> None:
    """Raise DataError unless the shape has ``n_bins`` pixels."""
    if shape[0] * shape[1] != n_bins:
        raise DataError(
            Message(
                "{shape=!s} has {:,} pixels, but a row has {:,} bins.",
                f"{shape[0]}x{shape[1]}",
                shape[0] * shape[1],
                n_bins,
            )
        )


def grey(values: np.ndarray, shape: Shape) -> str:
    """Return a row as a grey picture, dark where values are large, as the data URL of a PNG."""
    return _png(np.repeat(255 - 255 * _unit(values).reshape(shape)[..., None], 3, axis=2))


def painted(contributions: np.ndarray, shape: Shape, values: np.ndarray | None = None) -> str:
    """Return positive contributions in blue and negative ones in orange over a faint picture of the row."""
    background = np.zeros(shape) if values is None else _unit(values).reshape(shape)
    return _png(_over(255 - 70 * background, contributions.reshape(shape)))


def painted_photo(image: np.ndarray, contributions: np.ndarray) -> str:
    """Return contributions (h, w) over a faint photograph (H, W, 3) uint8, as the data URL of a small JPEG.

    The contributions are blurred by a fiftieth of the longer side, since the region matters more than the exact point.
    """
    from PIL import Image
    from scipy.ndimage import gaussian_filter

    photo = small(image, PICTURE_SIDE)
    grey_values = np.asarray(photo.convert("L"), np.float64)
    resized = Image.fromarray(contributions.astype(np.float32)).resize(photo.size, Image.Resampling.BOX)
    blurred = gaussian_filter(np.asarray(resized, np.float64), max(photo.size) / 50)
    return jpeg(_picture(_over(255 - 0.6 * (255 - grey_values), blurred)))


def drawn(reading: Reading, field: object, contributions: np.ndarray) -> str | None:
    """Return the contributions painted over a drawing of a field, a data URL; None for fields without a drawing."""
    svg = reading.painted(field, contributions, (GOOD, BAD))
    return None if svg is None else "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _over(grey_values: np.ndarray, contributions: np.ndarray) -> np.ndarray:
    """Return pixels (h, w, 3) with the contributions (h, w) painted over grey values."""
    largest = float(np.abs(contributions).max()) or 1.0
    opacity = np.sqrt(np.abs(contributions) / largest)[..., None]
    colour = np.where(contributions[..., None] >= 0, _rgb(GOOD), _rgb(BAD))
    return (1 - opacity) * grey_values[..., None] + opacity * colour


def _unit(values: np.ndarray) -> np.ndarray:
    span = float(np.ptp(values)) or 1.0
    return np.asarray((values - values.min()) / span)


def _rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], np.float64)


def _picture(pixels: np.ndarray) -> Image.Image:
    from PIL import Image

    return Image.fromarray(np.clip(np.round(pixels), 0, 255).astype(np.uint8))


def _png(pixels: np.ndarray) -> str:
    from PIL import Image

    picture = _picture(pixels)
    scale = max(1, PICTURE_SIDE // max(picture.size))
    picture = picture.resize((picture.width * scale, picture.height * scale), Image.Resampling.NEAREST)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
