"""Standard deviations of predictions, and sets and intervals that hold the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.utils import shuffle

import chimap
from chimap import FourierKernelRegressor, HistogramClassifier, HistogramRegressor, PrincipalFeatures
from chimap.models.answers import ClassAnswers
from chimap.recipe.codecs import ClassCodec
from chimap.recipe.task import HeldOutRows, Task
from chimap.selection.conformal import Conformal

FEATURES = {
    "exact": {"kernel": "exp-chi2", "features": "exact"},
    "exact additive": {"kernel": "chi2", "features": "exact"},
    "exact minmax": {"kernel": "minmax", "features": "exact"},
    "landmarks": {"kernel": "exp-chi2", "features": "landmarks", "n_components": 40},
    "fourier": {"kernel": "exp-chi2", "features": "fourier", "n_components": 64},
    "additive": {"kernel": "chi2", "features": "additive"},
    "more features than rows": {"kernel": "exp-chi2", "features": "fourier", "n_components": 1000},
    "blocks": {"kernel": "chi2", "blocks": [slice(0, 4), slice(4, 8)], "features": "additive"},
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.dirichlet(np.ones(8), size=600)
    y = np.sqrt(X[:, 0]) - X[:, 1] + 0.1 * rng.normal(size=600)
    return X, y


def regressor(name, **more):
    return HistogramRegressor(**({"precision": "float64", "random_state": 0} | FEATURES[name] | more))


def factors(Z, new, alpha, weights=None):
    """1 + z' (Z'Z + alpha I)^-1 z with a free intercept, from the definition."""
    weights = np.ones(len(Z)) if weights is None else weights
    ahead, behind = np.column_stack([Z, np.ones(len(Z))]), np.column_stack([new, np.ones(len(new))])
    precision = (ahead * weights[:, None]).T @ ahead + np.diag([alpha] * Z.shape[1] + [0.0])
    return 1 + np.einsum("ij,ij->i", behind, np.linalg.solve(precision, behind.T).T)


@pytest.mark.parametrize("name", list(FEATURES))
def test_deviations_are_those_of_bayesian_ridge_on_the_features(rows, name):
    X, y = rows
    train, new = X[:200], X[200:240]
    model = regressor(name, alpha=0.03).fit(train, y[:200])
    both = model.features_.transform(np.vstack([train, new]))
    if name in ("exact", "exact minmax"):  # features whose products are the kernel's values
        everything = HistogramRegressor(alpha=0.03, precision="float64", **FEATURES[name])
        kernel = model.kernel_ if name == "exact minmax" else None
        rows_of_all = np.vstack([train, new])
        if kernel is not None:
            K = kernel(rows_of_all)
        else:
            features = everything.set_params(gamma=model.kernel_.gamma).fit(rows_of_all, np.arange(240.0)).features_
            K = np.empty((240, 240))
            K[:, np.argsort(everything.row_numbers_).argsort()] = features.transform(rows_of_all)
            K = features.transform(rows_of_all)[:, np.argsort(everything.row_numbers_)]
        values, vectors = np.linalg.eigh(K)
        both = vectors * np.sqrt(np.maximum(values, 0))
    expected = factors(both[:200], both[200:], 0.03)
    _, std = model.predict(new, return_std=True)
    tolerance = 0.03 if name == "exact" else 1e-6  # whose map is fitted on the rows
    assert np.allclose(std**2 / model.noise_variance_, expected, rtol=tolerance)


def test_noise_is_that_of_rows_left_out(rows):
    X, y = rows
    for name in ("exact", "landmarks"):
        model = regressor(name).fit(X, y)
        assert np.sqrt(model.noise_variance_[0]) == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize("name", ["exact", "landmarks", "additive"])
def test_deviations_are_as_large_as_errors_and_grow_away_from_the_rows(rows, name):
    X, y = rows
    many = {"n_components": 150} if name == "landmarks" else {}  # few landmarks say little of places far from them
    model = regressor(name, precision="float32", **many).fit(X[:300], y[:300])
    mean, std = model.predict(X[300:], return_std=True)
    assert mean.shape == std.shape == (300,)
    assert np.array_equal(mean, model.predict(X[300:]))
    assert np.sqrt(np.mean(np.square((y[300:] - mean) / std))) == pytest.approx(1, abs=0.15)
    far = np.eye(8)[7:] * 50 if name == "additive" else np.eye(8)[7:]
    assert model.predict(far, return_std=True)[1][0] > 1.05 * std.mean()


def test_several_targets_have_a_deviation_each(rows):
    X, y = rows
    noisy = y + 0.5 * np.random.default_rng(1).normal(size=600)
    model = regressor("landmarks", precision="float32").fit(X, np.column_stack([y, noisy]))
    _, std = model.predict(X[:30], return_std=True)
    assert std.shape == (30, 2)
    assert (std[:, 1] > 3 * std[:, 0]).all()


def test_an_integer_weight_is_as_many_rows(rows):
    X, y = rows
    weights = np.random.default_rng(0).integers(1, 4, size=100)
    one = regressor("additive", alpha=0.1, weights="frequency").fit(X[:100], y[:100], sample_weight=weights)
    many = regressor("additive", alpha=0.1).fit(np.repeat(X[:100], weights, axis=0), np.repeat(y[:100], weights))
    factors_of = [model._variance_factors(X[100:120]) for model in (one, many)]
    assert np.allclose(*factors_of, rtol=1e-2)  # of maps that end at the same largest bin


@pytest.mark.parametrize("name", ["exact", "landmarks", "more features than rows"])
def test_saved_models_are_as_sure(rows, name, tmp_path):
    X, y = rows
    model = regressor(name, precision="float32").fit(X[:200], y[:200])
    model.save(tmp_path / "a.model")
    again = chimap.load(tmp_path / "a.model")
    for before, after in zip(model.predict(X, return_std=True), again.predict(X, return_std=True), strict=True):
        assert np.array_equal(before, after)
    assert np.array_equal(model.predict_set(X, alpha=0.2), again.predict_set(X, alpha=0.2))


@pytest.mark.parametrize(
    "more",
    [{"features": "additive", "loss": "epsilon_insensitive"}, {"features": PrincipalFeatures(5)}],
    ids=["a loss", "components"],
)
def test_models_without_a_posterior_say_so(rows, more):
    X, y = rows
    model = HistogramRegressor("chi2", random_state=0, **more).fit(X[:200], y[:200])
    with pytest.raises(ValueError, match=r"return_std needs loss='square'.*predict_set returns intervals"):
        model.predict(X, return_std=True)
    assert model.predict_set(X).shape == (600, 2)
    with pytest.raises(ValueError, match="CompiledRegressor has no posterior"):
        HistogramRegressor("chi2", alpha=1.0).fit(X, y).compile().predict(X, return_std=True)
    gaps = np.column_stack([y, y])
    gaps[0, 0] = np.nan
    with pytest.raises(ValueError, match="y without missing entries"):
        regressor("landmarks").fit(X, gaps).predict(X, return_std=True)


# --- conformal sets


def test_thresholds_are_order_statistics():
    scores = np.random.default_rng(0).random(99)
    for alpha in (0.01, 0.05, 0.1, 0.5):
        rank = int(np.ceil(100 * (1 - alpha) - 1e-9))
        assert Conformal(scores[:, None]).threshold(alpha)[0] == np.sort(scores)[rank - 1]
    assert Conformal(scores[:, None]).threshold(0.005)[0] == np.inf
    weights = np.random.default_rng(1).integers(1, 5, size=99)
    many = Conformal(np.repeat(scores, weights)[:, None]).threshold(0.1)
    assert Conformal(scores[:, None], weights.astype(float)).threshold(0.1) == many
    gaps = np.column_stack([scores, np.where(np.arange(99) % 2, np.nan, scores)])
    assert Conformal(gaps).threshold(0.2)[1] == Conformal(scores[::2, None]).threshold(0.2)[0]


@pytest.mark.parametrize("alpha", [0.05, 0.2])
@pytest.mark.parametrize("name", ["exact", "landmarks", "more features than rows"])
def test_intervals_hold_the_share_of_truths_that_they_say(rows, name, alpha):
    X, y = rows
    model = regressor(name, precision="float32").fit(X[:200], y[:200])
    ends = model.predict_set(X[200:], alpha=alpha)
    held = np.mean((ends[:, 0] <= y[200:]) & (y[200:] <= ends[:, 1]))
    assert abs(held - (1 - alpha)) < 3 * np.sqrt(alpha * (1 - alpha) * (1 / 200 + 1 / 400))
    assert np.allclose(ends.mean(axis=1), model.predict(X[200:]))


@pytest.mark.parametrize(
    "model",
    [
        HistogramClassifier("exp-chi2", features="exact"),
        HistogramClassifier("exp-chi2", features="landmarks", n_components=200, random_state=0),
        HistogramClassifier("chi2", loss="hinge", alpha=100.0),
        HistogramClassifier("chi2", loss="logistic", alpha=100.0),
    ],
    ids=["exact", "landmarks", "hinge", "logistic"],
)
def test_sets_hold_the_share_of_truths_that_they_say(model):
    X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
    model.fit(X[:700], y[:700])
    for alpha in (0.02, 0.1):
        sets = model.predict_set(X[700:], alpha=alpha)
        assert sets.dtype == bool
        assert sets.shape == (1097, 10)
        held = sets[np.arange(1097), y[700:]].mean()
        n_scores = model._conformal.scores.shape[0]
        assert abs(held - (1 - alpha)) < 3 * np.sqrt(alpha * (1 - alpha) * (1 / n_scores + 1 / 1097))
    assert model.predict_set(X[700:], alpha=0.001).sum() > sets.sum()


def test_sets_of_several_tasks_are_of_labels_0_and_1(rows):
    X, y = rows
    labels = np.column_stack([y > 0.2, y > 0.5]).astype(float)
    labels[::5, 0] = np.nan
    model = HistogramClassifier("exp-chi2", features="exact")
    sets = model.fit(X[:300], labels[:300]).predict_set(X[300:], alpha=0.2)
    assert sets.shape == (300, 2, 2)
    for task in range(2):
        seen = ~np.isnan(labels[300:, task])
        held = sets[seen, task, labels[300:, task][seen].astype(int)].mean()
        assert abs(held - 0.8) < 0.09
    several = HistogramRegressor("chi2").fit(X, np.column_stack([y, -y])).predict_set(X)
    assert several.shape == (600, 2, 2)
    assert np.allclose(several[:, 1], -several[:, 0, ::-1], atol=1e-5)


def test_class_thresholds_are_those_of_the_rows_of_each_class():
    rng = np.random.default_rng(0)
    scores, places = rng.random((200, 2)), rng.integers(0, 3, (200, 2))
    scores[::7, 1] = np.nan
    weights = rng.integers(1, 4, (200, 2)).astype(float)
    found = Conformal(scores, None, places, weights).class_thresholds(0.2, 4)
    for task, k in np.ndindex(2, 3):
        own = places[:, task] == k
        assert found[task, k] == Conformal(scores[own][:, [task]], weights[own, task]).threshold(0.2)[0]
    assert np.isinf(found[:, 3]).all()  # a class without rows is in all sets
    with pytest.raises(ValueError, match="fit it again"):
        Conformal(scores).class_thresholds(0.2, 3)
    with pytest.raises(ValueError, match="places of shape"):
        Conformal(scores, None, places[:, :1])


def test_rows_of_a_group_count_as_one_in_each_class():
    groups, places = np.repeat(np.arange(20), 6), np.tile([0, 0, 0, 0, 0, 1], 20)[:, None]
    held_out = HeldOutRows(np.zeros((120, 1)), places[:, 0], groups=groups)
    counts = held_out.counted_by_class(held_out.counted(None), places)
    assert [counts[places == k].sum() for k in (0, 1)] == pytest.approx([20, 20])
    assert HeldOutRows(np.zeros((120, 1)), places[:, 0]).counted_by_class(None, places) is None


@pytest.mark.parametrize("share", [0.1, 0.03, 0.5])
def test_sets_of_each_class_hold_the_share_of_its_rows(share):
    """Of made outputs of left-out rows: no fit comes between. Marginal sets leave a rare class out."""
    held, marginal = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = (rng.random(4000) < share).astype(int)
        outputs = (y + 1.0 * rng.standard_normal(4000) - 1)[:, None]
        task = Task(ClassCodec(np.array([0, 1])))
        answers = ClassAnswers.of(HeldOutRows(outputs[:2000], y[:2000]), task)
        members = answers.sets(outputs[2000:], 0.1, class_conditional=True)
        held.append([members[y[2000:] == k, k].mean() for k in (0, 1)])
        marginal.append(answers.sets(outputs[2000:], 0.1)[y[2000:] == 1, 1].mean())
    np.testing.assert_allclose(np.mean(held, axis=0), 0.9, atol=0.035)
    assert share == 0.5 or np.mean(marginal) < 0.5


def test_compiled_models_and_learners_have_sets(rows):
    X, y = rows
    model = HistogramRegressor("chi2", alpha=1.0).fit(X, y)
    assert np.allclose(model.compile().predict_set(X), model.predict_set(X), atol=1e-2)
    learner = FourierKernelRegressor("exp-chi2", n_components=32, n_tune_components=16, max_iter=1, random_state=0)
    assert learner.fit(X, y).predict_set(X).shape == (600, 2)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 2, "a", None, float("nan")])
def test_levels_that_are_none_are_refused(rows, alpha):
    X, y = rows
    model = HistogramRegressor("chi2", features="additive", alpha=1.0).fit(X, y)
    with pytest.raises(ValueError, match="alpha must be above 0 and below 1"):
        model.predict_set(X, alpha=alpha)


def test_a_model_of_no_held_out_rows_says_so(rows):
    X, y = rows
    model = HistogramRegressor("chi2", features="additive", alpha=1.0).fit(X, y)
    model.model_ = replace(model.fitted, answers=replace(model.fitted.answers, conformal=None))
    with pytest.raises(ValueError, match="has no outputs of held-out rows"):
        model.predict_set(X)


def test_intervals_after_a_race_are_wider_by_its_luck():
    """The residuals that chose the winner are smaller than those of rows to come."""
    rng = np.random.default_rng(0)
    X = rng.dirichlet(np.ones(12), size=60)
    y = np.sqrt(X[:, 0]) + 0.1 * rng.standard_normal(60)
    model = HistogramRegressor(random_state=0).fit(X, y)
    race = model.race_
    expected, own = race.expected[0], race.trials[0].score
    assert race.luck == pytest.approx(np.sqrt((1 - expected) / (1 - own)))
    assert race.luck > 1
    again = HistogramRegressor(**race.winner.settings, random_state=0)
    again.set_params(alpha=model.alpha_, gamma=getattr(model.kernel_, "gamma", "mean")).fit(X, y)
    widths = [np.ptp(fitted.predict_set(X, alpha=0.2), axis=1) for fitted in (model, again)]
    np.testing.assert_allclose(widths[0], race.luck * widths[1], rtol=1e-3)
    assert replace(race, measure="r2 of ranks").luck == replace(race, expected=None).luck == 1
