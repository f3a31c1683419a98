"""What a detector takes for objects where there are none, and what it learns of it."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cv2")

from chimap import HistogramClassifier
from chimap._validation import DataError
from chimap.images import HOGBlocks, ImageHistograms
from chimap.papers.detection import WindowDetector, hard_negatives, mined_detector

from ...images.pictures import stripes, texture

WINDOW = (32, 32)


@pytest.fixture(scope="module")
def histograms():
    return ImageHistograms(HOGBlocks(WINDOW), grids=((1, 1),)).fit([texture(*WINDOW, 0)])


def windows(angle, n, seed=0):
    return [stripes(*WINDOW, angle, seed + i) for i in range(n)]


def unfitted():
    return HistogramClassifier("chi2", alpha=0.01, random_state=0)


def scene():
    """Two patches of nearly the angle of the objects, the second at twice the size, in flat noise."""
    out = texture(120, 150, seed=1, sigma=8)
    out[8:40, 16:48] = stripes(*WINDOW, 0.9, 50)
    out[48:112, 64:128] = np.kron(stripes(*WINDOW, 0.9, 51), np.ones((2, 2, 1), np.uint8))
    return out


def test_cut_outs_have_the_scores_that_were_found(histograms):
    model = unfitted().fit(histograms.transform(windows(1.0, 6) + windows(0.0, 6)), np.repeat([1, 0], 6))
    detector, image = WindowDetector(model, histograms, WINDOW), scene()
    found = detector.detect(image, threshold=-0.5, scale_step=1.3)
    assert len({one.box[2] - one.box[0] for one in found}) >= 2  # of several sizes
    mined = hard_negatives(detector, [image, image], most=4, threshold=-0.5, scale_step=1.3)
    assert len(mined) == 8
    assert all(one.shape == (*WINDOW, 3) for one in mined)
    scores = model.decision_function(histograms.transform(mined))
    np.testing.assert_allclose(scores, [one.score for one in found[:4]] * 2, atol=1e-5)
    assert not hard_negatives(detector, [image], threshold=1e9)


def test_mistakes_are_learned(histograms):
    """A scene whose stripes are taken for objects at first is left alone after mining, and objects are found still."""
    objects, others = windows(1.0, 8), windows(-0.5, 8)
    first = unfitted().fit(histograms.transform(objects + others), np.repeat([True, False], 8))
    before = hard_negatives(WindowDetector(first, histograms, WINDOW), [scene()])
    detector, model = mined_detector(unfitted(), histograms, objects, others, [scene()], rounds=3)
    assert len(before) >= 2
    assert len(hard_negatives(detector, [scene()])) < len(before) / 2
    assert (model.decision_function(histograms.transform(windows(1.0, 4, seed=90))) > 0).all()


def test_it_ends_where_nothing_is_left_to_learn(histograms):
    flat = np.full((60, 60, 3), 128, np.uint8)
    objects, others = windows(1.0, 4), [*windows(-0.5, 4), flat[:32, :32]]
    _, model = mined_detector(unfitted(), histograms, objects, others, [flat], rounds=2)
    once = unfitted().fit(histograms.transform(objects + others), np.arange(9) < 4)
    np.testing.assert_array_equal(model.feature_coef_, once.feature_coef_)


def test_bad_input(histograms):
    with pytest.raises(DataError, match="got 0 and 1"):
        mined_detector(unfitted(), histograms, [], windows(0.0, 1), [])
    with pytest.raises(ValueError, match="rounds"):
        mined_detector(unfitted(), histograms, windows(1.0, 1), windows(0.0, 1), [], rounds=0)
