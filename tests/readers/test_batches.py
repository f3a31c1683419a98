"""Batches of the user: passes that differ, batches that differ."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from chimap._validation import DataError
from chimap.readers import BatchSource, open_source

X, Y = np.ones((4, 3)), np.array([0, 1, 0, 1])


def by_call(*passes):
    """A function that gives these batches at the first call, those at the second, and so on."""
    calls = itertools.chain(passes, itertools.repeat(passes[-1]))
    return lambda: iter(next(calls))


def test_a_function_is_a_source():
    source = open_source(lambda: iter([(X, Y), (X.tolist(), Y.tolist())]))
    assert (source.n_rows, source.labels().tolist()) == (8, [*Y, *Y])
    assert open_source(lambda: iter([X.astype(np.float32), X.astype(np.uint8)])).dtype == np.float32
    assert open_source(lambda: iter([X.astype(np.float32), X])).dtype == np.float64
    assert open_source(lambda: iter([X])).labels() is None


def test_an_iterator_is_none():
    with pytest.raises(ValueError, match=r"make_batches must be a function .* got list_iterator"):
        BatchSource(iter([X]))
    once = iter([X, X])
    with pytest.raises(DataError, match=r"batches: fewer rows than when it was opened \(8\)"):
        list(BatchSource(lambda: once).chunks(3))


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([X, X], [X], "fewer rows than when it was opened"),
        ([X], [X, X], "more rows than when it was opened"),
        ([X], [X[:, :2]], "batch 0: 2 bins per row, expected 3"),
        ([(X, Y)], [(X, Y[::-1])], "batch 0: other labels than in the first pass.*shuffling"),
        ([(X, Y)], [X], "batch 0: not with labels, unlike the first batch"),
        ([X], [sp.csr_matrix(X)], "batch 0: sparse, unlike the first"),
    ],
)
def test_passes_that_differ(first, second, message):
    source = BatchSource(by_call(first, second))
    with pytest.raises(DataError, match=message):
        list(source.chunks(3))


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([], "batches: no batches"),
        ([X, X[:, :2]], "batch 1: 2 bins per row, expected 3 as in the first batch"),
        ([(X, Y), X], "batch 1: not with labels"),
        ([(X, Y), (X, Y[:3])], "batch 1: 3 labels for 4 rows"),
        ([(X, Y), (X, ["a"] * 4)], "batch 1: labels <U1, but int64 in the first batch"),
        ([X, sp.csr_matrix(X)], "batch 1: sparse"),
        ([X[0]], r"batch 0: expected rows of bins, got shape \(3,\)"),
        ([[[1, 2], [3]]], "batch 0: not a table of numbers"),
        ([X.astype(complex)], "batch 0: expected numbers, got dtype complex128"),
    ],
)
def test_batches_that_differ(batches, message):
    with pytest.raises(DataError, match=message):
        BatchSource(lambda: iter(batches))


def test_rows_without_a_label_are_left_out():
    tasks = np.array([[0, np.nan], [1, 1], [np.nan, np.nan], [0, 0]])
    for y, kept in ((["a", None, "", "b"], ["a", "b"]), ([0.0, np.nan, 2.0, 1.0], [0, 2, 1])):
        source = open_source(lambda y=y: iter([(X, [None] * 4), (X, y)]))
        assert source.labels().tolist() == kept
        assert sum(chunk.X.shape[0] for chunk in source.chunks(3)) == len(kept)
    source = open_source(lambda: iter([(X, tasks)]))
    assert next(source.chunks(4)).y.shape == (3, 2)
    moved = open_source(by_call([(X, [0, None, 1, 1])], [(X, [None, 0, 1, 1])]))
    with pytest.raises(DataError, match="other labels than in the first pass"):
        list(moved.chunks(3))
