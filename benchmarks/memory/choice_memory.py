"""How much memory does a fit take that chooses its strength by generalised cross-validation, compared with five folds?

Each fit runs in its own process: MNIST in memory, then a small fit that compiles. The figure is the peak of the
resident size during the fit minus what was resident before it.

    python -m benchmarks.memory.choice_memory                      # 8000 rows, D = 4096
    python -m benchmarks.memory.choice_memory 2048 --rows 4000
"""

import argparse

from benchmarks.measure import child, report

FIT = """
import gc, json
from benchmarks.measure import mnist
from chimap import HistogramClassifier

def kib(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field))

def fit(n_components, n_rows):
    HistogramClassifier(
        "exp-chi2", features={features!r}, n_components=n_components, selection={selection!r}, memory="8GiB",
        random_state=0,
    ).fit(X[:n_rows], y[:n_rows])

X, y, *_ = mnist(normalize=True)
X, y = X[:{rows}].copy(), y[:{rows}].copy()
fit(256, 1000)
gc.collect()
before = kib("VmRSS:")
with open("/proc/self/clear_refs", "w") as marks:
    marks.write("5")  # the peak begins anew
fit({D}, {rows})
print(json.dumps(dict(fit_bytes=1024 * (kib("VmHWM:") - before))))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("D", nargs="?", type=int, default=4096)
    parser.add_argument("--rows", type=int, default=8000)
    options = parser.parse_args()
    for features in ("landmarks", "fourier"):
        gcv, folds = (
            child(FIT.format(features=features, selection=selection, rows=options.rows, D=options.D))["fit_bytes"]
            for selection in ("gcv", 5)
        )
        report(f"{features}, D = {options.D}: gcv / five folds", f"{gcv / folds:.2f}", "<= 0.5")
        print(f"  {gcv / 2**20:.0f} MiB and {folds / 2**20:.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
