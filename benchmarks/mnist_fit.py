"""MNIST, exp-chi2, all training rows: how fast, how accurate, in how much memory, against scikit-learn?

Ours as the command line runs it, its strength chosen by folds. Peers: AdditiveChi2Sampler + RBFSampler +
RidgeClassifier of equal D with its strength fixed, on pixels as a user loads them (bytes divided by their sum, float64)
and on float32 rows; and the exact exponential chi-square machine, SVC on the matrix of all pairs of 20 000 rows. Times:
one process, one after the other. Memory: a child process each, peak resident size seen from outside; "beyond the data"
is less that of a process that has loaded the same arrays and libraries. Arguments: D (default 8192); --no-exact.
"""

import sys
import time

import numpy as np
from sklearn.kernel_approximation import AdditiveChi2Sampler, RBFSampler
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics.pairwise import chi2_kernel
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from _measure import Spread, child, mnist, report
from chimap import HistogramClassifier

D = next((int(a) for a in sys.argv[1:] if a.isdigit()), 8192)
REPEATS, EXACT_ROWS, TEST_BLOCK = 3, 20_000, 2_000
MEMORY = "4GiB"


def ours(strengths, seed=0, D=D):
    return HistogramClassifier(
        "exp-chi2", n_components=D, strengths=strengths, memory=MEMORY, random_state=seed
    )


def theirs(gamma, D=D):
    return make_pipeline(
        AdditiveChi2Sampler(sample_steps=2),
        RBFSampler(gamma=gamma, n_components=D, random_state=0),
        RidgeClassifier(alpha=0.3),
    )


def timed(model, X, y):
    began = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - began


def spread_of(ratios):
    return Spread(*map(float, (np.median(ratios), np.min(ratios), np.max(ratios))))


def exact(X, y, Xt, yt, gamma):
    """(seconds of the fit, test accuracy) of SVC on precomputed kernels; scoring is not timed."""
    part = np.random.default_rng(0).choice(len(X), EXACT_ROWS, replace=False)
    rows, labels = X[part].astype(np.float64), y[part]
    began = time.perf_counter()
    model = SVC(C=10.0, kernel="precomputed", cache_size=500).fit(chi2_kernel(rows, gamma=gamma), labels)
    took = time.perf_counter() - began
    right = sum(
        (
            model.predict(chi2_kernel(Xt[i : i + TEST_BLOCK].astype(np.float64), rows, gamma=gamma))
            == yt[i : i + TEST_BLOCK]
        ).sum()
        for i in range(0, len(Xt), TEST_BLOCK)
    )
    return took, right / len(yt)


SETUP = "import json,sys;sys.path.insert(0,'.');sys.argv=['', '{D}'];import mnist_fit as b;X,y,_,_=b.mnist(normalize=True);"
LAST = ";print(json.dumps({}))"


def memory(gamma):
    setup = SETUP.replace("{D}", str(D))
    base = child(setup + "import chimap;chimap.HistogramClassifier" + LAST)["peak_bytes"]
    peaks = {
        "chosen": child(setup + "b.ours('auto').fit(X,y)" + LAST)["peak_bytes"],
        "fixed": child(setup + "b.ours(0.3).fit(X,y)" + LAST)["peak_bytes"],
        "scikit-learn": child(setup + f"b.theirs({gamma}).fit(X,y)" + LAST)["peak_bytes"],
    }
    report("peak memory, strength chosen", f"{peaks['chosen'] / 2**30:.2f} GiB", f"< {MEMORY} and libraries")
    beyond = (peaks["fixed"] - base) / (peaks["scikit-learn"] - base)
    report("memory beyond the data, strength fixed: share of scikit-learn's", f"{beyond:.3f}", "<= 0.2")
    print(
        "  GiB: "
        + ", ".join(f"{k} {v / 2**30:.2f}" for k, v in {**peaks, "data and libraries": base}.items())
    )


def main():
    X, y, Xt, yt = mnist(normalize=True)
    ours("auto", D=256).fit(X[:3000], y[:3000])  # loads what is compiled
    models = [ours("auto", seed) for seed in range(REPEATS)]
    auto = np.array([timed(m, X, y) for m in models])
    stages = {k: round(v, 2) for k, v in models[0].stage_seconds_.items()}
    report(
        "whole fit, strength chosen: test accuracy over seeds",
        " ".join(f"{m.score(Xt, yt):.4f}" for m in models),
        ">= 0.97",
    )
    print(f"  seconds {auto.round(1)}, strength {models[0].strength_:.3g}, stages {stages}")
    chosen = stages["choose strength"] / sum(stages[k] for k in ("read", "check", "features", "moments"))
    report("choice of the strength / pass", f"{chosen:.2f}", "<= 0.5")
    gamma = float(models[0].kernel_.gamma)
    if "--no-exact" not in sys.argv:
        took, accuracy = exact(X, y, Xt, yt, gamma)
        report(
            "exact SVC on 20 000 rows: times as long as the whole fit here", spread_of(took / auto), ">= 30"
        )
        print(
            f"  exact: {took:.0f} s, test accuracy {accuracy:.4f}; here {models[0].score(Xt, yt):.4f} on all rows"
        )
    for name, rows in (("as loaded, float64", X.astype(np.float64)), ("float32", X)):
        peer = theirs(gamma)
        seconds = timed(peer, rows, y)
        report(
            f"scikit-learn's pipeline, {name}: times as long as the whole fit here",
            spread_of(seconds / auto),
            ">= 4",
        )
        print(f"  {seconds:.1f} s, test accuracy {peer.score(Xt.astype(rows.dtype), yt):.4f}")
        del peer
    memory(gamma)


if __name__ == "__main__":
    main()
