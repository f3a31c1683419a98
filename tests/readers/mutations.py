"""A small file of every format, and what can happen to its bytes."""

from __future__ import annotations

import bz2
import gzip
import json
import zlib
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

_TOKENS = [
    b"\0",
    b"nan",
    b"-1",
    b"99999999999999999999999",
    b"1_000",
    b"",
    b"\r",
    b"\n\n",
    b",",
    b'"',
    b"\xff\xfe",
    b"1e999",
    b"0.5",
    b"2147483647",
    b":",
    b"#",
    b" ",
    b"inf",
    b"\t",
    b"1e-400",
    b"\xef\xbb\xbf",
    b"x",
]


def whole_files(folder: Path) -> list[str]:
    """Write a whole file of each format; their names."""
    rng = np.random.default_rng(0)
    X, y = rng.poisson(1.0, (40, 6)).astype(np.float64), np.arange(40) % 2
    X[:, 0] += 0.5
    S = sp.csr_matrix(X)
    np.save(folder / "rows.npy", X)
    np.savez(folder / "rows.npz", X=X, y=y, column_names=list("abcdef"))
    parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape}
    np.savez_compressed(folder / "csr.npz", **parts, y=y)
    dump_svmlight_file(X, y, str(folder / "rows.svm"), zero_based=False)
    scipy.io.mmwrite(folder / "rows.mtx", S)
    scipy.io.mmwrite(folder / "dense.mtx", X)
    words = np.where(y > 0, "gut", "skin")
    lines = [",".join([*map(str, row), word]) for row, word in zip(X.tolist(), words, strict=True)]
    text = ("a,b,c,d,e,f,y\n" + "\n".join(lines) + "\n").encode()
    (folder / "rows.csv").write_bytes(text)
    (folder / "rows.tsv").write_bytes(text.replace(b",", b"\t"))
    (folder / "rows.csv.gz").write_bytes(gzip.compress(text, mtime=0))
    (folder / "rows.svm.bz2").write_bytes(bz2.compress((folder / "rows.svm").read_bytes()))
    counts = [
        {"counts": dict(zip("abcdef", row, strict=True)), "y": int(c)} for row, c in zip(X.tolist(), y, strict=True)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(record) + "\n" for record in counts))
    _with_libraries(folder, X, y, words, text)
    _of_ecosystems(folder, X, y)
    return sorted(path.name for path in folder.iterdir() if path.is_file())


def _with_libraries(folder: Path, X: np.ndarray, y: np.ndarray, words: np.ndarray, text: bytes) -> None:
    """Those that need packages which may not be there."""
    try:
        import pyarrow as pa
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError:
        for name in ("rows.csv", "rows.tsv", "rows.csv.gz"):
            (folder / name).unlink()
    else:
        table = pa.table(
            {**{name: X[:, j] for j, name in enumerate("abcdef")}, "y": pa.array(words).dictionary_encode()}
        )
        pyarrow.parquet.write_table(table, folder / "rows.parquet", row_group_size=16)
        pyarrow.feather.write_feather(table, folder / "rows.feather", compression="uncompressed")
    try:
        import h5py
    except ImportError:
        pass
    else:
        with h5py.File(folder / "rows.h5", "w") as file:
            file.create_dataset("X", data=X, chunks=(8, 6), compression="gzip")
            file["y"] = y
    try:
        import zarr
    except ImportError:
        pass
    else:
        with zarr.storage.ZipStore(folder / "rows.zarr.zip", mode="w") as store:
            root = zarr.open_group(store, mode="w")
            root.create_array("X", data=X, chunks=(8, 6))
            root.create_array("y", data=y)
    try:
        from backports import zstd
    except ImportError:
        pass
    else:
        (folder / "rows.svm.zst").write_bytes(zstd.compress((folder / "rows.svm").read_bytes()))


def _of_ecosystems(folder: Path, X: np.ndarray, y: np.ndarray) -> None:
    """Tables of cells and of taxa."""
    rows, names = [f"row {i}" for i in range(len(X))], list("abcdef")
    try:
        import anndata
        import pandas
    except ImportError:
        pass
    else:
        obs = pandas.DataFrame({"label": y}, index=rows)
        for name, counts in (("dense.h5ad", X), ("sparse.h5ad", sp.csr_matrix(X))):
            anndata.AnnData(counts, obs, pandas.DataFrame(index=names)).write_h5ad(folder / name)
    try:
        import biom
        import h5py
    except ImportError:
        pass
    else:
        table = biom.Table(sp.csr_matrix(X.T), names, rows, type="OTU table")
        (folder / "json.biom").write_text(table.to_json("a test"))
        with h5py.File(folder / "hdf5.biom", "w") as file:
            table.to_hdf5(file, "a test")


def mutated(whole: bytes, seed: int, name: str) -> bytes:
    """The bytes of a file after one to three damages drawn from a seed; compressed text is damaged inside, too."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    if name.endswith((".gz", ".bz2")) and rng.random() < 0.5:
        pack = gzip if name.endswith(".gz") else bz2
        return pack.compress(_damaged(pack.decompress(whole), rng))
    return _damaged(whole, rng)


def _damaged(whole: bytes, rng: np.random.Generator) -> bytes:
    for _ in range(rng.integers(1, 4)):
        whole = _DAMAGES[rng.integers(len(_DAMAGES))](whole, rng)
    return whole


def _place(whole: bytes, rng: np.random.Generator) -> int:
    """Anywhere, but headings at both ends more often."""
    n = max(1, len(whole))
    return int(rng.integers(min(n, 200))) if rng.random() < 0.4 else int(rng.integers(n))


def _flip(whole: bytes, rng: np.random.Generator) -> bytes:
    at = _place(whole, rng)
    return whole[:at] + bytes([rng.integers(256)]) + whole[at + 1 :]


def _cut(whole: bytes, rng: np.random.Generator) -> bytes:
    return whole[: max(1, _place(whole, rng))]


def _drop(whole: bytes, rng: np.random.Generator) -> bytes:
    at = _place(whole, rng)
    return whole[:at] + whole[at + int(rng.integers(1, 40)) :]


def _insert(whole: bytes, rng: np.random.Generator) -> bytes:
    at = _place(whole, rng)
    return whole[:at] + _TOKENS[rng.integers(len(_TOKENS))] + whole[at:]


def _repeat(whole: bytes, rng: np.random.Generator) -> bytes:
    at = _place(whole, rng)
    return whole[: at + 30] + whole[at:]


def _digit(whole: bytes, rng: np.random.Generator) -> bytes:
    """One of the first numbers in text becomes another: sizes are there."""
    digits = [i for i in range(min(len(whole), 400)) if whole[i : i + 1].isdigit()]
    if not digits:
        return _flip(whole, rng)
    at = digits[rng.integers(len(digits))]
    return whole[:at] + [b"0", b"-7", b"9999999", b"1000000000000", b"x"][rng.integers(5)] + whole[at + 1 :]


def _zeros(whole: bytes, rng: np.random.Generator) -> bytes:
    at = _place(whole, rng)
    return whole[:at] + b"\0" * 16 + whole[at + 16 :]


_DAMAGES = [_flip, _flip, _cut, _drop, _insert, _insert, _repeat, _digit, _zeros]
