"""Values computed from the definitions at 40 digits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap.kernels import CATALOGUE, Exponential

from ..golden import RELATIVE, column, golden

KINDS = {"dense": np.asarray, "sparse": sp.csr_matrix}


def table(name, kernel):
    return [row for row in golden("kernels")[name] if row["kernel"] == kernel]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", RELATIVE)
@pytest.mark.parametrize("name", CATALOGUE)
def test_values_and_distances(name, dtype, kind):
    rows, kernel = table("kernels", name), CATALOGUE[name]
    X, Y = (KINDS[kind](column(rows, c, dtype)[:, None]) for c in "xy")
    assert len(rows) == 64
    values, distances = np.diagonal(kernel(X, Y)), np.diagonal(kernel.distance(X, Y))
    assert values.dtype == distances.dtype == dtype
    np.testing.assert_allclose(values, column(rows, "value"), RELATIVE[dtype])
    np.testing.assert_allclose(distances, column(rows, "squared_distance"), RELATIVE[dtype])
    exponential = Exponential(kernel, gamma=0.3)
    expected = np.exp(-0.3 * column(rows, "squared_distance"))
    np.testing.assert_allclose(np.diagonal(exponential(X, Y)), expected, RELATIVE[dtype])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", RELATIVE)
@pytest.mark.parametrize("name", CATALOGUE)
def test_gamma_variants(name, dtype, kind):
    for row in table("gamma_variants", name):
        x, y = (KINDS[kind](np.array([[row[c]]], dtype)) for c in "xy")
        kernel = CATALOGUE[name].with_gamma(row["gamma"])
        np.testing.assert_allclose(kernel(x, y)[0, 0], row["value"], RELATIVE[dtype])


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name != "hellinger"])
def test_spectra(name):
    rows = table("spectra", name)
    assert rows
    spectrum = CATALOGUE[name].spectrum(column(rows, "omega"))
    np.testing.assert_allclose(spectrum, column(rows, "value"), 1e-12)
