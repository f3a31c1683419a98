"""Kernels of several channels: which are used, by both ways to the weights, in and out of core, and bad input."""

from __future__ import annotations

import tracemalloc
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits

import chimap
from chimap import AutomaticFeatures, MultipleKernelLearner, MultipleKernelRegressor
from chimap._memory import parse_memory
from chimap._validation import DataError, MemoryBudgetError
from chimap.data import ArraySource
from chimap.engines.rows import RowsInMemory
from chimap.losses import Logistic
from chimap.machines.method import objective_of
from chimap.moments import DealtFolds
from chimap.solvers.groups import held_out_loss
from chimap.solvers.ridge import LinearSolution

X, y = load_digits(return_X_y=True)
X, y = X[:900] + 0.5, y[:900]
CHANNELS = {"top": slice(0, 24), "middle": slice(24, 40), "bottom": list(range(40, 64))}
TRAIN, TEST = slice(0, 500), slice(500, 900)
SETTINGS = {"blocks": CHANNELS, "n_components": 64, "n_alphas": 10, "selection": 3, "random_state": 0}


@pytest.fixture(autouse=True)
def _no_overflow():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


def noise_and_signal(n=400, seed=0):
    """Rows of three channels, of which the second alone says what y is."""
    rng = np.random.default_rng(seed)
    X = rng.dirichlet(np.ones(6), size=(n, 3)).reshape(n, 18)
    return X, np.sin(6 * X[:, 6]) + np.sqrt(X[:, 7])


THREE = {"a": slice(0, 6), "b": slice(6, 12), "c": slice(12, 18)}


def test_digits():
    model = MultipleKernelLearner(**SETTINGS).fit(X[TRAIN], y[TRAIN])
    assert model.score(X[TEST], y[TEST]) > 0.85
    assert model.kernel_weights_.shape == (10, 3)
    assert model.channels_ == list(CHANNELS)
    assert model.kkt_residual_ < 1e-6
    path = model.path_
    assert path.n_used[0] == 0
    assert path.n_used[-1] == 3
    assert np.all(np.diff(path.objectives) <= 0)
    assert path.residuals.max() < 1e-6
    assert model.selection_.scores.shape == (10, 3)
    assert path.alphas[path.chosen] == model.alpha_
    np.testing.assert_array_equal(path.weights[path.chosen], model.kernel_weights_)


@pytest.mark.parametrize("loss", ["square", "epsilon_insensitive"])
def test_channels_that_say_nothing_are_left_out(loss):
    X, y = noise_and_signal()
    model = MultipleKernelRegressor(
        blocks=THREE, n_components=64, n_alphas=10, selection=3, loss=loss, random_state=0
    ).fit(X, y)
    weights = model.kernel_weights_[0]
    assert weights[1] > 5 * max(weights[0], weights[2])
    assert model.score(X, y) > 0.95
    assert model.kkt_residual_ < 1e-6
    used = model.path_.weights[:, 0] > 0
    first = used.any(axis=1).argmax()
    np.testing.assert_array_equal(used[first], [False, True, False])


def test_weights_are_norms_of_the_channels_of_the_model():
    model = MultipleKernelLearner(**SETTINGS, alpha=20.0, shared=True).fit(X[TRAIN], y[TRAIN])
    norms = [np.linalg.norm(part) for part in np.split(model.feature_coef_, 3, axis=1)]
    np.testing.assert_allclose(model.kernel_weights_, [np.array(norms) / np.sqrt(2)], rtol=1e-12)
    assert model.selection_ is None
    assert model.path_.alphas.tolist() == [20.0]


def objective(loss, model, X, Y):
    scores = model.features_.transform(X) @ model.feature_coef_.T + model.intercept_
    return loss.value(Y, scores).sum() + model.alpha_ * np.sqrt(2) * model.kernel_weights_.sum()


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_objective_and_conditions_are_those_of_the_rows(loss, shared):
    model = MultipleKernelLearner(**SETTINGS, loss=loss, alpha=2.0, shared=shared, precision="float64")
    model.fit(X[TRAIN], y[TRAIN])
    Y = np.where(y[TRAIN, None] == np.arange(10), 1.0, -1.0)
    assert model.objective_ == pytest.approx(objective(model.loss_, model, X[TRAIN], Y), rel=1e-6)
    Z = model.features_.transform(X[TRAIN])
    gradient = Z.T @ model.loss_.gradient(Y, Z @ model.feature_coef_.T + model.intercept_)
    penalty = objective_of(model._recipe()).groups.penalty(model.features_)
    residuals = type(penalty)(2.0, penalty.groups, Z.shape[1], None, shared).residuals(model.feature_coef_.T, gradient)
    assert residuals.max() < 2e-6


def test_other_losses_out_of_core_are_those_in_memory():
    settings = SETTINGS | {"loss": "squared_hinge", "alpha": 100.0, "precision": "float64"}
    rows, labels = np.tile(X, (8, 1)), np.tile(y % 2, 8)
    kept = MultipleKernelLearner(**settings, memory="1GiB").fit(rows, labels)
    with pytest.raises(MemoryBudgetError) as caught:
        MultipleKernelLearner(**settings, memory="1MiB").fit(rows, labels)
    least = str(caught.value).split("memory='")[1].split("'")[0]
    again = MultipleKernelLearner(**settings, memory=least).fit(rows, labels)
    assert again.stage_seconds_["read"] > 0
    assert again.objective_ == pytest.approx(kept.objective_, rel=1e-8)
    np.testing.assert_allclose(again.kernel_weights_, kept.kernel_weights_, atol=1e-4)


def test_alpha_of_other_losses_is_chosen_on_rows_held_out():
    model = MultipleKernelLearner(**SETTINGS, loss="logistic").fit(X[TRAIN], y[TRAIN])
    assert model.score(X[TEST], y[TEST]) > 0.85
    errors = model.selection_.scores
    assert errors.shape == (model.path_.alphas.size, 1)
    assert model.path_.chosen == errors[:, 0].argmin() > 0
    assert model.kkt_residual_ < 1e-6
    assert model.n_passes_ > 10


def test_two_classes_have_one_row_of_weights():
    model = MultipleKernelLearner(**SETTINGS).fit(X[TRAIN], y[TRAIN] % 2)
    assert model.kernel_weights_.shape == (1, 3)
    assert model.decision_function(X[TEST]).shape == (400,)
    assert model.score(X[TEST], y[TEST] % 2) > 0.9


def test_group_weights_make_a_channel_dear():
    plain, dear = (
        MultipleKernelLearner(**SETTINGS, alpha=2.0, group_weights=w).fit(X[TRAIN], y[TRAIN])
        for w in (None, [1.0, 20.0, 1.0])
    )
    assert dear.kernel_weights_[:, 1].sum() < 0.5 * plain.kernel_weights_[:, 1].sum()


def test_a_kernel_for_each_channel():
    settings = SETTINGS | {"kernel": ["exp-chi2", "hellinger", "gaussian"]}
    model = MultipleKernelLearner(**settings, alpha=5.0).fit(X[TRAIN], y[TRAIN])
    assert np.diff(model.features_.borders_).tolist() == [64, 32, 64]
    assert model.score(X[TEST], y[TEST]) > 0.75


def test_sparse_rows_and_sources_give_the_same_model():
    dense = MultipleKernelLearner(**SETTINGS, alpha=2.0).fit(X[TRAIN], y[TRAIN])
    sparse = MultipleKernelLearner(**SETTINGS, alpha=2.0).fit(sp.csr_matrix(X[TRAIN]), y[TRAIN])
    source = MultipleKernelLearner(**SETTINGS, alpha=2.0).fit_source(ArraySource(X[TRAIN], y[TRAIN]))
    np.testing.assert_array_equal(source.decision_function(X[TEST]), dense.decision_function(X[TEST]))
    np.testing.assert_allclose(sparse.decision_function(X[TEST]), dense.decision_function(X[TEST]), atol=1e-3)


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_model_file(tmp_path, loss):
    model = MultipleKernelLearner(**SETTINGS, loss=loss).fit(X[TRAIN], y[TRAIN])
    model.save(tmp_path / "a.model")
    again = chimap.load(tmp_path / "a.model")
    np.testing.assert_array_equal(again.predict(X[TEST]), model.predict(X[TEST]))
    np.testing.assert_array_equal(again.path_.weights, model.path_.weights)
    assert again.describe() == model.describe()
    assert sum(model.describe()["channels"].values()) == pytest.approx(1)


def test_checkpoint_and_dask_engine_are_inherited(tmp_path):
    from chimap.fit.checkpoint import Checkpoint

    plain = MultipleKernelLearner(**SETTINGS, alpha=2.0).fit(X[TRAIN], y[TRAIN])
    log = Checkpoint(tmp_path / "log", seconds=1e-9)
    logged = MultipleKernelLearner(**SETTINGS, alpha=2.0)
    logged.fit_source(ArraySource(X[TRAIN], y[TRAIN]), checkpoint=log)
    going_on = clone(logged).fit_source(ArraySource(X[TRAIN], y[TRAIN]), checkpoint=log)
    for model in (logged, going_on):
        np.testing.assert_array_equal(model.feature_coef_, plain.feature_coef_)


def test_few_rows_have_fewer_folds_or_none():
    rng = np.random.default_rng(0)
    for n, shape in ((6, (4, 3)), (3, None)):
        model = MultipleKernelRegressor(blocks=THREE, n_components=16, n_alphas=4, random_state=0)
        model.fit(rng.dirichlet(np.ones(18), n), rng.random(n))
        assert (model.selection_ and model.selection_.scores.shape) == shape


def test_a_fold_without_rows_is_named():
    rows = RowsInMemory(np.array([0, 5]), 2, 1, np.dtype(float))
    rows.put(1, np.ones((5, 2)), np.ones((5, 1)))
    with pytest.raises(DataError, match="fold 0 holds no rows"):
        held_out_loss(Logistic(), rows, LinearSolution(np.zeros((2, 1)), np.zeros(1), 1.0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"blocks": [slice(0, 40), slice(32, 64)]}, "blocks overlap: column 32 is in 'block0' and in 'block1'"),
        ({"blocks": [slice(0, 40), slice(41, 64)]}, "blocks miss 1 of the 64 columns, column 40 first"),
        ({"blocks": [slice(0, 64), []]}, "block 'block1' has no columns"),
        ({"kernel": ["chi2", "chi2"]}, "kernel must be one, or one for each of 3 blocks; got 2"),
        ({"group_weights": [1.0, 2.0]}, "group_weights must be 3 positive numbers"),
        ({"loss": "hinge"}, "loss must be one of 'square', 'logistic'"),
        ({"loss": "epsilon_insensitive"}, "loss must be one of"),
        ({"shared": "yes"}, "shared must be"),
        ({"n_alphas": 0}, "n_alphas must be a positive whole number"),
        ({"alpha": [1.0, -1.0]}, "each of alpha must be a positive number"),
        ({"alpha": 0.0}, "alpha must be a positive number"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        MultipleKernelLearner(**(SETTINGS | settings)).fit(X[:100], y[:100])


def test_a_constant_channel_is_named():
    rows = X[:100].copy()
    rows[:, 24:40] = 2.0
    with pytest.raises(DataError, match="block 'middle': gamma='mean': all sampled rows are equal"):
        MultipleKernelLearner(**SETTINGS).fit(rows, y[:100])
    model = MultipleKernelLearner(**SETTINGS, gamma=1.0, alpha=1.0).fit(rows, y[:100])
    np.testing.assert_array_equal(model.kernel_weights_[:, 1], 0)


def test_bad_labels_and_targets():
    with pytest.raises(DataError, match="one class only"):
        MultipleKernelLearner(**SETTINGS).fit(X[:50], np.zeros(50, int))
    with pytest.raises(DataError, match="too large for sums of products"):
        MultipleKernelRegressor(**SETTINGS).fit(X[:100], 1e200 * (y[:100] + 0.5))
    rows = X[:100].copy()
    rows[3, 5] = -1
    with pytest.raises(DataError, match="row 3"):
        MultipleKernelLearner(**SETTINGS).fit(rows, y[:100])


def test_targets_that_are_all_equal_are_refused():
    with pytest.raises(DataError, match="every target is 3, so there is nothing to predict"):
        MultipleKernelRegressor(**SETTINGS).fit(X[:100], np.full(100, 3.0))


# --- the joint form


JOINT = SETTINGS | {"joint": True, "n_tune_components": 64, "max_iter": 4, "n_tune_rows": None}


def stretched(n=1000, seed=0):
    """Gaussian channels; the target changes faster with the second's first column than gamma="mean" is wide."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    y = np.sin(2.5 * X[:, 2]) + 0.1 * rng.standard_normal(n)
    return X, y, {"a": slice(0, 2), "b": slice(2, 4), "c": slice(4, 6)}


@pytest.mark.parametrize("loss", ["square", "epsilon_insensitive"])
@pytest.mark.parametrize("widths", ["block", "bin"])
def test_joint_form_finds_the_width_that_matters(loss, widths):
    X, y, blocks = stretched()
    train, test = slice(0, 700), slice(700, 1000)
    settings = {
        "kernel": "gaussian",
        "blocks": blocks,
        "n_components": 64,
        "features": AutomaticFeatures(sampling="orthogonal"),
        "n_alphas": 10,
        "random_state": 0,
    }
    average = MultipleKernelRegressor(**settings).fit(X[train], y[train])
    joint = MultipleKernelRegressor(**settings, loss=loss, joint=True, widths=widths, max_iter=6)
    joint.fit(X[train], y[train])
    ratios = dict(zip(joint.width_names_, joint.widths_ / joint.start_widths_, strict=True))
    assert max(ratios, key=ratios.get) == ("b" if widths == "block" else "b, bin 0")
    assert joint.score(X[test], y[test]) > average.score(X[test], y[test]) + 0.1
    objectives = [step["objective"] for step in joint.history_]
    assert np.all(np.diff(objectives) <= 1e-9)
    assert joint.kkt_residual_ < 1e-6
    assert joint.kernel_weights_[0].argmax() == 1


def test_joint_form_of_classes_and_its_model_file(tmp_path):
    model = MultipleKernelLearner(**JOINT).fit(X[TRAIN], y[TRAIN])
    assert model.widths_.shape == (3,)
    assert model.width_names_ == list(CHANNELS)
    np.testing.assert_array_equal(model.width_columns_[[0, 24, 63]], [0, 1, 2])
    assert model.history_[0]["validation_score"] is not None
    model.save(tmp_path / "a.model")
    again = chimap.load(tmp_path / "a.model")
    np.testing.assert_array_equal(again.predict(X[TEST]), model.predict(X[TEST]))
    np.testing.assert_array_equal(again.widths_, model.widths_)


@pytest.mark.parametrize("name", ["square", "logistic", "epsilon_insensitive"])
def test_gradient_in_the_widths_is_that_of_the_objective(name):
    from chimap.engines import Stopwatch
    from chimap.kernel_learning.joint import ChannelObjective, ChannelWidths
    from chimap.kernel_learning.tuning import TuningRows
    from chimap.kernel_learning.widths import WidthPenalty
    from chimap.losses import CATALOGUE
    from chimap.machines.rows import PreparedRows
    from chimap.penalties import L21
    from chimap.recipe import Recipe
    from chimap.recipe.parts import parts_of

    rows, targets = noise_and_signal(200)
    loss = CATALOGUE[name]()
    targets = np.sign(targets - targets.mean()) if loss.domain == "sign" else targets
    recipe = Recipe("MultipleKernelRegressor", False, "exp-chi2", n_components=24, n_terms=2)
    channels = ChannelWidths(parts_of(recipe, THREE, 18), recipe, 24, "bin", 0).fit(rows)
    codec = SimpleNamespace(encode=lambda t: np.asarray(t, float)[:, None], shift=np.zeros(1))
    prepared = PreparedRows(ArraySource(rows, targets), lambda X, first, name: X, codec, DealtFolds(2, 0), 0)
    tuning = TuningRows(prepared, 64, Stopwatch())
    groups = L21(1.0, [slice(0, 24), slice(24, 48), slice(48, 72)], 72)
    objective = ChannelObjective(channels, tuning, groups, loss, WidthPenalty("l2", 0.01))
    x = np.append(channels.start_ + 0.1, np.log(1.0))
    _, gradient = objective(x)
    direction = np.append(np.random.default_rng(1).standard_normal(18), 0.0)
    h = 1e-3
    difference = (objective(x + h * direction)[0] - objective(x - h * direction)[0]) / (2 * h)
    assert gradient @ direction == pytest.approx(difference, rel=2e-4)


def test_joint_form_takes_kernels_that_have_widths():
    with pytest.raises(ValueError, match="widths are learned for exponential"):
        MultipleKernelLearner(**JOINT, kernel="chi2").fit(X[:100], y[:100])
    rows = X[:100].copy()
    rows[:, 24:40] = 2.0
    with pytest.raises(DataError, match="block 'middle' is constant"):
        MultipleKernelLearner(**JOINT).fit(rows, y[:100])


@pytest.mark.slow  # ``laws/test_memory.py`` measures resident memory of fewer rows
@pytest.mark.parametrize("loss", ["square", "squared_hinge"])
def test_memory_stays_within_the_budget(loss):
    # strengths at which the weights take few passes: what they hold is the same in each
    settings = SETTINGS | {"n_components": 384, "loss": loss, "alpha": [2000.0, 1000.0]}
    rows, labels = np.tile(X, (2, 1)).astype(np.float32), np.tile(y % 2, 2)
    with pytest.raises(MemoryBudgetError) as caught:
        MultipleKernelLearner(**settings, memory="1MiB").fit(rows, labels)
    least = str(caught.value).split("memory='")[1].split("'")[0]
    MultipleKernelLearner(**settings).fit(rows[:200], labels[:200])  # what is compiled is not counted
    tracemalloc.start()
    MultipleKernelLearner(**settings, memory=least).fit(rows, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < parse_memory(least)


def test_one_alpha_takes_no_folds():
    X, y = two_channels(60)
    settings = {"blocks": [slice(0, 4), slice(4, 8)], "n_components": 32, "random_state": 0, "alpha": 1.0}
    plain = MultipleKernelLearner(selection=1, **settings).fit(X, y)
    assert (plain.alpha_, plain.selection_) == (1.0, None)
    np.testing.assert_array_equal(plain.feature_coef_, MultipleKernelLearner(**settings).fit(X, y).feature_coef_)
    for wrong in ({"alpha": "auto"}, {"joint": True}):
        with pytest.raises(ValueError, match=r"selection must be .*at least 2 folds"):
            MultipleKernelLearner(**(settings | {"selection": 1} | wrong)).fit(X, y)


def two_channels(n):
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(4), (n, 2)).reshape(n, 8), rng.integers(0, 2, n)
