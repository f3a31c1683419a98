"""Machines of all rows with the outputs of left-out rows, against machines that are fitted without them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from chimap.kernels import MinMax
from chimap.race.rows import in_groups, left_out_together
from chimap.race.shared import SharedMachines
from chimap.recipe import Recipe
from chimap.recipe.codecs import ClassCodec, RealCodec, TaskCodec

RNG = np.random.default_rng(0)
X = RNG.poisson(3.0, (40, 6)).astype(float)
LABELS = (X[:, 0] + RNG.normal(0, 2, 40) > 3).astype(int)


def exact(kernel, loss="square", **more):
    """The recipe of a candidate."""
    return Recipe("HistogramClassifier", True).with_raced(kernel=kernel, features="exact", loss=loss, **more)


def trials(y=LABELS, codec=ClassCodec, weights=None, alphas=(0.7,), scoring=None):
    encoded = codec.of(y)
    asked = Recipe("HistogramClassifier", True, precision="float64", alpha=list(alphas), n_terms=6)
    return SharedMachines(X, y, encoded, encoded.score(y, scoring, weights), weights, asked)


def without(kernel, rows, Y, weights, alpha):
    """Outputs of kernel ridge for ``rows``, fitted on the other rows, with the mean of the targets as it is of all."""
    others = np.setdiff1d(np.arange(40), rows)
    w = weights[others]
    n = others.size
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = kernel[np.ix_(others, others)] + alpha * np.diag(1 / w)
    system[:n, n] = system[n, :n] = 1
    solved = np.linalg.solve(system, np.vstack([Y[others], np.zeros((1, Y.shape[1]))]))
    shift = np.average(Y, axis=0, weights=weights) - np.average(Y[others], axis=0, weights=w)
    return kernel[np.ix_(rows, others)] @ solved[:n] + solved[n] + shift


@pytest.mark.parametrize("weights", [None, RNG.uniform(0.5, 2, 40)])
@pytest.mark.parametrize("sizes", [None, (3, 1, 1, 10, 5, 20)])
@pytest.mark.parametrize("name", ["linear", "minmax"])
def test_outputs_are_those_of_machines_without_the_rows(name, sizes, weights):
    groups = None if sizes is None else np.split(np.arange(40), np.cumsum(sizes)[:-1])
    t = trials(weights=weights)
    found = t.best_left_out(exact(name), groups, None)
    kernel = X @ X.T if name == "linear" else MinMax()(X)
    w = np.ones(40) if weights is None else weights
    parts = [np.array([i]) for i in range(40)] if groups is None else groups
    expected = np.concatenate([without(kernel, rows, t.Y, w, 0.7) for rows in parts])
    np.testing.assert_allclose(found.outputs[0], expected, atol=1e-6)


def test_a_constant_machine_ranks_no_class_before_the_other():
    t = trials(alphas=(1e9,), scoring="roc_auc")
    found = t.best_left_out(exact("linear"), None, None)
    assert abs(found.outputs[0] - t.Y.mean()).max() < 1e-4


def test_margins_and_missing_entries_are_left_out_too():
    for loss in ("square", "squared_hinge"):
        found = trials().best_left_out(exact("linear", loss=loss), None, None)
        assert found.score > 0.6
    tasks = np.column_stack([LABELS, 1 - LABELS]).astype(float)
    tasks[::5, 1] = np.nan
    t = trials(tasks, TaskCodec)
    parts = left_out_together(None, t.Y)
    assert np.concatenate(parts).tolist() == list(range(40))
    found = t.best_left_out(exact("linear"), parts, None)
    assert np.isfinite(found.outputs[0]).all()
    complete = trials(tasks[:, :1], TaskCodec).best_left_out(exact("linear"), parts, None)
    np.testing.assert_allclose(found.outputs[0][:, 0], complete.outputs[0][:, 0], atol=2e-2)


def test_the_least_squared_error_or_the_best_score():
    t = trials(alphas=np.logspace(-3, 4, 8), scoring="roc_auc")
    settings = exact("exp-chi2", gamma="auto")
    by_score = t.best_left_out(settings, None, None)
    by_error = t.best_left_out(settings, None, None, by_error=True)
    chosen = next(trial for trial in by_error.tried if trial.outputs is by_error.outputs)
    assert chosen.error == min(trial.error for trial in by_error.tried)
    assert by_score.score == max(trial.score for trial in by_score.tried)


def test_errors_of_many_classes_are_those_of_probabilities():
    kinds = np.digitize(X[:, 0] + RNG.normal(0, 1, 40), [2, 4])
    weights = RNG.uniform(0.5, 2, 40)
    t = trials(kinds, weights=weights, alphas=np.logspace(-3, 4, 8))
    found = t.best_left_out(exact("exp-chi2", gamma="auto"), None, None, by_error=True)
    error = next(trial.error for trial in found.tried if trial.outputs is found.outputs)
    assert error <= 1.001 * min(trial.error for trial in found.tried)
    outputs, own = found.outputs[0], np.eye(3)[kinds]

    def weighted_mean(values):
        return np.average(values, weights=weights)

    scales = np.logspace(-2, 2, 20_001)
    losses = [-weighted_mean(np.log((softmax(outputs * scale, axis=1) * own).sum(axis=1))) for scale in scales[::200]]
    near = np.abs(np.log(scales / scales[::200][np.argmin(losses)])) < 0.1
    briers = [
        weighted_mean(((softmax(outputs * scale, axis=1) - own) ** 2).mean(axis=1)) for scale in scales[near][::10]
    ]
    assert min(briers) - 1e-9 <= error <= max(briers)


def test_targets_that_are_numbers():
    t = trials(X[:, 0] + X[:, 1], RealCodec)
    assert t.best_left_out(exact("linear"), None, None).score > 0.95


def test_rows_of_a_group_are_adjacent():
    groups = RNG.integers(0, 9, 40)
    order = in_groups(groups, 40, 3)
    assert sorted(order) == list(range(40))
    parts = left_out_together(groups[order], np.zeros((40, 1)))
    assert [np.unique(groups[order][part]).size for part in parts] == [1] * np.unique(groups).size
    assert left_out_together(None, np.zeros((40, 1))) is None
