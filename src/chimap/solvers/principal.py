"""Ridge on principal components: one decomposition serves every number of components and every strength.

The problem is ridge on the first p principal components U_p of the features, with scatters e_p:

    min_{a, b}  sum_i |(z_i - m)'U_p a + b - y_i|^2 + alpha |a|^2,   so that   w = U_p (e_p + alpha)^-1 U_p' Vc.

The decomposition costs O(D^3) operations and a (D, p) array; after it, the coordinates a of any p and alpha cost
O(p t), and the weights w of the features O(D p t).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from chimap.features.principal import PCA
from chimap.losses import Loss, Square
from chimap.moments import FoldMoments, Moments
from chimap.solvers.base import Needs, Problem
from chimap.solvers.held_out import HeldOut, ValidationRows, left_out
from chimap.solvers.ridge import LinearSolution


@dataclass(frozen=True)
class PrincipalRidge:
    """Ridge weights on the first p components, for every p and alpha: w = U_p (e_p + alpha)^-1 U_p' Vc.

    Parameters
    ----------
    pca : PCA
        The components U, largest first, with their scatters e.
    rotated : ndarray of shape (p, t)
        U' Vc.
    target_mean : ndarray of shape (t,)
        Mean targets.

    References
    ----------
    Li, Lebanon and Sminchisescu, sec. 6, Algorithm 4.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(100, 4))
    >>> ridge = PrincipalRidge.of(Moments(4, 1).update(Z, Z[:, 0]))
    >>> ridge.solution(n_components=4, alpha=1e-9).coef.ravel().round(6).tolist()[0]
    1.0
    """

    pca: PCA
    rotated: np.ndarray
    target_mean: np.ndarray

    @classmethod
    def of(cls, moments: Moments, n_components: int | None = None, device: str = "cpu") -> PrincipalRidge:
        """Decompose the scatter of the features.

        Parameters
        ----------
        moments : Moments
            Moments of the rows.
        n_components : int, default=None
            Number of leading components to keep. None keeps all.
        device : str, default="cpu"
            Device that decomposes. See ``PCA.of``.
        """
        pca = PCA.of(moments, n_components, device)
        return cls(pca, pca.components.T @ moments.cross_scatter(), moments.target_mean)

    def coordinates(self, alpha: float) -> np.ndarray:
        """Return the weights along the components.

        Parameters
        ----------
        alpha : float
            Strength of the penalty.

        Returns
        -------
        ndarray of shape (p, t)
            The first rows are the weights for fewer components.
        """
        return _filtered(self.pca.scatters, alpha)[:, None] * self.rotated

    def solution(self, n_components: int, alpha: float) -> LinearSolution:
        """Return the weights of the features themselves, so that prediction needs no projection.

        Parameters
        ----------
        n_components : int
            Number of leading components to use.
        alpha : float
            Strength of the penalty.
        """
        coef = self.pca.components[:, :n_components] @ self.coordinates(alpha)[:n_components]
        return LinearSolution(coef, self.target_mean - self.pca.mean @ coef, alpha)

    def predictions(self, Z: np.ndarray, n_components: Sequence[int], alpha: float) -> Iterator[tuple[int, np.ndarray]]:
        """Predict rows with several numbers of components, at the cost of the largest alone.

        Parameters
        ----------
        Z : ndarray of shape (n, D)
            Features of the rows.
        n_components : sequence of int
            Numbers of components.
        alpha : float
            Strength of the penalty.

        Yields
        ------
        tuple of int and ndarray of shape (n, t)
            A number of components and its outputs, in ascending order.
        """
        weights, coordinates = self.coordinates(alpha), self.pca.transform(Z)
        outputs, done = np.tile(self.target_mean, (Z.shape[0], 1)), 0
        for p in sorted(n_components):
            outputs = outputs + coordinates[:, done:p] @ weights[done:p]
            done = p
            yield p, outputs


class PrincipalProblem(Problem):
    """Minimise sum |z'w + b - y|^2 / 2 + alpha/2 |w|^2 over weights in the span of the first p components.

    Parameters
    ----------
    moments : FoldMoments
        Moments of all rows, fold by fold.
    numbers : sequence of int
        Numbers of components to choose from; the largest is used where no rule chooses.
    device : str, default="cpu"
        Device that decomposes. See ``PCA.of``.
    """

    needs: ClassVar[Needs] = "moments"

    def __init__(self, moments: FoldMoments, numbers: Sequence[int], device: str = "cpu"):
        self.moments, self.numbers, self.device = moments, numbers, device
        self.whole, self.n_folds = moments.whole(), len(moments.folds)
        self.loss: Loss = Square()

    def of_components(self, number: int) -> PrincipalProblem:
        """Return the problem of one number of components."""
        return PrincipalProblem(self.moments, [number], self.device)

    @property
    def n_rows(self) -> int:
        return self.whole.n_rows

    @property
    def rule(self) -> str | None:
        return "principal folds" if self.n_folds > 1 else None

    def usual_alpha(self) -> float:
        """Return the mean scatter of a feature."""
        return float(self.whole.scatter_diagonal().mean()) or 1.0

    def solve(self, alpha: float) -> LinearSolution:
        number = max(self.numbers)
        model = PrincipalRidge.of(self.whole, number, self.device)
        self._pca, self._number = model.pca, number
        return model.solution(number, alpha)

    def held_out(self, solution: LinearSolution, validation: ValidationRows | None) -> HeldOut | None:
        """See ``Problem``: each row is left out alone, of machines with the same components."""
        if validation is None:
            return None
        shift, target_shift = self.whole.shifts
        outputs = validation.Z @ solution.coef + (solution.intercept + shift @ solution.coef - target_shift)
        coordinates = self._pca.transform(validation.Z + shift)[:, : self._number]
        scatters = self._pca.scatters[: self._number]
        h = np.square(coordinates) @ (1 / (scatters + solution.alpha)) + 1 / self.whole.count
        h = h if validation.weights is None else h * validation.weights
        return HeldOut(validation.rows, left_out(self.loss, validation.Y, outputs, h) + target_shift)

    @property
    def attributes(self) -> dict[str, object]:
        return {"n_components_": self._number, "pca_": self._pca}


def leading(borders: np.ndarray, n_components: int) -> np.ndarray:
    """Return the indices of the first ``n_components`` coordinates of each block, or of all if it has fewer.

    Block j holds the coordinates borders[j] to borders[j + 1] - 1.
    """
    return np.concatenate([np.arange(a, min(a + n_components, b)) for a, b in pairwise(borders)])


def _filtered(scatters: np.ndarray, alpha: float) -> np.ndarray:
    """Return 1 / (e + alpha), and 0 for components that are rounding errors of the largest."""
    noise = scatters.size * np.finfo(float).eps * max(float(scatters[0]), np.finfo(float).tiny)
    kept = scatters + alpha > noise
    return np.where(kept, 1 / np.where(kept, scatters + alpha, 1), 0)
