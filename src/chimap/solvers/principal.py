"""Ridge on principal components: every number of components and every strength from one decomposition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from chimap.moments import PCA, Moments
from chimap.solvers.ridge import LinearSolution


@dataclass(frozen=True)
class PrincipalRidge:
    """Ridge weights on the first p components, for every p and strength: w = U_p (e_p + strength)^-1 U_p' Vc.

    pca: the components U, largest first, with scatters e. rotated: U' Vc, (p, t). target_mean: (t,).

    Source: Li, Lebanon and Sminchisescu, sec. 6, Algorithm 4.

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
        """Decompose the moments (on a ``device``: see ``PCA.of``), keeping n_components leading ones (None: all)."""
        pca = PCA.of(moments, n_components, device)
        return cls(pca, pca.components.T @ moments.cross_scatter(), moments.target_mean)

    def coordinates(self, alpha: float) -> np.ndarray:
        """Weights along the components, (p, t); the first rows are those of fewer components."""
        return _filtered(self.pca.scatters, alpha)[:, None] * self.rotated

    def solution(self, n_components: int, alpha: float) -> LinearSolution:
        """Weights of the features themselves: prediction needs no projection."""
        coef = self.pca.components[:, :n_components] @ self.coordinates(alpha)[:n_components]
        return LinearSolution(coef, self.target_mean - self.pca.mean @ coef, alpha)

    def predictions(
        self, Z: np.ndarray, n_components: Sequence[int], alpha: float
    ) -> Iterator[tuple[int, np.ndarray]]:
        """(p, outputs (n, t)) of rows Z (n, D) for each p in ascending order, at the cost of the largest alone."""
        weights, coordinates = self.coordinates(alpha), self.pca.transform(Z)
        outputs, done = np.tile(self.target_mean, (Z.shape[0], 1)), 0
        for p in sorted(n_components):
            outputs = outputs + coordinates[:, done:p] @ weights[done:p]
            done = p
            yield p, outputs


def leading(borders: np.ndarray, n_components: int) -> np.ndarray:
    """Indices of the first n_components coordinates of each block, or of all that it has; borders as below."""
    return np.concatenate([np.arange(a, min(a + n_components, b)) for a, b in pairwise(borders)])


def _filtered(scatters: np.ndarray, alpha: float) -> np.ndarray:
    """1 / (e + strength); 0 for components that are rounding of the largest."""
    noise = scatters.size * np.finfo(float).eps * max(float(scatters[0]), np.finfo(float).tiny)
    kept = scatters + alpha > noise
    return np.where(kept, 1 / np.where(kept, scatters + alpha, 1), 0)
