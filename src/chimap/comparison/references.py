"""What the features are measured against: the exact kernel machine, and the linear model on the rows themselves."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.preprocessing import KernelCenterer
from sklearn.svm import SVC

from chimap import _arrays
from chimap.comparison.learning import RawRows, Targets, learn
from chimap.comparison.rows import Rows
from chimap.kernels import Kernel
from chimap.report.comparison import Reference

_FOLDS = 3
_COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
_STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
_PLAIN_COST = 10.0
_LIBSVM_BYTES = 200e6  # its cache
_LEAST_EXACT = 20


def exact_machine(
    kernel: Kernel, rows: Rows, targets: Targets, n_rows: int, seed: int, memory: int
) -> Reference | None:
    """scikit-learn's SVC (kernel ridge for numbers) with the exact Gram matrix of at most ``n_rows`` rows.

    The rows have the classes in the shares of all; fewer are taken where the matrices would not fit into ``memory``.
    The matrix, of float64 rows, is centred and divided by its mean diagonal, so that C (0.1 to 1000, by three folds)
    means the same for every kernel, also for rows far from 0; the name of the reference says which was used. SVC
    decides among many classes by votes over their pairs, which is more than the one output a class of the ridge: on
    additive kernels it may do better for that alone. None for fewer than 20 rows.
    """
    assert rows.y_train is not None
    assert rows.y_test is not None
    n = min(n_rows, rows.train.shape[0], _rows_within(rows.test.shape[0], memory))
    if n < _LEAST_EXACT:
        return None
    chosen = (
        stratified(rows.y_train, n, seed)
        if targets.classes is not None
        else spread(len(rows.y_train), n, seed)
    )
    train, y = _arrays.as_rows(_arrays.take_rows(rows.train, chosen), np.float64), rows.y_train[chosen]
    if targets.classes is not None and np.unique(y).size < 2:
        return None
    began = time.perf_counter()
    centre = KernelCenterer()
    gram = centre.fit_transform(kernel(train))
    scale = float(np.diagonal(gram).mean()) or 1.0
    middle = y.mean() if targets.classes is None else None  # kernel ridge has no intercept
    search = _search(y, targets, seed).fit(gram / scale, y if middle is None else y - middle)
    seconds = time.perf_counter() - began
    others = centre.transform(kernel(_arrays.as_rows(rows.test, np.float64), train)) / scale
    predicted = search.predict(others)
    if middle is not None:
        predicted = predicted + middle
    what, setting = ("SVM", "C") if middle is None else ("ridge", "alpha")
    used = getattr(search, "best_estimator_", search).get_params()[setting]
    name = f"exact {kernel.name} {what}, {setting} = {used:g}"
    return Reference(name, n, targets.score(rows.y_test, predicted), seconds)


def linear_model(rows: Rows, targets: Targets, seed: int, memory: int) -> Reference:
    """Ridge on the bins themselves, its strength by folds, trained on all rows to learn from."""
    assert rows.y_train is not None
    assert rows.y_test is not None
    found = learn(RawRows(), rows.train, targets.encode(rows.y_train), rows.test, seed, memory)
    score = targets.score(rows.y_test, targets.decode(found.outputs))
    return Reference("linear ridge on the raw rows", rows.train.shape[0], score, found.seconds)


def stratified(y: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Sorted indices of n rows that have the classes in the shares of y, to one row a class.

    >>> y = np.repeat([0, 1], [90, 10])
    >>> np.bincount(y[stratified(y, 20, 0)])
    array([18,  2])
    """
    # a row's place in its class, shuffled, as a share of the class: those with the smallest shares are taken
    order = np.random.default_rng(seed).permutation(len(y))
    _, inverse, counts = np.unique(y[order], return_inverse=True, return_counts=True)
    by_class = np.argsort(inverse, kind="stable")
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    shares = np.empty(len(y))
    shares[by_class] = (np.arange(len(y)) - starts + 0.5) / np.repeat(counts, counts)
    return np.sort(order[np.argsort(shares, kind="stable")[:n]])


def spread(n_rows: int, n: int, seed: int) -> np.ndarray:
    """Sorted indices of n of the rows."""
    return np.sort(np.random.default_rng(seed).choice(n_rows, n, replace=False))


def _rows_within(n_test: int, memory: int) -> int:
    """Rows n whose matrices (n, n), three of them, and (n, n_test), two, fit beside libsvm's cache."""
    free = max(0.0, memory - _LIBSVM_BYTES) / 8
    return int((np.sqrt(4 * n_test**2 + 12 * free) - 2 * n_test) / 6)


def _search(y: np.ndarray, targets: Targets, seed: int) -> Any:
    if targets.classes is None:
        folds: Any = KFold(_FOLDS, shuffle=True, random_state=seed)
        return GridSearchCV(KernelRidge(kernel="precomputed"), {"alpha": _STRENGTHS}, cv=folds)
    if np.unique(y, return_counts=True)[1].min() < _FOLDS:  # folds would lack a class
        return SVC(kernel="precomputed", C=_PLAIN_COST)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    return GridSearchCV(SVC(kernel="precomputed"), {"C": _COSTS}, cv=folds)
