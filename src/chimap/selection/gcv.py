"""The ridge strength by generalised cross-validation (GCV): a factor for each strength, and no folds.

``GeneralisedCrossValidation`` is the rule of a fit of ridge whose rows are not in folds, and ``choose_by_gcv`` the same
from moments. ``GcvScorer`` computes the score of one strength and its slope from one Cholesky factor; the search goes
downhill. The weights come with the score, so the chosen strength is not solved again. If the user's score can be
computed on rows of the fit (``ScoredRows``), it makes the final choice near the minimum (``FinalChoice``).

With many features a factorisation is expensive (D^3/3 operations), and a search takes four or five. The strength hardly
depends on the number of features, so half of them find where it lies, and how far below it the user's score is best,
for an eighth of the price (``CoarseChoice``); with all features it is then confirmed, and moved by one step of Newton
if it is off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap import _threads
from chimap._cholesky import factorise, inverse_diagonal, solve, squared_norms
from chimap._messages import Message
from chimap._types import DTypeLike
from chimap._validation import DataError
from chimap.moments import Moments
from chimap.selection.base import Compared, OpenSettings, Selection, SelectionResult
from chimap.solvers.from_moments import FEWEST_ROWS, RidgeProblem
from chimap.solvers.held_out import ScoredRows
from chimap.solvers.ridge import LinearSolution, solution

_PROBES = 32  # random vectors of signs that estimate a trace
_TRACE_NOISE = 0.02  # share of n - df that the estimate may be off by; beyond it, the trace is computed exactly
_FEATURES_IN_SINGLE = 512  # features; a factor of fewer takes no time in float64
_REFINED_SHARE = 1e-4  # refinement ends with a correction below this share of the weights
_MOST_REFINEMENTS = 3  # of refinement at most
_ROUNDINGS = 4.0  # the residuals, and n - df, must be at least this many times their rounding errors
_LEAST_REMAINDER = 1e-6  # lower bound of 1 - leverage of a row


@dataclass(frozen=True)
class GcvScore:
    """A strength with score = (RSS/n) / (1 - df/n)^2, its relative slope in ln alpha, df, and the weights."""

    alpha: float
    score: float
    slope: float
    df: float
    coef: np.ndarray


def _nothing(alpha: float) -> GcvScore:
    """Return an infinite score, for a strength that rounding errors prevent from being scored."""
    return GcvScore(alpha, np.inf, 0.0, np.nan, np.empty((0, 0)))


class GcvScorer:
    """Scores one strength at a time in one (D, D) buffer, which is scaled to a unit diagonal."""

    def __init__(
        self,
        whole: Moments,
        seed: int,
        on_score: Callable[[float, float], None] | None,
        precision: float = float(np.finfo(np.float64).eps),
        n_rows: float | None = None,
        scored_rows: ScoredRows | None = None,
    ):
        self.whole, self.on_score, self.precision = whole, on_score, precision
        unequal = scored_rows is not None and len(scored_rows) and np.ptp(scored_rows.weights_of_one) > 0
        self.unequal_rows = scored_rows if unequal else None
        self.n_rows = float(whole.n_rows) if n_rows is None or unequal else n_rows
        n = whole.n_features
        self.dtype = np.dtype(np.float32 if n > _FEATURES_IN_SINGLE else np.float64)
        self.square = np.empty((n, n), dtype=self.dtype)
        self.probes = np.random.default_rng(seed).choice([-1.0, 1.0], (n, min(_PROBES, n)))
        self.cross = whole.cross_scatter()
        self.diagonal = whole.scatter_diagonal()
        self.total = float(whole.target_scatter().sum())
        self.scores: dict[float, GcvScore] = {}
        self.factor_of: float | None = None  # the strength whose factor is in the buffer

    def best(self) -> GcvScore:
        """Return the least score so far; ties go to the largest strength. Raise DataError if none is finite."""
        best = min(self.scores.values(), key=lambda score: (score.score, -score.alpha))
        if not np.isfinite(best.score):
            raise DataError(
                Message(
                    "none of the strengths {} is large enough: the features are linearly dependent to rounding. Give "
                    "larger ones, or {alpha='auto'}.",
                    sorted(s.alpha for s in self.scores.values()),
                )
            )
        return best

    def at(self, alpha: float) -> GcvScore:
        """Return the score of a strength, with its slope; in float64 if float32 is not accurate."""
        score = self._score(alpha)
        if score is None and self.dtype != np.float64:
            self.dtype = np.dtype(np.float64)  # also for all later strengths
            self.square = np.empty(self.square.shape)
            self.factor_of = None
            score = self._score(alpha)
        self.scores[alpha] = score or _nothing(alpha)
        if self.on_score is not None:
            self.on_score(alpha, self.scores[alpha].score)
        return self.scores[alpha]

    def left_out(self, scored_rows: ScoredRows, alpha: float) -> np.ndarray | None:
        """Return ridge outputs (h, t), less the target shift, for scored rows when each of them is left out.

        They are None where the matrix is singular to rounding.
        """
        score = self.scores[alpha] if alpha in self.scores else self.at(alpha)
        roots = self._factorised(alpha) if np.isfinite(score.score) else None
        if roots is None:
            return None
        whole = self.whole
        origin, mean = whole.feature_sum / whole.count, whole.target_sum / whole.count
        X = np.empty(scored_rows.Z.shape, dtype=self.square.dtype)
        for block in scored_rows.blocks():
            X[block] = (scored_rows.Z[block] - origin) * roots
        leverages = 1 / whole.count + squared_norms(self.square, X)
        if scored_rows.weights is not None:
            leverages *= scored_rows.weights
        errors = scored_rows.Y - scored_rows.outputs(score.coef, origin, mean)
        return np.asarray(scored_rows.Y - errors / np.maximum(1 - leverages, _LEAST_REMAINDER)[:, None])

    def _score(self, alpha: float) -> GcvScore | None:
        """Return the score of a strength; None if a factor of higher precision is needed."""
        roots = self._factorised(alpha)
        if roots is None:
            return None
        t = self.cross.shape[1]
        right = np.hstack([self.cross, self.probes])
        X = self._solve(right, alpha, roots)
        if X is None:
            return None
        W, P = X[:, :t], X[:, t:]
        twice_divided = self._divide(W, roots)  # -dW / d alpha = (Hc + alpha I)^-1 W
        n = self.n_rows
        rss = max(self.total - float((W * self.cross).sum()) - alpha * float(np.square(W).sum()), 0.0)
        rss_slope = 2 * alpha**2 * float((W * twice_divided).sum())
        probe_traces = alpha * (self.probes * P).sum(axis=0)
        traces, trace_slope = (probe_traces.mean(), probe_traces.mean() - alpha**2 * np.square(P).sum(axis=0).mean())
        left = n - 1 - self.whole.n_features + traces  # n - df
        if not left > probe_traces.std() / np.sqrt(probe_traces.size) / _TRACE_NOISE:
            traces = alpha * float((inverse_diagonal(self.square) * roots**2).sum())
            left = n - 1 - self.whole.n_features + traces
        # A rounding error of the sums, of this share of a scatter entry, moves both by about so much (to first order).
        rss_off = self.precision * float((self.diagonal @ np.square(W)).sum())
        left_off = self.precision * alpha * float((self.diagonal @ np.square(P)).mean())
        if rss < _ROUNDINGS * rss_off or left < _ROUNDINGS * left_off:
            return _nothing(alpha)  # a factor of higher precision would not help
        if not left > 1e-6 * n:
            return None  # no degrees of freedom are left to estimate the error from
        rss = max(rss, 1e-15 * self.total)  # not below rounding
        if self.unequal_rows is None:
            rise, rise_slope = (n / left) ** 2, -2 * trace_slope / left
        else:
            rise, rise_slope = self._rise(self.unequal_rows, alpha, roots, W, twice_divided)
        score = rss / self.whole.count * rise
        slope = rss_slope / rss + rise_slope if rss > 0 else 0.0
        return GcvScore(alpha, float(score), float(slope), float(n - left), W)

    def _rise(
        self, rows: ScoredRows, alpha: float, roots: np.ndarray, W: np.ndarray, twice_divided: np.ndarray
    ) -> tuple[float, float]:
        """Return the factor by which squared errors rise as weighted rows are left out, and the slope of its logarithm.

        A mean leverage says little of rows whose weights differ: that of a heavy row is larger, and so are its errors
        where a class is heavy. So these rows are left out with the leverages of their own.
        """
        weights, whole = np.asarray(rows.weights, dtype=np.float64), self.whole
        origin, mean = whole.feature_sum / whole.count, whole.target_sum / whole.count
        errors = rows.Y - rows.outputs(W, origin, mean)
        errors_slope = alpha * rows.outputs(twice_divided, origin, np.zeros(mean.size))
        leverages, falls = (np.empty(len(rows)) for _ in range(2))
        for block in rows.blocks():
            X = (rows.Z[block] - origin).astype(np.float64)
            divided = self._divide(X.T, roots)
            leverages[block] = 1 / whole.count + (X * divided.T).sum(axis=1)
            falls[block] = alpha * np.square(divided).sum(axis=0)
        ones = rows.weights_of_one
        kept = np.maximum(1 - ones * leverages, _LEAST_REMAINDER)
        inside, across = np.square(errors).sum(axis=1), 2 * (errors * errors_slope).sum(axis=1)
        left_out = weights * inside / kept**2
        slopes = weights * across / kept**2 - 2 * left_out * ones * falls / kept
        total, within = left_out.sum(), weights @ inside
        if not total > 0 < within:
            return 1.0, 0.0
        return float(total / within), float(slopes.sum() / total - weights @ across / within)

    def _factorised(self, alpha: float) -> np.ndarray | None:
        """Factorise at a strength, unless the buffer holds that factor; return roots (D,), or None if singular."""
        if self.factor_of == alpha:
            return self._roots(alpha)
        self.factor_of = None
        roots = self._fill(alpha)
        if not factorise(self.square):
            return None
        self.factor_of = alpha
        return roots

    def _fill(self, alpha: float) -> np.ndarray:
        """Write diag(roots) (Hc + alpha I) diag(roots), whose diagonal is 1, above the diagonal; return roots (D,)."""
        roots = self._roots(alpha)
        sums, count = self.whole.feature_sum, self.whole.count

        def part(panel: tuple[int, np.ndarray]) -> None:
            first, values = panel
            rows = slice(first, first + values.shape[0])
            block = values - np.outer(sums[rows], sums[first:] / count)
            block *= roots[rows, None]
            block *= roots[first:]
            self.square[rows, first:] = block

        _threads.tasks(self.whole.features.panels(), part)
        np.fill_diagonal(self.square, 1)
        return roots

    def _roots(self, alpha: float) -> np.ndarray:
        """Return the scale (D,) of rows and columns that makes the diagonal of Hc + alpha I equal to 1."""
        return np.asarray(1 / np.sqrt(np.maximum(self.diagonal, 0) + alpha))

    def _divide(self, B: np.ndarray, roots: np.ndarray) -> np.ndarray:
        """Return (Hc + alpha I)^-1 B in the precision of the factor."""
        return roots[:, None] * solve(self.square, roots[:, None] * B).astype(np.float64)

    def _solve(self, B: np.ndarray, alpha: float, roots: np.ndarray) -> np.ndarray | None:
        """Return (Hc + alpha I)^-1 B, refined by the sums; None if rounding has spoilt the factor."""
        X = self._divide(B, roots)
        sizes = np.linalg.norm(X / roots[:, None])
        for _ in range(_MOST_REFINEMENTS):
            change = self._divide(B - self.whole.scatter_product(X) - alpha * X, roots)
            X += change
            share = np.linalg.norm(change / roots[:, None]) / max(sizes, np.finfo(float).tiny)
            if not share < 0.5:
                return None
            if share < _REFINED_SHARE:
                break
        return X


FEWEST_FEATURES_TO_HALVE = 4000  # below, the search takes about as long as what the half would save
QUARTER_DECADE = 0.25 * float(np.log(10))  # strengths within a quarter of a decade are as good as each other
_LONGEST_STEP = float(np.log(10))  # of Newton, in ln alpha: beyond a decade its parabola says nothing


@dataclass(frozen=True)
class CoarseChoice:
    """Alpha estimated from every second feature.

    alpha : the strength of least GCV, for all features.
    curvature : of ln GCV in ln alpha there, above 0.
    share : the strength that the user's score prefers, as a share of alpha.
    """

    alpha: float
    curvature: float
    share: float = 1.0

    def step(self, score: GcvScore) -> float:
        """Return the step of Newton in ln alpha from a score of all features, 0 where it would not matter."""
        step = float(np.clip(-score.slope / self.curvature, -_LONGEST_STEP, _LONGEST_STEP))
        return step if abs(step) > QUARTER_DECADE else 0.0


def half_of(n_features: int) -> np.ndarray:
    """Return every second feature: of random features a sine goes with its cosine, and every block has its half."""
    return np.arange(0, n_features, 2)


def alpha_ratio(half: Moments, whole: Moments) -> float:
    """Return by how much a strength of the half grows with all features.

    Half of the random features make half of the kernel, so that their strength is half as large; landmarks make all of
    it with few features, and their strength stays. The root of the ratio of the scatters is within a factor of 1.5 of
    both, which is less than a quarter of a decade.
    """
    ratio = float(whole.scatter_diagonal().sum()) / max(float(half.scatter_diagonal().sum()), np.finfo(float).tiny)
    return float(np.sqrt(ratio))


def curvature_at(scorer: GcvScorer, alpha: float) -> float:
    """Return the second derivative of ln GCV in ln alpha, of the cubic through the two nearest strengths scored.

    Where the cubic bends down there, the mean of the second derivative between the two takes its place; 0 where only
    one was scored.
    """
    scores = [score for score in scorer.scores.values() if np.isfinite(score.score)]
    if len(scores) < 2:
        return 0.0
    a, b = sorted(scores, key=lambda score: abs(np.log(score.alpha / alpha)))[:2]
    step = float(np.log(b.alpha / a.alpha))
    t = float(np.log(alpha / a.alpha)) / step
    rise = float(np.log(b.score / a.score)) / step
    cubic = ((6 - 12 * t) * rise + (6 * t - 4) * a.slope + (6 * t - 2) * b.slope) / step
    return cubic if cubic > 0 else (b.slope - a.slope) / step


_RANGE_BELOW = 100  # factor by which the user's score may lower the strength of least squared error


class FinalChoice:
    """The final choice by the user's score of rows that are left out one by one.

    It is made between the strength of least squared error and two decades below it, as scores of classes favour a
    weaker penalty. A row is left out in closed form:

        y_i - f_-i(x_i) = (y_i - f(x_i)) / (1 - h_i),   h_i = 1/n + (z_i - mean)' (Hc + alpha I)^-1 (z_i - mean)
    """

    def __init__(self, scorer: GcvScorer, scored_rows: ScoredRows):
        self._scorer, self._scored_rows = scorer, scored_rows
        self.name = scored_rows.measure
        self.scores: dict[float, float] = {}
        self._outputs: tuple[float, np.ndarray] | None = None  # at the best strength so far

    def outputs_at(self, alpha: float) -> np.ndarray | None:
        """Return left-out outputs (h, t), less the shift of the targets, at the best strength; None at others."""
        return self._outputs[1] if self._outputs is not None and self._outputs[0] == alpha else None

    def between(self, top: GcvScore, alphas: Sequence[float] | None) -> GcvScore:
        """Return the strength with the best score among some from that of ``top`` down; ties go to the largest."""
        if alphas is not None:
            for alpha in alphas:
                if top.alpha / _RANGE_BELOW <= alpha <= top.alpha:
                    self._at(float(alpha))
        elif self._at_both(top.alpha, top.alpha / 10):
            lower = self._at(top.alpha / _RANGE_BELOW) > self._at(top.alpha / 10)
            self._at(top.alpha / 10 ** (1.5 if lower else 0.5))
        else:
            self._at(top.alpha / 10**0.5)
        best = self._best()
        return self._scorer.scores[best] if np.isfinite(self.scores[best]) else top

    def or_share(self, top: GcvScore, share: float) -> GcvScore:
        """Return the better of the strength of ``top`` and a share of it; ties go to the larger."""
        self._at(top.alpha)
        self._at(top.alpha * share)
        best = self._best()
        return self._scorer.scores[best] if np.isfinite(self.scores[best]) else top

    def _at_both(self, top: float, weaker: float) -> bool:
        """Whether the weaker strength scores at least as well; begin with the one whose factor is in memory."""
        for alpha in sorted((top, weaker), key=lambda alpha: alpha != self._scorer.factor_of):
            self._at(alpha)
        return self.scores[top] <= self.scores[weaker]

    def _at(self, alpha: float) -> float:
        """Return the score of a strength, -inf if it cannot be solved."""
        if alpha not in self.scores:
            outputs = self._scorer.left_out(self._scored_rows, alpha)
            self.scores[alpha] = -np.inf if outputs is None else self._scored_rows.scored(outputs)
            if outputs is not None and self._best() == alpha:
                self._outputs = alpha, outputs
        return self.scores[alpha]

    def _best(self) -> float:
        """Return the strength of the best score; ties go to the largest."""
        return max(self.scores, key=lambda alpha: (self.scores[alpha], alpha))


_SEARCH_RANGE = 1e9  # a search stays within this factor of the mean scatter of a feature
_WORTHWHILE_SHARE = 0.999  # the search ends at a decade whose score is not below this share of the last one


def choose_by_gcv(
    whole: Moments,
    alphas: Sequence[float] | None = None,
    on_score: Callable[[float, float], None] | None = None,
    scale: float | None = None,
    seed: int = 0,
    scored_rows: ScoredRows | None = None,
    dtype: DTypeLike = np.float64,
    n_rows: float | None = None,
) -> tuple[LinearSolution, SelectionResult, np.ndarray | None]:
    """Choose the ridge strength of least generalised cross-validation, and return ridge at that strength.

        GCV(alpha) = (RSS / n) / (1 - df / n)^2,   df = 1 + D - alpha tr (Hc + alpha I)^-1

    is the mean squared error of leaving out one row, with the leverage of every row replaced by the mean one. It takes
    the moments of all rows and one Cholesky factor for each strength, in float32 with refinement by the sums where that
    is accurate. The trace is estimated from solutions for 32 random vectors of signs, the same for all strengths, or
    computed exactly where these are too few. Factor and vectors also give the slope, so a search needs three or four
    strengths: it goes downhill by decades until the slope turns, and ends at the minimum of the cubic between the last
    two. From 4000 features on, it searches with half of them and confirms the strength with all.

    Where weights differ, the leverages do: RSS is then multiplied by the factor by which the squared errors of
    ``scored_rows`` rise when each of them is left out by its own leverage. Without such rows, n is the effective number
    of rows, (sum w)^2 / sum w^2, or the sum of the weights where these are numbers of equal rows, given as ``n_rows``;
    it is below df at strengths that are best where a few rows are heavy.

    A strength scores infinite if rounding errors of the sums could be as large as the residuals or n - df.

    The rows must be independent. With duplicates, or several rows of one object, every row is predicted from its
    copies, and the strength comes out too small; choose by folds of groups then.

    Parameters
    ----------
    whole : Moments
        Moments of all rows.
    alphas : sequence of float or None, default=None
        Strengths to choose from, or None for a search.
    on_score : callable or None, default=None
        Called as ``on_score(alpha, score)`` after each strength.
    scale : float or None, default=None
        The search begins at a tenth of it; None for the mean scatter of a feature.
    seed : int, default=0
        Seed of the random signs.
    scored_rows : ScoredRows or None, default=None
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
    left_out : ndarray of shape (h, t) or None
        Outputs of ``scored_rows``, less the shift of the targets, by machines without them, if they made the choice.

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
    >>> solution, chosen, _ = choose_by_gcv(Moments(3, 1).update(Z, y))
    >>> solution.coef.ravel().round(1).tolist(), chosen.rule
    ([1.0, 2.0, 3.0], 'gcv')
    """
    if whole.n_rows < FEWEST_ROWS:
        raise DataError(
            Message("{} rows are too few to choose {alpha} by gcv. Give {alpha} as one number.", whole.n_rows)
        )
    precision = float(np.finfo(dtype).eps)
    usual = float(whole.scatter_diagonal().mean()) if scale is None else scale
    usual = max(usual, float(np.finfo(np.float32).tiny))
    coarse = None
    if alphas is None and whole.n_features >= FEWEST_FEATURES_TO_HALVE:
        coarse = _of_half(whole, usual, seed, scored_rows, precision, n_rows)
    scorer = GcvScorer(whole, seed, on_score, precision, n_rows, scored_rows)
    if alphas is None:
        if coarse is None or not _confirm(scorer, coarse, usual):
            coarse = None
            _descend(scorer, 0.1 * usual, usual)
    else:
        for alpha in sorted((float(a) for a in alphas), reverse=True):
            scorer.at(alpha)
    best = scorer.best()
    final_choice = None if scored_rows is None else FinalChoice(scorer, scored_rows)
    if final_choice is not None and coarse is not None:
        best = final_choice.or_share(best, coarse.share)
    elif final_choice is not None:
        best = final_choice.between(best, alphas)
    compared = sorted(scorer.scores.values(), key=lambda score: score.alpha)
    settings = {
        "alpha": np.array([score.alpha for score in compared]),
        "df": np.array([score.df for score in compared]),
    }
    if final_choice is not None:
        settings[final_choice.name] = np.array([final_choice.scores.get(score.alpha, np.nan) for score in compared])
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
    whole: Moments, scale: float, seed: int, scored_rows: ScoredRows | None, precision: float, n_rows: float | None
) -> CoarseChoice | None:
    """Choose by half of the features; None where they do not say how the score bends at its least."""
    chosen = half_of(whole.n_features)
    half = whole.of_features(chosen)
    of_half = None if scored_rows is None else scored_rows.of_features(chosen)
    scorer = GcvScorer(half, seed, None, precision, n_rows, of_half)
    _descend(scorer, 0.1 * scale, scale)
    if not any(np.isfinite(score.score) for score in scorer.scores.values()):
        return None
    top = scorer.best()
    curvature = curvature_at(scorer, top.alpha)
    if not curvature > 0:
        return None
    share = 1.0
    if of_half is not None:
        share = FinalChoice(scorer, of_half).between(top, None).alpha / top.alpha
    return CoarseChoice(top.alpha * alpha_ratio(half, whole), curvature, share)


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
        if not 1 / _SEARCH_RANGE < alpha / scale < _SEARCH_RANGE:
            return
        before, now = now, scorer.at(alpha)
        if np.isfinite(before.score) and not now.score < _WORTHWHILE_SHARE * before.score:
            break
    if before is not None:
        _between(scorer, before, now)


def _between(scorer: GcvScorer, before: GcvScore, now: GcvScore) -> None:
    """Score the minimum of the cubic between two strengths, unless it is close to one of them."""
    if not np.isfinite([before.score, now.score]).all():
        return
    least = _cubic_minimum(np.log([before.alpha, now.alpha]), before, now)
    if all(abs(least - np.log(score.alpha)) > QUARTER_DECADE for score in (before, now)):
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


class GeneralisedCrossValidation(Selection):
    """The rule that calls ``choose_by_gcv``: for ridge whose rows are not in folds."""

    rule: ClassVar[str] = "gcv"
    usual_scores: ClassVar[int | None] = 4

    def choose(self, problem: RidgeProblem, open: OpenSettings) -> Compared:
        strengths = None if open.alpha is None else np.atleast_1d(open.alpha).tolist()
        weights, result, left_out = choose_by_gcv(
            problem.whole,
            strengths,
            lambda alpha, score: self._on_score(),
            problem.scale,
            0,
            problem.scored_rows,
            problem.moments.dtype,
            problem.whole.count / problem.unit,
        )
        if left_out is not None:
            problem.left_out = weights.alpha, left_out
        return Compared(result, problem, problem.in_features(weights))
