"""Intersection over union against scikit-learn and by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from benchmarks.papers._segments import segmentation_metrics
from sklearn.metrics import jaccard_score

from chimap._validation import DataError

NAMES = ["background", "cat", "dog"]


def test_intersection_over_union_is_the_jaccard_score_of_all_pixels():
    rng = np.random.default_rng(0)
    pairs = []
    for shape in ((7, 9), (5, 4), (30, 20)):
        true = rng.integers(0, 3, shape)
        pairs.append((true, np.where(rng.random(shape) < 0.7, true, rng.integers(0, 3, shape))))
    found = segmentation_metrics(pairs, NAMES)
    true, predicted = (np.concatenate([pair[k].ravel() for pair in pairs]) for k in (0, 1))
    np.testing.assert_allclose(found.intersection_over_union, jaccard_score(true, predicted, average=None))
    assert found.mean_intersection_over_union == pytest.approx(jaccard_score(true, predicted, average="macro"))
    assert found.pixel_accuracy == pytest.approx((true == predicted).mean())


def test_by_hand_with_a_border_that_does_not_count():
    true = np.array([[0, 0, 255], [1, 1, 255]])
    predicted = np.array([[0, 1, 2], [1, 1, 0]])
    found = segmentation_metrics([(true, predicted)], NAMES)
    np.testing.assert_allclose(found.intersection_over_union, [1 / 2, 2 / 3, np.nan])
    assert found.mean_intersection_over_union == pytest.approx(7 / 12)
    plain = found.as_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


@pytest.mark.parametrize(
    ("true", "predicted", "message"),
    [
        (np.zeros((2, 2)), np.zeros((2, 3)), r"image 0: the masks have shapes \(2, 2\) and \(2, 3\)"),
        (
            np.zeros((2, 2)),
            np.full((2, 2), 3),
            "image 0: the predicted indices range from 3 to 3, but the 3 classes have the indices 0 to 2",
        ),
        (np.full((2, 2), 255), np.zeros((2, 2)), "no mask has a pixel that counts"),
    ],
)
def test_bad_masks(true, predicted, message):
    with pytest.raises(DataError, match=message):
        segmentation_metrics([(true, predicted)], NAMES)
