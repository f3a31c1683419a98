"""PERMANOVA from its definitions: sums over pairs of rows, and projections on the columns of a design."""

from __future__ import annotations

import numpy as np


def one_way(D2: np.ndarray, groups: np.ndarray) -> tuple[float, float]:
    """F and R2 of squared distances (n, n) between groups, as sums over pairs of rows (Anderson, 2001)."""
    n, levels = groups.size, np.unique(groups)
    total = np.triu(D2, 1).sum() / n
    within = sum(np.triu(D2[np.ix_(groups == g, groups == g)], 1).sum() / np.count_nonzero(groups == g) for g in levels)
    between = total - within
    return (between / (levels.size - 1)) / (within / (n - levels.size)), between / total


def sequential(D2: np.ndarray, designs: list[np.ndarray]) -> list[float]:
    """Sums of squares that each design (n, k) adds to the mean and the designs before it: trace(H G)."""
    n = D2.shape[0]
    J = np.eye(n) - 1 / n
    G = -J @ D2 @ J / 2
    columns, sums = np.ones((n, 1)), []
    before = 0.0
    for design in designs:
        columns = np.hstack([columns, design])
        explained = float(np.trace(columns @ np.linalg.pinv(columns) @ G))
        sums.append(explained - before)
        before = explained
    return sums


def distances_to_means(D2: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Distances of rows to the mean rows of their groups, of squared distances alone, times sqrt(n / (n - 1))."""
    found = np.empty(groups.size)
    for g in np.unique(groups):
        own = groups == g
        inside = D2[np.ix_(own, own)]
        n = own.sum()
        found[own] = np.sqrt((inside.mean(axis=1) - inside.mean() / 2) * n / (n - 1))
    return found
