"""Kernel values with all training rows, of a kernel that is a sum over blocks of columns."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import reduce
from operator import add

import numpy as np

from chimap import _arrays
from chimap._onnx import Value
from chimap._types import ArrayLike, Blocks, MatrixLike, Rows
from chimap._validation import check_blocks, validated_rows
from chimap.features.base import Features, LinearForm
from chimap.features.blocks import BlockFeatures, fitted_by_block, sum_over_blocks
from chimap.features.exact.features import ExactFeatures, weights_that_hold
from chimap.features.mapped_functions import MappedModel
from chimap.kernels import Kernel
from chimap.moments.kept_rows import KeptRows, OtherRows

_ROWS = 1024  # rows for which the values of one block are in memory besides the sum


class ExactBlocks(Features):
    """Features (K(x, x_1), .., K(x, x_n)) with all rows of the fit, for a sum of kernels, each on a block of columns.

        K(x, y) = sum_b K_b(x[columns_b], y[columns_b])

    Parameters
    ----------
    features : sequence of ExactFeatures
        Unfitted features, one for each block.
    blocks : sequence or mapping
        Columns of each block, as slices or lists; they may overlap and need not cover all columns. The keys of a
        mapping are the names of the blocks.

    Attributes
    ----------
    features_ : list of ExactFeatures
        Fitted features.
    columns_ : list of ndarray
        Columns of each block.
    names_ : list of str
        Names of the blocks.
    n_features_in_ : int
        Number of bins.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=20)
    >>> both = ExactBlocks([ExactFeatures("exp-chi2"), ExactFeatures("chi2")], [slice(0, 5), [5, 6, 7]]).fit(X)
    >>> both.transform(X).shape
    (20, 20)
    """

    _takes_signs = True
    has_distances = True

    n_features_in_: int
    features_: list[ExactFeatures]
    columns_: list[np.ndarray]
    names_: list[str]

    def __init__(self, features: Sequence[ExactFeatures], blocks: Blocks):
        self.features = features
        self.blocks = blocks

    def fit(self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> ExactBlocks:
        """Map the rows by block and keep them; see ``ExactFeatures.fit``."""
        rows = validated_rows(self, X, reset=True, signed=True)
        self.names_, self.columns_ = check_blocks(self.blocks, rows.shape[1])
        self.features_ = fitted_by_block(self.features, self.names_, self.columns_, rows, sample_weight=sample_weight)
        return self

    @property
    def kernel_(self) -> Kernel:
        """The kernel, its parameters set to numbers."""
        return sum_over_blocks(self.features_, self.columns_)

    @property
    def _n_features_out(self) -> int:
        return self.features_[0]._n_features_out

    def gamma_at(self, octaves: int) -> float | None:
        """Return 2^octaves times gamma of the first block that has one; None if none has. The others move with it."""
        gammas = [gamma for f in self.features_ if (gamma := f.gamma_at(octaves)) is not None]
        return gammas[0] if gammas else None

    def set_octaves(self, octaves: int) -> None:
        """Multiply the gammas of all blocks by 2^octaves."""
        for fitted in self.features_:
            fitted.set_octaves(octaves)

    # --- kernel values

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write the values minus ``shift`` of checked rows into ``out`` (m, n), of their dtype."""
        values = np.empty((min(_ROWS, out.shape[0]), out.shape[1]), out.dtype)
        for part in _arrays.slices(out.shape[0], _ROWS):
            some, total = _arrays.take_rows(rows, part), out[part]
            total[:] = 0 if shift is None else -shift
            for fitted, columns in zip(self.features_, self.columns_, strict=True):
                block = values[: total.shape[0]]
                fitted.features_into(_arrays.take_columns(some, columns), block)
                total += block

    def squared_distances(self, rows: Rows) -> np.ndarray:
        """Return the sum over blocks of their distances; see ``FittedFeatures``."""
        pairs = zip(self.features_, self.columns_, strict=True)
        return np.asarray(sum(f.squared_distances(_arrays.take_columns(rows, c)) for f, c in pairs))

    def squared_distances_at(self, places: np.ndarray) -> np.ndarray:
        """Return the sum over blocks of their distances; see ``ExactFeatures.squared_distances_at``."""
        return np.asarray(sum(fitted.squared_distances_at(places) for fitted in self.features_))

    def outputs(self, rows: Rows, weights: np.ndarray) -> np.ndarray:
        """Return the sum over blocks of their outputs; see ``ExactFeatures.outputs``."""
        pairs = zip(self.features_, self.columns_, strict=True)
        return np.sum([f.outputs(_arrays.take_columns(rows, c), weights) for f, c in pairs], axis=0)

    def add_outputs(self, places: slice, by: slice, weights: np.ndarray, out: np.ndarray) -> None:
        """Add the outputs of all blocks; see ``ExactFeatures.add_outputs``."""
        for fitted in self.features_:
            fitted.add_outputs(places, by, weights, out)

    def add_outputs_of(self, others: ExactBlocks, first: int, weights: np.ndarray, out: np.ndarray) -> None:
        """Add the outputs of all blocks; see ``ExactFeatures.add_outputs_of``."""
        for fitted, other in zip(self.features_, others.features_, strict=True):
            fitted.add_outputs_of(other, first, weights, out)

    def extend(self, rows: Rows) -> None:
        """Add checked rows (m, bins) to the training rows; maps and gammas stay."""
        for fitted, columns in zip(self.features_, self.columns_, strict=True):
            fitted.extend(_arrays.take_columns(rows, columns))

    def keeper(self, n_rows: int) -> BlockKeeper:
        """Return an object that replaces the training rows by ``n_rows`` others, which come in pieces."""
        return BlockKeeper(self, n_rows)

    def take(self, rows: np.ndarray | slice) -> ExactBlocks:
        """Return the same features with the training rows at the places ``rows`` alone."""
        subset = copy(self)
        subset.features_ = [fitted.take(rows) for fitted in self.features_]
        return subset

    @property
    def row_kernel(self) -> ExactBlocks:
        return self

    def centres(self, rows: np.ndarray, rounds: int) -> ExactBlocks:
        """Return the same features with the training rows at the places ``rows``: centres would be of one block."""
        return self.take(rows)

    def keep(self, rows: np.ndarray | slice) -> None:
        """Keep the training rows at the places ``rows`` alone."""
        for fitted in self.features_:
            fitted.keep(rows)

    def first_equal(self) -> np.ndarray:
        """Return the place of the first training row that equals each of them, (n,)."""
        by_block = np.column_stack([features.first_equal() for features in self.features_])
        return _arrays.first_equal([by_block])

    def diagonal(self) -> np.ndarray:
        """Return K(x_i, x_i) of the training rows, (n,)."""
        return np.sum([fitted.diagonal() for fitted in self.features_], axis=0)

    def gram_into(self, square: np.ndarray) -> np.ndarray:
        """Write K(x_i, x_j) of the training rows below the diagonal of ``square``; see ``ExactFeatures.gram_into``."""
        first, *others = self.features_
        diagonal = first.gram_into(square)
        for fitted in others:
            diagonal = diagonal + fitted.gram_into(square, add=True)
        return diagonal

    def change_octaves(self, square: np.ndarray, before: int, after: int) -> None:
        """Turn the values of ``gram_into`` with 2^before times the gammas into those with 2^after times.

        A sum of exponentials has no power that does so: the values are computed again.
        """
        if before != after:
            moved = copy(self)
            # The rows are shared, the gammas are not.
            moved.features_ = [copy(fitted) for fitted in self.features_]
            moved.set_octaves(after)
            moved.gram_into(square)

    @property
    def is_centred(self) -> bool:
        """Whether the values among the training rows are products less the means of the rows."""
        return all(fitted.is_centred for fitted in self.features_)

    @property
    def mapped_rows(self) -> None:
        """None: no one map gives the values."""
        return

    @property
    def summands(self) -> list[tuple[KeptRows, float | None]] | None:
        """The training rows as mapped, with gamma, for each block; None if a kernel has no map."""
        own = [fitted.summands for fitted in self.features_]
        return None if None in own else [pair for pairs in own if pairs is not None for pair in pairs]

    def others(self, rows: Rows) -> list[OtherRows]:
        """Return checked rows (m, bins) in the form of the mapped training rows of each block."""
        pairs = zip(self.features_, self.columns_, strict=True)
        return [own for f, c in pairs for own in f.others(_arrays.take_columns(rows, c))]

    # --- models of these features

    def side_by_side(self) -> BlockFeatures:
        """Return the values of each block, one after the other, (m, r n): weights of rows count for each block."""
        blocks = dict(zip(self.names_, self.columns_, strict=True))
        return BlockFeatures.of_fitted(self.features_, blocks, self.n_features_in_)

    def merged_into_weights(self, coef: np.ndarray, intercept: np.ndarray) -> LinearForm:
        """See ``FittedFeatures``: values are in float64 where float32 would move the outputs of the kept rows."""
        is_double = self.features_[0].merged_into_weights(coef, intercept).coef is coef
        return LinearForm(self, coef if is_double else weights_that_hold(self, coef), intercept)

    def simplified(self, coef: np.ndarray, intercept: np.ndarray) -> LinearForm:
        """Return a linear model of the values; for additive kernels as one of their maps, without the rows."""
        if not self.is_centred:
            return LinearForm(self, coef, intercept)
        parts = [fitted.simplified(coef, np.zeros_like(intercept)) for fitted in self.features_]
        blocks = dict(zip(self.names_, self.columns_, strict=True))
        maps = BlockFeatures.of_fitted([part.features for part in parts], blocks, self.n_features_in_)
        offset = np.sum([part.intercept for part in parts], axis=0)
        return LinearForm(maps, np.concatenate([part.coef for part in parts]), intercept + offset)

    def describe(self) -> str:
        """Return a short description, such as "values of the sum of 2 kernels with 342 rows"."""
        return f"values of the sum of {len(self.features_)} kernels with {self._n_features_out:,} rows"

    def onnx(self, x: Value) -> Value:
        pairs = zip(self.features_, self.columns_, strict=True)
        return reduce(add, (fitted.onnx(x.take(columns, 1)) for fitted, columns in pairs))

    def mapped_model(self, coef: np.ndarray, intercept: np.ndarray) -> MappedModel | None:
        return self.side_by_side().mapped_model(np.tile(coef, (len(self.features_), 1)), intercept)


class BlockKeeper:
    """Replaces the training rows of each block by rows that come in pieces; see ``FeatureKeeper``."""

    def __init__(self, features: ExactBlocks, n_rows: int):
        self._columns = features.columns_
        self._keepers = [fitted.keeper(n_rows) for fitted in features.features_]

    def put(self, places: np.ndarray, rows: Rows) -> None:
        """Keep checked rows (m, bins) at these places (m,)."""
        for keeper, columns in zip(self._keepers, self._columns, strict=True):
            keeper.put(places, _arrays.take_columns(rows, columns))

    def close(self) -> None:
        """Give the rows to the features, once all are there."""
        for keeper in self._keepers:
            keeper.close()
