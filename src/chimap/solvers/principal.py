"""Ridge on principal components: one decomposition serves every number of components and every strength.

The problem is ridge on the first p principal components U_p of the features, with scatters e_p:

    min_{a, b}  sum_i |(z_i - m)'U_p a + b - y_i|^2 + alpha |a|^2,   so that   w = U_p (e_p + alpha)^-1 U_p' Vc.

The decomposition costs O(D^3) operations and a (D, p) array; after it, the coordinates a of any p and alpha cost
O(p t), and the weights w of the features O(D p t).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from chimap.features.principal import PCA
from chimap.moments import Moments
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
