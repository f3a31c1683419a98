"""Designs of features: blocks of columns, how their features are made, and how large they are.

``PlainDesign`` has a given kernel for each block, and learns nothing from the targets. ``fit.designing`` says what any
design does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import Blocks, Parameters, Rows
from chimap._validation import check_blocks, check_histograms
from chimap.data import Source
from chimap.features.base import FeatureSettings, FittedFeatures, Footprint
from chimap.features.blocks import BlockFeatures
from chimap.features.exact import ExactBlocks
from chimap.features.families import family_of, joined_by, make_features, settings_of
from chimap.features.scaled import Scale, ScaledFeatures
from chimap.selection.tried import TRIED_ROWS


@dataclass(frozen=True)
class FeatureBlock:
    """A block of columns and the settings of its features.

    Parameters
    ----------
    name : str
        Name of the block.
    columns : array of int
        Its columns.
    settings : FeatureSettings
        Kernel and features.
    """

    name: str
    columns: np.ndarray
    settings: FeatureSettings

    def scaled(self, scale: Scale) -> FeatureBlock:
        """Return the part for rows that are multiplied by the scale."""
        if not scale.exponent:
            return self
        return replace(self, settings=replace(self.settings, kernel=scale.kernel(self.settings.exact)))

    @property
    def footprint(self) -> Footprint:
        """Sizes of its features."""
        return family_of(self.settings).footprint(self.settings, self.columns.size)

    def fitting_bytes(self, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """Return the bytes that fitting its features takes beside the rows."""
        return family_of(self.settings).fitting_bytes(self.settings, n_rows, row_bytes, itemsize)

    def make(self, seed: int) -> FittedFeatures:
        """Return unfitted features."""
        return make_features(self.settings, seed)


def parts_of(common: FeatureSettings, blocks: Blocks | None, n_columns: int) -> list[FeatureBlock]:
    """Return the blocks with their settings, or one part of all columns if there are no blocks.

    The settings have one kernel for all blocks, or a list with one for each. Raise ValueError if the blocks are invalid
    or the number of kernels is not the number of blocks.
    """
    if not isinstance(common.features, str):
        common = settings_of(common.features)
    if blocks is None:
        return [FeatureBlock("all", np.arange(n_columns), common)]
    names, columns = check_blocks(blocks, n_columns)
    kernels = common.kernel if isinstance(common.kernel, list | tuple) else [common.kernel] * len(columns)
    if len(kernels) != len(columns):
        raise InputError(
            Message("{kernel} must be one, or one for each of {} blocks; got {}.", len(columns), len(kernels))
        )
    return [
        FeatureBlock(name, block, replace(common, kernel=kernel))
        for name, block, kernel in zip(names, columns, kernels, strict=True)
    ]


def features_of(parts: list[FeatureBlock], seed: int) -> BlockFeatures | ExactBlocks:
    """Return unfitted features of the blocks, joined as their family does; each draws its own random numbers."""
    features: Any = [part.make(seed + j) for j, part in enumerate(parts)]
    joined = joined_by(family_of(part.settings) for part in parts)
    return joined(features, {part.name: part.columns for part in parts})


def sizes_of(parts: list[FeatureBlock]) -> Footprint:
    """Return the sizes of all blocks together, as if one matrix had the memory of all their frequencies."""
    sizes = [part.footprint for part in parts]
    frequencies = sum(s.frequencies for s in sizes)
    mapped = max(s.mapped for s in sizes)
    if frequencies:
        mapped = -(-sum(s.mapped * s.frequencies for s in sizes) // frequencies)
    return Footprint(
        sum(s.features for s in sizes), mapped, frequencies,
        max(s.sample_rows for s in sizes), max(s.landmarks for s in sizes), any(s.is_random for s in sizes),
    )  # fmt: skip


@dataclass(frozen=True)
class PlainDesign:
    """Features of one kernel, or of a kernel for each block, fitted on a sample of rows.

    Parameters
    ----------
    settings : FeatureSettings
        Kernel and features.
    blocks : mapping of names to columns, or None, default=None
        The blocks.
    side_by_side : bool, default=False
        Whether to make ``BlockFeatures`` even without blocks, as principal components need.
    """

    settings: FeatureSettings
    blocks: Blocks | None = None
    side_by_side: bool = False

    def parts(self, n_columns: int) -> list[FeatureBlock]:
        """See ``designing.Design``."""
        return parts_of(self.settings, self.blocks, n_columns)

    def sized(self, n_columns: int) -> list[FeatureBlock]:
        """See ``designing.Design``."""
        return self.parts(n_columns)

    def fit(self, sample: Rows, seed: int, sample_weight: np.ndarray | None = None) -> FittedFeatures:
        """Fit features on prepared rows; rows far from 1 are first scaled towards it by a power of two.

        ``sample_weight`` are the weights (n,) of rows that features keep; other samples are drawn by weight.
        """
        parts = self.parts(sample.shape[1])
        scale = Scale.of(sample, [part.settings.exact for part in parts])
        parts = [part.scaled(scale) for part in parts]
        alone = self.blocks is None and not self.side_by_side
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
    return min(TRIED_ROWS, source.n_rows // PART_APART) if has_others else 0


def check_rows(
    rows: Rows,
    parts: list[FeatureBlock],
    name: str,
    first_row: int | np.ndarray,
    columns: tuple[str, ...] | None = None,
) -> None:
    """Raise DataError for entries that the kernel of their block does not accept; see ``check_histograms``."""
    signed = [part.settings.exact.is_signed for part in parts]
    check_histograms(rows, name=name, signed=any(signed), first_row=first_row, columns=columns)
    if any(signed) and not all(signed):
        for part, is_signed in zip(parts, signed, strict=True):
            block = _arrays.take_columns(rows, part.columns)
            names = None if columns is None else [columns[place] for place in part.columns]
            where = f"{name}, block {part.name!r}"
            check_histograms(block, name=where, signed=is_signed, first_row=first_row, columns=names)
