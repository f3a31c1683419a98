"""How raw rows become the rows that features are computed from: in a fit, and in every prediction after it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._types import Rows
from chimap._validation import check_histograms
from chimap.explain.effects import BinUnit
from chimap.features.weighted import BinWeights
from chimap.normalizations import Normalization
from chimap.recipe.parts import FeatureBlock, check_rows
from chimap.recipe.precision import rows_in


@dataclass(frozen=True)
class Preparation:
    """Turn raw rows into what features take: checked, in one precision, normalised, with weighted bins if asked.

    Parameters
    ----------
    parts : list of FeatureBlock
        The blocks of columns and their kernels, which decide which entries are allowed.
    dtype : dtype
        Precision of the prepared rows.
    normalize : Normalization or None
        The fitted normalisation, or None.
    bin_weights : array of shape (bins,) or None, default=None
        Weights of the bins.
    columns : tuple of str or None, default=None
        Names of the columns, for errors.
    """

    parts: list[FeatureBlock]
    dtype: np.dtype
    normalize: Normalization | None
    bin_weights: np.ndarray | None = None
    columns: tuple[str, ...] | None = None

    @property
    def changes_rows(self) -> bool:
        """Whether the numbers of rows change."""
        return self.normalize is not None or self.bin_weights is not None

    def __call__(self, X: Rows, first_row: int | np.ndarray, name: str) -> Rows:
        """Prepare rows of the source ``name``; ``first_row``, or an array of row numbers, locates errors."""
        return self.of(X, first_row, name)

    def of(self, X: Rows, first_row: int | np.ndarray, name: str) -> Rows:
        """Prepare rows as a call does. The argument is freed once converted, if nothing else refers to it."""
        rows = rows_in(X, self.dtype, first_row, name)
        del X  # frees the original where the rows were converted
        check_rows(rows, self.parts, name, first_row, self.columns)
        if self.normalize is not None:
            rows = self._normalized(self.normalize, rows, first_row, name)
        factors = self.factors
        return rows if factors is None else _arrays.scale_columns(rows, factors)

    def _normalized(self, normalize: Normalization, rows: Rows, first_row: int | np.ndarray, name: str) -> Rows:
        """Return checked rows with normalised bins; covariates behind them stay."""
        places, behind = np.arange(rows.shape[1]), self.n_covariates
        bins = _arrays.take_columns(rows, places[: places.size - behind]) if behind else rows
        if not normalize.takes_signs:
            remedy = Message(
                "{normalize=} takes amounts, which are not below 0: leave it out, or shift or clip the data.",
                normalize.name,
            )
            check_histograms(bins, name=name, first_row=first_row, columns=self.columns, remedy=remedy)
        bins = normalize(bins, [part.columns for part in self.parts if part.are_bins])
        if not behind:
            return bins
        return _arrays.stack_columns([bins, _arrays.take_columns(rows, places[places.size - behind :])])

    @property
    def n_covariates(self) -> int:
        """Number of columns behind the bins."""
        return sum(part.columns.size for part in self.parts if not part.are_bins)

    @cached_property
    def factors(self) -> np.ndarray | None:
        """Factors of the columns, (bins,), applied last: a kernel of products of these columns weights its bins."""
        if self.bin_weights is None:
            return None
        factors = np.ones(self.bin_weights.size + self.n_covariates)
        for part in (part for part in self.parts if part.are_bins):
            block_weights = BinWeights(self.bin_weights[part.columns])
            factors[part.columns] = block_weights.factors(part.kernel)
        return factors

    def unit_of_bin(self, place: int) -> BinUnit:
        """Return how values of a bin are prepared.

        A normalisation that looks at whole rows leaves them as it makes them: shares of the row under "l1".
        """
        factor = 1.0 if self.factors is None else float(self.factors[place]) or 1.0
        normalize = self.normalize
        covariates = [part.columns for part in self.parts if not part.are_bins]
        if normalize is None or any(place in columns for columns in covariates):
            return BinUnit(lambda values: factor * values, lambda prepared: prepared / factor)
        return BinUnit(
            lambda values: factor * normalize.redone(values), lambda prepared: normalize.undone(prepared / factor)
        )
