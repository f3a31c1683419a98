"""Matrix Market: layouts, memory, and files that are damaged."""

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from chimap import HistogramClassifier
from chimap._validation import DataError, MemoryBudgetError
from chimap.readers import MatrixMarketSource, open_source

HEAD = "%%MatrixMarket matrix coordinate "


def write(folder, text):
    (folder / "rows.mtx").write_text(text)
    return folder / "rows.mtx"


def test_patterns_and_symmetric_matrices(tmp_path):
    source = open_source(write(tmp_path, HEAD + "pattern general\n% a\n2 3 2\n2 3\n1 1\n"))
    np.testing.assert_array_equal(next(source.chunks(5)).X.toarray(), [[1, 0, 0], [0, 0, 1]])
    source = open_source(write(tmp_path, HEAD + "real symmetric\n2 2 2\n1 1 3\n2 1 0.5\n"))
    np.testing.assert_array_equal(next(source.chunks(5)).X.toarray(), [[3, 0.5], [0.5, 0]])


def test_unsigned_counts_as_scipy_writes_them(tmp_path):
    X = sp.coo_array(np.arange(6, dtype=np.uint32).reshape(2, 3))
    scipy.io.mmwrite(tmp_path / "rows.mtx", X)
    assert "unsigned-integer" in (tmp_path / "rows.mtx").read_text()
    np.testing.assert_array_equal(next(open_source(tmp_path / "rows.mtx").chunks(5)).X.toarray(), X.toarray())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello\n", "cannot be read .*not Matrix Market"),
        (HEAD + "real general\n2 2 2\n1 1 1\n", "cannot be read .*Expected another 1 lines"),
        (HEAD + "real general\n2 2 1\n3 1 1\n", "Line 3: Row index out of bounds"),
        (HEAD + "real general\n2 2 1\n1 1 x\n", "cannot be read"),
        (HEAD + "complex general\n2 2 1\n1 1 1 1\n", "complex numbers, expected real ones"),
        (HEAD + "real general\n0 2 0\n", r"empty, shape \(0, 2\)"),
    ],
)
def test_damaged_files(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=r"rows\.mtx.*" + message):
        list(open_source(path).chunks(10))


def test_too_small_a_budget_is_refused_before_the_file_is_read(tmp_path, monkeypatch):
    X = sp.random(3000, 400, 0.5, random_state=0)
    scipy.io.mmwrite(tmp_path / "rows.mtx", X)
    source = MatrixMarketSource(tmp_path / "rows.mtx", np.arange(3000) % 2)
    assert source.held_bytes == 28 * X.nnz
    monkeypatch.setattr(scipy.io, "mmread", None)
    model = HistogramClassifier("exp-chi2", n_components=64, memory=16 * 2**20)
    with pytest.raises(MemoryBudgetError, match="is too small"):
        model.fit_source(source)


def test_a_file_that_changes_before_it_is_read(tmp_path):
    source = MatrixMarketSource(write(tmp_path, HEAD + "real general\n1 1 1\n1 1 1\n"))
    write(tmp_path, HEAD + "real general\n1 1 1\n1 1 1.5\n")
    with pytest.raises(DataError, match="has changed since it was opened"):
        list(source.chunks(10))


def test_transposed_in_memory(tmp_path):
    X = sp.random(20, 30, 0.3, format="csr", random_state=0)
    scipy.io.mmwrite(tmp_path / "rows.mtx", X)
    source = open_source(tmp_path / "rows.mtx", transpose=True)
    np.testing.assert_allclose(next(source.chunks(100)).X.toarray(), X.T.toarray(), rtol=1e-12)
    with pytest.raises(ValueError, match=r"transpose is for text tables .* and Matrix Market files"):
        open_source(np.eye(3), transpose=True)


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "real symmetric\n2 2 1\n1 1 \0\n",
        HEAD + "real general\n2 2 2\n2 1 3\n1 1 \0\0\0\n",
        "%%MatrixMarket matrix array real general\n2 2\n1\n\0\n3\n4\n",
        HEAD + "real general\n2 2 900000000000\n1 1 1\n",
        HEAD + "real general\n9000000000000 2 1\n1 1 1\n",
    ],
)
def test_nul_bytes_and_huge_sizes_are_refused(tmp_path, text):
    with pytest.raises(DataError, match=r"rows\.mtx"):
        list(open_source(write(tmp_path, text)).chunks(10))
