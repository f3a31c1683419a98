"""Passes of a fit: empty moments about a provisional mean, and the work of a pass on this machine or a device."""

from __future__ import annotations

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap.backends import backend_of
from chimap.backends.base import BlockedFeatures, Keep, RowFeatures, Sums
from chimap.engines import Stopwatch
from chimap.engines.local import Pass, no_targets
from chimap.engines.memory import FIRST_ROWS
from chimap.features.principal import BlockMoments
from chimap.features.rounded import RoundedFeatures
from chimap.fit.recipe import Recipe
from chimap.fit.rows import PreparedRows, features_by_pieces
from chimap.moments import DealtFolds, FoldMoments, provisional_mean
from chimap.solvers.held_out import Witnesses


def first_mean(features: RowFeatures, rows: Rows, dtype: np.dtype) -> np.ndarray:
    """The provisional mean (D,) of the features of the first of some prepared rows."""
    first = _arrays.take_rows(rows, slice(FIRST_ROWS))
    Z = np.empty((first.shape[0], features._n_features_out), dtype=dtype)
    features.features_into(first, Z)
    return provisional_mean(Z)


def empty_moments(
    features: RowFeatures,
    rows: Rows,
    n_folds: int,
    target_shift: np.ndarray,
    dtype: np.dtype,
    is_rounded: bool = False,
) -> FoldMoments:
    """Moments of no rows about the provisional mean of these."""
    shift = first_mean(features, rows, dtype)
    return FoldMoments(n_folds, shift.size, target_shift.size, shift, target_shift, dtype, is_rounded)


def learning_pass(
    recipe: Recipe,
    rows: PreparedRows,
    features: RowFeatures,
    moments: FoldMoments,
    clock: Stopwatch,
    keep: Keep | None = None,
) -> Pass[Sums]:
    """The pass that adds up the features of the rows, fold by fold."""
    features = rounded(recipe, features, moments.shift)
    sums = backend_of(recipe.device).sums(features, moments, keep)
    return Pass(rows.prepare, rows.codec.encode, sums, rows.folds, clock, rows.weights)


def component_pass(
    recipe: Recipe, rows: PreparedRows, features: BlockedFeatures, moments: BlockMoments, clock: Stopwatch
) -> Pass[Sums]:
    """The pass that adds up the features of each block of rows of a source, without targets."""
    sums = backend_of(recipe.device).block_sums(features, moments, recipe.dtype)
    return Pass(rows.prepare, no_targets, sums, DealtFolds(1, rows.seed), clock, rows.weights)


def rounded(recipe: Recipe, features: RowFeatures, shift: np.ndarray) -> RowFeatures:
    """The features as they are added up."""
    return RoundedFeatures(features, shift) if recipe.is_rounded else features


def witnesses_of(
    recipe: Recipe,
    rows: PreparedRows,
    features: RowFeatures,
    moments: FoldMoments,
    places: np.ndarray,
    seen: Rows,
    needs_folds: bool,
) -> Witnesses:
    """Features and targets of the prepared rows ``seen`` at these places of the source, less the shifts of moments."""
    Z = np.empty((places.size, moments.shift.size), dtype=recipe.dtype)
    features_by_pieces(rounded(recipe, features, moments.shift), seen, Z, moments.shift)
    folds = np.zeros(places.size, dtype=np.intp)
    if needs_folds and rows.n_folds > 1:
        folds = rows.folds(0, rows.source.n_rows)[places]
    Y = np.asarray(rows.codec.encode(rows.labels[places]), dtype=np.float64)
    weights = rows.source.weights
    return Witnesses(places, Z, Y, folds, None if weights is None else weights[places])
