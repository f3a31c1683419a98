"""The kernel matrix between all rows of a fit: what solvers with ``needs = "kernel"`` start from.

``KernelRows`` is the evidence: the rows, their targets, and what is left out together. ``KernelMatrix`` computes the
matrix, one at a time, for all rows or some of them and for any gamma; ``selection.leave_one_out`` chooses between its
machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from chimap.features.exact import RowKernel
from chimap.losses import Loss
from chimap.solvers.exact import DualRidge, lift
from chimap.solvers.exact_machines import exact_machine
from chimap.solvers.exact_observed import ExactRidge
from chimap.solvers.posterior import DualPosterior


class PlacedScore(Protocol):
    """A score, greater is better, of outputs for the rows at some places of the source."""

    @property
    def name(self) -> str:
        """Name of the score in tables."""
        ...

    def __call__(self, outputs: np.ndarray, rows: np.ndarray) -> float:
        """Return the score of outputs (m, t) for the rows at these places, (m,)."""
        ...


@dataclass(frozen=True)
class KernelRows:
    """All rows of a fit, in the order of their kernel matrix: rows that are left out together are adjacent.

    Parameters
    ----------
    features : RowKernel
        Fitted on the rows, in that order.
    order : array of shape (n,)
        Places of the rows in the source.
    groups : list of arrays, or None
        Places, in the order of the matrix, of the rows that are left out together; None if each is left out alone.
    Y : array of shape (n, t)
        Targets less ``shift``.
    shift : array of shape (t,)
        Shift of the targets.
    weights : array of shape (n,) or (n, t), or None
        Weights of the rows, or of their targets.
    score : PlacedScore
        Score of outputs.
    dtype : dtype
        Precision of the matrix.
    unit : float, default=1.0
        The weight that counts as one row.
    has_rare : bool, default=False
        Whether some rows are of a class that is rare.
    has_noise : bool, default=True
        Whether the variance of the targets about the outputs is wanted.
    units : array of shape (t,) or None, default=None
        Units of the targets, which outputs are multiplied by before they are scored; None for 1.
    counts : array of shape (n,) or None, default=None
        How many equal rows each row stands for; None for one.
    """

    features: RowKernel
    order: np.ndarray
    groups: list[np.ndarray] | None
    Y: np.ndarray
    shift: np.ndarray
    weights: np.ndarray | None
    score: PlacedScore
    dtype: np.dtype
    unit: float = 1.0
    has_rare: bool = False
    has_noise: bool = True
    units: np.ndarray | None = None
    counts: np.ndarray | None = None

    def scored(self, outputs: np.ndarray, places: np.ndarray | slice) -> float:
        """Return the score of outputs (m, t), less the shift, for the rows at these places."""
        outputs = outputs + self.shift
        return self.score(outputs if self.units is None else outputs * self.units, self.order[places])

    def matrix(self, loss: str | Loss) -> KernelMatrix:
        """Return the kernel matrix, for machines that minimise this loss."""
        return KernelMatrix(self.features, self.Y, self.weights, self.dtype, loss)


class KernelMatrix:
    """The kernel matrix between all rows of a fit, and the machines that are solved on it.

    A single matrix is kept, and changed in place for another gamma.
    """

    def __init__(
        self,
        features: RowKernel,
        Y: np.ndarray,
        row_weights: np.ndarray | None,
        dtype: np.dtype,
        loss: str | Loss = "square",
    ):
        self.features, self.Y, self.row_weights, self.dtype = features, Y, row_weights, dtype
        self._machine = exact_machine(loss).make
        self._rows: np.ndarray | None = None
        self._taken = features
        self._ridge: ExactRidge | None = None
        self._octaves = 0
        self.diagonal = np.empty(0)  # K_ii of the rows of the machine made last

    def gamma(self, octaves: int) -> float | None:
        """Return 2^octaves times the gamma of the features; None if the kernel has none."""
        return self.features.gamma_at(octaves)

    def ridge(self, rows: np.ndarray | None, octaves: int) -> ExactRidge:
        """Return the machine of these rows, or of all if None, and free the one made before for other rows."""
        if self._ridge is None or rows is not self._rows:
            self._ridge = None  # free the old matrix before the new one is allocated
            features = self._taken = self.features if rows is None else self.features.take(rows)
            n = features._n_features_out
            square = np.empty((n, n), dtype=self.dtype)
            chosen: slice | np.ndarray = slice(None) if rows is None else rows
            weights = None if self.row_weights is None else self.row_weights[chosen]
            values = self.diagonal = features.gram_into(square)
            diagonal = lift(square, values) if features.is_centred else values
            self._ridge = self._machine(square, diagonal, self.Y[chosen], weights)
            self._rows, self._octaves = rows, 0
        self._taken.change_octaves(self._ridge.square, self._octaves, octaves)
        self._octaves = octaves
        return self._ridge

    def solved(self, alpha: float, octaves: int) -> DualRidge | None:
        """Return ridge of all rows with the factor of a strength, which is computed again if it is not in memory."""
        ridge = self.ridge(None, octaves)
        if not isinstance(ridge, DualRidge) or (ridge.factor_of != alpha and ridge.solve(alpha) is None):
            return None
        return ridge

    def posterior(self, alpha: float, octaves: int, unit: float = 1.0) -> DualPosterior | None:
        """Return how certain the machine of all rows is, see ``solved``."""
        ridge = self.solved(alpha, octaves)
        return None if ridge is None else DualPosterior.of(ridge, self.dtype, unit)
