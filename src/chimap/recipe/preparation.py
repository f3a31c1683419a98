"""How raw rows become the rows that features are computed from: in a fit, and in every prediction after it.

They are converted to the precision of the fit, checked, normalised and weighted. Numbers that the precision cannot hold
are an error here: as 0 or infinity, they would be used silently.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._types import Rows
from chimap._validation import DataError, check_histograms
from chimap.explain.effects import BinUnit
from chimap.features.weighted import BinWeights
from chimap.kernels import Exponential
from chimap.normalizations import Normalization
from chimap.recipe.parts import FeatureBlock

_REMEDY = Message("Scale the rows, or use {precision='float64'}.")
_DOMINANT_SHARE = 0.9  # of what all rows sum up to: then their mean distance is that to a single row
_FEWEST_ROWS = 10  # among fewer rows, one may well be the largest by far
_PIECE = 2**17  # entries whose powers are in memory at once


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
        self._check(rows, first_row, name)
        if self.normalize is not None:
            rows = self._normalized(self.normalize, rows, first_row, name)
        factors = self.factors
        return rows if factors is None else _arrays.scale_columns(rows, factors)

    def _check(self, rows: Rows, first_row: int | np.ndarray, name: str) -> None:
        """Raise DataError for entries that the kernel of their block does not accept; see ``check_histograms``."""
        signed = [part.kernel.is_signed for part in self.parts]
        check_histograms(rows, name=name, signed=any(signed), first_row=first_row, columns=self.columns)
        if any(signed) and not all(signed):
            for part, is_signed in zip(self.parts, signed, strict=True):
                block = _arrays.take_columns(rows, part.columns)
                names = None if self.columns is None else [self.columns[place] for place in part.columns]
                where = f"{name}, block {part.name!r}"
                check_histograms(block, name=where, signed=is_signed, first_row=first_row, columns=names)

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

    def warn_of_dominance(self, rows: Rows, places: np.ndarray, name: str) -> None:
        """Warn if one of the prepared rows (n, bins) that features are fitted on drowns all others.

        A kernel of degree d grows with the powers |x|^d of the bins: one that sums up bins of 1e10 and of 10 hardly
        tells the rows of 10 apart. The distances to a row with nine tenths of all powers decide the mean distance, the
        scatter, and with them gamma and the strengths that are tried.

        ``places`` (n,) are those of the rows in the source ``name``.
        """
        if rows.shape[0] < _FEWEST_ROWS:
            return
        for part in self.parts:
            kernel = part.kernel
            degree = kernel.kernel.degree if isinstance(kernel, Exponential) else kernel.degree
            if not degree:
                continue
            block = rows if part.columns.size == rows.shape[1] else _arrays.take_columns(rows, part.columns)
            sums = _sums_of_powers(block, degree)
            row = int(np.argmax(sums))
            share = float(sums[row] / sums.sum()) if sums[row] > 0 else 0.0
            if share < _DOMINANT_SHARE:
                continue
            values = np.abs(_arrays.to_dense(_arrays.take_rows(block, np.array([row])))[0])
            place = int(np.argmax(values))
            column = int(part.columns[place])
            warnings.warn(
                Message(
                    "{}, row {}, column {}: {:.3g} makes this row {:.4g} % of all that the kernel {!r} sums up over "
                    "{:,} rows, so that it hardly tells the others apart. Check the entry; {normalize='log1p'} or "
                    "{normalize='l1'} gives such rows less weight.",
                    name,
                    places[row],
                    column if self.columns is None else repr(self.columns[column]),
                    values[place],
                    100 * share,
                    part.kernel.name,
                    rows.shape[0],
                ),
                stacklevel=2,
            )

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


def rows_in(X: Rows, dtype: np.dtype, first_row: int | np.ndarray, name: str) -> Rows:
    """Return the rows as ``as_rows`` converts them to ``dtype``.

    Bins that become 0 beside others change no kernel value by more than rounding does. Raise DataError, naming the row,
    if a bin becomes infinite or all bins of a row become 0.
    """
    try:
        with np.errstate(over="raise", under="raise"):
            return _arrays.as_rows(X, dtype)
    except FloatingPointError:
        with np.errstate(over="ignore", under="ignore"):
            rows = _arrays.as_rows(X, dtype)
    before, after = _row_maxima(X), _row_maxima(rows)
    bad = np.flatnonzero((np.isfinite(before) & np.isinf(after)) | ((before > 0) & (after == 0)))
    if bad.size:
        row = bad[0] + first_row if isinstance(first_row, int) else first_row[bad[0]]
        limits = np.finfo(dtype)
        what = (
            f"all bins are too small for {dtype}, below {limits.smallest_subnormal:.2g}"
            if after[bad[0]] == 0
            else f"a bin is too large for {dtype}, above {limits.max:.2g}"
        )
        raise DataError(Message("{}, row {}: {}. {}", name, row, what, _REMEDY))
    return rows


def _row_maxima(X: Rows) -> np.ndarray:
    """Return the largest magnitude of each row, dense or CSR, (n,)."""
    if _arrays.is_sparse(X):
        return abs(X).max(axis=1).toarray().reshape(-1)  # for sparse arrays, max has one axis
    return np.abs(X).max(axis=1, initial=0)


def _sums_of_powers(rows: Rows, degree: float) -> np.ndarray:
    """Return the sum of (|x| / largest)^degree of each row, (n,)."""
    largest = float(_arrays.column_maxima(rows).max(initial=0.0)) or 1.0
    sums = np.empty(rows.shape[0])
    step = max(1, _PIECE // max(1, rows.shape[1]))
    for first in range(0, rows.shape[0], step):
        some = _arrays.as_rows(_arrays.take_rows(rows, slice(first, first + step)), np.float64)
        powers = _arrays.map_values(some, lambda values: np.abs(values / largest) ** degree)
        sums[first : first + step] = np.asarray(powers.sum(axis=1)).ravel()
    return sums
