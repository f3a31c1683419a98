"""Intersection over union, the segmentation measure of PASCAL VOC."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from chimap._formatting import plain
from chimap._types import JSON
from chimap._validation import DataError


@dataclass(frozen=True, eq=False)
class SegmentationMetrics:
    """Measures of a segmentation, from the confusion matrix of the pixels of all images.

    Parameters
    ----------
    classes : tuple
        The k class names, by their index in the masks.
    confusion : ndarray of shape (k, k), int64
        Number of pixels of true class i predicted as class j, without void pixels.
    """

    classes: tuple[object, ...]
    confusion: np.ndarray

    @property
    def intersection_over_union(self) -> np.ndarray:
        """Correct pixels of a class over the pixels that are of it or predicted as it, (k,); NaN if there are none."""
        right = np.diag(self.confusion).astype(np.float64)
        union = self.confusion.sum(axis=0) + self.confusion.sum(axis=1) - right
        return np.divide(right, union, out=np.full(len(right), np.nan), where=union > 0)

    @property
    def mean_intersection_over_union(self) -> float:
        """Mean over the classes that occur, including the background: the score of the challenge."""
        return float(np.nanmean(self.intersection_over_union))

    @property
    def pixel_accuracy(self) -> float:
        """Share of the pixels that are predicted correctly."""
        return float(np.trace(self.confusion) / self.confusion.sum())

    def as_dict(self) -> JSON:
        """Return the measures as JSON types."""
        pairs = zip(self.classes, self.intersection_over_union, strict=True)
        return {
            "mean_intersection_over_union": plain(self.mean_intersection_over_union),
            "pixel_accuracy": self.pixel_accuracy,
            "intersection_over_union": {str(name): plain(float(value)) for name, value in pairs},
        }


def segmentation_metrics(
    pairs: Iterable[tuple[np.ndarray, np.ndarray]], classes: Sequence[object], void: int | None = 255
) -> SegmentationMetrics:
    """Measure predicted masks against true ones, image by image.

    Parameters
    ----------
    pairs : iterable of tuple of ndarray
        The masks (true, predicted) of each image, both of shape (height, width), with indices into ``classes``.
    classes : sequence
        The k class names.
    void : int or None, default=255
        Pixels with this true index are ignored; None counts all pixels.

    Returns
    -------
    SegmentationMetrics
        The measures over the pixels of all images.

    Raises
    ------
    DataError
        If the two masks of an image differ in shape, if a mask has an index outside of the classes, or if no pixel
        counts. The message names the image.

    References
    ----------
    Everingham and others, The PASCAL visual object classes challenge: a retrospective, 2015, section 2.4.

    Examples
    --------
    >>> true, predicted = np.array([[0, 1], [1, 255]]), np.array([[0, 1], [0, 0]])
    >>> segmentation_metrics([(true, predicted)], ["background", "cat"]).intersection_over_union.tolist()
    [0.5, 0.5]
    """
    k = len(classes)
    confusion = np.zeros((k, k), np.int64)
    for i, (true, predicted) in enumerate(pairs):
        true, predicted = np.asarray(true), np.asarray(predicted)
        if true.shape != predicted.shape:
            raise DataError(
                f"image {i}: the masks have shapes {true.shape} and {predicted.shape}; pass masks of equal shape."
            )
        counted = np.ones(true.shape, bool) if void is None else true != void
        t, p = true[counted].astype(np.int64), predicted[counted].astype(np.int64)
        for name, values in (("true", t), ("predicted", p)):
            if values.size and not (values.min() >= 0 and values.max() < k):
                raise DataError(
                    f"image {i}: the {name} indices range from {values.min()} to {values.max()}, but the {k} classes "
                    f"have the indices 0 to {k - 1}."
                )
        confusion += np.bincount(k * t + p, minlength=k * k).reshape(k, k)
    if not confusion.any():
        raise DataError("no mask has a pixel that counts, so there is nothing to measure; check void.")
    return SegmentationMetrics(tuple(classes), confusion)
