"""Learned widths: gradients of the whole objective, what they find, how they are stopped, saved and refused."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import chimap
from chimap import FourierKernelLearner, FourierKernelRegressor, HistogramRegressor
from chimap._validation import DataError, MemoryBudgetError
from chimap.data import ArraySource
from chimap.engines import Progress, Stopwatch
from chimap.features.fourier import WidthFeatures
from chimap.kernel_learning import tuning
from chimap.kernel_learning.tuning import TuningRows
from chimap.kernel_learning.widths import WidthObjective, WidthPenalty, WidthRounds
from chimap.machines.rows import PreparedRows
from chimap.moments import DealtFolds

from ..features.fourier.test_widths import BLOCKS, KERNELS, difference
from ..histograms import classes, histograms

SMALL = {"n_components": 64, "n_tune_components": 32, "max_iter": 4, "random_state": 0}


def objective_of(kernel, kind, n_folds=3, rho=0.01, penalty="l2", n_components=16):
    X = histograms(60, 8)
    Y = np.column_stack([X[:, 0] - X[:, 3], np.sin(5 * X[:, 1])])
    features = WidthFeatures(kernel, n_components, blocks=BLOCKS, random_state=0).fit(X)
    codec = SimpleNamespace(encode=lambda y: Y[y] - 0.3, shift=np.array([0.3, 0.3]))
    source = ArraySource(X, np.arange(60))
    rows = TuningRows(PreparedRows(source, lambda X, first, name: X, codec, DealtFolds(n_folds, 0), 0), 25, Stopwatch())
    return WidthObjective(features, rows, kind, WidthPenalty(penalty, rho))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("kind", "penalty"), [("held-out", "l2"), ("training", "l1")])
def test_gradient_of_the_objective(kernel, kind, penalty):
    objective = objective_of(kernel, kind, penalty=penalty)
    x = np.append(objective.features.start_ + np.array([0.4, -0.3]), np.log(0.05))
    gradient = objective(x)[1]
    exact = difference(lambda x: objective(x)[0], x)
    if kind == "training":
        assert gradient[-1] == 0  # the strength is given
        gradient, exact = gradient[:-1], exact[:-1]
    np.testing.assert_allclose(gradient, exact, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("kept", "n_prepared"), [(2**18, 4), (0, 14)])
def test_few_rows_are_prepared_once(monkeypatch, kept, n_prepared):
    objective = objective_of(chimap.Exponential(chimap.chi2, 1.0), "held-out")
    x = np.append(objective.features.start_, np.log(0.05))
    value, gradient = objective(x)
    monkeypatch.setattr(tuning, "MOST_KEPT_ENTRIES", kept)
    sizes, plain = [], objective.rows.rows
    counted = replace(plain, prepare=lambda X, first, name: sizes.append(X.shape[0]) or X)
    objective.rows = replace(objective.rows, rows=counted)
    for _ in range(2):
        again = objective(x)
        assert again[0] == value
        np.testing.assert_array_equal(again[1], gradient)
    # the first rows and three chunks; else these for the moments and the chunks for the gradient, at each evaluation
    assert len(sizes) == n_prepared


def relevant_and_noise(n=900, seed=0):
    """Rows whose first block says all of the target, and whose second nothing."""
    rng = np.random.default_rng(seed)
    X = np.hstack([rng.dirichlet(np.ones(4), size=n), rng.dirichlet(np.ones(12), size=n)])
    return X, np.sin(6 * X[:, 0]) + np.sqrt(X[:, 1])


TWO = {"signal": slice(0, 4), "noise": slice(4, 16)}


@pytest.mark.parametrize("kernel", ["exp-chi2", "gaussian", "skewed-chi2", "skewed-intersection"])
def test_noise_gets_a_wide_kernel_and_the_error_falls(kernel):
    X, y = relevant_and_noise()
    model = FourierKernelRegressor(
        kernel, blocks=TWO, n_components=256, n_tune_components=128, max_iter=15, random_state=0
    ).fit(X[:600], y[:600])
    change = model.widths_ / model.start_widths_
    assert model.width_names_ == ["signal", "noise"]
    assert change[0] > 3 * change[1]
    start = 1 - model.history_[0]["validation_error"]
    assert model.score(X[600:], y[600:]) > start + 0.3 * (1 - start)


def test_history_says_what_happened_and_the_best_is_kept():
    X, y = relevant_and_noise()
    model = FourierKernelRegressor(blocks=TWO, **SMALL | {"max_iter": 12, "patience": 2}).fit(X, y)
    assert [step["iteration"] for step in model.history_] == list(range(len(model.history_)))
    assert model.history_[-1]["objective"] < model.history_[0]["objective"]
    errors = [step["validation_error"] for step in model.history_]
    best = int(np.argmin(errors))
    np.testing.assert_allclose(model.history_[best]["widths"], model.widths_)
    assert model.history_[best]["validation_score"] == pytest.approx(1 - errors[best])
    assert len(errors) - 1 - best <= 2
    assert model.stopped_
    assert model.n_evaluations_ >= len(errors)


def test_classes_share_one_kernel():
    X, y = classes(400)
    model = FourierKernelLearner(blocks=[slice(0, 10), slice(10, 20)], **SMALL).fit(X, y)
    assert model.widths_.shape == (2,)
    assert model.feature_coef_.shape == (3, 64)
    scores = [step["validation_score"] for step in model.history_]
    assert min(scores) >= 0
    assert max(scores) <= 1
    assert model.score(X, y) > 0.8


def test_chunks_and_the_place_of_the_rows_change_little():
    X, y = relevant_and_noise()
    fits = [
        FourierKernelRegressor(blocks=TWO, **SMALL | {"precision": "float64", "memory": memory}).fit(X, y)
        for memory in ("8MiB", "1GiB")
    ]
    np.testing.assert_allclose(fits[0].widths_, fits[1].widths_, rtol=1e-6)
    sparse = FourierKernelRegressor(blocks=TWO, **SMALL | {"precision": "float64"}).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.widths_, fits[1].widths_, rtol=1e-6)


def test_all_rows_are_read_again_where_none_are_chosen(tmp_path):
    X, y = relevant_and_noise(1500)
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    source = chimap.open_source(str(tmp_path / "rows.npz"))
    model = FourierKernelRegressor(blocks=TWO, n_tune_rows=None, **SMALL).fit_source(source)
    again = FourierKernelRegressor(blocks=TWO, n_tune_rows=1500, **SMALL).fit(X, y)
    np.testing.assert_allclose(model.widths_, again.widths_, rtol=1e-4)


def test_training_objective_shrinks_with_its_penalty():
    X, y = relevant_and_noise()
    widths = {}
    for rho in (0.001, 0.1):
        model = FourierKernelRegressor(blocks=TWO, objective="training", width_strength=rho, alpha=0.1, **SMALL).fit(
            X, y
        )
        widths[rho] = model.widths_
        assert model.history_[-1]["alpha"] == pytest.approx(0.1)
    assert np.all(widths[0.1] < widths[0.001])


def test_model_file_predicts_the_same_and_remembers_the_search(tmp_path):
    X, y = classes(300)
    for widths in ("block", "bin", "one"):
        model = FourierKernelLearner(blocks=[slice(0, 10), slice(10, 20)], widths=widths, **SMALL).fit(X, y)
        model.save(tmp_path / f"{widths}.model")
        loaded = chimap.load(tmp_path / f"{widths}.model")
        np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(loaded.widths_, model.widths_)
        assert [s["objective"] for s in loaded.history_] == [s["objective"] for s in model.history_]
        np.testing.assert_allclose(loaded.kernel_(X[:5]), model.kernel_(X[:5]))


def test_another_loss_is_fitted_with_the_widths_of_the_square_one():
    X, y = classes(300)
    plain = FourierKernelLearner(**SMALL).fit(X, y)
    model = FourierKernelLearner(loss="logistic", **SMALL).fit(X, y)
    np.testing.assert_allclose(model.widths_, plain.widths_)
    assert model.loss_.name == "logistic"


def test_one_width_finds_what_a_grid_finds():
    X, y = relevant_and_noise()
    model = FourierKernelRegressor(
        widths="one", **SMALL | {"n_tune_components": None, "max_iter": 20, "tol": 1e-6, "patience": 20}
    ).fit(X, y)
    gammas = np.geomspace(0.02, 20, 13)
    errors = []
    for gamma in gammas:
        grid = HistogramRegressor(
            "exp-chi2", gamma=gamma, features="fourier", n_components=64, selection=5, random_state=0
        ).fit(X, y)
        errors.append(grid.selection_.scores.mean(axis=1).min() / grid.selection_.baseline)
    assert min(step["objective"] for step in model.history_) < min(errors) + 0.01


# --- rounds of gradients

ROUNDS = {"objective": "gradients", "n_components": 256, "n_tune_components": 128, "random_state": 0}


@pytest.mark.parametrize("kernel", ["exp-chi2", "gaussian", "skewed-chi2"])
def test_slopes_rank_the_bins_that_matter_and_the_score_rises(kernel):
    X, y = relevant_and_noise()
    model = FourierKernelRegressor(kernel, widths="bin", **ROUNDS).fit(X[:600], y[:600])
    relative = model.widths_ / model.start_widths_
    assert relative[:2].min() > 1.5 * relative[4:].max()
    scores = [step["validation_score"] for step in model.history_]
    assert max(scores) > scores[0] + 0.3 * (1 - scores[0])
    best = int(np.argmax(scores))
    np.testing.assert_allclose(model.widths_, model.history_[best]["widths"])
    assert best in (len(scores) - 2, len(scores) - 1)
    assert model.score(X[600:], y[600:]) > scores[0]


def test_a_group_has_the_width_of_its_bins_however_many_they_are():
    X = np.random.default_rng(0).gamma(1.0, size=(900, 20))
    groups = np.repeat([0, 1], [2, 18])
    model = FourierKernelRegressor("gaussian", widths=groups, **ROUNDS).fit(X, np.sqrt(X).sum(axis=1))
    first, second = model.history_[1]["widths"]
    assert 1 / 1.3 < first / second < 1.3


def test_slopes_are_looked_at_all_over_the_rows(monkeypatch):
    """Rows may be sorted by class: the first say nothing of the others. The chunks are of 25 rows."""
    monkeypatch.setattr("chimap.kernel_learning.widths.SLOPE_ROWS", 12)
    objective = objective_of("gaussian", "gradients")
    rounds = WidthRounds(objective, None, False, Progress(), 1, 0.1, 1)
    np.testing.assert_array_equal(rounds._slope_rows(), histograms(60, 8)[::5])


def test_a_strength_that_is_given_stays_and_folds_decide_without_validation_rows():
    X, y = relevant_and_noise(400)
    two = np.arange(400) % 2  # groups: neither can be spared
    model = FourierKernelRegressor(blocks=TWO, alpha=0.3, **ROUNDS | {"max_iter": 2}).fit(X, y, groups=two)
    np.testing.assert_allclose([step["alpha"] for step in model.history_], 0.3)
    assert model.history_[0]["validation_score"] is None
    best = min(model.history_, key=lambda step: step["objective"])
    np.testing.assert_allclose(model.widths_, best["widths"])
    assert best["objective"] < model.history_[0]["objective"]
    assert len(model.history_) <= 3
    free = FourierKernelRegressor(blocks=TWO, **ROUNDS).fit(X, y)
    assert len({step["alpha"] for step in free.history_}) > 1


def test_classes_by_rounds_are_saved(tmp_path):
    X, y = classes(400)
    noisy = np.hstack([X, np.random.default_rng(1).permuted(X, axis=0)])
    plain = FourierKernelLearner(widths="one", **ROUNDS).fit(noisy[:300], y[:300])
    model = FourierKernelLearner(blocks=[slice(0, 20), slice(20, 40)], **ROUNDS).fit(noisy[:300], y[:300])
    assert model.widths_[0] > 1.3 * model.widths_[1]
    assert model.score(noisy[300:], y[300:]) >= plain.score(noisy[300:], y[300:])
    model.save(tmp_path / "a.model")
    loaded = chimap.load(tmp_path / "a.model")
    np.testing.assert_array_equal(loaded.decision_function(noisy), model.decision_function(noisy))
    assert loaded.get_params()["objective"] == "gradients"
    assert [s["objective"] for s in loaded.history_] == [s["objective"] for s in model.history_]


# --- bad input


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"blocks": [slice(0, 12), slice(10, 20)]}, "blocks overlap: column 10 is in 'block0' and in 'block1'"),
        ({"blocks": [slice(0, 12)]}, "blocks miss 8 of the 20 columns, column 12 first"),
        ({"objective": "loo"}, "objective must be one of 'held-out', 'training', 'gradients'; got 'loo'"),
        ({"width_penalty": "l3"}, "width_penalty must be one of 'l2', 'l1'"),
        ({"width_strength": -1.0}, "width_strength must be a positive number"),
        ({"width_strength": 1.0, "objective": "gradients"}, "width_strength=1.0 is a penalty of an objective"),
        ({"n_tune_rows": 0}, "n_tune_rows must be a positive whole number"),
        ({"max_iter": 0}, "max_iter must be a positive whole number"),
        ({"validation_fraction": 1.0}, "validation_fraction must be above 0 and below 1"),
        ({"validation_fraction": 0}, "such as 0.1: widths that no validation rows stop learn labels by heart; got 0"),
        ({"selection": 1}, "selection must be 'auto' or at least 2 folds; got 1"),
        ({"kernel": "chi2"}, "use its exponential form, such as 'exp-chi2'"),
        ({"loss": "epsilon_insensitive"}, "loss must be one of 'square', .*; got 'epsilon_insensitive'"),
    ],
)
def test_bad_settings(settings, message):
    X, y = classes(60)
    with pytest.raises(ValueError, match=message):
        FourierKernelLearner(**SMALL | settings).fit(X, y)


def test_constant_block_and_too_few_rows():
    X, y = classes(60)
    X[:, :5] = 0.1
    with pytest.raises(DataError, match="block 'edge' is constant"):
        FourierKernelLearner(blocks={"edge": slice(0, 5), "rest": slice(5, 20)}, **SMALL).fit(X, y)
    with pytest.raises(DataError, match="n_samples = 3 are too few to hold some out"):
        FourierKernelRegressor(**SMALL).fit(X[:3], np.arange(3.0))


def test_labels_that_the_loss_cannot_take():
    X, _ = classes(60)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        FourierKernelLearner(**SMALL).fit(X, np.linspace(0, 1, 60))
    with pytest.raises(DataError, match="one class only"):
        FourierKernelLearner(**SMALL).fit(X, np.zeros(60, int))


def test_objectives_that_are_not_finite_name_the_parameter():
    objective = objective_of("exp-chi2", "held-out")
    objective.penalty = WidthPenalty("l2", np.inf)
    x = np.append(objective.features.start_ + np.array([0.0, 2.0]), 0.0)
    with pytest.raises(DataError, match=r"objective of the widths is inf, .* in the width of 'right', which is"):
        objective(x)
    with pytest.raises(ValueError, match="the width of 'left' underflows"):
        objective(np.array([-500.0, 0.0, 0.0]))


def test_memory_budget_is_kept_or_refused():
    X, y = classes(400)
    with pytest.raises(MemoryBudgetError, match="Give memory='"):
        FourierKernelLearner(memory="1MiB", **SMALL | {"n_components": 512, "n_tune_components": None}).fit(X, y)


def test_each_iteration_is_told():
    class Notes(Progress):
        def __init__(self):
            self.lines, self.stages = [], []

        def stage(self, name, total, unit="rows"):
            self.stages.append(name)

        def note(self, text, *, matters=False):
            self.lines.append(text)

    X, y = classes(300)
    notes = Notes()
    model = FourierKernelLearner(**SMALL).fit_source(ArraySource(X, y), notes)
    assert notes.stages.index("widths") < notes.stages.index("learning")
    assert len(notes.lines) == len(model.history_)
    assert notes.lines[0].startswith("iteration   0: objective 0.")
    assert "validation accuracy 0." in notes.lines[0] or "validation accuracy 1." in notes.lines[0]


@pytest.mark.parametrize("n_tune_rows", [None, 90])
@pytest.mark.parametrize("fraction", [0.01, 0.2])
def test_rows_to_tune_on_are_whole_groups_and_so_are_their_folds(monkeypatch, n_tune_rows, fraction):
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(30), 10))
    X = rng.dirichlet(np.ones(6), size=300)
    seen = []

    def recorded(method, features, rows):
        seen.append(rows)
        return WidthObjective(features, rows, "held-out", WidthPenalty("l2", 0.0))

    monkeypatch.setattr("chimap.kernel_learning.widths.WidthMethod.width_objective", recorded)
    FourierKernelRegressor(
        "gaussian",
        n_components=16,
        n_tune_components=16,
        n_tune_rows=n_tune_rows,
        validation_fraction=fraction,
        max_iter=1,
        random_state=0,
    ).fit(X, X[:, 0], groups=groups)
    (tuned,) = seen
    rows = np.concatenate([chunk[0] for chunk in tuned.chunks()])
    folds = np.concatenate([chunk[2] for chunk in tuned.chunks()])
    places = [int(np.flatnonzero(np.isclose(X, row, atol=1e-6).all(axis=1))[0]) for row in rows]
    of_rows = groups[places]
    drawn = np.unique(of_rows)
    assert np.isin(groups, drawn).sum() == len(rows) <= (n_tune_rows or 300)
    assert all(np.unique(folds[of_rows == group]).size == 1 for group in drawn)
    assert np.unique(folds).size == 5
