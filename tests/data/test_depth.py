"""Rows as samples: fewer counts of the same thing, and more."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.data.depth import SharesOfKind, WithThinnedCopies, counts_of, deeper, thinned, totals_of

ROW = np.array([[60.0, 0.0, 30.0, 10.0]])


def test_fewer_counts_are_drawn_without_replacement():
    rows = sp.csr_matrix(np.repeat(ROW, 4000, axis=0))
    few = thinned(rows, np.full(4000, 20), np.random.default_rng(0)).toarray()
    assert (few.sum(axis=1) == 20).all()
    assert (few <= ROW).all()
    np.testing.assert_allclose(few.mean(axis=0), 20 * ROW[0] / 100, atol=0.1)
    variance = 20 * 0.6 * 0.4 * (100 - 20) / 99  # hypergeometric
    np.testing.assert_allclose(few[:, 0].var(), variance, rtol=0.1)
    assert (rows.toarray() == ROW).all()


def test_rows_that_have_no_more_stay():
    rows = sp.csr_matrix(np.vstack([ROW, 0 * ROW]))
    assert (thinned(rows, np.array([100, 5]), np.random.default_rng(0)) != rows).nnz == 0


def test_rows_of_more_counts_than_numpy_draws_from_are_thinned_too():
    rows = sp.csr_matrix(np.array([[3e9, 1e9]]))
    few = thinned(rows, np.array([1000]), np.random.default_rng(0)).toarray()[0]
    assert abs(few.sum() - 1000) < 150
    assert abs(few[0] / few.sum() - 0.75) < 0.06


def test_more_counts_follow_shares_of_the_row_and_of_its_kind():
    rng, row = np.random.default_rng(0), ROW[0]
    alpha = np.array([[60.0, 0.0, 30.0, 10.0], [60.0, 50.0, 30.0, 10.0]])
    drawn = deeper(row, alpha, np.array([0.5, 0.5]), 1100, 4000, rng)
    assert (drawn >= row).all()
    assert (drawn.sum(axis=1) == 1100).all()
    expected = 10 * (alpha / alpha.sum(axis=1, keepdims=True)).mean(axis=0) * 100
    np.testing.assert_allclose((drawn - row).mean(axis=0), expected, rtol=0.05)
    assert 0.4 < (drawn[:, 1] > 0).mean() < 0.6


def test_kinds_find_shares_and_how_alike_they_are():
    rng = np.random.default_rng(1)
    usual = np.full(6, 1 / 6)
    shapes = np.array([0.5, 0.5, 5.0, 5.0, 20.0, 20.0])
    shares = rng.gamma(shapes, size=(3000, 6)) / shapes * [0.1, 0.2, 0.1, 0.2, 0.1, 0.3]
    counts = sp.csr_matrix(rng.poisson(400 * shares).astype(float))
    found = SharesOfKind.of(counts, np.ones((3000, 1)), usual)
    np.testing.assert_allclose(found.means[0], [0.1, 0.2, 0.1, 0.2, 0.1, 0.3], rtol=0.1)
    assert (np.diff(found.shapes[0][[0, 2, 4]]) > 0).all()
    assert found.shapes[0][0] < 0.8
    unseen = SharesOfKind.of(sp.csr_matrix((3, 6)), np.ones((3, 1)), usual)
    assert (unseen.pseudo_counts(np.zeros(6)) == 0).all()


def test_no_bin_is_filled_that_no_row_knows():
    counts = sp.csr_matrix(np.array([[5.0, 0.0, 1.0], [2.0, 0.0, 0.0]]))
    found = SharesOfKind.of(counts, np.ones((2, 1)), np.array([0.5, 0.0, 0.5]))
    alpha = found.pseudo_counts(counts.toarray()[1])
    assert alpha[0, 1] == 0
    assert alpha[0, 2] > 0


def test_what_is_no_count_is_named():
    with pytest.raises(DataError, match=r"rows\.csv, row 8, column 1: 0\.25 is no count.*give the counts"):
        counts_of(np.array([[1.0, 2.0], [3.0, 0.25]]), "rows.csv", first_row=7)
    with pytest.raises(DataError, match=r"rows\.csv, row 1, column 0: -3"):
        counts_of(np.array([[1.0, 2.0], [-3.0, 1.0]]), "rows.csv")
    assert totals_of(counts_of(np.array([[1.0, 2.0]]), "rows.csv")).tolist() == [3]


def with_copies(X, n_copies=2):
    source = ArraySource(X, np.arange(X.shape[0]))
    source.weights = np.arange(1.0, 1 + X.shape[0])
    return WithThinnedCopies(source, n_copies, seed=3)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_each_row_is_followed_by_copies_of_less_depth(kind):
    X = np.random.default_rng(0).poisson(9.0, (7, 30)).astype(float)
    view = with_copies(kind(X))
    rows = view.take(np.arange(21))
    rows = rows.toarray() if sp.issparse(rows) else rows
    np.testing.assert_array_equal(rows[::3], X)
    shares = rows.sum(axis=1).reshape(7, 3) / X.sum(axis=1)[:, None]
    assert (shares[:, 1:] <= 0.51).all()
    assert (shares[:, 1:] >= 0.03).all()
    assert np.unique(shares[:, 1:].round(3)).size > 10
    assert (rows.reshape(7, 3, -1) <= X[:, None]).all()
    assert view.labels().tolist() == np.repeat(np.arange(7), 3).tolist()
    assert view.weights.tolist() == np.repeat(np.arange(1.0, 8), 3).tolist()
    assert view.places_in_file().tolist() == view.labels().tolist()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("chunk_rows", [1, 4, 6, 100])
def test_chunks_of_rows_and_copies_are_the_same_in_every_pass(kind, chunk_rows):
    view = with_copies(kind(np.random.default_rng(1).poisson(4.0, (7, 12)).astype(float)))
    whole = sp.csr_matrix(view.take(np.arange(21))).toarray()
    chunks = list(view.chunks(chunk_rows))
    assert [chunk.start for chunk in chunks] == [*range(0, 21, chunk_rows)]
    np.testing.assert_array_equal(np.vstack([sp.csr_matrix(chunk.X).toarray() for chunk in chunks]), whole)
    assert np.concatenate([chunk.y for chunk in chunks]).tolist() == view.labels().tolist()
    some = view.take(np.array([0, 4, 5, 20]))
    np.testing.assert_array_equal(sp.csr_matrix(some).toarray(), whole[[0, 4, 5, 20]])
    later = [sp.csr_matrix(chunk.X).toarray() for chunk in view.chunks_from(chunk_rows, chunk_rows)]
    np.testing.assert_array_equal(np.vstack([np.zeros((0, 12)), *later]), whole[chunk_rows:])
    assert view.fingerprint() != view.whole.fingerprint()
