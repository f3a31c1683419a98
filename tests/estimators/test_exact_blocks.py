"""Exact machines of several blocks: the machine on the sum of the blocks' kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from chimap import AutomaticFeatures, HistogramClassifier, HistogramRegressor, load
from chimap.data import ArraySource
from chimap.features.exact import ExactBlocks
from chimap.kernels import Exponential, chi2
from chimap.machines.base import Facts, Request
from chimap.machines.keeps_rows import bytes_of_exact
from chimap.recipe import Recipe
from chimap.recipe.task import Task

DIGITS, LABELS = load_digits(return_X_y=True)
X, Y, TEST = DIGITS[:200], LABELS[:200], DIGITS[200:260]
BLOCKS = {"top": slice(0, 32), "bottom": list(range(32, 64))}


def machine(make=HistogramClassifier, kernel="exp-chi2", **settings):
    return make(kernel, **{"blocks": BLOCKS, "precision": "float64", "random_state": 0} | settings)


def ridge(K, y, alpha):
    """Weights a and intercept of the exact machine, from its linear equations with 1'a = 0."""
    n = y.shape[0]
    system = np.block([[K + alpha * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solved = np.linalg.solve(system, np.r_[y, 0.0])
    return solved[:n], solved[n]


@pytest.mark.parametrize("kernel", ["exp-chi2", ["exp-chi2", "chi2"]])
def test_it_is_the_machine_on_the_sum_of_the_kernels(kernel):
    y = np.sqrt(X[:, 10]) + X[:, 40] / 8
    model = machine(HistogramRegressor, kernel, features=AutomaticFeatures("exact", n_terms=8), alpha=0.5).fit(X, y)
    weights, intercept = ridge(model.kernel_(X), y, 0.5)
    np.testing.assert_allclose(model.predict(TEST), model.kernel_(TEST, X) @ weights + intercept, atol=5e-3)


def test_held_out_outputs_are_those_of_machines_without_the_row():
    y = np.sqrt(X[:, 10]) + X[:, 40] / 8
    kernel = [Exponential(chi2, 0.002), Exponential(chi2, 0.001)]
    model = machine(HistogramRegressor, kernel, features="exact", alpha=0.5).fit(X, y)
    without = machine(HistogramRegressor, kernel, features="exact", alpha=0.5).fit(X[1:], y[1:])
    np.testing.assert_allclose(model.held_out_[0], without.predict(X[:1]), atol=2e-3)


def test_few_rows_take_it_by_themselves():
    model = machine(precision="float32").fit(X, Y)
    assert isinstance(model.features_, ExactBlocks)
    assert model.score(TEST, LABELS[200:260]) > 0.9
    kernels = machine(kernel=["exp-chi2", "chi2"]).fit(X, Y)
    assert isinstance(kernels.features_, ExactBlocks)
    assert not isinstance(machine(kernel="chi2").fit(X, Y).features_, ExactBlocks)


def test_gamma_is_chosen_for_all_blocks_together():
    fixed = machine(features="exact").fit(X, Y)
    model = machine(features="exact", gamma="auto").fit(X, Y)
    ratios = [
        chosen.kernel.gamma / mean.kernel.gamma
        for chosen, mean in zip(model.kernel_.kernels, fixed.kernel_.kernels, strict=True)
    ]
    assert ratios[0] == ratios[1]
    assert np.log2(ratios[0]) == pytest.approx(round(np.log2(ratios[0])))
    gammas = model.selection_.settings["gamma"]
    assert len(set(gammas)) > 1
    assert gammas[model.selection_.chosen] == model.kernel_.kernels[0].kernel.gamma
    # the same machine with these numbers
    kernel = [own.kernel for own in model.kernel_.kernels]
    again = machine(kernel=kernel, features="exact", alpha=model.alpha_).fit(X, Y)
    np.testing.assert_allclose(again.decision_function(TEST), model.decision_function(TEST), atol=1e-6)


def test_it_is_saved(tmp_path):
    model = machine(features="exact", kernel=["exp-chi2", "gaussian"]).fit(X, Y)
    model.save(tmp_path / "a.model")
    loaded = load(tmp_path / "a.model")
    np.testing.assert_array_equal(loaded.decision_function(TEST), model.decision_function(TEST))
    np.testing.assert_array_equal(loaded.kernel_(TEST), model.kernel_(TEST))
    assert loaded.describe()["features"] == "values of the sum of 2 kernels with 200 rows"


def test_deviations_are_those_of_the_sum():
    y = np.sqrt(X[:, 10]) + X[:, 40] / 8
    model = machine(HistogramRegressor, features="exact", alpha=0.5).fit(X, y)
    _, std = model.predict(TEST, return_std=True)
    K, k = model.features_.transform(X), model.features_.transform(TEST)
    K = K[:, np.argsort(model.row_numbers_)]
    k = k[:, np.argsort(model.row_numbers_)]
    values, vectors = np.linalg.eigh(K)
    Z = vectors * np.sqrt(np.maximum(values, 0))
    new = k @ (vectors / np.sqrt(np.maximum(values, 1e-12)))
    extended = np.column_stack([Z, np.ones(200)])
    precision = extended.T @ extended + np.diag([0.5] * 200 + [0.0])
    at = np.column_stack([new, np.ones(60)])
    rest = 2.0 - np.square(new).sum(axis=1)  # of the two exponential kernels, in no direction of the rows
    expected = 1 + np.einsum("ij,ij->i", at, np.linalg.solve(precision, at.T).T) + rest / 0.5
    np.testing.assert_allclose(std**2 / model.noise_variance_, expected, rtol=1e-3)


def test_groups_and_weights():
    groups = np.repeat(np.arange(100), 2)
    model = machine(features="exact").fit(X, Y, groups=groups)
    assert model.selection_.rule == "leave-group-out"
    weights = np.random.default_rng(0).integers(1, 3, size=200)
    given = {"features": "exact", "alpha": 0.1, "kernel": [Exponential(chi2, 0.002), Exponential(chi2, 0.001)]}
    weighted = machine(**given).fit(X, Y, sample_weight=weights)
    repeated = machine(**given).fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
    np.testing.assert_allclose(weighted.decision_function(TEST), repeated.decision_function(TEST), atol=2e-3)


def test_columns_in_several_blocks_take_memory_for_each():
    recipe = Recipe.of(HistogramClassifier("exp-chi2"))
    source = ArraySource(X, Y)
    facts = Facts.of(source, Task.of(source, recipe)[0], None, Request(can_keep=True))
    twice = bytes_of_exact(replace(recipe, blocks=[slice(0, 64), slice(0, 64)]), facts)
    once = bytes_of_exact(replace(recipe, blocks=BLOCKS), facts)
    assert once == bytes_of_exact(recipe, facts)
    assert twice - once == pytest.approx(3 * 2 * 200 * source.row_bytes, abs=1)


def test_explanations_add_up():
    model = machine(features="exact").fit(X, Y)
    told = model.explain(TEST[:3], background=X)
    np.testing.assert_allclose(told.scores, model.decision_function(TEST[:3]), atol=1e-6)


def test_deviations_of_additive_blocks_are_refused():
    model = machine(HistogramRegressor, "chi2", features="exact").fit(X, np.sqrt(X[:, 10]))
    with pytest.raises(ValueError, match="return_std needs"):
        model.predict(TEST, return_std=True)


def test_few_rows_of_additive_blocks_are_solved_in_the_rows_unless_deviations_are_kept():
    few, y = X[:40], np.sqrt(X[:40, 10])
    assert hasattr(machine(kernel="chi2").fit(few, Y[:40]), "row_numbers_")
    real = machine(HistogramRegressor, "chi2").fit(few, y)
    assert not hasattr(real, "row_numbers_")
    assert (real.predict(TEST, return_std=True)[1] > 0).all()
