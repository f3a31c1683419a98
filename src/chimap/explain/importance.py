"""Importance of the bins for a model as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap.features.mapped_functions import MappedModel

_ROWS = 1000  # rows whose gradients are averaged
_NUMBERS = 2**22  # entries of rows with another value that are in memory at once


@dataclass(frozen=True, eq=False)
class Importance:
    """Bins ranked by importance for a model.

    Parameters
    ----------
    kind : str
        The measure: "gradient", "variance", "removal" or "permutation".
    bins : ndarray of shape (bins,)
        Places of the bins, most important first.
    names : ndarray of shape (bins,)
        Names of these bins, or their numbers.
    values : ndarray of shape (bins,)
        Importance of these bins, descending; values of "removal" need not descend, because each bin is measured
        together with the bins before it.

    Examples
    --------
    >>> ranked = Importance.of("variance", np.array([0.5, 2.0]), np.array(["red", "blue"]))
    >>> print(ranked)
    1  blue  2
    2  red   0.5
    """

    kind: str
    bins: np.ndarray
    names: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, kind: str, values: np.ndarray, names: np.ndarray) -> Importance:
        """Rank the bins by their values; bins with equal values keep their order.

        Parameters
        ----------
        kind : str
            The measure.
        values : ndarray of shape (bins,)
            Importance, in the order of the bins.
        names : ndarray of shape (bins,)
            Names, in the order of the bins.
        """
        order = np.argsort(-values, kind="stable")
        return cls(kind, order, names[order], values[order])

    @property
    def by_bin(self) -> np.ndarray:
        """The values in the order of the bins, (bins,)."""
        out = np.empty_like(self.values)
        out[self.bins] = self.values
        return out

    def top(self, k: int = 20) -> list[tuple[str, float]]:
        """Return the names and values of the most important bins.

        Parameters
        ----------
        k : int, default=20
            Number of bins.
        """
        return [(str(name), float(v)) for name, v in zip(self.names[:k], self.values[:k], strict=True)]

    def to_frame(self) -> Any:
        """Return a pandas data frame with columns bin, name and importance."""
        import pandas as pd

        return pd.DataFrame({"bin": self.bins, "name": self.names, "importance": self.values})

    def __str__(self) -> str:
        """Return the twenty most important bins, one on each line."""
        top = self.top()
        width = max((len(name) for name, _ in top), default=0)
        places = len(str(len(top)))
        return "\n".join(f"{i:>{places}}  {name:<{width}}  {value:.4g}" for i, (name, value) in enumerate(top, 1))


def variance_importance(contributions: np.ndarray) -> np.ndarray:
    """Return the root of the variance over rows of the contributions of each bin, summed over outputs, (bins,).

    For an additive model with uncorrelated bins the squares add up to the variance of the scores.

    Parameters
    ----------
    contributions : ndarray of shape (n, bins, outputs)
        Contributions of the bins, as in ``Explanation``.

    Examples
    --------
    >>> variance_importance(np.array([[[1.0], [0.0]], [[-1.0], [0.0]]])).tolist()  # two rows, two bins, one score
    [1.0, 0.0]
    """
    return np.asarray(np.sqrt(contributions.var(axis=0).sum(axis=1)))


def gradient_importance(model: MappedModel, rows: Rows, n_bins: int, random_state: int = 0) -> np.ndarray:
    """Return the root of the score variance that the spread of a bin would cause at its mean squared slope, (bins,).

    For mapped coordinates u_iq of bin i it is sqrt(sum_q mean_x sum_c (df_c / du_iq)^2 var(u_iq)). For an additive
    model this is the root of the variance that the bin explains, if its terms are uncorrelated.

    Parameters
    ----------
    model : MappedModel
        The model as a function of mapped rows.
    rows : array or CSR matrix of shape (n, bins)
        Rows, of which at most a thousand random ones are used.
    n_bins : int
        Number of bins.
    random_state : int, default=0
        Seed of the choice of rows.

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit and Belkin, Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models, Science 2024 (average gradient outer product).

    Examples
    --------
    ``HistogramClassifier.importance`` passes what it has learned:

    >>> from sklearn.datasets import load_digits
    >>> from chimap import HistogramClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> ranked = HistogramClassifier("exp-chi2", alpha=0.1).fit(X[:300], y[:300]).importance(X[300:], kind="gradient")
    >>> bool(ranked.by_bin[0] < ranked.by_bin[36])  # a corner and the middle
    True
    """
    if rows.shape[0] > _ROWS:
        chosen = np.sort(np.random.default_rng(random_state).choice(rows.shape[0], _ROWS, replace=False))
        rows = _arrays.take_rows(rows, chosen)
    u = model.rows(rows)
    squares = model.function.mean_squared_gradient(u) * u.var(axis=0)
    return np.asarray(np.sqrt(model.by_bin(squares[:, None], n_bins)[:, 0]))


def exchange_importance(
    outputs: Callable[[Rows], np.ndarray], rows: Rows, n_models: int = 1, random_state: int = 0
) -> np.ndarray:
    """Return how far scores move when a bin takes its value in another row: the root mean square, (n_models, bins).

    Parameters
    ----------
    outputs : callable
        Scores (m, n_models t) of rows (m, bins), those of one model after those of another.
    rows : array or CSR matrix of shape (n, bins)
        Rows.
    n_models : int, default=1
        Number of models, which are measured together.
    random_state : int, default=0
        Seed of the choice of the other row.

    Examples
    --------
    >>> rows = np.random.default_rng(0).random((50, 2))
    >>> exchange_importance(lambda rows: rows[:, :1], rows)[0, 1]
    np.float64(0.0)
    """
    dense = np.array(_arrays.to_dense(rows))
    others = dense[np.random.default_rng(random_state).permutation(len(dense))]
    place, row = np.nonzero((dense != others).T)
    first, totals = outputs(dense), np.zeros((dense.shape[1], n_models))
    step = max(1, _NUMBERS // dense.shape[1])
    for start in range(0, row.size, step):
        bins, of = place[start : start + step], row[start : start + step]
        changed = dense[of]
        changed[np.arange(of.size), bins] = others[of, bins]
        moved = np.square(outputs(changed) - first[of]).reshape(of.size, n_models, -1).sum(axis=2)
        np.add.at(totals, bins, moved)
    return np.asarray(np.sqrt(totals.T / len(dense)))


def permutation_importance(
    score: Callable[[Any], float], rows: Rows, n_repeats: int = 3, random_state: int = 0
) -> np.ndarray:
    """Return the mean loss of score when the values of a bin are shuffled among rows, (bins,).

    Parameters
    ----------
    score : callable
        Score of rows (n, bins); greater is better.
    rows : array or CSR matrix of shape (n, bins)
        Rows that were not used in the fit.
    n_repeats : int, default=3
        Shuffles of each bin. Bins with a single value are skipped: shuffling them loses nothing.
    random_state : int, default=0
        Seed of the shuffles.

    References
    ----------
    Breiman, Random forests, 2001.

    Examples
    --------
    >>> rows = np.random.default_rng(0).random((200, 2))
    >>> is_large = rows[:, 0] > 0.5
    >>> losses = permutation_importance(lambda rows: float(np.mean((rows[:, 0] > 0.5) == is_large)), rows)
    >>> bool(losses[0] > 0.3), float(losses[1])
    (True, 0.0)
    """
    rng = np.random.default_rng(random_state)
    dense = np.array(_arrays.to_dense(rows))
    best = score(dense)
    losses = np.zeros(dense.shape[1])
    for i in np.flatnonzero(dense.max(axis=0) != dense.min(axis=0)):
        column = dense[:, i].copy()
        for _ in range(n_repeats):
            dense[:, i] = rng.permutation(column)
            losses[i] += (best - score(dense)) / n_repeats
        dense[:, i] = column
    return losses
