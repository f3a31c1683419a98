"""Which bins halves of the rows choose again."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from chimap import HistogramClassifier, HistogramRegressor
from chimap.data import ArraySource
from chimap.diagnostics.stability import stability
from chimap.explain.stability import false_choices, largest_choice

RNG = np.random.default_rng(0)
X = RNG.poisson(5.0, (120, 30)).astype(float)
X[:, 29] = 2  # the same in all rows
TOTAL = X[:, :3].sum(axis=1)
y = np.where(TOTAL + RNG.normal(0, 1.5, 120) > 15, "deep", "shallow")


def found_for(kernel, labels=y, **more):
    model = HistogramClassifier(kernel, alpha=0.1, normalize=None, random_state=0).fit(X, labels)
    return stability(model.fitted, ArraySource(X, labels), **more)


@pytest.mark.parametrize("kernel", ["exp-chi2", "chi2", "linear", "minmax"])
def test_bins_that_matter_are_stable(kernel):
    found = found_for(kernel)
    assert set(found.stable.tolist()) == {0, 1, 2}
    assert (found.n_resamples, found.n_candidates) == (100, 29)
    assert found.shares[29] == 0
    assert found.shares.sum() == pytest.approx(found.n_chosen)
    assert found.as_dict()["false_choices"] == found.false_choices <= 1


def test_sparse_rows_and_dense_ones_are_the_same():
    model = HistogramClassifier("chi2", alpha=0.1, normalize="l1", random_state=0).fit(X, y)
    dense, sparse = (stability(model.fitted, ArraySource(rows, y)) for rows in (X, csr_matrix(X)))
    np.testing.assert_array_equal(dense.shares, sparse.shares)


def test_numbers_and_groups():
    model = HistogramRegressor("exp-chi2", alpha=0.1, random_state=0).fit(X, TOTAL)
    found = stability(model.fitted, ArraySource(X, TOTAL), groups=np.arange(120) // 6, n_resamples=21)
    assert set(found.stable.tolist()) >= {0, 1, 2}
    assert (found.n_resamples, found.n_groups) == (22, 20)
    assert "22 halves of the groups" in found.sentence


def test_labels_of_noise_choose_no_more_than_the_bound():
    counts = []
    for seed in range(6):
        labels = np.random.default_rng(seed).permutation(y)
        found = found_for("chi2", labels, n_resamples=40)
        counts.append(found.stable.size)
    assert np.mean(counts) <= found.false_choices


def test_weights_that_labels_have_taught_choose_no_bins():
    labels = np.random.default_rng(1).permutation(y)
    taught = HistogramClassifier("gaussian", alpha=0.1, bin_weights="learn", random_state=0).fit(X, labels)
    assert np.ptp(taught.bin_weights_) > 0
    assert stability(taught.fitted, ArraySource(X, labels)).stable.size <= 1


def test_the_bound_is_that_of_shah_and_samworth():
    assert false_choices(7, 60, 50) == pytest.approx(49 / 60 / (2 * 0.49))
    assert false_choices(50, 60, 50) == pytest.approx(2 * 50**2 / 60)  # too many to assume a single mode
    assert false_choices(1, 60, 1) == pytest.approx(2 / 60)  # a single pair says nothing more
    assert false_choices(largest_choice(60, 50), 60, 50) <= 1 < false_choices(8, 60, 50)


def test_what_cannot_be_halved_is_refused():
    with pytest.raises(ValueError, match="3 groups cannot be halved"):
        found_for("chi2", groups=np.arange(120) % 3)
    model = HistogramClassifier("chi2", alpha=0.1).fit(X, y)
    with pytest.raises(ValueError, match="one class"):
        stability(model.fitted, ArraySource(X, np.full(120, "deep")))
