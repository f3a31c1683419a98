"""How far is the half sweep of a machine in blocks from the work in it, and how many sweeps does its solution take?

The half sweep is compared with its three parts, each at the rate of this process: products of the mapped rows at the
rate of a large product, n^2 p operations; exponentials of distances while a tile is in cache, one for each pair of
rows; and a Cholesky factor for each block. The parts are measured again beside every block, so that both see the
machine in the same state.

The sweeps are compared with other solvers of the same problem, (K + alpha I) a = Y on n = 15 000 rows of MNIST: how
often does each compute all n^2 kernel values until its outputs for the test rows are within 1 % of the exact solution?

- EigenPro 2: gradient steps on mini-batches, without the leading eigenvectors of the matrix of a subsample.
- Conjugate gradients with a Nystrom preconditioner, from columns of the matrix.

    python -m benchmarks.speed.blocks                      # a small size: 12 000 rows, and 5000 for the sweeps
    python -m benchmarks.speed.blocks --rows 60000 --sweep-rows 15000    # the sizes of the figures that are kept

References
----------
Ma and Belkin, Kernel machines that adapt to GPUs for effective large batch training (EigenPro 2, 2019); Frangella,
Tropp and Udell, Randomized Nystrom preconditioning (2021); Diaz, Epperly, Frangella, Tropp and Webber, Robust,
randomized preconditioning for kernel ridge regression (2023).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import islice, pairwise

from benchmarks.measure import mnist, report

# measure sets up the BLAS before NumPy loads it
import numpy as np  # isort: skip
from scipy.linalg import eigh  # isort: skip

from chimap import _blas, _loops, _threads  # isort: skip
from chimap._cholesky import factorise, solve  # isort: skip
from chimap.features.exact import ExactFeatures  # isort: skip
from chimap.machines.block_plan import MOST_BLOCK_ROWS  # isort: skip
from chimap.solvers.block_kernel import block_kernel  # isort: skip
from chimap.solvers.blocks import BlockRidge, core_rows  # isort: skip

ALPHA = 0.1
CLOSE = 0.01  # distance from the outputs of the exact solution, as a share of them
MOST_SWEEPS = 12
ORDER = 2048  # of the product that shows the rate of products
TILE = 512, 1024  # kernel values that stay in cache
EIGENVECTORS, SUBSAMPLE = 600, 8000  # of EigenPro 2
COLUMNS = 1000, 3000  # of the Nystrom preconditioner
JITTER = 1e-6  # on the diagonal of their matrix


def rows_and_targets(n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows and test rows of MNIST, float32, and a target of 1 or -1 for each class, less their means."""
    X, y, Xt, _ = mnist(normalize=True)
    chosen = np.random.default_rng(0).permutation(len(X))[:n_rows]
    Y = 2.0 * (y[chosen, None] == np.arange(10)) - 1
    return X[chosen], Xt, Y - Y.mean(axis=0)


def features_of(X: np.ndarray) -> ExactFeatures:
    """Return the kernel of the benchmark on these rows: one feature a bin, about the square root."""
    return ExactFeatures("exp-chi2", n_terms=1).fit(X)


def blocks_of(n_rows: int, most_rows: int, n_core: int) -> list[slice]:
    """Return blocks of which the first has ``most_rows``, the rows of a factor, and the others those that a core leaves."""
    rest = max(0, n_rows - most_rows)
    later = np.linspace(n_rows - rest, n_rows, -(-rest // (most_rows - n_core)) + 1).round()
    return [slice(int(a), int(b)) for a, b in pairwise([0, *later])]


def machine_of(features: ExactFeatures, Y: np.ndarray, most_rows: int, n_core: int) -> BlockRidge:
    """Return a machine in blocks that has learned nothing yet."""
    kernel = block_kernel(features, most_rows, np.dtype(np.float32))
    return BlockRidge(kernel, Y, None, ALPHA, np.zeros(Y.shape[1]), n_core, is_lifted=features.is_centred)


# --- the half sweep against the work in it


def seconds_of(call: Callable[[], object]) -> np.ndarray:
    """Return the seconds of a call by the clock and those of the processor, which other work on the machine adds less to."""
    began = np.array([time.perf_counter(), time.process_time()])
    call()
    return np.array([time.perf_counter(), time.process_time()]) - began


def least_seconds_of(call: Callable[[], object], repeats: int) -> np.ndarray:
    """Return the least of repeated calls."""
    return np.min([seconds_of(call) for _ in range(repeats)], axis=0)


class Parts:
    """Seconds of the parts of a half sweep, by rates that are measured when they are asked for.

    Parameters
    ----------
    p : int
        Columns of the mapped rows.
    most_rows : int
        Rows of the largest block.
    """

    def __init__(self, p: int, most_rows: int):
        rng = np.random.default_rng(0)
        self._p = p
        self._A, self._B = rng.random((2, ORDER, ORDER), dtype=np.float32)
        self._out = np.empty((ORDER, ORDER), np.float32)
        self._tiles = rng.random((_threads.count(), *TILE), dtype=np.float32)
        self._squares = np.ones(max(TILE), np.float32)
        self._square = np.empty((most_rows, most_rows), np.float32)
        self.seconds = {name: np.zeros(2) for name in ("products", "exponentials", "factors")}

    def add(self, block: slice, n_core: int) -> None:
        """Add the seconds that the parts of a block, and its factor with ``n_core`` other rows, take now."""
        m = block.stop - block.start
        pairs = m * block.start + m**2 / 2
        self.seconds["products"] += pairs * self._p * self._product_seconds()
        self.seconds["exponentials"] += pairs * self._exponential_seconds()
        self.seconds["factors"] += self._factor_seconds(m + n_core)

    def _product_seconds(self) -> np.ndarray:
        """Return the seconds of a multiplication and addition in a product on all threads."""
        return least_seconds_of(lambda: _blas.multiply(self._A, self._B, self._out), 3) / ORDER**3

    def _exponential_seconds(self) -> np.ndarray:
        """Return the seconds of one exponential, by tiles in the caches of all threads."""

        def exponentials(k: int) -> None:
            rows, columns = TILE
            tile = self._tiles[k]
            tile[:] = 0.5
            _loops.distances_to_values(tile, self._squares[:rows], self._squares[:columns], np.float32(1))

        def filling(k: int) -> None:
            self._tiles[k][:] = 0.5

        several = range(len(self._tiles))
        with_filling = least_seconds_of(lambda: _threads.tasks(several, exponentials), 9)
        alone = least_seconds_of(lambda: _threads.tasks(several, filling), 9)
        return np.maximum(0, with_filling - alone) / self._tiles.size

    def _factor_seconds(self, m: int) -> np.ndarray:
        """Return the seconds of the factor of a block."""
        square = self._square[:m, :m] if m < len(self._square) else self._square
        square[:] = 0.5
        square[np.diag_indices(m)] = 2.0
        return seconds_of(lambda: factorise(square))


def half_sweep(n_rows: int, most_rows: int) -> None:
    """Report the time of a half sweep over the time of its parts."""
    X, _, Y = rows_and_targets(n_rows)
    features = features_of(X)
    p = features.rows_.dense.shape[1]
    compiled = machine_of(features, Y, 1000, 100)
    for block in blocks_of(2000, 1000, 100):  # compiles the loops before the clock starts
        compiled.learn(block)
    n_core = core_rows(most_rows)
    blocks, machine = blocks_of(n_rows, most_rows, n_core), machine_of(features, Y, most_rows, n_core)
    parts, seconds = Parts(p, most_rows), np.zeros(2)
    for block in blocks:
        parts.add(block, n_core if block.start else 0)
        seconds += seconds_of(lambda block=block: machine.learn(block))
    for k, clock in enumerate(("by the clock", "of the processor")):
        bound = sum(part[k] for part in parts.seconds.values())
        shown = ", ".join(f"{name} {part[k]:.1f}" for name, part in parts.seconds.items())
        print(f"  seconds {clock}: half sweep {seconds[k]:.1f}; {shown}")
        report(
            f"half sweep / its parts, {n_rows} rows x {p}, {len(blocks)} blocks, {clock}",
            round(seconds[k] / bound, 2),
            "<= 1.3 at 60 000",
        )


# --- sweeps to the exact solution


def by_blocks(
    features: ExactFeatures, Y: np.ndarray, most_rows: int, n_core: int
) -> Iterator[tuple[float, np.ndarray]]:
    """Yield the share of all kernel values computed so far, in units of n^2, and weights, after each sweep.

    Steps are taken in full, which is the fastest way to the exact solution.
    """
    machine, values = machine_of(features, Y, most_rows, n_core), 0.5
    while True:
        for block in blocks_of(len(Y), most_rows, n_core):
            machine.learn(block)
            machine.step = machine.step[:0]  # no length is measured without one
        yield values, machine.weights
        values += 1


def by_eigenpro(K: np.ndarray, Y: np.ndarray, factor: float) -> Iterator[tuple[float, np.ndarray]]:
    """Yield the same for EigenPro 2, with ``factor`` times the step of its theorem.

    A step on a batch B, with residuals g = K_B a + alpha a_B - Y_B, is

        a_B -= eta g,   a_S += eta V D V' K_SB g,   D = diag((1 - l_q / l_i) / l_i),

    for the eigenvectors V and eigenvalues l_i of the matrix of the subsample S.
    """
    n = len(Y)
    rng = np.random.default_rng(0)
    S = np.sort(rng.permutation(n)[: min(SUBSAMPLE, n // 2)])
    q = min(EIGENVECTORS, S.size // 8)
    values, vectors = eigh(K[np.ix_(S, S)], subset_by_index=[S.size - q, S.size - 1], overwrite_a=True)
    tail, values, V = values[0], values[1:], vectors[:, 1:]
    D = (1 - tail / values) / values
    # what remains of K(x, x) = 1 without the leading eigenvectors, at most; and the largest eigenvalue that remains
    rest = (1 - np.square(K[:, S] @ V) @ D).max()
    largest = tail / S.size
    m = int(np.clip(rest / largest, 64, n))
    eta = factor / (rest + (m - 1) * largest)
    a, epochs = np.zeros(Y.shape), S.size**2 / n**2
    while True:
        order = rng.permutation(n)
        for first in range(0, n, m):
            B = order[first : first + m]
            KB = K[B]
            g = KB @ a.astype(np.float32) + ALPHA * a[B] - Y[B]
            a[B] -= eta * g
            a[S] += eta * (V @ (D[:, None] * (V.T @ (KB[:, S].T @ g.astype(np.float32)))))
        epochs += 1
        yield epochs, a


def by_conjugate_gradients(K: np.ndarray, Y: np.ndarray, n_columns: int) -> Iterator[tuple[float, np.ndarray]]:
    """Yield the same for conjugate gradients on each target, preconditioned by a Nystrom approximation U L U' of K.

    P^-1 = U (L + alpha)^-1 (l_r + alpha) U' + (I - U U').
    """
    n = len(Y)
    C = np.sort(np.random.default_rng(0).permutation(n)[:n_columns])
    F = K[:, C].astype(np.float64)
    R = np.linalg.cholesky(F[C] + JITTER * np.eye(n_columns))
    F = np.linalg.solve(R, F.T)  # K is about F'F
    values, vectors = np.linalg.eigh(F @ F.T)
    U = F.T @ (vectors / np.sqrt(values))
    shrunk = ((values[0] + ALPHA) / (values + ALPHA) - 1)[:, None]

    def conditioned(r: np.ndarray) -> np.ndarray:
        return np.asarray(r + U @ (shrunk * (U.T @ r)))

    a, r, done = np.zeros(Y.shape), Y.copy(), n_columns / n
    z = conditioned(r)
    direction, rz = z, np.einsum("it,it->t", r, z)
    while True:
        image = K @ direction.astype(np.float32) + ALPHA * direction
        step = rz / np.einsum("it,it->t", direction, image)
        a, r = a + step * direction, r - step * image
        done += 1
        yield done, a
        z = conditioned(r)
        before, rz = rz, np.einsum("it,it->t", r, z)
        direction = z + rz / before * direction


def sweeps(n_rows: int) -> None:
    """Report how many times each solver computes all kernel values until it is close to the exact solution."""
    X, Xt, Y = rows_and_targets(n_rows)
    features = features_of(X)
    K, Kt = features.transform(X), features.transform(Xt)
    R = K.copy()
    R[np.diag_indices(n_rows)] += np.float32(ALPHA)
    if not factorise(R):
        raise SystemExit("the kernel matrix is singular to rounding")
    exact = Kt @ solve(R, Y)
    del R
    solvers = {
        f"factors of {m} rows, core of {n_core}": by_blocks(features, Y, m, n_core)
        for m in (-(-n_rows // 6), -(-n_rows // 3))
        for n_core in (0, core_rows(m))
    }
    solvers |= {f"EigenPro 2, {factor:g} times its step": by_eigenpro(K, Y, factor) for factor in (1.0, 1.5)}
    solvers |= {f"conjugate gradients, {n} columns": by_conjugate_gradients(K, Y, n) for n in COLUMNS if n < n_rows}
    for name, steps in solvers.items():
        found = []
        for values, weights in islice(steps, MOST_SWEEPS):
            distance = np.linalg.norm(Kt @ weights.astype(np.float32) - exact) / np.linalg.norm(exact)
            found.append((values, distance))
            if distance <= CLOSE or not np.isfinite(distance):
                break
        shown = " ".join(f"{distance:.3f}".lstrip("0") for _, distance in found)
        print(f"  {name}: distances {shown}")
        is_close = found[-1][1] <= CLOSE
        report(
            f"{name}: kernel values to 1 % / n^2, {n_rows} rows",
            round(found[-1][0], 2) if is_close else f"> {found[-1][0]:.1f}",
            "",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=12_000, help="rows of the half sweep")
    parser.add_argument("--sweep-rows", type=int, default=5000, help="rows of the problem that is solved to 1 %%")
    parser.add_argument("--only", choices=("half", "sweeps"), help="run one of the two")
    options = parser.parse_args()
    if options.only != "sweeps":
        half_sweep(options.rows, min(MOST_BLOCK_ROWS, -(-options.rows // 3)))
    if options.only != "half":
        sweeps(options.sweep_rows)


if __name__ == "__main__":
    main()
