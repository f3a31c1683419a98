"""What do landmarks reach on all 60 000 rows of MNIST, and in what share of the time of random features?

The kernel is exp-chi2, gamma is twice the default and alpha is chosen. The benchmark measures wall seconds, and
processor seconds of all threads, which depend less on what else runs. With --keep, lines go to
benchmarks/results/mnist_landmarks.jsonl, where they replace those of the same features.

    python -m benchmarks.accuracy.mnist_landmarks                               # some minutes on two cores
    python -m benchmarks.accuracy.mnist_landmarks landmarks:2000 fourier:8192 scikit-learn:8192 --keep
"""

import argparse
import json
import resource
import time
from pathlib import Path

from benchmarks.measure import mnist, report

# measure sets up the BLAS before NumPy loads it
import numpy as np  # isort: skip
from sklearn.kernel_approximation import AdditiveChi2Sampler, RBFSampler  # isort: skip
from sklearn.linear_model import RidgeClassifier  # isort: skip
from sklearn.pipeline import make_pipeline  # isort: skip

from chimap import HistogramClassifier  # isort: skip

RESULTS = Path(__file__).resolve().parents[1] / "results" / "mnist_landmarks.jsonl"
USUAL = (
    "landmarks:1000",
    "landmarks:1200",
    "fourier:4096",
    "landmarks:2000",
    "landmarks:3300",
    "landmarks:3500",
    "landmarks:3700",
    "landmarks:4000",
    "fourier:8192",
)
# features, the features to compare with, the target share of time, the accuracy to reach
WANTED = (
    ("landmarks:1200", "fourier:4096", 1 / 3, 0.970),
    ("landmarks:3500", "fourier:8192", 1 / 2, 0.980),
    ("landmarks:2000", "scikit-learn:8192", 1 / 4, 0.976),
)


def model_of(features, size):
    if features == "scikit-learn":  # with a given strength
        sampler = RBFSampler(gamma=1.0, n_components=size, random_state=0)
        return make_pipeline(AdditiveChi2Sampler(), sampler, RidgeClassifier(0.3))
    return HistogramClassifier(
        "exp-chi2", features=features, n_components=size, gamma="2*mean", memory="6GiB", random_state=0
    )


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def line_of(name, X, y, X_test, y_test):
    """Run one fit and return its seconds and its accuracy."""
    features, size = name.split(":")
    model = model_of(features, int(size))
    began, used = time.perf_counter(), processor_seconds()
    model.fit(X, y)
    seconds, processor = time.perf_counter() - began, processor_seconds() - used
    parts = [model.predict(X_test[i : i + 2000]) for i in range(0, len(X_test), 2000)]
    line = {"features": name, "rows": len(X), "seconds": round(seconds, 1), "processor": round(processor, 1)}
    return line | {"accuracy": float(np.mean(np.concatenate(parts) == y_test))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", nargs="*", default=USUAL)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    data = mnist(normalize=True)
    line_of("landmarks:300", *(part[:2000] for part in data))  # compiles the loops
    kept = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    lines = {line["features"]: line for line in map(json.loads, kept)} if options.keep else {}
    for name in options.features:
        lines[name] = line_of(name, *data)
        print(json.dumps(lines[name]), flush=True)
        if options.keep:
            RESULTS.write_text("".join(json.dumps(line) + "\n" for line in lines.values()), encoding="utf-8")
    for ours, others, share, accuracy in WANTED:
        if ours in lines and others in lines:
            found = lines[ours]["processor"] / lines[others]["processor"]
            shown = f"{found:.2f} ({lines[ours]['accuracy']:.4f}, {lines[others]['accuracy']:.4f})"
            report(f"{ours} / {others}, processor time", shown, f"<= {share:.2f} at >= {accuracy:.3f}")


if __name__ == "__main__":
    main()
