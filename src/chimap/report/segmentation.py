"""The measure of segmentations of PASCAL VOC: intersection over union."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from chimap._types import JSON
from chimap._validation import DataError
from chimap.report._plain import plain


@dataclass(frozen=True, eq=False)
class SegmentationMetrics:
    """Pixels of each true class (row) that were given to each class (column), over all images.

    classes: the k names, by index in the masks. confusion: (k, k) int64, pixels that do not count left out.
    """

    classes: tuple[object, ...]
    confusion: np.ndarray

    @property
    def intersection_over_union(self) -> np.ndarray:
        """Pixels rightly of a class over those that are of it or were given to it, (k,); NaN where there are none."""
        right = np.diag(self.confusion).astype(np.float64)
        union = self.confusion.sum(axis=0) + self.confusion.sum(axis=1) - right
        return np.divide(right, union, out=np.full(len(right), np.nan), where=union > 0)

    @property
    def mean_intersection_over_union(self) -> float:
        """The mean over the classes that occur, background among them: the score of the challenge."""
        return float(np.nanmean(self.intersection_over_union))

    @property
    def pixel_accuracy(self) -> float:
        """Share of the pixels that are right."""
        return float(np.trace(self.confusion) / self.confusion.sum())

    def as_dict(self) -> JSON:
        """Plain JSON types."""
        pairs = zip(self.classes, self.intersection_over_union, strict=True)
        return {
            "mean_intersection_over_union": plain(self.mean_intersection_over_union),
            "pixel_accuracy": self.pixel_accuracy,
            "intersection_over_union": {str(name): plain(float(value)) for name, value in pairs},
        }


def segmentation_metrics(
    pairs: Iterable[tuple[np.ndarray, np.ndarray]], classes: Sequence[object], void: int | None = 255
) -> SegmentationMetrics:
    """Compare masks (true, predicted) of images, (height, width) of indices into ``classes``, image by image.

    Pixels whose true index is ``void`` do not count. Raises DataError, naming the image, for masks of unequal shapes
    and for other indices than those of the classes.

    Source: Everingham and others, The PASCAL visual object classes challenge: a retrospective, 2015, section 2.4.

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
                f"image {i}: its masks have shapes {true.shape} and {predicted.shape}; give equal ones."
            )
        counted = np.ones(true.shape, bool) if void is None else true != void
        t, p = true[counted].astype(np.int64), predicted[counted].astype(np.int64)
        for name, values in (("true", t), ("predicted", p)):
            if values.size and not (values.min() >= 0 and values.max() < k):
                raise DataError(
                    f"image {i}: {name} indices from {values.min()} to {values.max()}, but there are {k} classes: "
                    f"0 to {k - 1}."
                )
        confusion += np.bincount(k * t + p, minlength=k * k).reshape(k, k)
    if not confusion.any():
        raise DataError("no pixels that count in any mask, so there is nothing to measure.")
    return SegmentationMetrics(tuple(classes), confusion)
