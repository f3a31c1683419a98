"""Weights of classes, of tasks and of rows, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.recipe.task import rows_that_count
from chimap.recipe.weights import (
    checked_sample_weight,
    class_weights,
    counts_in,
    weights_of_entries,
    weights_of_tasks,
    with_weights,
)

AB = np.array(["a", "b"])
Y = np.array([[0, 1], [1, np.nan], [1, 1], [0, 0], [1, np.nan]])


def test_one_number_is_the_weight_of_every_row():
    assert checked_sample_weight(2, 3).tolist() == [2.0, 2.0, 2.0]
    assert checked_sample_weight([1, 0, 3], 3).tolist() == [1.0, 0.0, 3.0]
    assert checked_sample_weight(None, 3) is None


def test_weights_of_classes():
    y = np.array(["a", "a", "a", "b"])
    np.testing.assert_allclose(class_weights("balanced", AB, y), [4 / 6, 4 / 2])
    np.testing.assert_allclose(class_weights("balanced", AB, y, np.array([1, 1, 1, 3.0])), [1, 1])
    assert class_weights({"b": 3}, AB, None).tolist() == [1.0, 3.0]
    with pytest.raises(ValueError, match="'c', which is none of the classes 'a', 'b'"):
        class_weights({"c": 3}, AB, None)


@pytest.mark.parametrize("weight", ["often", 3, ["balanced"]])
def test_what_is_no_weight_of_classes(weight):
    with pytest.raises(ValueError, match="None, 'balanced', or a dictionary"):
        class_weights(weight, AB, np.array(["a", "b"]))


@pytest.mark.parametrize(
    ("weight", "is_taken"), [(1e-12, True), (1e12, True), (9e-13, False), (2e12, False), (True, True), ("2", False)]
)
def test_sizes_of_weights_of_classes(weight, is_taken):
    if is_taken:
        assert class_weights({"b": weight}, AB, None)[1] == weight
    else:
        with pytest.raises(ValueError, match="from 1e-12 to 1e12"):
            class_weights({"b": weight}, AB, None)


def test_weights_of_tasks():
    np.testing.assert_allclose(weights_of_tasks("balanced", Y), [[5 / 4, 5 / 6], [3 / 2, 3 / 4]])
    np.testing.assert_allclose(weights_of_tasks({1: 4}, Y), [[1, 4], [1, 4]])
    np.testing.assert_allclose(weights_of_tasks([None, {0: 2}], Y), [[1, 1], [2, 1]])
    weights = np.array([1, 1, 1, 4.0, 9.0])  # the missing entries of the second task have no say
    np.testing.assert_allclose(weights_of_tasks([None, "balanced"], Y, weights), [[1, 1], [6 / 8, 6 / 4]])


def test_a_task_of_one_label_has_equal_weights():
    ones = np.array([[1.0], [1.0], [np.nan]])
    assert weights_of_tasks("balanced", ones).tolist() == [[1.0, 1.0]]
    assert weights_of_tasks({1: 4}, ones).tolist() == [[1.0, 4.0]]
    with pytest.raises(ValueError, match=r"task 0: .*None, 'balanced', or a dictionary"):
        weights_of_tasks("often", ones)


def test_errors_name_the_task():
    with pytest.raises(ValueError, match=r"task 1: .*names 7"):
        weights_of_tasks([None, {7: 2}], Y)
    with pytest.raises(ValueError, match=r"task 'toxic': .*names 7"):
        weights_of_tasks([None, {7: 2}], Y, names=["bitter", "toxic"])
    with pytest.raises(ValueError, match="3 dictionaries, but y has 2 tasks"):
        weights_of_tasks([None, None, None], Y)


def test_weights_of_entries():
    """A missing entry has the mean weight of the other entries of its row."""
    of_tasks = np.array([[1.0, 3.0], [2.0, 5.0], [4.0, 7.0]])
    entries = np.array([[0, 1, 0], [1, 0, np.nan], [np.nan, 1, np.nan], [np.nan, np.nan, np.nan]])
    expected = [[1, 5, 4], [3, 2, 2.5], [5, 5, 5], [0, 0, 0]]
    assert weights_of_entries(of_tasks, entries, None).tolist() == expected
    rows = np.array([1.0, 2.0, 0.5, 3.0])
    assert weights_of_entries(of_tasks, entries, rows).tolist() == (rows[:, None] * expected).tolist()


def test_frequencies_are_whole_numbers():
    weights = np.array([1.0, 2.0, 0.0])
    assert counts_in("importance", weights / 3) is None
    assert counts_in("frequency", None) is None
    assert counts_in("frequency", weights) is weights
    with pytest.raises(DataError, match=r"sample_weight, row 1: 2\.5"):
        counts_in("frequency", np.array([1.0, 2.5, 0.5]))
    with pytest.raises(ValueError, match="'importance', 'frequency'"):
        counts_in("often", None)


def test_rows_of_weight_0_are_absent():
    source = ArraySource(np.eye(3), [1, 2, 3])
    groups = np.array(["a", "b", "c"])
    assert rows_that_count(source, None) == (source, None)
    weighted = with_weights(source, np.ones(3))
    assert rows_that_count(weighted, None)[0] is weighted
    assert source.weights is None  # the source itself stays as it is
    present, numbers = rows_that_count(
        with_weights(source, np.array([1.0, 0.0, 2.0]), np.array([1.0, 0.0, 2.0])), groups
    )
    assert numbers.tolist() == [0, 2]
    assert present.labels().tolist() == [1, 3]
    assert present.weights.tolist() == present.counts.tolist() == [1.0, 2.0]
    assert rows_that_count(with_weights(ArraySource(np.eye(3)), np.array([1.0, 0.0, 2.0])), None)[0].labels() is None
