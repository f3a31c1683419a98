"""A row of counts as a sample: what fewer counts of the same thing would have shown, and what more would show.

Fewer are drawn from the row itself without replacement (``thinned``), so that its bins are thinned binomially, given
their sum. More counts z follow y, of n in total, by a Dirichlet-multinomial

    z | y ~ Multinomial(N - n, p),   p ~ Dirichlet(alpha),   alpha_i = n (a_i + y_i) / (b_i + n),

where the share of bin i among rows of the kind has a gamma distribution of shape a_i and mean a_i / b_i. With a_i = 0
this is the multinomial at the depth of the row with the uncertainty of its shares (Rubin's Bayesian bootstrap): bins
that are empty stay empty. Shapes and means are found by moments: of counts y_ri with means N_r m_i the variance is
N_r m_i + N_r^2 m_i^2 / a_i.

Source: Rubin, The Bayesian bootstrap (1981); Robinson and Smyth, Moderated statistical tests for assessing differences
in tag abundance (2007), for gammas and counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._types import CSR, JSON, Rows
from chimap._validation import DataError, check_histograms
from chimap.data.rows import regroup
from chimap.data.source import Chunk, Source
from chimap.data.views import View

_MOST_DRAWN = 10**9  # counts of a row from which NumPy draws without replacement
_LARGEST_SHAPE = 50.0  # of a gamma: shares of no bin are more alike than this


def counts_of(rows: Rows, name: str, first_row: int = 0) -> CSR:
    """Return rows of counts as CSR in float64. Raise DataError for entries that are negative or not whole."""
    check_histograms(rows, name=name, first_row=first_row, remedy="Depth is that of counts: give counts.")
    counts = _arrays.without_zeros(_arrays.to_sparse(rows).astype(np.float64))
    broken = np.flatnonzero(counts.data != np.floor(counts.data))
    if broken.size:
        row = int(np.searchsorted(counts.indptr, broken[0], side="right")) - 1
        raise DataError(
            Message(
                "{}, row {}, column {}: {:.6g} is no count. Depth is the number of counts of a row, which shares, "
                "averages and logarithms do not tell: give the counts from which they were made; the model "
                "normalises them as it did in its fit.",
                name,
                first_row + row,
                int(counts.indices[broken[0]]),
                counts.data[broken[0]],
            )
        )
    return counts


def totals_of(counts: CSR) -> np.ndarray:
    """Return the numbers of counts of rows, (n,)."""
    return np.asarray(counts.sum(axis=1)).reshape(-1).astype(np.int64)


def thinned(counts: CSR, depths: np.ndarray, rng: np.random.Generator) -> CSR:
    """Return as many counts of each row, ``depths`` (n,), as a shallower sample would have shown.

    They are drawn without replacement; a row that has no more stays as it is.

    >>> import scipy.sparse as sp
    >>> few = thinned(sp.csr_matrix([[60.0, 0.0, 40.0], [1.0, 2.0, 0.0]]), np.array([10, 5]), np.random.default_rng(0))
    >>> few.sum(axis=1).tolist(), few.toarray()[1].tolist()
    ([[10.0], [3.0]], [1.0, 2.0, 0.0])
    """
    out, totals = counts.copy(), totals_of(counts)
    for row in range(counts.shape[0]):
        _thin(out, row, totals[row], depths[row], rng)
    return _arrays.without_zeros(out)


def _thin(counts: CSR, row: int | np.integer, total: int, depth: int, rng: np.random.Generator) -> None:
    """Leave so many counts of a row with this total, in place."""
    entries = slice(counts.indptr[row], counts.indptr[row + 1])
    filled = counts.data[entries].astype(np.int64)
    if depth < total < _MOST_DRAWN:
        counts.data[entries] = rng.multivariate_hypergeometric(filled, depth)
    elif depth < total:
        counts.data[entries] = rng.binomial(filled, depth / total)


@dataclass(frozen=True, eq=False)
class SharesOfKind:
    """The shares of bins among rows of k kinds, such as classes: their means and the shapes of their gammas.

    Parameters
    ----------
    means, shapes : ndarray of shape (k, bins)
        m_i and a_i = m_i b_i.
    """

    means: np.ndarray
    shapes: np.ndarray

    @classmethod
    def of(cls, counts: CSR, memberships: np.ndarray, usual: np.ndarray) -> SharesOfKind:
        """Return what rows tell of their kinds.

        One row of usual shares, and of shape 1, joins each kind, so that bins that no row fills may be filled.

        Parameters
        ----------
        counts : CSR of shape (n, bins)
            Rows.
        memberships : ndarray of shape (n, k)
            The probability that a row is of a kind.
        usual : ndarray of shape (bins,)
            Shares in the rows of a fit; zeros where they are not known.
        """
        totals, squares = totals_of(counts).astype(np.float64), _arrays.map_values(counts, np.square)
        depth = max(1.0, float(np.median(totals)))
        means, shapes = [], []
        for weights in memberships.T:
            mass, mass_2 = weights @ totals + depth, weights @ totals**2 + depth**2
            m = (counts.T @ weights + depth * usual) / mass
            crossed = counts.T @ (weights * totals)
            spread = squares.T @ weights - 2 * m * crossed + m**2 * (weights @ totals**2) - counts.T @ weights
            variance = (np.maximum(spread, 0) + (depth * m) ** 2) / mass_2
            means.append(m)
            with np.errstate(invalid="ignore", divide="ignore"):
                shapes.append(np.where(m > 0, np.minimum(m**2 / variance, _LARGEST_SHAPE), 0.0))
        return cls(np.array(means), np.array(shapes))

    def pseudo_counts(self, row: np.ndarray) -> np.ndarray:
        """Return alpha (k, bins) of a row (bins,) of each kind; 0 for bins that cannot be filled."""
        total = row.sum()
        with np.errstate(invalid="ignore", divide="ignore"):
            rates = np.where(self.means > 0, self.shapes / self.means, 0.0)
        return total * (self.shapes + row) / (rates + total)


def deeper(
    row: np.ndarray, pseudo_counts: np.ndarray, memberships: np.ndarray, depth: int, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Return n draws (n, bins) of what a row (bins,) would show at a depth that is no less than its own.

    ``pseudo_counts`` (k, bins) are those of each kind of rows, ``memberships`` (k,) their probabilities.

    >>> more = deeper(np.array([3.0, 1.0]), np.array([[3.0, 1.0]]), np.ones(1), 8, 2, np.random.default_rng(0))
    >>> more.sum(axis=1).tolist(), bool((more >= [3.0, 1.0]).all())
    ([8.0, 8.0], True)
    """
    out, further = [], int(depth - row.sum())
    for alpha, times in zip(pseudo_counts, rng.multinomial(n, memberships / memberships.sum()), strict=True):
        of_kind, open_bins = np.tile(row, (times, 1)), np.flatnonzero(alpha > 0)
        if times and further > 0 and open_bins.size:
            gammas = np.maximum(rng.gamma(alpha[open_bins], size=(times, open_bins.size)), 1e-300)
            of_kind[:, open_bins] += rng.multinomial(further, gammas / gammas.sum(axis=1, keepdims=True))
        out.append(of_kind)
    return np.concatenate(out)


LEAST_SHARE, LARGEST_SHARE = 1 / 32, 1 / 2  # of its counts that a thinned copy of a row has


class WithThinnedCopies(View):
    """The rows of a source, each followed by copies of it with fewer counts and the same label.

    The share of the counts that a copy has is drawn anew for each, its logarithm evenly between those of 1/32 and 1/2,
    and they are the same in every pass. Columns of covariates, which are beside the rows, stay.

    Parameters
    ----------
    source : Source
        Rows of counts.
    n_copies : int
        Copies of each row.
    seed : int
        Seed of the draws.

    Examples
    --------
    >>> from chimap.data import ArraySource
    >>> view = WithThinnedCopies(ArraySource(np.array([[90.0, 70.0], [64.0, 0.0]]), ["a", "b"]), 1, seed=0)
    >>> view.labels().tolist(), view.take(np.arange(4)).sum(axis=1).tolist()
    (['a', 'a', 'b', 'b'], [160.0, 59.0, 64.0, 24.0])
    """

    def __init__(self, source: Source, n_copies: int, seed: int) -> None:
        super().__init__(source)
        self.times, self._seed = n_copies + 1, seed
        self.n_rows = source.n_rows * self.times
        self._originals = np.repeat(np.arange(source.n_rows), self.times)
        for name in ("weights", "counts"):
            values = getattr(source, name)
            setattr(self, name, None if values is None else values[self._originals])
        if source.covariates is not None:
            self.covariates = source.covariates.take(self._originals)
        self.row_ids, self.images, self.unread = None, None, {}
        self.held_bytes = source.held_bytes + source.row_bytes
        self.stored_rows = source.stored_rows * self.times

    def chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        """Yield rows and copies in order."""
        y, start = self.labels(), 0
        read = self.whole.chunks(max(1, chunk_rows // self.times))
        blocks = (self._with_copies(chunk.X, np.arange(chunk.start, chunk.start + chunk.X.shape[0])) for chunk in read)
        for X in regroup(blocks, chunk_rows, self.n_rows):
            end = start + X.shape[0]
            yield Chunk(X, None if y is None else y[start:end], start)
            start = end

    def chunks_from(self, first: int, chunk_rows: int, stop: int | None = None) -> Iterator[Chunk]:
        """Yield chunks as ``Source`` does."""
        return Source.chunks_from(self, first, chunk_rows, stop)

    def labels(self) -> np.ndarray | None:
        y = self.whole.labels()
        return None if y is None else y[self._originals]

    def take(self, rows: np.ndarray) -> Rows:
        """Return the rows with these increasing indices among rows and copies."""
        originals, places = np.unique(self._originals[rows], return_inverse=True)
        found = _arrays.take_rows(self.whole.take(originals), places)
        return self._thinned(found, np.asarray(rows))

    def places_in_file(self) -> np.ndarray:
        """Return the positions of the rows that these are, or are copies of."""
        return np.asarray(self.whole.places_in_file()[self._originals])

    def kept_column(self, name: str, missing: object) -> np.ndarray | None:
        """Return None: columns are those of the whole."""
        return None

    def fingerprint(self) -> JSON:
        """Return the fingerprint of the whole, with the copies."""
        return {**self.whole.fingerprint(), "thinned": [self.times - 1, self._seed]}

    def _with_copies(self, X: Rows, originals: np.ndarray) -> Rows:
        """Return rows with their copies."""
        rows = (originals[:, None] * self.times + np.arange(self.times)).reshape(-1)
        return self._thinned(_arrays.take_rows(X, np.repeat(np.arange(X.shape[0]), self.times)), rows)

    def _thinned(self, X: Rows, rows: np.ndarray) -> Rows:
        """Return rows X at these places, with fewer counts in those that are copies."""
        counts = counts_of(X, self.name)
        totals = totals_of(counts)
        for i in np.flatnonzero(rows % self.times):
            rng = np.random.default_rng([self._seed, int(rows[i])])
            share = np.exp(rng.uniform(np.log(LEAST_SHARE), np.log(LARGEST_SHARE)))
            _thin(counts, i, totals[i], max(1, int(np.ceil(share * totals[i]))), rng)
        return _arrays.like(_arrays.as_rows(_arrays.without_zeros(counts), X.dtype), X)
