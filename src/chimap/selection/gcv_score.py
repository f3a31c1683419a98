"""The generalised cross-validation score of one strength and its slope, from one Cholesky factor.

``gcv.choose_by_gcv`` searches over it. The scorer also gives the outputs of rows that are left out one by one, which
the user's score is computed from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chimap import _threads
from chimap._cholesky import factorise, inverse_diagonal, solve, squared_norms
from chimap._messages import Message
from chimap._validation import DataError
from chimap.moments import Moments
from chimap.solvers.base import Tried

_PROBES = 32  # random vectors of signs that estimate a trace
_NOISE = 0.02  # share of n - df that the estimate may be off by; beyond it, the trace is computed exactly
_SINGLE_FROM = 512  # features; a factor of fewer takes no time in float64
_CLOSE = 1e-4  # refinement ends with a correction below this share of the weights
_STEPS = 3  # of refinement at most
_ROUNDINGS = 4.0  # the residuals, and n - df, must be at least this many times their rounding errors
_LEAST_LEFT = 1e-6  # lower bound of 1 - leverage of a row


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
    ):
        self.whole, self.on_score, self.precision = whole, on_score, precision
        self.n_rows = float(whole.n_rows) if n_rows is None else n_rows
        n = whole.n_features
        self.dtype = np.dtype(np.float32 if n > _SINGLE_FROM else np.float64)
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

    def left_out(self, tried: Tried, alpha: float) -> np.ndarray | None:
        """Return ridge outputs (h, t), less the target shift, for tried rows when each of them is left out.

        They are None where the matrix is singular to rounding.
        """
        score = self.scores[alpha] if alpha in self.scores else self.at(alpha)
        roots = self._factorised(alpha) if np.isfinite(score.score) else None
        if roots is None:
            return None
        whole = self.whole
        origin, mean = whole.feature_sum / whole.count, whole.target_sum / whole.count
        X = np.empty(tried.Z.shape, dtype=self.square.dtype)
        for block in tried.blocks():
            X[block] = (tried.Z[block] - origin) * roots
        leverages = 1 / whole.count + squared_norms(self.square, X)
        if tried.weights is not None:
            leverages *= tried.weights
        errors = tried.Y - tried.outputs(score.coef, origin, mean)
        return np.asarray(tried.Y - errors / np.maximum(1 - leverages, _LEAST_LEFT)[:, None])

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
        traces, trace_slope = (
            probe_traces.mean(),
            probe_traces.mean() - alpha**2 * np.square(P).sum(axis=0).mean(),
        )
        left = n - 1 - self.whole.n_features + traces  # n - df
        if not left > probe_traces.std() / np.sqrt(probe_traces.size) / _NOISE:
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
        score = rss / self.whole.count / (left / n) ** 2
        slope = rss_slope / rss - 2 * trace_slope / left if rss > 0 else 0.0
        return GcvScore(alpha, float(score), float(slope), float(n - left), W)

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
        for _ in range(_STEPS):
            change = self._divide(B - self.whole.scatter_product(X) - alpha * X, roots)
            X += change
            share = np.linalg.norm(change / roots[:, None]) / max(sizes, np.finfo(float).tiny)
            if not share < 0.5:
                return None
            if share < _CLOSE:
                break
        return X
