"""Confidence intervals of proportions and means, for rows drawn independently from the population of interest."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from chimap._errors import InputError

Interval = tuple[float, float]


def wilson_interval(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Return Wilson's confidence interval of a proportion p, after ``successes`` in ``n`` trials.

    With p_hat = successes / n and z the normal quantile at (1 + confidence) / 2, it holds all p with

        |p_hat - p| <= z sqrt(p (1 - p) / n).

    It stays within [0, 1] and keeps its confidence near 0 and 1, where p_hat +- z s does not.

    Parameters
    ----------
    successes : int
        Number of successes.
    n : int
        Number of trials, at least 1.
    confidence : float, default=0.95
        Probability that the interval contains p, between 0 and 1.

    Returns
    -------
    tuple of float
        The lower and the upper end.

    Raises
    ------
    ValueError
        Unless 0 <= successes <= n, n >= 1 and 0 < confidence < 1.

    References
    ----------
    Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).

    Examples
    --------
    >>> tuple(round(end, 4) for end in wilson_interval(9, 10))
    (0.5958, 0.9821)
    """
    if not (n >= 1 and 0 <= successes <= n):
        raise InputError(
            f"successes and n must satisfy 0 <= successes <= n, n >= 1; got {successes} and {n}."
        )
    z = normal_quantile(confidence)
    p = successes / n
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    lower = 0.0 if successes == 0 else float(centre - half)
    upper = 1.0 if successes == n else float(centre + half)
    return lower, upper


def normal_quantile(confidence: float) -> float:
    """Return z with P(|N(0, 1)| <= z) = ``confidence``. Raises ValueError unless 0 < confidence < 1."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, such as 0.95; got {confidence!r}.")
    return float(ndtri((1 + confidence) / 2))


def mean_interval(values: np.ndarray, z: float) -> Interval:
    """Return mean +- z s / sqrt(n); NaN for fewer than two values."""
    if values.size < 2:
        return float("nan"), float("nan")
    half = z * values.std(ddof=1) / np.sqrt(values.size)
    return float(values.mean() - half), float(values.mean() + half)
