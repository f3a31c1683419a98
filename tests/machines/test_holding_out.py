"""Which rows are held out together."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, ShuffleSplit

from chimap import HistogramClassifier
from chimap._validation import DataError
from chimap.machines.holding_out import HoldingOut, holding_out, leaving_out
from chimap.machines.method import Method
from chimap.recipe import Recipe

from ..histograms import classes

SETTINGS = {"kernel": "exp-chi2", "features": "landmarks", "n_components": 60, "random_state": 0}
GROUPS = np.random.default_rng(3).integers(0, 23, 400).astype(str)


def asked(selection, **more):
    return holding_out(selection, **{"is_fixed": False, "has_gcv": True, "has_score": True, **more})


def test_what_a_selection_stands_for():
    assert asked("auto").asked == "gcv"
    assert asked("auto", has_gcv=False) == HoldingOut("folds", 5, 5)
    assert asked(3) == HoldingOut("folds", 3, 3)
    assert asked("holdout").n_folds == 2
    assert asked(3, is_fixed=True).n_folds == 1
    for wrong, message in ((1, "at least 2 folds"), (0, "selection"), ("loo", "selection must be")):
        with pytest.raises(ValueError, match=message):
            asked(wrong)
    with pytest.raises(ValueError, match="selection='gcv' needs"):
        asked("gcv", has_gcv=False)


def test_what_a_selection_stands_for_where_rows_are_left_out_in_closed_form():
    assert leaving_out("auto") == leaving_out("leave-one-out") == HoldingOut("leave-out", 1, 1)
    assert leaving_out(3) == HoldingOut("folds", 3, 3)
    assert leaving_out("auto").folds(400, None, None, 0).n_folds == 1
    folds = leaving_out("auto").folds(400, None, GROUPS, 0)
    assert np.array_equal(folds(0, 400), np.unique(GROUPS, return_inverse=True)[1])
    assert folds.n_folds == np.unique(GROUPS).size
    for wrong, message in (("gcv", "leave-one-out"), ("holdout", "leave-one-out"), (1, "at least 2 folds, or")):
        with pytest.raises(ValueError, match=f"selection.* must be .*{message}"):
            leaving_out(wrong)
    with pytest.raises(ValueError, match="at least 2 folds, or a splitter"):  # whatever alpha is
        Method.of(Recipe.of(HistogramClassifier("exp-chi2", features="exact", alpha=0.1, selection=1)))


@pytest.mark.parametrize("selection", ["auto", 4, "holdout", GroupKFold(3)], ids=str)
def test_rows_of_a_group_share_a_fold(selection):
    folds = asked(selection).folds(400, None, GROUPS, 0)
    own = np.concatenate([folds(0, 150), folds(150, 250)])
    for group in np.unique(GROUPS):
        assert np.unique(own[group == GROUPS]).size == 1
    counts = np.bincount(own)
    assert counts.size == folds.n_folds > 1
    if selection == "holdout":
        assert 0.1 < counts[0] / 400 < 0.3
    else:
        assert counts.max() - counts.min() < 60


def test_groups_and_splitters_that_will_not_do():
    with pytest.raises(DataError, match="groups must have one entry for each of the 400 rows"):
        asked(5).folds(400, None, np.zeros(3), 0)
    with pytest.raises(DataError, match="all rows are of one group"):
        asked(5).folds(400, None, np.zeros(400), 0)
    with pytest.raises(ValueError, match="must hold every row out once"):
        asked(ShuffleSplit(3, random_state=0)).folds(400, None, None, 0)
    assert asked(KFold(2)).folds(400, None, None, 0).n_folds == 2
    with pytest.raises(ValueError, match="must hold every row out once"):  # and then none is left to learn from
        asked(PredefinedSplit(np.zeros(400))).folds(400, None, None, 0)


@pytest.mark.parametrize("alpha", ["auto", [0.1, 1.0]])
def test_gcv_by_name_refuses_groups(alpha):
    X, y = classes(60, 6)
    groups = np.arange(60) // 3
    model = HistogramClassifier("hellinger", selection="gcv", alpha=alpha)
    with pytest.raises(ValueError, match=r"selection=.gcv. leaves out single rows.*selection=.auto., or give a number"):
        model.fit(X, y, groups=groups)
    assert model.set_params(alpha=0.1).fit(X, y, groups=groups).selection_ is None  # nothing is chosen
    assert model.set_params(alpha=alpha, selection="auto").fit(X, y, groups=groups).selection_.rule == "folds"


def test_a_splitter_and_the_same_groups_choose_alike():
    X, y = classes(400)
    settings = {"kernel": "chi2", "features": "additive", "random_state": 0}
    by_splitter = HistogramClassifier(**settings, selection=KFold(4, shuffle=True, random_state=1)).fit(X, y)
    folds = np.empty(400, int)
    for k, (_, test) in enumerate(KFold(4, shuffle=True, random_state=1).split(X)):
        folds[test] = k
    by_groups = HistogramClassifier(**settings, selection=4).fit(X, y, groups=folds)
    assert by_splitter.selection_.n_folds == by_groups.selection_.n_folds == 4
    np.testing.assert_allclose(by_splitter.selection_.means, by_groups.selection_.means, rtol=1e-6)


def test_twins_ask_for_folds_by_group():
    """Rows that come in copies predict each other: held out together they ask for a stronger penalty."""
    rng = np.random.default_rng(0)
    X, y = classes(150)
    y = np.where(rng.random(150) < 0.3, rng.integers(0, 3, 150), y)
    copies = np.repeat(np.arange(150), 4)
    alone = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit(X[copies], y[copies])
    together = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit(X[copies], y[copies], groups=copies)
    assert alone.selection_.rule == "gcv"
    assert together.selection_.rule == "folds"
    assert together.alpha_ > 2 * alone.alpha_


@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
def test_a_part_held_out_is_scored_by_the_user(scoring):
    X, y = classes(600)
    model = HistogramClassifier(
        **{"kernel": "exp-chi2"} | SETTINGS, selection="holdout", scoring=scoring, precision="float64"
    ).fit(X, y)
    result = model.selection_
    assert (result.rule, result.measure) == ("holdout", scoring or "accuracy")
    assert result.means[result.chosen] == result.means.max()
    others = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS, alpha=model.alpha_, precision="float64").fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), others.decision_function(X), atol=1e-6)
