"""Contributions of the bins of a row to its scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap._validation import DataError
from chimap.features.mapped_functions import MappedModel

_ORDERS = 8  # orders in which bins are changed if a model has no gradient; half are reversals of the others
_STEPS = 64  # groups of bins that are changed one after the other in such an order
_ROWS = 2048  # rows that are mapped at once


@dataclass(frozen=True, eq=False)
class Explanation:
    """Scores as sums over bins: base + contributions.sum(axis=1) is ``decision_function``.

    Parameters
    ----------
    contributions : ndarray of shape (n, bins, outputs)
        Contribution of each bin to the scores of each row, relative to the reference row.
    base : ndarray of shape (outputs,)
        Scores of the reference row.
    bin_names : ndarray of shape (bins,)
        Names of the columns, or their numbers.
    output_names : ndarray of shape (outputs,)
        Classes, or targets.

    Examples
    --------
    >>> added = np.array([[[0.5], [-0.2]]])  # one row, two bins, one score
    >>> explanation = Explanation(added, np.array([0.1]), np.array(["red", "fox"]), np.array(["b"]))
    >>> explanation.scores.round(6).tolist(), explanation.top(row=0, output=0, k=1)
    ([[0.4]], [('red', 0.5)])
    """

    contributions: np.ndarray
    base: np.ndarray
    bin_names: np.ndarray
    output_names: np.ndarray

    @property
    def scores(self) -> np.ndarray:
        """The scores, sums of base and contributions, (n, outputs)."""
        return np.asarray(self.base + self.contributions.sum(axis=1))

    @property
    def importance(self) -> np.ndarray:
        """Root mean square contribution of each bin over rows and outputs, (bins,)."""
        return np.asarray(np.sqrt(np.square(self.contributions).mean(axis=(0, 2))))

    def top(self, row: int, output: int, k: int = 10) -> list[tuple[str, float]]:
        """Return the bins that change a score of a row the most, largest contribution first.

        Parameters
        ----------
        row : int
            Place of the row.
        output : int
            Place of the output.
        k : int, default=10
            Number of bins.

        Returns
        -------
        list of tuple of str and float
            Name and contribution of each bin; contributions may be negative.
        """
        values = self.contributions[row, :, output]
        order = np.argsort(-np.abs(values), kind="stable")[:k]
        return [(str(self.bin_names[i]), float(values[i])) for i in order]


def contributions_of(
    model: MappedModel | None,
    outputs: Callable[[Rows], np.ndarray],
    rows: Rows,
    reference: np.ndarray,
    *,
    random_state: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the contributions of the bins of rows to their scores.

    With a model of mapped rows, the gradient is integrated along the straight line from the mapped reference row to the
    mapped row (integrated gradients); for an additive kernel this is exactly w . (Psi(x_i) - Psi(r_i)). Without such a
    model, bins are changed from the reference to the row, a group at a time, in several random orders and their
    reverses, and each bin gets the mean change of the score (Shapley values by sampling); the sums over bins are exact.

    Parameters
    ----------
    model : MappedModel or None
        The model as a function of mapped rows, or None if it has no such form.
    outputs : callable
        Scores (n, t) of rows; used if there is no mapped model.
    rows : array or CSR matrix of shape (n, bins)
        Rows to explain.
    reference : ndarray of shape (bins,)
        Reference row.
    random_state : int, default=0
        Seed of the random orders.

    Returns
    -------
    contributions : ndarray of shape (n, bins, t)
        Contributions of the bins.
    base : ndarray of shape (t,)
        Scores of the reference row.

    Raises
    ------
    DataError
        If the reference row has another number of bins.

    References
    ----------
    Sundararajan, Taly and Yan, Axiomatic attribution for deep networks, 2017. Castro, Gomez and Tejada, Polynomial
    calculation of the Shapley value based on sampling, 2009.

    Examples
    --------
    The scores here are linear in two bins; ``HistogramClassifier.explain`` passes what it has learned:

    >>> weights = np.array([[1.0], [-2.0]])
    >>> added, base = contributions_of(None, lambda rows: rows @ weights, np.array([[3.0, 1.0]]), np.array([1.0, 1.0]))
    >>> added[0, :, 0].tolist(), base.tolist()
    ([2.0, 0.0], [-1.0])
    """
    if reference.shape != (rows.shape[1],):
        raise DataError(
            f"the reference row has shape {reference.shape}, but rows have {rows.shape[1]} bins. Give one "
            "value for each bin."
        )
    if model is None:
        return _by_orders(outputs, rows, reference, random_state)
    start = model.rows(reference[None])[0]
    base = model.function(start[None])[0]
    out = np.zeros((rows.shape[0], rows.shape[1], base.size))
    for first in range(0, rows.shape[0], _ROWS):
        for i, u in enumerate(model.rows(_arrays.take_rows(rows, slice(first, first + _ROWS))), first):
            out[i] = model.by_bin(model.function.along(start, u), rows.shape[1])
    return out, base


def _by_orders(
    outputs: Callable[[Rows], np.ndarray], rows: Rows, reference: np.ndarray, random_state: int
) -> tuple[np.ndarray, np.ndarray]:
    rng, n_bins = np.random.default_rng(random_state), rows.shape[1]
    base = outputs(reference[None])[0]
    out = np.zeros((rows.shape[0], n_bins, base.size))
    for i in range(rows.shape[0]):
        row = _arrays.to_dense(_arrays.take_rows(rows, slice(i, i + 1)))[0]
        differing = np.flatnonzero(row != reference)
        for _ in range(_ORDERS // 2):
            order = rng.permutation(differing)
            for direction in (order, order[::-1]):
                _add_changes(outputs, row, reference, np.array_split(direction, _STEPS), out[i])
        out[i] /= _ORDERS
    return out, base


def _add_changes(
    outputs: Callable[[Rows], np.ndarray],
    row: np.ndarray,
    reference: np.ndarray,
    groups: list[np.ndarray],
    out: np.ndarray,
) -> None:
    """Add the change of the scores with each group, shared equally among its bins."""
    steps = [group for group in groups if group.size]
    path = np.tile(reference, (len(steps) + 1, 1))
    for k, group in enumerate(steps, 1):
        path[k:, group] = row[group]
    changes = np.diff(outputs(path), axis=0)
    for group, change in zip(steps, changes, strict=True):
        out[group] += change / group.size
