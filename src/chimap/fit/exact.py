"""The objective of exact machines: weights of the kernel values with every row (``features="exact"``).

``ExactObjective`` is chosen by leaving rows out (``selection.leave_one_out``) and solved on the kernel matrix
(``solvers.kernel_matrix``). Exponential kernels keep every row for prediction; an additive one keeps its map alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from chimap import _threads
from chimap._errors import InputError
from chimap._messages import Message, Setting
from chimap._types import Parameters
from chimap.backends import on_host
from chimap.engines import Job, Progress, Stopwatch
from chimap.features.exact import KeptRows
from chimap.fit.design import FeatureBlock
from chimap.fit.solving import Learned
from chimap.losses import CATALOGUE, Loss, check_loss
from chimap.moments import Moments, of_rows
from chimap.selection.leave_one_out import OCTAVES, ChosenSetting, LeaveOut
from chimap.solvers import LinearSolution
from chimap.solvers.base import Evidence, Needs
from chimap.solvers.exact_machines import has_exact_machine
from chimap.solvers.from_moments import RidgeSolver
from chimap.solvers.held_out import HeldOut, noise_of
from chimap.solvers.kernel_matrix import KernelMatrix, KernelRows
from chimap.solvers.observed_exact import is_shared
from chimap.solvers.posterior import DualPosterior, Posterior
from chimap.solvers.ridge import Factor

MOST_MAPPED = 4096  # features of a map whose scatter is still factorised for the deviations of predictions
_RAISES = 6  # decades by which the strength of a race may be raised if rounding makes the matrix singular
_PIECE_ROWS = 2048


def exact_bytes(n_rows: int, row_bytes: float, dtype: np.dtype) -> int:
    """Return the bytes of an exact fit: the matrix, three copies of the rows, and columns of the inverse per thread."""
    return int(dtype.itemsize * n_rows * (n_rows + 512 * _threads.count()) + 3 * n_rows * row_bytes)


@dataclass(frozen=True)
class ExactObjective:
    """Minimise sum_i w_i loss(y_i, f(x_i)) + alpha/2 |f|^2 over f = sum_j K(., x_j) a_j + b, with every row x_j.

    Parameters
    ----------
    loss : str or Loss
        The loss.
    alpha : float, tuple of float or None
        A strength, several to choose from, or None for a search.
    chooses_gamma : bool, default=False
        Whether gamma is chosen too; otherwise it stays as the features have it.
    is_settled : bool, default=False
        Whether a race has chosen ``alpha`` on fewer rows, whose matrix is farther from singular: it is raised by
        decades until the machine can be solved.
    """

    needs: ClassVar[Needs] = "kernel"
    n_vectors: ClassVar[int] = 0
    has_gcv: ClassVar[bool] = False
    leaves_out: ClassVar[bool] = True
    loss: str | Loss
    alpha: float | tuple[float, ...] | None
    chooses_gamma: bool = False
    is_settled: bool = False

    def check(self, given: Parameters) -> None:
        """See ``Objective``."""
        refused = {
            "n_principal": given["n_principal"] is not None,
            "loss": not has_exact_machine(self.loss),
            "precision": given["precision"] == "bfloat16",
            "device": not on_host(given["device"]),
        }
        for name, is_refused in refused.items():
            if is_refused:
                raise InputError(
                    Message(
                        "{features='exact'} solves {loss='square'} or {loss='squared_hinge'} on the kernel matrix, and "
                        "does not support {}. Leave that out, or use {features='landmarks'}.",
                        Setting(name, given[name]),
                    )
                )

    def footprint(self, job: Job, parts: list[FeatureBlock]) -> Job:
        """See ``Objective``."""
        return job

    def learn(self, evidence: Evidence, features: Any, clock: Stopwatch, progress: Progress) -> Learned:
        """See ``Objective``. The features are set to the chosen gamma."""
        rows = evidence.kernel
        if rows is None:
            raise TypeError("an exact machine is solved on the kernel matrix of all rows")
        with clock("choose alpha"):
            progress.stage("alpha", None, "values")
            matrix = rows.matrix(self.loss)
            choice = self.choice(rows, matrix, lambda alpha, value: progress.advance())
        rows.features.set_octaves(choice.octaves)
        machine = choice.solution
        held_out = np.empty_like(choice.held_out)
        held_out[rows.order] = choice.held_out + rows.shift
        seen = np.flatnonzero(~np.isnan(held_out).all(axis=1))
        return Learned(
            LinearSolution(machine.weights, machine.intercept + rows.shift, machine.alpha),
            check_loss(self.loss, CATALOGUE), choice.result, 1, rows.order.size,
            {"row_numbers_": rows.order, "held_out_": held_out, "kernel_": features.kernel_},
            HeldOut(seen, held_out[seen], self._noise(rows, choice)),
            self._posterior(rows, matrix, choice), choice.curve,
        )  # fmt: skip

    def choice(
        self, rows: KernelRows, matrix: KernelMatrix, on_score: Callable[[float, float], None]
    ) -> ChosenSetting:
        """Choose the strength, and gamma if it is open, by the score of rows that are left out."""
        octaves = OCTAVES if self.chooses_gamma and matrix.gamma(0) is not None else 0
        score = _ScoreOfResiduals(rows)
        return LeaveOut(
            matrix, rows.Y, score, rows.groups, self._alphas, octaves, on_score, rows.weights, self.is_settled
        ).choose()

    @property
    def _alphas(self) -> Sequence[float] | None:
        """Strengths to choose from, or None for a search."""
        if self.alpha is None:
            return None
        alphas = sorted(np.atleast_1d(self.alpha).tolist())
        return [alphas[0] * 10.0**decades for decades in range(_RAISES)] if self.is_settled else alphas

    def _is_certain(self, rows: KernelRows) -> bool:
        """Whether noise and posterior are defined: for the square loss of targets that share rows and weights."""
        return RidgeSolver().supports(self.loss) and is_shared(rows.Y, rows.weights)

    def _noise(self, rows: KernelRows, choice: ChosenSetting) -> np.ndarray | None:
        """Return the variance of the targets (t,) about the outputs of a machine without uncertainty."""
        if not self._is_certain(rows):
            return None
        machine, weights = choice.solution, rows.weights
        residuals = machine.alpha * (
            machine.weights if weights is None else machine.weights / weights[:, None]
        )
        seen = ~np.isnan(choice.held_out[:, 0])
        return noise_of(
            residuals[seen], rows.Y[seen] - choice.held_out[seen], None if weights is None else weights[seen]
        )

    def _posterior(
        self, rows: KernelRows, matrix: KernelMatrix, choice: ChosenSetting
    ) -> Callable[[], DualPosterior | Posterior | None]:
        """Return a function that computes how certain the machine is."""
        if not self._is_certain(rows):
            return lambda: None
        alpha = choice.solution.alpha
        if rows.features.is_centred:
            return partial(_posterior_of_map, rows.features.mapped_rows, alpha, rows.weights, rows.dtype)
        return partial(matrix.posterior, alpha, choice.octaves)


def _posterior_of_map(
    rows: KeptRows | None, alpha: float, weights: np.ndarray | None, dtype: np.dtype
) -> Posterior | None:
    """Return the posterior of the weights of an additive kernel's map, from the scatter of the mapped rows.

    It is None for more than ``MOST_MAPPED`` features, and for several maps.
    """
    if rows is None or rows.n_columns > MOST_MAPPED:
        return None
    weights = None if weights is None else of_rows(weights)
    moments = Moments(rows.n_columns, 0, rows.column_means(), np.zeros(0))
    for first in range(0, rows.n_rows, _PIECE_ROWS):
        places = np.arange(first, min(first + _PIECE_ROWS, rows.n_rows))
        Z = rows.take(places).centred() + moments.shifts[0]
        moments.update(Z, np.zeros((places.size, 0)), None if weights is None else weights[places])
    factor = Factor(rows.n_columns)
    factor.of(moments, alpha)
    return Posterior.of(factor, moments.mean, moments.count, alpha, dtype)


@dataclass(frozen=True)
class _ScoreOfResiduals:
    """The user's score, as a function of residuals and the places of their rows in the order of the matrix."""

    rows: KernelRows

    @property
    def name(self) -> str:
        return self.rows.score.name

    def __call__(self, residuals: np.ndarray, places: np.ndarray) -> float:
        rows = self.rows
        return rows.score(rows.Y[places] + rows.shift - residuals, rows.order[places])
