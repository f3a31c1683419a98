"""How near to its matrix products does a pass on a CUDA device run, and how long does ImageNet's shape take?

Prints the device's name, its measured rate of products, the pass's share of it in each precision, and the time of
1.26 million synthetic rows of 1000 bins, D = 8192, 1000 classes, strength given: pass and solution on the device.
"""

import sys
import time

import numpy as np

from _measure import report
from chimap import FourierFeatures, HistogramClassifier, OptimalMap
from chimap.data import ArraySource
from chimap.engines import LocalEngine, Progress, Stopwatch
from chimap.engines.device import DevicePass
from chimap.moments import FoldMoments, OneVersusAll
from chimap.rounded import RoundedFeatures

D, BINS, CLASSES, ROWS, ORDER = 8192, 1000, 1000, 1_260_000, 8192


def product_rate(torch, precision):
    """Operations a second of a product of order 8192 on the device."""
    from chimap.moments.device import wide_product

    A = torch.full((ORDER, ORDER), 0.5, dtype=getattr(torch, precision), device="cuda")
    for _ in range(3):
        wide_product(A, A)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(10):
        wide_product(A, A)
    torch.cuda.synchronize()
    return 10 * 2 * ORDER**3 / (time.perf_counter() - began)


def rows_like_imagenet(n, seed=0):
    """Sparse-looking counts that sum to one, float32, and classes that they say something of."""
    rng = np.random.default_rng(seed)
    y = rng.integers(CLASSES, size=n)
    X = rng.standard_exponential((n, BINS), dtype=np.float32) ** 3
    X[np.arange(n), y] += 50
    X /= X.sum(axis=1, keepdims=True)
    return X, y


def passed(features, X, y, precision):
    """Seconds of one pass, from rows in memory to moments in memory."""
    shift = np.zeros(D)
    mapping = RoundedFeatures(features, shift) if precision == "bfloat16" else features
    moments = FoldMoments(1, D, CLASSES, shift, np.zeros(CLASSES), np.dtype(np.float32))
    work = DevicePass(
        lambda rows, *_: rows, mapping, lambda y: OneVersusAll(y, CLASSES), moments, 0, Stopwatch(), "cuda"
    )
    began = time.perf_counter()
    LocalEngine().run(work, ArraySource(X, y), 65536, Progress(), "pass", 0, lambda *_: None)
    work.finish()
    return time.perf_counter() - began


def main():
    try:
        import torch
    except ImportError:
        sys.exit("skipped: this benchmark needs torch.")
    if not torch.cuda.is_available():
        sys.exit("skipped: this benchmark needs a CUDA device, and torch finds none here.")
    print(torch.cuda.get_device_name(), torch.__version__)
    X, y = rows_like_imagenet(262_144)
    features = FourierFeatures(n_components=D, map=OptimalMap(n_terms=2), random_state=0).fit(X[:4096])
    for precision in ("float32", "bfloat16"):
        rate = product_rate(torch, precision)
        passed(features, X[:65536], y[:65536], precision)
        p, m = features.frequencies_.shape
        took = passed(features, X, y, precision)
        operations = len(X) * (2 * p * m + D * D)
        share = operations / took / rate
        report(f"{precision}: share of the device's product rate in the pass", f"{share:.2f}", ">= 0.6")
        print(f"  product {rate / 1e12:.0f} TFLOP/s, pass {operations / took / 1e12:.0f} TFLOP/s")
    X, y = rows_like_imagenet(ROWS)
    model = HistogramClassifier(
        n_components=D, strengths=1.0, device="cuda", precision="bfloat16", memory="64GiB", random_state=0
    )
    began = time.perf_counter()
    model.fit(X, y)
    whole = time.perf_counter() - began
    stages = model.stage_seconds_
    report(
        "1.26 million rows, 1000 bins, 1000 classes, D = 8192: seconds of the device",
        f"{stages['device'] + stages['solve']:.1f}",
        "< 15",
    )
    print(f"  whole fit {whole:.1f} s: " + ", ".join(f"{k} {v:.1f}" for k, v in stages.items()))


if __name__ == "__main__":
    main()
