"""What does bfloat16 cost in accuracy, and what does it gain in time?

MNIST, D = 4096, one strength, the same random features in float32 and rounded to bfloat16. Times are measured only if
the processor has units for bfloat16. Elsewhere the same numbers come from float32 products, and nothing can be
gained.
"""

import sys
import time

import numpy as np

from benchmarks.measure import mnist, report, sgemm_rates
from chimap import HistogramClassifier
from chimap.backends.units import has_bfloat16_units

D, SEEDS, STRENGTH = int(sys.argv[1]) if len(sys.argv) > 1 else 4096, (0, 1, 2), 0.1


def fitted(precision, seed, X, y):
    model = HistogramClassifier(
        "exp-chi2", n_components=D, alpha=STRENGTH, precision=precision, random_state=seed
    )
    began = time.perf_counter()
    model.fit(X, y)
    return model, time.perf_counter() - began


def main():
    X, y, Xt, yt = mnist(normalize=True)
    fitted("bfloat16", 0, X[:3000], y[:3000])  # loads the compiled loops
    points, passes = [], {"float32": [], "bfloat16": []}
    for seed in SEEDS:
        scores = {}
        for precision in passes:
            model, _ = fitted(precision, seed, X, y)
            scores[precision] = model.score(Xt, yt)
            passes[precision].append(sum(model.stage_seconds_.get(k, 0) for k in ("features", "moments")))
        points.append(100 * (scores["bfloat16"] - scores["float32"]))
        print(f"  seed {seed}: " + ", ".join(f"{k} {v:.4f}" for k, v in scores.items()))
    report(
        "bfloat16: points of test accuracy over float32, mean of seeds", f"{np.mean(points):.3f}", ">= -0.1"
    )
    ratio = np.median(passes["float32"]) / np.median(passes["bfloat16"])
    if has_bfloat16_units():
        rates = sgemm_rates()
        report("pass in float32, best kernel / in bfloat16", f"{ratio:.2f}", ">= 1.3")
        slower = max(rates.values()) / rates["numpy"]
        report("pass in float32, kernel that NumPy picks / in bfloat16", f"{ratio * slower:.2f}", ">= 2.5")
    else:
        report("pass in float32 / in bfloat16 (no units for it in this processor)", f"{ratio:.2f}", "-")


if __name__ == "__main__":
    main()
