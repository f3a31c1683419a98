"""Exact K-fold cross-validation of the ridge strength, from fold moments of a single pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from chimap._validation import DataError
from chimap.moments import FoldMoments, Moments
from chimap.moments.symmetric import PANEL
from chimap.selection.base import Choice, SelectionResult
from chimap.solvers.base import Asked, Needs
from chimap.solvers.fold import Fold
from chimap.solvers.fold_weights import FoldWeights
from chimap.solvers.from_moments import RidgeProblem
from chimap.solvers.ridge import Factor

# A fold's own factorisation costs D^3/3, iterating for t targets about 6 * 6 t D^2: from t = D/100 on it is the
# cheaper.
_DIRECT = 100
_MOST_DECADES = 9  # from the scale, that a rough search goes
_VECTORS_DIRECTLY = 2  # (D, t), in memory together
_VECTORS_BY_ITERATION = 27  # (D, t) a fold: the iteration's, and the weights of some strengths


def iterates(n_features: int, n_targets: int, fewest_rows: int | None) -> bool:
    """Whether held-out errors come by iteration, not by a factorisation a fold; fewest_rows: that a fold is left to
    train on, None where they are not known (and taken for enough).

    With fewer training rows than features, what only a fold's own rows say is held by the strength alone: its matrix
    and that of the whole are then far apart, and iterations would be many.
    """
    return n_targets * _DIRECT <= n_features and (fewest_rows is None or n_features <= fewest_rows)


def working_bytes(n_features: int, n_targets: int, n_folds: int, fewest_rows: int | None) -> int:
    """What choosing a strength takes at its peak beside the moments of folds and whole, and the factor."""
    vectors = _VECTORS_DIRECTLY
    if n_folds > 1 and iterates(n_features, n_targets, fewest_rows):
        vectors = _VECTORS_BY_ITERATION * n_folds
    return 8 * (n_features * (vectors * n_targets + PANEL) + min(PANEL, n_features) * n_targets)


def check_folds(folds: FoldMoments, whole: Moments) -> None:
    """Raise DataError where a fold has no rows, or leaves none to train on."""
    for k, fold in enumerate(folds.folds):
        if fold.n_rows in (0, whole.n_rows):
            raise DataError(
                f"fold {k} of {len(folds.folds)} holds {fold.n_rows} of {whole.n_rows} rows: too few rows to "
                "cross-validate. Use fewer folds, or give alpha as one number."
            )


def choose_alpha(
    folds: FoldMoments,
    whole: Moments,
    alphas: np.ndarray | str = "auto",
    on_score: Callable[[float, float], None] | None = None,
    factor: Factor | None = None,
    scale: float | None = None,
    left_out: Sequence[int] | None = None,
) -> SelectionResult:
    """Score strengths by exact K-fold cross-validation and choose the best.

    "auto" goes down by decades from a tenth of the mean scatter of a feature until the error rises again, up while it
    falls that way, and tries the half decades beside the best. ``on_score(strength, mean error)`` is called after
    each. factor: as in ``ridge``. scale: the mean scatter of a feature, where the moments are of coordinates of them.
    left_out: the folds that are, one after the other; None is all of them.
    Raises DataError if a fold has no rows or leaves none to train on.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z, noise = rng.normal(size=(200, 4)), rng.normal(size=200)
    >>> y = 3 * Z[:, 0] + noise
    >>> zero = np.zeros(4), np.zeros(1)  # what the moments are about
    >>> folds = FoldMoments.of([Moments(4, 1, *zero).update(Z[k::5], y[k::5]) for k in range(5)], Z.dtype)
    >>> whole = Moments(4, 1, *zero).update(Z, y)
    >>> result = choose_alpha(folds, whole, [0.1, 1.0, 1000.0])
    >>> result.best["alpha"] < 1000, bool(result.r2[result.chosen] > 0.8)
    (True, True)
    """
    check_folds(folds, whole)
    chosen = folds.folds if left_out is None else [folds.folds[k] for k in left_out]
    scorer = _Scorer(chosen, whole, on_score, factor or Factor(whole.n_features))
    if isinstance(alphas, str):
        scale = float(whole.scatter_diagonal().mean()) if scale is None else scale
        _search(scorer, max(scale, np.finfo(float).tiny))
    else:
        for alpha in sorted(np.asarray(alphas, float).reshape(-1), reverse=True):
            scorer.score(float(alpha))
    return scorer.result()


def _search(scorer: _Scorer, scale: float) -> None:
    """Down by decades from a tenth of ``scale`` until the error rises again, up while it falls that way, half decades.

    Half a decade up tells whether it falls that way: a decade up is mostly far off, and costs the most iterations.
    """
    steps: dict[float, int] = {}  # of half a decade from ``scale``

    def best_after(step: int) -> int:
        alpha = scale * 10 ** (step / 2)
        steps[alpha] = step
        scorer.score(alpha)
        return steps[scorer.best()]

    best = -2
    for step in range(-2, -20, -2):
        best = best_after(step)
        if best > step:
            break
    while best_after(best + 1) > best and best < 8:
        if best_after(best + 2) == best + 1:
            return  # it and both beside it are scored
        best += 2
    best_after(best - 1)


def rough_alpha(folds: FoldMoments, whole: Moments, left_out: Sequence[int]) -> float:
    """About the best strength by the error of folds left out: a search of another loss begins there.

    By decades from the mean scatter of a feature, down or up while the error falls, then to the half decade that is
    nearest to the least of a parabola through the best and both beside it: three factorisations mostly, where
    ``choose_alpha`` takes five. Raises DataError as that does.
    """
    check_folds(folds, whole)
    scorer = _Scorer([folds.folds[k] for k in left_out], whole, None, Factor(whole.n_features))
    scale = max(float(whole.scatter_diagonal().mean()), np.finfo(float).tiny)

    def error(decade: int) -> float:
        scorer.score(scale * 10.0**decade)
        return scorer.mean(scale * 10.0**decade)

    best, step = 0, -1 if error(-1) < error(0) else 1
    while abs(best) < _MOST_DECADES and error(best + step) < error(best):
        best += step
    scorer.result()  # which says where no strength will do
    below, least, above = error(best - 1), error(best), error(best + 1)
    bend = below - 2 * least + above
    towards = (below - above) / (2 * bend) if np.isfinite(bend) and bend > 0 else 0.0
    return scale * 10 ** (best + round(2 * towards) / 2)


class _Scorer:
    """Scores one strength at a time; the factor's buffer and the folds' sums are shared among them."""

    def __init__(
        self,
        folds: Sequence[Moments],
        whole: Moments,
        on_score: Callable[[float, float], None] | None,
        factor: Factor,
    ):
        self.whole = whole
        self.folds = [Fold(fold, whole) for fold in folds]
        self.factor = factor
        fewest = whole.n_rows - max(fold.n_rows for fold in folds)
        iterate = iterates(whole.n_features, whole.n_targets, fewest)
        self.weights = FoldWeights(self.folds, whole, self.factor) if iterate else None
        self.scores: dict[float, tuple[np.ndarray, int]] = {}
        self.on_score = on_score

    def score(self, alpha: float) -> None:
        if alpha in self.scores:
            return
        try:
            errors = None if self.weights is None else self.weights.errors(alpha)
            errors = errors or (_errors_directly(self.folds, self.whole, alpha, self.factor), 0)
        except DataError:
            # too small for these data, or for a fold of them: it cannot win, and it is listed with its infinite error
            self.scores[alpha] = (np.full(len(self.folds), np.inf), 0)
            return
        self.scores[alpha] = errors
        if self.on_score is not None:
            self.on_score(alpha, float(self.mean(alpha)))

    def mean(self, alpha: float) -> float:
        counts = [fold.count for fold in self.folds]
        return float(np.average(self.scores[alpha][0], weights=counts))

    def best(self) -> float:
        return min(self.scores, key=self.mean)

    def result(self) -> SelectionResult:
        alphas = np.array(sorted(self.scores))
        best = self.best()
        if not np.isfinite(self.mean(best)):
            raise DataError(
                f"none of alpha={alphas} is large enough: the features are linearly dependent to "
                "rounding. Give larger ones, or alpha='auto'."
            )
        return SelectionResult(
            "folds",
            {"alpha": alphas},
            np.array([self.scores[s][0] for s in alphas]),
            np.array([fold.count for fold in self.folds]),
            int(np.searchsorted(alphas, best)),
            baseline=float(self.whole.target_scatter().sum()) / self.whole.count,
            iterations=np.array([self.scores[s][1] for s in alphas]),
        )


def _errors_directly(folds: list[Fold], whole: Moments, alpha: float, factor: Factor) -> np.ndarray:
    """Held-out errors of all folds at one strength, by a factorisation a fold: for many targets."""
    errors = []
    for fold in folds:
        factor.of(whole, alpha, less=fold)
        W = factor.solve(fold.train_cross)
        errors.append(fold.error(W))
    return np.array(errors)


class Folds:
    """Exact folds of ridge, from the moments of one pass."""

    rule: ClassVar[str] = "folds"
    usual_scores: ClassVar[int | None] = 7

    @classmethod
    def serves(cls, needs: Needs, n_folds: int, n_rows: int, asked: Asked) -> bool:
        """See ``Selection``."""
        return needs == "moments" and n_folds > 1

    def __init__(self, on_score: Callable[[], None] = lambda: None):
        self._on_score = on_score

    def choose(self, problem: RidgeProblem, alphas: Sequence[float] | None) -> Choice:
        """See ``Selection``."""
        result = choose_alpha(
            problem.moments, problem.whole, "auto" if alphas is None else np.asarray(alphas),
            lambda alpha, error: self._on_score(), problem.factor, problem.scale,
        )  # fmt: skip
        return result, None
