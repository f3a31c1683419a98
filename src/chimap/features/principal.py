"""Principal components of the features of each block of columns, and the moments that give them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from chimap import _arrays
from chimap._types import Array, ArrayMap, Rows
from chimap.features.base import FittedFeatures, Folded
from chimap.features.blocks import BlockFeatures
from chimap.moments import PCA, BatchProduct, Moments, Targets, provisional_mean

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
        for first in range(0, rows.shape[0], _ROWS):
            part = slice(first, first + _ROWS)
            block = _arrays.take_rows(rows, part)
            for j, pca in enumerate(self.components):
                columns = slice(self.borders[j], self.borders[j + 1])
                out[part, columns] = pca.transform(self.features.block_features(j, block))
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)

    def bound(self, like: Array) -> ArrayMap | None:
        """Return the map from rows to coordinates for arrays such as ``like``; None if a block has none."""
        inner = self.features.bound(like)
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

    def simplified(self, coef: np.ndarray, intercept: np.ndarray) -> Folded:
        """Return a linear model of the coordinates as one of the features: weights (D, t) and intercepts (t,)."""
        parts = [pca.components @ coef[self.borders[j] : self.borders[j + 1]] for j, pca in enumerate(self.components)]
        means = np.concatenate([pca.mean for pca in self.components])
        weights = np.concatenate(parts)
        return Folded(self.features, weights, intercept - means @ weights)


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
