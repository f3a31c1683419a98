"""Figures in images: segments with a class each, their histograms, the masks that they are painted into, and the measure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from chimap._formatting import plain
from chimap._types import JSON
from chimap._validation import DataError, check_positive
from chimap.images.descriptors.base import check_image, within
from chimap.images.histograms import ImageHistograms
from chimap.images.pyramid import Pyramid
from chimap.readers.io.files import needed

VOID = 255  # value of mask pixels that are ignored


class Segment(NamedTuple):
    """A figure in an image, with its class.

    Parameters
    ----------
    figure : ndarray of shape (H, W), bool
        Which pixels of the image belong to the figure.
    label : int
        Index of the class; 0 is no class.

    Examples
    --------
    >>> Segment(np.array([[True, False]]), 7).label
    7
    """

    figure: np.ndarray
    label: int


def object_segments(classes: np.ndarray, objects: np.ndarray) -> list[Segment]:
    """Return the true figures of an image: one segment for each object, with the class of most of its pixels.

    Parameters
    ----------
    classes, objects : ndarray of shape (H, W)
        Masks as from ``voc_segmentation(masks="class")`` and ``voc_segmentation(masks="object")``: 0 is background, and
        255 is ignored.

    Returns
    -------
    list of Segment
        The segments, in the order of the object numbers.

    Raises
    ------
    DataError
        If the masks differ in shape, or an object has no pixel with a class.

    Examples
    --------
    >>> classes, objects = np.array([[7, 7, 255, 15]]), np.array([[1, 1, 255, 2]])
    >>> [(s.label, s.figure.astype(int).tolist()) for s in object_segments(classes, objects)]
    [(7, [[1, 1, 0, 0]]), (15, [[0, 0, 0, 1]])]
    """
    if classes.shape != objects.shape:
        raise DataError(
            f"masks of classes and of objects must have one shape; got {classes.shape} and {objects.shape}."
        )
    segments = []
    for number in np.unique(objects[(objects > 0) & (objects != VOID)]):
        figure = objects == number
        labels = classes[figure & (classes > 0) & (classes != VOID)]
        if not labels.size:
            raise DataError(f"object {number} of a mask has no pixel with a class in the mask of classes.")
        segments.append(Segment(figure, int(np.bincount(labels).argmax())))
    return segments


def proposed_figures(
    image: np.ndarray,
    scales: Sequence[float] = (50.0, 150.0, 450.0),
    *,
    smallest: float = 0.01,
    largest: float = 0.7,
    most_shared: float = 0.9,
) -> list[np.ndarray]:
    """Propose figures of an image: regions of even colour at several scales, and pairs of neighbouring regions.

    Parameters
    ----------
    image : ndarray of shape (H, W, 3), uint8
        The image.
    scales : sequence of float, default=(50.0, 150.0, 450.0)
        Scales of the regions; the larger, the coarser.
    smallest : float, default=0.01
        Smallest share of the image that a figure may fill.
    largest : float, default=0.7
        Largest share of the image that a figure may fill.
    most_shared : float, default=0.9
        If two figures share more than this part of their union, the later one is left out.

    Returns
    -------
    list of ndarray of shape (H, W), bool
        The figures.

    References
    ----------
    Felzenszwalb and Huttenlocher, Efficient graph-based image segmentation, 2004.

    Examples
    --------
    >>> image = np.full((60, 80, 3), 30, np.uint8)
    >>> image[10:40, 20:50] = 200
    >>> max(shared(figure, image[:, :, 0] > 100) for figure in proposed_figures(image)) > 0.8
    True
    """
    image = check_image(image)
    segmentation = needed("skimage.segmentation", "Segments", "vision")
    low, high = (share * image.shape[0] * image.shape[1] for share in (smallest, largest))
    kept: list[np.ndarray] = []
    for scale in scales:
        check_positive(scale, "each of scales")
        regions = segmentation.felzenszwalb(image, scale=scale, sigma=0.8, min_size=max(1, int(low)))
        masks = [regions == k for k in range(int(regions.max()) + 1)]
        pairs = [masks[a] | masks[b] for a, b in _neighbours(regions)]
        for figure in masks + pairs:
            if low <= figure.sum() <= high and all(shared(figure, prior) <= most_shared for prior in kept):
                kept.append(figure)
    return kept


def _neighbours(regions: np.ndarray) -> list[tuple[int, int]]:
    """Return the pairs of numbers of regions that touch."""
    sides = [(regions[:, :-1], regions[:, 1:]), (regions[:-1], regions[1:])]
    pairs = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in sides])
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return [(int(a), int(b)) for a, b in np.unique(pairs, axis=0)]


def shared(one: np.ndarray, other: np.ndarray) -> float:
    """Return the intersection over union of two figures; 0 if both are empty.

    Examples
    --------
    >>> shared(np.array([True, True, False]), np.array([False, True, True])).__round__(3)
    0.333
    """
    union = int((one | other).sum())
    return int((one & other).sum()) / union if union else 0.0


def labelled_figures(
    figures: Iterable[np.ndarray], objects: Sequence[Segment], least_shared: float = 0.5
) -> list[Segment]:
    """Give each figure the class of the object that it overlaps most.

    Parameters
    ----------
    figures : iterable of ndarray of shape (H, W), bool
        Figures of an image.
    objects : sequence of Segment
        Objects of the image, with their classes.
    least_shared : float, default=0.5
        If the intersection over union with the best object is below this, the figure gets the class 0.

    Returns
    -------
    list of Segment
        The figures with their classes, in their order.

    Examples
    --------
    >>> thing = Segment(np.array([[True, True, False]]), 3)
    >>> figures = [np.array([[True, False, False]]), np.array([[False, False, True]])]
    >>> [s.label for s in labelled_figures(figures, [thing])]
    [3, 0]
    """
    segments = []
    for figure in figures:
        shares = [shared(figure, segment.figure) for segment in objects]
        best = int(np.argmax(shares)) if shares else -1
        segments.append(Segment(figure, objects[best].label if best >= 0 and shares[best] >= least_shared else 0))
    return segments


def segment_histograms(histograms: ImageHistograms, image: np.ndarray, figures: Sequence[np.ndarray]) -> np.ndarray:
    """Return the histograms of figures of one image, which is described only once.

    Parameters
    ----------
    histograms : ImageHistograms
        Fitted histograms with ``n_regions=2``: region 0 is the ground, region 1 the figure.
    image : ndarray of shape (H, W, 3), uint8
        The image.
    figures : sequence of ndarray of shape (H, W), bool
        n figures.

    Returns
    -------
    ndarray of shape (n, columns), float32
        A row for each figure.

    Raises
    ------
    DataError
        If the histograms have another number of regions, or a figure differs in shape from the image.

    Examples
    --------
    >>> image = np.random.default_rng(0).integers(0, 256, size=(40, 50, 3), dtype=np.uint8)
    >>> histograms = ImageHistograms("colour", n_regions=2, grids=((1, 1),)).fit([image])
    >>> segment_histograms(histograms, image, [np.eye(40, 50, dtype=bool), np.ones((40, 50), bool)]).shape
    (2, 512)
    """
    if histograms.n_regions != 2:
        raise DataError(f"segments need histograms with n_regions=2; got {histograms!r}.")
    small, _ = within(histograms.max_side, check_image(image))
    masks = [within(histograms.max_side, image, figure.astype(np.int64))[1] for figure in figures]
    pyramid = Pyramid(tuple(histograms.grids), 2)
    rows = np.empty((len(masks), histograms.n_columns), np.float32)
    for columns, coded, n_words in histograms.coded(small):
        for row, mask in zip(rows, masks, strict=True):
            row[columns] = pyramid.pool(coded, n_words, small.shape, mask)
    return rows


def painted_segments(
    shape: tuple[int, int], figures: Sequence[np.ndarray], labels: Sequence[int], scores: Sequence[float]
) -> np.ndarray:
    """Paint figures into a mask of class indices, the figure with the best score on top.

    Parameters
    ----------
    shape : tuple of int
        (H, W), the shape of the mask.
    figures : sequence of ndarray of shape (H, W), bool
        The figures.
    labels : sequence of int
        Class of each figure; figures of class 0 are not painted.
    scores : sequence of float
        Score of each figure.

    Returns
    -------
    ndarray of shape (H, W), int64
        Class of each pixel; 0 where no figure is painted.

    Examples
    --------
    >>> left, all_of_it = np.array([[True, False, False]]), np.array([[True, True, True]])
    >>> painted_segments((1, 3), [left, all_of_it, all_of_it], [4, 2, 0], [1.5, 0.5, 3.0]).tolist()
    [[4, 2, 2]]
    """
    mask = np.zeros(shape, np.int64)
    for i in np.argsort(scores, kind="stable"):
        if labels[i]:
            mask[figures[i]] = labels[i]
    return mask


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
