"""How close to its matrix products does a pass on a CUDA device run, and how long does ImageNet's shape take?

The benchmark prints the name of the device, its measured rate of products, and the share of that rate that map,
features and moments reach, for landmarks and for random features, with rows on the device and with
rows in the memory of this machine. Then it prints the time for 1.26 million synthetic rows of 1000 bins and 1000
classes with 5000 landmarks and a given strength: pass and solution on the device. Last, it prints the rate at which
narrow rows (28 bins, as in Higgs) go from the memory of this machine through an additive map, compared with bare
copies of page-locked memory.

    python -m benchmarks.speed.gpu
    python -m benchmarks.speed.gpu --device cpu --rows 20000 --narrow 200000 --landmarks 500 --fourier 800  # a dry run
"""

import argparse
import time

import numpy as np

from benchmarks.device import Device
from benchmarks.measure import report
from benchmarks.one_pass import one_pass
from chimap import FourierFeatures, HistogramClassifier, LandmarkFeatures, OptimalMap
from chimap.backends import backend_of
from chimap.moments import FoldMoments, OneVersusAll

BINS, CLASSES, NARROW, BLOCK = 1000, 1000, 28, 262_144


def product_rate(device, order):
    """Return the operations per second of a product of this order on the device."""
    from chimap.backends.torch import float32_products

    torch = device.torch
    A = torch.randn((order, order), device=device.name)
    with float32_products("highest"):
        return 2 * order**3 / device.seconds(lambda: A @ A)


def rows_like_imagenet(n, seed=0):
    """Return sparse-looking float32 counts that sum to one, and classes that depend on them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(CLASSES, size=n)
    X = rng.standard_exponential((n, BINS), dtype=np.float32) ** 3
    X[np.arange(n), y] += 50
    X /= X.sum(axis=1, keepdims=True)
    return X, y


def empty(features):
    """Return empty moments of the features about zero."""
    shift = np.zeros(features._n_features_out)
    return FoldMoments(1, shift.size, CLASSES, shift, np.zeros(CLASSES), np.dtype(np.float32))


def resident(device, features, X, y):
    """Return the seconds per row of features, and of features with moments, for rows that are on the device."""
    from chimap.backends.torch import PIECE_ROWS, TorchMap, TorchMoments, Uploads

    upload = Uploads(device.name)
    moments = empty(features)
    z = TorchMap(features, moments.shift, np.dtype(np.float32), upload)
    sums = TorchMoments([(moments.shift.size, CLASSES)], upload)
    n = min(PIECE_ROWS, len(X))
    rows, targets = z.upload_rows(X[:n]), OneVersusAll(y[:n], CLASSES)
    mapped = device.seconds(lambda: z(rows))
    return mapped / n, device.seconds(lambda: sums.add(0, z(rows), targets)) / n


def passed(device, features, X, y):
    """Return the seconds per row of one pass, from rows in memory to moments in memory."""
    moments = empty(features)
    began = time.perf_counter()
    sums = backend_of(device.name).sums(features, moments)
    one_pass(sums, X, y, CLASSES, 65536)
    return (time.perf_counter() - began) / len(X)


def shares(device, name, features, operations, X, y):
    """Report shares of the device's rate of products, in each precision.

    operations: those of one row; symmetric products count half.
    """
    rate = product_rate(device, features._n_features_out)
    mapped, whole = resident(device, features, X, y)
    report(
        f"{name}: share of the device's product rate, rows on the device", f"{operations / whole / rate:.2f}", ">= 0.6"
    )
    passed(device, features, X[: len(X) // 4], y[: len(X) // 4])
    from_memory = passed(device, features, X, y)
    report(f"{name}: the same, {len(X):,} rows from memory to moments", f"{operations / from_memory / rate:.2f}", "-")
    print(
        f"  product {rate / 1e12:.2f} TFLOP/s; a million rows: features {mapped * 1e6:.2f} s, with moments "
        f"{whole * 1e6:.2f} s, from memory {from_memory * 1e6:.2f} s"
    )


def imagenet(device, n_rows, m):
    """Fit ImageNet's shape with landmarks."""
    X, y = rows_like_imagenet(n_rows)
    model = HistogramClassifier(
        "exp-chi2",
        features="landmarks",
        n_components=m,
        alpha=1.0,
        device=device.name,
        memory="64GiB" if not device.is_host else "4GiB",
        random_state=0,
    )
    began = time.perf_counter()
    model.fit(X, y)
    whole = time.perf_counter() - began
    stages = model.stage_seconds_
    # launching and waiting: the time of the device that the other stages did not hide
    on_device = [stages[name] for name in ("device", "solve") if name in stages]
    report(
        f"{n_rows:,} rows, 1000 bins, 1000 classes, {m} landmarks: seconds of pass and solution",
        f"{sum(on_device):.1f}",
        "< 15 of 1.26 million",
    )
    print(f"  whole fit {whole:.1f} s: " + ", ".join(f"{k} {v:.1f}" for k, v in stages.items()))
    device.print_peak()
    print(f"  accuracy on 20,000 rows of the fit {model.score(X[:20_000], y[:20_000]):.3f} (chance 0.001)")


def narrow(device, n_rows):
    """Compare the bytes per second of a pass over rows of few bins in memory with those of bare copies."""
    rng = np.random.default_rng(0)
    block = rng.standard_exponential((min(n_rows, 1_000_000), NARROW), dtype=np.float32)
    X = np.concatenate([block] * (n_rows // len(block)))
    y = (X[:, 0] > 1).astype(np.int8)
    host = device.torch.from_numpy(block)
    host = host if device.is_host else host.pin_memory()
    copied = block.nbytes / device.seconds(lambda: host.to(device.name, copy=True, non_blocking=True), repeats=20)
    model = HistogramClassifier(
        "chi2", features=OptimalMap(n_terms=3), alpha=1.0, memory="8GiB", device=device.name, random_state=0
    )
    model.fit(X[: len(block)], y[: len(block)])
    began = time.perf_counter()
    model.fit(X, y)
    took = time.perf_counter() - began
    report(
        f"{len(X):,} rows of {NARROW} bins from memory: share of the rate of copies",
        f"{X.nbytes / took / copied:.2f}",
        "1",
    )
    print(
        f"  copies {copied / 1e9:.1f} GB/s; fit {took:.1f} s: {X.nbytes / took / 1e9:.2f} GB/s, {model.stage_seconds_}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=1_260_000, help="rows of ImageNet's shape")
    parser.add_argument("--narrow", type=int, default=100_000_000, help="rows of 28 bins")
    parser.add_argument("--landmarks", type=int, default=5000)
    parser.add_argument("--fourier", type=int, default=8192)
    options = parser.parse_args()
    device = Device(options.device)
    X, y = rows_like_imagenet(min(BLOCK, options.rows))
    landmarks = LandmarkFeatures("exp-chi2", options.landmarks, landmarks="uniform", random_state=0)
    landmarks.fit(X[: 4 * options.landmarks])
    m, p = landmarks._n_features_out, BINS * landmarks.n_terms
    shares(device, f"{m} landmarks", landmarks, 2 * p * m + 2 * m * m, X, y)
    fourier = FourierFeatures(n_components=options.fourier, map=OptimalMap(n_terms=2), random_state=0).fit(X[:4096])
    p, w = fourier.frequencies_.shape
    shares(device, f"{options.fourier} random features", fourier, 2 * p * w + options.fourier**2, X, y)
    imagenet(device, options.rows, options.landmarks)
    narrow(device, options.narrow)


if __name__ == "__main__":
    main()
