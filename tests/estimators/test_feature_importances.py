"""Importance by bin as scikit-learn's selectors read it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from sklearn.pipeline import make_pipeline

from chimap import (
    FourierKernelLearner,
    HistogramClassifier,
    HistogramRegressor,
    LookupClassifier,
    OnlineIntersectionClassifier,
)

pd = pytest.importorskip("pandas")

X, y = load_digits(n_class=3, return_X_y=True)
X, y = X[:150], y[:150]
NAMES = [f"p{i}" for i in range(64)]
KERNELS = ("exp-chi2", "chi2", "linear", "hellinger", "gaussian", "minmax", "exp-chi2 + linear")


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_bin_has_a_share(kernel):
    model = HistogramClassifier(kernel, alpha=0.1, random_state=0).fit(X, y)
    shares = model.feature_importances_
    assert shares.shape == (64,)
    assert shares.sum() == pytest.approx(1)
    assert shares[0] == 0 < shares[36]  # a corner that is empty, and the middle
    assert SelectFromModel(model, prefit=True).get_support()[np.argmax(shares)]


@pytest.mark.parametrize("selector", [RFE, RFECV])
def test_selectors_remove_bins_that_are_empty(selector):
    model = HistogramClassifier("exp-chi2", alpha=0.1, random_state=0)
    settings = {"n_features_to_select": 20} if selector is RFE else {"cv": 3, "min_features_to_select": 20}
    found = selector(model, step=0.5, **settings).fit(X, y)
    assert not found.support_[X.max(axis=0) == 0].any() or found.support_.all()
    assert found.ranking_[36] == 1


def test_names_of_columns_travel_through_a_pipeline():
    model = HistogramRegressor("exp-chi2", alpha=0.1, random_state=0)
    table = pd.DataFrame(X, columns=NAMES)
    pipeline = make_pipeline(SelectFromModel(model), HistogramRegressor("chi2", alpha=0.1))
    pipeline.set_output(transform="pandas").fit(table, y)
    assert set(pipeline[1].feature_names_in_) < set(NAMES)


def test_coef_is_there_only_where_a_bin_is_a_feature():
    linear = HistogramClassifier("linear", alpha=0.1).fit(X, y)
    np.testing.assert_array_equal(linear.coef_, linear.feature_coef_)
    curved = HistogramClassifier("chi2", alpha=0.1).fit(X, y)
    with pytest.raises(AttributeError, match="feature_importances_"):
        curved.coef_  # noqa: B018
    assert not hasattr(FourierKernelLearner("exp-chi2", random_state=0, max_iter=2).fit(X, y), "coef_")


@pytest.mark.parametrize("machine", [LookupClassifier(), OnlineIntersectionClassifier(random_state=0)])
def test_machines_of_tables_have_the_movement_of_their_functions(machine):
    found = SelectFromModel(machine).fit(X, y)
    shares = found.estimator_.feature_importances_
    assert shares.sum() == pytest.approx(1)
    assert shares[0] == 0 < shares[36]
    assert not found.get_support()[X.max(axis=0) == 0].any()
    tables = found.estimator_.tables_
    scores = np.hypot.reduce(tables.std(axis=2))
    np.testing.assert_allclose(shares, scores / scores.sum())


def test_a_compiled_model_has_that_of_its_own():
    model = HistogramClassifier("chi2", alpha=0.1).fit(X, y)
    np.testing.assert_array_equal(model.compile().feature_importances_, model.feature_importances_)


def test_a_constant_model_has_none():
    model = HistogramClassifier("chi2", alpha=0.1).fit(X, y)
    constant = model.with_model(replace(model.model_, coef=np.zeros_like(model.model_.coef)))
    assert constant.feature_importances_.max() == 0
