"""Fits of other losses than the square: passes over the rows, from the ridge solution on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from chimap.engines.rows import FeatureRows
from chimap.losses import CATALOGUE, EpsilonInsensitive, Loss, LossAt, LossSums
from chimap.moments import Moments
from chimap.selection import SelectionResult
from chimap.solvers import LinearSolution, lbfgs
from chimap.solvers.lbfgs import PAIRS
from chimap.solvers.ridge import Factor, solution

N_VECTORS = (
    2 * PAIRS + 15
)  # of the size of the weights: L-BFGS-B's own, and weights and gradients on their way
_LEAST_RIDGE = 1e-7  # of the trace, in the matrix that whitens: beyond the rounding of float32 products
# Of the whitened gradient. MNIST, 1024 features: 3e-3 leaves 1 to 2 % of the objective and tells strengths apart, 1e-3
# half a percent; the accuracy is the same from 1e-3 on.
_TOLERANCE = 3e-4
_SEARCH_TOLERANCE = 3e-3
_STEP = 10**0.5  # from a strength to the next that is tried
_MOST_STEPS = 10


@dataclass(frozen=True)
class LossFit:
    """What a fit came to: weights for features and targets less their shifts, held-out losses if a strength was chosen
    among several, passes over the rows (those of the search included)."""

    solution: LinearSolution
    scores: SelectionResult | None
    passes: int


class Fitter(Protocol):
    """Minimises a loss at a strength over the rows of some folds, and says what it comes to on those of fold 0."""

    passes: int

    def start(self, alpha: float) -> LinearSolution:
        """Where ``fit`` may begin."""
        ...

    def fit(
        self, alpha: float, folds: Sequence[int], start: LinearSolution, tolerance: float = ...
    ) -> LinearSolution:
        """The minimum over the rows of the folds."""
        ...

    def held_out(self, found: LinearSolution) -> float:
        """Mean loss over the rows of fold 0, summed over targets."""
        ...


class SmoothFitter:
    """L-BFGS, whitened by the moments of all rows; ``fit(strength, folds, start)`` counts its passes."""

    def __init__(self, loss: Loss, rows: FeatureRows, whole: Moments, on_pass: Callable[[], None]):
        self.loss, self.rows, self.whole = loss, rows, whole
        self.passes = 0
        self._on_pass = on_pass
        self._factor = Factor(whole.n_features)

    def start(self, alpha: float) -> LinearSolution:
        """Ridge at the strength that shrinks as much at the largest curvature of the loss."""
        self._whiten(alpha)
        found = solution(self.whole, self._factor.solve(self.whole.cross_scatter()), alpha)
        return _shifted(found, self.whole, -1)

    def fit(
        self, alpha: float, folds: Sequence[int], start: LinearSolution, tolerance: float = _TOLERANCE
    ) -> LinearSolution:
        """The minimum over the rows of the folds."""
        self._whiten(alpha)

        def sums(at: LossAt) -> LossSums:
            self._on_pass()
            return self.rows.sums(at, folds)

        found = lbfgs(self.loss, sums, alpha, start, whitening=self._factor, tolerance=tolerance)
        self.passes += found.passes
        return found

    def _whiten(self, alpha: float) -> None:
        least = _LEAST_RIDGE * float(self.whole.scatter_diagonal().sum())
        self._factor.of(self.whole, max(alpha / self.loss.curvature, least))

    def held_out(self, found: LinearSolution) -> float:
        """Mean loss over the rows of fold 0, summed over targets."""
        sums = self.rows.sums(LossAt(self.loss, found.coef, found.intercept), [0])
        return float(sums.values.sum()) / sums.count


def fit_loss(fitter: Fitter, n_folds: int, alphas: float | Sequence[float] | None, first: float) -> LossFit:
    """Fit at a strength, at the best of several, or (None) at the best about ``first``.

    Strengths are compared on the rows of fold 0, each fitted on the others; None
    goes down from ``first`` by half decades, or up, while the held-out loss falls. The best is then fitted on all rows.
    """
    everything = range(n_folds)
    if isinstance(alphas, float) or n_folds == 1:
        alpha = alphas if isinstance(alphas, float) else first
        found = fitter.fit(alpha, everything, fitter.start(alpha))
        return LossFit(found, None, fitter.passes)
    search = _Search(fitter, range(1, n_folds))
    if alphas is None:
        search.about(first)
    else:
        for alpha in sorted(alphas, reverse=True):
            search.loss(float(alpha))
    scores = search.scores()
    assert search.best is not None
    found = fitter.fit(scores.best["alpha"], everything, search.best)
    return LossFit(found, scores, fitter.passes)


class _Search:
    """Held-out losses of strengths, each solved once."""

    def __init__(self, fitter: Fitter, folds: Sequence[int]):
        self.fitter, self.folds = fitter, folds
        self.losses: dict[float, float] = {}
        self.best: LinearSolution | None = None

    def loss(self, alpha: float) -> float:
        if alpha not in self.losses:
            # Not from the solution of the strength before: where rows are told apart with room to spare it is within
            # the tolerance at once, and strengths could not be compared.
            found = self.fitter.fit(alpha, self.folds, self.fitter.start(alpha), _SEARCH_TOLERANCE)
            self.losses[alpha] = self.fitter.held_out(found)
            if self.scores().best["alpha"] == alpha:
                self.best = found
        return self.losses[alpha]

    def about(self, first: float) -> None:
        """Down from ``first`` by half decades until the loss no longer falls; up where it falls that way."""
        way = -1 if self.loss(first * _STEP**-1) < self.loss(first) else 1
        for k in range(_MOST_STEPS):
            if self.loss(first * _STEP ** (way * (k + 1))) >= self.loss(first * _STEP ** (way * k)):
                break

    def scores(self) -> SelectionResult:
        alphas = np.array(sorted(self.losses))
        losses = np.array([self.losses[s] for s in alphas])
        # of equals the largest: rows that are told apart with room to spare are so whatever the strength
        chosen = int(np.flatnonzero(losses == losses.min())[-1])
        return SelectionResult(
            "holdout", {"alpha": alphas}, losses[:, None], np.ones(1), chosen, measure="loss"
        )


def _shifted(found: LinearSolution, moments: Moments, sign: int) -> LinearSolution:
    """The same function of features and targets less the shifts of the moments (sign -1), or with them again (1)."""
    intercept = found.intercept - sign * (moments.shift @ found.coef - moments.target_shift)
    return LinearSolution(found.coef, intercept, found.alpha)


def unshifted(found: LinearSolution, moments: Moments) -> LinearSolution:
    """The same function of the features and targets as they are."""
    return _shifted(found, moments, 1)


def named_loss(name: str, whole: Moments) -> Loss:
    """The loss of a name; the widths of the epsilon-insensitive one in units of the targets' standard deviation."""
    if name == EpsilonInsensitive.name:
        spread = float(np.sqrt(np.trace(whole.target_scatter()) / whole.count)) or 1.0
        usual = EpsilonInsensitive()
        return EpsilonInsensitive(usual.epsilon * spread, usual.sharpness / spread)
    return CATALOGUE[name]()
