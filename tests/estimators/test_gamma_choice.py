"""gamma="auto" of machines that do not keep every row."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import HistogramClassifier, HistogramRegressor
from chimap.data import ArraySource
from chimap.fit.fit import fit_candidate
from chimap.race import gamma
from chimap.race.gamma import gamma_of_sample
from chimap.recipe import Recipe

from ..histograms import classes

X, Y = classes(200)


def narrow(n=240):
    """Rows whose targets turn faster than their mean distance says, so that a narrow kernel is needed."""
    rows = np.random.default_rng(0).random((n, 3))
    return rows, np.sin(12 * rows[:, 0])


@pytest.mark.parametrize("features", ["landmarks", "fourier"])
def test_a_gamma_is_chosen_that_beats_the_mean(features):
    rows, y = narrow()
    common = {"features": features, "n_components": 120, "random_state": 0}
    mean, auto = (HistogramRegressor("gaussian", gamma=g, **common).fit(rows[::2], y[::2]) for g in ("mean", "auto"))
    assert auto.kernel_.gamma > 1.5 * mean.kernel_.gamma
    assert auto.score(rows[1::2], y[1::2]) > mean.score(rows[1::2], y[1::2])


def test_it_is_that_of_the_exact_machine_of_the_sample():
    auto = HistogramClassifier("exp-chi2", features="landmarks", n_components=40, gamma="auto", random_state=0).fit(
        X, Y
    )
    exact = HistogramClassifier("exp-chi2", features="exact", gamma="auto", random_state=0).fit(X, Y)
    assert auto.kernel_.gamma == pytest.approx(exact.kernel_.gamma)


def test_only_some_rows_are_looked_at(monkeypatch):
    monkeypatch.setattr(gamma, "GAMMA_ROWS", 50)
    model = HistogramClassifier("exp-chi2", gamma="auto", random_state=0)
    taken = []

    class Watched(ArraySource):
        def take(self, places):
            taken.append(len(places))
            return super().take(places)

    gamma_of_sample(Recipe.of(model), Watched(X, Y), None, fit_candidate)
    assert taken == [50]


def test_groups_are_left_out_together():
    """Copies of rows under other labels mislead whoever leaves out single rows."""
    model = HistogramClassifier("exp-chi2", gamma="auto", random_state=0)
    rows, y, groups = np.repeat(X[:60], 3, axis=0), np.repeat(Y[:60], 3), np.repeat(np.arange(60), 3)
    alone = gamma_of_sample(Recipe.of(model), ArraySource(rows, y), None, fit_candidate)
    together = gamma_of_sample(Recipe.of(model), ArraySource(rows, y), groups, fit_candidate)
    single = gamma_of_sample(Recipe.of(model), ArraySource(X[:60], Y[:60]), None, fit_candidate)
    assert alone > together == pytest.approx(single, rel=0.5)


def test_rows_in_batches_choose_by_the_first():
    model = HistogramClassifier("exp-chi2", gamma="auto", n_components=64, random_state=0)
    model.partial_fit(X[:100], Y[:100], classes=np.unique(Y)).partial_fit(X[100:], Y[100:])
    assert model.score(X, Y) > 0.6


def test_landmarks_of_blocks_are_refused():
    model = HistogramClassifier("exp-chi2", features="landmarks", gamma="auto", blocks=[slice(0, 8), slice(8, 20)])
    with pytest.raises(ValueError, match="gamma='auto' chooses one gamma for all columns"):
        model.fit(X, Y)
