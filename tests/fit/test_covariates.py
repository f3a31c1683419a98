"""Counts beside covariates: the sum of two kernels, whose weight left-out rows choose."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import chimap
from chimap import HistogramClassifier, HistogramRegressor, LandmarkFeatures, OptimalMap, PrincipalFeatures
from chimap._formatting import covariates_in_words
from chimap.data.covariates import table_of_values

N = 200
rng = np.random.default_rng(0)
X = rng.poisson(rng.dirichlet(np.full(20, 0.3), N) * 200).astype(float)
AGE, SEX = rng.normal(50, 10, N), rng.choice(list("FM"), N)
SCORE = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std() + (AGE - 50) / 10 + (SEX == "F")
Y = np.where(SCORE + rng.normal(0, 0.5, N) > 0.5, "case", "control")
TELLING = {"age": AGE, "sex": SEX}
NOISE = {"number": rng.standard_normal(N), "level": rng.choice(list("abc"), N)}
FIXED = {"normalize": "l1", "random_state": 0}


def fitted(covariates=TELLING, kernel="exp-chi2", make=HistogramClassifier, y=Y, rows=X, **settings):
    return make(kernel, covariates=covariates, **FIXED | settings).fit(rows, y)


@pytest.mark.covering(1)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"features": "landmarks"},
        {"features": "fourier", "n_components": 300},
        {"features": LandmarkFeatures(n_components=80)},
        {"kernel": "chi2", "features": OptimalMap(n_terms=3)},
        {"kernel": "chi2", "features": "exact"},
        {"kernel": "pq", "normalize": None},
        {"kernel": "chi2", "loss": "logistic"},
        {"kernel": "chi2", "loss": "hinge"},
        {"kernel": ["exp-chi2", "chi2"], "blocks": [slice(0, 9), slice(9, None)]},
        {"gamma": "auto"},
        {"normalize": "tf-idf"},
        {"bin_weights": np.linspace(0.5, 1.5, 20)},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_the_kernel_is_the_sum_of_that_of_the_counts_and_of_the_covariates(settings, kind, tmp_path):
    model = fitted(rows=kind(X), **settings)
    scores = model.covariates_.scores
    assert scores["both"] > scores["counts"]
    assert scores["covariates add"] == scores["both"] - scores["counts"]
    assert model.n_features_in_ == 20
    n = model.covariates_.n_columns
    rows = model.schema.rows(chimap.with_covariates(kind(X), TELLING))
    prepared = model.fitted.preparation(rows.block(0, rows.n_rows).X, 0, "X")
    columns = sp.csr_matrix(prepared).toarray()[:, 20:]
    table = table_of_values(TELLING, N)
    np.testing.assert_allclose(columns, model.covariates_.columns(table, ""), rtol=1e-5, atol=1e-6)
    K = model.kernel_(np.asarray(sp.csr_matrix(prepared).toarray(), float))
    others = HistogramClassifier(**FIXED | {"kernel": "exp-chi2", "alpha": 1.0} | settings).fit(kind(X), Y)
    alone = others.fitted.preparation(kind(X), 0, "X")
    if "gamma" not in settings:  # of its own, which the left-out rows of both choose
        counts = others.kernel_(np.asarray(sp.csr_matrix(alone).toarray(), float))
        np.testing.assert_allclose(K - counts, columns @ columns.T, atol=2e-3 * np.abs(K).max())
    assert n > 0
    model.save(tmp_path / "a.model")
    again, rows = (
        chimap.load(tmp_path / "a.model"),
        chimap.with_covariates(kind(X[:50]), {k: v[:50] for k, v in TELLING.items()}),
    )
    np.testing.assert_array_equal(again.decision_function(rows), model.decision_function(rows))
    assert again.covariates_.describe() == model.covariates_.describe()


def test_noise_is_not_used_and_new_rows_need_none():
    model = fitted(NOISE)
    assert model.covariates_.weight == 0
    plain = HistogramClassifier("exp-chi2", **FIXED).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    assert "not used" in covariates_in_words(model.covariates_.describe())


def test_a_race_and_regressions_and_several_tasks_take_covariates():
    raced = HistogramClassifier(covariates=TELLING, random_state=0).fit(X, Y)
    assert raced.race_.trials
    assert raced.covariates_.weight > 0
    real = fitted(make=HistogramRegressor, y=SCORE)
    assert real.covariates_.scores["both"] > real.covariates_.scores["counts"] + 0.1
    rows = chimap.with_covariates(X, TELLING)
    assert real.score(rows, SCORE) > 0.8
    gaps = np.column_stack([SCORE > 0.5, SCORE > 0]).astype(float)
    gaps[::7, 0] = np.nan
    assert fitted(y=gaps).predict(rows).shape == (N, 2)


def test_groups_are_left_out_together():
    groups = np.repeat(np.arange(N // 4), 4)
    subject = {"site": np.array(list("abcd"))[groups % 4], **TELLING}
    model = HistogramClassifier("exp-chi2", covariates=subject, **FIXED).fit(X, Y, groups=groups)
    assert model.covariates_.scores["error of counts add"] > 0


def test_what_cannot_be_combined_is_refused():
    with pytest.raises(ValueError, match="covariates cannot be combined with principal components"):
        fitted(kernel="chi2", features=PrincipalFeatures(5))
    with pytest.raises(ValueError, match="partial_fit takes no covariates"):
        HistogramClassifier("chi2", covariates=TELLING).partial_fit(X, Y, classes=["case", "control"])
    model = fitted(kernel="chi2", features="additive")
    for refused in (model.compile, lambda: chimap.export_model(model, "never.onnx")):
        with pytest.raises(ValueError, match=r"takes 'age', 'sex' besides the bins.*save the model"):
            refused()


def test_noise_of_subjects_is_not_used_for_the_rows_of_few_of_them():
    """Ten rows of a subject share what luck its age has."""
    rng = np.random.default_rng(11)
    subject, ill = np.repeat(np.arange(12), 10), rng.permutation(12) % 2
    shares = rng.dirichlet(np.full(20, 0.5), 12) * np.exp(0.5 * np.outer(ill, np.linspace(-1, 1, 20)))
    rows = rng.poisson(300 * shares[subject] / shares.sum(axis=1)[subject, None])
    ages = {"age": rng.normal(50, 10, 12)[subject]}
    model = HistogramClassifier("exp-chi2", covariates=ages, **FIXED).fit(rows, ill[subject], groups=subject)
    assert model.covariates_.weight == 0
