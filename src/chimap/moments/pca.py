"""Principal components computed from moments, without reading the rows again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._validation import DataError, check_positive
from chimap.backends import backend_of
from chimap.moments.moments import Moments


@dataclass(frozen=True)
class PCA:
    """Principal components: the leading eigenpairs of the scatter Hc = sum (z - mean)(z - mean)'.

    Parameters
    ----------
    mean : ndarray of shape (D,)
        Mean of the features.
    components : ndarray of shape (D, p)
        Orthonormal columns, that of the largest eigenvalue first; the entry of largest magnitude of each is positive.
    scatters : ndarray of shape (p,)
        Eigenvalues of Hc.
    total : float
        Trace of Hc.
    count : float
        Number of rows, or the sum of their weights.

    References
    ----------
    Li, Lebanon and Sminchisescu, sec. 6, Algorithm 3.

    Examples
    --------
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
        """Compute the principal components of the rows in ``moments``.

        Rows without labels that were merged into the moments count like any other; this is transductive PCA.

        Parameters
        ----------
        moments : Moments
            Moments of the rows.
        n_components : int, default=None
            Number of leading components; None for all.
        device : str, default="cpu"
            Torch device that decomposes in float64, such as "cuda"; the CPU does if the device has no room.

        Raises
        ------
        DataError
            If the moments have no rows.
        ValueError
            If there are more components than features.

        Examples
        --------
        >>> Z = np.random.default_rng(0).random((50, 4))
        >>> pca = PCA.of(Moments(4, 0).update(Z, np.zeros((50, 0))), n_components=2)
        >>> bool(np.allclose(pca.variances, np.linalg.eigvalsh(np.cov(Z.T))[:1:-1]))
        True
        """
        n = moments.n_features
        wanted = n if n_components is None else n_components
        check_positive(wanted, "n_components", integer=True)
        if wanted > n:
            raise InputError(Message("{n_components=!s}, but there are {} features.", wanted, n))
        if moments.n_rows == 0:
            raise DataError(
                "the moments have no rows: principal components need some. Add rows with Moments.update first."
            )
        square = np.empty((n, n))
        moments.scatter_into(square)
        total = float(np.trace(square))
        values, vectors = backend_of(device).eigenpairs(square, wanted)
        vectors = vectors[:, ::-1][:, :wanted]
        largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None, :], axis=0)
        # The order in memory is fixed, so that components read back from a file give the same bits in products.
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
        """Return the coordinates (n, p) of rows, in the dtype of Z.

        Parameters
        ----------
        Z : ndarray of shape (n, D)
            Features.
        """
        return (Z - self.mean.astype(Z.dtype)) @ self.components.astype(Z.dtype)
