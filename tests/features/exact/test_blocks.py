"""Kernel values of sums over blocks, against the exact kernels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import Exponential, chi2, hellinger
from chimap._validation import DataError
from chimap.features.exact import ExactBlocks, ExactFeatures
from chimap.kernels import MinMax

from ...histograms import histograms

X, T = histograms(70, 9), histograms(20, 9, seed=1)
COLUMNS = [np.arange(5), np.array([7, 5, 4])]
KINDS = {
    "exponential": (Exponential(chi2, 0.8), Exponential(hellinger, 0.3)),
    "mixed": (Exponential(chi2, 0.8), chi2),
    "without a map": (MinMax(), Exponential(chi2, 0.5)),
}


def fitted(kernels, rows=X):
    return ExactBlocks([ExactFeatures(kernel, n_terms=10) for kernel in kernels], COLUMNS).fit(rows)


def of_blocks(kernels, rows, others):
    return sum(k(rows[:, c], others[:, c]) for k, c in zip(kernels, COLUMNS, strict=True))


def doubly_centred(values):
    return values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("kernels", KINDS.values(), ids=KINDS)
def test_values_are_the_sum_of_those_of_the_blocks(kernels, kind):
    features = fitted(kernels, kind(X))
    values, expected = features.transform(kind(T)), of_blocks(kernels, T, X)
    if kernels is KINDS["mixed"]:
        # products of an additive kernel are less the means of the rows
        values, expected = doubly_centred(values), doubly_centred(expected)
    np.testing.assert_allclose(values, expected, atol=5e-3)
    np.testing.assert_allclose(features.kernel_(X), of_blocks(kernels, X, X), atol=1e-12)


@pytest.mark.parametrize("kernels", KINDS.values(), ids=KINDS)
def test_the_matrix_among_the_rows_is_that_of_the_values(kernels):
    features = fitted(kernels)
    square = np.empty((70, 70))
    diagonal = features.gram_into(square)
    values = features.transform(X)
    np.testing.assert_allclose(np.tril(square, -1), np.tril(values, -1), atol=1e-12)
    np.testing.assert_allclose(diagonal, np.diagonal(values), atol=1e-12)


def test_a_shift_is_subtracted_across_blocks_of_rows(monkeypatch):
    monkeypatch.setattr("chimap.features.exact.blocks._ROWS", 7)
    features, shift, out = fitted(KINDS["exponential"]), np.arange(70.0), np.empty((20, 70))
    features.features_into(T, out, shift)
    np.testing.assert_allclose(out, features.transform(T) - shift, atol=1e-12)


@pytest.mark.parametrize("octaves", [-1, 2])
def test_octaves_move_the_gammas_of_all_exponential_blocks(octaves):
    features = fitted(KINDS["mixed"])
    square = np.empty((70, 70))
    features.gram_into(square)
    features.change_octaves(square, 0, octaves)
    assert features.gamma_at(octaves) == 0.8 * 2.0**octaves
    features.set_octaves(octaves)
    np.testing.assert_allclose(np.tril(square, -1), np.tril(features.transform(X), -1), atol=1e-12)
    assert features.kernel_.kernels[0].kernel.gamma == 0.8 * 2.0**octaves


def test_some_of_the_rows():
    features, places = fitted(KINDS["exponential"]), np.array([3, 60, 5])
    np.testing.assert_allclose(features.take(places).transform(T), features.transform(T)[:, places], atol=1e-12)
    assert features.transform(T).shape == (20, 70)


def test_additive_kernels_become_a_model_of_their_maps():
    features = fitted((chi2, hellinger))
    coef, intercept = np.random.default_rng(0).normal(size=(70, 2)), np.array([1.0, -2.0])
    folded = features.simplified(coef, intercept)
    assert folded.coef.shape[0] == 8 * 10  # features of the maps, ten for each bin of each block, and no rows
    np.testing.assert_allclose(folded(T), features.transform(T) @ coef + intercept, atol=1e-9)


def test_an_error_names_the_block():
    rows = X.copy()
    rows[:, [7, 5, 4]] = 0.25
    named = ExactBlocks([ExactFeatures(), ExactFeatures()], {"words": [0, 1], "colours": [7, 5, 4]})
    with pytest.raises(DataError, match="block 'colours': gamma='mean': all rows are equal"):
        named.fit(rows)
