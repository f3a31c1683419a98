"""The shared labelled data sets with their official splits: unprocessed rows (counts or pixels), float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.measure import csr_of, data_file


@dataclass(frozen=True)
class LabelledSet:
    """Training and test rows, and the usual score of the data set: "accuracy", "roc_auc" or "r2"."""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    scoring: str = "accuracy"
    groups: np.ndarray | None = None

    def some(self, n_rows: int, seed: int) -> LabelledSet:
        """Return the set with at most ``n_rows`` training rows, drawn by ``seed``; the test part stays whole."""
        chosen = np.sort(np.random.default_rng(seed).permutation(self.X.shape[0])[:n_rows])
        groups = None if self.groups is None else self.groups[chosen]
        return LabelledSet(self.name, self.X[chosen], self.y[chosen], self.X_test, self.y_test, self.scoring, groups)


def _pixels(name: str) -> LabelledSet:
    with np.load(data_file(f"{name}.npz")) as z:
        X, Xt = (z[k].reshape(len(z[k]), -1).astype(np.float32) for k in ("x_train", "x_test"))
        return LabelledSet(name, X, z["y_train"], Xt, z["y_test"])


def _counts(name: str, file: str, scoring: str = "accuracy") -> LabelledSet:
    with np.load(data_file(f"{file}.npz")) as z:
        X, y, train = csr_of(z), z["y"], z["is_train"]
    return LabelledSet(name, X[train], y[train], X[~train], y[~train], scoring)


def _hmp() -> LabelledSet:
    with np.load(data_file("hmp_otu_counts.npz")) as z:
        known = np.array([not n.endswith(b"_other") for n in z["site_names"]])[z["y_site"]]
        X, y, person = csr_of(z)[known], z["y_site"][known], z["subject"][known]
    test = person % 3 == 0
    return LabelledSet("hmp", X[~test], y[~test], X[test], y[test], groups=person[~test])


def _moses() -> LabelledSet:
    with np.load(data_file("moses750k_smiles.npz")) as z:
        n = z["lengths"].astype(np.int64)
        letters, codes = np.unique(z["chars"], return_inverse=True)
        y, train = z["logp_milli"] / 1000, z["is_train"]
    rows = np.repeat(np.arange(n.size), n)
    inside = rows[1:] == rows[:-1]
    pairs = (codes[:-1] * letters.size + codes[1:])[inside]
    shape = (n.size, letters.size**2)
    X = sp.csr_matrix((np.ones(inside.sum(), np.float32), (rows[1:][inside], pairs)), shape=shape)
    X.sum_duplicates()
    X, Xt = X[train], X[~train]
    used = np.flatnonzero(X.getnnz(axis=0))  # 256 of 676 pairs of letters: the others say nothing
    return LabelledSet("moses logP", X[:, used], y[train], Xt[:, used], y[~train], "r2")


SETS: dict[str, Callable[[], LabelledSet]] = {
    "mnist": lambda: _pixels("mnist"),
    "fashion_mnist": lambda: _pixels("fashion_mnist"),
    "caltech words": lambda: _counts("caltech words", "caltech101_45_bow"),
    "cifar words": lambda: _counts("cifar words", "cifar10_bow"),
    "newsgroups": lambda: _counts("newsgroups", "newsgroups20_counts"),
    "hmp": _hmp,
    "hiv": lambda: _counts("hiv", "hiv_morgan_counts", "roc_auc"),
    "moses logP": _moses,
}
