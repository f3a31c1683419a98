"""Exact machines with few of their rows answer as the machine does, and their probabilities mean what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import chimap
from chimap import HistogramClassifier, HistogramRegressor
from chimap.features.exact import ExactFeatures
from chimap.models.compress import compress, compressions, exact_row
from chimap.moments.kept_rows import KeptRows

BLOCKS = [list(range(6)), list(range(6, 12))]


@pytest.fixture(scope="module")
def rows():
    """Shares of twelve bins around six centres, two of each of three classes, and a number that they tell."""
    rng = np.random.default_rng(0)
    centres = rng.dirichlet(np.full(12, 0.5), size=6)
    group = rng.integers(6, size=700)
    X = np.vstack([rng.multinomial(60, centre) for centre in centres[group]]).astype(np.float32)
    return X, np.array(["a", "b", "c"])[group % 3], np.log1p(X[:, 0]) + X[:, 5] / 20


def fitted(make, X, y, **settings):
    return make(features="exact", alpha=0.1, random_state=0, **settings).fit(X[:500], y[:500])


MACHINES = {
    "exp-chi2": {"kernel": "exp-chi2", "normalize": "l1"},
    "minmax": {"kernel": "minmax"},
    "blocks": {"kernel": ["exp-chi2", "gaussian"], "blocks": BLOCKS},
}


@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_few_rows_answer_as_the_machine_does(rows, kind, is_sparse):
    X, y, _ = rows
    X = sp.csr_matrix(X) if is_sparse else X
    model = fitted(HistogramClassifier, X, y, **MACHINES[kind])
    small = model.compress(80)
    assert small.features_.describe().endswith("with 80 rows")
    assert model.features_.describe().endswith("with 500 rows")
    assert small.feature_coef_.shape == (3, 80)
    new = X[500:]
    assert np.mean(small.predict(new) == model.predict(new)) > 0.95
    outputs, exact = small.decision_function(new), model.decision_function(new)
    assert np.square(outputs - exact).mean() < 0.1 * exact.var()


def test_nearly_all_rows_reach_the_outputs_of_the_machine(rows):
    X, y, _ = rows
    model = fitted(HistogramClassifier, X, y, **MACHINES["exp-chi2"])
    few, many = (
        np.abs(model.compress(n).decision_function(X[500:]) - model.decision_function(X[500:])).mean()
        for n in (20, 350)
    )
    assert many < 0.5 * few


def test_probabilities_are_learned_again(rows):
    X, y, _ = rows
    flipped = np.where(np.random.default_rng(1).random(y.size) < 0.2, "a", y)  # sure answers are wrong here
    model = fitted(HistogramClassifier, X, flipped, **MACHINES["exp-chi2"])
    small = model.compress(60)
    assert not np.array_equal(small._answers.calibration.sigmoids, model._answers.calibration.sigmoids)
    P, places = small.predict_proba(X[500:]), np.searchsorted(small.classes_, flipped[500:])
    right = small.predict(X[500:]) == flipped[500:]
    assert abs(P.max(axis=1).mean() - right.mean()) < 0.07
    held = small.predict_set(X[500:], alpha=0.1)[np.arange(200), places]
    assert held.mean() > 0.82


def test_targets_have_intervals(rows):
    X, _, target = rows
    noise = np.random.default_rng(2).normal(0, 0.3, target.size)
    model = fitted(HistogramRegressor, X, target + noise, kernel="exp-chi2")
    small = model.compress(60)
    assert small.score(X[500:], target[500:]) > model.score(X[500:], target[500:]) - 0.05
    ends = small.predict_set(X[500:], alpha=0.1)
    held = (ends[:, 0] <= (target + noise)[500:]) & ((target + noise)[500:] <= ends[:, 1])
    assert 0.82 < held.mean() < 0.98
    with pytest.raises(ValueError, match="no posterior"):
        small.predict(X[500:], return_std=True)


def test_several_tasks_with_missing_labels(rows):
    X, y, _ = rows
    Y = (y[:, None] == np.array(["a", "b"])).astype(float)
    Y[::7, 1] = np.nan
    model = fitted(HistogramClassifier, X, Y, kernel="exp-chi2")
    small = model.compress(60)
    assert np.mean(small.predict(X[500:]) == model.predict(X[500:])) > 0.95
    assert small.predict_proba(X[500:]).shape == (200, 2)


def test_the_table_compares_on_rows_that_were_left_out(rows):
    X, y, _ = rows
    model = fitted(HistogramClassifier, X, y, **MACHINES["exp-chi2"])
    found = compressions(model.fitted, [5, 40, 80])
    agreements = [one.agreement for one in found]
    assert [one.n_rows for one in found] == [5, 40, 80]
    assert agreements == sorted(agreements)
    assert agreements[0] < 0.99 < agreements[-1] + 0.03
    n_rows, took = exact_row(model.fitted)
    assert n_rows == 500
    assert min(took, *(one.microseconds for one in found)) > 0
    new = np.mean(model.with_model(found[1].model).predict(X[500:]) == model.predict(X[500:]))
    assert abs(agreements[1] - new) < 0.06
    again = model.with_model(found[-1].model)
    np.testing.assert_array_equal(again.decision_function(X), model.compress(80).decision_function(X))


def test_it_is_a_model_as_any_other(rows, tmp_path):
    X, y, _ = rows
    model = fitted(HistogramClassifier, X, y, **MACHINES["exp-chi2"])
    small = model.compress(50)
    small.save(tmp_path / "small.model")
    loaded = chimap.load(tmp_path / "small.model")
    np.testing.assert_array_equal(loaded.predict_proba(X[500:]), small.predict_proba(X[500:]))
    explanation = loaded.explain(X[500:503])
    total = explanation.base + explanation.contributions.sum(axis=1)
    np.testing.assert_allclose(total, small.decision_function(X[500:503]), atol=1e-3)
    assert len(loaded.nearest(X[500:501], k=3)[0].places) == 3
    shares = loaded.unassigned_at(X[500:])
    assert np.mean(shares <= 0.1) < 0.25
    assert np.array_equal(small.compress(20).classes_, model.classes_)  # and again


def test_other_machines_are_refused_with_what_to_do(rows):
    X, y, _ = rows
    model = HistogramClassifier("chi2", alpha=0.1).fit(X[:200], y[:200])
    with pytest.raises(ValueError, match=r"no exact machine.*features='exact'.*n_components"):
        model.compress(20)


@pytest.mark.parametrize(
    ("n_rows", "message"), [(0, "n_rows"), (2.5, "n_rows"), (450, "keeps 500 rows, of which 400 ")]
)
def test_numbers_of_rows_that_cannot_be(rows, n_rows, message):
    X, y, _ = rows
    X = X + np.random.default_rng(0).random(X.shape, np.float32)
    model = fitted(HistogramClassifier, X, y, kernel="gaussian")
    with pytest.raises(ValueError, match=message):
        model.compress(n_rows)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_centres_are_means_of_the_rows_nearest_to_them(is_sparse):
    rng = np.random.default_rng(3)
    near = rng.integers(3, size=60)
    X = (np.eye(3)[near] @ rng.random((3, 30)) * 9 + 0.1 * rng.random((60, 30))) * (rng.random((60, 30)) < 0.95)
    X[:, 20:] *= rng.random((60, 10)) < 0.05  # rare columns, which sparse rows keep apart
    rows = KeptRows(sp.csr_matrix(X) if is_sparse else X.copy())
    starts = rows.take(np.array([np.flatnonzero(near == k)[0] for k in range(3)]))
    centres = rows.clustered(starts, 2)
    expected = np.array([X[near == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(centres.centred() + rows.column_means(), expected, atol=1e-12)
    np.testing.assert_allclose(centres.squares, np.square(centres.centred()).sum(axis=1))
    alone = rows.clustered(rows.take(np.array([0, 0])), 1)  # the second is nearest to none
    np.testing.assert_allclose(alone.centred()[1] + rows.column_means(), X[0], atol=1e-12)


def test_features_of_rows_say_so():
    X = np.random.default_rng(0).dirichlet(np.ones(5), size=9)
    assert ExactFeatures("exp-chi2").fit(X).row_kernel is not None
    assert chimap.OptimalMap().fit(X).row_kernel is None


def test_a_sweep_that_left_rows_out_lends_no_probabilities_from_rows_that_it_learned(rows):
    X, y, _ = rows
    model = fitted(HistogramClassifier, X, y, kernel="exp-chi2").fitted
    found = model.learned.findings
    more = np.vstack([found.held_out, np.full((300, 3), np.nan)])  # of a source of more rows
    ended = replace(model, learned=replace(model.learned, findings=replace(found, held_out=more)))
    small = compress(ended, 80)
    assert small.answers is model.answers
    assert (small.learned.selection, small.learned.learning_curve, small.learned.race) == (None, None, None)
