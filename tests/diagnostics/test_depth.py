"""Are there enough counts: ``model.depth``."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import HistogramClassifier, HistogramRegressor, with_covariates
from chimap._validation import DataError
from chimap.diagnostics.depth import Samples, margins_of
from chimap.normalizations import CATALOGUE


def samples(seed=0, n_rows=60, n_bins=20, n_classes=2, depth=300):
    """Counts of things that vary within their class, and the class."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    means = rng.gamma(0.4, size=n_bins) * np.exp(0.7 * rng.normal(size=(n_classes, n_bins)))
    shares = rng.gamma(2.0, size=(n_rows, n_bins)) * means[y]
    return rng.poisson(depth * shares / shares.sum(axis=1, keepdims=True)).astype(float), y


X, Y = samples()
LINEAR = HistogramClassifier("chi2", normalize="l1", alpha=1e-3).fit(X, Y)
EXACT = HistogramClassifier("minmax", normalize="log-cpm", features="exact", alpha=0.1).fit(X, Y)


def at(model, rows):
    return Samples.read(model.fitted, rows)[0]


@pytest.mark.parametrize("normalize", [None, *CATALOGUE])
def test_normalised_entries_at_a_total_are_those_of_rows(normalize):
    if normalize is None or CATALOGUE[normalize].of_total(np.ones(1), 1.0) is None:
        return
    normalization = CATALOGUE[normalize]
    rows = X[:5]
    whole = normalization(rows, [np.arange(rows.shape[1])])
    single = [normalization.of_total(row, row.sum()) for row in rows]
    np.testing.assert_allclose(single, whole, rtol=1e-12)


def test_there_is_a_form_at_a_total_unless_entries_know_others():
    assert {name for name, each in CATALOGUE.items() if each.of_total(np.ones(1), 1.0) is None} == {
        "log-z",
        "tf-idf",
        "tf-idf-ratio",
    }


@pytest.mark.parametrize("normalize", [None, "l1", "log-cpm"])
@pytest.mark.parametrize("bin_weights", [None, np.linspace(0.5, 2, 20)])
def test_additive_scores_have_the_moments_of_draws(normalize, bin_weights):
    model = HistogramClassifier("chi2", normalize=normalize, bin_weights=bin_weights, alpha=1e-3).fit(X, Y)
    rows = at(model, X[:20])
    assert rows.exact is not None
    places, depths, scales = np.array([3]), np.array([4 * rows.totals[3]]), np.array([0.25])
    mean, deviation = rows.exact.margins(rows, places, depths, scales)
    drawn = rows._drawn(places, depths, scales, 4000, np.random.default_rng(0))[0]
    squares = np.square(drawn - mean)
    assert abs(drawn.mean() - mean[0, 0]) < 4 * deviation[0, 0] / np.sqrt(4000)
    assert abs(squares.mean() - deviation[0, 0] ** 2) < 4 * squares.std() / np.sqrt(4000)
    assert abs(squares.mean() / deviation[0, 0] ** 2 - 1) < 0.3


def test_other_machines_are_drawn_from():
    assert at(EXACT, X[:9]).exact is None
    several = HistogramClassifier("chi2", normalize="l1", alpha=0.1).fit(*samples(n_classes=3))
    assert at(several, X[:9]).exact is None
    words = HistogramClassifier("linear", normalize="tf-idf", alpha=0.1).fit(X, Y)
    assert at(words, X[:9]).exact is None


@pytest.mark.parametrize("model", [LINEAR, EXACT], ids=["exact", "drawn"])
def test_deep_rows_are_more_stable_than_shallow_ones(model):
    rng = np.random.default_rng(3)
    shallow = np.array([rng.multinomial(12, row / row.sum()) for row in X])
    deep, few = model.depth(X), model.depth(shallow, times=2)
    assert np.mean(deep.stability) > np.mean(few.stability) + 0.05
    assert deep.too_shallow.sum() < few.too_shallow.sum()
    low, middle, high = (deep.curve[i].share for i in (0, 5, -1))
    assert low + 0.05 < middle < high
    assert deep.curve[-1].depth == np.quantile(X.sum(axis=1), 0.9) // 2
    assert ((deep.low <= deep.high) & (deep.stability <= 1)).all()


@pytest.mark.parametrize("model", [LINEAR, EXACT], ids=["exact", "drawn"])
def test_intervals_hold_scores_of_rows_before_they_were_thinned(model):
    rng = np.random.default_rng(4)
    rows, _ = samples(seed=5, n_rows=120, depth=1200)
    few = rng.binomial(rows.astype(int), 0.25)
    found = model.depth(few)
    whole = margins_of(model.fitted.answers, at(model, rows).outputs, at(model, few).outputs)
    covered = ((found.low <= whole) & (whole <= found.high)).mean()
    assert abs(covered - 0.9) < 4 * np.sqrt(0.9 * 0.1 / 120)
    assert found.n_calibrated == 120


def test_answers_of_every_kind():
    y = X[:, 0] / X.sum(axis=1)
    numbers = HistogramRegressor("chi2", normalize="l1").fit(X, y).depth(X[:25])
    assert numbers.margins.shape == (25, 1)
    assert (numbers.stability < 1).any()
    tasks = np.column_stack([Y, y > np.median(y)]).astype(int)
    several = HistogramClassifier("chi2", normalize="l1").fit(X, tasks).depth(X[:25])
    assert several.margins.shape == several.answers.shape == (25, 2)
    rows, y = samples(n_classes=3)
    three = HistogramClassifier("exp-chi2", normalize="l1", alpha=0.1).fit(rows, y).depth(rows[:25])
    assert three.margins.shape == (25, 1)
    assert (three.margins > 0).all()
    names = HistogramClassifier("chi2", normalize="l1", covariates={"age": np.arange(60.0)}).fit(X, Y)
    asked = with_covariates(X[:25], {"age": np.arange(25.0)})
    assert names.depth(asked).totals.tolist() == X[:25].sum(axis=1).tolist()


def test_sparse_rows_give_the_same_and_seeds_others():
    whole, sparse = (EXACT.depth(some) for some in (X[:25], sp.csr_matrix(X[:25])))
    np.testing.assert_allclose(whole.stability, sparse.stability, atol=0.02)
    again = EXACT.depth(X[:25], random_state=1)
    assert (again.low != whole.low).all()


def test_empty_rows_are_too_shallow():
    rows = X[:25].copy()
    rows[3] = 0
    with pytest.warns(UserWarning, match="1 of 25 rows are empty"):
        found = LINEAR.depth(rows)
    assert np.isnan(found.stability[3])
    assert found.too_shallow[3]
    assert "empty" in found.to_html()
    with pytest.raises(DataError, match="all 4 rows are empty"):
        LINEAR.depth(np.zeros((4, 20)))


def test_few_rows_have_intervals_of_normal_scores():
    with pytest.warns(UserWarning, match="fewer than 20 rows have 10 counts"):
        found = LINEAR.depth(X[:5])
    assert found.n_calibrated == 0
    assert found.width == pytest.approx(1.645, abs=1e-3)


def test_what_cannot_be_answered_is_said():
    with pytest.raises(DataError, match=r"X, row 0, column .* is no count"):
        LINEAR.depth(X / X.sum(axis=1, keepdims=True))
    with pytest.raises(DataError, match="row 1, column 2: -1"):
        LINEAR.depth(_with_negative())
    with pytest.raises(ValueError, match="times must be above 1"):
        LINEAR.depth(X, times=1)
    with pytest.raises(ValueError, match="hold must be a share"):
        LINEAR.depth(X, hold=1.0)


def _with_negative():
    rows = X[1:].copy()
    rows[1, 2] = -1
    return rows


def test_it_is_a_page_and_plain_values(tmp_path):
    found = LINEAR.depth(X[:25])
    page = found.save(tmp_path / "depth.html").read_text()
    assert page.count("<svg") == 1
    assert found.sentence in page
    values = found.as_dict()
    assert len(values["stability"]) == 25
    assert values["curve"][0] == found.curve[0]._asdict()
    assert values["too_shallow"] == found.too_shallow.tolist()
    lines = [str(section) for section in found.sections()]
    assert "counts a row" in lines[0]


@pytest.mark.parametrize("kernel", ["chi2", "exp-chi2"])
def test_machines_that_read_totals_get_deeper_rows_of_the_same_total(kernel):
    """Four times the counts would be rows that they have never seen."""
    rows, y = samples(seed=3, depth=5000)
    model = HistogramClassifier(kernel, normalize=None, alpha=0.01, random_state=0).fit(rows, y)
    assert at(model, rows).reads_totals
    assert not at(LINEAR, X).reads_totals
    found = model.depth(rows)
    assert np.median(found.stability) > 0.95
    np.testing.assert_allclose(np.median((found.low + found.high) / 2 - found.margins), 0, atol=0.1)
