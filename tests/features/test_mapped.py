"""Scores as functions of mapped rows are the scores, family by family."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import DirichletMap, FourierFeatures, NystroemFeatures, OptimalMap, SkewedFourierFeatures
from chimap.features.additive.identity import IdentityMap
from chimap.features.blocks import BlockFeatures
from chimap.features.exact import ExactBlocks, ExactFeatures
from chimap.features.landmarks import LandmarkFeatures
from chimap.features.scaled import Scale, ScaledFeatures
from chimap.kernels import Exponential, OnColumns, chi2

BINS = 6
FAMILIES = {
    "additive": lambda: OptimalMap("chi2", 3),
    "signed": lambda: OptimalMap(chi2.signed(), 2),
    "linear": IdentityMap,
    "dirichlet": lambda: DirichletMap(),
    "pairs": lambda: FourierFeatures("exp-chi2", 33, random_state=0),
    "cosines": lambda: FourierFeatures("exp-chi2", 20, form="offset", random_state=0),
    "gaussian": lambda: FourierFeatures("gaussian", 20, random_state=0),
    "skewed": lambda: SkewedFourierFeatures("skewed-chi2", 20, random_state=0),
    "landmarks": lambda: LandmarkFeatures("exp-jensen_shannon", 15, random_state=0),
    "exact": lambda: ExactFeatures("exp-chi2"),
    "exact additive": lambda: ExactFeatures("chi2"),
    "exact gaussian": lambda: ExactFeatures("gaussian"),
    "exact blocks": lambda: ExactBlocks([ExactFeatures("exp-chi2"), ExactFeatures("chi2")], [slice(0, 4), [5, 4]]),
    "blocks": lambda: BlockFeatures(
        [OptimalMap("chi2", 2), LandmarkFeatures("gaussian", 9, random_state=0)], [slice(0, 4), [5, 4]]
    ),
}


def data(n=30, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(BINS), size=n)


def model_of(features, X, seed=1):
    rng = np.random.default_rng(seed)
    D = features.transform(X[:1]).shape[1]
    coef, intercept = rng.normal(size=(D, 3)), rng.normal(size=3)
    return features.mapped_model(coef, intercept), coef, intercept


@pytest.mark.parametrize("make", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_the_scores_are_those_of_the_features(make, is_sparse):
    X = data()
    rows = sp.csr_matrix(X) if is_sparse else X
    features = make().fit(rows)
    model, coef, intercept = model_of(features, rows)
    Z = features.transform(rows)
    expected = (Z.toarray() if sp.issparse(Z) else Z) @ coef + intercept
    np.testing.assert_allclose(model.function(model.rows(rows)), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("make", FAMILIES.values(), ids=FAMILIES)
def test_a_coordinate_changes_with_its_bin_alone(make):
    X = data()
    features = make().fit(X)
    model, _, _ = model_of(features, X)
    if isinstance(features, DirichletMap):
        pytest.skip("shares of a row that no longer sums to 1 change with all bins")
    for i in range(BINS):
        changed = X.copy()
        changed[:, i] += 0.01
        moved = np.abs(model.rows(changed) - model.rows(X)).max(axis=0) > 1e-12
        assert set(model.bins[moved]) <= {i}


@pytest.mark.parametrize("kernel", ["gaussian", "exp-chi2", "skewed"])
def test_rows_of_large_mean_have_the_scores_of_the_features(kernel):
    X = 1e4 + data()
    make = (
        SkewedFourierFeatures("skewed-chi2", 20, random_state=0)
        if kernel == "skewed"
        else FourierFeatures(kernel, 20, random_state=0)
    )
    features = make.fit(X)
    assert features.centre_.any()
    model, coef, intercept = model_of(features, X)
    np.testing.assert_allclose(model.function(model.rows(X)), features.transform(X) @ coef + intercept, atol=1e-8)


def test_scaled_features_have_the_scores_of_rows_as_they_come():
    X = data() * 1e30
    scale = Scale.of(X, [chi2])
    features = ScaledFeatures(OptimalMap("chi2", 2).fit(scale.rows(X)), scale)
    coef, intercept = np.ones((features._n_features_out, 1)), np.zeros(1)
    model = features.mapped_model(coef, intercept)
    np.testing.assert_allclose(model.function(model.rows(X)), features.transform(X) @ coef, rtol=1e-9)


def test_a_product_of_kernels_has_the_bins_of_its_columns():
    kernel = OnColumns(Exponential(chi2, 1.0), (4, 5)) * OnColumns(Exponential(chi2, 1.0), (0, 1))
    features = LandmarkFeatures(kernel, 9, random_state=0).fit(data())
    model, _, _ = model_of(features, data())
    assert set(model.bins) == {0, 1, 4, 5}


def test_features_without_mapped_rows_have_none():
    features = NystroemFeatures("pq", 5, random_state=0).fit(data())
    assert features.mapped_model(np.ones((features.transform(data()).shape[1], 1)), np.zeros(1)) is None
