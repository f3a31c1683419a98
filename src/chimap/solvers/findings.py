"""What solvers find besides the weights, and show."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from chimap.model_files import register


@dataclass(frozen=True)
class KernelPath:
    """The regularisation path of kernel weights: what each strength gives.

    Parameters
    ----------
    alphas : ndarray of shape (s,)
        Strengths, descending.
    weights : ndarray of shape (s, t, r)
        Weight |w_j| / sqrt(2) of each of r kernels for each of t targets. t is 1 where the targets share the kernels.
    objectives : ndarray of shape (s,)
        Objective at each strength.
    residuals : ndarray of shape (s,)
        Largest violation of an optimality condition, relative to the strength.
    chosen : int
        Index of the strength that the model uses.
    """

    alphas: np.ndarray
    weights: np.ndarray
    objectives: np.ndarray
    residuals: np.ndarray
    chosen: int

    @property
    def n_used(self) -> np.ndarray:
        """Number of kernels that at least one target uses, shape (s,)."""
        return (self.weights > 0).any(axis=1).sum(axis=1)


@dataclass(frozen=True, eq=False)
class Findings:
    """What a solver has found besides the weights; None where it finds nothing of the kind.

    Parameters
    ----------
    row_numbers : array of shape (m,) or None, default=None
        Of exact machines: places of the rows of the kernel matrix.
    held_out : array of shape (n, t) or None, default=None
        Of exact machines: outputs of all rows by machines that have not seen them.
    n_unlearned : int or None, default=None
        Rows that a time limit, or the usual amount of work, left out.
    block_rows : array of shape (blocks,) or None, default=None
        Rows of each block of an exact machine that was solved by blocks.
    n_principal : int or None, default=None
        Number of principal components of each block that was chosen.
    kernel_weights : array of shape (t, r) or None, default=None
        Weight of each of r kernels for each target.
    path : KernelPath or None, default=None
        The weights by strength.
    kkt_residual : float or None, default=None
        Largest violation of an optimality condition at the chosen strength.
    objective : float or None, default=None
        The minimum there.
    n_iter : int or None, default=None
        Passes over the path.
    row_ids : array of shape (m,) or None, default=None
        Ids of the rows of ``row_numbers``, if the data of the fit has ids.
    """

    row_numbers: np.ndarray | None = None
    held_out: np.ndarray | None = None
    n_unlearned: int | None = None
    block_rows: np.ndarray | None = None
    n_principal: int | None = None
    kernel_weights: np.ndarray | None = None
    path: KernelPath | None = None
    kkt_residual: float | None = None
    objective: float | None = None
    n_iter: int | None = None
    row_ids: np.ndarray | None = None

    def at(self, places: np.ndarray, ids: np.ndarray | None) -> Findings:
        """Return the same with the numbers and ids of the rows of a file, given those (n,) of all rows there."""
        rows = self.row_numbers
        if rows is None:
            return self
        return replace(self, row_numbers=places[rows], row_ids=None if ids is None else ids[rows].astype(str))


register(KernelPath)
