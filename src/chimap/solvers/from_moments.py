"""Ridge as a solver: of the square loss, from the moments of one pass."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from scipy.linalg import qr

from chimap.losses import Loss, Square
from chimap.moments import FoldMoments, Moments
from chimap.solvers.base import Evidence, Needs, Tried
from chimap.solvers.held_out import HeldOut, Witnesses, left_out, leverages, noise_of
from chimap.solvers.posterior import Posterior
from chimap.solvers.principal import leading
from chimap.solvers.ridge import Factor, LinearSolution, ridge

_FEW = 4  # features a row, from which on the coordinates of the rows' span are solved for
_SPARE = 8  # random products more than there are rows, so that they span them


class RidgeProblem:
    """sum |z'w + b - y|^2 / 2 + alpha/2 |w|^2, from moments of folds.

    Of far fewer rows than features the weights lie in the span of the rows: in its coordinates all is of their number,
    and ``moments`` and ``whole`` are of these. spans: whether that may be. tried: ``selection.tried.TriedRows``, or
    None. left_out: of a choice that left the tried rows out one by one, the strength and their outputs (h, t), less the
    targets' shift: where they are the witnesses too, no factor need be made again for these.
    """

    passes = 1

    def __init__(
        self, moments: FoldMoments, device: str = "cpu", *, spans: bool = True, tried: Tried | None = None
    ):
        whole = moments.whole()
        self.scale = float(whole.scatter_diagonal().mean())
        self._shifts, self._mean = whole.shifts, whole.mean
        self.left_out: tuple[float, np.ndarray] | None = None
        self._tried_features = None if tried is None else tried.Z
        self._span = _span(whole) if spans and _FEW * whole.n_rows <= whole.n_features else None
        if self._span is not None:
            origin = np.zeros(whole.n_features)
            folds = [fold.projected(self._span, origin) for fold in moments.folds]
            moments, device = FoldMoments.of(folds, moments.dtype), "cpu"
            whole = moments.whole()
            tried = None if tried is None else tried.projected(self._span)
        self.tried = tried
        self.moments, self.whole = moments, whole
        self.n_folds = len(moments.folds)
        self.factor = Factor(whole.n_features, device)
        self.loss: Loss = Square()

    @property
    def n_rows(self) -> int:
        """See ``Problem``."""
        return self.whole.n_rows

    def usual_alpha(self) -> float:
        """The mean scatter of a feature."""
        return self.scale or 1.0

    def solve(self, alpha: float) -> LinearSolution:
        """See ``Problem``."""
        return self.in_features(ridge(self.whole, alpha, self.factor))

    def held_out(
        self, solution: LinearSolution, witnesses: Witnesses | None, kept: np.ndarray | None = None
    ) -> HeldOut | None:
        """See ``Problem``: each row left out alone. kept: the features that have weights, or None for all."""
        if witnesses is None or self.n_rows < 2:
            return None
        shift, target_shift = self._shifts
        outputs = witnesses.Z @ solution.coef + (solution.intercept + shift @ solution.coef - target_shift)
        found_without = self._left_out(witnesses, outputs, solution.alpha, kept)
        noise = noise_of(witnesses.Y - outputs, witnesses.Y - found_without, witnesses.weights)
        return HeldOut(witnesses.rows, found_without + target_shift, noise)

    def _left_out(
        self, witnesses: Witnesses, outputs: np.ndarray, alpha: float, kept: np.ndarray | None
    ) -> np.ndarray:
        """Outputs (m, t) for each witness, less the targets' shift, of a machine without it. outputs: with it."""
        if self.left_out is not None and self.left_out[0] == alpha and witnesses.Z is self._tried_features:
            return self.left_out[1]
        Z = witnesses.Z if self._span is None else witnesses.Z @ self._span
        if kept is None:
            h = leverages(self.whole, alpha, Z, self.factor)
        else:
            h = leverages(self.whole.of_features(kept), alpha, Z[:, kept])
        h = h if witnesses.weights is None else h * witnesses.weights
        return left_out(self.loss, witnesses.Y, outputs, h)

    def posterior(self, solution: LinearSolution) -> Posterior | None:
        """See ``Problem``."""
        self.factor.of(self.whole, solution.alpha)
        dtype = self.moments.dtype
        return Posterior.of(self.factor, self._mean, self.whole.count, solution.alpha, dtype, self._span)

    def in_features(self, solution: LinearSolution) -> LinearSolution:
        """Weights of the features from those of the coordinates in which the problem is solved."""
        return solution if self._span is None else replace(solution, coef=self._span @ solution.coef)

    def solve_leading(self, borders: np.ndarray, n_components: int, alpha: float) -> LinearSolution:
        """On the first coordinates of each block; weights of those that are left out are 0."""
        kept = leading(borders, n_components)
        solution = ridge(self.whole.of_features(kept), alpha)
        coef = np.zeros((self.whole.n_features, self.whole.n_targets))
        coef[kept] = solution.coef
        return LinearSolution(coef, solution.intercept, alpha)


class RidgeSolver:
    """The normal equations, by Cholesky: one pass over the rows gives all strengths."""

    name: ClassVar[str] = "ridge"
    needs: ClassVar[Needs] = "moments"
    n_vectors: ClassVar[int] = 0

    def supports(self, loss: str | Loss) -> bool:
        """See ``Solver``."""
        return loss == Square.name or loss == Square()

    def problem(self, loss: str | Loss, evidence: Evidence) -> RidgeProblem:
        """See ``Solver``."""
        if evidence.moments is None:
            raise TypeError("ridge is solved from moments")
        return RidgeProblem(evidence.moments, evidence.device, tried=evidence.tried)


def _span(whole: Moments) -> np.ndarray:
    """Orthonormal columns (D, p) that span the rows, of which there are fewer than p: from random products."""
    probes = np.random.default_rng(0).standard_normal((whole.n_features, whole.n_rows + _SPARE))
    return np.asarray(qr(whole.features @ probes, mode="economic", check_finite=False)[0])
