"""The direct series: a rational map of the chi2 kernel that converges geometrically."""

from __future__ import annotations

from types import ModuleType

import numpy as np
from scipy.special import ellipk, ellipkm1

from chimap import _arrays, _loops
from chimap._errors import InputError
from chimap._onnx import Value, stacked
from chimap._types import Array, Rows
from chimap._validation import DataError, check_choice
from chimap.features.additive.base import AdditiveMap
from chimap.features.additive.densities import counted, log_histogram
from chimap.kernels import Kernel


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


class DirectMap(AdditiveMap):
    """Map bins to the n_terms first terms of a rational series of the chi2 kernel.

        Psi_q(x) = prod_{p<q} (x-k_p)/(x+k_p) * 2 sqrt(k_q) x/(x+k_q),  q = 1..n_terms.

    The remainder after n terms is exactly prod_p (x-k_p)(y-k_p)/((x+k_p)(y+k_p)) * 2xy/(x+y): it is zero at the nodes
    and falls geometrically with n. Psi is also the Cholesky factor of the kernel with landmarks k_1..k_n.

    Parameters
    ----------
    kernel : str or AdditiveKernel, default="chi2"
        "chi2", or its gamma-homogeneous or signed variant.
    n_terms : int, default=3
        Features for each bin.
    nodes : str or array of shape (n_terms,), default="greedy"
        "greedy" (Algorithm 1 of the paper, on a histogram of the data), "minimax" (smallest worst error over the range
        of the data, for when small entries matter as much as frequent ones), or positive numbers to use as nodes.
    per_bin : bool, default=False
        Choose nodes for each bin from its own values, for bins of different ranges; not with given nodes. Bins without
        values take the nodes of all values together.

    Attributes
    ----------
    nodes_ : ndarray of shape (n_terms,) or (n_terms, bins)
        The nodes k_q; a column for each bin with ``per_bin``.
    kernel_ : AdditiveKernel
        The exact kernel.

    References
    ----------
    Li, Lebanon and Sminchisescu, A linear approximation to the chi2 kernel with geometric convergence, sec. 4.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.25, 0.75], [0.5, 0.5]])
    >>> Z = DirectMap(n_terms=3).fit_transform(X)
    >>> Z.shape, bool(abs(Z @ Z.T - [[1, 0.93333333], [0.93333333, 1]]).max() < 1e-8)
    ((2, 6), True)
    """

    kernels = ("chi2",)
    _maps_plain_kernel = True

    nodes_: np.ndarray

    def __init__(
        self, kernel: str | Kernel = "chi2", n_terms: int = 3, nodes: float | str = "greedy", per_bin: bool = False
    ):
        self.kernel = kernel
        self.n_terms = n_terms
        self.nodes = nodes
        self.per_bin = per_bin

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.nodes, str):
            check_choice(self.nodes, "nodes", ("greedy", "minimax"))
        else:
            self._given_nodes()
            if self.per_bin:
                raise InputError("per_bin chooses nodes for each bin; with given nodes it must be False.")

    @property
    def _n_terms_out(self) -> int:
        return int(self.nodes_.shape[0])

    def _fit_rows(self, rows: Rows) -> None:
        super()._fit_rows(rows)
        if self.per_bin:
            pooled: np.ndarray = self.nodes_
            values, starts = _arrays.values_by_bin(rows)
            self.nodes_ = np.empty((self.n_terms, starts.size - 1))
            for i in range(starts.size - 1):
                bin_values = values[starts[i] : starts[i + 1]]
                self.nodes_[:, i] = self._nodes_of(*counted(bin_values)) if bin_values.size else pooled
        # The reciprocal of a subnormal number is infinite.
        self.nodes_ = np.maximum(self.nodes_, np.finfo(rows.dtype).tiny)

    def _fit_values(self, values: np.ndarray, counts: np.ndarray) -> None:
        self.nodes_ = self._nodes_of(values, counts)

    def _nodes_of(self, values: np.ndarray, counts: np.ndarray) -> np.ndarray:
        if not isinstance(self.nodes, str):
            return self._given_nodes()
        if self.nodes == "greedy":
            return greedy_nodes(*log_histogram(values, counts), self.n_terms)
        lowest, highest = (float(values.min()), float(values.max())) if values.size else (1.0, 1.0)
        return minimax_nodes(lowest, highest, self.n_terms)

    @property
    def _fits_by_bin(self) -> bool:
        return bool(self.per_bin)

    @property
    def _differs_by_bin(self) -> bool:
        return bool(self.per_bin)

    def _given_nodes(self) -> np.ndarray:
        nodes = np.array(self.nodes, dtype=np.float64)
        if nodes.shape != (self.n_terms,) or not np.all(np.isfinite(nodes) & (nodes > 0)):
            raise InputError(
                f"nodes must be 'greedy', 'minimax' or {self.n_terms} positive numbers (n_terms of them); "
                f"got {self.nodes!r}."
            )
        return nodes

    def _formula(self, xp: ModuleType, x: Array) -> Array:
        product, terms = xp.ones_like(x), []
        for k in _arrays.as_like(self.nodes_, x):  # scalars, or rows (bins,) with per_bin
            share = product / (x + k)
            terms.append(2 * xp.sqrt(k) * (x * share))
            product = (x - k) * share
        return xp.stack(terms, axis=1)

    def _evaluate(self, magnitudes: np.ndarray, bins: np.ndarray, out: np.ndarray) -> None:
        nodes = self.nodes_.astype(magnitudes.dtype)
        if self.per_bin:
            _loops.direct_features_by_bin(magnitudes, nodes[:, bins], out)
        else:
            _loops.direct_features(magnitudes, nodes, out)

    def _onnx_terms(self, x: Value) -> Value:
        values: list[Value] = []
        product: Value | None = None
        for k in self.nodes_:  # a number, or one number per bin
            share = x.graph.constant(np.ones(1, x.dtype)) / (x + k) if product is None else product / (x + k)
            values.append(x * share * (2 * np.sqrt(k)))
            product = (x - k) * share
        return stacked(values)
