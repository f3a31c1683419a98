"""How near to its matrix products does a pass on a CUDA device run, and how long does ImageNet's shape take?

Prints the device's name, its measured rate of products, the share of it in each precision that map, features and moments
reach for rows on the device, and for rows in the memory of this machine; and the time of 1.26 million synthetic rows of
1000 bins, D = 8192, 1000 classes, strength given: pass and solution on the device.
"""

import sys
import time

import numpy as np

from benchmarks.measure import report
from chimap import FourierFeatures, HistogramClassifier, OptimalMap
from chimap.backends import backend_of
from chimap.data import ArraySource
from chimap.engines import LocalEngine, Progress, Stopwatch
from chimap.engines.local import Pass
from chimap.features.rounded import RoundedFeatures
from chimap.moments import FoldMoments, OneVersusAll

D, BINS, CLASSES, ROWS, ORDER = 8192, 1000, 1000, 1_260_000, 8192


def seconds(torch, work, repeats=10):
    """Of one call, on the device to its end."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(repeats):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / repeats


def product_rate(torch, precision):
    """Operations a second of a product of order 8192 on the device."""
    from chimap.backends.torch_sums import wide_product
    from chimap.backends.uploads import float32_products

    A = torch.randn((ORDER, ORDER), device="cuda").to(getattr(torch, precision))
    with float32_products("highest"):
        return 2 * ORDER**3 / seconds(torch, lambda: wide_product(A, A))


def rows_like_imagenet(n, seed=0):
    """Sparse-looking counts that sum to one, float32, and classes that they say something of."""
    rng = np.random.default_rng(seed)
    y = rng.integers(CLASSES, size=n)
    X = rng.standard_exponential((n, BINS), dtype=np.float32) ** 3
    X[np.arange(n), y] += 50
    X /= X.sum(axis=1, keepdims=True)
    return X, y


def empty(precision, features):
    """Moments about zero, and the features in this precision."""
    shift = np.zeros(D)
    moments = FoldMoments(1, D, CLASSES, shift, np.zeros(CLASSES), np.dtype(np.float32))
    return moments, RoundedFeatures(features, shift) if precision == "bfloat16" else features


def resident(torch, features, X, y, precision):
    """Seconds a row of features, and of features and moments, for rows that are on the device."""
    from chimap.backends.torch_sums import PIECE_ROWS, TorchMap, TorchMoments
    from chimap.backends.uploads import Uploads

    upload = Uploads("cuda")
    moments, mapping = empty(precision, features)
    z = TorchMap(mapping, moments.shift, np.dtype(np.float32), upload)
    sums = TorchMoments([(D, CLASSES)], upload)
    rows, targets = z.upload_rows(X[:PIECE_ROWS]), OneVersusAll(y[:PIECE_ROWS], CLASSES)
    mapped = seconds(torch, lambda: z(rows))
    return mapped / PIECE_ROWS, seconds(torch, lambda: sums.add(0, z(rows), targets)) / PIECE_ROWS


def passed(features, X, y, precision):
    """Seconds a row of one pass, from rows in memory to moments in memory."""
    moments, mapping = empty(precision, features)
    began = time.perf_counter()
    sums = backend_of("cuda").sums(mapping, moments)
    work = Pass(lambda rows, *_: rows, lambda y: OneVersusAll(y, CLASSES), sums, 1, 0, Stopwatch())
    LocalEngine().run(work, ArraySource(X, y), 65536, Progress(), "pass", 0, lambda *_: None)
    work.finish()
    return (time.perf_counter() - began) / len(X)


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
        p, m = features.frequencies_.shape
        operations = 2 * p * m + D * D  # of a row; half of the symmetric product
        mapped, whole = resident(torch, features, X, y, precision)
        report(
            f"{precision}: share of the device's product rate, rows on the device",
            f"{operations / whole / rate:.2f}",
            ">= 0.6",
        )
        passed(features, X[:65536], y[:65536], precision)
        from_memory = passed(features, X, y, precision)
        report(
            f"{precision}: the same, {len(X):,} rows from memory to moments",
            f"{operations / from_memory / rate:.2f}",
            "-",
        )
        print(
            f"  product {rate / 1e12:.0f} TFLOP/s; a million rows: features {mapped * 1e6:.2f} s, with moments "
            f"{whole * 1e6:.2f} s, from memory {from_memory * 1e6:.2f} s"
        )
    X, y = rows_like_imagenet(ROWS)
    model = HistogramClassifier(
        "exp-chi2",
        n_components=D,
        alpha=1.0,
        device="cuda",
        precision="bfloat16",
        memory="64GiB",
        random_state=0,
    )
    began = time.perf_counter()
    model.fit(X, y)
    whole = time.perf_counter() - began
    stages = model.stage_seconds_
    # launching and waiting: what of the device's time the stages beside it did not hide
    report(
        "1.26 million rows, 1000 bins, 1000 classes, D = 8192: seconds of pass and solution",
        f"{stages['device'] + stages['solve']:.1f}",
        "< 15",
    )
    print(f"  whole fit {whole:.1f} s: " + ", ".join(f"{k} {v:.1f}" for k, v in stages.items()))
    print(f"  {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB of the device's memory at most")
    print(f"  accuracy on 20,000 rows of the fit {model.score(X[:20_000], y[:20_000]):.3f} (chance 0.001)")


if __name__ == "__main__":
    main()
