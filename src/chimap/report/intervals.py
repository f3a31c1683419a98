"""Intervals of shares and of means, for rows drawn independently from the population that the model will meet."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

Interval = tuple[float, float]


def wilson_interval(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Interval of a share p of which ``successes`` of ``n`` were seen.

    All p with |p_hat - p| <= z sqrt(p (1 - p) / n), z the normal quantile at (1 + confidence) / 2. It stays
    in [0, 1] and holds its confidence near 0 and 1, where p_hat +- z s does not. ValueError unless
    0 <= successes <= n, n >= 1 and 0 < confidence < 1. Wilson, JASA 22 (1927).

    >>> tuple(round(end, 4) for end in wilson_interval(9, 10))
    (0.5958, 0.9821)
    """
    if not (n >= 1 and 0 <= successes <= n):
        raise ValueError(f"successes and n must fulfil 0 <= successes <= n, n >= 1; got {successes} and {n}.")
    z = normal_quantile(confidence)
    p = successes / n
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    lower = 0.0 if successes == 0 else float(centre - half)
    upper = 1.0 if successes == n else float(centre + half)
    return lower, upper


def normal_quantile(confidence: float) -> float:
    """z with P(|N(0, 1)| <= z) = ``confidence``. Raises ValueError unless it lies between 0 and 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, such as 0.95; got {confidence!r}.")
    return float(ndtri((1 + confidence) / 2))


def mean_interval(values: np.ndarray, z: float) -> Interval:
    """mean +- z s / sqrt(n)."""
    if values.size < 2:
        return float("nan"), float("nan")
    half = z * values.std(ddof=1) / np.sqrt(values.size)
    return float(values.mean() - half), float(values.mean() + half)
