"""How long do `chimap --help` and `import chimap` take, and what does the first call of a fresh installation compile?"""

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

import chimap
from benchmarks.measure import child, processor_seconds, ratio, report

REPEATS = 15


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
    bare, numpy = times("-c", "pass"), times("-c", "import numpy")
    helped, imported = times("-m", "chimap", "--help"), times("-c", "import chimap")
    report("chimap --help, seconds of processor time", f"{np.median(helped):.3f}", "< 0.3")
    report("import chimap / import numpy", ratio(imported, numpy), "< 2")
    print(f"  bare interpreter {np.median(bare):.3f} s")
    with tempfile.TemporaryDirectory() as folder:
        ours = Path(chimap.__file__).parent
        shutil.copytree(ours, Path(folder) / "chimap", ignore=shutil.ignore_patterns("__pycache__"))
        fresh = child(FIT.format(folder=folder))["took"]
        again = child(FIT.format(folder=folder))["took"]
    report(
        "first fit after installation: seconds, of which compiling", "{:.1f}, {:.1f}".format(*fresh[0]), "-"
    )
    report(
        "first fit of the next process: seconds, of which compiling", "{:.1f}, {:.1f}".format(*again[0]), "-"
    )
    print(f"  a second fit in the same process {again[1][0]:.2f} s")


if __name__ == "__main__":
    main()
