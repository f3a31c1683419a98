"""Tables against the features that they stand for, for every map and kernel."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import AnchorMap, OptimalMap
from chimap.tables import BinFunctions, LineTables, line_tables
from chimap.tables.pieces import grid_of

from ..histograms import histograms, signed_histograms
from .cases import every_map

TOLERANCE = 2e-3


def made(make, kernel, X, outputs=3, tolerance=TOLERANCE, **settings):
    """(fitted map, weights, tables) of a map in which two values are interpolated where it could jump."""
    psi = make(kernel, 3, **settings).fit(X)
    coef = np.random.default_rng(1).normal(size=(psi._n_features_out, outputs))
    return psi, coef, line_tables(BinFunctions(psi, coef), np.arange(outputs) * 0.5, tolerance)


def settings_of(make):
    return {"n_neighbors": 2} if make is AnchorMap else {}


def check(tables, psi, coef, X):
    """Scores are within the bound, which is within the tolerance; dense and sparse agree."""
    expected = psi.transform(X) @ coef + tables.intercept
    rows = X.astype(np.float32)
    found, outside = tables.scores(rows)
    assert not outside.any()
    bound = tables.bound(rows)
    gap = np.abs(found - expected).max(axis=1)
    assert (gap <= bound + 1e-6 * np.abs(expected).max()).all()
    assert (bound <= tables.worst_error * (1 + 1e-6)).all()
    sparse, outside = tables.scores(sp.csr_matrix(rows))
    assert not outside.any()
    np.testing.assert_allclose(sparse, found, atol=1e-5 * np.abs(expected).max())
    np.testing.assert_allclose(tables.bound(sp.csr_matrix(rows)), bound, rtol=1e-4)
    return gap.max() / np.abs(expected).max()


@every_map
@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_within_the_bound(make, kernel, gamma):
    kernel, X = kernel.with_gamma(gamma), histograms(60)
    psi, coef, tables = made(make, kernel, X, **settings_of(make))
    assert check(tables, psi, coef, X) < 5 * TOLERANCE


@every_map
def test_signed(make, kernel):
    X = signed_histograms(60)
    psi, coef, tables = made(make, kernel.signed(), X, **settings_of(make))
    assert check(tables, psi, coef, X) < 5 * TOLERANCE


@every_map
def test_zero_adds_nothing(make, kernel):
    _, _, tables = made(make, kernel, histograms(60), **settings_of(make))
    found, outside = tables.scores(np.zeros((2, 12), np.float32))
    np.testing.assert_array_equal(found, np.tile(tables.intercept, (2, 1)))
    assert not outside.any()


@every_map
def test_values_of_all_sizes_within_the_table(make, kernel):
    X = histograms(60)
    psi, coef, tables = made(make, kernel, X, **settings_of(make))
    rng = np.random.default_rng(2)
    rows = (np.exp2(rng.uniform(-30, 0.99, (300, 12))) * X.max(axis=0)).astype(np.float32)
    expected = psi.transform(rows.astype(np.float64)) @ coef + tables.intercept
    found, outside = tables.scores(rows)
    assert not outside.any()
    assert (np.abs(found - expected).max(axis=1) <= tables.bound(rows) + 1e-5).all()


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("weights", ["distance", "uniform"])
@pytest.mark.parametrize("anchors", ["uniform", "kmeans"])
def test_codes_are_exact(anchors, weights, signed):
    X = (signed_histograms if signed else histograms)(80)
    kernel = "chi2"
    psi = AnchorMap(
        kernel, n_anchors=9, anchors=anchors, weights=weights, n_neighbors=1 if weights == "distance" else 3
    )
    if signed:
        psi.kernel = psi.fit(np.abs(X)).kernel_.signed()
    psi.fit(X)
    coef = np.random.default_rng(0).normal(size=(psi._n_features_out, 3))
    tables = psi.code_tables(coef, np.ones(3))
    for rows in (X, sp.csr_matrix(X)):
        found, outside = tables.scores(rows)
        assert not outside.any()
        gap = np.abs(found - np.asarray(psi.transform(rows) @ coef) - 1).max(axis=1)
        assert (gap <= tables.bound(rows)).all()


def test_pieces_fall_with_the_tolerance():
    X = histograms(60)
    sizes = []
    for tolerance in (1e-2, 1e-3, 1e-4):
        psi, coef, tables = made(OptimalMap, "chi2", X, tolerance=tolerance)
        assert isinstance(tables, LineTables)
        largest = np.abs(BinFunctions(psi, coef)(np.linspace(0, 1, 200)[:, None] * X.max(axis=0), np.arange(12))).max(
            axis=0
        )
        assert tables.worst_error <= 3 * tolerance * largest.sum(axis=0).max()
        sizes.append(tables.n_pieces)
    assert sizes[0] < sizes[1] < sizes[2]
    assert sizes[2] < 16 * sizes[0]  # the error falls with the square of their number


@every_map
@pytest.mark.parametrize("signed", [False, True])
def test_a_row_of_the_worst_values_comes_near_the_bound(make, kernel, signed):
    """Each bin holds the value where one output is furthest off one way; errors of both signs have been tried."""
    X = (signed_histograms if signed else histograms)(60)
    kernel = kernel.signed() if signed else kernel
    psi, coef, tables = made(make, kernel, X, outputs=8, **settings_of(make))
    functions = BinFunctions(psi, coef)
    first, last = grid_of(tables).edges()
    places = np.linspace(0.01, 0.99, 17)[:, None]
    u = np.unique(np.concatenate([((1 - places) * first + places * last).ravel(), first[1:], last]))
    rows = (u[:, None] / tables.rates).astype(np.float32)
    rows[rows < functions.smallest] = 0
    rows[rows * tables.rates >= 1] = 0
    values = functions(rows.astype(np.float64), np.arange(12))
    # a bin alone in its row tells what its table says
    gaps = np.empty(values.shape)
    for i in range(12):
        alone = np.zeros_like(rows)
        alone[:, i] = rows[:, i]
        gaps[:, i] = tables.scores(alone)[0] - tables.intercept - values[:, i]
    reached = 0.0
    for output in range(8):
        for sign in (1, -1):
            own = sign * gaps[:, :, output]
            best = (np.abs(own) if signed else own).argmax(axis=0)
            signs = np.where(signed & (own[best, np.arange(12)] < 0), -1, 1)
            row = (signs * rows[best, np.arange(12)]).astype(np.float32)[None]
            found, outside = tables.scores(row)
            assert not outside.any()
            gap = np.abs(found - psi.transform(row.astype(np.float64)) @ coef - tables.intercept).max()
            assert gap <= tables.bound(row)[0]
            reached = max(reached, gap)
    starts, slopes = np.abs(tables.lines).transpose(2, 0, 1, 3)
    sizes = (starts + slopes / tables.rates[:, None, None]).max(axis=1).sum(axis=0)
    rounding = 2.0**-20 * sizes.max()  # all that maps of straight pieces are off by
    assert reached <= tables.worst_error <= 2 * reached + rounding
