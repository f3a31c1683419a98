"""Zarr and HDF5: names of arrays, labels, and what is wrong with them."""

import numpy as np
import pytest

from chimap._arrays import to_dense
from chimap._validation import DataError
from chimap.readers import Hdf5Source, ZarrSource, open_source, stored_matrices

from .small_sources import COUNTS, LABELS, N_ROWS, hdf5, zarr_array, zarr_store

zarr = pytest.importorskip("zarr")
h5py = pytest.importorskip("h5py")

WORDS = np.where(LABELS > 0, "tree", "fish")


def write_zarr(folder, **arrays):
    path = folder / "data.zarr"
    root = zarr.open_group(path, mode="w")
    for name, values in arrays.items():
        values = np.asarray(values)
        text = values.astype(np.dtypes.StringDType()) if values.dtype.kind == "U" else values
        root.create_array(name.replace("__", "/"), data=text)
    return path


def write_hdf5(folder, **arrays):
    path = folder / "data.h5"
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            values = np.asarray(values)
            file[name.replace("__", "/")] = values.tolist() if values.dtype.kind == "U" else values
    return path


@pytest.fixture(params=[write_zarr, write_hdf5], ids=["Zarr", "HDF5"])
def write(request, tmp_path):
    """Writes arrays by name (``a__b`` is b in the group a) and gives the path."""
    return lambda **arrays: request.param(tmp_path, **arrays)


def all_rows(source):
    return np.concatenate([to_dense(chunk.X) for chunk in source.chunks(50)])


def test_names_of_rows_and_labels(write):
    path = write(X=COUNTS, y=LABELS, words=WORDS, train__X=COUNTS[:9], train__y=LABELS[:9], test__Z=COUNTS[3:])
    np.testing.assert_array_equal(open_source(path).labels(), LABELS)
    for labels in ("words", "::words"):
        np.testing.assert_array_equal(open_source(path, labels).labels(), WORDS)
    np.testing.assert_array_equal(open_source(path, -LABELS).labels(), -LABELS)
    np.testing.assert_array_equal(open_source(f"{path}::train/X").labels(), LABELS[:9])
    source = open_source(f"{path}::test/Z")
    assert source.labels() is None
    assert source.name.endswith("::test/Z")
    np.testing.assert_array_equal(all_rows(source), COUNTS[3:])


@pytest.mark.parametrize(
    ("arrays", "member", "labels", "message"),
    [
        ({"a": COUNTS}, None, None, r"no array 'X'; it holds a\. Name the rows as '.*::a'"),
        ({"X": COUNTS}, "Z", None, r"no array 'Z'; it holds X\."),
        ({"X": LABELS}, None, None, r"2 axes or more, got shape \(137,\)"),
        ({"X": COUNTS}, None, "::z", r"no array 'z'; it holds X\."),
        ({"X": COUNTS, "y": LABELS[1:]}, None, None, "::y: 136 labels for 137 rows"),
        ({"X": COUNTS, "y": np.where(LABELS > 0, np.inf, 0)}, None, None, r"::y, row \d+: inf"),
        ({"X": COUNTS.astype(complex)}, None, None, "::X: expected numbers, got dtype complex128"),
        ({}, None, None, "no array 'X'; it holds no arrays"),
    ],
)
def test_wrong_arrays(write, arrays, member, labels, message):
    path = write(**arrays)
    with pytest.raises(DataError, match=message) as caught:
        open_source(path if member is None else f"{path}::{member}", labels)
    assert labels is not None or "data." in str(caught.value)


def test_storage_chunks_need_not_fit(tmp_path, monkeypatch):
    for size in (1, 200, 10**7):
        monkeypatch.setattr(stored_matrices, "BLOCK_BYTES", size)
        for number, options in enumerate(({}, {"chunks": (1, 12)}, {"chunks": (13, 3)}, {"chunks": (N_ROWS, 12)})):
            folder = tmp_path / f"{size} {number}"
            folder.mkdir()
            source = hdf5(folder, **options)
            np.testing.assert_array_equal(all_rows(source), COUNTS)
            np.testing.assert_array_equal(source.take(np.arange(3, 99, 7)), COUNTS[3:99:7])


def test_a_large_storage_chunk_counts_as_memory(tmp_path):
    X = np.zeros((20_000, 100), np.float32)
    for name, rows, least, most in (("large", 20_000, 16e6, 16e6), ("small", 100, 1e6, 13e6)):
        (tmp_path / name).mkdir()
        assert least <= hdf5(tmp_path / name, X, y=None, chunks=(rows, 100)).held_bytes <= most


def test_damaged_hdf5(tmp_path):
    source = hdf5(tmp_path, np.random.default_rng(0).random((N_ROWS, 40)), chunks=(30, 40), fletcher32=True)
    path, whole = tmp_path / "rows.h5", (tmp_path / "rows.h5").read_bytes()
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes(100) + whole[middle + 100 :])
    with pytest.raises(DataError, match=r"rows\.h5, rows \d+ to \d+: cannot be read .*damaged"):
        list(Hdf5Source(path).chunks(10))
    for content in (whole[: len(whole) // 2], b"no HDF5"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"rows\.h5.*: cannot be read"):
            list(Hdf5Source(path).chunks(10))
    with pytest.raises(DataError, match=r"rows\.h5: the file has changed since it was opened"):
        list(source.chunks(10))


def test_damaged_zarr(tmp_path):
    zarr_array(tmp_path)
    part = tmp_path / "rows.zarr" / "c" / "1" / "0"
    part.write_bytes(part.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"rows\.zarr, rows \d+ to \d+: cannot be read .*damaged"):
        list(ZarrSource(tmp_path / "rows.zarr").chunks(10))
    (tmp_path / "rows.zarr" / "zarr.json").write_text("{")
    with pytest.raises(DataError, match=r"rows\.zarr: cannot be read"):
        open_source(tmp_path / "rows.zarr")


def test_a_zarr_store_that_changes(tmp_path):
    source = zarr_store(tmp_path)
    chunks = source.chunks(30)
    next(chunks)
    zarr.open_group(tmp_path / "rows.zarr", mode="a")["X"].append(COUNTS)
    with pytest.raises(DataError, match=r"rows\.zarr: the store has changed since it was opened"):
        list(chunks)
    with pytest.raises(DataError, match=r"rows\.zarr: the store has changed since it was opened"):
        source.take(np.arange(3))
    assert open_source(tmp_path / "rows.zarr", np.arange(2 * N_ROWS)).n_rows == 2 * N_ROWS


def test_a_folder_in_the_place_of_a_chunk(tmp_path):
    zarr = pytest.importorskip("zarr")
    root = zarr.open_group(tmp_path / "rows.zarr", mode="w")
    root.create_array("X", data=np.ones((8, 4)), chunks=(2, 4))
    chunk = tmp_path / "rows.zarr/X/c/1/0"
    assert open_source(tmp_path / "rows.zarr").n_rows == 8
    chunk.unlink()
    chunk.mkdir()
    with pytest.raises(DataError, match=r"rows\.zarr::X: a folder in place of chunk c/1/0"):
        open_source(tmp_path / "rows.zarr")


def test_an_empty_data_set_of_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["X"] = h5py.Empty("f8")
    with pytest.raises(DataError, match=r"rows\.h5::X: holds nothing"):
        open_source(tmp_path / "rows.h5")
