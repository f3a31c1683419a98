"""Rows of any size predict as rows near 1: products of them neither underflow nor overflow."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import DirichletKernel, FourierKernelLearner, HistogramClassifier, MultipleKernelLearner, load
from chimap.features.scaled import Scale, ScaledFeatures
from chimap.kernels import (
    Anisotropic,
    ArccosKernel,
    Exponential,
    Gaussian,
    Linear,
    OnColumns,
    PQKernel,
    SkewedChi2,
    SkewedIntersection,
    chi2,
    hellinger,
    intersection,
)

from ..histograms import classes, histograms

X, y = classes(400)
KERNELS = {
    "chi2": chi2,
    "squared chi2": chi2.with_gamma(2.0),
    "linear": Linear(),
    "exp-chi2": Exponential(chi2, 2.0),
    "exp-chi2, mean": Exponential(chi2),
    "gaussian": Gaussian(0.5),
    "skewed": SkewedChi2(0.1),
    "skewed, auto": SkewedIntersection(),
    "arccos": ArccosKernel(chi2),
    "pq": PQKernel(),
    "dirichlet": DirichletKernel(),
    "sum": chi2 + 3.0 * Linear() + Gaussian(2.0),
    "product": chi2 * hellinger * Exponential(intersection, 3.0),
    "columns": OnColumns(Linear(), [0, 3, 5]),
    "widths": Anisotropic(Exponential(chi2, 1.0), np.repeat([0, 1], 6), [1.0, 2.0]),
    "skewed widths": Anisotropic(SkewedChi2(0.1), np.repeat([0, 1], 6), [1.0, 2.0]),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("factor", [2.0**-9, 8.0])
def test_a_rescaled_kernel_is_the_kernel_times_a_power(kernel, factor):
    rows = histograms()
    found = kernel.rescaled(factor)(factor * rows)
    np.testing.assert_allclose(found, factor**kernel.degree * kernel(rows), rtol=1e-9, atol=1e-300)


@pytest.mark.covering(2)
@pytest.mark.parametrize("kernel", ["chi2", "jensen_shannon", "linear", "exp-chi2", "gaussian", "skewed-chi2", "pq"])
@pytest.mark.parametrize("factor", [1e-40, 1e-25, 1e25])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_rows_of_any_size_predict_alike(kernel, factor, kind):
    settings = {"n_components": 64, "random_state": 0}
    usual = HistogramClassifier(kernel, **settings).fit(X[:300], y[:300])
    rows = (X * factor).astype(np.float32)
    scaled = HistogramClassifier(kernel, **settings).fit(kind(rows[:300]), y[:300])
    assert isinstance(scaled.features_, ScaledFeatures)
    agreement = (scaled.predict(kind(rows[300:])) == usual.predict(X[300:].astype(np.float32))).mean()
    # numbers below 1e-38 have fewer digits, so that some bins tie
    assert agreement >= (0.93 if kernel == "pq" else 0.97)


LEARNERS = {
    "widths": (FourierKernelLearner, {"n_tune_components": 64, "max_iter": 3}),
    "gaussian widths": (FourierKernelLearner, {"kernel": "gaussian", "n_tune_components": 64, "max_iter": 3}),
    "skewed widths": (FourierKernelLearner, {"kernel": "skewed-chi2", "n_tune_components": 64, "max_iter": 3}),
    "weights": (MultipleKernelLearner, {}),
    "weights and widths": (MultipleKernelLearner, {"joint": True, "n_tune_components": 64, "max_iter": 3}),
}


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("exponent", [-83, 83])
def test_learned_kernels_of_rows_of_any_size(name, exponent, tmp_path):
    """A power of two rounds nothing: the same model, with widths of the rows as they come."""
    learner, settings = LEARNERS[name]
    settings = settings | {"blocks": [slice(0, 8), slice(8, 20)], "n_components": 64, "random_state": 0}
    # at a size that is scaled by itself, too, and at one that is not
    usual = learner(**settings).fit(X[:300].astype(np.float32), y[:300])
    rows = (X * 2.0**exponent).astype(np.float32)
    scaled = learner(**settings).fit(rows[:300], y[:300])
    np.testing.assert_allclose(
        scaled.decision_function(rows[300:]), usual.decision_function(X[300:].astype(np.float32)), atol=0.05
    )
    if hasattr(usual, "widths_"):
        power = {"exp-chi2": 0.5, "gaussian": 1.0, "skewed-chi2": 0.0}[settings.get("kernel", "exp-chi2")]
        np.testing.assert_allclose(scaled.widths_ * 2.0 ** (power * exponent), usual.widths_, rtol=0.05)
    scaled.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(rows), scaled.predict(rows))


@pytest.mark.parametrize("factor", [1e-40, 1e-25, 1e25])
@pytest.mark.parametrize("blocks", [None, [slice(0, 8), slice(8, 20)]])
def test_normalised_rows_of_any_size(factor, blocks):
    settings = {"normalize": "l1", "blocks": blocks, "n_components": 64, "random_state": 0}
    usual = HistogramClassifier(**{"kernel": "exp-chi2"} | settings).fit(X[:300], y[:300])
    rows = (X * factor).astype(np.float32)
    for kind in (np.asarray, sp.csr_matrix):
        scaled = HistogramClassifier(**{"kernel": "exp-chi2"} | settings).fit(kind(rows[:300]), y[:300])
        assert (scaled.predict(kind(rows[300:])) == usual.predict(X[300:])).mean() >= 0.97


def test_parameters_are_those_of_the_rows_as_they_come(tmp_path):
    usual = HistogramClassifier("gaussian", n_components=64, precision="float64", random_state=0).fit(X, y)
    for gamma in ("mean", usual.kernel_.gamma * 2.0**200):
        scaled = HistogramClassifier("gaussian", gamma=gamma, n_components=64, precision="float64", random_state=0)
        scaled.fit(X * 2.0**-100, y)
        np.testing.assert_allclose(scaled.kernel_.gamma, usual.kernel_.gamma * 2.0**200)
        np.testing.assert_allclose(scaled.decision_function(X * 2.0**-100), usual.decision_function(X), atol=1e-9)
    scaled.save(tmp_path / "small.model")
    again = load(tmp_path / "small.model")
    np.testing.assert_array_equal(again.predict(X * 2.0**-100), scaled.predict(X * 2.0**-100))
    assert scaled.describe()["features"].endswith("of rows times 2^100")


def test_usual_rows_stay_as_they_are():
    for rows in (X, np.zeros((3, 2)), X * 1e6, sp.csr_matrix(X)):
        assert Scale.of(rows, [chi2]) == Scale(0)
    assert Scale.of(X * 2.0**60, [chi2, intersection]).exponent < 0
    assert Scale.of(X * 2.0**60, [chi2, Linear()]) == Scale(0)  # no factor serves both
    assert Scale(3).rows(sp.csr_matrix(X)).max() == 8 * X.max()
    tiny = np.float32([[1e-45, 3e-45]])
    for scaled in (Scale(149).rows(tiny), Scale(149).array(tiny)):
        np.testing.assert_array_equal(scaled, [[1, 2]])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_rows_that_a_prediction_rests_on_are_those_of_rows_near_1(kind):
    settings = {"features": "exact", "normalize": None, "alpha": 0.5, "random_state": 0}
    usual, large = (HistogramClassifier("minmax", **settings).fit(kind(X * factor), y) for factor in (1.0, 2.0**30))
    assert isinstance(large.features_, ScaledFeatures)
    for one, other in zip(usual.nearest(kind(X[:5])), large.nearest(kind(X[:5] * 2.0**30)), strict=True):
        np.testing.assert_array_equal(one.places, other.places)
        np.testing.assert_allclose(one.contributions, other.contributions, rtol=1e-4)
