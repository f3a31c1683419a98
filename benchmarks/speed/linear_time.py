"""Does doubling the rows double the time of the pass?

The features are random ones, so that the rows are read chunk by chunk however few they are.
"""

import numpy as np

from benchmarks.measure import mnist, report
from chimap import HistogramClassifier, open_source

X, y, _, _ = mnist()


def model() -> HistogramClassifier:
    return HistogramClassifier("exp-chi2", features="fourier", alpha=0.3, random_state=0)


model().fit(X[:3000], y[:3000])  # loads the compiled loops
rows = 7500 * 2 ** np.arange(5)
times = []
for n in rows:
    tiles = -(-n // X.shape[0])
    source = open_source(np.tile(X, (tiles, 1))[:n], np.tile(y, tiles)[:n])
    runs = []
    for _ in range(3):
        stages = model().fit_source(source).stage_seconds_
        runs.append(sum(stages[k] for k in ("read", "check", "features", "moments")))
    times.append(min(runs))
slope, start = np.polyfit(rows, times, 1)
residual = np.abs(np.polyval((slope, start), rows) / times - 1).max()
for n, t in zip(rows, times, strict=True):
    print(f"  {n:>8,} rows  {t:7.3f} s  {1e6 * t / n:6.2f} us per row")
report("time of the last doubling / the one before", f"{times[-1] / times[-2]:.3f}", "2")
report("line through the times: largest relative residual", f"{residual:.3f}", "small")
