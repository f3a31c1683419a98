"""Weights of bins by what each alone says of the targets, against scikit-learn's analysis of variance."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.feature_selection import f_classif, f_regression
from sklearn.isotonic import IsotonicRegression

from chimap.features.screened import screened_weights

DIGITS, LABELS = load_digits(return_X_y=True)
RNG = np.random.default_rng(0)
ROWS = np.sqrt(np.hstack([DIGITS[:400], RNG.permuted(DIGITS[:400], axis=0)]))
ROWS = ROWS[:, ROWS.any(axis=0)]
CLASSES = (LABELS[:400, None] == np.arange(10)) * 2.0 - 1


def expected(p):
    """Of p-values: 1 less the share of uniform ones, squared, the density by scikit-learn's pooling of adjacent
    violators."""
    share = min(1.0, np.mean(p > 0.5) / 0.5)
    order = np.argsort(p)
    steps = np.diff(p[order], prepend=0)
    density = IsotonicRegression(increasing=False).fit_transform(
        np.arange(p.size), 1 / p.size / steps, sample_weight=steps
    )
    weights = np.empty(p.size)
    weights[order] = (1 - np.minimum(1, share / density)) ** 2
    return np.maximum(weights / weights.mean(), 1e-6)


@pytest.mark.parametrize("as_rows", [np.asarray, sp.csr_matrix])
def test_weights_are_those_of_the_analysis_of_variance(as_rows):
    rows = ROWS[:60]  # whose p-values are above 0
    rows, targets, labels = rows[:, rows.any(axis=0)], CLASSES[:60], LABELS[:60]
    weights = screened_weights(as_rows(rows), targets)
    np.testing.assert_allclose(weights, expected(f_classif(rows, labels)[1]), rtol=1e-7, atol=1e-6)


def test_of_one_target_they_are_those_of_its_regression():
    target = LABELS[:400].astype(float)
    weights = screened_weights(ROWS, target[:, None])
    np.testing.assert_allclose(weights, expected(f_regression(ROWS, target)[1]), rtol=1e-7, atol=1e-6)


def test_bins_that_say_something_are_equal_and_the_others_next_to_nothing():
    weights = screened_weights(ROWS, CLASSES)
    half = ROWS.shape[1] // 2
    assert np.median(weights[:half]) > 1.5
    assert weights[half:].mean() < 0.1
    assert np.ptp(weights[:half][f_classif(ROWS[:, :half], LABELS[:400])[0] > 10]) < 1e-3


def test_a_bin_that_tells_the_targets_has_a_weight():
    weights = screened_weights(np.hstack([ROWS, CLASSES[:, :1] + 2]), CLASSES)
    assert weights[-1] == pytest.approx(weights.max())


@pytest.mark.parametrize("as_rows", [np.asarray, sp.csr_matrix])
def test_single_precision_far_from_zero_is_as_good(as_rows):
    shifted = as_rows((ROWS + 100).astype(np.float32))
    weights = screened_weights(shifted, CLASSES)
    np.testing.assert_allclose(weights, screened_weights(ROWS, CLASSES), atol=0.05)


def test_targets_that_say_the_same_twice_count_once():
    twice = np.hstack([CLASSES, CLASSES[:, :3]])
    np.testing.assert_allclose(screened_weights(ROWS, twice), screened_weights(ROWS, CLASSES), rtol=1e-9)


def test_missing_entries_are_at_the_mean_of_the_others():
    target = RNG.normal(size=(400, 1)) + 5
    target[::3] = np.nan
    filled = np.where(np.isnan(target), np.nanmean(target), target)
    np.testing.assert_allclose(screened_weights(ROWS, target), screened_weights(ROWS, filled), rtol=1e-9)


def test_there_are_none_where_all_bins_say_something():
    assert screened_weights(np.sqrt(DIGITS[:400][:, DIGITS[:400].std(axis=0) > 3]), CLASSES) is None


@pytest.mark.parametrize("as_rows", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("value", [0.0, 0.3])
def test_a_bin_that_is_constant_here_keeps_its_weight(as_rows, value):
    rows = as_rows(np.hstack([ROWS, np.full((400, 1), value)]))
    weights = screened_weights(rows, CLASSES)
    assert weights[-1] == pytest.approx(1)
    np.testing.assert_allclose(weights[:-1], screened_weights(as_rows(ROWS), CLASSES), rtol=1e-6)


def test_a_block_has_one_weight():
    half = ROWS.shape[1] // 2
    noise = np.array_split(np.arange(half, ROWS.shape[1]), 10)
    weights = screened_weights(ROWS, CLASSES, [np.arange(half), *noise])
    assert all(np.ptp(weights[block]) == 0 for block in [np.arange(half), *noise])
    assert weights[0] > 2 * weights[half:].mean()


@pytest.mark.parametrize(
    ("rows", "targets"),
    [(ROWS[:10], CLASSES[:10]), (ROWS, np.ones((400, 1))), (np.ones((400, 3)), CLASSES)],
    ids=["no more rows than targets", "one target value", "constant bins"],
)
def test_there_are_none_where_nothing_can_be_said(rows, targets):
    assert screened_weights(rows, targets) is None
