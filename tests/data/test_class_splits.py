"""Splits with as many training rows of each class."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_val_score

from chimap._validation import DataError
from chimap.data.split import PerClassSplits

Y = np.random.default_rng(0).permutation(np.repeat(["ant", "bee", "cat"], [8, 20, 40]))


@pytest.mark.parametrize("n_test", [None, 10])
def test_shares_of_the_classes(n_test):
    for train, test in PerClassSplits(7, n_test, random_state=0).split(Y, Y):
        assert dict(zip(*np.unique(Y[train], return_counts=True), strict=True)) == dict.fromkeys(
            ("ant", "bee", "cat"), 7
        )
        assert np.unique(Y[test], return_counts=True)[1].tolist() == ([1, 13, 33] if n_test is None else [1, 10, 10])
        assert not set(train) & set(test)


def test_splits_differ_and_repeat():
    splits = [list(PerClassSplits(5, random_state=s).split(Y, Y)) for s in (0, 0, 1)]
    assert len(splits[0]) == PerClassSplits(5).get_n_splits() == 5
    for (a, _), (b, _), (c, _) in zip(*splits, strict=True):
        np.testing.assert_array_equal(a, b)
        assert (a != c).any()
    assert len({tuple(train) for train, _ in splits[0]}) == 5


def test_it_is_a_splitter_of_scikit_learn():
    X = np.random.default_rng(1).normal(size=(Y.size, 3)) + (Y == "cat")[:, None]
    assert len(cross_val_score(RidgeClassifier(), X, Y, cv=PerClassSplits(5, n_splits=3, random_state=0))) == 3


def test_a_class_with_too_few_rows_is_named():
    with pytest.raises(DataError, match=r"class ant has 8 rows, too few for n_train=8 .*\(1 of 3 classes"):
        next(PerClassSplits(8).split(Y, Y))


def test_bad_settings():
    with pytest.raises(ValueError, match="n_train must be a positive whole number"):
        next(PerClassSplits(0).split(Y, Y))
    with pytest.raises(ValueError, match="y must hold the label"):
        next(PerClassSplits(3).split(Y))
