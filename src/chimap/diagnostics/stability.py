"""Which bins halves of the rows choose: machines of all halves by downdates of one factor.

The rows are halved at random in pairs, whole groups together. Without a half, the machine of the model has the dual
weights of ``Downdates.without``: nothing is fitted again. All machines answer together, since their outputs are
products of the same kernel values: a bin matters to one of them as far as its outputs move when the bin takes its
value in another row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._progress import Progress
from chimap._threads import threads
from chimap._types import Rows
from chimap._validation import DataError
from chimap.data import Source
from chimap.diagnostics.audited import AuditedRows, without_taught_weights
from chimap.explain.importance import exchange_importance
from chimap.explain.stability import Stability, largest_choice
from chimap.models.model import Model
from chimap.models.row_values import kernel_of_rows
from chimap.reports.rows import taken
from chimap.reports.score import true_answers

_MOST_ROWS = 2000  # rows that are halved: the factor of a half takes the cube of their number
_ROWS_CHANGED = 100  # rows whose bins take other values,
_FEWEST_ROWS_CHANGED = 20
_MOST_CHANGES = 20_000  # and about as many changed rows of them are predicted


def stability(
    model: Model,
    source: Source,
    groups: np.ndarray | None = None,
    n_resamples: int = 100,
    seed: int = 0,
    progress: Progress | None = None,
) -> Stability:
    """Return the share of halves of labelled rows that choose each bin.

    Parameters
    ----------
    model : Model
        The model, whose kernel and strength all halves have.
    source : Source
        Labelled rows of one task, best those of the fit, of which at most 2000 are drawn.
    groups : ndarray of shape (n,), default=None
        The group of each row; groups are halved in place of rows.
    n_resamples : int, default=100
        Number of halves, rounded up to an even number.
    seed : int, default=0
        Seed of the halves and of the rows.
    progress : Progress or None, default=None
        Receives the pairs of halves.

    Notes
    -----
    Weights of bins that were learned from the labels of all rows are set aside: with them, each half would choose the
    bins that the other half has weighed.

    Raises
    ------
    DataError
        If there are fewer than four groups, or what an audit of the rows would raise.
    """
    rng = np.random.default_rng(seed)
    if source.n_rows > _MOST_ROWS:
        places = np.sort(rng.choice(source.n_rows, _MOST_ROWS, replace=False))
        labels = true_answers(model, source)[places]
        source, groups = taken(source, places, labels), None if groups is None else groups[places]
    names, members = (None, None) if groups is None else np.unique(groups, return_inverse=True)
    if names is not None and names.size < 4:
        raise DataError(
            Message("{groups}: {} groups cannot be halved: give four or more, or leave {groups} out.", names.size)
        )
    model = without_taught_weights(model, model.schema.rows(source))
    rows = AuditedRows.of(model, source, groups)
    machine = rows.blocks[0].machine
    X = model.schema.rows(source).take(np.arange(source.n_rows))
    prepared = model.preparation(X, 0, source.name)
    n_pairs = max(1, -(-n_resamples // 2))
    progress = progress or Progress()
    duals = []
    with progress, threads(model.n_jobs):
        progress.stage("stability", n_pairs, "pairs of halves")
        n_halved = rows.n_rows if names is None else names.size
        for _ in range(n_pairs):
            half = np.isin(np.arange(n_halved), rng.permutation(n_halved)[: n_halved // 2])
            is_gone = half if members is None else half[members]
            duals += [machine.without(np.flatnonzero(is_gone)), machine.without(np.flatnonzero(~is_gone))]
            progress.advance()
        filled = max(1, prepared.nonzero()[0].size // rows.n_rows)
        n_changed = max(_FEWEST_ROWS_CHANGED, min(_ROWS_CHANGED, _MOST_CHANGES // filled))
        changed = _arrays.take_rows(prepared, rng.permutation(rows.n_rows)[:n_changed])
        moved = exchange_importance(_outputs(model, prepared, np.hstack(duals)), changed, len(duals))
    highest, lowest = (_arrays.to_dense(ends).ravel() for ends in (prepared.max(axis=0), prepared.min(axis=0)))
    varies = highest > lowest
    n_chosen = largest_choice(int(varies.sum()), n_pairs)
    order = np.argsort(-np.where(varies, moved, -1.0), axis=1, kind="stable")[:, :n_chosen]
    shares = np.bincount(order.ravel(), minlength=model.n_bins) / len(duals)
    n_groups = None if names is None else names.size
    return Stability(model.bin_names, shares, len(duals), n_chosen, int(varies.sum()), rows.n_rows, n_groups)


def _outputs(model: Model, prepared: Rows, duals: np.ndarray) -> Callable[[Rows], np.ndarray]:
    """Return outputs (m, k) of prepared rows by machines with these dual weights (n, k), less their intercepts."""
    kernel, features = kernel_of_rows(model, prepared), model.features
    if kernel is not None:
        return lambda rows: kernel.outputs(features.as_kept(rows), duals)
    weights = features.transform(prepared).T @ duals
    return lambda rows: np.asarray(features.transform(rows) @ weights, dtype=np.float64)
