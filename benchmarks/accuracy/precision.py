"""What does bfloat16 cost in accuracy, and what does it gain in time?

MNIST, one strength, the same features in float32 and rounded to bfloat16. Times are compared only if the processor has
units for bfloat16 and oneDNN is installed. Elsewhere the same numbers come from float32 products, and nothing can be
gained.

    python -m benchmarks.accuracy.precision                 # 4096 random features
    python -m benchmarks.accuracy.precision 2000 landmarks
"""

import sys
import time

import numpy as np

from benchmarks.measure import mnist, report
from chimap import HistogramClassifier
from chimap._onednn import has_bfloat16_units, processor_flags

D = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
FEATURES = sys.argv[2] if len(sys.argv) > 2 else "fourier"
SEEDS, STRENGTH = (0, 1, 2), 0.1
PASS = ("features", "moments")


def fitted(precision, seed, X, y):
    model = HistogramClassifier(
        "exp-chi2",
        features=FEATURES,
        n_components=D,
        alpha=STRENGTH,
        precision=precision,
        memory="4GiB",
        random_state=seed,
    )
    began = time.perf_counter()
    model.fit(X, y)
    return model, time.perf_counter() - began


def main():
    X, y, Xt, yt = mnist(normalize=True)
    fitted("bfloat16", 0, X[:3000], y[:3000])  # loads the compiled loops
    points = []
    seconds = {stage: {"float32": [], "bfloat16": []} for stage in ("moments", "pass", "fit")}
    for seed in SEEDS:
        scores = {}
        for precision in ("float32", "bfloat16"):
            model, whole = fitted(precision, seed, X, y)
            scores[precision] = model.score(Xt, yt)
            stages = model.stage_seconds_
            seconds["moments"][precision].append(stages["moments"])
            seconds["pass"][precision].append(sum(stages[stage] for stage in PASS))
            seconds["fit"][precision].append(whole)
        points.append(100 * (scores["bfloat16"] - scores["float32"]))
        print(f"  seed {seed}: " + ", ".join(f"{k} {v:.4f}" for k, v in scores.items()))
    report("bfloat16: points of test accuracy over float32, mean of seeds", f"{np.mean(points):.3f}", ">= -0.1")
    targets = {"moments": "-", "pass": ">= 3", "fit": ">= 2.5"}
    for stage, times in seconds.items():
        ratio = np.median(times["float32"]) / np.median(times["bfloat16"])
        target = targets[stage] if "amx_bf16" in processor_flags() and has_bfloat16_units() else "-"
        report(f"{stage}: seconds in float32 / in bfloat16", f"{ratio:.2f}", target)
        print(f"    {np.median(times['float32']):.2f} and {np.median(times['bfloat16']):.2f} s")
    if not has_bfloat16_units():
        print("  no units for bfloat16 in this processor, or no oneDNN: products are those of float32")


if __name__ == "__main__":
    main()
