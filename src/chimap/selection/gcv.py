"""The ridge strength by generalised cross-validation (GCV): a factor for each strength, and no folds.

``GeneralisedCrossValidation`` is the rule of a fit of ridge whose rows are not in folds. ``gcv_score`` computes the
score of one strength; this module searches for the best one. If the user's score can be computed on rows of the fit
(``TriedRows``), it makes the final choice near the minimum. The weights come with the score, so the chosen strength is
not solved again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from chimap._messages import Message
from chimap._types import DTypeLike
from chimap._validation import DataError
from chimap.moments import Moments
from chimap.selection.base import Choice, SelectionResult
from chimap.selection.gcv_coarse import (
    CLOSE,
    FROM_FEATURES,
    CoarseChoice,
    curvature_at,
    half_of,
    scaled,
)
from chimap.selection.gcv_score import GcvScore, GcvScorer
from chimap.selection.last_word import LastWord
from chimap.solvers.base import Asked, Needs, Tried
from chimap.solvers.from_moments import RidgeProblem
from chimap.solvers.ridge import LinearSolution, solution

FEWEST_ROWS = 3  # fewer leave no degrees of freedom for a residual
_FAR = 1e9  # a search stays within this factor of the mean scatter of a feature
_WORTH = 0.999  # the search ends at a decade whose score is not below this share of the last one


def choose_by_gcv(
    whole: Moments,
    alphas: Sequence[float] | str = "auto",
    on_score: Callable[[float, float], None] | None = None,
    scale: float | None = None,
    seed: int = 0,
    tried: Tried | None = None,
    dtype: DTypeLike = np.float64,
    n_rows: float | None = None,
) -> tuple[LinearSolution, SelectionResult]:
    """Choose the ridge strength of least generalised cross-validation, and return ridge at that strength.

        GCV(alpha) = (RSS / n) / (1 - df / n)^2,   df = 1 + D - alpha tr (Hc + alpha I)^-1

    is the mean squared error of leaving out one row, with the leverage of every row replaced by the mean one. It takes
    the moments of all rows and one Cholesky factor for each strength, in float32 with refinement by the sums where that
    is accurate. The trace is estimated from solutions for 32 random vectors of signs, the same for all strengths, or
    computed exactly where these are too few. Factor and vectors also give the slope, so "auto" needs three or four
    strengths: it goes downhill by decades until the slope turns, and ends at the minimum of the cubic between the last
    two. From 4000 features on, it searches with half of them and confirms the strength with all (``gcv_coarse``).

    With weighted rows, n is the effective number of rows, (sum w)^2 / sum w^2: equal weights change nothing, and a few
    heavy rows count as few rows. Where weights are numbers of equal rows, n is their sum. Moments do not contain it, so
    it is given as ``n_rows``.

    A strength scores infinite if rounding errors of the sums could be as large as the residuals or n - df.

    The rows must be independent. With duplicates, or several rows of one object, every row is predicted from its
    copies, and the strength comes out too small; choose by folds of groups then.

    Parameters
    ----------
    whole : Moments
        Moments of all rows.
    alphas : sequence of float or "auto", default="auto"
        Strengths to choose from, or "auto" for a search.
    on_score : callable or None, default=None
        Called as ``on_score(alpha, score)`` after each strength.
    scale : float or None, default=None
        The search begins at a tenth of it; None for the mean scatter of a feature.
    seed : int, default=0
        Seed of the random signs.
    tried : Tried or None, default=None
        Some rows of these moments, each predicted from all others in closed form. Their score makes the final choice
        between the strength of least GCV and two decades below it.
    dtype : dtype, default=np.float64
        Precision of the features, in which their products were summed.
    n_rows : float or None, default=None
        The number n that the rows count as; None for the number of rows.

    Returns
    -------
    solution : LinearSolution
        Ridge at the chosen strength.
    result : SelectionResult
        Scores of all strengths that were tried; infinite where the matrix is singular to rounding.

    Raises
    ------
    DataError
        If there are fewer than three rows, or if every strength is too small.

    References
    ----------
    Golub, Heath and Wahba, Generalized cross-validation as a method for choosing a good ridge parameter (1979); Patil,
    Wei, Rinaldo and Tibshirani, Uniform consistency of cross-validation estimators for high-dimensional ridge
    regression (2021), for more features than rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(200, 3))
    >>> y = Z @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=200)
    >>> solution, chosen = choose_by_gcv(Moments(3, 1).update(Z, y))
    >>> solution.coef.ravel().round(1).tolist(), chosen.rule
    ([1.0, 2.0, 3.0], 'gcv')
    """
    best, result, _ = _chosen(whole, alphas, on_score, scale, seed, tried, dtype, n_rows)
    return best, result


def _chosen(
    whole: Moments,
    alphas: Sequence[float] | str,
    on_score: Callable[[float, float], None] | None,
    scale: float | None,
    seed: int,
    tried: Tried | None,
    dtype: DTypeLike,
    n_rows: float | None,
) -> tuple[LinearSolution, SelectionResult, np.ndarray | None]:
    """Do the same, and also return the left-out outputs of the tried rows, if they made the final choice."""
    if whole.n_rows < FEWEST_ROWS:
        raise DataError(
            Message("{} rows are too few to choose {alpha} by gcv. Give {alpha} as one number.", whole.n_rows)
        )
    precision = float(np.finfo(dtype).eps)
    usual = float(whole.scatter_diagonal().mean()) if scale is None else scale
    usual = max(usual, float(np.finfo(np.float32).tiny))
    coarse = None
    if isinstance(alphas, str) and whole.n_features >= FROM_FEATURES:
        coarse = _of_half(whole, usual, seed, tried, precision, n_rows)
    scorer = GcvScorer(whole, seed, on_score, precision, n_rows)
    if isinstance(alphas, str):
        if coarse is None or not _confirm(scorer, coarse, usual):
            coarse = None
            _descend(scorer, 0.1 * usual, usual)
    else:
        for alpha in sorted((float(a) for a in alphas), reverse=True):
            scorer.at(alpha)
    best = scorer.best()
    final_choice = None if tried is None else LastWord(scorer, tried)
    if final_choice is not None and coarse is not None:
        best = final_choice.beside(best, coarse.share)
    elif final_choice is not None:
        best = final_choice.between(best, None if isinstance(alphas, str) else alphas)
    compared = sorted(scorer.scores.values(), key=lambda score: score.alpha)
    settings = {
        "alpha": np.array([score.alpha for score in compared]),
        "df": np.array([score.df for score in compared]),
    }
    if final_choice is not None:
        settings[final_choice.name] = np.array(
            [final_choice.scores.get(score.alpha, np.nan) for score in compared]
        )
    result = SelectionResult(
        "gcv",
        settings,
        np.array([[score.score] for score in compared]),
        np.ones(1),
        compared.index(best),
        "gcv",
        baseline=float(whole.target_scatter().sum()) / whole.count,
    )
    left_out = None if final_choice is None else final_choice.outputs_at(best.alpha)
    return solution(whole, best.coef, best.alpha), result, left_out


def _of_half(
    whole: Moments, scale: float, seed: int, tried: Tried | None, precision: float, n_rows: float | None
) -> CoarseChoice | None:
    """Choose by half of the features; None where they do not say how the score bends at its least."""
    chosen = half_of(whole.n_features)
    half = whole.of_features(chosen)
    scorer = GcvScorer(half, seed, None, precision, n_rows)
    _descend(scorer, 0.1 * scale, scale)
    if not any(np.isfinite(score.score) for score in scorer.scores.values()):
        return None
    top = scorer.best()
    curvature = curvature_at(scorer, top.alpha)
    if not curvature > 0:
        return None
    share = 1.0
    if tried is not None:
        share = LastWord(scorer, tried.of_features(chosen)).between(top, None).alpha / top.alpha
    return CoarseChoice(top.alpha * scaled(half, whole), curvature, share)


def _confirm(scorer: GcvScorer, coarse: CoarseChoice, scale: float) -> bool:
    """Score the strength of a coarse choice and, where its slope says that it is off, better ones.

    Returns False where the matrix is singular to rounding at one of the first two.
    """
    score = scorer.at(coarse.alpha)
    step = coarse.step(score)
    if step and np.isfinite(score.score):
        moved = scorer.at(coarse.alpha * float(np.exp(step)))
        if moved.slope * step < 0 and coarse.step(moved):
            _descend(scorer, moved.alpha, scale)
        else:
            _between(scorer, score, moved)
        return bool(np.isfinite([score.score, moved.score]).all())
    return bool(np.isfinite(score.score))


def _descend(scorer: GcvScorer, start: float, scale: float) -> None:
    """Search alpha downhill by decades from ``start``.

    Once the slope turns or a decade no longer pays, add the minimum of the cubic between the last two.
    """
    alpha = start
    before, now = None, scorer.scores.get(start) or scorer.at(start)
    factor = 10.0 if now.slope < 0 or not np.isfinite(now.score) else 0.1
    while not np.isfinite(now.score) or now.slope * np.log(factor) < 0:
        alpha *= factor
        if not 1 / _FAR < alpha / scale < _FAR:
            return
        before, now = now, scorer.at(alpha)
        if np.isfinite(before.score) and not now.score < _WORTH * before.score:
            break
    if before is not None:
        _between(scorer, before, now)


def _between(scorer: GcvScorer, before: GcvScore, now: GcvScore) -> None:
    """Score the minimum of the cubic between two strengths, unless it is close to one of them."""
    if not np.isfinite([before.score, now.score]).all():
        return
    least = _cubic_minimum(np.log([before.alpha, now.alpha]), before, now)
    if all(abs(least - np.log(score.alpha)) > CLOSE for score in (before, now)):
        scorer.at(float(np.exp(least)))


def _cubic_minimum(x: np.ndarray, one: GcvScore, other: GcvScore) -> float:
    """Return where the cubic with these values and slopes of ln GCV, as a function of ln alpha, is least."""
    step = x[1] - x[0]
    t = np.linspace(0, 1, 201)
    values, slopes = np.log([one.score, other.score]), step * np.array([one.slope, other.slope])
    cubic = (
        (1 + 2 * t) * (1 - t) ** 2 * values[0]
        + t * (1 - t) ** 2 * slopes[0]
        + t**2 * (3 - 2 * t) * values[1]
        + t**2 * (t - 1) * slopes[1]
    )
    return float(x[0] + step * t[np.argmin(cubic)])


class GeneralisedCrossValidation:
    """The rule that calls ``choose_by_gcv``: for ridge whose rows are not in folds."""

    rule: ClassVar[str] = "gcv"
    usual_scores: ClassVar[int | None] = 4

    def __init__(self, on_score: Callable[[], None] = lambda: None):
        self._on_score = on_score

    @classmethod
    def serves(cls, needs: Needs, n_folds: int, n_rows: int, asked: Asked) -> bool:
        """See ``Selection``."""
        return needs == "moments" and (n_folds == 1 or asked == "gcv") and n_rows >= FEWEST_ROWS

    def choose(self, problem: RidgeProblem, alphas: Sequence[float] | None) -> Choice:
        """See ``Selection``."""
        strengths: Sequence[float] | str = "auto" if alphas is None else alphas
        weights, result, left_out = _chosen(
            problem.whole, strengths, lambda alpha, score: self._on_score(), problem.scale, 0, problem.tried,
            problem.moments.dtype, problem.whole.count / problem.unit,
        )  # fmt: skip
        if left_out is not None:
            problem.left_out = weights.alpha, left_out
        return result, problem.in_features(weights)
