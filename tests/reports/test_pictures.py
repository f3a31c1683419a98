"""Which images a page shows."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from chimap.reports import classification_metrics, examples, ranking_metrics
from chimap.reports.pictures import small_jpeg


def test_surest_confusions_and_rankings():
    names = np.array(["ant", "bee", "cat"])
    y_true = np.repeat(names, 4)
    scores = np.where(y_true[:, None] == names, 1.0, 0.0) + np.arange(12)[:, None] / 100
    scores[:3, 1] = [3, 5, 4]  # ants that are taken for bees
    y_pred = names[scores.argmax(axis=1)]
    read_rows = []

    def read(row):
        read_rows.append(row)
        return np.full((50, 40, 3), 20 * row, np.uint8)

    metrics, ranking = classification_metrics(y_true, y_pred), ranking_metrics(y_true, scores, names.tolist())
    shown = examples(metrics, ranking, y_true, y_pred, scores, read)
    (pair,) = shown.confused
    assert pair.title == "ant → bee"
    assert [e.caption for e in pair.examples] == ["true: ant, predicted: bee"] * 3
    assert read_rows[:3] == [1, 2, 0]
    assert [row.title for row in shown.best] == ["ant", "cat", "bee"]
    assert shown.worst == ()
    assert [e.is_right for e in shown.best[-1].examples[:5]] == [False, False, False, True, True]


@pytest.mark.parametrize("shape", [(1, 1, 3), (300, 200, 3), (10, 4000, 3)])
def test_small_images(shape):
    address = small_jpeg(np.zeros(shape, np.uint8))
    picture = Image.open(io.BytesIO(base64.b64decode(address.removeprefix("data:image/jpeg;base64,"))))
    assert picture.height == 88
    assert picture.width <= 264
    assert len(address) < 10_000
