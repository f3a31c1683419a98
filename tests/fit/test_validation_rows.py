"""Rows whose held-out outputs are wanted."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import HistogramClassifier
from chimap.data import ArraySource
from chimap.machines.rows import PreparedRows
from chimap.moments import DealtFolds
from chimap.recipe import Recipe
from chimap.recipe.codecs import ClassCodec
from chimap.recipe.parts import parts_of
from chimap.recipe.preparation import Preparation


def prepared(n_rows, kernel="chi2", **settings):
    y = np.arange(n_rows) % 2
    source = ArraySource(np.ones((n_rows, 2), np.float32), y)
    parts = parts_of(Recipe.of(HistogramClassifier(kernel, **settings)), None, 2)
    return PreparedRows(source, Preparation(parts, np.dtype("float32"), None), ClassCodec.of(y), DealtFolds(1, 0), 0)


def test_they_are_rows_that_the_features_were_not_fitted_on_where_there_are_enough():
    rows = prepared(20_000)
    places = rows.validation(16, 4, 2**30)
    assert places.size == 2000
    assert np.array_equal(places, np.unique(places))
    assert not np.isin(places, rows.sampled()).any()


def test_of_few_rows_they_are_any():
    for n_rows in (100, 4500):
        rows = prepared(n_rows)
        places = rows.validation(16, 4, 2**30)
        assert places.size == min(n_rows, 2000)
        assert np.array_equal(places, np.unique(places))
    rows = prepared(5500)  # of which 4096 are the sample
    assert rows.validation(16, 4, 2**30).size == 5500 - rows.sampled().size


def test_landmarks_leave_a_fifth_of_the_rows_to_the_choice():
    for n_rows, n_reserved in ((1001, 200), (3000, 600), (5000, 1000), (20_000, 2000)):
        rows = prepared(n_rows, "exp-chi2", features="landmarks", n_components=1000)
        places = rows.validation(16, 4, 2**30)
        assert places.size == n_reserved
        assert not np.isin(places, rows.sampled()).any()
        assert rows.sampled().size == min(4096, n_rows - n_reserved)


def test_where_every_row_is_a_landmark_none_are_left():
    rows = prepared(1000, "exp-chi2", features="landmarks", n_components=1000)
    assert rows.sampled().size == 1000
    assert rows.validation(16, 4, 2**30).size == 1000


def noisy_words(n_rows, seed):
    """Counts of 10 words out of 400, of ten classes that share most of them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(10, size=n_rows)
    topics = np.random.default_rng(0).dirichlet(np.full(400, 0.3), 11)
    return np.array([rng.multinomial(10, 0.4 * topics[k] + 0.6 * topics[10]) for k in y], np.float32), y


def test_the_score_that_chooses_is_that_of_rows_to_come():
    """Rows that landmarks are means of lie nearer to these than others do, and score far below them when left out."""
    X, y = noisy_words(1200, 1)
    X_new, y_new = noisy_words(4000, 2)
    model = HistogramClassifier(
        "exp-chi2", features="landmarks", n_components=600, normalize="l1", alpha=[0.01, 0.02], random_state=0
    )
    model.fit(X, y)
    found = model.selection_
    score, of_new = found.settings["accuracy"][found.chosen], model.score(X_new, y_new)
    assert score == pytest.approx(of_new, abs=3 * np.sqrt(of_new * (1 - of_new) / 240))
