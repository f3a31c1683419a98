"""Fits of machines in blocks: what they choose, hold out, keep and refuse, and how they end early."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits

import chimap
from chimap import HistogramClassifier, HistogramRegressor
from chimap._validation import DataError, MemoryBudgetError
from chimap.data import ArraySource
from chimap.features.exact import ExactFeatures
from chimap.features.landmarks import LandmarkFeatures
from chimap.machines import block_plan
from chimap.solvers import sweep
from chimap.solvers.block_problem import BlockSolver
from chimap.solvers.blocks import BlockRidge
from tests.at_block import AtBlock, press_ctrl_c
from tests.histograms import histograms

SMALL = "16MiB"  # holds blocks of some hundred rows of 1797, and no matrix of all
DIGITS, LABELS = load_digits(return_X_y=True)
EXACT = {"features": "exact", "memory": SMALL, "random_state": 0}


def digits(kernel="exp-chi2", **settings):
    return HistogramClassifier(kernel, **EXACT | settings).fit(DIGITS[:1500], LABELS[:1500])


@pytest.fixture(scope="module")
def fitted():
    return digits()


def test_a_machine_in_blocks_scores_like_that_of_the_matrix(fitted):
    whole = HistogramClassifier("exp-chi2", features="exact", random_state=0).fit(DIGITS[:1500], LABELS[:1500])
    assert fitted._taken["solver"] == BlockSolver.name
    assert "solver" not in whole._taken
    assert fitted.n_rows_ == 1500
    assert fitted.score(DIGITS[1500:], LABELS[1500:]) >= whole.score(DIGITS[1500:], LABELS[1500:]) - 0.01


def test_rows_are_held_out_by_the_blocks_before_them(fitted):
    held_out = fitted.held_out_
    first = np.isnan(held_out).all(axis=1)
    assert 300 <= first.sum() < 1500
    accuracy = (held_out[~first].argmax(axis=1) == LABELS[:1500][~first]).mean()
    assert 0.9 < accuracy <= 1
    # honest: a machine that had seen a row would be right about nearly all
    assert accuracy < fitted.score(DIGITS[:1500], LABELS[:1500])
    assert np.array_equal(fitted.row_numbers_[: first.sum()], fitted.row_numbers_[first[fitted.row_numbers_]])


def test_the_curve_is_of_rows_that_were_not_seen(fitted):
    curve = fitted.learning_curve_
    assert curve.rows[-1] == 1500
    assert (np.diff(curve.rows) > 0).all()
    assert 0.85 < curve.scores.min() <= curve.scores.max() <= 1


def test_groups_stay_in_one_block_and_are_left_out_together():
    X, y, groups = (np.repeat(DIGITS[:500], 3, axis=0), np.repeat(LABELS[:500], 3), np.repeat(np.arange(500), 3))
    rng = np.random.default_rng(0)
    y = np.repeat(rng.integers(0, 2, 500), 3)  # labels that only the copies of a row tell
    model = HistogramClassifier("exp-chi2", **EXACT).fit(X, y, groups=groups)
    held_out = model.held_out_[:, 0]
    known = ~np.isnan(held_out)
    assert known.sum() > 300
    assert 0.4 < ((held_out > 0) == (y == 1))[known].mean() < 0.6
    by_group = known.reshape(500, 3)
    assert (by_group.all(axis=1) | ~by_group.any(axis=1)).all()


def test_a_group_larger_than_a_block_is_refused():
    groups = np.r_[np.zeros(1400, int), np.arange(1, 101)]
    with pytest.raises(DataError, match=r"the largest of groups has 1,400 rows, and memory holds a block of"):
        HistogramClassifier("exp-chi2", **EXACT).fit(DIGITS[:1500], LABELS[:1500], groups=groups)


def test_row_weights_count_as_in_the_matrix():
    weights = np.where(LABELS[:1500] == 3, 5.0, 1.0)
    model = HistogramClassifier("exp-chi2", **EXACT, alpha=0.05).fit(DIGITS[:1500], LABELS[:1500], weights)
    plain = HistogramClassifier("exp-chi2", **EXACT, alpha=0.05).fit(DIGITS[:1500], LABELS[:1500])
    assert (model.predict(DIGITS[1500:]) == 3).sum() >= (plain.predict(DIGITS[1500:]) == 3).sum()
    assert not np.allclose(model.decision_function(DIGITS[:5]), plain.decision_function(DIGITS[:5]))


@pytest.mark.parametrize("kernel", ["gaussian", "minmax", "exp-jensen_shannon", "skewed-chi2"])
def test_every_kind_of_kernel_is_solved_in_blocks(kernel):
    model = digits(kernel, alpha=1e-2)
    assert model.n_rows_ == 1500
    assert model.score(DIGITS[1500:], LABELS[1500:]) > 0.9


def test_blocks_of_columns_are_added_up():
    columns = {"upper": slice(0, 32), "lower": slice(32, 64)}
    model = digits(blocks=columns)
    assert model.score(DIGITS[1500:], LABELS[1500:]) > 0.9


def test_sparse_and_dense_rows_give_the_same_machine(fitted):
    sparse = HistogramClassifier("exp-chi2", **EXACT).fit(sp.csr_matrix(DIGITS[:1500]), LABELS[:1500])
    difference = sparse.decision_function(DIGITS[1500:]) - fitted.decision_function(DIGITS[1500:])
    assert np.abs(difference).max() < 0.05


def test_rows_of_any_scale_give_the_same_machine(fitted):
    tiny = HistogramClassifier("exp-chi2", **EXACT).fit(DIGITS[:1500] * 2.0**-80, LABELS[:1500])
    assert (tiny.predict(DIGITS[1500:] * 2.0**-80) == fitted.predict(DIGITS[1500:])).mean() > 0.99


def test_a_class_that_the_first_block_lacks_is_learned():
    y = LABELS[:1500].copy()
    order = np.random.default_rng(0).permutation(1500)
    y[:] = 0
    rare = np.flatnonzero(LABELS[:1500] == 4)[:12]
    y[rare] = 1
    assert order.size == 1500
    model = HistogramClassifier("exp-chi2", **EXACT, alpha=1e-2).fit(DIGITS[:1500], y)
    assert model.predict(DIGITS[rare]).mean() > 0.5


def test_several_targets_and_deviations():
    X = histograms(1500, 20, seed=1)
    Y = np.column_stack([np.sqrt(X[:, 0]), X[:, 1] - X[:, 2]]) + np.random.default_rng(0).normal(0, 0.3, (1500, 2))
    model = HistogramRegressor("exp-chi2", **EXACT).fit(X[:1200], Y[:1200])
    predicted, deviations = model.predict(X[1200:], return_std=True)
    z = (Y[1200:] - predicted) / deviations
    assert np.all((z.std(axis=0) > 0.8) & (z.std(axis=0) < 1.15))
    low, high = np.moveaxis(model.predict_set(X[1200:], 0.1), -1, 0)
    covered = ((low <= Y[1200:]) & (Y[1200:] <= high)).mean(axis=0)
    assert np.all((covered > 0.85) & (covered < 0.96))


def test_missing_entries_are_refused_with_what_takes_them():
    Y = np.column_stack([LABELS[:1500] > 4, LABELS[:1500] % 2]).astype(float)
    Y[::3, 0] = np.nan
    with pytest.raises(DataError, match=r"missing entries.*Use features='landmarks'"):
        HistogramClassifier("exp-chi2", **EXACT).fit(DIGITS[:1500], Y)


def test_a_memory_that_holds_no_block_is_refused_with_one_that_does():
    with pytest.raises(
        MemoryBudgetError, match=r"is too small for 1,500 rows and a block.*memory='(\d+)MiB'"
    ) as refused:
        digits(memory="2MiB")
    enough = str(refused.value).split("memory='")[1].split("'")[0]
    assert digits(memory=enough).n_rows_ == 1500


# --- the end of a sweep


def test_an_interruption_after_the_first_block_keeps_the_machine_so_far():
    model = HistogramClassifier("exp-chi2", **EXACT | {"memory": "8MiB"})
    model.fit_source(ArraySource(DIGITS[:1500], LABELS[:1500]), AtBlock(2, press_ctrl_c))
    assert 300 < model.n_rows_ < 1500
    assert model.features_._n_features_out == model.n_rows_
    assert model.score(DIGITS[1500:], LABELS[1500:]) > 0.85


def test_an_interruption_before_it_ends_the_fit():
    with pytest.raises(KeyboardInterrupt):
        HistogramClassifier("exp-chi2", **EXACT).fit_source(
            ArraySource(DIGITS[:1500], LABELS[:1500]), AtBlock(1, press_ctrl_c)
        )


def test_a_time_limit_ends_the_sweep_with_the_best_machine_so_far():
    began = time.monotonic()
    model = digits(time_limit=1e-3)
    assert model.n_rows_ < 1500
    assert model.score(DIGITS[1500:], LABELS[1500:]) > 0.8
    assert time.monotonic() - began < 60


def test_time_that_is_left_goes_into_more_sweeps(monkeypatch):
    steps = []
    learn = BlockRidge.learn
    monkeypatch.setattr(BlockRidge, "learn", lambda self, block: steps.append(block) or learn(self, block))
    once, longer = digits(alpha=1e-3), digits(alpha=1e-3, time_limit=600)
    n_blocks = 1 + len([step for step in steps if len(steps) and step.start > 0]) // sweep.MOST_SWEEPS
    assert len(steps) == (n_blocks - 1) + (n_blocks - 1) + (sweep.MOST_SWEEPS - 1) * n_blocks
    seen = ~np.isnan(once.held_out_).any(axis=1)
    assert np.allclose(once.held_out_[seen], longer.held_out_[seen])  # of the first sweep
    assert not np.allclose(once.decision_function(DIGITS[1500:]), longer.decision_function(DIGITS[1500:]))


def test_counted_work_limits_the_rows(monkeypatch):
    monkeypatch.setattr(block_plan, "USUAL_SECONDS", 7e-4)
    model = digits()
    assert model.n_rows_ < 1500
    assert np.isnan(model.held_out_[model.row_numbers_[: model.n_rows_ // 3]]).any()


@pytest.mark.parametrize("n_landmarks", [1000, 10])
def test_landmarks_for_all_rows_win_where_they_predict_better(n_landmarks, monkeypatch):
    monkeypatch.setattr("chimap.machines.keeps_rows.MOST_ROWS", 400)
    monkeypatch.setattr(block_plan, "USUAL_SECONDS", 7e-4)
    monkeypatch.setattr("chimap.machines.blocks.landmarks_in", lambda seconds, n_rows: n_landmarks)
    model = HistogramClassifier("exp-chi2", random_state=0).fit(DIGITS[:1500], LABELS[:1500])
    takes_all = n_landmarks == 1000
    assert isinstance(model.features_, LandmarkFeatures if takes_all else ExactFeatures)
    assert hasattr(model, "n_unlearned_") != takes_all
    assert hasattr(model, "row_numbers_") != takes_all
    assert model.score(DIGITS[1500:], LABELS[1500:]) > 0.9
    assert clone(model).set_params(kernel="exp-chi2").get_params()["features"] == "auto"


def test_more_seconds_are_more_rows():
    rows = [block_plan.most_rows_within(seconds, 5000, 784) for seconds in (1, 10, 100, 1000)]
    assert (np.diff(rows) > 0).all()
    for seconds, n in zip((10, 100, 1000), rows[1:], strict=True):
        assert block_plan.block_seconds(n, 5000, 784) == pytest.approx(seconds, rel=1e-3)


# --- what such machines can do


def test_the_file_of_a_machine_of_counts_holds_a_byte_for_each(tmp_path):
    X = np.random.default_rng(0).integers(0, 200, (3000, 64)).astype(np.uint8)
    y = (X[:, 0] > X[:, 1]).astype(int)
    model = HistogramClassifier("exp-chi2", features="exact", memory="20MiB", random_state=0).fit(X, y)
    model.save(tmp_path / "a.model")
    assert (tmp_path / "a.model").stat().st_size < 3000 * 64 + 3000 * 8 * 8 + 2**17
    again = chimap.load(tmp_path / "a.model")
    assert np.array_equal(again.decision_function(X[:100]), model.decision_function(X[:100]))


def test_predictions_do_not_depend_on_how_many_rows_come_at_once(fitted):
    together = fitted.decision_function(DIGITS[1500:])
    alone = np.vstack([fitted.decision_function(DIGITS[i : i + 1]) for i in range(1500, 1510)])
    rounding = np.finfo(np.float32).eps * np.linalg.norm(
        fitted.feature_coef_
    )  # of kernel values, in sums with the weights
    assert np.abs(alone - together[:10]).max() < 4 * rounding


def test_neighbours_are_rows_of_the_fit(fitted):
    neighbours = fitted.nearest(DIGITS[5:6])[0]
    assert neighbours.similarities.max() == pytest.approx(1, abs=1e-3)
