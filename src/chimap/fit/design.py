"""Which features a model has: of blocks of columns, how they are made, and how large they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from chimap import _arrays, _scaling
from chimap._types import Blocks, Parameters, Rows
from chimap._validation import check_blocks, check_histograms
from chimap.data import Source
from chimap.engines import Progress, Stopwatch
from chimap.features.base import FeatureSettings, FittedFeatures, Footprint
from chimap.features.blocks import BlockFeatures
from chimap.features.families import family_of, make_features, settings_of
from chimap.features.scaled import Scale, ScaledFeatures
from chimap.selection.tried import TRIED_ROWS


@dataclass(frozen=True)
class Part:
    """Columns of the rows, by name, and the settings of their features."""

    name: str
    columns: np.ndarray
    settings: FeatureSettings

    def scaled(self, scale: Scale) -> Part:
        """The same for rows so scaled."""
        if not scale.exponent:
            return self
        return replace(self, settings=replace(self.settings, kernel=scale.kernel(self.settings.exact)))

    @property
    def footprint(self) -> Footprint:
        """Of its features."""
        return family_of(self.settings).footprint(self.settings, self.columns.size)

    def fitting_bytes(self, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """What fitting its features takes beside the rows."""
        return family_of(self.settings).fitting_bytes(self.settings, n_rows, row_bytes, itemsize)

    def make(self, seed: int) -> FittedFeatures:
        """Unfitted features."""
        return make_features(self.settings, seed)


def parts_of(common: FeatureSettings, blocks: Blocks | None, n_columns: int) -> list[Part]:
    """The blocks with their settings, one kernel for all of them or one each; all columns where there are no blocks.

    Raises ValueError for blocks that will not do, and for a number of kernels that is not theirs.
    """
    if not isinstance(common.features, str):
        common = settings_of(common.features)
    if blocks is None:
        return [Part("all", np.arange(n_columns), common)]
    names, columns = check_blocks(blocks, n_columns)
    kernels = common.kernel if isinstance(common.kernel, list | tuple) else [common.kernel] * len(columns)
    if len(kernels) != len(columns):
        raise ValueError(f"kernel must be one, or one a block, {len(columns)} of them; got {len(kernels)}.")
    return [
        Part(name, own, replace(common, kernel=kernel))
        for name, own, kernel in zip(names, columns, kernels, strict=True)
    ]


def features_of(parts: list[Part], seed: int) -> BlockFeatures:
    """Unfitted features of blocks side by side; each draws its own random numbers."""
    features = [part.make(seed + j) for j, part in enumerate(parts)]
    return BlockFeatures(features, {part.name: part.columns for part in parts})


def sizes_of(parts: list[Part]) -> Footprint:
    """Of all blocks together: their frequencies take as much memory as a matrix of these numbers."""
    each = [part.footprint for part in parts]
    frequencies = sum(s.frequencies for s in each)
    mapped = max(s.mapped for s in each)
    if frequencies:
        mapped = -(-sum(s.mapped * s.frequencies for s in each) // frequencies)
    return Footprint(
        sum(s.features for s in each), mapped, frequencies,
        max(s.sample_rows for s in each), max(s.landmarks for s in each),
    )  # fmt: skip


@dataclass(frozen=True)
class PlainDesign:
    """Features of one kernel, or of a kernel for each block, fitted on a sample of rows.

    side_by_side: whether they are ``BlockFeatures`` in any case, as principal components ask.
    """

    settings: FeatureSettings
    blocks: Blocks | None = None
    side_by_side: bool = False

    def parts(self, n_columns: int) -> list[Part]:
        """See ``Design``."""
        return parts_of(self.settings, self.blocks, n_columns)

    def sized(self, n_columns: int) -> list[Part]:
        """See ``Design``."""
        return self.parts(n_columns)

    def fit(self, sample: Rows, seed: int) -> FittedFeatures:
        """See ``Design``; rows far from 1 are brought near it by a power of two."""
        return self.keeping(sample, seed, None)

    def keeping(self, sample: Rows, seed: int, sample_weight: np.ndarray | None) -> FittedFeatures:
        """The same for features that keep all rows, by their weights (n,) or None: other samples are drawn by these."""
        parts = self.parts(sample.shape[1])
        scale = Scale.of(sample, [part.settings.exact for part in parts])
        parts = [part.scaled(scale) for part in parts]
        alone = self.blocks is None and not self.side_by_side
        features: Any = parts[0].make(seed) if alone else features_of(parts, seed)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        features.fit(scale.rows(sample) if scale.exponent else sample, **weights)
        return ScaledFeatures(features, scale) if scale.exponent else features

    def learn(self, features: Any, *_: object) -> tuple[FittedFeatures, Parameters]:
        """They are as they are."""
        return features, {}


class Design(Protocol):
    """How features come about: from settings, a sample of rows and, of some, the labels of more rows."""

    def parts(self, n_columns: int) -> list[Part]:
        """The blocks of the columns, by which rows are checked and normalised."""
        ...

    def sized(self, n_columns: int) -> list[Part]:
        """The parts whose features are as large as those of the model."""
        ...

    def fit(self, sample: Rows, seed: int) -> Any:
        """Features fitted on prepared rows, or what ``learn`` adapts."""
        ...

    def learn(
        self,
        features: Any,
        recipe: Any,
        rows: Any,
        sample: Rows,
        clock: Stopwatch,
        progress: Progress,
    ) -> tuple[FittedFeatures, Parameters]:
        """The features, adapted to rows and targets (``PreparedRows``); and what else was learned, by attribute."""
        ...


_SAMPLE_ROWS, _SAMPLE_BYTES = 4096, 2**26
_PART_APART = 5  # one of so many rows: few enough to lose no landmarks worth having


def sample_rows(n_bins: int) -> int:
    """How many rows of so many bins maps, gamma and the provisional mean are fitted on."""
    return min(_SAMPLE_ROWS, max(256, _SAMPLE_BYTES // max(1, 4 * n_bins)))


def sample_size(source: Source, parts: list[Part]) -> int:
    """Rows of the source that the features of these parts are fitted on."""
    wanted = max(sample_rows(source.n_features), sizes_of(parts).sample_rows)
    return min(wanted, source.n_rows - rows_apart(source, parts))


def rows_apart(source: Source, parts: list[Part]) -> int:
    """How many rows have no part in the landmarks of these parts, if they have some. Where every row is a landmark,
    leaving one out is exact, and none need be apart."""
    has_others = 0 < sizes_of(parts).landmarks < source.n_rows
    return min(TRIED_ROWS, source.n_rows // _PART_APART) if has_others else 0


def check_rows(rows: Rows, parts: list[Part], name: str, first_row: int | np.ndarray) -> None:
    """Refuse entries that the kernels of their blocks do not take; see ``check_histograms``."""
    signed = [part.settings.exact.is_signed for part in parts]
    check_histograms(rows, name=name, signed=any(signed), first_row=first_row)
    if any(signed) and not all(signed):
        for part, is_signed in zip(parts, signed, strict=True):
            own = _arrays.take_columns(rows, part.columns)
            check_histograms(own, name=f"{name}, block {part.name!r}", signed=is_signed, first_row=first_row)


def normalised(rows: Rows, blocks: Sequence[np.ndarray]) -> Rows:
    """Rows whose blocks, by their columns, have the l1 norm 1 each; empty ones stay."""
    for columns in blocks:
        is_all = len(blocks) == 1 and columns.size == rows.shape[1]
        norms = _scaling.row_norms_l1(rows if is_all else _arrays.take_columns(rows, columns))
        factors = 1 / np.where(norms > 0, norms, 1)
        if is_all:
            return _scaling.scale_rows(rows, factors)
        rows = _scaling.scale_entries(rows, columns, factors)
    return rows
