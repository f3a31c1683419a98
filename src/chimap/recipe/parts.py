"""Blocks of columns, each with the settings of its features: what a recipe asks for, for rows of some columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import Blocks, Rows
from chimap._validation import check_blocks, check_histograms
from chimap.features.base import FeatureSettings, FittedFeatures, Footprint
from chimap.features.families import family_of, make_features, settings_of
from chimap.features.scaled import Scale, ScaledFeatures


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

    def fitted(self, rows: Rows, seed: int) -> FittedFeatures:
        """Return its features, fitted on prepared rows of its columns; see ``PlainDesign.fit``."""
        scale = Scale.of(rows, [self.settings.exact])
        features: Any = self.scaled(scale).make(seed)
        features.fit(scale.rows(rows))
        return ScaledFeatures(features, scale) if scale.exponent else features


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
