"""One small matrix in every kind of source there is; the laws in test_sources run over all of them."""

import bz2
import gzip
import lzma
from functools import partial

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from chimap.data import ArraySource
from chimap.data.split import drawn_for_test, split_by
from chimap.readers import (
    ArrowSource,
    BatchSource,
    CsvSource,
    Hdf5Source,
    MatrixMarketSource,
    NpySource,
    NpzSource,
    SvmlightSource,
    ZarrSource,
)

N_ROWS, N_FEATURES = 137, 12

rng = np.random.default_rng(0)
COUNTS = rng.poisson(0.7, (N_ROWS, N_FEATURES)).astype(np.uint8)
COUNTS[5] = 0
COUNTS[7, -1] = 3
LABELS = np.where(rng.random(N_ROWS) < 0.4, 1, -1)


def doubled_csr():
    """The counts with every entry split into two halves, columns falling: CSR, but not canonical."""
    columns = [np.flatnonzero(row)[::-1].repeat(2) for row in COUNTS]
    data = [COUNTS[i, c] / 2.0 for i, c in enumerate(columns)]
    indptr = np.cumsum([0] + [c.size for c in columns])
    return sp.csr_matrix((np.concatenate(data), np.concatenate(columns), indptr), shape=COUNTS.shape)


def wide_csr():
    """CSR with 64-bit indices."""
    rows = sp.csr_array(COUNTS.astype(np.float32))
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


def npy(folder, X):
    np.save(folder / "rows.npy", X)
    return NpySource(folder / "rows.npy", LABELS)


def npz(folder, save=np.savez, **members):
    save(folder / "rows.npz", **members)
    return NpzSource(folder / "rows.npz")


def csr_parts(folder, save=np.savez):
    X = sp.csr_matrix(COUNTS)
    parts = {"data": X.data, "indices": X.indices.astype(np.uint16), "indptr": X.indptr, "shape": X.shape}
    return npz(folder, save, **parts, y=LABELS.astype(np.int8))


def scipy_npz(folder):
    sp.save_npz(folder / "rows.npz", sp.csr_matrix(COUNTS.astype(np.float64)))
    return NpzSource(folder / "rows.npz", LABELS)


def svmlight(folder, zero_based):
    dump_svmlight_file(COUNTS.astype(float), LABELS, str(folder / "rows.svm"), zero_based=zero_based, comment="x")
    return SvmlightSource(folder / "rows.svm")


def compressed(path, packed):
    """The file again, compressed, with the ending of the compression."""
    content = path.read_bytes()
    if packed == ".zst":
        half = len(content) // 2  # two frames, as concatenated files have
        pack = pytest.importorskip("backports.zstd").compress
        content = pack(content[:half]) + pack(content[half:])
    else:
        content = {".gz": gzip, ".bz2": bz2, ".xz": lzma}[packed].compress(content)
    packed_path = path.with_name(path.name + packed)
    packed_path.write_bytes(content)
    return packed_path


def svmlight_packed(folder, packed):
    dump_svmlight_file(COUNTS.astype(float), LABELS, str(folder / "rows.svm"), zero_based=False)
    return SvmlightSource(compressed(folder / "rows.svm", packed), zero_based=False)


def table(X=COUNTS, y=LABELS):
    """Numeric columns and the labels."""
    pa = pytest.importorskip("pyarrow")
    columns = {f"bin {j}": np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])}
    return pa.table(columns | ({} if y is None else {"label": y}))


def mixed_table():
    """Columns of several types of numbers."""
    kinds = ["f4", "f8", "i1", "u8", "f2", "i4"]
    whole = table()
    for j in range(N_FEATURES):
        whole = whole.set_column(j, f"bin {j}", [COUNTS[:, j].astype(kinds[j % len(kinds)])])
    return whole


def table_of_lists(fixed, X=COUNTS, y=LABELS):
    """One column of lists and the labels."""
    pa = pytest.importorskip("pyarrow")
    flat = pa.array(X.reshape(-1))
    lists = (
        pa.FixedSizeListArray.from_arrays(flat, X.shape[1])
        if fixed
        else pa.ListArray.from_arrays(np.arange(0, X.size + 1, X.shape[1]), flat)
    )
    return pa.table({"id": np.arange(len(X)), "histogram": lists, "y": y})


def parquet(folder, table, **options):
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(table, folder / "rows.parquet", row_group_size=50, **options)
    return ArrowSource(folder / "rows.parquet")


def feather(folder, table, **options):
    write = pytest.importorskip("pyarrow.feather").write_feather
    write(table, folder / "rows.feather", chunksize=40, **options)
    return ArrowSource(folder / "rows.feather")


def parquet_parts(folder):
    """Parts of 60, 0 and 77 rows in folders, and a file that is none of them."""
    pq = pytest.importorskip("pyarrow.parquet")
    for name, rows in (("a/0", slice(0, 60)), ("b/0", slice(60, 60)), ("b/1", slice(60, None))):
        path = folder / "rows" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table(COUNTS[rows], LABELS[rows]), path, row_group_size=25)
    (folder / "rows" / "_SUCCESS").touch()
    return ArrowSource(folder / "rows")


def zarr_store(folder, **options):
    """A group of X and y."""
    zarr = pytest.importorskip("zarr")
    root = zarr.open_group(folder / "rows.zarr", mode="w", zarr_format=options.pop("zarr_format", 3))
    root.create_array("X", data=options.pop("X", COUNTS), **({"chunks": (20, 5)} | options))
    root.create_array("y", data=LABELS.astype(np.int16))
    return ZarrSource(folder / "rows.zarr")


def zarr_zip(folder):
    zarr = pytest.importorskip("zarr")
    with zarr.storage.ZipStore(folder / "rows.zarr.zip", mode="w") as store:
        root = zarr.create_group(store)
        root.create_array("X", data=COUNTS, chunks=(20, 12))
        root.create_array("y", data=LABELS)
    return ZarrSource(folder / "rows.zarr.zip")


def zarr_array(folder):
    """A store that is the array itself."""
    zarr = pytest.importorskip("zarr")
    zarr.create_array(folder / "rows.zarr", data=COUNTS.astype(np.float32), chunks=(64, 12))
    return ZarrSource(folder / "rows.zarr", LABELS)


def hdf5(folder, X=COUNTS, y=LABELS, **options):
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "rows.h5", "w") as file:
        file.create_dataset("X", data=X, **options)
        if y is not None:
            file["y"] = y
    return Hdf5Source(folder / "rows.h5")


def csv(folder, name="rows.csv", packed="", heading=True, delimiter=",", end="\n", **options):
    """Bins with the labels behind the fifth of them."""
    pytest.importorskip("pyarrow")
    fields = np.insert(COUNTS.astype(int), 5, LABELS, axis=1).astype(str)
    names = [f"bin {j}" for j in range(N_FEATURES)]
    lines = [[*names[:5], "y", *names[5:]]] if heading else []
    text = "".join(delimiter.join(line) + end for line in [*lines, *fields.tolist()])
    (folder / name).write_bytes(text.encode())
    path = compressed(folder / name, packed) if packed else folder / name
    return CsvSource(path, None if heading else 5, **options)


def matrix_market(folder, X, packed="", **options):
    scipy.io.mmwrite(folder / "rows.mtx", X, **options)
    path = compressed(folder / "rows.mtx", packed) if packed else folder / "rows.mtx"
    return MatrixMarketSource(path, LABELS)


def shuffled_coo():
    """The counts with entries in no order, each split into two halves."""
    rows, columns = np.nonzero(COUNTS)
    order = np.random.default_rng(1).permutation(np.tile(np.arange(rows.size), 2))
    return sp.coo_matrix((COUNTS[rows, columns][order] / 2, (rows[order], columns[order])), COUNTS.shape)


def batches(X, sizes):
    """Batches of X and labels, of these sizes again and again."""
    start = 0
    while start < N_ROWS:
        for size in sizes:
            yield X[start : start + size], LABELS[start : start + size]
            start += size


def parts_of(X):
    """A split of a longer array whose test part is exactly the matrix."""
    seed = 3
    is_test = drawn_for_test(0, 4096, 0.3, seed)
    places = np.flatnonzero(is_test)[:N_ROWS]
    n_rows = places[-1] + 1
    is_test = is_test[:n_rows]
    take = np.zeros(n_rows, int)
    take[is_test] = np.arange(N_ROWS)
    return split_by(ArraySource(X[take], LABELS[take]), is_test)[1]


SOURCES = {
    "uint8 array": lambda folder: ArraySource(COUNTS, LABELS),
    "int64 array": lambda folder: ArraySource(COUNTS.astype(np.int64), LABELS.tolist()),
    "float32 array": lambda folder: ArraySource(COUNTS.astype(np.float32), LABELS.reshape(-1, 1)),
    "big-endian array": lambda folder: ArraySource(COUNTS.astype(">f8"), LABELS),
    "3-axes array": lambda folder: ArraySource(COUNTS.reshape(N_ROWS, 4, 3), LABELS),
    "strided array": lambda folder: ArraySource(np.asfortranarray(COUNTS.astype(float)), LABELS),
    "list": lambda folder: ArraySource(COUNTS.tolist(), LABELS),
    "csr": lambda folder: ArraySource(sp.csr_matrix(COUNTS), LABELS),
    "csc": lambda folder: ArraySource(sp.csc_array(COUNTS.astype(np.float32)), LABELS),
    "64-bit csr": lambda folder: ArraySource(wide_csr(), LABELS),
    "csr, not canonical": lambda folder: ArraySource(doubled_csr(), LABELS),
    "npy, uint8": lambda folder: npy(folder, COUNTS),
    "npy, float64": lambda folder: npy(folder, COUNTS.astype(np.float64)),
    "npy, big-endian": lambda folder: npy(folder, COUNTS.astype(">f4")),
    "npy, 3 axes": lambda folder: npy(folder, COUNTS.reshape(N_ROWS, 4, 3)),
    "npy, Fortran": lambda folder: npy(folder, np.asfortranarray(COUNTS.astype(np.float32))),
    "npy, Fortran, 3 axes": lambda folder: npy(folder, np.asfortranarray(COUNTS.reshape(N_ROWS, 4, 3))),
    "npz": lambda folder: npz(folder, X=COUNTS.astype(np.float32), y=LABELS),
    "npz, compressed": lambda folder: npz(folder, np.savez_compressed, X=COUNTS, y=LABELS),
    "npz, csr parts": csr_parts,
    "npz, csr parts, compressed": lambda folder: csr_parts(folder, np.savez_compressed),
    "npz, scipy": scipy_npz,
    "svmlight, from 0": lambda folder: svmlight(folder, True),
    "svmlight, from 1": lambda folder: svmlight(folder, False),
    "svmlight, gzip": lambda folder: svmlight_packed(folder, ".gz"),
    "svmlight, bzip2": lambda folder: svmlight_packed(folder, ".bz2"),
    "svmlight, xz": lambda folder: svmlight_packed(folder, ".xz"),
    "svmlight, Zstandard": lambda folder: svmlight_packed(folder, ".zst"),
    "Parquet": lambda folder: parquet(folder, table()),
    "Parquet, mixed numbers": lambda folder: parquet(folder, mixed_table()),
    "Parquet, lists": lambda folder: parquet(folder, table_of_lists(False)),
    "Parquet, fixed lists, plain": lambda folder: parquet(
        folder, table_of_lists(True), compression="none", use_dictionary=False
    ),
    "Parquet, parts": parquet_parts,
    "Feather": lambda folder: feather(folder, table()),
    "Feather, fixed lists, plain": lambda folder: feather(folder, table_of_lists(True), compression="uncompressed"),
    "Zarr": zarr_store,
    "Zarr, format 2, float64": lambda folder: zarr_store(folder, zarr_format=2, X=COUNTS.astype(float)),
    "Zarr, shards": lambda folder: zarr_store(folder, chunks=(10, 12), shards=(50, 12)),
    "Zarr, zip": zarr_zip,
    "Zarr, array": zarr_array,
    "HDF5": hdf5,
    "HDF5, chunks": lambda folder: hdf5(folder, chunks=(32, 5), compression="gzip", shuffle=True),
    "HDF5, 3 axes": lambda folder: hdf5(folder, COUNTS.reshape(N_ROWS, 4, 3).astype(">f4"), chunks=True),
    "CSV": csv,
    "CSV, no heading": lambda folder: csv(folder, heading=False),
    "CSV, semicolons": lambda folder: csv(folder, delimiter=";", end="\r\n"),
    "CSV, gzip": lambda folder: csv(folder, packed=".gz"),
    "CSV, bzip2": lambda folder: csv(folder, packed=".bz2"),
    "TSV, Zstandard": lambda folder: csv(folder, "rows.tsv", packed=".zst", delimiter="\t"),
    "Matrix Market": lambda folder: matrix_market(folder, sp.csr_matrix(COUNTS.astype(np.int32))),
    "Matrix Market, shuffled": lambda folder: matrix_market(folder, shuffled_coo(), ".gz"),
    "Matrix Market, array": lambda folder: matrix_market(folder, COUNTS.astype(np.float64), ".zst"),
    "batches": lambda folder: BatchSource(partial(batches, COUNTS, (20, 1, 0))),
    "batches, one": lambda folder: BatchSource(partial(batches, COUNTS.astype(np.float64), (N_ROWS,))),
    "batches, sparse": lambda folder: BatchSource(partial(batches, sp.csr_matrix(COUNTS), (64, 5))),
    "split, dense": lambda folder: parts_of(COUNTS),
    "split, sparse": lambda folder: parts_of(sp.csr_matrix(COUNTS)),
}
