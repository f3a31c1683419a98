"""Mean and variance of an additive score where the counts of a row are drawn to a fixed number.

The score of a row is b + sum_i g_i(k_i), and the further counts k of the bins are Dirichlet-multinomial, sum_i k_i = M,
with parameters alpha_i (``data.depth``). They are independent negative binomials of shapes alpha_i and any common q,
given that they sum to M: not independent, as the sum binds them, but the sum is undone by one integral. With

    phi_i(t) = E exp(i t k_i),   u_i(t) = E[g_i exp(i t k_i)] / phi_i(t),   v_i(t) = E[g_i^2 exp(i t k_i)] / phi_i(t)

over single bins, Phi = prod_i phi_i, U = sum_i u_i, and <f> the mean of f(t) Phi(t) exp(-i t M) over a period,

    mean = <U> / <1>,   mean square = <U^2 + sum_i (v_i - u_i^2)> / <1>.

Phi is as narrow as the sum is wide: some thirty values of t give all digits. A bin with many counts is summed over
evenly spaced ones of them, which for smooth g_i gives all digits too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import gammaln

from chimap import _arrays

DEVIATIONS, _DECAYS = 8.0, 25.0  # of a count above its mean that are summed over; it decays as q^k
_PERIOD = 24.0  # of the sum, in its deviations: farther apart, values are none
_LEAST_LOG = -34.0  # of |Phi|, below which it is 0
_MOST_VALUES = 512  # of a count that are summed over
_NUMBERS = 2**20  # products in memory at once

BinValues = Callable[[np.ndarray, np.ndarray], np.ndarray]


def score_moments(g: BinValues, alpha: np.ndarray, further: int) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance (t,) of sum_i g_i(k_i) for counts k that sum to ``further``.

    Parameters
    ----------
    g : callable
        ``g(k, bins)`` returns the values (m, bins, t) at counts (m, bins) of some of the bins, ascending.
    alpha : ndarray of shape (bins,)
        Parameters of the Dirichlet-multinomial, some above 0; bins of 0 get no count.
    further : int
        Number of counts, above 0.

    Examples
    --------
    A single count falls in the first of two bins with probability 3/4:

    >>> mean, variance = score_moments(lambda k, bins: np.where(bins == 0, k, 0.0)[:, :, None], np.array([3.0, 1.0]), 1)
    >>> mean.round(9).tolist(), variance.round(9).tolist()
    ([0.75], [0.1875])
    """
    open_bins = np.flatnonzero(alpha > 0)
    whole = alpha[open_bins].sum()
    q = further / (further + whole)
    angles = _angles(whole, q)
    turn = np.log1p(-q) - np.log(1 - q * np.exp(1j * angles))  # log phi_i = alpha_i turn
    offset, first, second = 0.0, 0.0, 0.0
    for bins, low, step, size in _alike(open_bins, alpha, q):
        counts = low + step * np.arange(size)[:, None]
        chances = _chances(counts, alpha[bins], q)
        values = g(counts, bins)
        centre = np.einsum("sb,sbt->bt", chances, values)  # less to cancel
        values = values - centre
        waves = np.exp(1j * angles[:, None] * (step * np.arange(size)))
        turned = np.exp(1j * angles[:, None] * low - turn[:, None] * alpha[bins])[:, :, None]
        u, v = (turned * _over_counts(waves, chances, each) for each in (values, np.square(values)))
        offset = offset + centre.sum(axis=0)
        first = first + u.sum(axis=1)
        second = second + (v - np.square(u)).sum(axis=1)
    weights = np.exp(whole * turn - 1j * angles * further)
    weights[1:] *= 2  # negative angles are the conjugates
    weights = weights[:, None] / weights.real.sum()
    mean = (weights * first).real.sum(axis=0)
    square = (weights * (np.square(first) + second)).real.sum(axis=0)
    return offset + mean, np.maximum(square - mean**2, 0.0)


def _over_counts(waves: np.ndarray, chances: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return sum_s waves_js chances_sb values_sbt, (j, bins, t)."""
    products = (chances[:, :, None] * values).reshape(chances.shape[0], -1)
    return np.asarray(waves @ products).reshape(-1, *values.shape[1:])


def _angles(shape: float, q: float) -> np.ndarray:
    """Return the angles from 0 on at which Phi is not 0, (m,), so many that no two sums are taken for each other."""
    half = int(_PERIOD / 2 * np.sqrt(shape * q) / (1 - q) - _DECAYS / np.log(q)) + 1
    angles = 2 * np.pi * np.arange(half + 1) / (2 * half + 1)
    size = shape * np.log((1 - q) / np.abs(1 - q * np.exp(1j * angles)))
    return np.asarray(angles[size > _LEAST_LOG])


def _alike(bins: np.ndarray, alpha: np.ndarray, q: float) -> Iterator[tuple[np.ndarray, np.ndarray, int, int]]:
    """Yield some bins, ascending, the least of their counts that matter, and step and number of those that do."""
    means, deviations = alpha[bins] * q / (1 - q), np.sqrt(alpha[bins] * q) / (1 - q)
    low = np.maximum(0, np.floor(means - DEVIATIONS * deviations))
    high = np.ceil(means + DEVIATIONS * deviations - _DECAYS / np.log(q))
    for places, step, size in evenly_spaced(low, high):
        yield bins[places], low[places], step, size


def evenly_spaced(low: np.ndarray, high: np.ndarray) -> Iterator[tuple[np.ndarray, int, int]]:
    """Yield places of ranges of counts that are summed over alike, ascending, with the step and the number of counts.

    >>> [(places.tolist(), step, size) for places, step, size in evenly_spaced(np.zeros(3), np.array([3.0, 9e3, 2.0]))]
    [([0, 2], 1, 4), ([1], 32, 512)]
    """
    spans = 2 ** np.ceil(np.log2(high - low + 1)).astype(int)
    for span in np.unique(spans):
        step, places = max(1, int(span) // _MOST_VALUES), np.flatnonzero(spans == span)
        for part in _arrays.slices(places.size, max(1, _NUMBERS // _MOST_VALUES)):
            yield places[part], step, int(span) // step


def _chances(counts: np.ndarray, shapes: np.ndarray, q: float) -> np.ndarray:
    """Return the probabilities (s, bins) of counts of negative binomials of these shapes, which sum to 1."""
    logs = gammaln(counts + shapes) - gammaln(shapes) - gammaln(counts + 1) + counts * np.log(q)
    chances = np.exp(logs - logs.max(axis=0))
    return np.asarray(chances / chances.sum(axis=0))
