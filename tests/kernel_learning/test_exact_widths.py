"""KRR-GD: gradients, definitions, and that random features come to the same widths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from chimap import Exponential, chi2
from chimap._validation import DataError
from tests.references.exact_widths import ExactWidths, dual_ridge, exact_held_out, exact_training

from ..features.fourier.test_widths import BLOCKS, difference
from ..histograms import classes
from .test_kernel_learning import TWO, objective_of, relevant_and_noise


def case():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, 24, 3)), rng.standard_normal((24, 2)) + 1
    return np.square(X[:, :, None] - X[:, None]).sum(-1), Y


@pytest.mark.parametrize("weights", [None, np.linspace(0.2, 3, 24)])
@pytest.mark.parametrize("kind", ["training", "held-out"])
def test_gradients(kind, weights):
    distances, Y = case()
    folds = np.arange(24) % 3

    def objective(x):
        if kind == "training":
            return exact_training(distances, Y, x, 7.0, weights)
        return exact_held_out(distances, Y, folds, x, 7.0, weights)

    x = np.array([-0.7, -1.2, -0.5])
    np.testing.assert_allclose(objective(x)[1], difference(lambda x: objective(x)[0], x), rtol=1e-6, atol=1e-9)


def test_dual_ridge_is_kernel_ridge_of_centred_data():
    distances, Y = case()
    K = np.exp(-distances[0])
    weights, _ = dual_ridge(K, Y, 0.3)
    H = np.eye(24) - 1 / 24
    peer = KernelRidge(alpha=0.3, kernel="precomputed").fit(H @ K @ H, Y - Y.mean(0))
    np.testing.assert_allclose(weights.outputs(K), peer.predict(H @ K @ H) + Y.mean(0), atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["held-out", "training"])
def test_many_random_features_have_the_same_objective(kind):
    objective = objective_of("gaussian", kind, n_folds=3, rho=0.0, n_components=4096)
    rows = objective.rows
    X, Y, folds, _ = next(replace(rows, chunk_rows=100).chunks())
    distances = np.stack([np.square(X[:, None, c] - X[None][:, :, c]).sum(-1) for c in BLOCKS.values()])
    total = float(np.square(Y - Y.mean(0)).sum())
    x = np.append(objective.features.start_ + 0.3, 0.0)
    value, gradient = objective(x)
    if kind == "held-out":
        exact = exact_held_out(distances, Y, folds, x, total)
    else:
        exact = exact_training(distances, Y, x, total)
        exact[1][-1] = 0  # the strength is given
    assert value == pytest.approx(exact[0], rel=0.03)
    np.testing.assert_allclose(gradient, exact[1], atol=0.05 * np.abs(exact[1]).max())


def test_learned_widths_beat_the_first_and_the_kernel_is_named():
    X, y = relevant_and_noise(400)
    model = ExactWidths(blocks=TWO, max_iter=15).fit(X[:250], y[:250])
    assert model.widths_[0] / model.start_widths_[0] > 3 * model.widths_[1] / model.start_widths_[1]
    assert model.score(X[250:], y[250:]) > 0.9
    parts = [
        Exponential(chi2, s**2 / 2)(X[:5][:, TWO[name]])
        for s, name in zip(model.widths_, model.width_names_, strict=True)
    ]
    np.testing.assert_allclose(model.kernel_(X[:5]), parts[0] * parts[1], rtol=1e-9)


def test_classes():
    X, y = classes(150)
    labels = np.unique(y)
    outputs = ExactWidths(max_iter=3).fit(X, np.where(y[:, None] == labels, 1.0, -1.0)).predict(X)
    assert np.mean(labels[outputs.argmax(axis=1)] == y) > 0.8


def test_bad_input():
    X, _ = classes(40)
    with pytest.raises(ValueError, match="exact widths are learned for exponential and Gaussian kernels; got 'skewed"):
        ExactWidths("skewed-chi2").fit(X, np.arange(40.0))
    X[:, :5] = 0.1
    with pytest.raises(DataError, match="block 'edge' is constant"):
        ExactWidths(blocks={"edge": slice(0, 5), "rest": slice(5, 20)}).fit(X, np.arange(40.0))
    with pytest.raises(DataError, match="n_samples = 3 are too few"):
        ExactWidths().fit(X[:3], np.arange(3.0))
    distances, Y = case()
    with pytest.raises(DataError, match="fold 1 of 3 holds 0 of 24 rows"):
        exact_held_out(distances, Y, np.repeat([0, 2], 12), np.zeros(3), 1.0)
