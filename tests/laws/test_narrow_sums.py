"""Repeated entries of sparse rows add up as floats, whatever their own type, wherever sparse rows go in."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from chimap import OptimalMap, chi2, open_source
from chimap._arrays import to_dense
from chimap.features.blocks import BlockFeatures

from .estimators import ESTIMATORS, made, outputs

HALVES = np.random.default_rng(0).integers(90, 128, (60, 8))
FACTORS = {"uint8": 2, "int16": 256, "uint16": 512}  # with them, twice a half overflows the type
LABELS = np.arange(60) % 3
TYPES = ("int8", "uint8", "int16", "uint16", "int64", "float32", "float64")


def in_halves(make, dtype):
    """Rows whose every entry is stored as two halves, close to the largest number of a narrow type."""
    rows, columns = (np.tile(places, 2) for places in np.nonzero(HALVES))
    values = (np.tile(HALVES.reshape(-1), 2) * FACTORS.get(dtype, 1)).astype(dtype)
    if make in (sp.coo_matrix, sp.coo_array):
        return make((values, (rows, columns)), HALVES.shape)
    along, across = (rows, columns) if make in (sp.csr_matrix, sp.csr_array) else (columns, rows)
    order = np.argsort(along, kind="stable")
    borders = np.concatenate([[0], np.cumsum(np.bincount(along))])
    return make((values[order], across[order], borders), HALVES.shape)


def whole(dtype):
    """The same rows, added up."""
    return 2.0 * HALVES * FACTORS.get(dtype, 1)


FORMATS = [sp.coo_matrix, sp.coo_array, sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array]
every_format = pytest.mark.parametrize("make", FORMATS)


def anndata_of(X):
    return pytest.importorskip("anndata").AnnData(X)


def h5ad(X, folder):
    anndata_of(X).write_h5ad(folder / "cells.h5ad")
    return folder / "cells.h5ad"


def npz(X, folder):
    sp.save_npz(folder / "rows.npz", X)
    return folder / "rows.npz"


def matrix_market(X, folder):
    scipy.io.mmwrite(folder / "rows.mtx", X.tocoo() if X.dtype.kind == "f" else X.astype(np.int64).tocoo())
    return folder / "rows.mtx"


COMPRESSED = (sp.csr_matrix, sp.csc_matrix)  # what AnnData keeps
READERS = {
    "array": (lambda X, folder: X, FORMATS),
    "batches": (lambda X, folder: lambda: iter([X]), FORMATS),
    "AnnData": (lambda X, folder: anndata_of(X), COMPRESSED),
    ".h5ad": (h5ad, COMPRESSED),
    ".npz": (npz, (sp.csr_matrix,)),
    ".mtx": (matrix_market, (sp.coo_matrix,)),
}
CASES = [(name, make) for name, (_, formats) in READERS.items() for make in formats]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("reader", "make"), CASES, ids=[f"{name}, {make.__name__}" for name, make in CASES])
def test_sources_add_up_as_floats(reader, make, dtype, tmp_path):
    X = in_halves(make, dtype)
    source = open_source(READERS[reader][0](X, tmp_path))
    np.testing.assert_array_equal(to_dense(next(source.chunks(60)).X), whole(dtype))
    np.testing.assert_array_equal(to_dense(source.take(np.arange(1, 60, 7))), whole(dtype)[1::7])
    assert X.data.size == 2 * HALVES.size  # what was given is as it was
    assert X.data.max() == HALVES.max() * FACTORS.get(dtype, 1)


@every_format
@pytest.mark.parametrize("dtype", TYPES)
def test_kernels_and_maps_add_up_as_floats(make, dtype):
    X, rows = in_halves(make, dtype), whole(dtype)
    np.testing.assert_allclose(chi2(X, X), chi2(rows, rows), rtol=1e-4, atol=1e-3)
    psi = OptimalMap().fit(rows)
    np.testing.assert_allclose(to_dense(psi.transform(X)), psi.transform(rows), rtol=1e-4, atol=1e-3)
    blocks = BlockFeatures([OptimalMap()] * 2, [slice(0, 4), slice(4, 8)])
    found, expected = blocks.fit(X).transform(X), blocks.fit(rows).transform(rows)
    np.testing.assert_allclose(to_dense(found), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_add_up_as_floats(name):
    narrow, canonical = in_halves(sp.coo_matrix, "uint8"), sp.csr_matrix(whole("uint8"))
    model = made(name).fit(canonical, LABELS)
    expected = outputs(model, canonical)
    np.testing.assert_allclose(outputs(model, narrow), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(outputs(made(name).fit(narrow, LABELS), canonical), expected, rtol=0.02, atol=0.02)
    if hasattr(model, "partial_fit") and getattr(model, "features", None) != "exact":
        classes = {"classes": np.unique(LABELS)} if hasattr(model, "classes_") else {}
        first, second = (made(name).partial_fit(rows, LABELS, **classes) for rows in (narrow, canonical))
        np.testing.assert_allclose(outputs(first, canonical), outputs(second, canonical), rtol=0.02, atol=0.02)
