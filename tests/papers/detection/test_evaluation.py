"""Miss rates of a detector against windows and detections counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cv2")

from chimap import HistogramClassifier
from chimap._validation import DataError
from chimap.images import HOGBlocks, ImageHistograms
from chimap.papers.detection import WindowDetector, scene_miss_rates, window_miss_rates

from ...images.pictures import stripes, texture

WINDOW = (32, 24)


@pytest.fixture(scope="module")
def detector():
    histograms = ImageHistograms(HOGBlocks(WINDOW), grids=((1, 1),)).fit([texture(*WINDOW, 0)])
    images = [stripes(*WINDOW, angle, seed) for seed in range(8) for angle in (0.0, 1.0)]
    model = HistogramClassifier("chi2", alpha=0.1, random_state=0).fit(histograms.transform(images), np.tile([0, 1], 8))
    return WindowDetector(model, histograms, WINDOW)


def objects(n):
    return [stripes(*WINDOW, 1.0, 50 + i) for i in range(n)]


def test_per_window(detector):
    scenes = [stripes(70, 90, 0.9, 1), texture(70, 90, 2, sigma=1)]  # the first is much like the objects
    curve = window_miss_rates(detector, objects(5), scenes, scale_step=1.5)
    scores = [detector.scores(image)[0, 0] for image in objects(5)]
    others = np.concatenate([s.ravel() for image in scenes for _, s in detector.scan(image, scale_step=1.5)])
    assert others.max() > min(scores)
    points = list(zip(curve.false_positives, curve.missed, strict=True))
    for threshold in [*scores, *np.quantile(others, [0.1, 0.5, 0.9], method="lower")]:
        expected = (others >= threshold).mean(), np.mean([score < threshold for score in scores])
        assert min(np.abs(np.array(point) - expected).max() for point in points) < 1e-12
    at_scale_1 = window_miss_rates(detector, objects(5), scenes, largest=1)
    n_windows = sum(detector.scores(image).size for image in scenes)
    assert at_scale_1.false_positives[at_scale_1.false_positives > 0].min() == pytest.approx(1 / n_windows)
    with pytest.raises(DataError, match=r"object 1 has 30 x 24 pixels, the window 32 x 24"):
        window_miss_rates(detector, [objects(1)[0], objects(1)[0][:30]], scenes)


def test_per_image(detector):
    flat = np.full((96, 120, 3), 128, np.uint8)
    scene = stripes(96, 120, 0.0, 3)
    scene[40:72, 64:88] = objects(1)[0]
    box = (64, 40, 88, 72)
    scenes = [(scene, [box]), (flat, []), (flat, [(0, 0, 24, 32)])]  # what is not there is missed
    curve = scene_miss_rates(detector, scenes, threshold=0.0, largest=1)
    found = detector.detect(scene, 0.0, largest=1)
    assert found[0].box == box
    assert curve.missed[1] == 0.5
    assert curve.false_positives[1] == 0
    assert curve.false_positives[-1] == pytest.approx((len(found) - 1) / 3)
    apart = [(scene, [(64, 40, 88, 110)]), (flat, [])]  # 32 of 70 rows are common
    assert scene_miss_rates(detector, apart, 0.0, largest=1).missed.min() == 1.0
    assert scene_miss_rates(detector, apart, 0.0, least_shared=0.4, largest=1).missed.min() == 0.0
