"""A fitted model as attributes, as estimators show them and files hold them, and back."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from chimap import (
    FourierKernelLearner,
    HistogramClassifier,
    HistogramRegressor,
    MultipleKernelLearner,
    PrincipalFeatures,
)
from chimap.models.attributes import attributes_of, model_of

from ..histograms import classes

X, Y = classes(120, 8)
MODELS = {
    "landmarks": HistogramClassifier("exp-chi2", features="landmarks", n_components=16, random_state=0),
    "exact, chosen gamma": HistogramClassifier("exp-chi2", gamma="auto", normalize="l1", random_state=0),
    "threshold": HistogramClassifier("chi2", threshold="f1", class_weight="balanced"),
    "posterior": HistogramRegressor("chi2", features="additive"),
    "components": HistogramClassifier("chi2", features=PrincipalFeatures(4)),
    "race": HistogramClassifier(time_limit=1, n_components=16, random_state=0),
    "a strength": HistogramClassifier("exp-chi2", features="exact", alpha=1.0),
    "widths": FourierKernelLearner(n_components=16, n_tune_components=8, max_iter=2, random_state=0),
    "kernels": MultipleKernelLearner(blocks=[range(4), range(4, 8)], n_components=16, random_state=0),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    model = MODELS[request.param]
    y = Y[0] == Y if request.param == "threshold" else Y
    return model.fit(X, X[:, 0] if isinstance(model, HistogramRegressor) else y)


def test_a_model_of_its_attributes_answers_the_same(fitted):
    model = fitted.fitted
    again = model_of(attributes_of(model), fitted._recipe())
    rows = model.preparation(X, 0, "X")
    np.testing.assert_array_equal(again.outputs_of_all(rows), model.outputs_of_all(rows))
    assert attributes_of(again).keys() == attributes_of(model).keys()
    assert (again.recipe.resolved, again.recipe.raced) == (model.recipe.resolved, model.recipe.raced)


def test_estimators_show_every_attribute_and_no_other(fitted):
    for name, value in attributes_of(fitted.fitted).items():
        assert getattr(fitted, name) is value
        assert name in dir(fitted)
    assert not hasattr(fitted, "no_such_attribute_")
    with pytest.raises(AttributeError, match="has no attribute 'no_such_attribute_'"):
        _ = fitted.no_such_attribute_
    with pytest.raises(AttributeError, match="has no attribute 'kernel_'"):
        _ = type(fitted)().kernel_


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_answer_the_same(fitted, copied):
    np.testing.assert_array_equal(copied(fitted).predict(X), fitted.predict(X))


def test_a_model_is_frozen(fitted):
    with pytest.raises(FrozenInstanceError):
        fitted.fitted.coef = None
