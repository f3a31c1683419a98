"""Real files as people have them."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from chimap.data.split import split_source
from chimap.readers import open_source

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def real(name):
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{name} is not in ../shared/data")
    return path


def test_mnist():
    path = real("mnist.npz")
    source = open_source(f"{path}::x_test", "::y_test")
    assert (source.n_rows, source.n_features, source.dtype, source.is_sparse) == (10_000, 784, np.float32, False)
    with np.load(path) as file:
        X, y = file["x_test"].reshape(-1, 784), file["y_test"]
    np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in source.chunks(3000)]), X)
    np.testing.assert_array_equal(source.labels(), y)
    assert open_source(f"{path}::x_train", f"{path}::y_train").n_rows == 60_000


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("cifar10_bow.npz", None),
        ("caltech101_45_bow.npz", None),
        ("newsgroups20_counts.npz", None),
        ("hmp_otu_counts.npz", "::y_habitat"),
        ("hiv_morgan_counts.npz", "::activity"),
    ],
)
def test_sparse_counts(name, labels):
    path = real(name)
    source = open_source(path, labels)
    with np.load(path) as file:
        parts = file["data"], file["indices"].astype(np.int32), file["indptr"]
        expected = sp.csr_matrix(parts, shape=tuple(file["shape"])).astype(np.float32)
        y = file["y" if labels is None else labels[2:]]
    assert (source.n_rows, source.n_features) == expected.shape
    assert source.dtype == np.float32
    assert source.is_sparse
    got = sp.vstack([chunk.X for chunk in source.chunks(5000)])
    assert (got != expected).nnz == 0
    np.testing.assert_array_equal(source.labels(), y)
    train, test = split_source(source, 0.25, seed=0)
    assert train.n_rows + test.n_rows == source.n_rows
