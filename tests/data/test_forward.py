"""Splits forward in time: laws over random times and groups, times of every kind, and bad ones."""

from __future__ import annotations

import datetime
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import TimeSeriesSplit, cross_val_score

from chimap import HistogramClassifier
from chimap._validation import DataError
from chimap.data.arrays import ArraySource
from chimap.data.forward import ForwardSplits, ticks_of
from chimap.reports import compare, repeated_splits


def cases():
    rng = np.random.default_rng(0)
    for _ in range(60):
        n = int(rng.integers(4, 60))
        times = rng.integers(0, rng.integers(2, 40), n)
        groups = rng.integers(0, rng.integers(2, 20), n)
        yield times, groups, int(rng.integers(1, 6))


def some_splits(splitter, groups=None):
    """Return the splits; none where there are too few times."""
    try:
        return list(splitter.split(groups=groups))
    except DataError:
        return []


def test_no_training_row_is_as_late_as_a_test_row():
    n_seen = 0
    for times, _, k in cases():
        splits = some_splits(ForwardSplits(times, k))
        assert len(splits) in (0, k)
        n_seen += len(splits)
        for train, test in splits:
            assert train.size
            assert test.size
            assert times[train].max() < times[test].min()
        for (before, tested), (train, test) in pairwise(splits):  # windows expand, tests follow
            np.testing.assert_array_equal(np.union1d(before, tested), train)
            assert times[tested].max() < times[test].min()
        if splits:
            np.testing.assert_array_equal(np.union1d(*splits[-1]), np.arange(times.size))
    assert n_seen > 100


def test_groups_are_whole_and_as_late_as_their_last_row():
    n_seen = 0
    for times, groups, k in cases():
        last = np.array([times[groups == group].max() for group in groups])
        for train, test in some_splits(ForwardSplits(times, k), groups):
            n_seen += 1
            assert train.size
            assert test.size
            assert not np.intersect1d(groups[train], groups[test]).size
            assert last[train].max() < last[test].min()
            assert times[train].max() < last[test].min()
    assert n_seen > 60


@pytest.mark.parametrize("k", [2, 3, 5])
def test_splits_of_distinct_times_are_those_of_scikit_learn(k):
    n = 6 * (k + 1)
    rng = np.random.default_rng(1)
    times = rng.permutation(n) * 1.5
    order = np.argsort(times)
    for (train, test), (early, late) in zip(
        ForwardSplits(times, k).split(), TimeSeriesSplit(k).split(order), strict=True
    ):
        np.testing.assert_array_equal(train, np.sort(order[early]))
        np.testing.assert_array_equal(test, np.sort(order[late]))


def test_a_share_is_the_latest_rows_and_the_usual_number_of_splits_is_five():
    ((train, test),) = ForwardSplits(np.arange(50)[::-1], 1, 0.2).split()
    assert test.tolist() == list(range(10))
    assert train.size == 40
    assert ForwardSplits(np.arange(50)).get_n_splits() == 5
    assert ForwardSplits([1, 2, 2, 3]).get_n_splits() == 2
    assert ForwardSplits([1, 2, 2, 3]).get_n_splits(groups=[0, 1, 0, 1]) == 1


DATES = ["2024-03-09", "2023-12-31", "2024-03-10"]


@pytest.mark.parametrize(
    "times",
    [
        [3, 1, 9],
        [0.5, -2.0, 0.75],
        DATES,
        np.array(DATES, dtype="datetime64[D]"),
        pd.Series(pd.to_datetime(DATES)),
        pd.Series(pd.to_datetime(DATES).tz_localize("UTC")),
        [datetime.date.fromisoformat(date) for date in DATES],
        ["2024", "2023-07", "2025-01-01T00:00:00"],
        ["2024-03-09T00:30:00+01:00", "2024-03-08T23:00Z", "2024-03-09 00:00"],
    ],
    ids=str,
)
def test_times_of_every_kind_are_ordered(times):
    ticks = ticks_of(times)
    assert np.argsort(ticks).tolist() == [1, 0, 2]


def test_the_same_moment_in_two_zones_is_one_time():
    assert np.unique(ticks_of(["2024-03-09T00:30:00+01:00", "2024-03-08T23:30Z", "2024-03-08T23:30:00"])).size == 1


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (["2024-03-09", "9.3.2024"], r"visits.csv, date, row 11: '9\.3\.2024' is no time\. Give numbers, or dates"),
        (["2024-03-09", None], r"visits.csv, date, row 11: no time\. Every row needs one"),
        (["2024-03-09", " "], r"row 11: no time"),
        ([1.0, np.nan], r"row 11: no time"),
        ([1.0, np.inf], r"row 11: no time"),
        (np.array(["2024", "NaT"], "datetime64[D]"), r"row 11: no time"),
        (np.ma.array([1, 2], mask=[False, True]), r"row 11: no time"),
    ],
)
def test_bad_times_name_the_row(times, message):
    with pytest.raises(DataError, match=message):
        ticks_of(times, "visits.csv, date", np.array([4, 11]))


@pytest.mark.parametrize(
    ("splitter", "groups", "message"),
    [
        (ForwardSplits([2, 2, 2]), None, "all rows are of one time"),
        (ForwardSplits([1, 2, 1, 2]), [0, 0, 1, 1], "all groups have their last row at one time"),
        (ForwardSplits([1, 2, 3], 3), None, "3 different times allow 2 splits; got n_splits=3"),
        (ForwardSplits([1, 2, 3], 0), None, "n_splits must be"),
        (ForwardSplits([1, 2, 3], 2, 0.5), None, "test_fraction=0.5 of each of 2 splits must leave rows"),
    ],
)
def test_what_cannot_be_split_says_why(splitter, groups, message):
    with pytest.raises(ValueError, match=message):
        list(splitter.split(groups=groups))


def test_scores_forward_by_scikit_learn_and_by_reports():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X = rng.poisson(np.where(y[:, None] == 1, [9, 3, 20], [3, 9, 20])).astype(float)
    dates = np.datetime64("2024-01-01") + rng.permutation(60)
    splits = ForwardSplits(dates, 3)
    assert cross_val_score(RidgeClassifier(), X, y, cv=splits).shape == (3,)
    scores = repeated_splits(HistogramClassifier("chi2", alpha=1.0), X, y, splits)
    assert (scores.n_splits, scores.n_train, scores.n_test) == (3, 15, 15)
    found = compare(HistogramClassifier(random_state=0), ArraySource(X, y), time=dates)
    assert (found.data["training rows"], found.data["held-out rows"]) == (48, 12)
    assert found.data["forward in time"]
    late = np.where(np.argsort(np.argsort(dates)) >= 48, 2, y)
    with pytest.raises(DataError, match="time: all sampled rows of class 2 are among the latest"):
        compare(HistogramClassifier(random_state=0), ArraySource(X, late), time=dates)
