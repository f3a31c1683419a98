"""How long do `chimap --help`, `chimap info FILE` and the imports take, and what does a first call compile?

The first call is one after a fresh installation. The import of an estimator is shown beside scikit-learn's own
import, because it inherits from scikit-learn.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

import chimap
from benchmarks.measure import child, processor_seconds, ratio, report

REPEATS = 9


def times(*arguments):
    command = [sys.executable, *arguments]
    processor_seconds(command)
    return np.sort([processor_seconds(command) for _ in range(REPEATS)])


FIT = """
import json, sys, time
sys.path.insert(0, {folder!r})
import numpy as np, chimap
X = np.random.default_rng(0).dirichlet(np.ones(64), size=4000).astype(np.float32)
y = (X[:, 0] > X[:, 1]).astype(int)
took = []
for _ in range(2):
    began = time.perf_counter()
    model = chimap.HistogramClassifier("exp-chi2", n_components=256, random_state=0).fit(X, y)
    took.append((time.perf_counter() - began, model.stage_seconds_.get("compile", 0.0)))
print(json.dumps({{"took": took}}))
"""


def main():
    bare, of_numpy = times("-c", "pass"), times("-c", "import numpy")
    helped, imported = times("-m", "chimap", "--help"), times("-c", "import chimap")
    estimator = times("-c", "import chimap; chimap.HistogramClassifier")
    inherited = times("-c", "import sklearn.base")
    report("chimap --help, seconds of processor time", f"{np.median(helped):.3f}", "< 0.3")
    report("import chimap / import numpy", ratio(imported, of_numpy), "< 2")
    report("chimap.HistogramClassifier, seconds of processor time", f"{np.median(estimator):.2f}", "< 1")
    report("  of which sklearn.base", f"{np.median(inherited):.2f}", "-")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, X=np.random.default_rng(0).random((1000, 64)), y=np.arange(1000) % 3)
        described = times("-m", "chimap", "info", str(path))
    report("chimap info rows.npz, seconds of processor time", f"{np.median(described):.2f}", "< 0.5")
    print(f"  bare interpreter {np.median(bare):.3f} s")
    with tempfile.TemporaryDirectory() as folder:
        ours = Path(chimap.__file__).parent
        shutil.copytree(ours, Path(folder) / "chimap", ignore=shutil.ignore_patterns("__pycache__"))
        fresh = child(FIT.format(folder=folder))["took"]
        again = child(FIT.format(folder=folder))["took"]
    report("first fit after installation: seconds, of which compiling", "{:.1f}, {:.1f}".format(*fresh[0]), "-")
    report("first fit of the next process: seconds, of which compiling", "{:.1f}, {:.1f}".format(*again[0]), "-")
    print(f"  a second fit in the same process {again[1][0]:.2f} s")


if __name__ == "__main__":
    main()
