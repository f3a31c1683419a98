"""Addresses: every kind of file opens through fsspec, here from its file system in memory."""

import sys

import numpy as np
import pytest

from chimap._arrays import to_dense
from chimap._validation import DataError
from chimap.data import files, open_source

from .small_sources import COUNTS, LABELS, N_ROWS, SOURCES

fsspec = pytest.importorskip("fsspec")

KINDS = {
    "npy, uint8": "rows.npy",
    "npy, Fortran": "rows.npy",
    "npz, compressed": "rows.npz",
    "npz, csr parts": "rows.npz",
    "svmlight, from 0": "rows.svm",
    "svmlight, Zstandard": "rows.svm.zst",
    "Parquet": "rows.parquet",
    "Parquet, parts": "rows",
    "Feather": "rows.feather",
    "Zarr": "rows.zarr",
    "Zarr, format 2, float64": "rows.zarr",
    "HDF5, chunks": "rows.h5",
    "CSV, gzip": "rows.csv.gz",
    "Matrix Market, shuffled": "rows.mtx.gz",
}


@pytest.fixture
def memory():
    """An empty folder of the file system in memory: its address."""
    system = fsspec.filesystem("memory")
    system.mkdir("/chimap")
    yield "memory://chimap"
    system.rm("/chimap", recursive=True)


def upload(path, address):
    fsspec.filesystem("memory").put(str(path), f"{address}/", recursive=True)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file(kind, tmp_path, memory):
    SOURCES[kind](tmp_path)
    upload(tmp_path / KINDS[kind], memory)
    given = None if kind.startswith(("Parquet", "Feather", "Zarr", "HDF5", "CSV", "svm")) else LABELS
    source = open_source(f"{memory}/{KINDS[kind]}", given)
    for _ in range(2):
        rows = np.concatenate([to_dense(chunk.X) for chunk in source.chunks(40)])
        np.testing.assert_array_equal(rows, COUNTS)
    np.testing.assert_array_equal(source.labels(), LABELS)
    np.testing.assert_array_equal(to_dense(source.take(np.array([1, 60, 136]))), COUNTS[[1, 60, 136]])
    assert source.fingerprint()["shape"] == list(COUNTS.shape)


def test_labels_and_members_have_addresses(tmp_path, memory):
    np.savez(tmp_path / "two.npz", a=COUNTS, b=LABELS)
    np.save(tmp_path / "y.npy", LABELS)
    upload(tmp_path / "two.npz", memory)
    upload(tmp_path / "y.npy", memory)
    for labels in ("::b", f"{memory}/two.npz::b", f"{memory}/y.npy"):
        source = open_source(f"{memory}/two.npz::a", labels)
        np.testing.assert_array_equal(source.labels(), LABELS)


def test_file_addresses_are_local_paths(tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", COUNTS)
    monkeypatch.setattr(files, "_system", None)
    assert open_source(f"file://{tmp_path}/rows.npy").n_rows == N_ROWS


def test_a_file_that_changes(tmp_path, memory):
    np.save(tmp_path / "rows.npy", COUNTS)
    upload(tmp_path / "rows.npy", memory)
    source = open_source(f"{memory}/rows.npy")
    np.save(tmp_path / "rows.npy", COUNTS[:, ::-1])
    upload(tmp_path / "rows.npy", memory)
    with pytest.raises(DataError, match=r"memory://.*rows\.npy: the file has changed .*written anew"):
        list(source.chunks(10))


def test_what_is_not_there_or_not_known(memory):
    with pytest.raises(FileNotFoundError, match=r"No such file: memory://chimap/nowhere\.npy"):
        open_source(f"{memory}/nowhere.npy")
    with pytest.raises(DataError, match=r"nonsense://a\.npy: .*nonsense"):
        open_source("nonsense://a.npy")


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    for kind in ("Parquet", "CSV", "Zarr", "HDF5", "svmlight, Zstandard"):
        (tmp_path / kind).mkdir()
        SOURCES[kind](tmp_path / kind)
    for name in ("pyarrow", "pyarrow.csv", "pyarrow.parquet", "zarr", "h5py", "zstandard", "fsspec.core"):
        monkeypatch.setitem(sys.modules, name, None)
    for path, package in (
        (tmp_path / "Parquet" / "rows.parquet", "pyarrow"),
        (tmp_path / "CSV" / "rows.csv", "pyarrow"),
        (tmp_path / "Zarr" / "rows.zarr", "zarr"),
        (tmp_path / "HDF5" / "rows.h5", "h5py"),
        (tmp_path / "svmlight, Zstandard" / "rows.svm.zst", "zstandard"),
        ("s3://bucket/rows.npy", "fsspec"),
    ):
        with pytest.raises(ImportError, match=rf'the package {package}, .*pip install "chimap\[data\]"'):
            open_source(path)
