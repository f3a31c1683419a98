"""The objective of exact machines: weights of the kernel values with every row (``features="exact"``).

``ExactObjective`` is chosen by leaving rows out (``selection.leave_one_out``) and solved on the kernel matrix
(``solvers.kernel_matrix``). Exponential kernels keep every row for prediction; an additive one keeps its map alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from chimap import _threads
from chimap._errors import InputError
from chimap._messages import Message, Setting
from chimap._types import Parameters
from chimap._validation import DataError
from chimap.backends import on_host
from chimap.engines import Job, Progress, Stopwatch
from chimap.features.base import FeatureSettings
from chimap.features.exact import KeptRows, has_map
from chimap.fit.design import FeatureBlock
from chimap.fit.solving import Learned
from chimap.losses import CATALOGUE, Loss, check_loss
from chimap.moments import Moments, of_entries, of_rows
from chimap.selection.leave_one_out import OCTAVES, ChosenSetting, LeaveOut
from chimap.solvers import LinearSolution
from chimap.solvers.base import Evidence, Needs
from chimap.solvers.exact import DualSolution, is_shared
from chimap.solvers.exact_machines import has_exact_machine
from chimap.solvers.from_moments import RidgeSolver
from chimap.solvers.held_out import HeldOut, noise_of
from chimap.solvers.kernel_matrix import KernelMatrix, KernelRows
from chimap.solvers.posterior import DualPosterior, Posterior
from chimap.solvers.ridge import Factor

MOST_MAPPED = 4096  # features of a map whose scatter is still factorised for the deviations of predictions
_MOST_ALPHA = (
    1e30  # beyond it all outputs are the mean of the targets, and single precision holds no products
)
_RAISES = 6  # decades by which the strength of a race may be raised if rounding makes the matrix singular
_PIECE_ROWS = 2048
_ROUNDING_IN_SUMS = (
    0.2  # share of the rounding by large weights that is left in the sums of those of equal rows
)
_MOST_ROUNDING = 0.005  # share of the spread of the targets that rounding may move outputs by without a word


def exact_bytes(n_rows: int, row_bytes: float, dtype: np.dtype) -> int:
    """Return the bytes of an exact fit: the matrix, three copies of the rows, and columns of the inverse per thread."""
    return int(dtype.itemsize * n_rows * (n_rows + 512 * _threads.count()) + 3 * n_rows * row_bytes)


def kernels_of_blocks(given: Parameters) -> list[FeatureSettings]:
    """Return the settings of the features of each block of columns, for the parameters of an estimator."""
    gamma = given["gamma"] if given["gamma"] != "auto" else "mean"
    kernels = given["kernel"] if isinstance(given["kernel"], list | tuple) else [given["kernel"]]
    return [FeatureSettings(kernel, gamma, n_terms=given["n_terms"], map=given["map"]) for kernel in kernels]


def has_form_on_device(given: Parameters) -> bool:
    """Return whether the device of an estimator can compute the values of its kernels: the host can of any."""
    return on_host(given["device"]) or all(has_map(block.exact) for block in kernels_of_blocks(given))


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
        if not has_form_on_device(given):
            raise InputError(
                Message(
                    "{features='exact'} on {device=}: kernel {} has no map, and its values are computed on this "
                    "machine only. Use {device='cpu'}, or {features='landmarks'}.",
                    given["device"],
                    ", ".join(repr(k.exact.name) for k in kernels_of_blocks(given) if not has_map(k.exact)),
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
            if rows.order.size < 2:
                raise DataError(
                    "one row only: a machine is chosen by leaving rows out, which takes at least two rows."
                )
            matrix = rows.matrix(self.loss)
            choice = self.choice(rows, matrix, lambda alpha, value: progress.advance())
        machine = _rounded_little(rows, matrix.diagonal, choice.solution)
        rows.features.set_octaves(choice.octaves)
        held_out = np.empty_like(choice.held_out)
        held_out[rows.order] = choice.held_out + rows.shift
        seen = np.flatnonzero(~np.isnan(held_out).all(axis=1))
        return Learned(
            LinearSolution(machine.weights, machine.intercept + rows.shift, machine.alpha),
            check_loss(self.loss, CATALOGUE), choice.result, 1, rows.order.size,
            {"row_numbers_": rows.order, "held_out_": held_out, "kernel_": features.kernel_},
            HeldOut(seen, held_out[seen], self._noise(rows, matrix, choice)),
            self._posterior(rows, matrix, choice), choice.curve,
        )  # fmt: skip

    def choice(
        self, rows: KernelRows, matrix: KernelMatrix, on_score: Callable[[float, float], None]
    ) -> ChosenSetting:
        """Choose the strength, and gamma if it is open, by the score of rows that are left out."""
        octaves = OCTAVES if self.chooses_gamma and matrix.gamma(0) is not None else 0
        score = _ScoreOfResiduals(rows)
        return LeaveOut(
            matrix, rows.Y, score, rows.groups, self._alphas, octaves, on_score, rows.weights, self.is_settled,
            rows.has_rare,
        ).choose()  # fmt: skip

    @property
    def _alphas(self) -> Sequence[float] | None:
        """Strengths to choose from, or None for a search."""
        if self.alpha is None:
            return None
        alphas = sorted({min(alpha, _MOST_ALPHA) for alpha in np.atleast_1d(self.alpha).tolist()})
        return [alphas[0] * 10.0**decades for decades in range(_RAISES)] if self.is_settled else alphas

    def _is_certain(self, rows: KernelRows) -> bool:
        """Whether noise and posterior are defined: for the square loss of targets that share rows and weights."""
        return RidgeSolver().supports(self.loss) and is_shared(rows.Y, rows.weights)

    def _noise(self, rows: KernelRows, matrix: KernelMatrix, choice: ChosenSetting) -> np.ndarray | None:
        """Return the variance of the targets (t,) about the outputs of a machine without uncertainty."""
        if not self._is_certain(rows) or not rows.has_noise:
            return None
        seen = np.flatnonzero(~np.isnan(choice.held_out[:, 0]))
        alpha, residuals = choice.solution.alpha, rows.Y[seen] - choice.held_out[seen]
        weights = np.ones(rows.order.size) if rows.weights is None else rows.weights
        if rows.groups is None:
            duals = choice.solution.weights[seen]
            variances = np.divide(residuals, duals, out=np.ones_like(residuals), where=duals != 0)
        else:
            ridge = matrix.solved(alpha, choice.octaves)
            groups = [group for group in rows.groups if np.isin(group[0], seen)]
            if ridge is None:
                return None
            variances = np.concatenate(ridge.variances(groups))
        factors = of_entries(weights)[seen] * of_entries(variances) / alpha
        counts = None if rows.counts is None else rows.counts[seen]
        return noise_of(residuals, factors, weights[seen], counts)

    def _posterior(
        self, rows: KernelRows, matrix: KernelMatrix, choice: ChosenSetting
    ) -> Callable[[], DualPosterior | Posterior | None]:
        """Return a function that computes how certain the machine is."""
        if not self._is_certain(rows):
            return lambda: None
        alpha = choice.solution.alpha
        if rows.features.is_centred:
            return partial(
                _posterior_of_map, rows.features.mapped_rows, alpha, rows.weights, rows.dtype, rows.unit
            )
        return partial(matrix.posterior, alpha, choice.octaves, rows.unit)


def _rounded_little(rows: KernelRows, diagonal: np.ndarray, machine: DualSolution) -> DualSolution:
    """Return the machine such that rounding of kernel values moves its outputs f = sum_j K_j a_j little, or warn.

    Each value K(x, x_j), or weight a_j, is off by up to eps of its size, independently of the others, and an output by
    eps times the root of K_xx sum_j K_jj a_j^2: much where strengths are small beside what rounding leaves of the
    kernel, as with repeated rows, or with so small a gamma that all values are close to 1. Repeated rows with unlike
    targets have large weights of both signs, and only their sum matters: the first of equal rows takes it. Nothing
    helps a tiny gamma, as the values of new rows are rounded as well.
    """
    before = _share_of_rounding(rows, diagonal, machine)
    if before <= _MOST_ROUNDING:
        return machine
    weights = np.zeros_like(machine.weights)
    np.add.at(weights, rows.features.first_equal(), machine.weights)
    machine = replace(machine, weights=weights)
    share = max(_ROUNDING_IN_SUMS * before, _share_of_rounding(rows, diagonal, machine))
    if share > _MOST_ROUNDING:
        warnings.warn(
            Message(
                "rounding to {} moves the outputs by about {:.2g} % of the spread of the targets, at {alpha=:g}. Use "
                "a larger {alpha}, a larger {gamma} if the kernel has one, or {precision='float64'}.",
                str(rows.dtype),
                100 * share,
                machine.alpha,
            ),
            ConvergenceWarning,
            stacklevel=2,
        )
    return machine


def _share_of_rounding(rows: KernelRows, diagonal: np.ndarray, machine: DualSolution) -> float:
    """Return how far rounding moves outputs, as a share of the spread of the targets; see ``_rounded_little``."""
    sizes = np.sqrt(diagonal.mean() * (diagonal[:, None] * np.square(machine.weights)).sum(axis=0))
    spread = np.nanstd(rows.Y, axis=0)
    return float(np.finfo(rows.dtype).eps * np.max(sizes / np.where(spread > 0, spread, np.inf)))


def _posterior_of_map(
    rows: KeptRows | None, alpha: float, weights: np.ndarray | None, dtype: np.dtype, unit: float
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
    return Posterior.of(factor, moments.mean, moments.count, alpha, dtype, unit=unit)


@dataclass(frozen=True)
class _ScoreOfResiduals:
    """The user's score, as a function of residuals and the places of their rows in the order of the matrix."""

    rows: KernelRows

    @property
    def name(self) -> str:
        return self.rows.score.name

    def __call__(self, residuals: np.ndarray, places: np.ndarray) -> float:
        rows = self.rows
        return rows.scored(rows.Y[places] - residuals, places)
