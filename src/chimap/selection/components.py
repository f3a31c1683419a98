"""Exact folds over the number of principal components together with the ridge strength.

``ComponentFolds`` is the rule of a fit with several ``n_principal``. It scores every pair from the moments of
coordinates along components of all rows; ``score_principal`` finds the components anew without each fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._validation import check_positive
from chimap.moments import FoldMoments, Moments
from chimap.selection.base import Compared, OpenSettings, Selection, SelectionResult
from chimap.selection.folds import check_folds, choose_alpha
from chimap.solvers.base import required
from chimap.solvers.from_moments import RidgeProblem
from chimap.solvers.principal import PrincipalRidge, leading

DECADES = 10.0 ** np.arange(-6.0, 2.0)  # strengths to try with components, in units of the mean scatter


def score_principal(
    folds: FoldMoments,
    whole: Moments,
    n_components: Sequence[int] | np.ndarray,
    alphas: Sequence[float] | np.ndarray,
    on_fold: Callable[[int], None] | None = None,
    device: str = "cpu",
) -> SelectionResult:
    """Compute the exact K-fold errors of all pairs of a number of components and a strength.

    It takes one decomposition for each fold.

    Parameters
    ----------
    folds : FoldMoments
        Moments of each fold.
    whole : Moments
        Moments of all rows.
    n_components : sequence of int
        Numbers of components.
    alphas : sequence of float
        Strengths.
    on_fold : callable or None, default=None
        Called as ``on_fold(k)`` after each fold.
    device : str, default="cpu"
        Where matrices are decomposed.

    Returns
    -------
    SelectionResult
        The errors of all pairs, of which the smallest mean is chosen.

    Raises
    ------
    DataError
        If a fold is empty or leaves no rows to train on.
    ValueError
        If a number of components or a strength is out of range.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z, noise = rng.normal(size=(200, 4)), rng.normal(size=200)
    >>> y = 3 * Z[:, 0] + noise
    >>> zero = np.zeros(4), np.zeros(1)  # what the moments are about
    >>> folds = FoldMoments.of([Moments(4, 1, *zero).update(Z[k::5], y[k::5]) for k in range(5)], Z.dtype)
    >>> whole = Moments(4, 1, *zero).update(Z, y)
    >>> score_principal(folds, whole, n_components=[1, 4], alphas=[1.0]).best
    {'n_components': 4, 'alpha': 1.0}
    """
    components = np.unique(np.asarray(n_components, dtype=np.int64))
    if components.size == 0 or components[0] < 1 or components[-1] > whole.n_features:
        raise InputError(
            Message("{n_components} must be within 1 .. {} (features); got {}.", whole.n_features, n_components)
        )
    for alpha in alphas:
        check_positive(alpha, Message("each of {alpha}"))
    lambdas = np.unique(np.asarray(alphas, dtype=np.float64))
    errors = np.empty((components.size, lambdas.size, len(folds.folds)))
    check_folds(folds, whole)
    for k, fold in enumerate(folds.folds):
        errors[:, :, k] = _fold_errors(whole - fold, fold, components, lambdas, device)
        if on_fold is not None:
            on_fold(k)
    total = float(whole.target_scatter().sum()) / whole.count
    return _of_pairs(components, lambdas, errors, total, folds)


def score_leading(
    folds: FoldMoments,
    whole: Moments,
    borders: np.ndarray,
    n_components: Sequence[int] | np.ndarray,
    alphas: Sequence[float] | np.ndarray,
    on_score: Callable[[], None] | None = None,
) -> SelectionResult:
    """Compute the exact K-fold errors of all pairs of a number of components and a strength, from coordinates.

    The moments are those of coordinates along principal components. The coordinates of block j are the columns
    borders[j]:borders[j + 1], the largest component first, of which n_components are kept. The components are those of
    all rows, which takes no targets; ``score_principal`` finds them anew without each fold.

    Parameters
    ----------
    folds : FoldMoments
        Moments of the coordinates in each fold.
    whole : Moments
        Moments of the coordinates of all rows.
    borders : array of int of shape (blocks + 1,)
        Where the coordinates of each block begin and end.
    n_components : sequence of int
        Numbers of components of each block.
    alphas : sequence of float
        Strengths.
    on_score : callable or None, default=None
        Called as ``on_score()`` after each pair.

    Returns
    -------
    SelectionResult
        The errors of all pairs, of which the smallest mean is chosen.

    Raises
    ------
    DataError
        If a fold is empty, or if no strength is large enough for a number of components.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z, noise = rng.normal(size=(200, 4)), rng.normal(size=200)
    >>> y = 3 * Z[:, 0] + noise
    >>> zero = np.zeros(4), np.zeros(1)  # what the moments are about
    >>> folds = FoldMoments.of([Moments(4, 1, *zero).update(Z[k::5], y[k::5]) for k in range(5)], Z.dtype)
    >>> whole = Moments(4, 1, *zero).update(Z, y)
    >>> score_leading(folds, whole, np.array([0, 4]), n_components=[1, 4], alphas=[1.0, 100.0]).best["n_components"]
    1
    """
    numbers, lambdas = np.unique(n_components), np.unique(np.asarray(alphas, dtype=np.float64))
    results = []
    for number in numbers:
        kept = leading(borders, int(number))
        leading_folds = FoldMoments.of([fold.of_features(kept) for fold in folds.folds], folds.dtype)
        results.append(
            choose_alpha(leading_folds, whole.of_features(kept), lambdas, lambda *_: on_score and on_score())
        )
    return _of_pairs(numbers, lambdas, np.array([s.scores for s in results]), results[0].baseline, folds)


def _of_pairs(
    n_components: np.ndarray, alphas: np.ndarray, errors: np.ndarray, total: float, folds: FoldMoments
) -> SelectionResult:
    """Return errors (P, S, K) of all pairs as a result, which chooses the smallest mean."""
    settings = {"n_components": np.repeat(n_components, alphas.size), "alpha": np.tile(alphas, n_components.size)}
    counts = np.array([fold.count for fold in folds.folds])
    scores = errors.reshape(-1, counts.size)
    chosen = int(np.argmin(np.average(scores, axis=1, weights=counts)))
    return SelectionResult("folds", settings, scores, counts, chosen, baseline=total)


def _fold_errors(rest: Moments, fold: Moments, components: np.ndarray, alphas: np.ndarray, device: str) -> np.ndarray:
    """Return the errors (P, S), on one fold, of machines of the remaining rows.

    With weights A along the components U of the remaining rows, the fold's error is quadratic in A:
    tr(A' B A) - 2 tr(A' C) + const, with B = U' Hc U and C = U' Vc of the fold, plus the offset of the means. The error
    of the first p rows of A is a cumulative sum, whose p-th step is A_p (B_pp A_p + 2 sum_{j<p} B_pj A_j) - 2 A_p C_p.
    """
    model = PrincipalRidge.of(rest, int(components[-1]), device)
    U = model.pca.components
    B = U.T @ fold.scatter_product(U)
    C = U.T @ fold.cross_scatter()
    gap = U.T @ (rest.mean - fold.mean)
    target_gap = rest.target_mean - fold.target_mean
    lower = np.tril(B, -1)
    constant = fold.target_scatter()
    errors = np.empty((components.size, alphas.size))
    for s, alpha in enumerate(alphas):
        A = model.coordinates(alpha)
        steps = A * (np.diagonal(B)[:, None] * A + 2 * (lower @ A) - 2 * C)
        within = constant + np.cumsum(steps, axis=0)[components - 1]
        bias = np.cumsum(gap[:, None] * A, axis=0)[components - 1] - target_gap
        errors[:, s] = (within / fold.count + bias**2).sum(axis=1)
    return errors


class ComponentFolds(Selection):
    """The rule of exact folds over numbers of components and strengths, from moments of coordinates."""

    rule: ClassVar[str] = "folds"
    compares_more: ClassVar[bool] = True

    def choose(self, problem: RidgeProblem, open: OpenSettings) -> Compared:
        """See ``Selection``; without given strengths, compare decades about the mean scatter."""
        alphas = problem.usual_alpha() * DECADES if open.alpha is None else np.atleast_1d(open.alpha)
        components = required(problem.components, "numbers of components")
        result = score_leading(
            problem.moments, problem.whole, components.borders, components.numbers, alphas, self._on_score
        )
        return Compared(result, problem.leading(result.best["n_components"]))
