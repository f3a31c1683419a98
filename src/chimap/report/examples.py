"""Images to show next to the figures: confused ones, and those that rank first for a class."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chimap.report._plain import one_line, percent
from chimap.report.classification import ClassificationMetrics, most_confused
from chimap.report.ranking import RankingMetrics

if TYPE_CHECKING:
    from PIL import Image

PAIRS, A_PAIR = 8, 5  # confused pairs of classes to show, and images per pair
CLASSES, A_CLASS = 3, 6  # best and worst classes to show, and images per class
HEIGHT = 88  # pixels of a small image

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
    best = order[:CLASSES]
    worst = order[CLASSES:][::-1][:CLASSES]
    column = {name: k for k, name in enumerate(metrics.classes)}
    confused = []
    for pair in most_confused(metrics, PAIRS):
        rows = np.flatnonzero((y_true == pair.true) & (y_pred == pair.predicted))
        surest = rows[np.argsort(-scores[rows, column[pair.predicted]], kind="stable")][:A_PAIR]
        confused.append(
            ExampleRow(
                f"{one_line(pair.true)} → {one_line(pair.predicted)}",
                f"{pair.rows} rows, {percent(pair.share)} of the true class",
                tuple(_example(read, i, False, y_true[i], y_pred[i]) for i in surest),
            )
        )
    ranked = [
        [_ranked(ranking, k, y_true, y_pred, scores, read) for k in classes] for classes in (best, worst)
    ]
    return Examples(tuple(confused), tuple(ranked[0]), tuple(ranked[1]))


def _ranked(
    ranking: RankingMetrics, k: int, y_true: np.ndarray, y_pred: np.ndarray, scores: np.ndarray, read: Reader
) -> ExampleRow:
    name = ranking.classes[k]
    top_rows = np.argsort(-scores[:, k], kind="stable")[:A_CLASS]
    shown = tuple(_example(read, i, bool(y_true[i] == name), y_true[i], y_pred[i]) for i in top_rows)
    return ExampleRow(one_line(name), f"average precision {percent(ranking.average_precision[k])}", shown)


def _example(read: Reader, row: int, is_right: bool, true: object, predicted: object) -> Example:
    caption = (
        f"true: {one_line(true)}, predicted: {one_line(predicted)}"
        if true != predicted
        else f"true: {one_line(true)}"
    )
    return Example(small_jpeg(read(int(row))), is_right, caption)


def small_jpeg(image: np.ndarray, height: int = HEIGHT) -> str:
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
