"""Do Parquet, Zarr and HDF5 keep up with .npy, and does reading ahead help?

The same float32 histograms, --rows of --bins, are stored in each format as its writer stores them by default: Parquet
with one column per bin and with one column of lists (pyarrow: Snappy, dictionaries tried), Zarr (Zstandard, chunks of
16384 rows), HDF5 (no compression, chunks of 4096 rows). The benchmark times a bare read, and the pass of a fit with D
features, with and without reading the next chunk ahead. The files are read once before, so that they come from the
page cache and decoding is measured. Formats and modes take turns, so that a slow moment of the machine does not hit
only one of them.
"""

import argparse
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr

from benchmarks.measure import report
from chimap import HistogramClassifier, open_source
from chimap.data.synthetic import write_histograms

parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, default=2_000_000)
parser.add_argument("--bins", type=int, default=64)
parser.add_argument("--components", type=int, default=1024)
parser.add_argument("--fit-rows", type=int, default=200_000, help="rows of the files to fit")
parser.add_argument("--rounds", type=int, default=3)
options = parser.parse_args()


def write_all(folder, n_rows):
    """Write the files of all formats; return them by name, and the labels."""
    write_histograms(folder / "rows.npy", n_rows, options.bins, 10, seed=0)
    X, y = np.load(folder / "rows.npy"), np.load(folder / "rows_labels.npy")
    pq.write_table(pa.table({f"bin {j}": X[:, j] for j in range(options.bins)}), folder / "columns.parquet")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), options.bins)
    pq.write_table(pa.table({"histogram": lists}), folder / "lists.parquet")
    root = zarr.open_group(folder / "rows.zarr", mode="w")
    root.create_array("X", data=X, chunks=(16384, options.bins))
    with h5py.File(folder / "rows.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(4096, options.bins))
    names = {
        ".npy": "rows.npy",
        "Parquet, columns": "columns.parquet",
        "Parquet, lists": "lists.parquet",
        "Zarr": "rows.zarr",
        "HDF5": "rows.h5",
    }
    return {name: open_source(folder / file, y) for name, file in names.items()}


def read_seconds(source):
    began = time.perf_counter()
    rows = sum(chunk.X.shape[0] for chunk in source.chunks(10_240))
    assert rows == source.n_rows
    return time.perf_counter() - began


def pass_seconds(source, ahead):
    """Return the seconds of reading, checking, features and moments, by the clock of the fit."""
    source.from_files = ahead
    model = HistogramClassifier("exp-chi2", n_components=options.components, alpha=1.0, random_state=0).fit_source(
        source
    )
    return sum(model.stage_seconds_[stage] for stage in ("read", "check", "features", "moments"))


def medians(names, measure):
    times = {name: [] for name in names}
    for round_ in range(options.rounds + 1):
        for name in names:
            value = measure(name)
            if round_:  # the first is not counted
                times[name].append(value)
    return {name: float(np.median(values)) for name, values in times.items()}


with tempfile.TemporaryDirectory() as folder:
    sources = write_all(Path(folder), options.rows)
    print(f"{options.rows} x {options.bins} float32; bytes: ", end="")
    print(", ".join(f"{name} {source.fingerprint()['bytes'] / 1e6:.0f} MB" for name, source in sources.items()))
    bare = medians(sources, lambda name: read_seconds(sources[name]))
    for name, seconds in bare.items():
        speed = f"{options.rows / seconds / 1e6:.1f} M rows/s"
        report(f"bare read, {name}: time / .npy  ({speed})", f"{seconds / bare['.npy']:.2f}", "-")

with tempfile.TemporaryDirectory() as folder:
    sources = write_all(Path(folder), options.fit_rows)
    ways = {(name, way): source for name, source in sources.items() for way in (True, False)}
    times = medians(ways, lambda key: pass_seconds(ways[key], key[1]))
    ahead, plain = ({name: times[name, way] for name in sources} for way in (True, False))
    for name, seconds in ahead.items():
        speed = f"{options.fit_rows / seconds / 1e3:.0f} k rows/s"
        report(
            f"fit, D = {options.components}, {name}: time / .npy  ({speed})",
            f"{seconds / ahead['.npy']:.2f}",
            "<= 1.25",
        )
        report(f"  read ahead / not, {name}", f"{seconds / plain[name]:.2f}", "<= 1.05")
