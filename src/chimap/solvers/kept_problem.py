"""Base of the problems on features of all rows in memory: trials fit on all folds but one and are scored on that one.

A problem minimises sum_i w_i loss(y_i, z_i'w + b) plus a penalty; its method and cost are those of ``fit_part``. Memory
holds the features of all rows and the outputs (m, t) of the best trial.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from chimap.moments import of_entries, of_rows
from chimap.solvers.base import Evidence, Needs, TrialProblem, required
from chimap.solvers.held_out import HeldOut, ValidationRows
from chimap.solvers.ridge import LinearSolution

_ROWS = 2048  # rows whose outputs are computed together


class _HeldOutTrial(NamedTuple):
    loss: float
    alpha: float
    outputs: np.ndarray  # (m, t), of the rows of fold 0

    def is_better(self, other: _HeldOutTrial | None) -> bool:
        """Whether the loss is lower; ties go to the larger strength."""
        return other is None or (self.loss, -self.alpha) < (other.loss, -other.alpha)


class KeptProblem(TrialProblem):
    """Minimise ``losses`` summed over rows plus a penalty, on features that are kept in memory.

    Subclasses minimise in ``fit_part``. The outputs of the best trial are stored: they are the held-out outputs.
    """

    needs: ClassVar[Needs] = "features"
    counts: ClassVar[str] = "classes"
    passes = 0  # those of LIBLINEAR are not counted
    search_tolerance: ClassVar[float]  # tolerance of trials
    tolerance: ClassVar[float]

    def __init__(self, evidence: Evidence):
        self.kept = required(evidence.kept, "features")
        self.kept.stack()
        self.n_folds, self._held_folds = self.kept.n_folds, evidence.held_folds
        self._best: _HeldOutTrial | None = None

    @abstractmethod
    def fit_part(self, alpha: float, rows: slice | np.ndarray, tolerance: float) -> LinearSolution:
        """Return the model of some rows, for targets less their shift."""

    @abstractmethod
    def losses(self, targets: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Return the losses (m, t) of rows and targets."""

    @property
    def n_rows(self) -> int:
        return int(self.kept.Y.shape[0])

    def solve(self, alpha: float) -> LinearSolution:
        solution = self.fit_part(alpha, self.kept.everything, self.tolerance)
        return LinearSolution(solution.coef, solution.intercept + self.kept.target_shift, alpha)

    def trial(self, alpha: float) -> float:
        """See ``TrialProblem``: the mean loss over the rows of fold 0 of the model of the other folds."""
        solution = self.fit_part(alpha, self.kept.learning, self.search_tolerance)
        held = self.kept.held_out
        outputs = self._outputs(solution, np.arange(held.start, held.stop))
        losses = self.losses(self.kept.of(held)[1], outputs)
        weights = self.kept.weights[held]
        loss = float((of_entries(weights) * losses).sum() / of_rows(weights).sum())
        trial = _HeldOutTrial(loss, alpha, outputs)
        if trial.is_better(self._best):
            self._best = trial
        return trial.loss

    def held_out(self, solution: LinearSolution, validation: ValidationRows | None) -> HeldOut | None:
        """See ``Problem``: the rows of fold 0, by the best model of the trials, and of more folds where it takes them.

        If the best trial has another strength, a new model is fitted.
        """
        if self.n_folds == 1:
            return None
        rows, outputs = [], []
        for fold in self._held_folds:
            held = np.flatnonzero(self.kept.folds == fold)
            if held.size:
                rows.append(self.kept.places[held])
                outputs.append(self._without(fold, held, solution.alpha))
        return HeldOut(np.concatenate(rows), np.concatenate(outputs) + self.kept.target_shift)

    def _without(self, fold: int, held: np.ndarray, alpha: float) -> np.ndarray:
        """Return the outputs (m, t) of the rows of a fold by the model of the others."""
        if fold == 0:
            if self._best is None or self._best.alpha != alpha:
                self.trial(alpha)
            assert self._best is not None
            return self._best.outputs
        others = np.flatnonzero(self.kept.folds != fold)
        return self._outputs(self.fit_part(alpha, others, self.search_tolerance), held)

    def _outputs(self, solution: LinearSolution, rows: np.ndarray) -> np.ndarray:
        """Return the outputs (m, t) of some rows."""
        outputs = np.empty((rows.size, solution.intercept.size))
        for first in range(0, rows.size, _ROWS):
            some = rows[first : first + _ROWS]
            outputs[first : first + _ROWS] = self.kept.of(some)[0] @ solution.coef + solution.intercept
        return outputs
