"""Images beside the figures: those that were confused, and those that a class ranks first."""

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

PAIRS, A_PAIR = 8, 5  # confusions that are shown, and images of each
CLASSES, A_CLASS = 3, 6  # best and worst classes that are shown, and images of each
HEIGHT = 88  # pixels of a small image

Reader = Callable[[int], np.ndarray]  # the image (height, width, 3) uint8 of a row


@dataclass(frozen=True, eq=False)
class Example:
    """A small image as a page holds it: its data, whether it was right, and what it is."""

    source: str
    is_right: bool
    caption: str


@dataclass(frozen=True, eq=False)
class ExampleRow:
    """Images side by side under a title: of a pair of classes, or of one."""

    title: str
    detail: str
    examples: tuple[Example, ...]


@dataclass(frozen=True, eq=False)
class Examples:
    """The images of a page: of the most frequent confusions, and first in the ranking of the best and worst classes."""

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
    """Choose images and make them small.

    y_true, y_pred: (n,). scores: (n, k) for the classes of ``metrics``. read: image of a row. Of each of the most
    frequent confusions those are shown that the model is surest of; of each of the best and worst classes, by average
    precision, those it scores highest, right or not.
    """
    order = ranking.ordered()
    best = order[:CLASSES]
    worst = order[CLASSES:][::-1][:CLASSES]
    place = {name: k for k, name in enumerate(metrics.classes)}
    confused = []
    for pair in most_confused(metrics, PAIRS):
        rows = np.flatnonzero((y_true == pair.true) & (y_pred == pair.predicted))
        surest = rows[np.argsort(-scores[rows, place[pair.predicted]], kind="stable")][:A_PAIR]
        confused.append(
            ExampleRow(
                f"{one_line(pair.true)} → {one_line(pair.predicted)}",
                f"{pair.rows} of its rows, {percent(pair.share)}",
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
    first = np.argsort(-scores[:, k], kind="stable")[:A_CLASS]
    shown = tuple(_example(read, i, bool(y_true[i] == name), y_true[i], y_pred[i]) for i in first)
    return ExampleRow(one_line(name), f"average precision {percent(ranking.average_precision[k])}", shown)


def _example(read: Reader, row: int, is_right: bool, true: object, predicted: object) -> Example:
    caption = (
        f"is {one_line(true)}, taken for {one_line(predicted)}"
        if true != predicted
        else f"is {one_line(true)}"
    )
    return Example(small_jpeg(read(int(row))), is_right, caption)


def small_jpeg(image: np.ndarray, height: int = HEIGHT) -> str:
    """An image (height, width, 3) uint8 as the address of a small JPEG that holds its own data."""
    return jpeg(small(image, height))


def small(image: np.ndarray, height: int) -> Image.Image:
    """An image (height, width, 3) uint8 of this height, at most three times as wide."""
    from PIL import Image

    width = max(1, min(3 * height, round(image.shape[1] * height / image.shape[0])))
    return Image.fromarray(image).resize((width, height), Image.Resampling.LANCZOS)


def jpeg(picture: Image.Image) -> str:
    """The address of a picture as a JPEG that holds its own data."""
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()
