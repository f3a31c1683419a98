"""Look-ups: every number of outputs, blocks of bins, threads, and rows that leave the tables."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import AnchorMap, ChebyshevMap, DirectMap, OptimalMap, StaircaseMap
from chimap._threads import threads
from chimap._validation import MemoryBudgetError
from chimap.features.blocks import BlockFeatures
from chimap.tables import BinFunctions, LineTables, line_tables, pieces

from ..histograms import histograms


def by_hand(tables: LineTables, rows: np.ndarray) -> np.ndarray:
    """Scores by the definition: the piece that each value lies in, found by search."""
    out = np.tile(tables.intercept, (rows.shape[0], 1))
    first, _ = pieces._Grid(tables.power, tables.n_pieces).edges()
    for i in range(tables.n_bins):
        x = rows[:, i]
        j = np.searchsorted(first, np.float32(1) * np.abs(x) * tables.rates[i], side="right") - 1
        a, b = tables.lines[i, j].astype(np.float64).transpose(1, 0, 2)
        out += np.sign(x)[:, None] * (a + b * np.abs(x)[:, None])
    return out


def random_tables(outputs, bins=37, n_pieces=24, power=2, signed=False, seed=0):
    rng = np.random.default_rng(seed)
    lines = rng.normal(size=(bins, n_pieces, 2, outputs)).astype(np.float32)
    lines[:, 0, 0] = 0
    errors = rng.random((bins, n_pieces, outputs)).astype(np.float32)
    rates = rng.uniform(0.5, 2, bins).astype(np.float32)
    return LineTables(lines, errors, np.zeros(bins, np.int64), rates, rng.normal(size=outputs), power, signed)


@pytest.mark.parametrize("outputs", [1, 2, 4, 5, 8, 10, 16, 17, 40])
@pytest.mark.parametrize("signed", [False, True])
def test_every_number_of_outputs(outputs, signed):
    tables = random_tables(outputs, signed=signed)
    rng = np.random.default_rng(1)
    rows = (rng.random((50, 37)) * 0.45 * (rng.random((50, 37)) > 0.3)).astype(np.float32)
    if signed:
        rows *= rng.choice([-1, 1], rows.shape).astype(np.float32)
    expected = by_hand(tables, rows)
    for kind in (np.asarray, sp.csr_matrix, sp.csr_array):
        found, outside = tables.scores(kind(rows))
        assert not outside.any()
        np.testing.assert_allclose(found, expected, atol=2e-5)


@pytest.mark.parametrize("power", [0, 1, 2, 3])
@pytest.mark.parametrize("n_pieces", [1, 7, 64, 1000])
def test_pieces_cover_the_range_in_order(power, n_pieces):
    grid = pieces._Grid(power, n_pieces)
    first, last = grid.edges()
    assert first[0] == 0
    assert last[-1] == np.float32(1) - np.float32(2**-24)
    assert (np.diff(first) > 0).all()
    np.testing.assert_array_equal(np.nextafter(last[:-1], np.float32(2)), first[1:])
    for edge in (first, last):
        np.testing.assert_array_equal(grid._pieces(edge.view(np.int32)), np.arange(n_pieces))
    if n_pieces > 1:  # of equal length in the root, but for its being straight between powers of two
        root = first[1:].astype(np.float64) ** (0.5**power) * n_pieces
        np.testing.assert_allclose(root, np.arange(1, n_pieces), rtol=0.1)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_many_bins_and_rows(n_jobs):
    tables = random_tables(10, bins=1500, n_pieces=40)
    rows = np.random.default_rng(0).random((700, 1500)).astype(np.float32) * np.float32(0.4)
    with threads(n_jobs):
        found, _ = tables.scores(rows)
    np.testing.assert_allclose(found, by_hand(tables, rows), atol=2e-3)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("value", [2.5, 1e30, np.inf, np.nan, -0.1, -np.inf])
def test_rows_outside_are_named(outputs, value):
    tables = random_tables(outputs)
    rows = np.full((5, 37), 0.1, np.float32)
    rows[3, 36] = value
    for kind in (np.asarray, sp.csr_matrix):
        _, outside = tables.scores(kind(rows))
        assert outside.tolist() == [False, False, False, True, False]


def test_signed_rows_outside():
    tables = random_tables(2, signed=True)
    rows = np.full((3, 37), -0.1, np.float32)
    rows[1, 0] = -3
    assert tables.scores(rows)[1].tolist() == [False, True, False]


def test_no_rows():
    found, outside = random_tables(3).scores(np.zeros((0, 37), np.float32))
    assert found.shape == (0, 3)
    assert outside.shape == (0,)


def test_memory_as_it_is_looked_up():
    assert random_tables(1).nbytes == 37 * 24 * 2 * 4
    assert random_tables(10).nbytes == 37 * 24 * 2 * 16 * 4
    assert random_tables(3, signed=True).nbytes == 2 * 37 * 24 * 2 * 4 * 4


def test_blocks_that_share_columns():
    X = histograms(80)
    features = BlockFeatures(
        [OptimalMap("chi2", 2), StaircaseMap(n_terms=5), DirectMap(n_terms=2)], [slice(0, 8), [11, 6, 2], [9, 10]]
    ).fit(X)
    coef = np.random.default_rng(0).normal(size=(features._n_features_out, 2))
    tables = line_tables(BinFunctions(features, coef), np.zeros(2), 1e-3)
    found, outside = tables.scores(X.astype(np.float32))
    assert not outside.any()
    gap = np.abs(found - features.transform(X) @ coef).max(axis=1)
    assert (gap <= tables.bound(X.astype(np.float32)) + 1e-6).all()
    assert gap.max() < 1e-2


def test_straight_maps_are_met_exactly():
    X = histograms(60)
    for psi in (StaircaseMap(n_terms=6), AnchorMap("intersection", n_anchors=8, n_neighbors=2)):
        psi.fit(X)
        coef = np.random.default_rng(0).normal(size=(psi._n_features_out, 1))
        tables = line_tables(BinFunctions(psi, coef), np.zeros(1), 1e-4)
        assert (tables.power, tables.n_pieces) == (0, 2 * psi.n_straight_pieces)


def test_functions_that_jump_are_refused():
    psi = StaircaseMap(n_terms=6, steps="constant").fit(histograms(60))
    with pytest.raises(
        ValueError, match=r"4096 pieces per bin do not come within the tolerance of this model.*the map jumps"
    ):
        line_tables(BinFunctions(psi, np.ones((72, 1))), np.zeros(1), 1e-3)


def test_a_tolerance_below_rounding_is_refused():
    psi = ChebyshevMap().fit(histograms(60))
    with pytest.raises(ValueError, match="below the rounding of float32"):
        line_tables(BinFunctions(psi, np.ones((36, 1))), np.zeros(1), 1e-9)
    with pytest.raises(ValueError, match="tolerance must be a positive number; got 0"):
        line_tables(BinFunctions(psi, np.ones((36, 1))), np.zeros(1), 0)


def test_tables_above_the_memory_are_refused():
    psi = ChebyshevMap().fit(histograms(60))
    with pytest.raises(MemoryBudgetError, match=r"12 bins, \d+ pieces, 1 outputs.*above the 1000 B allowed"):
        line_tables(BinFunctions(psi, np.ones((36, 1))), np.zeros(1), 1e-3, 1000)


class Steps:
    """Functions of two bins, straight between a jump at the middle of the range: what a border may fall on."""

    n_bins, n_outputs, is_signed, is_mixed, kinks, smallest = 2, 1, False, False, {8}, 1e-9
    tops = np.ones(2)
    height = 0.01

    def __call__(self, x, bins):
        return (x + self.height * (x >= 0.5))[:, :, None] * np.ones(1)


def test_a_jump_at_a_border_counts_on_both_sides_of_it():
    tables = line_tables(Steps(), np.zeros(1), 0.05)
    assert tables.n_pieces == 8
    edge = np.float32(0.5)
    sides = np.array([[np.nextafter(edge, np.float32(0))] * 2, [edge] * 2])
    # rounding may put a number into the piece beside its own
    assert (tables.bound(sides) >= 2 * Steps.height).all()
    assert (tables.bound(np.float32([[0.3, 0.3], [0.7, 0.7]])) < Steps.height).all()


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_memory_that_is_asked_for_is_what_they_take(outputs):
    psi = ChebyshevMap().fit(histograms(60))
    functions = BinFunctions(psi, np.ones((36, outputs)))
    free = line_tables(functions, np.zeros(outputs), 1e-2)
    assert line_tables(functions, np.zeros(outputs), 1e-2, free.nbytes).nbytes == free.nbytes
    with pytest.raises(MemoryBudgetError):
        line_tables(functions, np.zeros(outputs), 1e-2, free.nbytes - 1)


@pytest.mark.parametrize(("excess", "times"), [(1.01, 1.05), (4.0, 2.0), (400.0, 20.0)])
def test_errors_fall_with_the_square_of_the_pieces(excess, times):
    found = pieces._Grid(1, 320).finer(excess)
    assert found.power == 1
    assert times * 320 <= found.n_pieces <= 1.04 * times * 320 + 8


def test_a_grid_for_few_pieces_is_near_what_it_takes():
    functions = BinFunctions(ChebyshevMap().fit(histograms(60)), np.ones((36, 1)))
    bins = np.arange(12)
    excess = min(pieces._fitted(functions, pieces._Grid(p, 32), bins).excess(1.0) for p in range(4))
    tolerance = 1.5 * excess  # 32 pieces of the best spacing do, and 24 do not
    grid = pieces._best_grid(functions, bins, tolerance)
    assert 24 <= grid.n_pieces <= 32
    assert pieces._fitted(functions, grid, bins).excess(tolerance) < 1.2
