"""Do 50,000 cells x 20,000 genes, backed by a file, fit and get their types within 2 GiB?

A made table with 2,000 filled genes a cell is written as .h5ad, chunk by chunk, and kept in --folder for the next run.
A process of its own fits ``chimap.sc.fit`` on it and annotates all cells; its peak resident size is measured from
outside. --fit are settings of the estimator, as JSON: without any, a race chooses.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

from benchmarks.measure import child, report

parser = argparse.ArgumentParser()
parser.add_argument("--cells", type=int, default=50_000)
parser.add_argument("--genes", type=int, default=20_000)
parser.add_argument("--filled", type=int, default=2_000)
parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
parser.add_argument("--fit", type=json.loads, default={})
options = parser.parse_args()
TYPES = 10
AT_ONCE = 1_000  # cells

path = options.folder / f"cells-{options.cells}x{options.genes}x{options.filled}.h5ad"


def write(path: Path) -> None:
    rng = np.random.default_rng(0)
    rates = rng.gamma(0.3, size=(TYPES, options.genes))
    kinds = rng.integers(0, TYPES, options.cells)
    with h5py.File(path, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        X = file.create_group("X")
        X.attrs.update(
            {"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [options.cells, options.genes]}
        )
        n = options.cells * options.filled
        X["indptr"] = np.arange(0, n + 1, options.filled)
        data, indices = (
            X.create_dataset("data", n, "f4", chunks=2**17),
            X.create_dataset("indices", n, "i4", chunks=2**17),
        )
        for start in range(0, options.cells, AT_ONCE):
            of_cells = rates[kinds[start : start + AT_ONCE]]
            # the genes of largest keys log(u) / rate are a sample by the rates, without repetition
            keys = np.log(rng.random(of_cells.shape, np.float32)) / (of_cells + 0.05)
            genes = np.sort(np.argpartition(keys, -options.filled, axis=1)[:, -options.filled :], axis=1)
            counts = 1 + rng.poisson(np.take_along_axis(of_cells, genes, axis=1))
            place = slice(start * options.filled, (start + of_cells.shape[0]) * options.filled)
            data[place], indices[place] = counts.ravel(), genes.ravel()
        for name, ids, columns in (
            ("obs", [f"cell{i}" for i in range(options.cells)], {"cell_type": [f"type{k}" for k in kinds]}),
            ("var", [f"gene{j}" for j in range(options.genes)], {}),
        ):
            frame = file.create_group(name)
            frame.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"})
            frame.attrs["column-order"] = np.array([*columns], dtype=h5py.string_dtype())
            for column, values in {"_index": ids, **columns}.items():
                frame[column] = values
                frame[column].attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})


if not path.exists():
    began = time.perf_counter()
    write(path)
    print(f"  wrote {path.stat().st_size / 1e9:.2f} GB in {time.perf_counter() - began:.0f} s")

found = child(
    "import json, time, anndata, chimap\n"
    f"adata = anndata.read_h5ad({str(path)!r}, backed='r')\n"
    "began = time.perf_counter()\n"
    f"model = chimap.sc.fit(adata, 'cell_type', **{options.fit!r})\n"
    "fitted = time.perf_counter()\n"
    "chimap.sc.annotate(adata, model)\n"
    "is_right = (adata.obs['chimap'] == adata.obs['cell_type']).mean()\n"
    "print(json.dumps({'fit': fitted - began, 'annotate': time.perf_counter() - fitted, 'right': is_right,"
    " 'made': model.describe()}))"
)
report(
    f"peak resident size, {options.cells:,} cells x {options.genes:,} genes from a backed file",
    f"{found['peak_bytes'] / 2**30:.2f} GiB",
    "<= 2 GiB",
)
print(
    f"  fit {found['fit']:.0f} s, annotate {found['annotate']:.0f} s, {100 * found['right']:.1f} % right: {found['made']}"
)
