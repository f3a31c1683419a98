"""Nodes of the direct series: greedy on a histogram of the data, or minimax on an interval."""

from __future__ import annotations

import numpy as np
from scipy.special import ellipk, ellipkm1

from chimap._validation import DataError


def greedy_nodes(centres: np.ndarray, counts: np.ndarray, n_terms: int) -> np.ndarray:
    """Return nodes k_1..k_n, each picked where the weighted remainder of the series is largest.

    With b = t/(t+1) h(t) on centres t: k = t[argmax |b|], then b *= (t-k)/(t+k). Once every centre is a node the error
    at the centres is zero; further nodes then repeat the largest centre.

    Source: Li, Lebanon and Sminchisescu, A linear approximation to the chi2 kernel, Algorithm 1.

    >>> greedy_nodes(np.array([0.1, 1.0]), np.array([1.0, 1.0]), 2)
    array([1. , 0.1])
    """
    b = centres / (centres + 1) * counts
    nodes = np.empty(n_terms)
    for i in range(n_terms):
        nodes[i] = centres[np.argmax(np.abs(b))] if np.any(b) else centres[-1]
        b = b * (centres - nodes[i]) / (centres + nodes[i])
    return nodes


def minimax_nodes(lowest: float, highest: float, n_terms: int) -> np.ndarray:
    """Return the nodes that minimise max |prod (x-k)/(x+k)| over lowest <= x <= highest, largest first.

    k_i = b dn((2i-1) K(m) / (2n), m) with m = 1 - (a/b)^2 solves Zolotarev's problem, which also gives the shift
    parameters of alternating-direction iterations (Wachspress). The nodes depend on the interval alone, and scale with
    it.

    >>> minimax_nodes(1e-4, 1.0, 1)
    array([0.01])
    """
    if not 0 < lowest <= highest:
        raise DataError(f"minimax nodes need 0 < lowest <= highest; got [{lowest:g}, {highest:g}].")
    if lowest == highest:
        return np.full(n_terms, float(highest))
    ratio = lowest / highest
    period, complement = ellipkm1(ratio**2), ellipk(ratio**2)
    u = (2 * np.arange(1, n_terms + 1) - 1) * period / (2 * n_terms)
    # dn is a sum of hyperbolic secants one period apart: all terms are positive, and the small complement (a/b)^2
    # enters unrounded, whereas a routine that takes m = 1 - (a/b)^2 has already lost it.
    shifts = 2 * period * np.arange(-40, 41)
    scale = np.pi / (2 * complement)
    dn = scale * (1 / np.cosh(np.minimum(scale * np.abs(u[:, None] - shifts), 700))).sum(axis=1)
    return highest * dn
