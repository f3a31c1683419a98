"""Words weighted by how rare they are, and by how much they tell of the label."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import add
from typing import ClassVar

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._types import Rows
from chimap._validation import DataError
from chimap.data import RowsInChunks
from chimap.moments import of_entries, of_rows
from chimap.normalizations.base import KnownTargets
from chimap.normalizations.tf_idf import TfIdf, weighed_chunks

_COMMON_SHARE = 0.25  # of the weight of a word that all words share: those that tell nothing keep it
_MOST_SUMS = 2**24  # sums that are in memory at once; more targets take more passes


@dataclass(frozen=True, eq=False)
class TfIdfRatio(TfIdf):
    """(1 + ln x) idf w of every filled entry, and then rows of length 1, block by block.

        w_j = mean |r| / 4 + 3 |r_j| / 4,   r_j = ln (p_j / sum p) / (q_j / sum q)

    with p_j - 1 training rows of a class that have bin j filled, and q_j - 1 of the others; of several classes, or
    tasks, the largest |r_j| counts. For targets that are numbers r_j is the correlation of presence with the target.
    Rows count by their weights, missing entries not at all. ``idf`` is that of tf-idf, of all rows.

    Parameters
    ----------
    idf : array of shape (bins,) or None, default=None
        The weights idf w; None before they are learned.

    References
    ----------
    Wang and Manning, Baselines and bigrams: simple, good sentiment and topic classification, ACL 2012 (log-count ratios
    of presence, and their interpolation with their mean).
    """

    name: ClassVar[str] = "tf-idf-ratio"
    about: ClassVar[str] = "each row as tf-idf times log-count ratios, of length 1"
    needs_labels: ClassVar[bool] = True

    def fitted(self, source: RowsInChunks, targets: KnownTargets | None = None) -> TfIdfRatio:
        """See ``Normalization``. Raise DataError without labels."""
        if targets is None:
            raise DataError(
                Message("{normalize=} learns from labels, and there are none: use {normalize='tf-idf'}.", self.name)
            )
        told = np.zeros(source.n_features)
        for columns in _arrays.slices(targets.n_targets, max(1, _MOST_SUMS // source.n_features)):
            sums = _SumsByTarget.of_source(source, targets, columns)
            ratios = sums.log_ratios() if targets.are_classes else sums.correlations()
            told = np.maximum(told, np.abs(ratios).max(axis=1))
        # where no bin tells anything, all weigh the same
        weights = _COMMON_SHARE * told.mean() + (1 - _COMMON_SHARE) * told if told.any() else np.ones_like(told)
        return replace(self, idf=(1 + np.log((1 + sums.total) / (1 + sums.of_rows))) * weights)


@dataclass(frozen=True, eq=False)
class _SumsByTarget:
    """Weights of rows, summed up.

    total, of_rows: of all rows, and (bins,) of those that have a bin filled. count, y, y_squared: of rows whose target
    is known, (t,), as such and times the target and its square. filled, filled_y: the first two of those that have a
    bin filled, (bins, t).
    """

    total: float
    of_rows: np.ndarray
    count: np.ndarray
    y: np.ndarray
    y_squared: np.ndarray
    filled: np.ndarray
    filled_y: np.ndarray

    @classmethod
    def of_source(cls, source: RowsInChunks, targets: KnownTargets, columns: slice) -> _SumsByTarget:
        """Return the sums over a source, for some of its targets."""
        parts = (cls.of(X, targets.at(places), weights, columns) for X, weights, places in weighed_chunks(source))
        return reduce(add, parts)

    @classmethod
    def of(cls, X: Rows, Y: np.ndarray, weights: np.ndarray, columns: slice) -> _SumsByTarget:
        """Return the sums of some rows."""
        weights_of_rows, Y = of_rows(weights), Y[:, columns]
        entry_weights = of_entries(weights)
        known = (entry_weights if entry_weights.shape[1] == 1 else entry_weights[:, columns]) * ~np.isnan(Y)
        of_y = known * np.nan_to_num(Y)
        y_squared = (of_y * np.nan_to_num(Y)).sum(axis=0)
        filled = np.asarray(_presence(X).T @ np.hstack([weights_of_rows[:, None], known, of_y]))
        t = Y.shape[1]
        return cls(
            float(weights_of_rows.sum()),
            filled[:, 0],
            known.sum(axis=0),
            of_y.sum(axis=0),
            y_squared,
            filled[:, 1 : 1 + t],
            filled[:, 1 + t :],
        )

    def __add__(self, other: _SumsByTarget) -> _SumsByTarget:
        return _SumsByTarget(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(self)))

    def log_ratios(self) -> np.ndarray:
        """Return r (bins, t) of targets 1 and -1."""
        p, q = 1 + (self.filled + self.filled_y) / 2, 1 + (self.filled - self.filled_y) / 2
        return np.asarray(np.log(p / p.sum(axis=0)) - np.log(q / q.sum(axis=0)))

    def correlations(self) -> np.ndarray:
        """Return r (bins, t) of presence and target; 0 where one of them is the same in all rows."""
        count = np.maximum(self.count, np.finfo(np.float64).tiny)
        share, mean = self.filled / count, self.y / count
        variances = share * (1 - share) * (self.y_squared / count - mean**2)
        products = self.filled_y / count - share * mean
        has_both = variances > np.finfo(np.float64).eps * self.y_squared / count
        return np.divide(products, np.sqrt(np.maximum(variances, 0)), out=np.zeros_like(products), where=has_both)


def _presence(rows: Rows) -> Rows:
    """Return 1 for each entry above 0, float64."""
    return _arrays.map_values(_arrays.as_rows(rows, np.float64), lambda values: (values > 0).astype(np.float64))
