"""How two groups of rows differ in the space of a kernel: the maximum mean discrepancy (MMD), by bin.

The mean rows of two groups have the squared distance

    MMD^2 = |m_a - m_b|^2 = h'K h,    h = 1/n_a in group a and -1/n_b in group b.

The witness function w(x) = sum_i h_i K(x_i, x) is where they differ: large where rows are like group a, low where they
are like b. For an additive kernel, K = sum_j k(x_j, y_j), both are sums over bins, so that each bin has its exact share
of MMD^2. For other kernels, bins are told by their correlation with the witness function.

Source: Gretton, Borgwardt, Rasch, Scholkopf and Smola, A kernel two-sample test (2012).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap import _arrays
from chimap._formatting import number, one_line, percent
from chimap._messages import Message, shown
from chimap._progress import Progress
from chimap._validation import DataError
from chimap.data.source import choose_rows
from chimap.diagnostics.coordinates import EXACT_ROWS, KernelCoordinates, RowsInKernel, permuted_squares
from chimap.diagnostics.formula import DesignTerm
from chimap.features.landmarks.choosing import sample_rows
from chimap.features.landmarks.landmark_features import mapped_by
from chimap.features.over_map import fitted_map
from chimap.selection.shuffles import Shuffles, p_value

_TERMS = 3  # of the map of a bin, where there are too many rows for all pairs: errors are below 1 % of a share


@dataclass(frozen=True, eq=False)
class TwoGroups:
    """The difference between two groups of rows.

    Parameters
    ----------
    groups : tuple of two str
        Their names, a and b.
    counts : tuple of two int
        Their numbers of rows.
    mmd2 : float
        Squared distance of their mean rows, h'K h.
    p : float
        Share of permutations with as large an MMD, the groups as they are included.
    bins : ndarray of text, shape (bins,)
        Names of the bins, those that make most of the difference first.
    shares : ndarray of shape (bins,), or None
        The share of each in MMD^2; None for kernels that are no sum over bins.
    correlations : ndarray of shape (bins,)
        Correlation of each bin with the witness function: positive for bins that are larger in group a.
    means : ndarray of shape (bins, 2)
        The mean of each in the two groups, as the kernel takes it.
    is_exact : bool
        Whether the shares are those of all pairs of rows, and not of a map of each bin.
    """

    groups: tuple[str, str]
    counts: tuple[int, int]
    mmd2: float
    p: float
    bins: np.ndarray
    shares: np.ndarray | None
    correlations: np.ndarray
    means: np.ndarray
    is_exact: bool

    @property
    def in_words(self) -> str:
        """The distance of the groups, and whether it is more than chance."""
        a, b = map(one_line, self.groups)
        return f"{a} and {b}: MMD² = {number(self.mmd2, 3)}, p = {number(self.p, 3)}"

    def more_in(self, n: int, longest: int | None = None) -> list[str]:
        """Return of each of the n bins that make most of the difference how much it is, and the group with more."""
        much = [f"r = {r:+.2f}" for r in self.correlations] if self.shares is None else map(percent, self.shares)
        more = [one_line(self.groups[int(means[1] > means[0])], longest) for means in self.means[:n]]
        return [f"{what}, more in {group}" for what, group in zip(much, more, strict=False)]


def two_groups(
    rows: RowsInKernel,
    coordinates: KernelCoordinates,
    term: DesignTerm,
    groups: tuple[str, str],
    strata: np.ndarray | None,
    n_permutations: int,
    seed: int,
    progress: Progress,
) -> TwoGroups:
    """Return how two groups of a category differ; permutations keep to the strata (n,) of the rows.

    Raises
    ------
    DataError
        If there is no such level, or no permutation exchanges rows of the two.
    """
    assert term.levels is not None
    assert term.codes is not None
    known, codes = [str(level) for level in term.levels], term.codes
    a, b = groups
    if a == b or not set(groups) <= set(known):
        raise DataError(
            Message("{between} must name two different groups of {}; got {!r} and {!r}.", shown(known), a, b)
        )
    in_a = codes == known.index(a)
    both = np.flatnonzero(in_a | (codes == known.index(b)))
    in_a, rows, Z = in_a[both], rows.chosen(both), coordinates.Z[both]
    n_a, n_b = int(in_a.sum()), int((~in_a).sum())
    h = np.where(in_a, 1 / n_a, -1 / n_b)
    shuffles = Shuffles.within(None if strata is None else strata[both], both.size)
    if shuffles.leave(h[:, None]):
        raise DataError(
            Message(
                "{between}: no stratum of {strata} has rows of both {!r} and {!r}, so that no permutation exchanges "
                "them. Leave {strata} out, or compare groups that meet within strata.",
                a,
                b,
            )
        )
    difference = Z.T @ h
    mmd2 = float(difference @ difference)
    permuted = permuted_squares(Z, h[:, None], shuffles, n_permutations, [seed, 1], progress)[:, 0, 0]
    means, _ = rows.sums_with(np.column_stack([in_a / n_a, ~in_a / n_b]))
    correlations = rows.correlations((Z @ difference)[:, None])[:, 0]
    shares = _shares(rows, h)
    order = np.argsort(-(np.abs(correlations) if shares is None else shares), kind="stable")
    return TwoGroups(
        groups,
        (n_a, n_b),
        mmd2,
        p_value(mmd2, permuted),
        np.array(rows.names, dtype=object)[order],
        None if shares is None else shares[order],
        correlations[order],
        means[order],
        rows.n_rows <= EXACT_ROWS,
    )


def _shares(rows: RowsInKernel, h: np.ndarray) -> np.ndarray | None:
    """Return the share of each bin in h'K h; None for kernels that are no sum over bins."""
    kernel, places = rows.kernel, np.arange(rows.n_rows)
    if kernel.inner is not kernel:
        return None
    if rows.n_rows <= EXACT_ROWS:
        columns = _arrays.to_sparse(rows.take(places)).tocsc()
        parts = np.zeros(columns.shape[1])
        for j in range(parts.size):
            filled = slice(columns.indptr[j], columns.indptr[j + 1])  # an entry of 0 adds nothing
            own = h[columns.indices[filled]]
            parts[j] = own @ kernel(columns.data[filled, None]) @ own
    else:
        sample = rows.take(choose_rows(rows.n_rows, sample_rows(_TERMS), 0))
        psi = fitted_map(kernel, sample, _TERMS)
        sums = np.zeros(psi._n_features_out)
        for some, X in rows.chunks():
            sums += np.asarray(mapped_by(psi, X).T @ h[some])
        parts = np.square(sums).reshape(-1, rows.source.n_features).sum(axis=0)
    return parts / (float(parts.sum()) or 1.0)
