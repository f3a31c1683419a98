"""Tables 1 and 2 and Figures 1 and 2 of the paper on the chi2 kernel: what does each approximation cost in accuracy?

As in the paper: exp(-beta (1 - K)) of l1-normalised histograms, beta = 1.5; random features cos(W'Psi(x) + b) over
five terms per bin; principal components of training and test rows together from three times the dimensions; LIBSVM on
the features (through their inner products); several seeds, the same for all methods. C is chosen once per set, for
the exact kernel, on a fifth of the training rows. "Chi2" has no randomness: it has as many terms per bin as the
dimensions allow.

A cell (set, method, seed) is one pass over the rows that serves all dimensions. It is written to
results/chi2_tables.json when it is done, so that an interrupted run continues where it stopped. The page is
results/chi2_tables.md, and its figures are drawn in results/chi2_figures.png.

    python -m benchmarks.papers.chi2_tables --seeds 5                  # what is not there yet, then the page
    python -m benchmarks.papers.chi2_tables --sets caltech --seeds 50  # as many seeds as in the paper
    python -m benchmarks.papers.chi2_tables --page                     # the page alone
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.measure import csr_of, data_file
from benchmarks.papers._chi2_figures import draw
from benchmarks.papers._chi2_page import DIMENSIONS, LANDMARKS, METHODS, TERMS, Cells, page

# measure sets up the BLAS before NumPy loads it
import numpy as np  # isort: skip
from scipy.linalg import eigh  # isort: skip
from sklearn.metrics import balanced_accuracy_score  # isort: skip
from sklearn.svm import SVC  # isort: skip

from chimap import (  # isort: skip
    ChebyshevMap,
    DirectMap,
    Exponential,
    FourierFeatures,
    HomogeneousMap,
    LandmarkFeatures,
    NystroemFeatures,
    OptimalMap,
    SkewedFourierFeatures,
    chi2,
)
from chimap._files import replacing  # isort: skip

RESULTS = Path(__file__).parents[1] / "results"
BETA, N_TERMS, PCA_FROM = 1.5, 5, 3  # as in the paper, secs. 6 and 7.1
CS = (0.5, 5.0, 50.0, 500.0)

MAPS: dict[str, Callable[[int], Any]] = {
    "Chebyshev": lambda n: ChebyshevMap(n_terms=n, scale=1.0),
    "VZ": lambda n: HomogeneousMap(n_terms=n),
    "Direct": lambda n: DirectMap(n_terms=n, nodes="greedy"),
    "Optimal": lambda n: OptimalMap(n_terms=n),
}


class Rows:
    """Training rows, then test rows, l1-normalised, dense float32, with their labels."""

    def __init__(self, X: Any, y: np.ndarray, n_train: int):
        X = X.toarray().astype(np.float32)
        self.X = X / np.maximum(X.sum(axis=1, keepdims=True), 1)
        self.y, self.n = y, n_train

    def accuracy(self, gram: np.ndarray, C: float) -> float:
        """Return the mean accuracy per class of LIBSVM, given the inner products of all rows with all rows."""
        n = self.n
        model = SVC(C=C, kernel="precomputed", cache_size=400).fit(gram[:n, :n], self.y[:n])
        return float(balanced_accuracy_score(self.y[n:], model.predict(gram[n:, :n])))

    def best_C(self, gram: np.ndarray) -> float:
        """Return the best of ``CS`` on a fifth of the training rows."""
        held = np.arange(self.n) % 5 == 0
        order = np.r_[np.flatnonzero(~held), np.flatnonzero(held)]
        part = object.__new__(Rows)
        part.y, part.n = self.y[order], int((~held).sum())
        return max(CS, key=lambda C: part.accuracy(gram[np.ix_(order, order)], C))


def words(name: str, cells: int, n_train: int | None, n_test: int | None) -> Rows:
    """Return counts of visual words without their places: the sums over the cells of the grid."""
    with np.load(data_file(name)) as z:
        X = csr_of(z)
        y, train = z["y"], z["is_train"]
    width = X.shape[1] // cells
    X = sum(X[:, k * width : (k + 1) * width] for k in range(cells))
    rng = np.random.default_rng(0)
    rows, tests = np.flatnonzero(train), np.flatnonzero(~train)
    rows = rows if n_train is None else np.sort(rng.permutation(rows)[:n_train])
    tests = tests if n_test is None else np.sort(rng.permutation(tests)[:n_test])
    chosen = np.r_[rows, tests]
    return Rows(X[chosen], y[chosen].astype(int), rows.size)


# enough rows that a cell takes half a minute on an idle core; the paper has 5100 and 964
SETS: dict[str, Callable[[], Rows]] = {
    "caltech": lambda: words("caltech101_45_bow.npz", 16, None, None),
    "cifar10": lambda: words("cifar10_bow.npz", 4, 2500, 1000),
}


def features_of(method: str, n_terms: int, n_features: int, seed: int) -> Any:
    if method == "Chi2-Skewed":
        return SkewedFourierFeatures(n_components=n_features, form="offset", random_state=seed)
    kernel = Exponential(chi2, BETA / 2)  # 1 - K is half of the squared distance
    return FourierFeatures(
        kernel, n_features, map=MAPS[method](n_terms), sampling="iid", form="offset", random_state=seed
    )


def grams(rows: Rows, features: Any, sizes: list[int]) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (D, inner products of the first D features) for ascending D; the frequencies are drawn only once."""
    Z = features.fit(rows.X[: rows.n]).transform(rows.X)
    total, done = np.zeros((Z.shape[0], Z.shape[0]), np.float32), 0
    for size in sizes:
        part = Z[:, done:size]
        total += part @ part.T
        done = size
        yield size, total * np.float32(Z.shape[1] / size)


def leading(gram: np.ndarray, n_components: int) -> np.ndarray:
    """Return inner products of the leading principal components, given the inner products of the rows."""
    means = gram.mean(axis=0)
    centred = gram - means - means[:, None] + means.mean()
    if n_components >= gram.shape[0] - 1:
        return centred
    # subtract the other components, which are fewer
    values, U = eigh(centred, subset_by_index=[0, gram.shape[0] - n_components - 1], check_finite=False)
    return centred - (U * values) @ U.T


def random_features(rows: Rows, method: str, seed: int, C: float) -> dict[str, float]:
    sizes = list(DIMENSIONS) if method == "Chi2-Skewed" else sorted({d * k for d in DIMENSIONS for k in (1, PCA_FROM)})
    found = {}
    for size, gram in grams(rows, features_of(method, N_TERMS, sizes[-1], seed), sizes):
        if size in DIMENSIONS:
            found[f"{method} {size}"] = rows.accuracy(gram, C)
        if method in MAPS and size // PCA_FROM in DIMENSIONS and size % PCA_FROM == 0:
            found[f"PCA-{method} {size // PCA_FROM}"] = rows.accuracy(leading(gram, size // PCA_FROM), C)
    return found


def nystroem(rows: Rows, seed: int, C: float) -> dict[str, float]:
    found: dict[int, float] = {}
    for size in (min(d, rows.n) for d in DIMENSIONS):
        if size not in found:
            features = NystroemFeatures(Exponential(chi2, BETA / 2), size, landmarks="uniform", random_state=seed)
            Z = features.fit(rows.X[: rows.n]).transform(rows.X)
            found[size] = rows.accuracy((Z @ Z.T).astype(np.float64), C)
    return {f"Nystroem {d}": found[min(d, rows.n)] for d in DIMENSIONS}


def landmarks(rows: Rows, seed: int, C: float) -> dict[str, float]:
    """Landmarks of the exponential kernel by their number, beside random features of several times as many dimensions."""
    kernel, found = Exponential(chi2, BETA / 2), {}
    for m in LANDMARKS:
        Z = LandmarkFeatures(kernel, m, random_state=seed).fit(rows.X[: rows.n]).transform(rows.X)
        found[str(m)] = rows.accuracy((Z @ Z.T).astype(np.float64), C)
    return found


def without_seeds(rows: Rows) -> dict[str, float]:
    """Return the cells without randomness: the exact machines, C, and the chi2 kernel alone."""
    exact = Exponential(chi2, BETA / 2)(rows.X).astype(np.float64)
    C = rows.best_C(exact)
    found = {"C": C, "Exact exp-chi2": rows.accuracy(exact, C)}
    found["Exact chi2"] = rows.accuracy(chi2(rows.X).astype(np.float64), C)
    for d in DIMENSIONS:
        Z = DirectMap(n_terms=max(1, d // rows.X.shape[1])).fit(rows.X[: rows.n]).transform(rows.X)
        found[f"Chi2 {d}"] = rows.accuracy((Z @ Z.T).astype(np.float64), C)
    return found


def kernel_errors(rows: Rows) -> dict[str, float]:
    """Return the relative Frobenius errors by terms per bin (Figure 1).

    They are those of k among 1500 non-zero bins and of K among 500 training rows.
    """
    X = rows.X[: rows.n : max(1, rows.n // 500)].astype(np.float64)
    bins = np.random.default_rng(0).choice(X[X > 0], 1500)[:, None]
    found = {}
    for what, sample in (("bins", bins), ("rows", X)):
        exact = chi2(sample)
        for method, make in MAPS.items():
            for n in TERMS:
                if method != "VZ" or n % 2:
                    Z = make(n).fit_transform(sample)
                    found[f"{what} {method} {n}"] = float(np.linalg.norm(Z @ Z.T - exact) / np.linalg.norm(exact))
    return found


def by_terms(rows: Rows, method: str, seed: int, C: float) -> dict[str, float]:
    """Return the accuracy at the largest number of dimensions, by terms per bin (Figure 2)."""
    size, found = DIMENSIONS[-1], {}
    for n in TERMS:
        if method != "VZ" or n % 2:
            ((_, gram),) = grams(rows, features_of(method, n, size, seed), [size])
            found[str(n)] = rows.accuracy(gram, C)
    return found


def cells(rows: Rows, name: str, seed: int, known: Cells) -> Iterator[tuple[str, Callable[[], dict[str, float]]]]:
    """Return the names of the cells of a set and a seed, and how to compute each; cells without a seed come first."""
    yield f"{name}/exact", lambda: without_seeds(rows)
    yield f"{name}/errors", lambda: kernel_errors(rows)
    C = known[f"{name}/exact"]["C"]
    for method in METHODS:
        yield f"{name}/{method}/{seed}", lambda method=method: random_features(rows, method, seed, C)
    yield f"{name}/Nystroem/{seed}", lambda: nystroem(rows, seed, C)
    yield f"{name}/Landmarks/{seed}", lambda: landmarks(rows, seed, C)


def curve_cells(rows: Rows, name: str, seed: int, known: Cells) -> Iterator[tuple[str, Callable[[], dict[str, float]]]]:
    """Return the same for Figure 2."""
    C = known[f"{name}/exact"]["C"]
    for method in MAPS:
        yield f"{name}/terms/{method}/{seed}", lambda method=method: by_terms(rows, method, seed, C)


def work_through(names: list[str], seeds: int, store: Path) -> None:
    """Compute the missing cells: the tables of all sets, seed by seed, then the curves."""
    known: Cells = json.loads(store.read_text()) if store.exists() else {}
    sets = {name: SETS[name]() for name in names}
    for of_seed in (cells, curve_cells):
        for seed in range(seeds):
            for name, rows in sets.items():
                for cell, compute in of_seed(rows, name, seed, known):
                    if cell in known:
                        continue
                    began = time.perf_counter()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", UserWarning)  # fewer rows than landmarks: the page says so
                        known[cell] = compute()
                    with replacing(store) as path:
                        path.write_text(json.dumps(known, indent=0))
                    print(f"{time.perf_counter() - began:6.1f} s  {cell}  {known[cell]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS), help="of " + ", ".join(SETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--page", action="store_true", help="write the page of what has been computed")
    arguments = parser.parse_args()
    store = RESULTS / "chi2_tables.json"
    if not arguments.page:
        work_through(arguments.sets.split(","), arguments.seeds, store)
    known = json.loads(store.read_text())
    text = page(known, BETA)
    draw(known, RESULTS / "chi2_figures.png")
    (RESULTS / "chi2_tables.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
