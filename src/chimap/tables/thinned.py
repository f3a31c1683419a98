"""Mean and covariance of additive features of a row of which fewer counts are drawn.

Of n counts d are drawn without replacement, c_i of them in bin i. The k_i that are drawn there are hypergeometric, so
that the features psi(k_i) of a bin have the mean and the covariance

    m_i = sum_k P(k | c_i, n, d) psi(k),   V_i = sum_k P(k | c_i, n, d) (psi(k) - m_i) (psi(k) - m_i)',

tables over single counts. Bins are taken as independent of each other: that all of them sum to d is left out, which
ties bins of shares s and t by a correlation of about -sqrt(s t). Many counts are summed over evenly spaced ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from chimap._types import CSR
from chimap.features.additive.base import AdditiveMap
from chimap.normalizations import Normalization
from chimap.tables.depth_moments import DEVIATIONS, evenly_spaced
from chimap.tables.functions import features_of


@dataclass(frozen=True, eq=False)
class ThinnedFeatures:
    """The features of thinned rows.

    Parameters
    ----------
    map : AdditiveMap
        The map of prepared rows.
    normalize : Normalization or None
        The normalisation, a function of an entry and of the total of its row.
    factors : ndarray of shape (bins,) or None
        Factors of the normalised bins.

    Examples
    --------
    One of two counts that are in different bins is drawn:

    >>> import scipy.sparse as sp
    >>> from chimap import OptimalMap
    >>> psi = OptimalMap("intersection", n_terms=1).fit(np.eye(2))
    >>> mean, covariance = ThinnedFeatures(psi, None, None).moments(sp.csr_matrix([[1.0, 1.0]]), np.array([1]))
    >>> mean.round(6).tolist(), covariance.round(6).tolist()
    ([[0.5], [0.5]], [[[0.25]], [[0.25]]])
    """

    map: AdditiveMap
    normalize: Normalization | None
    factors: np.ndarray | None

    def moments(self, counts: CSR, depths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (entries, T) and covariance (entries, T, T) of the features of the entries of rows.

        counts (n, bins) are thinned to depths (n,), which are not above what the rows have.
        """
        lengths = np.diff(counts.indptr)
        totals = np.repeat(np.asarray(counts.sum(axis=1)).reshape(-1), lengths)
        keys = np.stack([np.repeat(np.arange(lengths.size), lengths), counts.data, self._kinds(counts.indices)])
        _, first, alike = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        n_terms, drawn = self.map._n_terms_out, np.repeat(depths, lengths)[first]
        means, covariances = np.empty((first.size, n_terms)), np.empty((first.size, n_terms, n_terms))
        for some, k, chances in _laws(counts.data[first], totals[first], drawn):
            psi = self._features(k, counts.indices[first[some]], drawn[some])
            means[some] = np.einsum("sm,tsm->mt", chances, psi)
            away = psi - means[some].T[:, None]
            covariances[some] = np.einsum("sm,tsm,usm->mtu", chances, away, away)
        return means[alike.reshape(-1)], covariances[alike.reshape(-1)]

    def _kinds(self, bins: np.ndarray) -> np.ndarray:
        """Return numbers that are the same for bins of which equal counts have the same features."""
        return bins if self.map._differs_by_bin or self.factors is not None else np.zeros_like(bins)

    def _features(self, counts: np.ndarray, bins: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """Return features (terms, s, m) of counts (s, m) of bins (m,) in rows of these totals (m,)."""
        entries = counts if self.normalize is None else self.normalize.of_total(counts, totals)
        assert entries is not None
        entries = entries if self.factors is None else entries * self.factors[bins]
        at = features_of(self.map, np.ascontiguousarray(entries).reshape(1, -1), np.tile(bins, counts.shape[0]))
        return at.reshape(-1, *counts.shape)


def _laws(
    counts: np.ndarray, totals: np.ndarray, drawn: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield places (m,) of counts, the numbers (s, m) of these that may be drawn, and their probabilities (s, m)."""
    shares = drawn / totals
    deviations = np.sqrt(counts * shares * (1 - shares))
    low = np.maximum(np.floor(counts * shares - DEVIATIONS * deviations), np.maximum(0, drawn - totals + counts))
    high = np.minimum(np.ceil(counts * shares + DEVIATIONS * deviations), np.minimum(counts, drawn))
    for some, step, size in evenly_spaced(low, high):
        k = low[some] + step * np.arange(size)[:, None]
        n, c, d, drawable = totals[some], counts[some], drawn[some], np.minimum(k, high[some])
        logs = -sum(gammaln(each + 1) for each in (drawable, c - drawable, d - drawable, n - c - d + drawable))
        chances = np.where(k > high[some], 0, np.exp(logs - logs.max(axis=0)))
        yield some, drawable, chances / chances.sum(axis=0)
