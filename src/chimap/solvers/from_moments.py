"""Ridge as a solver: the square loss from the moments of one pass.

The problem is

    min_{w, b}  sum_i w_i |z_i'w + b - y_i|^2 / 2 + alpha/2 |w|^2,

solved by Cholesky factors of Hc + alpha I (``ridge``): D^3/3 operations per strength and one (D, D) float64 buffer.
With at most D/4 rows, the problem is first projected onto a basis of p = n + 8 columns that contains the span of the
rows, in O(D^2 p) operations; a strength then costs p^3/3.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from scipy.linalg import qr

from chimap.losses import Loss, Square
from chimap.moments import FoldMoments, Moments
from chimap.penalties import L2
from chimap.solvers.base import Asked, Components, Evidence, Needs, Problem, Solver, required
from chimap.solvers.findings import Findings
from chimap.solvers.fold import Fold
from chimap.solvers.held_out import (
    HeldOut,
    ScoredRows,
    ValidationRows,
    by_folds,
    left_out,
    leverages,
    leverages_by,
    noise_of,
)
from chimap.solvers.posterior import Posterior
from chimap.solvers.principal import leading
from chimap.solvers.ridge import Factor, LinearSolution, ridge

_FEATURES_PER_ROW = 4  # features per row from which on the problem is solved in the span of the rows
FEWEST_ROWS = 3  # fewer leave no degrees of freedom for a residual
_SPARE_PRODUCTS = 8  # number of random products beyond the number of rows, so that they contain the span


class RidgeProblem(Problem):
    """Minimise sum |z'w + b - y|^2 / 2 + alpha/2 |w|^2 from moments of folds.

    With far fewer rows than features, the weights lie in the span of the rows. The problem is then solved in
    coordinates of the span, as many as there are rows, and ``moments`` and ``whole`` are in these coordinates.

    Parameters
    ----------
    moments : FoldMoments
        Moments of all rows, fold by fold.
    device : str, default="cpu"
        Device that factorises.
    spans : bool, default=True
        Whether the problem may be solved in the span of the rows.
    scored_rows : ScoredRows or None, default=None
        Rows whose score takes part in the choice, ``ScoredRows``.
    unit : float, default=1.0
        The weight that counts as one row.
    components : Components or None, default=None
        Numbers of principal components to choose from, if the features are coordinates along components.
    asked : str, default="folds"
        How the open settings are to be chosen.

    Attributes
    ----------
    left_out : tuple of float and ndarray of shape (h, t), or None
        Set by a selection rule that left out the scored rows one by one: the strength, and their outputs less the shift
        of the targets. If these rows are the validation rows too, no factor needs to be made again for them.
    """

    needs: ClassVar[Needs] = "moments"

    def __init__(
        self,
        moments: FoldMoments,
        device: str = "cpu",
        *,
        spans: bool = True,
        scored_rows: ScoredRows | None = None,
        unit: float = 1.0,
        components: Components | None = None,
        asked: Asked = "folds",
    ):
        self.unit, self.components, self.asked = unit, components, asked
        whole = moments.whole()
        self.scale = float(whole.scatter_diagonal().mean())
        self._shifts, self._mean, self._n_features = whole.shifts, whole.mean, whole.n_features
        self.left_out: tuple[float, np.ndarray] | None = None
        self._scored_features = None if scored_rows is None else scored_rows.Z
        self._kept: np.ndarray | None = None  # features that have weights; None for all
        self._n_kept: int | None = None  # components of each block, if that is a choice of them
        self._span = _span(whole) if spans and _FEATURES_PER_ROW * whole.n_rows <= whole.n_features else None
        if self._span is not None:
            origin = np.zeros(whole.n_features)
            folds = [fold.projected(self._span, origin) for fold in moments.folds]
            moments, device = FoldMoments.of(folds, moments.dtype), "cpu"
            whole = moments.whole()
            scored_rows = None if scored_rows is None else scored_rows.projected(self._span)
        self.scored_rows = scored_rows
        self.moments, self.whole = moments, whole
        self.n_folds = len(moments.folds)
        self.factor = Factor(whole.n_features, device)
        self.loss: Loss = Square()

    def leading(self, n_components: int) -> RidgeProblem:
        """Return the problem of the first coordinates of each block alone; the weights of the others are 0."""
        assert self.components is not None
        kept = leading(self.components.borders, n_components)
        moments = FoldMoments.of([fold.of_features(kept) for fold in self.moments.folds], self.moments.dtype)
        problem = RidgeProblem(moments, spans=False, unit=self.unit)
        problem._kept, problem._n_kept, problem._n_features = kept, n_components, self._n_features
        problem._shifts, problem._mean = self._shifts, self._mean
        return problem

    @property
    def n_rows(self) -> int:
        return self.whole.n_rows

    @property
    def rule(self) -> str | None:
        if self.components is not None:
            return "component folds"
        if self.n_folds > 1 and self.asked != "gcv":
            return "held-out moments" if self.asked == "holdout" and self.n_folds == 2 else "folds"
        return "gcv" if self.n_rows >= FEWEST_ROWS else None

    def usual_alpha(self) -> float:
        """Return the mean scatter of a feature."""
        return self.scale or 1.0

    def solve(self, alpha: float) -> LinearSolution:
        return self.in_features(ridge(self.whole, alpha, self.factor))

    def held_out(self, solution: LinearSolution, validation: ValidationRows | None) -> HeldOut | None:
        """See ``Problem``: each row is left out alone, or with its fold."""
        if validation is None or self.n_rows < 2:
            return None
        if validation.leaves_folds:
            return self._without_folds(validation, solution.alpha)
        shift, target_shift = self._shifts
        outputs = validation.Z @ solution.coef + (solution.intercept + shift @ solution.coef - target_shift)
        without = self._left_out(validation, outputs, solution.alpha)
        residuals = validation.Y - without
        factors = np.divide(
            residuals, validation.Y - outputs, out=np.ones_like(residuals), where=outputs != validation.Y
        )
        return HeldOut(
            validation.rows, without + target_shift, noise_of(residuals, factors, validation.counted, validation.counts)
        )

    def _coordinates(self, Z: np.ndarray) -> np.ndarray:
        """Return features Z (m, D), less the shift, in the coordinates in which the problem is solved."""
        if self._kept is not None:
            return Z[:, self._kept]
        return Z if self._span is None else Z @ self._span

    def _without_folds(self, validation: ValidationRows, alpha: float) -> HeldOut:
        """Return outputs and noise of the validation rows by the ridge of all folds but their own."""
        validation = replace(validation, Z=self._coordinates(validation.Z))
        whole, factor = self.whole, self.factor
        factors: list[np.ndarray] = []

        def without(k: int) -> LinearSolution:
            fold = self.moments.folds[k]
            count = whole.count - fold.count
            change = Fold(fold, whole)
            factor.of(whole, alpha, less=change.take_from)
            coef = factor.solve(change.train_cross)
            mean = (whole.feature_sum - fold.feature_sum) / count
            held = validation.of_fold(k)
            weights = 1.0 if held.weights is None else held.weights
            factors.append(1 + weights * leverages_by(factor, held.Z, mean, count))
            return LinearSolution(coef, (whole.target_sum - fold.target_sum) / count - mean @ coef, alpha)

        folds = np.unique(validation.folds).tolist()
        found = by_folds(validation, without, self._shifts[1], folds)
        held = validation.of(np.concatenate([np.flatnonzero(validation.folds == k) for k in folds]))
        like_new = np.arange(held.rows.size) if held.unseen is None else np.flatnonzero(held.unseen)
        residuals = held.Y + self._shifts[1] - found.outputs
        some = held.of(like_new)
        noise = noise_of(residuals[like_new], np.concatenate(factors)[like_new], some.counted, some.counts)
        return replace(found, noise=noise)

    def _left_out(self, validation: ValidationRows, outputs: np.ndarray, alpha: float) -> np.ndarray:
        """Return outputs (m, t) for each validation row of a model without it, less the targets' shift.

        ``outputs`` are those of the model with it.
        """
        if self.left_out is not None and self.left_out[0] == alpha and validation.Z is self._scored_features:
            return self.left_out[1]
        h = leverages(self.whole, alpha, self._coordinates(validation.Z), self.factor)
        h = h if validation.weights is None else h * validation.weights
        return left_out(self.loss, validation.Y, outputs, h)

    def posterior(self, solution: LinearSolution) -> Posterior | None:
        """See ``Problem``; None where the number of components was chosen."""
        if self._kept is not None:
            return None
        self.factor.of(self.whole, solution.alpha)
        dtype = self.moments.dtype
        return Posterior.of(self.factor, self._mean, self.whole.count, solution.alpha, dtype, self._span, self.unit)

    def in_features(self, solution: LinearSolution) -> LinearSolution:
        """Return the weights of the features from those of the coordinates in which the problem is solved."""
        if self._kept is not None:
            coef = np.zeros((self._n_features, solution.coef.shape[1]))
            coef[self._kept] = solution.coef
            return replace(solution, coef=coef)
        return solution if self._span is None else replace(solution, coef=self._span @ solution.coef)

    @property
    def findings(self) -> Findings:
        return Findings(n_principal=self._n_kept)


class RidgeSolver(Solver):
    """The normal equations by Cholesky. One pass over the rows serves all strengths."""

    name: ClassVar[str] = "ridge"
    needs: ClassVar[Needs] = "moments"

    def supports(self, loss: str | Loss, penalty: type = L2) -> bool:
        return penalty is L2 and (loss == Square.name or loss == Square())

    def problem(self, loss: str | Loss, evidence: Evidence) -> RidgeProblem:
        moments = required(evidence.moments, "moments")
        components = evidence.components
        return RidgeProblem(
            moments,
            evidence.device,
            spans=components is None,
            scored_rows=evidence.scored_rows,
            unit=evidence.unit,
            components=components,
            asked=evidence.asked,
        )


def _span(whole: Moments) -> np.ndarray:
    """Return orthonormal columns (D, p) that span the rows, found from p random products with the scatter.

    There are fewer rows than p.
    """
    probes = np.random.default_rng(0).standard_normal((whole.n_features, whole.n_rows + _SPARE_PRODUCTS))
    return np.asarray(qr(whole.features @ probes, mode="economic", check_finite=False)[0])
