"""Blocks of columns, each with its features: what a recipe asks for, for rows of some columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import Blocks, Rows
from chimap._validation import check_blocks
from chimap.features.base import Features, FittedFeatures, Footprint
from chimap.features.families import AutomaticFeatures
from chimap.features.scaled import Scale, ScaledFeatures
from chimap.kernels import Kernel, Linear
from chimap.recipe.recipe import Recipe


@dataclass(frozen=True)
class FeatureBlock:
    """A block of columns and its unfitted features.

    Parameters
    ----------
    name : str
        Name of the block.
    columns : array of int
        Its columns.
    features : Features
        Unfitted features of its kernel.
    are_bins : bool, default=True
        Whether the columns are bins, which are normalised and weighted; covariates are not.
    """

    name: str
    columns: np.ndarray
    features: Features
    are_bins: bool = True

    @property
    def kernel(self) -> Kernel:
        """The exact kernel."""
        return self.features.exact_kernel

    def scaled(self, scale: Scale) -> FeatureBlock:
        """Return the part for rows that are multiplied by the scale."""
        if not scale.exponent:
            return self
        return replace(self, features=self.features.changed(kernel=scale.kernel(self.kernel)))

    @property
    def footprint(self) -> Footprint:
        """Sizes of its features."""
        return self.features.footprint(self.columns.size)

    def make(self, seed: int) -> Features:
        """Return unfitted features that draw by a seed, unless they have their own."""
        is_open = self.features.settings.get("random_state", seed) is None
        return self.features.changed(**{"random_state": seed} if is_open else {})

    def fitted(self, rows: Rows, seed: int) -> FittedFeatures:
        """Return its features, fitted on prepared rows of its columns; see ``Method.features``."""
        scale = Scale.of(rows, [self.kernel])
        features = self.scaled(scale).make(seed).fit(scale.rows(rows))
        return ScaledFeatures(features, scale) if scale.exponent else features


def parts_of(recipe: Recipe, blocks: Blocks | None, n_columns: int) -> list[FeatureBlock]:
    """Return the blocks with their features, or one part of all columns if there are no blocks.

    A recipe has one kernel for all blocks, or a list with one for each. Raise ValueError if the blocks are invalid or
    the number of kernels is not the number of blocks.
    """
    n_bins = n_columns - recipe.n_covariates
    if blocks is None:
        bins = [FeatureBlock("all", np.arange(n_bins), recipe.features_of(recipe.exact_kernel))]
        return bins + _covariates(recipe, n_bins, bins)
    names, columns = check_blocks(blocks, n_bins)
    kernels = recipe.exact_kernels
    if not isinstance(recipe.kernel, list | tuple):
        kernels = kernels * len(columns)
    if len(kernels) != len(columns):
        raise InputError(
            Message("{kernel} must be one, or one for each of {} blocks; got {}.", len(columns), len(kernels))
        )
    bins = [
        FeatureBlock(name, block, recipe.features_of(kernel))
        for name, block, kernel in zip(names, columns, kernels, strict=True)
    ]
    return bins + _covariates(recipe, n_bins, bins)


def _covariates(recipe: Recipe, n_bins: int, bins: list[FeatureBlock]) -> list[FeatureBlock]:
    """Return the block of the columns behind the bins, if there are any."""
    if not recipe.n_covariates:
        return []
    keeps_rows = all(part.features.adds_up_blocks for part in bins)
    features = AutomaticFeatures("exact" if keeps_rows else "additive").of_kernel(Linear())
    columns = np.arange(n_bins, n_bins + recipe.n_covariates)
    return [FeatureBlock("covariates", columns, features, are_bins=False)]


def sizes_of(parts: list[FeatureBlock]) -> Footprint:
    """Return the sizes of all blocks together, as if one matrix had the memory of all their frequencies."""
    sizes = [part.footprint for part in parts]
    frequencies = sum(s.frequencies for s in sizes)
    mapped = max(s.mapped for s in sizes)
    if frequencies:
        mapped = -(-sum(s.mapped * s.frequencies for s in sizes) // frequencies)
    return Footprint(
        sum(s.features for s in sizes),
        mapped,
        frequencies,
        max(s.sample_rows for s in sizes),
        max(s.landmarks for s in sizes),
    )
