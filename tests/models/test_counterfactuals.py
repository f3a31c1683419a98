"""The least change of counts that flips an answer."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from chimap import HistogramClassifier, HistogramRegressor

X, y = load_digits(n_class=4, return_X_y=True)
X, y, NEW = X[20:220], y[20:220], X[:3]
KERNELS = ("exp-chi2", "chi2", "linear", "minmax")
COUNTS = np.random.default_rng(0).poisson(6.0, (120, 3)).astype(float)


@pytest.fixture(scope="module", params=KERNELS)
def model(request):
    return HistogramClassifier(request.param, alpha=0.1, random_state=0).fit(X, y)


def test_no_single_bin_can_move_back(model):
    for row, found in zip(NEW, model.counterfactuals(NEW, among=X), strict=True):
        changed = row.copy()
        changed[found.bins] += found.changes
        assert model.predict(row[None])[0] == found.before != found.after == model.predict(changed[None])[0]
        assert (changed >= 0).all()
        assert (changed <= np.maximum(X.max(axis=0), row)).all()
        assert (changed == np.rint(changed)).all()
        for place, change in zip(found.bins, found.changes, strict=True):
            back = changed.copy()
            back[place] -= np.sign(change)
            assert model.predict(back[None])[0] == found.before or back[place] == row[place] == changed[place]
        others = X[model.predict(X) == found.after]
        assert found.distance == np.abs(others - row).sum(axis=1).min() == np.abs(X[found.nearest] - row).sum()
        assert found.size == np.abs(found.changes).sum()
        assert str(found).startswith(f"{found.after} instead of {found.before} with bin ")
        assert f"; the nearest row is {found.nearest}, " in str(found)


@pytest.mark.parametrize("kernel", ["linear", "exp-chi2"])
def test_no_change_of_a_few_counts_is_smaller(kernel):
    model = HistogramClassifier(kernel, alpha=0.1, normalize=None).fit(COUNTS, COUNTS @ [1.0, -2.0, 0.5] > -4)
    rows, tried = COUNTS[:30], np.array(list(product(range(-8, 9), repeat=3)), dtype=float)
    for row, found in zip(rows, model.counterfactuals(rows), strict=True):
        possible = tried[(row + tried >= 0).all(axis=1)]
        flips = model.predict(row + possible) != model.predict(row[None])
        assert found.size <= np.abs(possible[flips]).sum(axis=1).min(initial=np.inf)


def test_a_target_and_the_bins_that_may_move(model):
    middle = list(range(16, 48))
    for found in model.counterfactuals(sparse.csr_matrix(NEW[:2]), target=3, movable=middle, among=X):
        assert found.after == 3
        assert set(found.bins.tolist()) <= set(middle)
    is_three = X[y == 3][:1]
    assert model.predict(is_three)[0] == 3
    assert model.counterfactuals(is_three, target=3) == [None]
    assert model.counterfactuals(NEW[:1], movable=[0], among=X) == [None]  # a corner, empty in all rows


def test_shares_change_by_parts_of_the_mean_bin():
    shares = COUNTS / COUNTS.sum(axis=1, keepdims=True)
    model = HistogramClassifier("chi2", alpha=0.01, normalize=None).fit(shares, shares[:, 0] > shares[:, 1])
    found = model.counterfactuals(shares[:1])[0]
    assert found.as_dict()["size"] < 1
    assert found.nearest is None is found.distance


def test_what_has_no_counterfactual_is_refused():
    numbers = HistogramRegressor("chi2", alpha=0.1).fit(X, y)
    with pytest.raises(ValueError, match="need one label"):
        numbers.counterfactuals(NEW)
    classes = HistogramClassifier("chi2", alpha=0.1).fit(X, y)
    with pytest.raises(ValueError, match="target: 7 is none of the classes 0, 1, 2, 3"):
        classes.counterfactuals(NEW, target=7)
    with pytest.raises(ValueError, match="there is no bin 64"):
        classes.counterfactuals(NEW, movable=[64])
