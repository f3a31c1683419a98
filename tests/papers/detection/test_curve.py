"""Which detections are objects, and miss rates against false positives."""

from __future__ import annotations

import numpy as np
import pytest

from chimap.papers.detection import Detection, MissRates, matched


def test_rates_by_counting():
    rng = np.random.default_rng(0)
    scores, is_object = rng.integers(0, 12, 60).astype(float), rng.random(60) < 0.4
    curve = MissRates.of(scores, is_object, n_objects=30, n_trials=36)
    thresholds = np.append(np.inf, np.unique(scores)[::-1])
    np.testing.assert_allclose(curve.false_positives, [((scores >= t) & ~is_object).sum() / 36 for t in thresholds])
    np.testing.assert_allclose(curve.missed, [1 - ((scores >= t) & is_object).sum() / 30 for t in thresholds])


def test_at_a_rate():
    curve = MissRates(np.array([0.0, 0.1, 0.1, 0.5]), np.array([1.0, 0.6, 0.4, 0.1]))
    assert [curve.at(rate) for rate in (0.0, 0.09, 0.1, 0.49, 0.5, 9.0)] == [1.0, 1.0, 0.4, 0.4, 0.1, 0.1]
    with pytest.raises(ValueError, match=r"rate must be at least 0; got -0.1"):
        curve.at(-0.1)
    rates = [10 ** (-2 + k / 4) for k in range(9)]
    assert curve.log_average == pytest.approx(np.prod([curve.at(rate) for rate in rates]) ** (1 / 9))


def test_nothing_found():
    curve = MissRates.of(np.zeros(0), np.zeros(0, bool), n_objects=3, n_trials=1)
    assert (curve.false_positives.tolist(), curve.missed.tolist()) == ([0.0], [1.0])
    with pytest.raises(ValueError, match="at least 1"):
        MissRates.of(np.zeros(0), np.zeros(0, bool), n_objects=0, n_trials=1)


def test_an_object_is_taken_once():
    box = (0.0, 0.0, 10.0, 10.0)
    found = [
        [Detection((20, 0, 30, 10), 0.5), Detection((1, 0, 11, 10), 1.0), Detection(box, 2.0)],
        [Detection((0, 0, 10, 4.9), 3.0)],
        [],
    ]
    scores, is_object = matched(found, [[box, (21, 0, 31, 10)], [box], [box]])
    assert scores.tolist() == [2.0, 1.0, 0.5, 3.0]
    assert is_object.tolist() == [True, False, True, False]
    assert matched(found, [[box, (21, 0, 31, 10)], [box], [box]], overlap=0.49)[1].tolist() == [True, False, True, True]


def test_the_nearest_object_is_taken():
    boxes = [(0.0, 0.0, 10.0, 10.0), (2.0, 0.0, 12.0, 10.0)]
    found = [[Detection((2, 0, 12, 10), 2.0), Detection((0, 0, 10, 10), 1.0)]]
    assert matched(found, [boxes])[1].all()
