"""Which rows of a pool to sequence deeper: those whose answers chance may have made, and more counts would settle.

The margin of a row at full depth is taken to be normal, with the mean and the variance V of what a much deeper sample
shows (``diagnostics.depth``). That at t times the counts has the variance V_t. It is what is then expected of full
depth, a martingale, so that the two have the covariance V_t. A row is worth

    P(answer now is not that of full depth) - P(answer at t times the counts is not that of full depth),

which is small both where the answer is certain and where no number of counts in reach makes it so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import norm

from chimap._errors import InputError
from chimap._messages import Message
from chimap.data import Source
from chimap.diagnostics.depth import MarginSpread, Samples
from chimap.diagnostics.suggestion import Suggested, Words
from chimap.models.model import Model

_FULL = 32.0  # times the deeper counts: about all that a row would ever show
_NODES = norm.ppf((np.arange(256) + 0.5) / 256)  # of a normal variable, each as probable as the others


def sequence_deeper(
    model: Model,
    rows: Source,
    times: float,
    units: Sequence[np.ndarray],
    prices: np.ndarray,
    n: int,
    rng: np.random.Generator,
) -> Suggested:
    """Return n units of the rows (m,), each of which has a price, whose answers ``times`` the counts settle most."""
    if not times > 1:
        raise InputError(Message("{deeper} must be above 1, as many times as deep; got {!r}.", times))
    samples, _ = Samples.read(model, rows)
    now, later = changes(samples, times, rng)
    worth = np.array([(now - later)[unit].sum() for unit in units])
    order = np.argsort(-worth / [prices[unit].sum() for unit in units], kind="stable")[:n]
    facts = {"counts a row": f"median {np.median(samples.totals):,.0f}", "answers to change": f"{now.sum():.1f}"}
    words = Words(
        "What to sequence deeper",
        "In this order: each is chosen for how much the chance falls that its answer is not that of full depth. "
        "Answers that hold already are worth nothing, and those that so many counts would not settle are worth little.",
        "the answers expected to differ at full depth",
        "Deeper",
    )
    removed = np.cumsum(worth[order]) / max(float(now.sum()), 1e-300)
    return Suggested(order.tolist(), removed, samples.outputs, facts, words)


def changes(rows: Samples, times: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities (n,) that the answers now, and at ``times`` the counts, are not those of full depth.

    Of several tasks, those of the least certain one. Empty rows have none to lose: 0.
    """
    now, later = np.zeros((2, rows.totals.size))
    filled = np.flatnonzero(rows.totals)
    deeper, full = (rows.at_times(filled, many, rng) for many in (times, _FULL * times))
    tolerance = None if rows.tolerance is None else rows.tolerance[filled]
    now[filled] = _differing(MarginSpread(rows.margins[filled], np.zeros_like(full.mean), full.held), full, tolerance)
    later[filled] = np.minimum(now[filled], _differing(deeper, full, tolerance))
    return now, later


def _differing(known: MarginSpread, full: MarginSpread, tolerance: np.ndarray | None) -> np.ndarray:
    """Return the probability (n,) that answers by known margins differ from those of full depth.

    tolerance (n, k): how far predictions of numbers may be; None for classes.
    """
    shared = np.minimum(known.deviation, full.deviation)
    left = np.sqrt(np.maximum(full.deviation**2 - shared**2, 0)) + 1e-12 + 1e-9 * np.abs(full.mean)
    found = np.zeros(full.mean.shape)
    for node in _NODES:
        margin, expected = known.mean + node * known.deviation, full.mean + node * shared
        if tolerance is None:
            found += norm.cdf(-np.sign(margin) * expected / left)
        else:
            low, high = ((margin + sign * tolerance - expected) / left for sign in (-1, 1))
            found += 1 - norm.cdf(high) + norm.cdf(low)
    return np.asarray(found.max(axis=1) / _NODES.size)
