"""Problems on features of all rows in memory: trials learn from all folds but one and are judged on that one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from chimap.losses import Loss
from chimap.moments import FoldMoments, of_entries, of_rows
from chimap.moments.kept import KeptFeatures
from chimap.solvers.held_out import HeldOut, Witnesses
from chimap.solvers.posterior import Posterior
from chimap.solvers.ridge import LinearSolution

_ROWS = 2048  # whose outputs are computed together


class _Trial(NamedTuple):
    loss: float
    alpha: float
    outputs: np.ndarray  # of the rows of fold 0, (m, t)

    def is_better(self, other: _Trial | None) -> bool:
        """Of a lower loss; of equal ones the larger strength."""
        return other is None or (self.loss, -self.alpha) < (other.loss, -other.alpha)


class KeptProblem(ABC):
    """Minimise ``losses`` summed over rows plus a penalty, on features that are kept; ``fit_part`` does it.

    The outputs of the best trial are kept: they are what rows are told that the machine has not seen.
    """

    loss: Loss | None = None
    moments: FoldMoments | None = None
    passes = 0  # over the source
    search_tolerance: ClassVar[float]  # of the fits of trials
    tolerance: ClassVar[float]

    def __init__(self, kept: KeptFeatures):
        kept.stack()
        self.kept, self.n_folds = kept, kept.n_folds
        self._best: _Trial | None = None

    @abstractmethod
    def fit_part(self, alpha: float, rows: slice, tolerance: float) -> LinearSolution:
        """The machine of consecutive rows, for targets less their shift."""

    @abstractmethod
    def losses(self, targets: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Of rows and targets, (m, t)."""

    @abstractmethod
    def usual_alpha(self) -> float:
        """See ``Problem``."""

    @property
    def n_rows(self) -> int:
        """See ``Problem``."""
        return int(self.kept.Y.shape[0])

    def solve(self, alpha: float) -> LinearSolution:
        """See ``Problem``."""
        solution = self.fit_part(alpha, self.kept.everything, self.tolerance)
        return LinearSolution(solution.coef, solution.intercept + self.kept.target_shift, alpha)

    def trial(self, alpha: float) -> float:
        """See ``Trials``: the mean of the losses over the rows of fold 0, by the machine of the others."""
        solution = self.fit_part(alpha, self.kept.learning, self.search_tolerance)
        held = self.kept.held_out
        outputs = np.empty((held.stop - held.start, solution.intercept.size))
        for first in range(0, outputs.shape[0], _ROWS):
            part = slice(held.start + first, min(held.start + first + _ROWS, held.stop))
            outputs[first : first + _ROWS] = self.kept.of(part)[0] @ solution.coef + solution.intercept
        losses = self.losses(self.kept.of(held)[1], outputs)
        weights = self.kept.weights[held]
        loss = float((of_entries(weights) * losses).sum() / of_rows(weights).sum())
        trial = _Trial(loss, alpha, outputs)
        if trial.is_better(self._best):
            self._best = trial
        return trial.loss

    def held_out(self, solution: LinearSolution, witnesses: Witnesses | None) -> HeldOut | None:
        """See ``Problem``: fold 0, by the best machine of the trials; where there were none, by one made for it."""
        if self.n_folds == 1:
            return None
        if self._best is None or self._best.alpha != solution.alpha:
            self.trial(solution.alpha)
        assert self._best is not None
        return HeldOut(self.kept.held_rows, self._best.outputs + self.kept.target_shift)

    def posterior(self, solution: LinearSolution) -> Posterior | None:
        """See ``Problem``: there is none."""
        return None
