"""Single rows: likely wrong labels, rows that decide most, near copies with other labels.

Wrong labels of classes. Left-out outputs f become probabilities of the true class, q = softmax(s f + b), where labels
are right but for a share e of them that is drawn from the other classes:

    P(label y | f) = (1 - e) q_y + e (1 - q_y) / (classes - 1),

with s, b and e of greatest likelihood: rows that are wrong with confidence raise e, and not the doubt about all others.
The p-value of a label is the probability, by q, of a true class that is at most as probable. Wrong numbers have the
p-value of their left-out residual over its standard deviation, whose scale is the median of all. Benjamini and
Hochberg turn p-values into the rate of false discoveries among all labels that are at least as doubtful.

References
----------
Benjamini and Hochberg (1995); Northcutt, Jiang and Chuang, Confident learning (2021), for labels by left-out
probabilities; Cook (1977) for rows that decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from scipy.stats import false_discovery_control, norm

from chimap.diagnostics.audited import AuditedRows, Block

NEAR = 0.05  # squared distance of near copies, as a share of the mean one between rows
_MOST_WRONG = 0.4  # share of wrong labels that is believed
_PRIOR = 0.01  # precision of the offsets of classes, which a class of few rows needs
_DOUBT = 10.0  # rate of the prior of the share of wrong labels, which outputs that tell nothing leave open
_STARTS = (-2.0, -6.0)  # logits of that share: many wrong labels, and next to none
_MEDIAN_OF_NORMAL = 0.6745  # median of the size of a standard normal number
_ROWS_AT_ONCE = 512


class Copies(NamedTuple):
    """Two near rows with different labels: their places among the rows, and squared distance over the mean one."""

    row: int
    other: int
    distance: float


@dataclass(frozen=True, eq=False)
class DoubtfulRows:
    """What is doubtful about n rows.

    Parameters
    ----------
    p_values : ndarray of shape (n,)
        p-value of each label.
    rates : ndarray of shape (n,)
        Rate of false discoveries among the labels that are as doubtful, or more.
    looks_like : ndarray of shape (n,)
        The label that the others make of each row.
    order : ndarray of shape (n,)
        Places of the rows, the most doubtful label first.
    share_wrong : float or None
        Estimated share of wrong labels; None for numbers.
    influence : ndarray of shape (n,)
        Root mean square over the other rows of how a left-out output changes when this row goes too.
    n_changed : ndarray of shape (n,) or None
        Number of left-out answers that change then; None for numbers.
    copies : tuple of Copies
        Near copies with other labels, the nearest first.
    """

    p_values: np.ndarray
    rates: np.ndarray
    looks_like: np.ndarray
    order: np.ndarray
    share_wrong: float | None
    influence: np.ndarray
    n_changed: np.ndarray | None
    copies: tuple[Copies, ...]

    @property
    def deciding(self) -> np.ndarray:
        """Places of the rows, those that decide most first."""
        return np.argsort(-self.influence, kind="stable")


def doubtful_rows(rows: AuditedRows) -> DoubtfulRows:
    """Return what is doubtful about each row."""
    influence, changed = rows.by_block(lambda block: np.column_stack(_influence(rows, block))).T
    copies = [pair for block in rows.blocks for pair in _copies(rows, block)]
    share = None
    if rows.classes is None:
        p, looks, closest = _of_numbers(rows)
    else:
        probabilities, share = true_class_probabilities(rows.left_out, np.searchsorted(rows.classes, rows.y))
        p, closest = p_values_of(probabilities, np.searchsorted(rows.classes, rows.y))
        looks = rows.classes[probabilities.argmax(axis=1)]
    return DoubtfulRows(
        p,
        false_discovery_control(p),
        looks,
        np.lexsort((closest, p)),
        share,
        influence,
        None if rows.classes is None else changed.astype(np.intp),
        tuple(sorted(copies, key=lambda pair: pair.distance)),
    )


def true_class_probabilities(outputs: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, float]:
    """Return probabilities of the true classes (n, classes) by left-out outputs (n, t), and the share of wrong labels.

    ``place`` (n,) is the class of each label. See the module.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = np.arange(1000) % 2
    >>> outputs = (2.0 * truth - 1 + 0.3 * rng.normal(size=1000))[:, None]
    >>> labels = np.where(np.arange(1000) < 50, 1 - truth, truth)
    >>> abs(true_class_probabilities(outputs, labels)[1] - 0.05) < 0.01
    True
    """
    F = np.hstack([np.zeros_like(outputs), outputs]) if outputs.shape[1] == 1 else outputs
    n, k = F.shape
    F = F / max(float(outputs.std()), 1e-30)
    is_label = place[:, None] == np.arange(k)

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        scale, share, offsets = np.exp(parameters[0]), _MOST_WRONG * expit(parameters[1]), parameters[2:]
        q = softmax(scale * F + offsets, axis=1)
        own, slope = q[is_label], 1 - share * k / (k - 1)
        likelihood = slope * own + share / (k - 1)
        to_scores = -(slope * own / likelihood)[:, None] * (is_label - q)
        to_share = (_DOUBT - ((1 - own * k) / (k - 1) / likelihood).sum()) * share * (1 - share / _MOST_WRONG)
        value = -np.log(likelihood).sum() + 0.5 * _PRIOR * np.square(offsets).sum() + _DOUBT * share
        to_offsets = to_scores.sum(axis=0) + _PRIOR * offsets
        return value / n, np.array([scale * (to_scores * F).sum(), to_share, *to_offsets]) / n

    bounds = [(-5, 8), (-12, 12), *[(-20, 20)] * k]
    starts = [np.array([0.0, share, *np.zeros(k)]) for share in _STARTS]
    ends = [minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds) for start in starts]
    end = min(ends, key=lambda found: found.fun).x
    return np.exp(log_softmax(np.exp(end[0]) * F + end[2:], axis=1)), float(_MOST_WRONG * expit(end[1]))


def p_values_of(probabilities: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each label the probability of a class that is at most as probable, and its own probability."""
    own = probabilities[np.arange(place.size), place]
    at_most = np.where(probabilities <= own[:, None] * (1 + 1e-9), probabilities, 0.0).sum(axis=1)
    return np.clip(at_most, 0.0, 1.0), own


def _of_numbers(rows: AuditedRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return p-values, the left-out outputs, and minus the size of the residuals in their deviations."""
    variances = rows.by_block(lambda block: block.machine.variances(block.sets))
    scores = np.abs((rows.y - rows.left_out[:, 0]) / np.sqrt(variances))
    scores = scores * _MEDIAN_OF_NORMAL / max(float(np.median(scores)), 1e-30)
    return 2 * norm.sf(scores), rows.left_out[:, 0], -scores


def _influence(rows: AuditedRows, block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Return the influence of the rows of a block, and the number of answers that each changes."""
    n = block.rows.size
    squares, changed = np.zeros(n), np.zeros(n, dtype=np.intp)
    for held in np.arange(n)[:, None] if block.sets is None else block.sets:
        changes = block.machine.changes(held)
        squares += np.square(changes).sum(axis=(0, 2))
        if rows.classes is not None:
            before = rows.left_out[block.rows[held]][:, None]
            changed += (rows.predicted(before + changes) != rows.predicted(before)).sum(axis=0)
    return np.sqrt(squares / max(n - 1, 1)), changed


def _copies(rows: AuditedRows, block: Block) -> list[Copies]:
    """Return the nearest row with another label, of each row of a block that has one nearby, once for each pair."""
    y, found = rows.y[block.rows], {}
    spread = float(np.std(rows.y)) if rows.classes is None else 0.0
    for first in range(0, y.size, _ROWS_AT_ONCE):
        some = slice(first, min(first + _ROWS_AT_ONCE, y.size))
        distances = block.values.closeness(some)
        is_other = y[some, None] != y if rows.classes is not None else np.abs(y[some, None] - y) > spread
        distances[~is_other] = np.inf
        nearest = distances.argmin(axis=1)
        near = distances[np.arange(nearest.size), nearest]
        for row in np.flatnonzero(near <= NEAR).tolist():
            pair = int(block.rows[first + row]), int(block.rows[nearest[row]])
            found[min(pair), max(pair)] = float(near[row])
    return [Copies(row, other, distance) for (row, other), distance in found.items()]
