"""The generalised cross-validation score of a strength, from one Cholesky factor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chimap import _threads
from chimap._validation import DataError
from chimap.moments import Moments
from chimap.solvers.base import Tried
from chimap.solvers.cholesky import factorise, inverse_diagonal, solve, squared_norms

_PROBES = 32


_NOISE = 0.02  # share of n - df that probes may be off by; beyond, the trace is exact


_SINGLE_FROM = 512  # features: a factor of fewer is made in float64, in no time


_CLOSE = 1e-4  # a correction below this share of the weights is the last


_STEPS = 3  # of refinement at most


_ROUNDINGS = 4.0  # what remains of the residuals, and of n - df, is at least so many times its rounding


_LEAST_LEFT = 1e-6  # of a row that is not its own prediction


@dataclass(frozen=True)
class GcvScore:
    """Of one strength: score = (RSS/n) / (1 - df/n)^2, its slope in ln alpha (relative), and the weights."""

    alpha: float
    score: float
    slope: float
    df: float
    coef: np.ndarray


def _nothing(alpha: float) -> GcvScore:
    """Of a strength that rounding does not let one score."""
    return GcvScore(alpha, np.inf, 0.0, np.nan, np.empty((0, 0)))


class GcvScorer:
    """Scores one strength at a time in one (D, D) buffer, scaled so that its diagonal is one."""

    def __init__(
        self,
        whole: Moments,
        seed: int,
        on_score: Callable[[float, float], None] | None,
        precision: float = float(np.finfo(np.float64).eps),
    ):
        self.whole, self.on_score, self.precision = whole, on_score, precision
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
        """The least score so far; of equals that of the largest strength."""
        best = min(self.scores.values(), key=lambda score: (score.score, -score.alpha))
        if not np.isfinite(best.score):
            raise DataError(
                f"none of the strengths {sorted(s.alpha for s in self.scores.values())} is large enough: the features "
                "are linearly dependent to rounding. Give larger ones, or alpha='auto'."
            )
        return best

    def at(self, alpha: float) -> GcvScore:
        """The score at a strength, and its slope."""
        score = self._score(alpha)
        if score is None and self.dtype != np.float64:
            self.dtype = np.dtype(np.float64)  # for this strength and those to come
            self.square = np.empty(self.square.shape)
            self.factor_of = None
            score = self._score(alpha)
        self.scores[alpha] = score or _nothing(alpha)
        if self.on_score is not None:
            self.on_score(alpha, self.scores[alpha].score)
        return self.scores[alpha]

    def left_out(self, tried: Tried, alpha: float) -> np.ndarray | None:
        """What ridge says of each of some of the rows when it is left out, (h, t), less the targets' shift; None where
        the matrix is singular to rounding."""
        score = self.scores[alpha] if alpha in self.scores else self.at(alpha)
        roots = self._factorised(alpha) if np.isfinite(score.score) else None
        if roots is None:
            return None
        whole = self.whole
        origin, mean = whole.feature_sum / whole.count, whole.target_sum / whole.count
        X = np.empty(tried.Z.shape, dtype=self.square.dtype)
        for part in tried.blocks():
            X[part] = (tried.Z[part] - origin) * roots
        leverages = 1 / whole.count + squared_norms(self.square, X)
        if tried.weights is not None:
            leverages *= tried.weights
        errors = tried.Y - tried.outputs(score.coef, origin, mean)
        return np.asarray(tried.Y - errors / np.maximum(1 - leverages, _LEAST_LEFT)[:, None])

    def _score(self, alpha: float) -> GcvScore | None:
        roots = self._factorised(alpha)
        if roots is None:
            return None
        t = self.cross.shape[1]
        right = np.hstack([self.cross, self.probes])
        X = self._solve(right, alpha, roots)
        if X is None:
            return None
        W, P = X[:, :t], X[:, t:]
        again = self._divide(W, roots)  # d W / d alpha = -(Hc + alpha I)^-1 W
        n = max(self.whole.count, self.whole.n_rows)
        rss = max(self.total - float((W * self.cross).sum()) - alpha * float(np.square(W).sum()), 0.0)
        rss_slope = 2 * alpha**2 * float((W * again).sum())
        each = alpha * (self.probes * P).sum(axis=0)
        traces, trace_slope = each.mean(), each.mean() - alpha**2 * np.square(P).sum(axis=0).mean()
        left = n - 1 - self.whole.n_features + traces  # n - df
        if not left > each.std() / np.sqrt(each.size) / _NOISE:
            traces = alpha * float((inverse_diagonal(self.square) * roots**2).sum())
            left = n - 1 - self.whole.n_features + traces
        # how far the rounding of the sums, an error of that share of a scatter entry, moves both to first order
        rss_off = self.precision * float((self.diagonal @ np.square(W)).sum())
        left_off = self.precision * alpha * float((self.diagonal @ np.square(P)).mean())
        if rss < _ROUNDINGS * rss_off or left < _ROUNDINGS * left_off:
            return _nothing(alpha)  # more digits of the factor would not help
        if not left > 1e-6 * n:
            return None  # nothing is left to say how well it predicts
        rss = max(rss, 1e-15 * self.total)  # not below rounding
        score = rss / self.whole.count / (left / n) ** 2
        slope = rss_slope / rss - 2 * trace_slope / left if rss > 0 else 0.0
        return GcvScore(alpha, float(score), float(slope), float(n - left), W)

    def _factorised(self, alpha: float) -> np.ndarray | None:
        """The factor of a strength in the buffer, unless it is there; returns roots (D,), or None if it is singular."""
        if self.factor_of == alpha:
            return self._roots(alpha)
        self.factor_of = None
        roots = self._fill(alpha)
        if not factorise(self.square):
            return None
        self.factor_of = alpha
        return roots

    def _fill(self, alpha: float) -> np.ndarray:
        """diag(roots) (Hc + alpha I) diag(roots), with ones on its diagonal, above; returns roots (D,)."""
        roots = self._roots(alpha)
        sums, count = self.whole.feature_sum, self.whole.count

        def part(panel: tuple[int, np.ndarray]) -> None:
            first, values = panel
            rows = slice(first, first + values.shape[0])
            own = values - np.outer(sums[rows], sums[first:] / count)
            own *= roots[rows, None]
            own *= roots[first:]
            self.square[rows, first:] = own

        _threads.tasks(self.whole.features.panels(), part)
        np.fill_diagonal(self.square, 1)
        return roots

    def _roots(self, alpha: float) -> np.ndarray:
        return np.asarray(1 / np.sqrt(np.maximum(self.diagonal, 0) + alpha))

    def _divide(self, B: np.ndarray, roots: np.ndarray) -> np.ndarray:
        """(Hc + alpha I)^-1 B in the precision of the factor."""
        return roots[:, None] * solve(self.square, roots[:, None] * B).astype(np.float64)

    def _solve(self, B: np.ndarray, alpha: float, roots: np.ndarray) -> np.ndarray | None:
        """(Hc + alpha I)^-1 B, refined by the sums; None where the factor is of another matrix, to rounding."""
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
