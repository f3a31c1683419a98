"""Figures of images: from the masks of VOC's layout to a table of classes, and each step by hand."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cv2")

from benchmarks.papers._segments import (
    Segment,
    labelled_figures,
    object_segments,
    painted_segments,
    proposed_figures,
    segment_histograms,
    segmentation_metrics,
    shared,
)
from benchmarks.papers.sets.pascal_voc import CLASSES, voc_segmentation

from chimap import HistogramClassifier
from chimap._validation import DataError
from chimap.images import ImageHistograms

from ..images.pictures import stripes, texture
from . import copies

GRIDS = ((1, 1), (2, 2))


@pytest.fixture(scope="module")
def histograms():
    images = [texture(60, 80, seed) for seed in range(3)]
    descriptors = ["colour", "lbp", "phog"]
    return ImageHistograms(descriptors, n_regions=2, grids=GRIDS, max_side=80).fit(images)


def scene(seed):
    """Texture, and two bright patches of stripes: those of class 1 run one way, those of class 2 the other."""
    rng = np.random.default_rng(seed)
    image, classes, objects = texture(60, 80, seed) // 3, np.zeros((60, 80), int), np.zeros((60, 80), int)
    for k, label in enumerate(rng.permutation([1, 2])):
        top, left = int(rng.integers(2, 25)), int(rng.integers(2, 8)) + 40 * k
        place = np.s_[top : top + 28, left : left + 28]
        image[place] = 170 + stripes(28, 28, np.pi / 2 * (label - 1), seed + k) // 6
        classes[place], objects[place] = label, k + 1
    return image, classes, objects


def test_histograms_are_those_of_the_image_with_its_mask(histograms):
    image, _, objects = scene(0)
    figures = [objects == 1, objects == 2, objects > 0]
    rows = segment_histograms(histograms, image, figures)
    expected = histograms.transform([image] * 3, [figure.astype(int) for figure in figures])
    np.testing.assert_array_equal(rows, expected)
    large = np.kron(image, np.ones((2, 2, 1), np.uint8))  # is made smaller first, with its figures
    doubled = [np.kron(figure, np.ones((2, 2), bool)) for figure in figures]
    np.testing.assert_allclose(segment_histograms(histograms, large, doubled), expected, atol=1e-6)
    with pytest.raises(DataError, match="n_regions=2"):
        segment_histograms(ImageHistograms("colour").fit([image]), image, figures)


def test_objects_of_masks():
    classes = np.array([[3, 3, 255, 5, 5], [3, 9, 255, 5, 0]])
    objects = np.array([[1, 1, 255, 2, 2], [1, 1, 255, 2, 255]])
    one, other = object_segments(classes, objects)
    assert (one.label, int(one.figure.sum()), other.label, int(other.figure.sum())) == (3, 4, 5, 3)
    with pytest.raises(DataError, match="object 2 of a mask has no pixel with a class"):
        object_segments(np.where(classes == 5, 0, classes), objects)
    with pytest.raises(DataError, match="one shape"):
        object_segments(classes[:1], objects)


def test_the_figures_of_a_scene_are_proposed():
    for seed in range(3):
        image, _, objects = scene(seed)
        figures = proposed_figures(image)
        for number in (1, 2):
            assert max(shared(figure, objects == number) for figure in figures) > 0.85
        assert all(0.01 <= figure.mean() <= 0.7 for figure in figures)
        pairs = [shared(a, b) for i, a in enumerate(figures) for b in figures[:i]]
        assert max(pairs) <= 0.9


def test_figures_have_the_class_of_what_they_share_half_with():
    figure = np.zeros((10, 10), bool)
    figure[:4] = True
    objects = [Segment(np.roll(figure, k, axis=0), k) for k in (1, 3, 6)]
    assert [s.label for s in labelled_figures([figure], objects)] == [1]  # 3 rows of 5
    assert [s.label for s in labelled_figures([figure], objects[1:])] == [0]  # 1 row of 7
    assert [s.label for s in labelled_figures([figure], objects[1:], least_shared=1 / 7)] == [3]
    assert [s.label for s in labelled_figures([figure], [])] == [0]


def test_the_best_figure_is_on_top():
    a, b = np.array([[1, 1, 0]], bool), np.array([[0, 1, 1]], bool)
    assert painted_segments((1, 3), [a, b], [5, 6], [0.2, 0.9]).tolist() == [[5, 6, 6]]
    assert painted_segments((1, 3), [a, b], [5, 6], [0.9, 0.2]).tolist() == [[5, 5, 6]]
    assert painted_segments((1, 3), [a, b], [5, 0], [0.1, 9.0]).tolist() == [[5, 5, 0]]  # no class is not painted
    assert painted_segments((2, 2), [], [], []).tolist() == [[0, 0], [0, 0]]


def test_true_figures_have_the_full_measure(tmp_path):
    """Masks of VOC's layout into segments and back."""
    folder = copies.voc(tmp_path)
    classes, objects = (voc_segmentation(folder, masks=kind) for kind in ("class", "object"))
    pairs = []
    for i in range(len(classes)):
        segments = object_segments(classes.mask(i), objects.mask(i))
        figures, labels = [s.figure for s in segments], [s.label for s in segments]
        pairs.append((classes.mask(i), painted_segments(classes.mask(i).shape, figures, labels, [1.0])))
    metrics = segmentation_metrics(pairs, ["background", *CLASSES])
    assert metrics.mean_intersection_over_union == 1.0
    assert np.isfinite(metrics.intersection_over_union).sum() == 3  # background, car, person


def test_from_masks_to_the_table(histograms):
    """Proposed figures of scenes, three descriptors as blocks of one landmark model, the measure on new scenes."""
    rows, labels = [], []
    for seed in range(14):
        image, classes, objects = scene(seed)
        truth = object_segments(classes, objects)
        segments = truth + labelled_figures(proposed_figures(image, [450.0]), truth)
        rows.append(segment_histograms(histograms, image, [s.figure for s in segments]))
        labels += [s.label for s in segments]
    model = HistogramClassifier(
        "exp-chi2", blocks=histograms.blocks_, features="landmarks", n_components=60, random_state=0
    ).fit(np.concatenate(rows), labels)
    pairs = []
    for seed in range(100, 106):
        image, classes, _ = scene(seed)
        figures = proposed_figures(image, [450.0])
        scores = model.decision_function(segment_histograms(histograms, image, figures))
        best = scores.argmax(axis=1)
        painted = painted_segments(classes.shape, figures, model.classes_[best].tolist(), scores.max(axis=1))
        pairs.append((classes, painted))
    metrics = segmentation_metrics(pairs, ["background", "level", "upright"])
    assert metrics.mean_intersection_over_union > 0.8
