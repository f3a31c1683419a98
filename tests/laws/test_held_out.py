"""Held-out answers are those of rows to come: of new groups where rows are in groups, whatever chooses and solves."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, PredefinedSplit

from chimap import (
    HistogramClassifier,
    HistogramRegressor,
    MultipleKernelLearner,
    MultipleKernelRegressor,
    PrincipalFeatures,
)
from chimap.losses import EpsilonInsensitive
from chimap.solvers.block_problem import BlockSolver

from ..held_out import watched

N_GROUPS, EACH, N_NEW, LEVEL = 60, 6, 300, 0.2
SEEDS = (0, 1)
HALVES = [slice(0, 6), slice(6, 12)]

FEATURES = {
    "additive": {"kernel": "chi2", "features": "additive"},
    "landmarks": {"kernel": "exp-chi2", "features": "landmarks", "n_components": 150},
    "fourier": {"kernel": "exp-chi2", "features": "fourier", "n_components": 200},
    "more features than rows": {"kernel": "exp-chi2", "features": "fourier", "n_components": 600},
    "blocks": {"kernel": "chi2", "features": "additive", "blocks": HALVES},
    "exact": {"kernel": "exp-chi2", "features": "exact"},
}
SELECTIONS = {
    "fixed": {"alpha": 0.03},
    "auto": {},
    "folds": {"selection": 4},
    "holdout": {"selection": "holdout"},
    "splitter": {"selection": GroupKFold(5)},
}
OF_SQUARE = ("holdout",)  # selections of the square loss alone


def is_offered(loss, features, selection):
    """Whether a machine has this loss, these features and this selection, and is not another one of the list again."""
    if features == "exact":
        return loss in ("square", "squared_hinge") and selection in ("fixed", "auto", "folds", "splitter")
    if features in ("more features than rows", "blocks"):
        return loss == "square" and selection in ("fixed", "auto")
    return loss in ("square", "epsilon_insensitive") or selection not in OF_SQUARE


def grouped(n_groups, seed):
    """Histograms of groups whose rows resemble each other, with a class and a target that each group has in common."""
    rng = np.random.default_rng([seed, n_groups])
    groups = np.repeat(np.arange(n_groups), EACH)
    profiles = rng.gamma(1.0, size=(n_groups, 12)) + 0.05
    X = rng.gamma(30 * profiles[groups])
    signal = np.log(profiles[:, 0] / profiles[:, 1])
    y = (rng.random(n_groups) < expit(1.5 * signal)).astype(int)
    target = signal + 2 * rng.standard_normal(n_groups)
    return X / X.sum(axis=1, keepdims=True), y[groups], target[groups], groups


def cases(losses):
    return [
        pytest.param(loss, features, selection, id=f"{loss}, {features}, {selection}")
        for loss, features, selection in product(losses, FEATURES, SELECTIONS)
        if is_offered(loss, features, selection)
        and not (loss in ("epsilon_insensitive", "quantile") and selection in OF_SQUARE)
    ]


def assert_holds(held, model):
    """The share of truths within sets is that which was asked for; models of fewer groups make it larger, if little."""
    n_held = N_GROUPS // 5 if model.selection == "holdout" else N_GROUPS
    deviation = np.sqrt(LEVEL * (1 - LEVEL) * (1 / n_held + 1 / N_NEW) / len(SEEDS))
    assert -2 * deviation < np.mean(held) - (1 - LEVEL) < 3 * deviation


def check_classes(model):
    held, surprise, entropy = [], [], []
    for seed in SEEDS:
        X, y, _, groups = grouped(N_GROUPS, seed)
        X_new, y_new, _, _ = grouped(N_NEW, seed)
        model.fit(X, y, groups=groups)
        sets = model.predict_set(X_new, alpha=LEVEL)
        held.append(sets[np.arange(y_new.size), y_new].mean())
        surprise.append(log_loss(y_new, model.predict_proba(X_new)))
        entropy.append(log_loss(y_new, np.full(y_new.size, y_new.mean())))
    assert_holds(held, model)
    assert np.mean(surprise) < np.mean(entropy) + 0.02


def check_targets(model, has_deviations):
    held, z = [], []
    for seed in SEEDS:
        X, _, target, groups = grouped(N_GROUPS, seed)
        X_new, _, target_new, _ = grouped(N_NEW, seed)
        model.fit(X, target, groups=groups)
        low, high = model.predict_set(X_new, alpha=LEVEL).T
        held.append(((low <= target_new) & (target_new <= high)).mean())
        if has_deviations:
            mean, std = model.predict(X_new, return_std=True)
            z.append(np.mean(np.square((target_new - mean) / std)))
    assert_holds(held, model)
    if has_deviations:
        assert 0.75 < np.sqrt(np.mean(z)) < 1.3


CLASS_LOSSES = ("square", "logistic", "squared_hinge", "smooth_hinge", "hinge")


@pytest.mark.covering(2)
@pytest.mark.parametrize(("loss", "features", "selection"), cases(CLASS_LOSSES))
def test_sets_and_probabilities_of_new_groups(loss, features, selection):
    check_classes(HistogramClassifier(loss=loss, random_state=0, **FEATURES[features], **SELECTIONS[selection]))


@pytest.mark.covering(2)
@pytest.mark.parametrize(("loss", "features", "selection"), cases(("square", "epsilon_insensitive", "quantile")))
def test_intervals_and_deviations_of_new_groups(loss, features, selection):
    model = HistogramRegressor(loss=loss, random_state=0, **FEATURES[features], **SELECTIONS[selection])
    check_targets(model, loss == "square" and features != "blocks")


@pytest.mark.parametrize("alpha", ["auto", 1.0])
@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_several_kernels(loss, alpha):
    check_classes(
        MultipleKernelLearner(
            "chi2", features="additive", blocks=HALVES, loss=loss, alpha=alpha, n_alphas=8, random_state=0
        )
    )


def test_a_regression_on_several_kernels():
    model = MultipleKernelRegressor("chi2", features="additive", blocks=HALVES, n_alphas=8, random_state=0)
    check_targets(model, has_deviations=False)


@pytest.mark.parametrize("numbers", [8, [4, 12]])
def test_components(numbers):
    check_classes(HistogramClassifier("chi2", features=PrincipalFeatures(numbers, "additive"), random_state=0))


@pytest.mark.parametrize("selection", ["fixed", "auto"])
def test_words_whose_features_stay_in_memory(selection, monkeypatch):
    monkeypatch.setattr("chimap.machines.wide.MOST_SUMMED", 10)
    held = []
    for seed in SEEDS:
        X, y, _, groups = grouped(N_GROUPS, seed)
        X_new, y_new, _, _ = grouped(N_NEW, seed)
        model = HistogramClassifier(random_state=0, **FEATURES["additive"], **SELECTIONS[selection])
        model.fit(sp.csr_matrix(X), y, groups=groups)
        assert model._taken["solver"] == "wide ridge"
        held.append(model.predict_set(X_new, alpha=LEVEL)[np.arange(y_new.size), y_new].mean())
    assert_holds(held, model)


@pytest.mark.parametrize("selection", ["fixed", "auto"])
@pytest.mark.parametrize("features", ["additive", "landmarks", "exact"])
def test_tasks_with_missing_entries(features, selection):
    model = HistogramClassifier(random_state=0, **FEATURES[features], **SELECTIONS[selection])
    held = []
    for seed in SEEDS:
        X, y, target, groups = grouped(N_GROUPS, seed)
        X_new, y_new, _, _ = grouped(N_NEW, seed)
        tasks = np.column_stack([y, target > 0]).astype(float)
        tasks[np.random.default_rng(seed).random(y.size) < 0.3, 1] = np.nan
        sets = model.fit(X, tasks, groups=groups).predict_set(X_new, alpha=LEVEL)
        held.append(sets[np.arange(y_new.size), 0, y_new].mean())
    assert_holds(held, model)


@pytest.mark.parametrize("features", ["exact", "additive", "landmarks"])
def test_few_groups_count_as_few(features):
    """With 8 groups the threshold is the seventh largest of nine places; with 3 no set leaves a class out."""
    held = []
    for seed in range(8):
        X, y, _, groups = grouped(8, seed)
        X_new, y_new, _, _ = grouped(100, seed)
        if np.unique(y).size < 2:
            continue
        model = HistogramClassifier(random_state=0, alpha=0.03, **FEATURES[features]).fit(X, y, groups=groups)
        held.append(model.predict_set(X_new, alpha=LEVEL)[np.arange(y_new.size), y_new].mean())
        assert model.predict_set(X_new, alpha=0.1).all()  # nine tenths of nine places are more than eight
    assert np.mean(held) > 0.8 - 2 * np.sqrt(0.16 / 8 / len(held))


def test_machines_in_blocks():
    """Of more rows, as a block needs some hundred; the half of the groups that is held out counts."""
    held, z = [], []
    for seed in SEEDS:
        X, y, target, groups = grouped(250, seed)
        X_new, y_new, target_new, _ = grouped(N_NEW, seed)
        settings = {"kernel": "exp-chi2", "features": "exact", "memory": "10MiB", "random_state": 0}
        model = HistogramClassifier(**settings).fit(X, y, groups=groups)
        assert model._taken["solver"] == BlockSolver.name
        held.append(model.predict_set(X_new, alpha=LEVEL)[np.arange(y_new.size), y_new].mean())
        mean, std = HistogramRegressor(**settings).fit(X, target, groups=groups).predict(X_new, return_std=True)
        z.append(np.mean(np.square((target_new - mean) / std)))
    assert_holds(held, model)
    assert 0.75 < np.sqrt(np.mean(z)) < 1.3


def test_rows_of_a_group_are_answered_by_machines_that_have_not_seen_it(monkeypatch):
    """The outputs themselves, against a machine that is fitted without the fold of the row."""
    X, _, target, groups = grouped(20, 0)
    target = target + np.random.default_rng(0).random(target.size)
    fold_of = np.arange(20) % 4
    seen = watched(monkeypatch)
    settings = {"kernel": "linear", "features": "additive", "alpha": 0.1, "precision": "float64"}
    folds = PredefinedSplit(fold_of[groups])
    HistogramRegressor(**settings, selection=folds).fit(X, target)  # alpha is given: the splitter has nothing to choose
    smooth = EpsilonInsensitive(0.2)
    HistogramRegressor(**settings, loss=smooth, selection=folds).fit(X, target)
    for found, loss, atol in zip([*seen], ("square", smooth), (1e-9, 0.01), strict=True):
        order = np.argsort(found.y)
        np.testing.assert_array_equal(found.y[order], np.sort(target))
        for k in range(4):
            held = fold_of[groups] == k
            alone = HistogramRegressor(loss=loss, **settings).fit(X[~held], target[~held])
            places = np.searchsorted(found.y[order], target[held])
            np.testing.assert_allclose(found.outputs[order][places, 0], alone.predict(X[held]), atol=atol)
