"""Addresses: every kind of file opens through fsspec, here from its file system in memory."""

import shutil
import sys
import zipfile

import fsspec
import numpy as np
import pytest

from chimap._arrays import to_dense
from chimap._validation import DataError
from chimap.readers import open_source
from chimap.readers.image_names import holds_images
from chimap.readers.io import files

from .small_sources import COUNTS, LABELS, N_ROWS, SOURCES

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


CHAINED = {
    "npy, uint8": "rows.npy",
    "npz, compressed": "rows.npz",
    "svmlight, Zstandard": "rows.svm.zst",
    "Parquet": "rows.parquet",
    "Parquet, parts": "rows",
    "Zarr": "rows.zarr",
    "HDF5, chunks": "rows.h5",
    "CSV, gzip": "rows.csv.gz",
}


@pytest.mark.parametrize("kind", CHAINED)
def test_files_in_archives_and_behind_caches(kind, tmp_path):
    (tmp_path / "in").mkdir()
    SOURCES[kind](tmp_path / "in")
    archive = shutil.make_archive(str(tmp_path / "all"), "zip", tmp_path / "in")
    name = CHAINED[kind]
    given = LABELS if kind.startswith("np") else None
    for address in (f"zip://{name}::file://{archive}", f"zip://{name}::{archive}", f"local://{tmp_path}/in/{name}"):
        source = open_source(address, given)
        assert source.name == name
        rows = np.concatenate([to_dense(chunk.X) for chunk in source.chunks(40)])
        np.testing.assert_array_equal(rows, COUNTS)
        np.testing.assert_array_equal(source.labels(), LABELS)
        assert not holds_images(address)


def test_members_of_files_in_archives(tmp_path):
    np.savez(tmp_path / "two.npz", a=COUNTS, b=LABELS)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(tmp_path / "two.npz", "two.npz")
    source = open_source(f"zip://two.npz::{tmp_path}/all.zip::a", "::b")
    np.testing.assert_array_equal(next(source.chunks(N_ROWS)).X, COUNTS)
    np.testing.assert_array_equal(source.labels(), LABELS)


def test_what_cannot_be_reached(tmp_path, monkeypatch):
    (tmp_path / "all.zip").write_bytes(b"no archive")
    for address, expected in (
        (
            "zip://rows.npy",
            r"^zip://rows\.npy is in an archive, but the archive is not named\. Add it: zip://rows\.npy::ARCHIVE",
        ),
        (f"zip://rows.npy::{tmp_path}/all.zip", r"^zip://rows\.npy.*all\.zip: cannot be reached \(BadZipFile"),
        ("ftp://127.0.0.1:9/rows.npy", r"^ftp://127\.0\.0\.1:9/rows\.npy: cannot be reached .*refused\)\. Check"),
    ):
        with pytest.raises(DataError, match=expected):
            open_source(address)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    for module, address, extra in (
        ("s3fs", "s3://bucket/rows.npy", "s3"),
        ("aiohttp", "https://127.0.0.1:9/rows.npy", "http"),
        ("aiohttp", "zip://rows.npy::http://127.0.0.1:9/all.zip", "http"),
    ):
        monkeypatch.setitem(sys.modules, module, None)
        monkeypatch.delitem(sys.modules, "fsspec.implementations.http", raising=False)
        with pytest.raises(ImportError, match=rf"^{address}: .*\. Install it \(pip install 'fsspec\[{extra}\]'\), or"):
            open_source(address)


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    for kind in ("Zarr", "HDF5", "svmlight, Zstandard"):
        (tmp_path / kind).mkdir()
        SOURCES[kind](tmp_path / kind)
    for name in ("zarr", "h5py", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    for path, package in (
        (tmp_path / "Zarr" / "rows.zarr", "zarr"),
        (tmp_path / "HDF5" / "rows.h5", "h5py"),
        (tmp_path / "svmlight, Zstandard" / "rows.svm.zst", "backports.zstd"),
    ):
        with pytest.raises(ImportError, match=rf'the package {package}, .*pip install "chimap\[data\]"'):
            open_source(path)
