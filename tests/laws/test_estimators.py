"""What holds for every estimator: files, batches, seeds, refits, single rows, and kinds of matrices."""

from __future__ import annotations

from copy import copy
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel

import chimap

from .estimators import (
    COMPILED,
    ESTIMATORS,
    EVERY,
    TARGETS,
    X,
    Y,
    answers,
    assert_same_answers,
    made,
    outputs,
    tolerance_of,
)

NAMES = [*EVERY]
every_estimator = pytest.mark.parametrize("name", NAMES)

FIRST_BATCH = "features and provisional means are settled on the first batch"
ORDER = "steps are taken row by row, so a fit in shuffled passes is another machine"
NOT_AS_A_FIT = {name: FIRST_BATCH for name in NAMES if name.startswith(("classifier", "regressor"))} | {"online": ORDER}
NO_CLONES = {"compiled, codes": "tables of codes do not keep the model that they were made from"}


def truths(model):
    return Y if is_classifier(model) else TARGETS


def fitted_on(name, rows):
    model = made(name)
    model.fit(rows, truths(model))
    return model.compile() if name in COMPILED else model


@cache
def fitted(name):
    """Tests must leave it as it is."""
    return fitted_on(name, X)


def test_exemptions_name_estimators():
    assert {*NOT_AS_A_FIT, *NO_CLONES} <= {*NAMES}


def test_every_public_estimator_is_here():
    public = {getattr(chimap, name) for name in chimap.__all__}
    estimators = {c for c in public if isinstance(c, type) and issubclass(c, BaseEstimator) and hasattr(c, "predict")}
    assert estimators == {type(fitted(name)) for name in NAMES}


@every_estimator
def test_each_bin_has_a_share_of_importance_as_selectors_read_it(name):
    if name in NO_CLONES:
        assert not hasattr(fitted(name), "feature_importances_")
        return
    frame = pd.DataFrame(X, columns=[f"bin {j}" for j in range(X.shape[1])])
    for model in (fitted(name), *([] if name in COMPILED else [fitted_on(name, frame)])):
        shares = model.feature_importances_
        assert shares.shape == (X.shape[1],)
        assert shares.min() >= 0
        assert shares.sum() == pytest.approx(1)
        selector = SelectFromModel(model, prefit=True)
        assert selector.get_support()[shares.argmax()]
    if name not in COMPILED:
        selector.fit(frame)
        assert selector.get_feature_names_out().tolist() == frame.columns[selector.get_support()].tolist()


@every_estimator
def test_a_file_gives_the_same_model_back(name, tmp_path):
    model = fitted(name)
    chimap.save(model, tmp_path / "a")
    model.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    for again in (chimap.load(tmp_path / "a"), type(model).load(tmp_path / "a")):
        assert type(again) is type(model)
        assert_same_answers(again, model)
        assert again.score(X, truths(model)) == model.score(X, truths(model))
        if name not in NO_CLONES:  # its parameters came back too
            assert_same_answers(clone(again).fit(X, truths(model)), model)


def in_batches(name, borders):
    model = made(name)
    y = truths(model)
    known = {"classes": np.unique(y)} if is_classifier(model) else {}
    for first, last in pairwise(borders):
        model.partial_fit(X[first:last], y[first:last], **known)
        known = {}
    return model


TAKING_BATCHES = [name for name in ESTIMATORS if hasattr(made(name), "partial_fit")]


@pytest.mark.parametrize("name", [name for name in TAKING_BATCHES if name not in NOT_AS_A_FIT])
def test_batches_are_a_fit(name):
    np.testing.assert_allclose(outputs(in_batches(name, [0, 50, 90])), outputs(fitted(name)), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", [name for name in TAKING_BATCHES if name in NOT_AS_A_FIT])
def test_batches_after_the_first_are_one(name):
    many, one = in_batches(name, [0, 50, 60, 90]), in_batches(name, [0, 50, 90])
    np.testing.assert_allclose(outputs(many), outputs(one), rtol=1e-6, atol=tolerance_of(one))


@every_estimator
def test_one_seed_gives_the_same_bits(name):
    assert_same_answers(fitted_on(name, X), fitted(name))


def changed(model):
    """Another value of a setting of every kind of machine."""
    return {"C": 3.0} if "C" in model.get_params() else {"alpha": 0.7}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_remembers_nothing_of_an_earlier_one(name):
    model = made(name)
    settings = model.get_params(deep=False)
    model.set_params(**changed(model)).fit(2 * X[20:, :], truths(model)[20:])
    assert np.abs(outputs(model) - outputs(fitted(name))).max() > 1e-6
    assert_same_answers(model.set_params(**settings).fit(X, truths(model)), fitted(name))


REFUSED = {
    "a NaN among more bins": lambda y: (np.hstack([X, np.full((90, 1), np.nan)]), y),
    "no label": lambda y: (np.hstack([X, X[:, :1]]), np.full(90, np.nan)),
}


@pytest.mark.covering(1)
@pytest.mark.parametrize("refused", REFUSED)
@every_estimator
def test_a_fit_that_fails_leaves_the_model_as_it_was(name, refused):
    model = copy(fitted(name))
    before, said = dict(vars(model)), answers(model)
    for method in ("fit", "partial_fit"):
        if hasattr(model, method):
            with pytest.raises((ValueError, NotFittedError)):
                getattr(model, method)(*REFUSED[refused](truths(model)))
            assert [*map(id, vars(model).values())] == [*map(id, before.values())]
    for way, expected in answers(model).items():
        np.testing.assert_array_equal(expected, said[way])


@pytest.mark.parametrize("name", [name for name in COMPILED if name not in NO_CLONES])
def test_a_clone_of_tables_is_fitted_as_the_model_they_were_made_from(name, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "m")
    for tables in (model, chimap.load(tmp_path / "m")):
        assert_same_answers(clone(tables).fit(X, truths(model)), model)


@pytest.mark.parametrize("name", NO_CLONES)
def test_a_clone_of_tables_says_what_to_do(name):
    with pytest.raises(NotFittedError, match="fit a model, and compile it"):
        clone(fitted(name)).fit(X, Y)


@pytest.mark.covering(1)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@every_estimator
def test_a_row_alone_is_as_among_others(name, kind):
    model, rows = fitted(name), kind(X)
    together = outputs(model, rows)
    alone = np.concatenate([outputs(model, rows[[i]]) for i in range(9)])
    np.testing.assert_allclose(alone, together[:9], rtol=1e-6, atol=tolerance_of(model))


KINDS = {
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_matrix,
    "csr, float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "frame": lambda X: pd.DataFrame(X, columns=[f"bin {i}" for i in range(X.shape[1])]),
}


@pytest.mark.covering(1)
@pytest.mark.parametrize("kind", KINDS)
@every_estimator
def test_kinds_of_matrices_give_one_model(name, kind):
    rows = KINDS[kind](X)
    model = fitted_on(name, rows)
    tolerance = 1e-3 if "float32" in kind else 10 * tolerance_of(model)
    np.testing.assert_allclose(outputs(model, rows), outputs(fitted(name)), rtol=tolerance, atol=tolerance)


def test_online_steps_go_on_from_a_file(tmp_path):
    model = in_batches("online", [0, 50])
    model.save(tmp_path / "m")
    again = chimap.load(tmp_path / "m")
    assert_same_answers(again.partial_fit(X[50:], Y[50:]), model.partial_fit(X[50:], Y[50:]))
