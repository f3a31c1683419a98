"""How close to its products, exponentials and factors does a machine in blocks run on a CUDA device?

The benchmark prints the rates of the device by themselves: float32 products (never TF32), exponentials of a tile, the
factor of a block; and what tiles of kernel values would take, and how wrong they would be, by products in
TF32. Then it sweeps over 60 000 random rows of 784 bins and 10 classes, the shape of MNIST, and prints the seconds
against what these rates allow. Last it fits whole sets without any setting but the device: score, seconds by stage,
blocks, sweeps, predictions per second, and the agreement with predictions of the host.

    python -m benchmarks.speed.blocks_gpu                     # all parts, about four minutes on an H100
    python -m benchmarks.speed.blocks_gpu --parts rates,mnist
    python -m benchmarks.speed.blocks_gpu --device cpu --rows 3000 --block 1000   # a dry run
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise

import numpy as np

from benchmarks.device import Device
from benchmarks.measure import report
from benchmarks.sets import SETS, LabelledSet
from chimap import HistogramClassifier, HistogramRegressor
from chimap.backends import backend_of
from chimap.data import ArraySource
from chimap.engines import Progress
from chimap.features.exact import ExactFeatures
from chimap.solvers.block_kernel import block_kernel
from chimap.solvers.blocks import BlockRidge, core_rows

BINS, CLASSES, TEST_ROWS, HOST_ROWS = 784, 10, 10_000, 1000
ORDER, TILE = 8192, (8192, 2048)
FITTED = {"mnist": ">= .985", "fashion_mnist": ">= .902", "moses logP": ">= .955 at 700 000 rows"}
PARTS = ("rates", "sweep", *FITTED)


class Rates:
    """Operations per second of products, and seconds of a value's exponential and of factors, each by itself."""

    def __init__(self, device: Device, most_rows: int):
        from chimap.backends.torch import float32_products

        torch, order = device.torch, min(ORDER, 4 * most_rows)
        self._device = device
        with float32_products("highest"):
            A = torch.randn((order, order), device=device.name)
            self.products = 2 * order**3 / device.seconds(lambda: A @ A)
        tile = torch.full((most_rows, 1024), -0.5, device=device.name)
        self.exponential = device.seconds(lambda: tile.clamp_(max=0).exp_().neg_()) * 2 / 3 / tile.numel()

    def factor(self, m: int) -> float:
        """Return the seconds of the factor of m rows."""
        torch = self._device.torch
        square = torch.rand((m, m), device=self._device.name) * 0.1
        square += square.T.clone()
        square.diagonal().add_(m)
        return self._device.seconds(lambda: torch.linalg.cholesky_ex(square), repeats=2)

    def parts_of(self, blocks: list[int], n_core: int, p: int, n_sweeps: int = 1) -> np.ndarray:
        """Return the seconds (3,) of products, exponentials and factors of sweeps over blocks of so many rows."""
        ends = np.cumsum(blocks)
        others = sum(m * max(0, end - m - n_core) for m, end in zip(blocks, ends, strict=True))
        again = sum(m * max(0, int(ends[-1]) - n_core) for m in blocks)
        rows = [m + (n_core if k else 0) for k, m in enumerate(blocks)]
        values = others + (n_sweeps - 1) * again + n_sweeps * sum(m**2 for m in rows)
        factors = n_sweeps * sum(rows.count(m) * self.factor(m) for m in set(rows))
        return np.array([2 * p * values / self.products, values * self.exponential, factors])


def random_rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return float32 rows of which half the entries are 0, and classes that depend on some of them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(CLASSES, size=n)
    X = rng.standard_exponential((n, BINS), dtype=np.float32) * (rng.random((n, BINS), dtype=np.float32) < 0.5)
    profiles = np.random.default_rng(1).random((CLASSES, BINS), dtype=np.float32)
    X *= 0.6 + 0.8 * profiles[y]
    return X, y


def narrower(device: Device, rates: Rates) -> None:
    """Report tiles of kernel values whose products are in other precisions: their seconds and their errors.

    Rows are rounded before anything else, so that equal rows stay equal; the squares are those of the rounded rows.
    """
    from chimap.backends.torch import float32_products

    torch, (m, k) = device.torch, TILE if not device.is_host else (512, 256)
    X, _ = random_rows(m)
    rows = torch.from_numpy(np.sqrt(X))
    rows = (rows - rows.mean(dim=0)).to(device.name)
    weights = torch.randn((k, CLASSES), device=device.name)

    def values(some, products):
        squares = some.square().sum(dim=1)
        gamma = float(0.5 / squares.mean())
        with float32_products(products):
            tile = some @ some[:k].T
        tile.mul_(2 * gamma).sub_(gamma * squares[:, None]).sub_(gamma * squares[None, :k])
        return tile.clamp_(max=0).exp_()

    def bare(some, products):
        with float32_products(products):
            return (some @ some[:k].T).clamp_(max=0).exp_() @ weights

    tf32 = (rows.view(torch.int32) & ~0x1FFF).view(torch.float32)  # ten bits after the first, as its products take
    exact = values(rows.double(), "highest")
    wholes = {"float32": (rows, "highest"), "TF32": (tf32, "high")}
    slowest = 0.0
    for name, (some, products) in wholes.items():
        took = device.seconds(lambda some=some, products=products: bare(some, products))
        slowest = slowest or took
        error = (values(some, products).double() - exact).abs()
        report(
            f"tile of {m} x {k} values of {BINS} columns, {name}: share of float32's seconds",
            f"{took / slowest:.2f}",
            "-",
        )
        print(f"  {took * 1e6:.0f} us; errors of values: mean {float(error.mean()):.1e}, most {float(error.max()):.1e}")


def sweep(device: Device, rates: Rates, n: int, m: int) -> None:
    """Sweep over random rows on the device, and report its seconds against the rates."""
    X, y = random_rows(n)
    Y = np.where(y[:, None] == np.arange(CLASSES), 1.0, -1.0)
    features = ExactFeatures("exp-chi2", n_terms=1).fit(X)
    n_core = core_rows(m)
    starts = [0, *range(m, n, m - n_core), n]
    blocks = [slice(a, b) for a, b in pairwise(starts)]

    def machine() -> BlockRidge:
        kernel = block_kernel(features, m, np.dtype("float32"), device.name)
        return BlockRidge(kernel, Y, None, 0.1, Y.mean(axis=0), n_core, is_lifted=features.is_centred)

    machine().learn(slice(0, min(m, n)))  # loads the device's libraries
    began = time.perf_counter()
    ridge = machine()
    placed = time.perf_counter() - began
    alone = whole = 0.0
    right = 0
    for block in blocks:
        began = time.perf_counter()
        ridge.outputs(block)
        after = time.perf_counter()
        outputs = ridge.learn(block)
        alone, whole = alone + after - began, whole + time.perf_counter() - after
        if block.start:
            right += int((outputs.argmax(axis=1) == y[block]).sum())
    began = time.perf_counter()
    ridge.left_out(max(0, blocks[-1].stop - blocks[-1].start - 3000))
    left_out = time.perf_counter() - began
    share = rates.parts_of([b.stop - b.start for b in blocks], n_core, BINS)
    pairs = sum((b.stop - b.start) * b.start for b in blocks)
    report(f"sweep of {n:,} x {BINS}, {CLASSES} classes, blocks of {m:,}: seconds", f"{whole:.2f}", "-")
    report("relative to products, exponentials and factors at their own rates", f"{whole / share.sum():.2f}", "<= 1.3")
    report(
        "outputs of the blocks alone: share of the rate of float32 products",
        f"{2 * BINS * pairs / rates.products / alone:.2f}",
        ">= 0.6",
    )
    print(
        f"  besides the sweep: outputs of all blocks once more {alone:.2f} s, rows to the device {placed:.2f} s, "
        f"3000 rows left out {left_out:.2f} s\n"
        f"  allowed: products {share[0]:.2f} s, exponentials {share[1]:.2f} s, factors {share[2]:.2f} s\n"
        f"  accuracy of rows before they were learned {right / max(1, n - m):.4f} (chance {1 / CLASSES})"
    )


class Sweeps(Progress):
    """Counts the sweeps of a fit, and keeps what it says of its scores."""

    def __init__(self) -> None:
        self.count, self.notes = 0, [""]

    def stage(self, name: str, total: int | None, unit: str = "rows") -> None:
        self.count += name == "blocks" or name.startswith("sweep ")

    def advance(self, amount: int = 1) -> None: ...

    def note(self, text: str, *, matters: bool = False) -> None:
        self.notes.append(text)


def fit(device: Device, rates: Rates, given: LabelledSet, target: str) -> None:
    """Fit a set with no setting but the device, and report its score, its seconds and its predictions."""
    n = given.X.shape[0]
    estimator = HistogramRegressor if given.scoring == "r2" else HistogramClassifier
    estimator(device=device.name, random_state=0).fit(given.X[:3000], given.y[:3000])  # compiles the loops
    model, sweeps = estimator(device=device.name, random_state=0), Sweeps()
    began = time.perf_counter()
    model.fit_source(ArraySource(given.X, given.y), progress=sweeps)
    whole = time.perf_counter() - began
    report(f"{given.name}, {n:,} rows, no settings: seconds", f"{whole:.1f}", "-")
    report(
        f"{given.name}: {given.scoring} of {given.y_test.size:,} test rows",
        f"{model.score(given.X_test, given.y_test):.4f}",
        target,
    )
    print(f"  {model.describe()}")
    print("  seconds: " + ", ".join(f"{name} {took:.2f}" for name, took in model.stage_seconds_.items()))
    for note in sweeps.notes[-8:]:
        print(f"  {note}")
    blocks = getattr(model, "block_rows_", None)
    if blocks is not None:
        sizes = ", ".join(f"{m:,}" for m in blocks[:3])
        p, n_core = sum(kept.n_columns for kept, _ in model.features_.summands), core_rows(int(blocks[0]))
        share = rates.parts_of(list(blocks), n_core, p, sweeps.count)
        print(
            f"  {sweeps.count} sweeps over {len(blocks)} blocks of {sizes} .. rows of {p} columns; allowed: products "
            f"{share[0]:.2f} s, exponentials {share[1]:.2f} s, factors {share[2]:.2f} s"
        )
        report("sweeps relative to these", f"{model.stage_seconds_['blocks'] / share.sum():.2f}", "-")
    rows = given.X_test[:TEST_ROWS]
    took = device.seconds(lambda: model.predict(rows), repeats=3)
    report(f"{given.name}: predictions per second, {rows.shape[0]:,} rows", f"{rows.shape[0] / took:,.0f}", "-")
    one = device.seconds(lambda: model.predict(rows[:1]), repeats=9)
    report(f"{given.name}: milliseconds of one prediction", f"{one * 1e3:.2f}", "-")
    some = rows[:HOST_ROWS]
    outputs = model.decision_function if given.scoring != "r2" else model.predict
    there = outputs(some)
    model.set_params(device="cpu")
    report(
        f"{given.name}: largest difference from outputs of the host",
        f"{np.abs(there - outputs(some)).max():.1e}",
        "< 1e-3",
    )
    device.print_peak()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=10**6, help="rows of each set, at most")
    parser.add_argument("--block", type=int, default=10_000, help="rows of a factor")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    options = parser.parse_args()
    device = Device(options.device)
    parts = options.parts.split(",")
    print(f"  counted as {backend_of(device.name).speed:.0f} times two cores")
    rates = Rates(device, options.block)
    print(
        f"  alone: products {rates.products / 1e12:.2f} TFLOP/s, {rates.exponential * 1e12:.1f} ps a value, factor of "
        f"{options.block:,} rows {rates.factor(options.block):.3f} s"
    )
    if "rates" in parts:
        narrower(device, rates)
    if "sweep" in parts:
        sweep(device, rates, min(options.rows, 60_000), options.block)
    for name, target in FITTED.items():
        if name in parts:
            fit(device, rates, SETS[name]().some(options.rows, 0), target)


if __name__ == "__main__":
    main()
