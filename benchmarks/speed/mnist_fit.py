"""MNIST, exp-chi2, all training rows: how fast, how accurate and in how much memory, compared with scikit-learn?

chimap runs on random features, as the first competitor does, and chooses its strength. The competitors are
AdditiveChi2Sampler + RBFSampler + RidgeClassifier with the same D and a fixed strength, on pixels as a user loads them
(bytes divided by their sum, float64) and on float32 rows; and the exact exponential chi-square machine, SVC on the
matrix of all pairs of 20 000 rows.

Each fit has its own process, one after the other, and fits a small part before its clock starts. Its peak memory is
measured from outside. "Beyond the data" is that peak minus the peak of a process that has loaded the same arrays and
libraries. There are three fits of chimap and one of each competitor. The result of a competitor is kept in
out/mnist_fit.json with the time of day, and is taken from there until the machine is restarted, so that a stopped run
continues where it was.

    python -m benchmarks.speed.mnist_fit              # about 20 minutes, most of them for the exact machine
    python -m benchmarks.speed.mnist_fit --no-exact   # about 7 minutes
    python -m benchmarks.speed.mnist_fit 4096 --again # another D; measure the competitors again
"""

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import Spread, child, mnist, report

# measure sets up the BLAS before NumPy loads it
import numpy as np  # isort: skip
import sklearn  # isort: skip
from sklearn.kernel_approximation import AdditiveChi2Sampler, RBFSampler  # isort: skip
from sklearn.linear_model import RidgeClassifier  # isort: skip
from sklearn.metrics.pairwise import chi2_kernel  # isort: skip
from sklearn.pipeline import make_pipeline  # isort: skip
from sklearn.svm import SVC  # isort: skip

from chimap import HistogramClassifier  # isort: skip

KEPT = Path(__file__).resolve().parents[1] / "out" / "mnist_fit.json"
REPEATS, EXACT_ROWS, TEST_BLOCK = 3, 20_000, 2_000
MEMORY = "4GiB"
STRENGTH = 0.3


class ExactMachine:
    """SVC on the kernel matrix of some training rows."""

    def __init__(self, gamma):
        self.gamma = gamma

    def fit(self, X, y):
        part = np.random.default_rng(0).permutation(len(X))[:EXACT_ROWS]
        self.rows = X[part].astype(np.float64)
        K = chi2_kernel(self.rows, gamma=self.gamma)
        self.machine = SVC(C=10.0, kernel="precomputed", cache_size=500).fit(K, y[part])

    def predict(self, X):
        return self.machine.predict(chi2_kernel(X.astype(np.float64), self.rows, gamma=self.gamma))


def ours(D, alphas, seed):
    return HistogramClassifier(
        "exp-chi2", features="fourier", n_components=D, alpha=alphas, memory=MEMORY, random_state=seed
    )


def theirs(D, gamma):
    return make_pipeline(
        AdditiveChi2Sampler(sample_steps=2),
        RBFSampler(gamma=gamma, n_components=D, random_state=0),
        RidgeClassifier(alpha=STRENGTH),
    )


def fitted(model, small, dtype="float32"):
    """Print, as JSON, the seconds and test accuracy of a fit and, for chimap, its stages, strength and gamma."""
    X, y, Xt, yt = mnist(normalize=True)
    X, Xt = X.astype(dtype, copy=False), Xt.astype(dtype, copy=False)
    small.fit(X[:3000], y[:3000])
    began = time.perf_counter()
    model.fit(X, y)
    found: dict[str, Any] = {"seconds": time.perf_counter() - began}
    right = sum(
        int((model.predict(Xt[i : i + TEST_BLOCK]) == yt[i : i + TEST_BLOCK]).sum())
        for i in range(0, len(yt), TEST_BLOCK)
    )
    found["accuracy"] = right / len(yt)
    if isinstance(model, HistogramClassifier):
        found |= {"stages": model.stage_seconds_, "alpha": float(model.alpha_)}
        found["gamma"] = float(model.describe()["gamma"])
    print(json.dumps(found))


def run(call):
    """Evaluate a call of the functions of this file in a new process; return what it prints, and its peak memory."""
    print(f"  {time.strftime('%H:%M:%S')} {call}", flush=True)
    return child(f"from benchmarks.speed.mnist_fit import *; {call}")


class Peers:
    """The figures of the competitors, kept in a file from one run to the next."""

    def __init__(self, again):
        boot = Path("/proc/sys/kernel/random/boot_id")
        self.here = " ".join(
            (platform.processor(), platform.node(), np.__version__, sklearn.__version__)
            + ((boot.read_text().strip(),) if boot.is_file() else (time.strftime("%F"),))
        )
        kept = json.loads(KEPT.read_text()) if KEPT.is_file() and not again else {}
        self.found = kept.get(self.here, {})

    def run(self, call):
        """Return the figures of a call, from the file if they are there."""
        if call in self.found:
            print(f"  kept from {self.found[call]['at']}: {call}")
        else:
            self.found[call] = run(call) | {"at": time.strftime("%F %H:%M")}
            KEPT.parent.mkdir(exist_ok=True)
            KEPT.write_text(json.dumps({self.here: self.found}, indent=1) + "\n")
        return self.found[call]


def spread_of(ratios):
    return Spread(*map(float, (np.median(ratios), np.min(ratios), np.max(ratios))))


def report_ours(fits):
    accuracies = " ".join(f"{fit['accuracy']:.4f}" for fit in fits)
    report("whole fit, strength chosen: test accuracy over seeds", accuracies, ">= 0.97")
    seconds = np.array([fit["seconds"] for fit in fits])
    stages = fits[int(np.argsort(seconds)[len(fits) // 2])]["stages"]
    shown = ", ".join(f"{name} {took:.2f}" for name, took in stages.items())
    print(f"  seconds {seconds.round(1)}, strength {fits[0]['alpha']:.3g}; of the median fit: {shown}")
    passing = sum(stages[k] for k in ("read", "check", "features", "moments"))
    report("choice of the strength / pass", f"{stages['choose alpha'] / passing:.2f}", "<= 0.5")
    return seconds


def report_memory(peaks, base):
    report("peak memory, strength chosen", f"{peaks['chosen'] / 2**30:.2f} GiB", f"< {MEMORY} and libraries")
    beyond = (peaks["fixed"] - base) / (peaks["scikit-learn"] - base)
    report("memory beyond the data, strength fixed: share of scikit-learn's", f"{beyond:.3f}", "<= 0.2")
    peaks = {**peaks, "data and libraries": base}
    print("  GiB: " + ", ".join(f"{name} {peak / 2**30:.2f}" for name, peak in peaks.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("D", nargs="?", type=int, default=8192)
    parser.add_argument("--no-exact", action="store_true", help="leave out the exact machine")
    parser.add_argument("--again", action="store_true", help="measure the competitors again")
    options = parser.parse_args()
    D, peers = options.D, Peers(options.again)

    def small(alphas):
        return f"ours(256, {alphas!r}, 0)"

    fits = [run(f"fitted(ours({D}, 'auto', {seed}), {small('auto')})") for seed in range(REPEATS)]
    seconds = report_ours(fits)
    # a gamma with few digits, so that kept results are found again
    gamma = float(f"{fits[0]['gamma']:.3g}")
    peaks = {"chosen": fits[0]["peak_bytes"]}
    for name, dtype in (("float32", "float32"), ("as loaded, float64", "float64")):
        peer = peers.run(f"fitted(theirs({D}, {gamma}), theirs(256, {gamma}), {dtype!r})")
        question = f"scikit-learn's pipeline, {name}: times as long as the whole fit here"
        report(question, spread_of(peer["seconds"] / seconds), ">= 4")
        print(f"  {peer['seconds']:.1f} s, test accuracy {peer['accuracy']:.4f}")
        peaks.setdefault("scikit-learn", peer["peak_bytes"])
    peaks["fixed"] = run(f"fitted(ours({D}, {STRENGTH}, 0), {small(STRENGTH)})")["peak_bytes"]
    base = run(
        "data = mnist(normalize=True); small = ours(256, 0.3, 0).fit(data[0][:3000], data[1][:3000]); print('{}')"
    )
    report_memory(peaks, base["peak_bytes"])
    if not options.no_exact:
        peer = peers.run(f"fitted(ExactMachine({gamma}), ExactMachine({gamma}))")
        question = "exact SVC on 20 000 rows: times as long as the whole fit here"
        report(question, spread_of(peer["seconds"] / seconds), ">= 30")
        print(f"  {peer['seconds']:.0f} s, accuracy {peer['accuracy']:.4f}; here {fits[0]['accuracy']:.4f}")


if __name__ == "__main__":
    main()
