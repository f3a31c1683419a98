"""Exact K-fold cross-validation of the ridge strength, from fold moments of a single pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chimap._validation import DataError
from chimap.moments import FoldMoments, Moments
from chimap.solvers.ridge import Factor

TOLERANCE = 1e-5  # of the residual in the norm of the inverse; held-out errors are off by a few times that
# A fold's own factorisation costs D^3/3, iterating for t targets about 6 * 6 t D^2: from t = D/100 on it is the
# cheaper.
_DIRECT = 100
_ITERATIONS = 30  # at most, or as many as one factorisation costs: then the folds are factorised after all


@dataclass(frozen=True)
class StrengthScores:
    """Held-out errors of each strength.

    strengths (s,) ascending; errors (s, K): mean over the rows of a fold of |f(z) - y|^2 summed over targets,
    f fitted on the other folds; total: that of predicting the mean; chosen: index of the best mean error;
    iterations: of conjugate gradients, (s,).
    """

    strengths: np.ndarray
    errors: np.ndarray
    total: float
    chosen: int
    iterations: np.ndarray

    @property
    def best(self) -> float:
        """The strength of least mean error."""
        return float(self.strengths[self.chosen])


def choose_strength(
    folds: FoldMoments,
    whole: Moments,
    strengths: np.ndarray | str = "auto",
    on_score: Callable[[float, float], None] | None = None,
    factor: Factor | None = None,
) -> StrengthScores:
    """Score strengths by exact K-fold cross-validation and choose the best.

    "auto" goes down by decades from the mean scatter of a feature until the error rises again, up if it falls that way,
    and then tries the half decades beside the best. ``on_score(strength, mean error)`` is called after each.
    factor: as in ``ridge``.
    Raises DataError if a fold has no rows or leaves none to train on.
    """
    for k, fold in enumerate(folds.folds):
        if fold.count == 0 or fold.count == whole.count:
            raise DataError(
                f"fold {k} of {len(folds.folds)} holds {fold.count} of {whole.count} rows: too few rows to "
                "cross-validate. Use fewer folds, or give the strength as a number."
            )
    scorer = _Scorer(folds, whole, on_score, factor or Factor(whole.n_features))
    if isinstance(strengths, str):
        _search(scorer, max(float(whole.scatter_diagonal().mean()), np.finfo(float).tiny))
    else:
        for strength in sorted(np.asarray(strengths, float).reshape(-1), reverse=True):
            scorer.score(float(strength))
    return scorer.result()


def _search(scorer: _Scorer, scale: float) -> None:
    """Down by decades from ``scale`` until the error rises again, up if it falls that way, then half decades."""
    strength = scale
    for _ in range(10):
        scorer.score(strength)
        if strength < scale / 5 and scorer.best() > strength:
            break
        strength /= 10
    while scorer.best() == max(scorer.scores) and scorer.best() < 1e4 * scale:
        scorer.score(scorer.best() * 10)
    best = scorer.best()
    for factor in (10**0.5, 10**-0.5):
        scorer.score(best * factor)


class _Scorer:
    """Scores one strength at a time; the factor's buffer and the folds' sums are shared among them."""

    def __init__(
        self,
        folds: FoldMoments,
        whole: Moments,
        on_score: Callable[[float, float], None] | None,
        factor: Factor,
    ):
        self.whole = whole
        self.folds = [Fold(fold, whole) for fold in folds.folds]
        self.factor = factor
        # With fewer training rows than features, what only a fold's own rows say is held by the strength alone: its
        # matrix and that of the whole are then far apart, and iterations would be many.
        fewest = whole.count - max(fold.count for fold in self.folds)
        n_targets = self.folds[0].cross.shape[1]
        self.iterate = n_targets * _DIRECT <= whole.n_features <= fewest
        self.scores: dict[float, tuple[np.ndarray, int]] = {}
        self.on_score = on_score

    def score(self, strength: float) -> None:
        if strength in self.scores:
            return
        try:
            self.factor.of(self.whole, strength)
            found = _errors_by_iteration(self.folds, self.factor) if self.iterate else None
            found = found or (_errors_directly(self.folds, self.whole, strength, self.factor), 0)
        except DataError:
            # too small for these data, or for a fold of them: it cannot win, and it is listed with its infinite error
            self.scores[strength] = (np.full(len(self.folds), np.inf), 0)
            return
        self.scores[strength] = found
        if self.on_score is not None:
            self.on_score(strength, float(self.mean(strength)))

    def mean(self, strength: float) -> float:
        counts = [fold.count for fold in self.folds]
        return float(np.average(self.scores[strength][0], weights=counts))

    def best(self) -> float:
        return min(self.scores, key=self.mean)

    def result(self) -> StrengthScores:
        strengths = np.array(sorted(self.scores))
        best = self.best()
        if not np.isfinite(self.mean(best)):
            raise DataError(
                f"none of the strengths {strengths} is large enough: the features are linearly dependent to "
                "rounding. Give larger ones, or strengths='auto'."
            )
        return StrengthScores(
            strengths,
            np.array([self.scores[s][0] for s in strengths]),
            float(np.trace(self.whole.target_scatter())) / self.whole.count,
            int(np.searchsorted(strengths, best)),
            np.array([self.scores[s][1] for s in strengths]),
        )


class Fold:
    """What leaving one fold out takes from the whole.

    Hc(all) = Hc(rest) + Hc(fold) + c d d', with d = mean(rest) - mean(fold), c = n_rest n_fold / n (Chan). So the
    matrix of the training rows is that of the whole less F = Hc(fold) + c d d', and likewise Vc.
    """

    def __init__(self, fold: Moments, whole: Moments):
        self.moments = fold
        self.count = fold.count
        self.sums = fold.feature_sum
        rest = whole.count - fold.count
        # shifts are shared, so the sums are about the same point
        self.gap = (whole.feature_sum - fold.feature_sum) / rest - fold.feature_sum / fold.count
        self.target_gap = (whole.target_sum - fold.target_sum) / rest - fold.target_sum / fold.count
        self.weight = rest * fold.count / whole.count
        self.cross = fold.cross_scatter()
        self.target_scatter = np.diagonal(fold.target_scatter())
        self.train_cross = (
            whole.cross_scatter() - self.cross - self.weight * np.outer(self.gap, self.target_gap)
        )
        self.train_share = rest / whole.count

    def product(self, P: np.ndarray) -> np.ndarray:
        """F P."""
        return self.moments.scatter_product(P) + self.weight * np.outer(self.gap, self.gap @ P)

    def take_from(self, square: np.ndarray) -> None:
        """Subtract F from the upper triangle of a (D, D) array."""
        # F = H - m m'/n + c d d', the last two as one product of rank two
        left = np.column_stack([self.sums / self.count, -self.weight * self.gap])
        right = np.vstack([self.sums, self.gap])
        for first, panel in self.moments.features.panels():
            square[first : first + panel.shape[0], first:] += (
                left[first : first + panel.shape[0]] @ right[:, first:] - panel
            )

    def error(self, W: np.ndarray, FW: np.ndarray) -> float:
        """Mean held-out |f(z) - y|^2 of weights W (D, t), given F W."""
        within = (W * self._scattered(W, FW)).sum(0) - 2 * (W * self.cross).sum(0) + self.target_scatter
        return float((within / self.count + self.bias(W) ** 2).sum())

    def error_slope(self, W: np.ndarray, FW: np.ndarray) -> np.ndarray:
        """The derivative of count times ``error`` in W, (D, t)."""
        return 2 * (self._scattered(W, FW) - self.cross + self.count * np.outer(self.gap, self.bias(W)))

    def bias(self, W: np.ndarray) -> np.ndarray:
        """Mean of y - f(z) over the fold, (t,): f has the training means."""
        return self.gap @ W - self.target_gap

    def _scattered(self, W: np.ndarray, FW: np.ndarray) -> np.ndarray:
        """Hc(fold) W."""
        return FW - self.weight * np.outer(self.gap, self.gap @ W)


def _errors_directly(folds: list[Fold], whole: Moments, strength: float, factor: Factor) -> np.ndarray:
    """Held-out errors of all folds at one strength, by a factorisation a fold: for many targets."""
    errors = []
    for fold in folds:
        factor.of(whole, strength, less=fold)
        W = factor.solve(fold.train_cross)
        errors.append(fold.error(W, fold.product(W)))
    return np.array(errors)


def _errors_by_iteration(folds: list[Fold], factor: Factor) -> tuple[np.ndarray, int] | None:
    """Held-out errors of all folds at one strength, and the number of iterations; None where they are too many.

    With A = Hc(all) + strength I the weights of a fold solve (A - F) w = v. A preconditions conjugate gradients: the
    eigenvalues of A^-1 (A - F) crowd about 1 - 1/K. The iteration carries A p and A w along (A z = r), so it takes
    one product with F and one solve with the factor, for all folds at once; F w comes out of it as well.
    """
    t = folds[0].train_cross.shape[1]
    V = np.asfortranarray(np.hstack([fold.train_cross for fold in folds]))
    share = np.repeat([fold.train_share for fold in folds], t)
    first = factor.solve(V)
    reference = (V * first).sum(0)
    W, AW = first / share, V / share
    R = V - AW + _products(folds, W)
    P, AP = np.zeros_like(V), np.zeros_like(V)
    rho_before = np.ones(V.shape[1])
    # An error in w is up to 1 / (the smallest eigenvalue) of the residual; the smallest ratio seen stands for that.
    softest = np.ones(V.shape[1])
    most = max(_ITERATIONS, V.shape[0] // (18 * t))
    iterations = 0
    while True:
        Z = factor.solve(R)
        rho = (R * Z).sum(0)
        active = rho > (TOLERANCE * softest) ** 2 * reference
        if not active.any():
            break
        if iterations == most:
            return None
        beta = np.where(active & (iterations > 0), rho / np.where(active, rho_before, 1), 0)
        P, AP = Z + beta * P, R + beta * AP
        TP = AP - _products(folds, P)
        stiffness = np.where(active, (P * TP).sum(0), 1)
        softest = np.minimum(softest, np.where(active, stiffness / np.where(active, (P * AP).sum(0), 1), 1))
        step = np.where(active, rho / stiffness, 0)
        W, AW, R = W + step * P, AW + step * AP, R - step * TP
        rho_before = rho
        iterations += 1
    FW = AW - V + R
    errors = [
        fold.error(W[:, i * t : (i + 1) * t], FW[:, i * t : (i + 1) * t]) for i, fold in enumerate(folds)
    ]
    return np.array(errors), iterations


def _products(folds: list[Fold], P: np.ndarray) -> np.ndarray:
    t = P.shape[1] // len(folds)
    out = np.empty_like(P)
    for i, fold in enumerate(folds):
        out[:, i * t : (i + 1) * t] = fold.product(P[:, i * t : (i + 1) * t])
    return out
