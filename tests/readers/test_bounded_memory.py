"""Memory does not grow with the file: peak resident memory, measured in a process of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from chimap.data.synthetic import write_histograms

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="peak memory is read from /proc/self/status"
)

# Not resource.getrusage: on Linux its peak starts at that of the process that started this one.
PEAK = """
import re, sys
def peak():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read()).group(1))
"""

READ_ALL = """
import sklearn.datasets  # the parser of svmlight text: its code is not the file's memory
from chimap.data.split import split_source
from chimap.readers import open_source
before = peak()
source = open_source(sys.argv[1])
rows = sum(chunk.X.shape[0] for chunk in source.chunks(1000))
if source.path.suffix == ".npy":
    train, test = split_source(source, 0.2, seed=0)
    rows += sum(chunk.X.shape[0] for part in (train, test) for chunk in part.chunks(1000))
    train.sample(1000, 0), source.sample(1000, 0), source.fingerprint()
print(rows, peak() - before)
"""


def peak_growth(code, *arguments):
    command = [sys.executable, "-c", PEAK + code, *arguments]
    # what is freed goes back to the system: glibc would keep it, more of it the larger the arrays have been
    env = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    return tuple(int(value) for value in done.stdout.split())


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A file of 200 MB: 100 000 rows of 500 bins."""
    path = tmp_path_factory.mktemp("large") / "rows.npy"
    write_histograms(path, 100_000, 500)
    yield path
    path.unlink()


@pytest.mark.slow
def test_npy(rows):
    assert rows.stat().st_size >= 200e6
    n_read, growth = peak_growth(READ_ALL, rows)
    assert n_read == 200_000
    assert growth < 100e6


@pytest.mark.slow
def test_npy_in_fortran_order(tmp_path):
    shape = (80_000, 500)
    file = np.lib.format.open_memmap(tmp_path / "rows.npy", "w+", np.float32, shape, fortran_order=True)
    del file  # zeros, as a file with holes
    assert peak_growth(READ_ALL, tmp_path / "rows.npy")[1] < 100e6


@pytest.mark.slow
def test_npz(tmp_path):
    np.savez_compressed(tmp_path / "rows.npz", X=np.zeros((80_000, 500), np.float32))
    assert peak_growth(READ_ALL, tmp_path / "rows.npz")[1] < 100e6


@pytest.mark.slow
def test_svmlight(tmp_path):
    line = "1 " + " ".join(f"{j}:0.1" for j in range(1, 200)) + "\n"
    (tmp_path / "rows.svm").write_text(line * 15_000)
    # The whole of it would be 60 MB, as text and as a matrix.
    assert peak_growth(READ_ALL, tmp_path / "rows.svm")[1] < 40e6


PASS = """
import chimap, numpy as np
import pyarrow.parquet, zarr, h5py, zarr.codecs  # libraries are not the file's memory
def fitted(source):
    model = chimap.HistogramClassifier("hellinger", features="additive", memory=sys.argv[2], random_state=0, alpha=1.0)
    return model.fit_source(source)
rng = np.random.default_rng(0)
fitted(chimap.open_source(rng.random((300, 500), dtype=np.float32), np.arange(300) % 2))  # compiles
before = peak()
source = chimap.open_source(sys.argv[1], np.arange(60_000) % 2)
print(fitted(source).n_rows_, peak() - before)
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The same 60 000 rows of 500 bins, 120 MB, in files of each kind, none of them of many pieces."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    zarr, h5py = pytest.importorskip("zarr"), pytest.importorskip("h5py")
    folder = tmp_path_factory.mktemp("stored")
    X = np.random.default_rng(0).random((60_000, 500), dtype=np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), 500)
    pq.write_table(pa.table({"X": lists}), folder / "lists.parquet")  # one row group
    pq.write_table(pa.table({f"{j}": X[:, j] for j in range(500)}), folder / "columns.parquet", row_group_size=4000)
    zarr.open_group(folder / "rows.zarr", mode="w").create_array("X", data=X, chunks=(4096, 500))
    with h5py.File(folder / "rows.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(1024, 500))
    yield folder
    shutil.rmtree(folder)


# a buffer for each of 500 columns takes its share
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "budget"), [("lists.parquet", 64), ("columns.parquet", 96), ("rows.zarr", 64), ("rows.h5", 64)]
)
def test_a_fit_within_its_budget(stored, name, budget):
    n_read, growth = peak_growth(PASS, str(stored / name), f"{budget}MiB")
    assert n_read == 60_000
    assert growth < (budget + 8) * 2**20  # and what allocators keep


def test_integers_in_memory_are_converted_chunk_by_chunk():
    code = """
import numpy as np
from chimap.data import ArraySource
X = np.ones((100_000, 1000), np.uint8)
before = peak()
print(sum(chunk.X.shape[0] for chunk in ArraySource(X).chunks(1000)), peak() - before)
"""
    assert peak_growth(code)[1] < 50e6
