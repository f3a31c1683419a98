"""The standard error of a score of held-out rows, whatever the score is: the jackknife over parts of the rows.

A race compares candidates by it: the difference of two scores on the same rows has a smaller error than either score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

N_PARTS = 10


def parts_of_rows(n_rows: int, groups: np.ndarray | None, seed: int) -> np.ndarray:
    """Return the part of each row, (n_rows,), numbered from 0; rows of one group are in one part."""
    rng = np.random.default_rng(seed)
    if groups is None:
        return rng.permutation(n_rows) % min(N_PARTS, n_rows)
    _, number = np.unique(groups, return_inverse=True)
    n_groups = int(number.max()) + 1
    return np.asarray((rng.permutation(n_groups) % min(N_PARTS, n_groups))[number])


def scores_without(score: Callable[[np.ndarray], float], parts: np.ndarray) -> np.ndarray:
    """Return the scores (k,) without the rows of each part; NaN if that leaves no rows.

    ``score`` takes the places of rows; ``parts`` (n,) are those of ``parts_of_rows``.
    """
    remaining = (np.flatnonzero(parts != part) for part in range(int(parts.max()) + 1))
    return np.array([score(rows) if rows.size else np.nan for rows in remaining])


def deviations_of(scores: np.ndarray) -> np.ndarray:
    """Return sqrt((k - 1) / k) (s_i - mean of s), (k,), from the scores s_i without the rows of part i.

    Their norm is the standard error of the score. The norm of the differences between two machines, scored on the same
    parts, is the standard error of the difference, which is far smaller if both are wrong on the same rows. A score
    that is not defined without some part counts as the mean; there are no deviations for fewer than two parts, or if no
    score is defined.

    References
    ----------
    Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 11.

    Examples
    --------
    >>> y = np.arange(100.0)
    >>> mean = lambda rows: float(y[rows].mean())
    >>> scores = scores_without(mean, np.arange(100))
    >>> bool(np.isclose(standard_error(deviations_of(scores)), y.std(ddof=1) / 10))
    True
    """
    k, defined = scores.size, np.isfinite(scores)
    if k < 2 or not defined.any():
        return np.zeros(0)
    scores = np.where(defined, scores, scores[defined].mean())
    return np.asarray(np.sqrt((k - 1) / k) * (scores - scores.mean()))


def standard_error(deviations: Sequence[float] | np.ndarray) -> float:
    """Return the norm of the deviations; NaN if there are none."""
    return float(np.linalg.norm(deviations)) if len(deviations) else float("nan")


class Jackknifed(Protocol):
    """A score, greater is better, and its jackknife deviations; none if they are not known."""

    @property
    def score(self) -> float:
        """The score."""
        ...

    @property
    def deviations(self) -> Sequence[float] | np.ndarray:
        """The deviations, for the same parts of the same rows where scores are compared."""
        ...


def error_between(one: Jackknifed, other: Jackknifed) -> float:
    """Return the standard error of the difference of two scores on the same rows; NaN if it is unknown."""
    if len(one.deviations) != len(other.deviations):
        return float("nan")
    return standard_error(np.subtract(one.deviations, other.deviations))


def is_behind(one: Jackknifed, best: Jackknifed, n_errors: float) -> bool:
    """Whether a score is below the best by more than so many standard errors of the difference, if known."""
    return bool(best.score - one.score > n_errors * error_between(one, best))  # False for an unknown (NaN) error


def error_of_mean(values: np.ndarray, groups: np.ndarray | None) -> float:
    """Return the standard error of the mean of values (n,) of rows, of which those of one group vary together.

    With d_g, the sum over group g of the deviations from the mean, it is sqrt(k / (k - 1) sum_g d_g^2) / n for k
    groups, and s / sqrt(n) where each row is a group. Infinite for one group, whose error nothing tells.

    Examples
    --------
    >>> y, groups = np.arange(100.0), np.repeat(np.arange(50), 2)
    >>> bool(np.isclose(error_of_mean(y, None), y.std(ddof=1) / 10))
    True
    >>> bool(np.isclose(error_of_mean(np.repeat(y, 2), np.repeat(np.arange(100), 2)), error_of_mean(y, None)))
    True
    """
    deviations = values - values.mean()
    if groups is not None:
        deviations = np.bincount(np.unique(groups, return_inverse=True)[1], deviations)
    k = deviations.size
    return float(np.sqrt(np.square(deviations).sum() * k / (k - 1)) / values.size) if k > 1 else float("inf")


def independent_rows(groups: np.ndarray | None, n_rows: int) -> float:
    """Return how many independent rows those of groups are worth at least: (sum of sizes)^2 / sum of squared sizes.

    It is Kish's effective size where the rows of a group are all right or all wrong, and n without groups.

    >>> independent_rows(np.array(["a", "a", "b", "b"]), 4)
    2.0
    """
    if groups is None:
        return float(n_rows)
    sizes = np.unique(groups, return_counts=True)[1]
    return float(sizes.sum() ** 2 / np.square(sizes).sum())


def wilson(share: float, error: float, most: float, quantile: float = 1.959964) -> tuple[float, float]:
    """Return Wilson's interval of a share p with a standard error s, which never has width 0.

    It is that of p in n = p (1 - p) / s^2 rows, as many as have this error, and ``most`` at most, which are also taken
    where s tells nothing: it is 0 or not known, or p is 0 or 1.

        (p + z^2 / 2n  +-  z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)

    Parameters
    ----------
    share : float
        The share p, within [0, 1].
    error : float
        Its standard error s, or NaN.
    most : float
        Most rows that the share may count, such as those of ``independent_rows``.
    quantile : float, default=1.959964
        The quantile z; by default that of 95 %.

    References
    ----------
    Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927). Korn and Graubard,
    Confidence intervals for proportions with small expected number of positive counts, Survey Methodology 24 (1998)
    (the effective number of rows).

    Examples
    --------
    >>> [round(end, 3) for end in wilson(1.0, 0.0, 12)]
    [0.758, 1.0]
    """
    share, n = min(max(share, 0.0), 1.0), most
    variance = share * (1 - share)
    if error > 0 and variance > 0:
        n = min(max(1.0, variance / error**2), most)
    reach = quantile**2 / n
    half = np.sqrt(reach * variance + reach**2 / 4)
    low, high = (share + reach / 2 - half) / (1 + reach), (share + reach / 2 + half) / (1 + reach)
    return max(0.0, float(low)), min(1.0, float(high))


def score_interval(
    score: float, error: float, most: float, is_proportion: bool, best: float = 1.0, quantile: float = 1.959964
) -> tuple[float, float]:
    """Return the confidence interval of a score with a standard error; NaN where the error tells nothing.

    Parameters
    ----------
    score, error, most, quantile
        See ``wilson``.
    is_proportion : bool
        Whether the score is from 0 to 1. Its interval is then Wilson's; others are the score +- z standard errors.
    best : float, default=1.0
        The best that there is of other scores; one that is better has no such bound.

    Examples
    --------
    >>> low, high = score_interval(0.9, 0.1, 30, False)
    >>> round(low, 3), high, score_interval(1.0, 0.0, 30, False)
    (0.704, 1.0, (nan, nan))
    """
    if is_proportion:
        return wilson(score, error, most, quantile)
    if not error > 0:
        return float("nan"), float("nan")
    return score - quantile * error, min(best if score <= best else float("inf"), score + quantile * error)
