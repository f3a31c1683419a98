"""Does a file of 8 GB train within --memory 1GiB, at the speed of the same rows in memory?

A generated .npy file of float32 histograms (change its size with --gigabytes) is fitted by the command line, and the
peak resident size of the process is measured from outside. Then the same rows are fitted from memory. The file lies
in --folder and is kept for the next run.
"""

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.measure import child, report

parser = argparse.ArgumentParser()
parser.add_argument("--gigabytes", type=float, default=8.0)
parser.add_argument("--bins", type=int, default=512)
parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
options = parser.parse_args()

n_rows = int(options.gigabytes * 1e9 / (4 * options.bins))
path = options.folder / f"histograms-{n_rows}x{options.bins}.npy"
labels = path.with_name(path.stem + "_labels.npy")
if not path.exists():
    from chimap.data.synthetic import write_histograms

    began = time.perf_counter()
    write_histograms(path, n_rows, options.bins, 10, seed=0)
    print(f"  wrote {path.stat().st_size / 1e9:.1f} GB in {time.perf_counter() - began:.0f} s")

with tempfile.TemporaryDirectory() as folder:
    command = ["fit", str(path), "--labels", str(labels), "--memory", "1GiB", "--output", f"{folder}/a.model", "--json"]
    from_file = child(f"import sys; from chimap.cli.main import main; sys.exit(main({command!r}))")
in_memory = child(
    "import json,numpy as np,chimap\n"
    f"X,y=np.load({str(path)!r}),np.load({str(labels)!r})\n"
    "m=chimap.HistogramClassifier('exp-chi2',memory='1GiB',random_state=0).fit_source(chimap.open_source(X,y))\n"
    "print(json.dumps({'seconds':m.stage_seconds_}))"
)
passes = [
    sum(s[k] for k in ("read", "check", "features", "moments")) for s in (from_file["seconds"], in_memory["seconds"])
]
report(
    f"peak resident size, {n_rows} x {options.bins} from a file",
    f"{from_file['peak_bytes'] / 2**30:.2f} GiB",
    "<= 1.3 GiB",
)
report("rows/s from the file / from memory", f"{passes[1] / passes[0]:.3f}", ">= 0.85")
print(
    f"  {n_rows / passes[0]:,.0f} rows/s from the file, {n_rows / passes[1]:,.0f} from memory; stages {from_file['seconds']}"
)
