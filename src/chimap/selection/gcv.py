"""The ridge strength by generalised cross-validation: one factor a strength, no folds, and the last is the solution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from chimap._types import DTypeLike
from chimap._validation import DataError
from chimap.moments import Moments
from chimap.selection.base import Choice, SelectionResult
from chimap.selection.gcv_score import GcvScore, GcvScorer
from chimap.solvers.base import Asked, Needs, Tried
from chimap.solvers.from_moments import RidgeProblem
from chimap.solvers.ridge import LinearSolution, solution

FEWEST_ROWS = 3  # with which a residual has degrees of freedom left
_FAR = 1e9  # strengths are looked for within that factor of the mean scatter of a feature
_WORTH = 0.999  # of the score: a decade that gains less is the last
_DOWN = (
    100  # from the strength of least squared error to the least that the score of rows left out is asked of
)
_ENOUGH = 0.25 * float(np.log(10))  # strengths closer than that, a quarter of a decade, are as good


def choose_by_gcv(
    whole: Moments,
    alphas: Sequence[float] | str = "auto",
    on_score: Callable[[float, float], None] | None = None,
    scale: float | None = None,
    seed: int = 0,
    tried: Tried | None = None,
    dtype: DTypeLike = np.float64,
) -> tuple[LinearSolution, SelectionResult]:
    """The strength of least generalised cross-validation, and ridge at it.

        GCV(alpha) = (RSS / n) / (1 - df / n)^2,   df = 1 + D - alpha tr (Hc + alpha I)^-1

    is the mean squared error of leaving one row out with every row's leverage the mean one. It takes the moments of all
    rows and a Cholesky factor a strength, in float32 with refinement by the sums where that is accurate; the trace from
    32 random signs solved for, the same for all strengths, or exactly where these are too few. Factor and probes give
    the slope too, so that "auto" needs three or four: it goes downhill by decades until the slope turns and ends at the
    minimum of the cubic between the last two.

    Of rows with weights n is the sum of these: a row of weight 2 is two rows. Weights that average less than one say
    what rows count beside each other, and n is the number of rows.

    A strength at which the rounding of the sums could make the residuals or n - df what they are scores infinite.

    It presumes independent rows: with duplicates, or several rows of one thing, every row is predicted from its twins
    and the strength comes out too small. Folds by group are right there.

    Parameters
    ----------
    whole : Moments
        Of all rows.
    alphas : "auto", or strengths to choose from
    on_score : called with (strength, score) after each
    scale : what a search begins from, the mean scatter of a feature where it is None
    seed : of the probes
    tried : rows of these moments whose score has the last word between that strength and two decades below it, each
        predicted from all others in closed form; or None
    dtype : of the features, in which their products were summed

    Returns
    -------
    solution : LinearSolution
        At the chosen strength.
    result : SelectionResult
        Scores of all that were tried; infinite where the matrix is singular to rounding.

    Raises
    ------
    DataError
        For fewer than three rows, and where every strength is too small.

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
    best, result, _ = _chosen(whole, alphas, on_score, scale, seed, tried, dtype)
    return best, result


def _chosen(
    whole: Moments,
    alphas: Sequence[float] | str,
    on_score: Callable[[float, float], None] | None,
    scale: float | None,
    seed: int,
    tried: Tried | None,
    dtype: DTypeLike,
) -> tuple[LinearSolution, SelectionResult, np.ndarray | None]:
    """See ``choose_by_gcv``; and outputs of the tried rows, each left out, at that strength, if they had a say."""
    if whole.n_rows < FEWEST_ROWS:
        raise DataError(f"{whole.n_rows} rows are too few to choose alpha by gcv. Give alpha as one number.")
    scorer = GcvScorer(whole, seed, on_score, float(np.finfo(dtype).eps))
    if isinstance(alphas, str):
        scale = float(whole.scatter_diagonal().mean()) if scale is None else scale
        _descend(scorer, max(scale, float(np.finfo(np.float32).tiny)))
    else:
        for alpha in sorted((float(a) for a in alphas), reverse=True):
            scorer.at(alpha)
    best = scorer.best()
    word = None if tried is None else LastWord(scorer, tried)
    if word is not None:
        best = word.between(best, None if isinstance(alphas, str) else alphas)
    compared = sorted(scorer.scores.values(), key=lambda score: score.alpha)
    settings = {
        "alpha": np.array([score.alpha for score in compared]),
        "df": np.array([score.df for score in compared]),
    }
    if word is not None:
        settings[word.name] = np.array([word.scores.get(score.alpha, np.nan) for score in compared])
    result = SelectionResult(
        "gcv",
        settings,
        np.array([[score.score] for score in compared]),
        np.ones(1),
        compared.index(best),
        "gcv",
        baseline=float(whole.target_scatter().sum()) / whole.count,
    )
    left_out = None if word is None else word.outputs_at(best.alpha)
    return solution(whole, best.coef, best.alpha), result, left_out


def _descend(scorer: GcvScorer, scale: float) -> None:
    """Downhill by decades from a tenth of the scale until it is no longer worth it, and the minimum between."""
    alpha = 0.1 * scale
    before, now = None, scorer.at(alpha)
    factor = 10.0 if now.slope < 0 or not np.isfinite(now.score) else 0.1
    while not np.isfinite(now.score) or now.slope * np.log(factor) < 0:
        alpha *= factor
        if not 1 / _FAR < alpha / scale < _FAR:
            return
        before, now = now, scorer.at(alpha)
        if np.isfinite(before.score) and not now.score < _WORTH * before.score:
            break
    if before is None or not np.isfinite([before.score, now.score]).all():
        return
    least = _cubic_minimum(np.log([before.alpha, now.alpha]), before, now)
    if all(abs(least - np.log(score.alpha)) > _ENOUGH for score in (before, now)):
        scorer.at(float(np.exp(least)))


def _cubic_minimum(x: np.ndarray, one: GcvScore, other: GcvScore) -> float:
    """Where the cubic of two values and slopes, of ln GCV in ln alpha, is least between them."""
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


class LastWord:
    """The user's score of rows that are left out one by one, between the strength of least squared error and two
    decades below it: scores of classes want a weaker one.

        y_i - f_-i(x_i) = (y_i - f(x_i)) / (1 - h_i),   h_i = 1/n + (z_i - mean)' (Hc + alpha I)^-1 (z_i - mean)
    """

    def __init__(self, scorer: GcvScorer, tried: Tried):
        self._scorer, self._tried = scorer, tried
        self.name = tried.measure
        self.scores: dict[float, float] = {}
        self._outputs: tuple[float, np.ndarray] | None = None  # of the best so far

    def outputs_at(self, alpha: float) -> np.ndarray | None:
        """Of the rows, each left out, (h, t), less the targets' shift, at the best strength; None at others."""
        return self._outputs[1] if self._outputs is not None and self._outputs[0] == alpha else None

    def between(self, top: GcvScore, alphas: Sequence[float] | None) -> GcvScore:
        """The best of some strengths from that of ``top`` down; of equals the largest."""
        if alphas is not None:
            for alpha in alphas:
                if top.alpha / _DOWN <= alpha <= top.alpha:
                    self._at(float(alpha))
        elif self._at_both(top.alpha, top.alpha / 10):
            lower = self._at(top.alpha / _DOWN) > self._at(top.alpha / 10)
            self._at(top.alpha / 10 ** (1.5 if lower else 0.5))
        else:
            self._at(top.alpha / 10**0.5)
        best = self._best()
        return self._scorer.scores[best] if np.isfinite(self.scores[best]) else top

    def _at_both(self, top: float, weaker: float) -> bool:
        """Whether the weaker strength is as good; that of the factor at hand first, which the other's overwrites."""
        for alpha in sorted((top, weaker), key=lambda alpha: alpha != self._scorer.factor_of):
            self._at(alpha)
        return self.scores[top] <= self.scores[weaker]

    def _at(self, alpha: float) -> float:
        if alpha not in self.scores:
            outputs = self._scorer.left_out(self._tried, alpha)
            self.scores[alpha] = -np.inf if outputs is None else self._tried.scored(outputs)
            if outputs is not None and self._best() == alpha:
                self._outputs = alpha, outputs
        return self.scores[alpha]

    def _best(self) -> float:
        """Of equals the largest."""
        return max(self.scores, key=lambda alpha: (self.scores[alpha], alpha))


class GeneralisedCrossValidation:
    """``choose_by_gcv`` as a rule of the catalogue: for ridge whose rows are not in folds."""

    rule: ClassVar[str] = "gcv"
    usual_scores: ClassVar[int | None] = 4

    def __init__(self, on_score: Callable[[], None] = lambda: None):
        self._on_score = on_score

    @classmethod
    def serves(cls, needs: Needs, n_folds: int, n_rows: int, asked: Asked) -> bool:
        """See ``Selection``."""
        return needs == "moments" and n_folds == 1 and n_rows >= FEWEST_ROWS

    def choose(self, problem: RidgeProblem, alphas: Sequence[float] | None) -> Choice:
        """See ``Selection``."""
        several: Sequence[float] | str = "auto" if alphas is None else alphas
        weights, result, left_out = _chosen(
            problem.whole, several, lambda alpha, score: self._on_score(), problem.scale, 0, problem.tried,
            problem.moments.dtype,
        )  # fmt: skip
        if left_out is not None:
            problem.left_out = weights.alpha, left_out
        return result, problem.in_features(weights)
