"""Weights of bins, sum_i w_i d(x_i, y_i) in place of sum_i d(x_i, y_i), and how they are learned from gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chimap import _arrays, _threads
from chimap._types import Rows
from chimap._validation import DataError
from chimap.features.mapped_functions import MappedModel
from chimap.kernels import Kernel

ROUNDS = 3  # of learning; on most data only the first gains
_ROWS = 1000  # rows whose gradients are averaged
_NOISE = 2.0  # for a single output: root mean squares of negative products that are subtracted from all
_NUMBERS = 2**22  # entries of an array for a block of rows
_OUTPUTS = 16  # outputs whose gradients are used; more outputs are replaced by this many random mixtures
_LEAST = 1e-6  # weight of a bin that no score depends on


@dataclass(frozen=True, eq=False)
class BinWeights:
    """Non-negative weights w_i of the bins, of mean 1, in an additive kernel or in the distance of an exponential one.

    Such kernels are homogeneous, w k(x, y) = k(w^(1/degree) x, w^(1/degree) y). So weights scale the columns, and all
    feature families, maps and solvers take weighted bins without change.

    Parameters
    ----------
    weights : ndarray of shape (bins,)
        The weights.

    Examples
    --------
    >>> from chimap import chi2
    >>> X = np.array([[1.0, 2.0], [3.0, 1.0]])
    >>> weights = BinWeights(np.array([1.5, 0.5]))
    >>> K = 1.5 * chi2(X[:, :1]) + 0.5 * chi2(X[:, 1:])
    >>> bool(np.allclose(chi2(weights.rows(X, chi2)), K))
    True
    """

    weights: np.ndarray

    def rows(self, rows: Rows, kernel: Kernel) -> Rows:
        """Return rows, dense or CSR, with scaled columns, in their dtype."""
        return _arrays.scale_columns(rows, self.factors(kernel))

    def factors(self, kernel: Kernel) -> np.ndarray:
        """Return the factors of the columns, (bins,). Raises DataError for kernels without a degree."""
        degree = (kernel.inner or kernel).degree
        if not degree:
            raise DataError(
                f"{kernel.name!r} is not homogeneous: its bins cannot have weights. Use chi2, jensen_shannon, "
                "hellinger, intersection, linear, gaussian or their exponential forms."
            )
        return np.asarray(self.weights ** (1 / degree))


def learned_weights(
    model: MappedModel, rows: Rows, weights: np.ndarray, blocks: Sequence[np.ndarray] | None = None
) -> np.ndarray:
    """Return new weights (bins,), sqrt(G) / mean(sqrt(G)), from the gradients of a model fitted with ``weights``.

        G_i = mean over rows of sum_c sum_q (df_c / dpsi_iq)^2,

    where psi_iq are the mapped coordinates of bin i before weighting. The first thousand of the ``rows``, whose columns
    are weighted, are used. ``blocks`` are bins that share a weight: G is summed over them.

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit and Belkin, Mechanism for feature learning, Science 2024: the diagonal of the
    average gradient outer product.
    """
    squares = model.function.mean_squared_gradient(model.rows(_arrays.take_rows(rows, slice(_ROWS))))
    # u = sqrt(w) psi, so df/dpsi = sqrt(w) df/du
    return weights_of(weights * model.by_bin(squares[:, None], weights.size)[:, 0], weights, blocks)


def weights_of(relevance: np.ndarray, weights: np.ndarray, blocks: Sequence[np.ndarray] | None = None) -> np.ndarray:
    """Return new weights (bins,), of mean 1: the square roots of ``relevance`` (bins,), which is not negative.

    ``weights`` are the old weights, which are returned if no bin is relevant; ``blocks`` are bins that share a weight.
    """
    G = relevance.copy()
    for block in blocks or ():
        G[block] = G[block].sum()
    roots = np.sqrt(G)
    if not roots.any():
        return weights
    return at_least(roots)


def at_least(weights: np.ndarray) -> np.ndarray:
    """Return weights (bins,), not all 0, divided by their mean, with a positive minimum.

    A bin without use may have some in the next round, so no weight becomes 0.
    """
    return np.asarray(np.maximum(weights / weights.mean(), _LEAST))


@dataclass(frozen=True, eq=False)
class Half:
    """Slopes g_c = sum_j coef_jc values_j centres_j of a machine fitted on half of the rows, at r other rows.

    For a Gaussian expansion sum_j coef_jc k_j, ``centres`` are the mapped rows of that half (h, p), dense or CSR and
    about their mean, and ``values`` are k_j (r, h). Then g_c is df_c/du without the term -u f_c, by which the function
    falls off far from all rows, equally in every coordinate. For waves sum_j coef_jc cos(w_j . u + phase_j),
    ``centres`` are w_j, ``values`` are -sin(w_j . u + phase_j), and g_c = df_c/du.
    """

    centres: Any  # an array, CSR or ``KeptRows``
    coef: np.ndarray
    values: np.ndarray

    def slopes(self, rows: slice, output: int) -> np.ndarray:
        """Return g_c of output c at some of the rows, (rows, p)."""
        return np.asarray((self.values[rows] * self.coef[:, output]) @ self.centres)


@dataclass(frozen=True, eq=False)
class Relevance:
    """Agreement of the gradients of machines fitted on two halves of the rows.

    The fields are their products and the squares of both, (p,) each, averaged over rows and summed over outputs, and
    the number of outputs. A gradient in a useless coordinate is chance, and chance differs between halves of the rows,
    so that the products are 0 on average while the squares are not.
    """

    products: np.ndarray
    squares: np.ndarray
    other_squares: np.ndarray
    n_outputs: int

    @classmethod
    def of(cls, one: Half, other: Half) -> Relevance:
        """Return the mean over rows of sum_c g_cq g'_cq, and of the squares, for machines without a common row."""
        n, step = one.values.shape[0], max(1, _NUMBERS // one.centres.shape[1])

        def sums_of(output: int) -> np.ndarray:
            sums = np.zeros((3, one.centres.shape[1]))
            for rows in _arrays.slices(n, step):
                g, h = one.slopes(rows, output), other.slopes(rows, output)
                for total, (a, b) in zip(sums, ((g, h), (g, g), (h, h)), strict=True):
                    total += np.einsum("nq,nq->q", a, b)
            return sums

        products, squares, other_squares = sum(_threads.tasks(range(one.coef.shape[1]), sums_of)) / n
        return cls(products, squares, other_squares, one.coef.shape[1])

    def __add__(self, other: Relevance) -> Relevance:
        return Relevance(
            self.products + other.products,
            self.squares + other.squares,
            self.other_squares + other.other_squares,
            self.n_outputs,
        )

    def summed(self, groups: np.ndarray, n_groups: int) -> Relevance:
        """Return sums over the coordinates of each group, such as a bin with its terms, or several bins.

        ``groups`` (p,) holds the number of each coordinate's group.
        """
        products, squares, other_squares = (
            np.bincount(groups, weights=values, minlength=n_groups)
            for values in (self.products, self.squares, self.other_squares)
        )
        return Relevance(products, squares, other_squares, self.n_outputs)

    def above_noise(self) -> np.ndarray:
        """Return squared gradients (p,) less what is chance, at least 0.

        Negative estimates of non-negative numbers show how large chance is. The cosine r_q of both gradients measures
        for each coordinate whether it exceeds chance: with r the root mean square of the negative cosines, gradients
        are multiplied by 1 - (r / r_q)^2, which is the shrinkage of Stein's estimator. With one output the gradients
        point one way or the other at all rows, and the cosine is 1 or -1: then twice the root mean square of the
        negative products is subtracted from all.
        """
        if self.n_outputs == 1:
            return np.maximum(self.products - _NOISE * _negative_size(self.products), 0)
        lengths = np.sqrt(self.squares * self.other_squares)
        cosines = np.divide(self.products, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        noise, positive = _negative_size(cosines), cosines > 0
        kept = 1 - np.divide(noise, cosines, out=np.ones_like(cosines), where=positive) ** 2
        return np.where(positive, self.products, 0) * np.maximum(kept, 0) ** 2


def output_mixtures(n_outputs: int, rng: np.random.Generator) -> np.ndarray:
    """Return combinations (t, k) of many outputs whose products have the same expected sum; keep few outputs."""
    if n_outputs <= _OUTPUTS:
        return np.eye(n_outputs)
    return np.asarray(rng.choice([-1.0, 1.0], size=(n_outputs, _OUTPUTS)) / np.sqrt(_OUTPUTS))


def _negative_size(values: np.ndarray) -> float:
    """Return the root mean square of the negative values; 0 where there are none."""
    below = values[values < 0]
    return float(np.sqrt(np.square(below).mean())) if below.size else 0.0


@dataclass(frozen=True, eq=False)
class WeightRound:
    """A round of learning: the weights, and the held-out score of the model fitted with them."""

    weights: np.ndarray
    score: float


def learn_weights(
    fit_and_score: Callable[[np.ndarray], tuple[float, Callable[[], np.ndarray]]],
    weights: np.ndarray,
    rounds: int = ROUNDS,
    least_gain: Callable[[int, int], float] = lambda later, before: 0.0,
    other: np.ndarray | None = None,
) -> list[WeightRound]:
    """Fit, reweight the bins by gradients and fit again while the held-out score rises; return all rounds.

    ``fit_and_score`` takes weights, and returns the held-out score of a model fitted with them and a function that
    returns the next weights. ``weights`` (bins,), or (models, bins) if several models are scored together, are equal
    for all bins; ``other`` are initial weights that are used if their score is above that of the equal ones. At most
    ``rounds`` follow. ``least_gain`` takes the positions of a later and an earlier fit, and returns how much the later
    score must exceed the earlier for learning to continue.

    The rounds begin with equal weights. The best of them is the one to keep, or equal weights where none is better.
    """
    tried, base = list[WeightRound](), 0
    pending = list[Callable[[], np.ndarray]]()  # popped to be called, so that the model is freed before the next fit

    def run(weights: np.ndarray) -> None:
        score, following = fit_and_score(weights)
        tried.append(WeightRound(weights, score))
        pending.append(following)

    def is_better() -> bool:
        return tried[-1].score - tried[base].score > least_gain(len(tried) - 1, base)

    run(weights)
    if other is not None:
        following_equal = pending.pop()() if rounds else weights
        run(other)
        base = int(is_better())
        pending = pending if base else [lambda: following_equal]
    for _ in range(rounds):
        run(pending.pop()())
        if not is_better():
            break
        base = len(tried) - 1
    return tried
