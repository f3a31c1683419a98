"""Scores of windows by tables against the model on the histogram of each window, counted by itself."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cv2")

from chimap import HistogramClassifier
from chimap.images import LBP, PHOG, SIFT, ColourHistogram, HOGBlocks, ImageHistograms, Pyramid
from chimap.images.descriptors import Coded, LocalDescriptor, Points
from chimap.papers.detection import Detection, WindowDetector, best_of

from ...images.pictures import stripes, texture

WINDOW = (40, 46)
SIFT_8 = SIFT(step=5, sizes=(4, 6, 7))
GRIDS = ((1, 1), (2, 2), (1, 3))


@pytest.fixture(scope="module")
def histograms():
    return ImageHistograms(SIFT_8, n_words=15, grids=GRIDS, random_state=0).fit([texture(80, 80, 0)])


def fitted(histograms, n_classes=2, kernel="chi2", **options):
    images = [stripes(*WINDOW, angle, seed) for seed in range(8) for angle in np.arange(n_classes)]
    labels = np.tile(np.arange(n_classes), 8).astype(str)
    model = HistogramClassifier(kernel, alpha=0.1, random_state=0, **options)
    return model.fit(histograms.transform(images), labels)


def window_rows(histograms, scene):
    """The histogram of each window of a scene, from the words of the scene: what the scan has to agree with."""
    _, coded, n_words = next(histograms.coded(scene))
    pyramid, step = Pyramid(GRIDS), SIFT_8.step
    rows = []
    for top in range(0, scene.shape[0] - WINDOW[0] + 1, step):
        for left in range(0, scene.shape[1] - WINDOW[1] + 1, step):
            inside = np.zeros(coded.x.size, bool)
            start = 0
            for size in SIFT_8.sizes:
                x, y = SIFT_8.grid(scene.shape, size)
                last_x, last_y = (side - 3 * size for side in (WINDOW[1], WINDOW[0]))
                first = int(1.5 * (7 - size))
                kept = np.outer((y >= top + first) & (y < top + last_y), (x >= left + first) & (x < left + last_x))
                inside[start : start + kept.size] = kept.ravel()
                start += kept.size
            own = Coded(coded.x[inside] - left, coded.y[inside] - top, coded.words[inside])
            rows.append(pyramid.pool(own, n_words, WINDOW))
    return np.array(rows)


@pytest.mark.parametrize("kernel", ["chi2", "intersection", "hellinger"])
def test_scores_are_those_of_the_model(histograms, kernel):
    model, scene = fitted(histograms, kernel=kernel, precision="float64"), texture(61, 88, seed=1)
    detector = WindowDetector(model, histograms, WINDOW)
    expected = model.decision_function(window_rows(histograms, scene).astype(np.float64))
    scores = detector.scores(scene)
    assert scores.shape == (5, 9)
    np.testing.assert_allclose(scores.ravel(), expected, atol=1e-6)


def test_classes(histograms):
    """The score of one class of several, and of the first of two."""
    scene = texture(50, 60, seed=2)
    rows = window_rows(histograms, scene)
    three = fitted(histograms, 3)
    scores = WindowDetector(three, histograms, WINDOW, target="1").scores(scene)
    np.testing.assert_allclose(scores.ravel(), three.decision_function(rows)[:, 1], atol=1e-4)
    two = fitted(histograms)
    scores = [WindowDetector(two, histograms, WINDOW, target=name).scores(scene) for name in "01"]
    np.testing.assert_allclose(scores[0], -scores[1])


def test_several_descriptors():
    """Blocks whose points lie 5 pixels apart and at every pixel; each window as the scene's words have it."""
    descriptors = {"sift": SIFT_8, "colour": ColourHistogram("rgb", (2, 2, 2)), "lbp": LBP()}
    histograms = ImageHistograms(descriptors, n_words=9, grids=GRIDS, random_state=0).fit([texture(80, 80, 0)])
    model, scene = fitted(histograms, blocks=histograms.blocks_), texture(61, 88, seed=1)
    detector = WindowDetector(model, histograms, WINDOW)
    rows = [window_rows(histograms, scene)]
    for name in ("colour", "lbp"):
        descriptor = descriptors[name]
        words = descriptor.coded(scene).words.reshape(-1, *scene.shape[:2])
        rows.append([])
        for top in range(0, scene.shape[0] - WINDOW[0] + 1, 5):
            for left in range(0, scene.shape[1] - WINDOW[1] + 1, 5):
                own = words[:, top : top + WINDOW[0], left : left + WINDOW[1]]
                y, x = np.divmod(np.arange(WINDOW[0] * WINDOW[1]), WINDOW[1])
                coded = Coded(np.tile(x, len(own)), np.tile(y, len(own)), own.reshape(-1, 1))
                rows[-1].append(Pyramid(GRIDS).pool(coded, descriptor.n_words, WINDOW))
    expected = model.decision_function(np.concatenate(rows, axis=1))
    scores = detector.scores(scene)
    assert (detector.step, scores.shape) == (5, (5, 9))
    np.testing.assert_allclose(scores.ravel(), expected, atol=1e-4)


def test_a_scene_of_the_window_s_size_is_its_own_window(histograms):
    """No pixels around it: the score is exactly that of the model."""
    model, image = fitted(histograms), stripes(*WINDOW, 0.4, 3)
    [[score]] = WindowDetector(model, histograms, WINDOW).scores(image)
    assert score == pytest.approx(model.decision_function(histograms.transform([image]))[0], abs=1e-4)


def test_objects_are_found(histograms):
    """Stripes among stripes of the other class, at the window's size and at twice that."""
    model = fitted(histograms)
    scene = stripes(150, 180, 0.0, 1)
    scene[20:60, 30:76] = stripes(*WINDOW, 1.0, 2)
    large = np.kron(stripes(*WINDOW, 1.0, 4)[:, :, 0], np.ones((2, 2), np.uint8))
    scene[65:145, 80:172] = large[:, :, None]
    detector = WindowDetector(model, histograms, WINDOW)
    best = max(detector.detect(scene, scale_step=2, largest=1), key=lambda one: one.score)
    assert np.abs(np.array(best.box) - (30, 20, 76, 60)).max() <= 5
    found = detector.detect(scene, scale_step=2)
    assert any(np.abs(np.array(one.box) - (80, 65, 172, 145)).max() <= 15 for one in found[:3])
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert not detector.detect(scene, threshold=1e9)


def test_scales(histograms):
    detector = WindowDetector(fitted(histograms), histograms, WINDOW)
    assert detector.scales((160, 184), 2) == [1, 2, 4]
    assert detector.scales((160, 184), 2, largest=2) == [1, 2]
    assert detector.scales((10, 10)) == [1]
    for endless in (1.0, 0.5):
        with pytest.raises(ValueError, match="scale_step"):
            detector.scales((160, 184), endless)
    assert detector.scores(np.zeros((10, 10, 3), np.uint8)).size == 0


def test_the_better_of_two_stays():
    boxes = [Detection((0, 0, 10, 10), 1.0), Detection((1, 0, 11, 10), 2.0), Detection((20, 0, 30, 10), 0.5)]
    assert best_of(boxes, 0.3) == [boxes[1], boxes[2]]
    assert best_of(boxes, 0.9) == [boxes[1], boxes[0], boxes[2]]
    assert best_of([], 0.3) == []


class Corners(LocalDescriptor):
    """Points where the image has them."""

    def points(self, image):
        y, x = np.nonzero(image[:, :, 0] > 128)
        return Points(np.float32(x), np.float32(y), image[y, x].astype(np.float32))

    def __repr__(self):
        return "Corners"


def test_what_cannot_be_scanned(histograms):
    model = fitted(histograms)
    own = ImageHistograms(Corners(), n_words=4, grids=GRIDS).fit([texture(80, 80, 0)])
    blocks = ImageHistograms(HOGBlocks((16, 16)), grids=GRIDS).fit([texture(16, 16, 0)])
    edges = ImageHistograms(PHOG(border=20), grids=GRIDS).fit([texture(80, 80, 0)])
    soft = ImageHistograms(SIFT_8, n_words=15, grids=GRIDS, coding="soft").fit([texture(80, 80, 0)])
    for call, message in (
        (lambda: WindowDetector(model, own, WINDOW), "HOGBlocks and PHOG; 'corners' is Corners"),
        (lambda: WindowDetector(fitted(blocks), blocks, WINDOW), r"size of the blocks, \(16, 16\)"),
        (lambda: WindowDetector(fitted(edges), edges, WINDOW), "all border"),
        (lambda: WindowDetector(model, histograms, WINDOW, step=7), "multiple of 5"),
        (lambda: WindowDetector(model, soft, WINDOW), "coding='hard'"),
        (lambda: WindowDetector(model, histograms, (8, 8)), "holds no points"),
        (lambda: WindowDetector(model, histograms, WINDOW, target="cat"), "target must be one of 0, 1"),
        (lambda: WindowDetector(fitted(histograms, 3), histograms, WINDOW), "target must be one of the 3"),
        (lambda: WindowDetector(fitted(histograms, normalize="l1"), histograms, WINDOW), "normalize=None"),
        (
            lambda: WindowDetector(fitted(histograms, kernel="exp-chi2", n_components=16), histograms, WINDOW),
            "additive",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
