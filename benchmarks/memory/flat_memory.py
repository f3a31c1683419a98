"""10^7 rows x 64 bins, D = 1024: does memory stay flat below 1 GiB, and is time linear in the rows?

A generated .npy file of float32 histograms (2.6 GB; fewer rows with --rows) is fitted in its own process, with the
strength chosen by five folds. The process notes its resident size and the rows done twice per second. The size is that
of the whole process, including interpreter and libraries. results/flat_memory.png shows memory and time over all
rows; with fewer, --plot names another picture. The file lies in --folder and is kept for the next run.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.measure import child, report

CODE = """
import json, re, time
import chimap
from chimap.engines import Progress

class Noted(Progress):
    stage_name, rows, notes, told = "", 0, [], 0.0
    def stage(self, name, total, unit="rows"):
        self.stage_name = name
    def advance(self, amount=1):
        if self.stage_name != "learning":
            return
        self.rows += amount
        now = time.perf_counter()
        if amount and now - self.told > 0.5:
            self.told = now
            size = re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read()).group(1)
            self.notes.append((self.rows, now, 1024 * int(size)))

source = chimap.open_source({path!r}, {labels!r})
model = chimap.HistogramClassifier("exp-chi2", n_components={D}, memory={memory!r}, random_state=0)
noted = Noted()
model.fit_source(source, noted)
print(json.dumps({{"notes": noted.notes, "seconds": model.stage_seconds_}}))
"""

parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, default=10_000_000)
parser.add_argument("--bins", type=int, default=64)
parser.add_argument("--components", type=int, default=1024)
parser.add_argument("--memory", default="512MiB")
parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
parser.add_argument("--plot", type=Path)
options = parser.parse_args()
if options.plot is None and options.rows == parser.get_default("rows"):
    options.plot = Path(__file__).parents[1] / "results/flat_memory.png"

path = options.folder / f"flat-{options.rows}x{options.bins}.npy"
labels = path.with_name(path.stem + "_labels.npy")
if not path.exists():
    from chimap.data.synthetic import write_histograms

    write_histograms(path, options.rows, options.bins, 10, seed=0)

found = child(CODE.format(path=str(path), labels=str(labels), D=options.components, memory=options.memory))
rows, times, sizes = np.array(found["notes"]).T
times -= times[0]
quarter, half = np.searchsorted(rows, (options.rows / 4, options.rows / 2))
report("peak resident size of the process, solve included", f"{found['peak_bytes'] / 2**20:.0f} MiB", "< 1024 MiB")
report(
    "resident size in the last tenth of the rows / after a quarter",
    f"{np.median(sizes[-max(1, len(sizes) // 10) :]) / sizes[quarter]:.3f}",
    "<= 1.02",
)
rates = [np.polyfit(rows[part], times[part], 1)[0] for part in (slice(0, half), slice(half, None))]
report("seconds per row in the second half / in the first", f"{rates[1] / rates[0]:.3f}", "1")
slope, start = np.polyfit(rows, times, 1)
report(
    "line through time over rows: largest residual / whole time",
    f"{np.abs(np.polyval((slope, start), rows) - times).max() / times[-1]:.3f}",
    "small",
)
print(f"  {1 / slope:,.0f} rows/s; stages { {k: round(v, 1) for k, v in found['seconds'].items()} }")

import matplotlib.style  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from benchmarks.accuracy import STYLE  # noqa: E402

matplotlib.style.use(STYLE)
figure = Figure(figsize=(7, 3), layout="constrained")
memory, seconds = figure.subplots(1, 2)
memory.plot(rows / 1e6, sizes / 2**20, color="#0b6e99")
memory.axhline(1024, color="#b3401f", linestyle="--", linewidth=1)
memory.annotate("1 GiB", (0, 1024), xytext=(2, -11), textcoords="offset points", color="#b3401f")
memory.set(xlabel="million rows", ylabel="resident size, MiB", xlim=(0, None), ylim=(0, 1100))
seconds.plot(rows / 1e6, times, color="#0b6e99")
seconds.plot(rows / 1e6, np.polyval((slope, start), rows), color="#b3401f", linestyle="--", linewidth=1)
seconds.set(xlabel="million rows", ylabel="seconds", xlim=(0, None), ylim=(0, None))
for axes in (memory, seconds):
    axes.spines[["top", "right"]].set_visible(False)
if options.plot is not None:
    figure.savefig(options.plot, dpi=110)
    print(f"  {options.plot}")
