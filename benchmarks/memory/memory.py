"""Does a fit take the memory that `chimap info --memory` predicts?

Each case writes a file of random histograms, asks `chimap info` for the plan, and fits in its own process, whose peak
resident size is measured from outside. The memory of the libraries is what `chimap info` says about itself.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.measure import child, report

CASES = {
    "20 000 rows of 256 bins, D = 2048": (20_000, 256, 2048, "1GiB", 10),
    "60 000 rows of 784 bins, D = 4096": (60_000, 784, 4096, "1GiB", 10),
    "60 000 rows of 784 bins, D = 4096, 768MiB": (60_000, 784, 4096, "768MiB", 10),
    "40 000 rows of 128 bins, D = 6144": (40_000, 128, 6144, "3GiB", 10),
}
FIT = """
import json, sys
from chimap.cli.main import main
code = main(["fit", {data!r}, "--kernel", "exp-chi2", "--components", "{components}", "--memory", {memory!r},
             "--output", {output!r}, "--overwrite", "--json"])
sys.exit(code)
"""


def planned(path, components, memory):
    """Return (bytes of the fit, bytes of the libraries) as `chimap info` predicts them."""
    command = [
        sys.executable,
        "-m",
        "chimap",
        "info",
        path,
        "--memory",
        memory,
        "--components",
        str(components),
        "--json",
    ]
    plan = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["plan"]
    return plan["peak_bytes"], plan["library_bytes"]


def main():
    wanted = sys.argv[1:] or list(CASES)
    for name in wanted:
        n_rows, n_bins, components, memory, n_classes = CASES[name]
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "data.npz")
            rng = np.random.default_rng(0)
            X = rng.dirichlet(np.full(n_bins, 0.2), n_rows).astype(np.float32)
            np.savez(path, X=X, y=rng.integers(n_classes, size=n_rows))
            del X
            fit, libraries = planned(path, components, memory)
            code = FIT.format(data=path, components=components, memory=memory, output=str(Path(folder) / "m"))
            child(code)  # compiles the loops
            peak = child(code)["peak_bytes"]
        report(f"{name}: peak / predicted", f"{peak / (fit + libraries):.3f}", "0.9 .. 1.1")
        print(
            f"  peak {peak / 2**20:.0f} MiB; predicted {fit / 2**20:.0f} MiB and {libraries / 2**20:.0f} of libraries"
        )


if __name__ == "__main__":
    main()
