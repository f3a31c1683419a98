"""Principal components from moments: no row is read again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._validation import DataError, check_positive
from chimap.backends import backend_of
from chimap.moments.covariance import Moments


@dataclass(frozen=True)
class PCA:
    """The leading eigenpairs of the scatter Hc = sum (z - mean)(z - mean)'.

    mean: (D,). components: (D, p), orthonormal columns, the largest eigenvalue first; the sign of each makes its
    entry of largest magnitude positive. scatters: (p,) eigenvalues of Hc. total: trace of Hc. count: of the rows, by
    their weights.

    Source: Li, Lebanon and Sminchisescu, sec. 6, Algorithm 3.

    >>> from chimap.moments import Moments
    >>> Z = np.random.default_rng(0).random((50, 4)) * [1, 1, 9, 1]
    >>> pca = PCA.of(Moments(4, 0).update(Z, np.zeros((50, 0))), n_components=1)
    >>> int(np.abs(pca.components[:, 0]).argmax())
    2
    """

    mean: np.ndarray
    components: np.ndarray
    scatters: np.ndarray
    total: float
    count: float

    @classmethod
    def of(cls, moments: Moments, n_components: int | None = None, device: str = "cpu") -> PCA:
        """The n_components leading ones (None: all) of the rows that the moments have seen.

        device: of torch that decomposes, such as "cuda", in float64; this machine where it has no room for it.
        Rows without labels that were merged into the moments count like any other: that is transductive PCA.
        Raises DataError for moments of no rows, ValueError for more components than features.

        >>> Z = np.random.default_rng(0).random((50, 4))
        >>> pca = PCA.of(Moments(4, 0).update(Z, np.zeros((50, 0))), n_components=2)
        >>> bool(np.allclose(pca.variances, np.linalg.eigvalsh(np.cov(Z.T))[:1:-1]))
        True
        """
        n = moments.n_features
        wanted = n if n_components is None else n_components
        check_positive(wanted, "n_components", integer=True)
        if wanted > n:
            raise ValueError(f"n_components={wanted}, but there are {n} features.")
        if moments.n_rows == 0:
            raise DataError("no rows: principal components need moments that have seen some.")
        square = np.empty((n, n))
        moments.scatter_into(square)
        total = float(np.trace(square))
        values, vectors = backend_of(device).eigenpairs(square, wanted)
        vectors = vectors[:, ::-1][:, :wanted]
        largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None, :], axis=0)
        # in one order of memory: what is read back from a file then multiplies to the same bits
        vectors = np.ascontiguousarray(vectors * np.where(largest < 0, -1.0, 1.0))
        return cls(moments.mean, vectors, np.maximum(values[::-1][:wanted], 0), total, moments.count)

    @property
    def variances(self) -> np.ndarray:
        """Variance along each component, (p,): its scatter / (count - 1)."""
        return self.scatters / max(1, self.count - 1)

    @property
    def shares(self) -> np.ndarray:
        """Share of each component in the variance of all features, (p,)."""
        return self.scatters / (self.total or 1.0)

    def transform(self, Z: np.ndarray) -> np.ndarray:
        """Coordinates (n, p) of rows Z (n, D), in the dtype of Z."""
        return (Z - self.mean.astype(Z.dtype)) @ self.components.astype(Z.dtype)
