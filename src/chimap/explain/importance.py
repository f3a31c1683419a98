"""Which bins matter to a model as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap.features.mapped import MappedModel

if TYPE_CHECKING:
    pass


_ROWS = 1000  # whose gradients are averaged


@dataclass(frozen=True, eq=False)
class Importance:
    """Bins by how much they matter to a model, the first the most.

    Attributes
    ----------
    kind : str
        What was measured: "gradient", "variance", "removal" or "permutation".
    bins : ndarray of shape (bins,)
        Places of the bins, most important first.
    names : ndarray of shape (bins,)
        Their names, or numbers.
    values : ndarray of shape (bins,)
        How much they matter: descending, but of "removal", where a bin counts beside those before it.

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
        """Rank values (bins,), given in the order of the bins; equal values keep that order."""
        order = np.argsort(-values, kind="stable")
        return cls(kind, order, names[order], values[order])

    @property
    def by_bin(self) -> np.ndarray:
        """The values in the order of the bins, (bins,)."""
        out = np.empty_like(self.values)
        out[self.bins] = self.values
        return out

    def top(self, k: int = 20) -> list[tuple[str, float]]:
        """Name and value of the k most important bins."""
        return [(str(name), float(v)) for name, v in zip(self.names[:k], self.values[:k], strict=True)]

    def to_frame(self) -> Any:
        """As a data frame of pandas, with columns bin, name and importance."""
        import pandas as pd

        return pd.DataFrame({"bin": self.bins, "name": self.names, "importance": self.values})

    def __str__(self) -> str:
        """The first twenty, a line each."""
        top = self.top()
        width = max((len(name) for name, _ in top), default=0)
        places = len(str(len(top)))
        return "\n".join(
            f"{i:>{places}}  {name:<{width}}  {value:.4g}" for i, (name, value) in enumerate(top, 1)
        )


def variance_importance(contributions: np.ndarray) -> np.ndarray:
    """Root of the variance over rows of what each bin adds, summed over outputs, (bins,); of (n, bins, outputs).

    For an additive model with uncorrelated bins the squares add up to the variance of the scores.

    Examples
    --------
    >>> variance_importance(np.array([[[1.0], [0.0]], [[-1.0], [0.0]]])).tolist()  # two rows, two bins, one score
    [1.0, 0.0]
    """
    return np.asarray(np.sqrt(contributions.var(axis=0).sum(axis=1)))


def gradient_importance(model: MappedModel, rows: Rows, n_bins: int, random_state: int = 0) -> np.ndarray:
    """Root of the score variance that a bin's own spread would cause at the mean squared slope, (bins,).

    For mapped coordinates u_iq of bin i: sqrt(sum_q mean_x sum_c (df_c / du_iq)^2 var(u_iq)). For an additive model
    this is the root of the variance that the bin explains, where its terms are uncorrelated.

    Parameters
    ----------
    model : MappedModel
    rows : array or CSR matrix of shape (n, bins)
        Of which a thousand, drawn by ``random_state``, are looked at.
    n_bins : int

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit and Belkin, Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models, Science 2024 (average gradient outer product).

    Examples
    --------
    ``HistogramClassifier.importance`` calls it with what it has learned:

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


def permutation_importance(
    score: Callable[[Any], float], rows: Rows, n_repeats: int = 3, random_state: int = 0
) -> np.ndarray:
    """Mean loss of score when the values of a bin are shuffled among rows, (bins,).

    Parameters
    ----------
    score : callable
        Of rows (n, bins); greater is better.
    rows : array or CSR matrix of shape (n, bins)
        Not those of the fit.
    n_repeats : int
        Shuffles of each bin. Bins with one value alone are not tried: they lose nothing.
    random_state : int

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
        own = dense[:, i].copy()
        for _ in range(n_repeats):
            dense[:, i] = rng.permutation(own)
            losses[i] += (best - score(dense)) / n_repeats
        dense[:, i] = own
    return losses
