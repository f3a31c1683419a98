"""ImageNet's shape (1000 bins, D = 5000, 1000 classes) on 100 000 synthetic rows: where does the time go, compared with BLAS?

The features are D random ones. The bound is the operations of the pass at the best rate of a large float32 product in
the same run, as in pass_bound.py. The strength is chosen by --folds folds. The figures for 1.26 million rows assume a
linear pass; the rest of the fit sees only moments, so its time does not change. Cross moments are sums of rows by
class. The dense product with 1000 targets that they replace is measured too.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.measure import ratio, report, seconds, sgemm_rates
from chimap import HistogramClassifier, open_source
from chimap.data.synthetic import write_histograms
from chimap.moments import OneVersusAll
from chimap.moments.targets import add_by_class, sums_with

PASS = ("read", "check", "features", "moments")

parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, default=100_000)
parser.add_argument("--bins", type=int, default=1000)
parser.add_argument("--components", type=int, default=5000)
parser.add_argument("--classes", type=int, default=1000)
parser.add_argument("--folds", type=int, default=5)
parser.add_argument("--memory", default="1.5GiB")
parser.add_argument("--whole", type=int, default=1_260_000, help="rows to extrapolate to")
options = parser.parse_args()
D, t = options.components, options.classes

rng = np.random.default_rng(0)
Z = rng.random((2048, D), dtype=np.float32)
coded = OneVersusAll(rng.integers(0, t, 2048), t)
dense = np.asarray(coded, dtype=np.float32)
waiting, cross = np.zeros(D), np.zeros((t, D))
by_class = seconds(lambda: add_by_class(Z, coded, None, cross, waiting), 3)
report(
    f"cross moments of {t} classes: dense product / sums by class",
    ratio(seconds(lambda: sums_with(Z, dense), 3), by_class),
    "> 3",
)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "rows.npy"
    labels = write_histograms(path, options.rows, options.bins, t, seed=0)
    source = open_source(path, labels)
    model = HistogramClassifier(
        "exp-chi2", features="fourier", n_components=D, selection=options.folds, memory=options.memory, random_state=0
    ).fit_source(source)

stages = model.stage_seconds_
p, m = model.features_.frequencies_.shape
pass_s = sum(stages[name] for name in PASS)
flops = 2 * p * m + D * D
rates = sgemm_rates()
best = max(rates, key=lambda name: rates[name])
bound = options.rows * flops / rates[best]
print(f"  {options.rows:,} rows, {p} mapped bins, {m} frequencies: {flops / 1e6:.1f} MFLOP per row")
for name, s in stages.items():
    print(f"  {name:<16} {s:8.1f} s  {100 * s / sum(stages.values()):5.1f} %")
report("the pass / SGEMM bound", f"{pass_s / bound:.2f}", "<= 1.25")
report(
    "share of the bound, of features and moments alone", f"{bound / (stages['features'] + stages['moments']):.2f}", "-"
)
print(f"  bound {rates[best] / 1e9:.0f} GFLOP/s by {best}; the pass {options.rows * flops / pass_s / 1e9:.0f}")
rest = sum(stages.values()) - pass_s
whole = pass_s * options.whole / options.rows + rest
print(
    f"  {options.whole:,} rows: {pass_s * options.whole / options.rows:,.0f} s of pass + {rest:.0f} s = {whole / 60:.1f} min"
)
