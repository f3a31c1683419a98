"""Designs of features: blocks of columns, how their features are made, and how large they are.

``PlainDesign`` has a given kernel for each block, and learns nothing from the targets. ``fit.method`` says what any
design does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from chimap._types import Blocks, Parameters, Rows
from chimap.data import Source
from chimap.features.base import FittedFeatures
from chimap.features.blocks import BlockFeatures
from chimap.features.exact import ExactBlocks
from chimap.features.scaled import Scale, ScaledFeatures
from chimap.recipe import Recipe
from chimap.recipe.parts import FeatureBlock, parts_of, sizes_of
from chimap.solvers.held_out import SCORED_ROWS


def features_of(parts: list[FeatureBlock], seed: int) -> BlockFeatures | ExactBlocks:
    """Return unfitted features of the blocks, added up or side by side; each draws its own random numbers."""
    features: Any = [part.make(seed + j) for j, part in enumerate(parts)]
    joined = ExactBlocks if all(part.features.adds_up_blocks for part in parts) else BlockFeatures
    return joined(features, {part.name: part.columns for part in parts})


@dataclass(frozen=True)
class PlainDesign:
    """Features of one kernel, or of a kernel for each block, fitted on a sample of rows.

    Parameters
    ----------
    recipe : Recipe
        Kernel and features.
    blocks : mapping of names to columns, or None, default=None
        The blocks.
    side_by_side : bool, default=False
        Whether to make ``BlockFeatures`` even without blocks, as principal components need.
    """

    recipe: Recipe
    blocks: Blocks | None = None
    side_by_side: bool = False

    def parts(self, n_columns: int) -> list[FeatureBlock]:
        """See ``method.Design``."""
        return parts_of(self.recipe, self.blocks, n_columns)

    def sized(self, n_columns: int) -> list[FeatureBlock]:
        """See ``method.Design``."""
        return self.parts(n_columns)

    def fit(self, sample: Rows, seed: int, sample_weight: np.ndarray | None = None) -> FittedFeatures:
        """Fit features on prepared rows; rows far from 1 are first scaled towards it by a power of two.

        ``sample_weight`` are the weights (n,) of rows that features keep; other samples are drawn by weight.
        """
        parts = self.parts(sample.shape[1])
        scale = Scale.of(sample, [part.kernel for part in parts])
        parts = [part.scaled(scale) for part in parts]
        alone = self.blocks is None and len(parts) == 1 and not self.side_by_side
        features: Any = parts[0].make(seed) if alone else features_of(parts, seed)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        features.fit(scale.rows(sample), **weights)
        return ScaledFeatures(features, scale) if scale.exponent else features

    def learn(self, features: Any, *_: object) -> tuple[FittedFeatures, Parameters]:
        """Return the features unchanged."""
        return features, {}


_SAMPLE_ROWS, _SAMPLE_BYTES = 4096, 2**26
PART_APART = 5  # at most a fifth of the rows: setting these aside costs no landmarks worth having


def sample_rows(n_bins: int) -> int:
    """Return the number of rows of ``n_bins`` bins that maps, gamma and the provisional mean are fitted on."""
    return min(_SAMPLE_ROWS, max(256, _SAMPLE_BYTES // max(1, 4 * n_bins)))


def sample_size(source: Source, parts: list[FeatureBlock]) -> int:
    """Return the number of rows of the source that the features of these parts are fitted on."""
    size = max(sample_rows(source.n_features), sizes_of(parts).sample_rows)
    return min(size, source.n_rows - rows_apart(source, parts))


def rows_apart(source: Source, parts: list[FeatureBlock]) -> int:
    """Return the number of rows that no landmark of these parts is made of; 0 for features without landmarks.

    If every row is a landmark, leaving a row out is exact, and no rows need to be set aside.
    """
    has_others = 0 < sizes_of(parts).landmarks < source.n_rows
    return min(SCORED_ROWS, source.n_rows // PART_APART) if has_others else 0
