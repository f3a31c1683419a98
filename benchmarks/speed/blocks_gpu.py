"""How close to its products, exponentials and factors does a machine in blocks run on a CUDA device?

The benchmark prints the rates of the device by themselves: float32 products (never TF32), exponentials of a tile, the
factor of a block. Then it sweeps over 60 000 random rows of 784 bins and 10 classes, the shape of MNIST, and prints the
seconds against what these rates allow. Last it fits MNIST without settings but the kernel, or random rows where MNIST
is not there: seconds by stage, accuracy, predictions per second, and the agreement with predictions of the host.

    python -m benchmarks.speed.blocks_gpu                     # under three minutes on an H100
    python -m benchmarks.speed.blocks_gpu --mnist mnist.npz   # a file with x_train, y_train, x_test, y_test
    python -m benchmarks.speed.blocks_gpu --device cpu --rows 3000 --block 1000   # a dry run
"""

import argparse
import time
from pathlib import Path

import numpy as np

from benchmarks.device import Device
from benchmarks.measure import DATA, report
from chimap import HistogramClassifier
from chimap.backends import backend_of
from chimap.features.exact import ExactFeatures
from chimap.solvers.blocks import BlockRidge, core_rows

BINS, CLASSES, TEST_ROWS, HOST_ROWS = 784, 10, 10_000, 1000
ORDER = 8192
SETTINGS = {"features": "exact", "memory": "8GiB", "random_state": 0}


def rates(device, m, tile_columns):
    """Return operations per second of products, seconds of a value's exponential, and of the factor of m rows."""
    from chimap.backends.torch import float32_products

    torch, order = device.torch, min(ORDER, 4 * m)
    with float32_products("highest"):
        A = torch.randn((order, order), device=device.name)
        products = 2 * order**3 / device.seconds(lambda: A @ A)
        tile = torch.full((m, tile_columns), -0.5, device=device.name)
        values = device.seconds(lambda: tile.clamp_(max=0).exp_().neg_()) * 2 / 3 / tile.numel()
        square = torch.rand((m, m), device=device.name) * 0.1
        square += square.T.clone()
        square.diagonal().add_(m)
        factor = device.seconds(lambda: torch.linalg.cholesky_ex(square))
    return products, values, factor


def random_rows(n, seed=0):
    """Return float32 rows of which half the entries are 0, and classes that depend on some of them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(CLASSES, size=n)
    X = rng.standard_exponential((n, BINS), dtype=np.float32) * (rng.random((n, BINS), dtype=np.float32) < 0.5)
    profiles = np.random.default_rng(1).random((CLASSES, BINS), dtype=np.float32)
    X *= 0.6 + 0.8 * profiles[y]
    return X, y


def sweep(device, n, m):
    """Sweep over random rows on the device, and report its seconds against the rates."""
    X, y = random_rows(n)
    Y = np.where(y[:, None] == np.arange(CLASSES), 1.0, -1.0)
    features = ExactFeatures("exp-chi2", n_terms=1).fit(X)
    n_core = core_rows(m)
    later = m - n_core
    starts = [0, *range(m, n, later)]
    blocks = [slice(a, b) for a, b in zip(starts, [*starts[1:], n], strict=True)]
    products, values, factor = rates(device, m, 1024)
    began = time.perf_counter()
    machine = BlockRidge(features, Y, None, 0.1, Y.mean(axis=0), m, np.dtype("float32"), n_core, device.name)
    placed = time.perf_counter() - began
    machine.learn(slice(0, min(m, n)))  # loads the device's libraries
    machine = BlockRidge(features, Y, None, 0.1, Y.mean(axis=0), m, np.dtype("float32"), n_core, device.name)
    taken = np.zeros(3)
    right = 0
    for block in blocks:
        began = time.perf_counter()
        machine.outputs(block)
        after = time.perf_counter()
        outputs = machine.learn(block)
        taken[:2] += after - began, time.perf_counter() - after
        if block.start:
            right += int((outputs.argmax(axis=1) == y[block]).sum())
    began = time.perf_counter()
    machine.left_out(max(0, blocks[-1].stop - blocks[-1].start - 3000))
    taken[2] = time.perf_counter() - began
    pairs = sum((b.stop - b.start) * b.start for b in blocks)
    beside_core = sum((b.stop - b.start) * max(0, b.start - n_core) for b in blocks)
    inside = sum((b.stop - b.start + (n_core if b.start else 0)) ** 2 for b in blocks)
    share = np.array(
        [2 * BINS * (beside_core + inside) / products, (beside_core + inside) * values, len(blocks) * factor]
    )
    whole = taken[1]
    report(f"sweep of {n:,} x {BINS}, {CLASSES} classes, blocks of {m:,}: seconds", f"{whole:.2f}", "-")
    report("relative to products, exponentials and factors at their own rates", f"{whole / share.sum():.2f}", "<= 1.3")
    report(
        "outputs of the blocks alone: share of the rate of float32 products",
        f"{2 * BINS * pairs / products / taken[0]:.2f}",
        ">= 0.6",
    )
    print(
        f"  alone: products {products / 1e12:.2f} TFLOP/s, {values * 1e12:.1f} ps a value, factor of {m:,} rows "
        f"{factor:.3f} s ({m**3 / 3 / factor / 1e12:.1f} TFLOP/s)\n"
        f"  besides the sweep: outputs of all blocks once more {taken[0]:.2f} s, rows to the device {placed:.2f} s, "
        f"3000 rows left out {taken[2]:.2f} s\n"
        f"  allowed: products {share[0]:.2f} s, exponentials {share[1]:.2f} s, factors {share[2]:.2f} s\n"
        f"  accuracy of rows before they were learned {right / max(1, n - m):.4f} (chance {1 / CLASSES})"
    )


def fit(device, name, X, y, X_test, y_test):
    """Fit a machine of all rows, and report its seconds, accuracy and predictions."""
    model = HistogramClassifier("exp-chi2", device=device.name, **SETTINGS)
    began = time.perf_counter()
    model.fit(X, y)
    whole = time.perf_counter() - began
    report(f"fit of {name}, {len(X):,} rows: seconds of the sweep", f"{model.stage_seconds_.get('blocks', 0):.2f}", "-")
    print(f"  whole fit {whole:.1f} s: " + ", ".join(f"{k} {v:.2f}" for k, v in model.stage_seconds_.items()))
    report(f"{name}: accuracy of {len(X_test):,} test rows", f"{model.score(X_test, y_test):.4f}", ">= .985 on MNIST")
    took = device.seconds(lambda: model.predict(X_test), repeats=3)
    kept = model.n_rows_ if "solver" in model._taken else len(X)
    report(f"{name}: predictions per second", f"{len(X_test) / took:,.0f}", "-")
    products = 2 * BINS * kept * len(X_test) / rates(device, 2048, 1024)[0]
    report("relative to bare products of their rows", f"{took / products:.2f}", "-")
    there = model.decision_function(X_test[:HOST_ROWS])
    here = model.set_params(device="cpu").decision_function(X_test[:HOST_ROWS])
    report(
        f"largest difference from outputs of the host, {HOST_ROWS:,} rows",
        f"{np.abs(there - here).max():.1e}",
        "< 1e-3",
    )
    device.print_peak()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--block", type=int, default=10_000, help="rows of a factor")
    parser.add_argument("--mnist", type=Path, default=DATA / "mnist.npz")
    options = parser.parse_args()
    device = Device(options.device)
    backend = backend_of(device.name)
    print(f"  counted as {backend.speed:.0f} times two cores")
    sweep(device, options.rows, options.block)
    if options.mnist.is_file():
        with np.load(options.mnist) as z:
            parts = [z[k] for k in ("x_train", "y_train", "x_test", "y_test")]
        X, X_test = (part.reshape(len(part), -1).astype(np.float32) for part in parts[::2])
        y, y_test = parts[1::2]
        fit(device, "MNIST", X[: options.rows], y[: options.rows], X_test, y_test)
    else:
        X, y = random_rows(options.rows + TEST_ROWS, seed=2)
        fit(device, "random rows", X[TEST_ROWS:], y[TEST_ROWS:], X[:TEST_ROWS], y[:TEST_ROWS])


if __name__ == "__main__":
    main()
