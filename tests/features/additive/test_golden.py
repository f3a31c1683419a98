"""Features computed from the definitions at 40 digits."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import ChebyshevMap, DirectMap, HomogeneousMap
from chimap.features.additive.direct import greedy_nodes, minimax_nodes
from chimap.kernels import CATALOGUE

from ...golden import RELATIVE, column, golden


def direct(nodes, dtype):
    return DirectMap(n_terms=len(nodes), nodes=nodes).fit(np.ones((1, 1), dtype))


@pytest.mark.parametrize("dtype", RELATIVE)
def test_direct_features(dtype):
    table = golden("direct")
    psi = direct(table["nodes"], dtype)
    for name in "xy":
        x = column(table["values"], name, dtype)[:, None]
        found = psi.transform(x)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, column(table["values"], f"c{name}"), RELATIVE[dtype], atol=1e-300)


def test_remainder_of_the_direct_series_is_known():
    table = golden("direct")
    x, y = (column(table["values"], name)[:, None] for name in "xy")
    psi = direct(table["nodes"], np.float64)
    missing = np.diagonal(CATALOGUE["chi2"](x, y)) - (psi.transform(x) * psi.transform(y)).sum(axis=1)
    np.testing.assert_allclose(missing, column(table["values"], "remainder"), rtol=1e-10, atol=1e-14)


def test_minimax_nodes():
    for row in golden("direct")["minimax"]:
        nodes = minimax_nodes(row["a"], row["b"], row["n"])
        np.testing.assert_allclose(np.sort(nodes), np.sort(row["nodes"]), 1e-12)
        x = np.geomspace(row["a"], row["b"], 4001)[:, None]
        worst = np.abs(np.prod((x - nodes) / (x + nodes), axis=1)).max()
        np.testing.assert_allclose(worst, row["max_abs_product"], 1e-12)


def test_greedy_picks():
    table = golden("direct")["greedy"]
    centres, counts = np.array(table["centres"]), np.array(table["counts"])
    np.testing.assert_array_equal(greedy_nodes(centres, counts, len(table["picks"])), centres[table["picks"]])


@pytest.mark.parametrize("dtype", RELATIVE)
def test_chebyshev_features(dtype):
    rows = golden("chebyshev")["values"]
    psi = ChebyshevMap(n_terms=8, scale=1.0).fit(np.ones((1, 1)))
    found = psi.transform(column(rows, "x", dtype)[:, None])
    assert found.dtype == dtype
    np.testing.assert_allclose(found, column(rows, "d"), RELATIVE[dtype], atol=1e-30)


@pytest.mark.parametrize("dtype", RELATIVE)
@pytest.mark.parametrize("window", ["uniform", "rectangular"])
def test_homogeneous_features(window, dtype):
    rows = golden("homogeneous")["values"]
    assert len(rows) == 45
    for row in rows:
        kernel = CATALOGUE[row["kernel"]].with_gamma(row["gamma"])
        psi = HomogeneousMap(kernel, row["n"], window, row["period"])
        x = np.array([[row["x"]]], dtype)
        found = psi.fit_transform(x)[0]
        assert found.dtype == dtype
        # a cosine near its zero has the rounding of the angle: relative to the feature's amplitude
        scale = np.sqrt(row["x"] ** row["gamma"])
        np.testing.assert_allclose(found, row[window], RELATIVE[dtype], atol=RELATIVE[dtype] * scale)
