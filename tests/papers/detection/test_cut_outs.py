"""The score of each window is that of the model on the window cut out, pixels of its border too."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cv2")

from chimap import AnchorMap, HistogramClassifier, _loops
from chimap.images import HOG, PHOG, ColourHistogram, HOGBlocks, ImageHistograms
from chimap.papers.detection import WindowDetector, scans

from ...images.pictures import stripes, texture

WINDOW = (40, 48)
GRIDS = ((1, 1), (3, 2), (8, 8))


def compared(descriptors, window=WINDOW, *, grids=((1, 1),), step=None, kernel="chi2", blocks=False, **settings):
    """(scores of the windows of a scene, scores of the windows cut out), of a model of two textures."""
    scene = texture(75, 101, seed=3, sigma=1)
    histograms = ImageHistograms(descriptors, n_words=9, grids=grids, random_state=0).fit([texture(75, 101, 0)])
    images = [stripes(*window, angle, seed) for seed in range(6) for angle in (0.0, 1.0)]
    if blocks:
        settings["blocks"] = histograms.blocks_ if blocks is True else blocks
    model = HistogramClassifier(kernel, alpha=0.1, random_state=0, precision="float64", **settings)
    model.fit(histograms.transform(images), np.tile([0, 1], 6))
    detector = WindowDetector(model, histograms, window, step=step)
    scores, (height, width) = detector.scores(scene), window
    cuts = [
        scene[top : top + height, left : left + width]
        for top in range(0, 75 - height + 1, detector.step)
        for left in range(0, 101 - width + 1, detector.step)
    ]
    return scores, model.decision_function(histograms.transform(cuts)).reshape(scores.shape)


@pytest.mark.parametrize(
    ("cells", "window", "settings"),
    [
        ((8,), WINDOW, {}),
        ((8,), WINDOW, {"kernel": "intersection"}),
        ((8,), WINDOW, {"step": 16, "grids": ((1, 1), (2, 2))}),
        ((6, 8), (43, 48), {}),  # the last pixels are in no cell, so that the last cells are within
        ((8,), (16, 17), {}),  # one block, both of whose sides are borders
        ((4,), (40, 9), {"kernel": "hellinger"}),
        ((8,), WINDOW, {"features": AnchorMap(n_anchors=8)}),  # values of two bins have other features
    ],
)
def test_blocks(cells, window, settings, monkeypatch):
    monkeypatch.setattr(scans, "ROWS_OF_BLOCKS", 3)  # several parts, the last one shorter
    scores, expected = compared(HOGBlocks(window, cells=cells), window, **settings)
    assert scores.size > 5
    assert np.ptp(expected) > 0.02
    np.testing.assert_allclose(scores, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("hog", "window", "settings"),
    [
        (HOG(cells=(8,), border=1), WINDOW, {}),
        (HOG(cells=(4, 6), border=1), (40, 50), {"grids": ((1, 1), (2, 3))}),  # layers of different steps
        (HOG(cells=(5,), border=1), (23, 31), {"step": 15}),  # blocks between windows that none of them holds
        (HOG(cells=(4, 8), border=2), WINDOW, {"kernel": "intersection"}),  # of the larger cells none
    ],
    ids=repr,
)
def test_words_of_gradients(hog, window, settings):
    scores, expected = compared(hog, window, **settings)
    assert scores.size > 5
    assert np.ptp(expected) > 0.02
    np.testing.assert_allclose(scores, expected, atol=1e-6)


def test_words_of_gradients_without_a_border_are_those_of_the_scene():
    """Each window's words as the scene has them; of a scene that is one window, as the window has them."""
    hog, window = HOG(cells=(6,)), (30, 36)
    histograms = ImageHistograms(hog, n_words=9, grids=((1, 1),), random_state=0).fit([texture(75, 101, 0)])
    images = [stripes(*window, angle, seed) for seed in range(6) for angle in (0.0, 1.0)]
    model = HistogramClassifier("chi2", alpha=0.1, random_state=0, precision="float64")
    model.fit(histograms.transform(images), np.tile([0, 1], 6))
    detector, scene = WindowDetector(model, histograms, window), texture(42, 60, seed=3, sigma=1)
    _, coded, _ = next(histograms.coded(scene))
    words = coded.words.reshape(6, 9)
    rows = [
        np.bincount(words[top : top + 4, left : left + 5].ravel(), minlength=9) / 20
        for top in range(3)
        for left in range(5)
    ]
    expected = model.decision_function(np.array(rows))
    np.testing.assert_allclose(detector.scores(scene).ravel(), expected, atol=1e-6)
    [[alone]] = detector.scores(images[0])
    assert alone == pytest.approx(model.decision_function(histograms.transform(images[:1]))[0], abs=1e-6)


@pytest.mark.parametrize(
    "edges", [PHOG(high=0, border=1), PHOG(low=150, high=150, border=2), PHOG(8, 180, high=0, border=4)]
)
def test_edges(edges, monkeypatch):
    monkeypatch.setattr(scans, "WINDOWS_PER_BLOCK", 3)  # several parts of a row, the last one shorter
    scores, expected = compared(edges, grids=GRIDS, step=7)
    assert scores.shape == (6, 8)
    assert np.ptp(expected) > 0.02
    np.testing.assert_allclose(scores, expected, atol=1e-6)


def test_edges_without_a_border_are_those_of_the_scene():
    """The histogram of each window from the edges that the scene has in it."""
    scene, edges = texture(50, 62, seed=5, sigma=1), PHOG(bins=6)
    histograms = ImageHistograms(edges, grids=((2, 2),)).fit([scene])
    images = [stripes(*WINDOW, angle, seed) for seed in range(6) for angle in (0.0, 1.0)]
    model = HistogramClassifier("chi2", alpha=0.1, random_state=0, precision="float64")
    model.fit(histograms.transform(images), np.tile([0, 1], 6))
    coded, rows = edges.coded(scene), []
    for top in (0, 5, 10):
        for left in (0, 5, 10):
            x, y = coded.x - left, coded.y - top
            inside = (x >= 0) & (x < 48) & (y >= 0) & (y < 40)
            cell = 2 * (y[inside] >= 20) + (x[inside] >= 24)
            counts = np.zeros((4, 6))
            np.add.at(counts, (cell[:, None], coded.words[inside]), coded.weights[inside])
            rows.append(counts.ravel() / counts.sum())
    scores = WindowDetector(model, histograms, WINDOW, step=5).scores(scene)
    np.testing.assert_allclose(scores.ravel(), model.decision_function(np.array(rows)), atol=1e-6)


def test_windows_without_an_edge():
    """Histograms of nothing are zeros, in a scene as in a window."""
    edges = PHOG(low=150, high=150, border=2)
    histograms = ImageHistograms(edges).fit([texture(*WINDOW, 0)])
    images = [stripes(*WINDOW, angle, 0) for angle in (0.0, 1.0)]
    model = HistogramClassifier("chi2", alpha=0.1).fit(histograms.transform(images), [0, 1])
    scene = np.full((60, 60, 3), 90, np.uint8)
    scores = WindowDetector(model, histograms, WINDOW, step=4).scores(scene)
    assert scores.shape == (6, 4)
    np.testing.assert_allclose(scores, model.decision_function(np.zeros((1, edges.n_words * 21)))[0])


def test_blocks_edges_and_words_together():
    descriptors = {
        "hog": HOGBlocks(WINDOW, cells=(10, 20), orientations=4),
        "phog": PHOG(bins=4, high=0, border=1),
        "colour": ColourHistogram("rgb", (2, 2, 2)),
    }
    scores, expected = compared(descriptors, grids=((1, 1), (2, 2)), blocks=True)
    assert scores.shape == (2, 3)
    np.testing.assert_allclose(scores, expected, atol=1e-6)


@pytest.mark.parametrize("descriptor", [HOGBlocks(WINDOW, cells=(8,)), PHOG(border=1, high=0)], ids=repr)
def test_two_kernels_on_the_same_columns(descriptor):
    columns = list(range(descriptor.n_words))
    both = [columns, columns]
    scores, expected = compared(descriptor, kernel=["chi2", "intersection"], blocks=both)
    np.testing.assert_allclose(scores, expected, atol=1e-6)


def test_shares_of_cells_are_never_negative_and_those_of_nothing_are_0():
    sums = np.zeros((3, 3, 2))
    sums[1:, 1:, 0] = 0.3  # one pixel of the first word, at the top left
    sums[2, 2, 0] = np.nextafter(0.3, 0)  # rounding: the empty cell at the bottom right has less than nothing
    y = np.array([[0, 1], [1, 2], [0, 2]])  # two cells, and what is inside of the border
    x = np.array([[[0, 1], [1, 2], [0, 2]], [[1, 2], [1, 2], [1, 2]]])  # the second window holds nothing
    out = np.full((2, 4), 7.0)
    _loops.cell_shares(sums, y, x, out)
    np.testing.assert_allclose(out[0], [1, 0, 0, 0], rtol=1e-12)
    assert (out >= 0).all()
    assert not out[1].any()
