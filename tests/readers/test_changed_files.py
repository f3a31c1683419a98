"""A file that is written anew while it is read: an error that names it, and no rows of two files."""

from __future__ import annotations

import os

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from chimap import HistogramClassifier, open_source
from chimap._validation import DataError

N = 5000


def write(path, value):
    X, y = np.full((N, 6), value), np.arange(N) % 2
    if path.suffix == ".npy":
        np.save(path, X)
    elif path.suffix == ".npz":
        np.savez(path, X=X, y=y)
    elif path.suffix == ".csv":
        pytest.importorskip("pyarrow")
        np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,c,d,e,f,y", comments="", fmt="%.3g")
    elif path.suffix == ".svm":
        dump_svmlight_file(X, y, str(path))
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table(dict.fromkeys("abcdef", X[:, 0]) | {"y": y}), path, row_group_size=512)


@pytest.mark.parametrize("ending", [".npy", ".npz", ".csv", ".svm", ".parquet"])
def test_a_second_pass_over_another_file_is_refused(ending, tmp_path):
    path = tmp_path / f"rows{ending}"
    write(path, 1.5)
    source = open_source(path, np.arange(N) % 2)
    next(iter(source.chunks(512)))
    write(path, 2.5)
    os.utime(path, (1, 1))
    with pytest.raises(DataError, match=rf"rows\{ending}.*changed"):
        list(source.chunks(512))
    with pytest.raises(DataError, match=rf"rows\{ending}.*changed"):
        HistogramClassifier("chi2", alpha=1.0).fit_source(source)


@pytest.mark.parametrize("ending", [".npy", ".csv", ".svm", ".parquet"])
def test_a_change_in_mid_pass_is_noticed(ending, tmp_path):
    path = tmp_path / f"rows{ending}"
    write(path, 1.5)
    source = open_source(path, np.arange(N) % 2)
    chunks = source.chunks(512)
    next(chunks)
    write(path, 2.5)
    os.utime(path, (1, 1))
    with pytest.raises(DataError, match=rf"rows\{ending}.*changed"):
        list(chunks)
