"""Ridge on principal components: every number of components and every strength from one decomposition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from chimap._validation import DataError, check_positive
from chimap.moments import PCA, FoldMoments, Moments
from chimap.solvers.cross_validation import StrengthScores, choose_strength
from chimap.solvers.ridge import LinearSolution

DECADES = 10.0 ** np.arange(-6.0, 2.0)  # of strengths to try with components, times the mean scatter


@dataclass(frozen=True)
class PrincipalRidge:
    """Ridge weights on the first p components, for every p and strength: w = U_p (e_p + strength)^-1 U_p' Vc.

    pca: the components U, largest first, with scatters e. rotated: U' Vc, (p, t). target_mean: (t,).

    Source: Li, Lebanon and Sminchisescu, sec. 6, Algorithm 4.
    """

    pca: PCA
    rotated: np.ndarray
    target_mean: np.ndarray

    @classmethod
    def of(cls, moments: Moments, n_components: int | None = None, device: str = "cpu") -> PrincipalRidge:
        """Decompose the moments (on a ``device``: see ``PCA.of``), keeping n_components leading ones (None: all)."""
        pca = PCA.of(moments, n_components, device)
        return cls(pca, pca.components.T @ moments.cross_scatter(), moments.target_mean)

    def coordinates(self, strength: float) -> np.ndarray:
        """Weights along the components, (p, t); the first rows are those of fewer components."""
        return _filtered(self.pca.scatters, strength)[:, None] * self.rotated

    def solution(self, n_components: int, strength: float) -> LinearSolution:
        """Weights of the features themselves: prediction needs no projection."""
        coef = self.pca.components[:, :n_components] @ self.coordinates(strength)[:n_components]
        return LinearSolution(coef, self.target_mean - self.pca.mean @ coef, strength)

    def predictions(
        self, Z: np.ndarray, n_components: Sequence[int], strength: float
    ) -> Iterator[tuple[int, np.ndarray]]:
        """(p, outputs (n, t)) of rows Z (n, D) for each p in ascending order, at the cost of the largest alone."""
        weights, coordinates = self.coordinates(strength), self.pca.transform(Z)
        outputs, done = np.tile(self.target_mean, (Z.shape[0], 1)), 0
        for p in sorted(n_components):
            outputs = outputs + coordinates[:, done:p] @ weights[done:p]
            done = p
            yield p, outputs


@dataclass(frozen=True)
class PrincipalScores:
    """Held-out errors for numbers of components (P,) and strengths (S,), both ascending.

    errors: (P, S, K), mean over the rows of a fold of |f(z) - y|^2 summed over targets, f fitted on the other folds,
    their components included. total: that of predicting the mean. counts: rows of the folds, (K,).
    """

    n_components: np.ndarray
    strengths: np.ndarray
    errors: np.ndarray
    total: float
    counts: np.ndarray

    @property
    def means(self) -> np.ndarray:
        """Mean errors over all rows, (P, S)."""
        return np.average(self.errors, axis=2, weights=self.counts)

    @property
    def r2(self) -> np.ndarray:
        """Held-out share of the targets' variance that is explained, (P, S)."""
        return 1 - self.means / self.total

    @property
    def best(self) -> tuple[int, float]:
        """Components and strength of least mean error."""
        p, s = np.unravel_index(np.argmin(self.means), self.means.shape)
        return int(self.n_components[p]), float(self.strengths[s])

    def of_strengths(self, n_components: int) -> StrengthScores:
        """Those of one number of components."""
        p = int(np.searchsorted(self.n_components, n_components))
        chosen, iterations = int(np.argmin(self.means[p])), np.zeros(self.strengths.size, np.int64)
        return StrengthScores(self.strengths, self.errors[p], self.total, chosen, iterations)


def score_principal(
    folds: FoldMoments,
    whole: Moments,
    n_components: Sequence[int] | np.ndarray,
    strengths: Sequence[float] | np.ndarray,
    on_fold: Callable[[int], None] | None = None,
    device: str = "cpu",
) -> PrincipalScores:
    """Exact K-fold errors of every pair of n_components and strengths, at one decomposition a fold (on a ``device``).

    ``on_fold(k)`` is called after each. Raises DataError if a fold is empty or leaves no rows to train on, ValueError
    for numbers out of range.
    """
    components = np.unique(np.asarray(n_components, dtype=np.int64))
    if components.size == 0 or components[0] < 1 or components[-1] > whole.n_features:
        raise ValueError(
            f"n_components must be within 1 .. {whole.n_features} (features); got {n_components}."
        )
    for strength in strengths:
        check_positive(strength, "each of strengths")
    lambdas = np.unique(np.asarray(strengths, dtype=np.float64))
    errors = np.empty((components.size, lambdas.size, len(folds.folds)))
    for k, fold in enumerate(folds.folds):
        if fold.count == 0 or fold.count == whole.count:
            raise DataError(f"fold {k} holds {fold.count} of {whole.count} rows: too few to cross-validate.")
        errors[:, :, k] = _fold_errors(whole - fold, fold, components, lambdas, device)
        if on_fold is not None:
            on_fold(k)
    total = float(np.trace(whole.target_scatter())) / whole.count
    return PrincipalScores(components, lambdas, errors, total, np.array([f.count for f in folds.folds]))


def leading(borders: np.ndarray, n_components: int) -> np.ndarray:
    """Indices of the first n_components coordinates of each block, or of all that it has; borders as below."""
    return np.concatenate([np.arange(a, min(a + n_components, b)) for a, b in pairwise(borders)])


def score_leading(
    folds: FoldMoments,
    whole: Moments,
    borders: np.ndarray,
    n_components: Sequence[int] | np.ndarray,
    strengths: Sequence[float] | np.ndarray,
    on_score: Callable[[], None] | None = None,
) -> PrincipalScores:
    """Exact K-fold errors of every pair of n_components and strengths, from moments of coordinates.

    The coordinates of a block lie at borders[j]:borders[j + 1] along components of its own, largest first, of which
    n_components are kept. The components are those of all rows, which need no targets; ``score_principal`` finds them
    anew without each fold. ``on_score()`` is called after each pair.
    Raises DataError if a fold is empty, or if no strength is large enough for a number of components.
    """
    numbers, lambdas = np.unique(n_components), np.unique(np.asarray(strengths, dtype=np.float64))
    found = []
    for number in numbers:
        kept = leading(borders, int(number))
        some = FoldMoments.of([fold.of_features(kept) for fold in folds.folds], folds.dtype)
        found.append(
            choose_strength(some, whole.of_features(kept), lambdas, lambda *_: on_score and on_score())
        )
    counts = np.array([fold.count for fold in folds.folds])
    return PrincipalScores(numbers, lambdas, np.array([s.errors for s in found]), found[0].total, counts)


def _fold_errors(
    rest: Moments, fold: Moments, components: np.ndarray, strengths: np.ndarray, device: str
) -> np.ndarray:
    """Errors (P, S) on one fold of what the rest says.

    With weights A along the components U of the rest, the fold's error is quadratic in A:
    tr(A' B A) - 2 tr(A' C) + const, B = U' Hc U and C = U' Vc of the fold, plus the offset of the means. That of the
    first p rows of A is a cumulative sum whose p-th step is A_p (B_pp A_p + 2 sum_{j<p} B_pj A_j).
    """
    model = PrincipalRidge.of(rest, int(components[-1]), device)
    U = model.pca.components
    B = U.T @ fold.scatter_product(U)
    C = U.T @ fold.cross_scatter()
    gap = U.T @ (rest.mean - fold.mean)
    target_gap = rest.target_mean - fold.target_mean
    lower = np.tril(B, -1)
    constant = np.diagonal(fold.target_scatter())
    errors = np.empty((components.size, strengths.size))
    for s, strength in enumerate(strengths):
        A = model.coordinates(strength)
        steps = A * (np.diagonal(B)[:, None] * A + 2 * (lower @ A) - 2 * C)
        within = constant + np.cumsum(steps, axis=0)[components - 1]
        bias = np.cumsum(gap[:, None] * A, axis=0)[components - 1] - target_gap
        errors[:, s] = (within / fold.count + bias**2).sum(axis=1)
    return errors


def _filtered(scatters: np.ndarray, strength: float) -> np.ndarray:
    """1 / (e + strength); 0 for components that are rounding of the largest."""
    noise = scatters.size * np.finfo(float).eps * max(float(scatters[0]), np.finfo(float).tiny)
    kept = scatters + strength > noise
    return np.where(kept, 1 / np.where(kept, scatters + strength, 1), 0)
