"""Several descriptors side by side: features of blocks of columns."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays
from chimap._errors import InputError
from chimap._messages import Message
from chimap._onnx import Value
from chimap._types import CSR, Array, ArrayLike, ArrayMap, Blocks, MatrixLike, Rows, Shape, Transformed
from chimap._validation import DataError, check_blocks, validated
from chimap.backends.base import RowFeatures
from chimap.features.base import Features, FittedFeatures, LinearForm
from chimap.features.mapped_functions import MappedModel, SumOfBlocks
from chimap.kernels import Kernel, OnColumns, Sum
from chimap.model_files import Transformer, register


class BlockFeatures(FittedFeatures, Transformer, BaseEstimator):
    """Features of each block of columns, one after the other.

        z(x) = [z_1(x[columns_1]), .., z_r(x[columns_r])]

    z(x) . z(y) is the sum of the kernels of the blocks.

    Parameters
    ----------
    features : sequence of transformers
        Unfitted features, one for each block: additive maps, ``FourierFeatures``, ``NystroemFeatures``.
    blocks : sequence or mapping
        Columns of each block, as slices or lists; they may overlap and need not cover all columns. The keys of a
        mapping are the names of the blocks.

    Attributes
    ----------
    features_ : list
        Fitted features.
    columns_ : list of ndarray
        Columns of each block.
    names_ : list of str
        Names of the blocks.
    kernel_ : Kernel
        The exact kernel.
    borders_ : ndarray of shape (r + 1,)
        Where the features of each block begin.

    Examples
    --------
    >>> import numpy as np
    >>> from chimap import OptimalMap
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=20)
    >>> both = BlockFeatures([OptimalMap(n_terms=3), OptimalMap("hellinger", 1)], [slice(0, 5), [5, 6, 7]]).fit(X)
    >>> both.transform(X).shape
    (20, 18)
    """

    n_features_in_: int
    features_: list[Annotated[Any, RowFeatures]]
    columns_: list[np.ndarray]
    names_: list[str]
    borders_: Annotated[np.ndarray, Shape("ends")]

    def __init__(self, features: Sequence[Features | RowFeatures], blocks: Blocks):
        self.features = features
        self.blocks = blocks

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> BlockFeatures:
        """Fit each block's features on its columns of rows X (n, bins); y is not used."""
        X = validated(self, X)
        rows = _arrays.as_rows(X)
        self.names_, self.columns_ = check_blocks(self.blocks, rows.shape[1])
        self.features_ = fitted_by_block(self.features, self.names_, self.columns_, rows)
        self.borders_ = np.cumsum([0, *(unfitted._n_features_out for unfitted in self.features_)])
        return self

    @classmethod
    def of_fitted(
        cls, features: Sequence[RowFeatures], blocks: Mapping[str, np.ndarray], n_columns: int
    ) -> BlockFeatures:
        """Return fitted features of blocks, side by side, for rows with n_columns columns."""
        made = cls(features, dict(blocks))
        made.n_features_in_ = n_columns
        made.names_, made.columns_ = check_blocks(made.blocks, n_columns)
        made.features_ = list(features)
        made.borders_ = np.cumsum([0, *(fitted._n_features_out for fitted in features)])
        return made

    @property
    def kernel_(self) -> Kernel:
        """The exact kernel: the sum of the kernels of the blocks."""
        if self._is_whole:
            return self.features_[0].kernel_
        return sum_over_blocks(self.features_, self.columns_)

    @property
    def _is_whole(self) -> bool:
        """Whether a single block holds all columns in order."""
        every = np.arange(self.n_features_in_)
        return len(self.columns_) == 1 and np.array_equal(self.columns_[0], every)

    @property
    def _n_features_out(self) -> int:
        return int(self.borders_[-1])

    @property
    def keeps_zeros(self) -> bool:
        """Whether the features of all blocks keep zeros."""
        return all(fitted.keeps_zeros for fitted in self.features_)

    def transform(self, X: MatrixLike) -> Transformed:
        """Return features (n, n_features_out) of rows X (n, bins): CSR of sparse rows where all blocks keep zeros."""
        check_is_fitted(self)
        rows = _arrays.as_rows(validated(self, X, reset=False))
        parts = zip(self.features_, self.columns_, strict=True)
        transformed = [own.transform(_arrays.take_columns(rows, columns)) for own, columns in parts]
        if not self.keeps_zeros:
            transformed = [_arrays.to_dense(own) for own in transformed]
        return _arrays.stack_columns(transformed)

    def transform_sparse(self, rows: CSR) -> CSR:
        """Return CSR features of checked CSR rows of all columns, where all blocks keep zeros."""
        parts = zip(self.features_, self.columns_, strict=True)
        own = [fitted.transform_sparse(_arrays.take_columns(rows, columns)) for fitted, columns in parts]
        return _arrays.to_sparse(_arrays.stack_columns(own))

    def describe(self) -> str:
        """Return a description of the fitted features, such as "sift: 512 random features, ...; hog: ..."."""
        if len(self.features_) == 1:
            return self.features_[0].describe()
        pairs = zip(self.names_, self.features_, strict=True)
        return "; ".join(f"{name}: {fitted.describe()}" for name, fitted in pairs)

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write features minus ``shift`` of checked rows into ``out`` (n, n_features_out), of their dtype."""
        for j in range(len(self.features_)):
            columns = slice(self.borders_[j], self.borders_[j + 1])
            out[:, columns] = self.block_features(j, rows)
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)

    def merged_into_weights(self, coef: np.ndarray, intercept: np.ndarray) -> LinearForm:
        """Return a linear model of the features in its cheapest form, block by block."""
        parts = [
            fitted.merged_into_weights(coef[first:last], np.zeros(coef.shape[1]))
            for fitted, (first, last) in zip(self.features_, itertools.pairwise(self.borders_), strict=True)
        ]
        columns = dict(zip(self.names_, self.columns_, strict=True))
        blocks = BlockFeatures.of_fitted([part.features for part in parts], columns, self.n_features_in_)
        constant = intercept + sum(part.intercept for part in parts)
        return LinearForm(blocks, np.concatenate([part.coef for part in parts]), constant)

    def on_device(self, like: Array) -> ArrayMap | None:
        """Return the map from checked dense rows to features for arrays such as ``like``; None if a block has none."""
        maps = [own.on_device(like) for own in self.features_]
        if any(own is None for own in maps):
            return None
        xp = _arrays.namespace(like)
        if self._is_whole:
            return maps[0]
        columns = [xp.asarray(own, device=like.device) for own in self.columns_]

        def features(rows: Array) -> Array:
            parts = zip(maps, columns, strict=True)
            return xp.concat([own(xp.take(rows, chosen, axis=1)) for own, chosen in parts], axis=1)

        return features

    @property
    def n_inputs(self) -> int:
        """Length of the widest row that a block's features are computed from."""
        return max(fitted.n_inputs for fitted in self.features_)

    def block_features(self, j: int, rows: Rows) -> np.ndarray:
        """Return the features of block j (n, features of the block) for checked rows of all columns, in their dtype."""
        Z = np.empty((rows.shape[0], self.borders_[j + 1] - self.borders_[j]), dtype=rows.dtype)
        self.features_[j].features_into(_arrays.take_columns(rows, self.columns_[j]), Z)
        return Z

    def onnx(self, x: Value) -> Value:
        pairs = zip(self.features_, self.columns_, strict=True)
        return x.graph.concatenated([fitted.onnx(x.take(columns, 1)) for fitted, columns in pairs], 1)

    def mapped_model(self, coef: np.ndarray, intercept: np.ndarray) -> MappedModel | None:
        """See ``FittedFeatures``; None if a block has none."""
        zero, models = np.zeros_like(intercept), []
        for fitted, (first, last) in zip(self.features_, itertools.pairwise(self.borders_), strict=True):
            model = fitted.mapped_model(coef[first:last], zero)
            if model is None:
                return None
            models.append(model)
        bins = np.concatenate([columns[m.bins] for m, columns in zip(models, self.columns_, strict=True)])

        def rows(X: Rows) -> np.ndarray:
            parts = zip(models, self.columns_, strict=True)
            return np.hstack([m.rows(_arrays.take_columns(X, columns)) for m, columns in parts])

        borders = np.cumsum([0, *(m.bins.size for m in models)])
        return MappedModel(rows, bins, SumOfBlocks([m.function for m in models], borders, intercept))


def fitted_by_block(
    features: Sequence[Any], names: Sequence[str], columns: Sequence[np.ndarray], rows: Rows, **more: Any
) -> list[Any]:
    """Return clones of features, each fitted on the columns of its block with further arguments ``more``.

    Raises ValueError for another number of features than of blocks. Errors of a fit name the block.
    """
    if len(features) != len(columns):
        raise InputError(
            Message("{features} must have one entry for each of the {} blocks; got {}.", len(columns), len(features))
        )
    fitted = []
    for unfitted, name, chosen in zip(features, names, columns, strict=True):
        try:
            fitted.append(clone(unfitted).fit(_arrays.take_columns(rows, chosen), **more))
        except DataError as error:
            raise DataError(Message("block {!r}: {}", name, error)) from error
    return fitted


def sum_over_blocks(features: Sequence[Any], columns: Sequence[np.ndarray]) -> Kernel:
    """Return the sum of the kernels of fitted features, each on the columns of its block."""
    pairs = zip(features, columns, strict=True)
    return Sum(tuple(OnColumns(fitted.kernel_, chosen) for fitted, chosen in pairs))


register(BlockFeatures)
