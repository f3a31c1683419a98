"""Principal components of the features of each block of columns, and the moments that give them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import Array, ArrayMap, Rows
from chimap._validation import DataError, check_positive
from chimap.backends import backend_of
from chimap.features.base import FittedFeatures, LinearForm
from chimap.features.blocks import BlockFeatures
from chimap.model_files import register
from chimap.moments import BatchProduct, Moments, Targets, provisional_mean


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


_ROWS = 2048  # rows whose features are projected at once


class PrincipalCoordinates(FittedFeatures):
    """Coordinates of each block's features along its principal components.

        [U_1'(z_1 - mean_1), .., U_r'(z_r - mean_r)] for r blocks.

    The second pass over the rows takes moments of these coordinates. ``folded`` turns weights of the coordinates into
    weights of the features, so that prediction needs no projection.

    Source: Li, Lebanon and Sminchisescu, A linear approximation to the chi2 kernel, Algorithm 5.
    """

    def __init__(self, features: BlockFeatures, components: Sequence[PCA]):
        self.features, self.components = features, list(components)
        self.borders = np.cumsum([0, *(pca.components.shape[1] for pca in self.components)])

    @property
    def _n_features_out(self) -> int:
        return int(self.borders[-1])

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write coordinates minus ``shift`` of checked rows into ``out``."""
        for part in _arrays.slices(rows.shape[0], _ROWS):
            block = _arrays.take_rows(rows, part)
            for j, pca in enumerate(self.components):
                columns = slice(self.borders[j], self.borders[j + 1])
                out[part, columns] = pca.transform(self.features.block_features(j, block))
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)

    def on_device(self, like: Array) -> ArrayMap | None:
        """Return the map from rows to coordinates for arrays such as ``like``; None if a block has none."""
        inner = self.features.on_device(like)
        if inner is None:
            return None
        xp = _arrays.namespace(like)
        of_blocks = self.features.borders_
        blocks = [slice(int(first), int(last)) for first, last in itertools.pairwise(of_blocks)]
        means = [_arrays.as_like(pca.mean, like) for pca in self.components]
        axes = [_arrays.as_like(pca.components, like) for pca in self.components]

        def coordinates(rows: Array) -> Array:
            Z = inner(rows)
            parts = zip(blocks, means, axes, strict=True)
            return xp.concat([(Z[:, block] - mean) @ U for block, mean, U in parts], axis=1)

        return coordinates

    @property
    def n_inputs(self) -> int:
        """Length of the widest row that the coordinates are computed from."""
        return max(self.features._n_features_out, self.features.n_inputs)

    def simplified(self, coef: np.ndarray, intercept: np.ndarray) -> LinearForm:
        """Return a linear model of the coordinates as one of the features: weights (D, t) and intercepts (t,)."""
        parts = [pca.components @ coef[self.borders[j] : self.borders[j + 1]] for j, pca in enumerate(self.components)]
        means = np.concatenate([pca.mean for pca in self.components])
        weights = np.concatenate(parts)
        return LinearForm(self.features, weights, intercept - means @ weights)


class BlockMoments:
    """Moments of each block's features, without targets, from which the blocks' principal components are computed.

    ``blocks`` holds a ``Moments`` for each block.
    """

    def __init__(self, blocks: Sequence[Moments]):
        self.blocks = list(blocks)

    @classmethod
    def about(cls, features: BlockFeatures, rows: Rows) -> BlockMoments:
        """Return empty moments about the means of these rows."""
        moments = []
        for j in range(len(features.features_)):
            Z = features.block_features(j, rows)
            moments.append(Moments(Z.shape[1], 0, provisional_mean(Z), np.zeros(0)))
        return cls(moments)

    @property
    def parts(self) -> list[Moments]:
        """Moments of each block, which a checkpoint writes."""
        return self.blocks

    def fresh(self) -> BlockMoments:
        """Return empty moments about the same shifts."""
        return BlockMoments([moments.fresh() for moments in self.blocks])

    def merge(self, other: BlockMoments) -> None:
        """Add the rows of other moments, block by block."""
        for moments, more in zip(self.blocks, other.blocks, strict=True):
            moments.merge(more)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(moments.__sizeof__() for moments in self.blocks)

    def add(self, features: BlockFeatures, rows: Rows, no_targets: Targets) -> None:
        """Add checked rows, a block at a time; no_targets (n, 0) may carry the weights of the rows."""
        for j, moments in enumerate(self.blocks):
            Z = features.block_features(j, rows)
            Z -= np.asarray(moments.shift, dtype=Z.dtype)
            product = BatchProduct(moments.n_features, Z.dtype)
            moments.add_shifted(Z, no_targets, product)
            product.move_to(moments.features)

    def release_buffers(self) -> None:
        """Do nothing: only the sums are kept."""


register(PCA)
