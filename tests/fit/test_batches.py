"""Exact machines that learn batch by batch: a batch is a block, and small ones are gathered."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import HistogramClassifier, HistogramRegressor
from chimap._validation import DataError, MemoryBudgetError
from chimap.recipe import Recipe

from ..histograms import classes

X, Y = classes(420, 12)
TARGETS = np.sin(9 * X[:, 0]) + np.sqrt(X[:, 1])
BATCHES = [0, 130, 150, 260, 300, 420]  # of which the second and the fourth are gathered with those that follow
BLOCKS = [0, 130, 260, 420]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("chimap.fit.batches.GATHERED_ROWS", 100)


def in_batches(model, borders=BATCHES, y=TARGETS, rows=X, asked=False, **first):
    for start, stop in pairwise(borders):
        model.partial_fit(rows[start:stop], y[start:stop], **(first if start == 0 else {}))
        if asked:
            model.predict(X[:2])
    return model


def regressor(kernel="exp-chi2", **settings):
    return HistogramRegressor(kernel, **({"features": "exact", "precision": "float64", "random_state": 0} | settings))


def swept(model, blocks):
    """Outputs of the rows of a sweep of blocks, from the kernel values that the model's features give, by numpy.

    Two fifths of the rows of the first block are solved again with each other one. Each step is the mean of the lengths
    that were best for the rows after the steps before it.
    """
    model._refresh()
    order, core = model.row_numbers_, np.arange(2 * blocks[1] // 5)
    K = model.features_.transform(X[order])
    a, b, alpha = np.zeros(order.size), 0.0, model.alpha_
    progressive, lengths, step, left = np.full(order.size, np.nan), [], np.zeros(order.size), np.zeros(core.size)
    for start, stop in pairwise(blocks):
        block = slice(start, stop)
        if start == 0:  # with the intercept
            system = K[block, block] + alpha * np.eye(stop)
            ones, solved = (np.linalg.solve(system, v) for v in (np.ones(stop), TARGETS[order][block]))
            b = solved.sum() / ones.sum()
            a[block] = solved - b * ones
        else:
            progressive[block] = K[block] @ a + b
            rows, length = np.concatenate([core, np.arange(start, stop)]), np.mean(lengths or [1.0])
            residuals, along = TARGETS[order][block] - progressive[block], K[block] @ step
            if step.any():
                lengths.append(np.clip(length + residuals @ along / (along @ along), 0, 1))
                length = np.mean(lengths)
            residuals, step = np.concatenate([left, residuals]), np.zeros(order.size)
            step[rows] = np.linalg.solve(K[np.ix_(rows, rows)] + alpha * np.eye(rows.size), residuals)
            a, left = a + length * step, (1 - length) * left if length < 1 else np.zeros(core.size)
    return order, K @ a + b, progressive


@pytest.mark.parametrize("kernel", ["exp-chi2", "gaussian", "minmax"])
def test_a_batch_is_a_block_of_a_sweep(kernel):
    model = in_batches(regressor(kernel, alpha=0.05))  # one that is open may fall on the way
    order, expected, progressive = swept(model, BLOCKS)
    assert sorted(order[:130]) == list(range(130))  # at random within a batch
    assert not np.array_equal(order[:130], np.arange(130))
    np.testing.assert_allclose(model.predict(X[order]), expected, atol=1e-8)
    np.testing.assert_allclose(model.held_out_[order[130:260], 0], progressive[130:260], atol=1e-8)
    assert np.isnan(model.held_out_[order[:130]]).all()
    assert model.n_rows_ == 420
    assert model.learning_curve_.rows.tolist() == [130, 260, 420]


def test_what_is_asked_in_between_changes_nothing():
    asked, unasked = in_batches(regressor(), asked=True), in_batches(regressor())
    np.testing.assert_allclose(asked.predict(X), unasked.predict(X), atol=1e-10)
    assert asked.alpha_ == unasked.alpha_


@pytest.mark.parametrize(
    ("batches", "blocks"), [([0, 130, 170], [0, 130, 170]), ([0, 30, 60], [0, 60])], ids=["later", "first"]
)
def test_rows_that_are_no_block_yet_are_learned_when_the_machine_is_asked(batches, blocks):
    model = in_batches(regressor(), batches)
    order, expected, _ = swept(model, blocks)
    np.testing.assert_allclose(model.predict(X[order]), expected, atol=1e-8)
    assert np.isfinite(model.held_out_).any()
    assert model.predict_set(X).shape == (420, 2)


def test_a_large_batch_is_several_blocks(monkeypatch):
    monkeypatch.setattr("chimap.fit.batches.MOST_BLOCK_ROWS", 150)
    monkeypatch.setattr("chimap.fit.batches.FEWEST_BLOCK_ROWS", 50)
    model = in_batches(regressor(), [0, 420])
    order, expected, _ = swept(model, [0, 140, 280, 420])
    np.testing.assert_allclose(model.predict(X[order]), expected, atol=1e-8)


@pytest.mark.parametrize("settings", [{}, {"normalize": "l1", "blocks": {"a": slice(0, 5), "b": slice(5, 12)}}])
def test_sparse_batches_are_dense_ones(settings):
    dense, sparse = (
        in_batches(
            HistogramClassifier("exp-chi2", features="exact", random_state=0, **settings),
            y=Y,
            rows=rows,
            classes=np.unique(Y),
        )
        for rows in (X, sp.csr_matrix(X))
    )
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X), atol=1e-4)
    assert dense.score(X, Y) > 0.8


def test_weighted_rows_are_repeated_ones():
    weights = np.random.default_rng(0).integers(1, 3, 60)
    repeated = np.repeat(np.arange(60), weights)  # fewer than a block
    weighted = regressor("linear", alpha=0.1)
    for part in (slice(0, 30), slice(30, 60)):
        weighted.partial_fit(X[part], TARGETS[part], sample_weight=weights[part].astype(float))
    borders = [0, int(weights[:30].sum()), repeated.size]
    expected = in_batches(regressor("linear", alpha=0.1), borders, TARGETS[repeated], X[repeated])
    np.testing.assert_allclose(weighted.predict(X), expected.predict(X), atol=1e-8)


def test_weights_may_begin_with_a_later_batch():
    some = in_batches(regressor(), [0, 200])
    some.partial_fit(X[200:], TARGETS[200:], sample_weight=np.full(220, 1.0))
    np.testing.assert_allclose(some.predict(X), in_batches(regressor(), [0, 200, 420]).predict(X), atol=1e-10)


def test_a_first_batch_may_lack_classes():
    model = HistogramClassifier("exp-chi2", features="exact", random_state=0)
    first = np.flatnonzero(Y == 0)[:40]
    model.partial_fit(X[first], Y[first], classes=np.unique(Y)).partial_fit(X, Y)
    assert model.score(X, Y) > 0.8


def test_memory_that_is_full_is_named_and_the_machine_stays(monkeypatch):
    X, Y = classes(6000, 12)
    model = HistogramClassifier("exp-chi2", features="exact", memory="6MiB", random_state=0)
    with pytest.raises(
        MemoryBudgetError,
        match=r"memory of 6\.0 MiB is too small for an exact machine of [\d,]+ rows and the 500 of this batch: .* "
        r"The batch was not added\. Begin with memory='\d+MiB', or use features='landmarks'",
    ):
        in_batches(model, range(0, 6001, 500), Y, X, classes=np.unique(Y))
    assert 1000 < model._batches.count < 6000
    assert model.score(X, Y) > 0.8
    assert model.n_rows_ == model._batches.count
    monkeypatch.setattr(Recipe, "most_memory", 2**28)  # of an automatic budget, which grows with the rows
    n_before = model._batches.count
    assert model.partial_fit(X[:500], Y[:500])._batches.count == n_before + 500


def test_a_batch_that_is_refused_is_not_added():
    model = in_batches(regressor(), [0, 130])
    before = model.predict(X)
    bad = X.copy()
    bad[7, 3] = -1
    with pytest.raises(DataError, match="row 137, column 3"):
        model.partial_fit(bad, TARGETS)
    np.testing.assert_array_equal(model.predict(X), before)


def test_folds_and_gaps_are_refused():
    with pytest.raises(ValueError, match="leave out single rows of batches: use selection='auto'; got selection=5"):
        in_batches(regressor(selection=5))
    several = np.column_stack([TARGETS, TARGETS])
    several[3, 1] = np.nan
    with pytest.raises(DataError, match="partial_fit of features='exact' takes targets without missing entries"):
        in_batches(regressor(), y=several)
