"""Kernel values with all training rows, for exact kernel machines."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from sklearn.utils import check_random_state

from chimap import _arrays, _threads
from chimap._messages import Message
from chimap._onnx import Value
from chimap._types import ArrayLike, MatrixLike, RandomState, Rows
from chimap._validation import DataError, validated_rows
from chimap.features.additive.base import AdditiveMap
from chimap.features.additive.identity import IdentityMap
from chimap.features.base import Footprint, LinearForm, are_near
from chimap.features.exact.row_kernel import RowKernel
from chimap.features.mapped_functions import GaussianExpansion, LinearFunction, MappedFunction, MappedModel, dense
from chimap.features.over_map import FeaturesOverMap, fitted_map
from chimap.kernels import Exponential, Kernel
from chimap.moments import rows_by_weight
from chimap.moments.kept_rows import KeptRows, OtherRows, Spread

_TILE = 512


def raise_below(square: np.ndarray, octaves: int) -> None:
    """Raise the entries below the diagonal to the power 2^octaves, in place."""
    n, step = square.shape[0], np.square if octaves > 0 else np.sqrt

    def part(first: int) -> None:
        rows = slice(first, min(first + _TILE, n))
        for start in range(0, rows.start, _TILE):
            tile = square[rows, start : start + _TILE]
            for _ in range(abs(octaves)):
                step(tile, out=tile)
        corner = np.tril(square[rows, rows], -1)
        for _ in range(abs(octaves)):
            step(corner, out=corner)
        square[rows, rows] = corner

    if octaves:
        _threads.tasks(range(0, n, _TILE), part)


_ROWS = 1024  # rows whose values are computed at once where a kernel has no map, by as many kept ones
_ROWS_MEASURED = 64  # kept rows whose outputs show whether float32 holds a model
MOST_ROWS = 12_000  # rows whose kernel matrix a usual machine holds, and factorises in seconds
_ROUNDED_MEAN = 30  # rounding error of a mean of rows, in float64 eps
_CLEAR = 3  # a mean distance above this multiple of the rounding of mapped rows comes from the data


class ExactFeatures(FeaturesOverMap):
    """Features (K(x, x_1), .., K(x, x_n)): values of the kernel with all rows that it is fitted on.

    For an exponential kernel over an additive one the values are exp(-gamma |Psi(x) - Psi(x_j)|^2), from one matrix
    product of mapped rows; for an additive kernel they are Psi(x)'Psi(x_j) (its mean over the rows apart); for other
    kernels they are evaluated directly. The map is part of the kernel's definition: the values are positive definite
    whatever the error of the map.

    Parameters
    ----------
    kernel : str or Kernel, default="exp-chi2"
        A name ("exp-chi2", "chi2", "gaussian", "jensen_shannon+pq", ...) or a kernel object.
    gamma : float or str, default="mean"
        gamma of the exponential kernels: a number, or "mean", 1 / mean of |Psi(x) - Psi(y)|^2.
    map : AdditiveMap or None, default=None
        An additive map, unfitted; None is ``OptimalMap(n_terms=n_terms)``.
    n_terms : int, default=2
        Features for each bin of that default map.
    random_state : int, RandomState or None, default=None
        Seed or generator for the rows behind the mean distance, where there is no map. None differs at each fit.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, its parameters set to numbers.
    map_ : AdditiveMap or None
        The fitted map; None for kernels without one.
    rows_ : KeptRows or rows
        The training rows, mapped (``KeptRows``) or as they are.
    n_features_in_ : int
        Number of bins.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=50)
    >>> features = ExactFeatures("exp-chi2", n_terms=6).fit(X)
    >>> bool(abs(features.transform(X) - features.kernel_(X)).max() < 1e-2)
    True
    """

    family = "exact"
    adds_up_blocks = True
    has_distances = True

    n_features_in_: int
    kernel_: Kernel
    map_: AdditiveMap | IdentityMap | None
    _n_features_out: int
    rows_: Annotated[Any, KeptRows | Rows]  # KeptRows where there is a map, else the rows themselves

    def __init__(
        self,
        kernel: str | Kernel = "exp-chi2",
        *,
        gamma: float | str = "mean",
        map: AdditiveMap | None = None,
        n_terms: int = 2,
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.map = map
        self.n_terms = n_terms
        self.random_state = random_state

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Features``: every kernel."""
        return True

    def footprint(self, n_bins: int) -> Footprint:
        """Return the sizes for ``MOST_ROWS`` rows; a fit plans with its actual number of rows."""
        return Footprint(MOST_ROWS, self.mapped_bins(n_bins))

    def fitting_bytes(self, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """Return the bytes of the mapped rows."""
        return int(self.n_terms * n_rows * row_bytes)

    def fit(self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> ExactFeatures:
        """Map the rows and keep them; see ``Features.fit``.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            Training rows.
        y : None, default=None
            Not used; accepted for pipelines of scikit-learn.
        sample_weight : array-like of shape (n,), default=None
            Weights by which rows are drawn for fitting the map and gamma; None uses all rows.
        """
        kernel = self.exact_kernel
        rows = validated_rows(self, X, reset=True, signed=kernel.is_signed)
        n = self._n_features_out = rows.shape[0]
        drawn = None if sample_weight is None else rows_by_weight(np.asarray(sample_weight), n, 0)
        sample = rows if drawn is None else _arrays.take_rows(rows, drawn)
        if kernel.inner is None:
            self.map_, self.rows_ = None, rows
            self.kernel_ = kernel.fitted(sample, check_random_state(self.random_state).randint(2**31))
            return self
        self.map_ = fitted_map(kernel, sample, self.n_terms, self.map)
        self.rows_ = KeptRows(self.map_.mapped(rows))
        self.kernel_ = kernel
        if isinstance(kernel, Exponential):
            kept = self.rows_ if drawn is None else KeptRows(self.map_.mapped(sample))
            self.kernel_ = with_mean_gamma(kernel, kept, kept.spread())
        return self

    def gamma_at(self, octaves: int) -> float | None:
        """Return 2^octaves times gamma; None if the kernel has none."""
        gamma = self.kernel_.gamma if isinstance(self.kernel_, Exponential) else None
        return None if gamma is None else float(gamma) * 2.0**octaves

    def set_octaves(self, octaves: int) -> None:
        """Multiply gamma, if the kernel has one, by 2^octaves; the rows stay the same."""
        gamma = self.gamma_at(octaves)
        if gamma is not None:
            self.kernel_ = replace(self.kernel_, gamma=gamma)  # type: ignore[type-var]

    # --- kernel values

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write the values minus ``shift`` of checked rows into ``out`` (m, n), of their dtype."""
        if self.map_ is None:
            kept = _arrays.as_rows(self.rows_, out.dtype)
            _threads.over_rows(
                rows.shape[0],
                kept.shape[0],
                lambda part: out.__setitem__(part, self.kernel_(_arrays.view_rows(rows, part), kept)),
            )
        else:
            self.rows_.values_into(self.map_.mapped(rows), self._gamma, out)
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)

    def outputs(self, rows: Rows, weights: np.ndarray) -> np.ndarray:
        """Return sum_j K(x, x_j) weights_j (m, t), float64, for checked rows x (m, bins) and weights (n, t).

        Values are made, used and forgotten tile by tile, so that memory does not grow with the training rows. They are
        in the dtype of the weights, which ``fold`` chooses.
        """
        out = np.zeros((rows.shape[0], weights.shape[1]))
        if self.map_ is None:
            self._add_outputs_of(rows, weights, out, slice(0, self._n_features_out))
        else:
            others = self.rows_.others(self.map_.mapped(rows))
            self.rows_.add_outputs(others, self._gamma, weights, out)
        return out

    def add_outputs(self, places: slice, by: slice, weights: np.ndarray, out: np.ndarray) -> None:
        """Add the outputs of the training rows at ``places``, by those at ``by``, to ``out``, float64.

        ``weights`` are (rows of ``by``, t). For additive kernels the means are subtracted, as in ``gram_into``.
        """
        if self.map_ is None:
            self._add_outputs_of(_arrays.take_rows(self.rows_, places), weights, out, by)
        else:
            self.rows_.add_outputs(self.rows_.at(places), self._gamma, weights, out, by)

    def add_outputs_of(self, others: ExactFeatures, first: int, weights: np.ndarray, out: np.ndarray) -> None:
        """Add the outputs of training rows of the same features with others, by these; see ``RowKernel``."""
        places = slice(first, None)
        if self.map_ is None:
            rows = _arrays.take_rows(others.rows_, places)
            self._add_outputs_of(rows, weights, out, slice(0, self._n_features_out))
        else:
            self.rows_.add_outputs(others.rows_.at(places), self._gamma, weights, out)

    def _add_outputs_of(self, rows: Rows, weights: np.ndarray, out: np.ndarray, by: slice) -> None:
        """Add sum_j K(x, x_j) weights_j for rows x (m, bins) and j at ``by``, where the kernel has no map."""

        def part(block: slice) -> None:
            some = _arrays.as_rows(_arrays.take_rows(rows, block), weights.dtype)
            for first in range(0, by.stop - by.start, _ROWS):
                own = weights[first : first + _ROWS]
                tile = slice(by.start + first, by.start + first + own.shape[0])
                with np.errstate(over="ignore", invalid="ignore"):  # the caller names rows that overflow
                    kept = _arrays.as_rows(_arrays.take_rows(self.rows_, tile), weights.dtype)
                    out[block] += self.kernel_(some, kept) @ own

        _threads.over_rows(rows.shape[0], by.stop - by.start, part)

    def extend(self, rows: Rows) -> None:
        """Add checked rows (m, bins) to the training rows; map and gamma stay."""
        if self.map_ is None:
            self.rows_ = _arrays.stack_rows([self.rows_, rows])
        else:
            self.rows_ = self.rows_.joined(self.map_.mapped(rows))
        self._n_features_out = self.rows_.shape[0]

    def keeper(self, n_rows: int) -> FeatureKeeper:
        """Return an object that replaces the training rows by ``n_rows`` others, which come in pieces."""
        return FeatureKeeper(self, n_rows)

    def take(self, rows: np.ndarray | slice) -> ExactFeatures:
        """Return the same features with the training rows at the places ``rows`` alone."""
        subset = copy(self)
        subset.keep(rows)
        return subset

    @property
    def row_kernel(self) -> ExactFeatures:
        return self

    def centres(self, rows: np.ndarray, rounds: int) -> ExactFeatures:
        """Return the same features with centres of k-means, from the training rows at the places ``rows`` on."""
        subset = self.take(rows)
        if self.map_ is not None:
            subset.rows_ = self.rows_.clustered(subset.rows_, rounds)
        return subset

    def keep(self, rows: np.ndarray | slice) -> None:
        """Keep the training rows at the places ``rows`` alone."""
        self.rows_ = self.rows_.take(rows) if self.map_ is not None else _arrays.take_rows(self.rows_, rows)
        self._n_features_out = self.rows_.shape[0]

    def first_equal(self) -> np.ndarray:
        """Return the place of the first training row that equals each of them, (n,)."""
        return _arrays.first_equal([self.rows_]) if self.map_ is None else self.rows_.first_equal()

    def diagonal(self) -> np.ndarray:
        """Return K(x_i, x_i) of the training rows, (n,); see ``gram_into``."""
        if self.map_ is None:
            return np.asarray(self.kernel_.diagonal(self.rows_), dtype=np.float64)
        return np.asarray(self.rows_.squares if self._gamma is None else np.ones(self._n_features_out), np.float64)

    def gram_into(self, square: np.ndarray, *, add: bool = False) -> np.ndarray:
        """Write K(x_i, x_j) of the training rows below the diagonal of ``square`` (n, n); return the diagonal, (n,).

        For additive kernels the means are subtracted. With ``add``, the values are added to those that are there. The
        part above the diagonal is overwritten with arbitrary values.
        """
        if self.map_ is not None:
            return self.rows_.gram_into(square, self._gamma, add=add)
        diagonal = np.empty(self._n_features_out)
        n = self._n_features_out
        for first in range(0, n, _ROWS):
            block = slice(first, min(first + _ROWS, n))
            values = self.kernel_(
                _arrays.view_rows(self.rows_, block), _arrays.view_rows(self.rows_, slice(0, block.stop))
            )
            diagonal[block] = np.diagonal(values, first)
            if add:  # whatever was in memory is above the diagonal
                values = values + np.tril(square[block, : block.stop], first)
            square[block, : block.stop] = values
        return diagonal

    def change_octaves(self, square: np.ndarray, before: int, after: int) -> None:
        """Turn the values of ``gram_into`` with 2^before times gamma into those with 2^after times.

        With twice the gamma, an entry exp(-gamma D^2) becomes its square, and with half of it its square root, so this
        takes one pass over the matrix and no product.
        """
        raise_below(square, after - before)

    def merged_into_weights(self, coef: np.ndarray, intercept: np.ndarray) -> LinearForm:
        """See ``FittedFeatures``: values are in float64 where float32 would move the outputs of the kept rows."""
        is_double = (self.rows_ if self.map_ is None else self.rows_.squares).dtype == np.float64
        return LinearForm(self, coef if is_double else weights_that_hold(self, coef), intercept)

    def simplified(self, coef: np.ndarray, intercept: np.ndarray) -> LinearForm:
        """Return a linear model of the values; for an additive or linear kernel as one of its map, without the rows."""
        if self.map_ is None or self.kernel_.inner is not self.kernel_:
            return LinearForm(self, coef, intercept)
        weights, offset = self.rows_.combine(coef)
        return LinearForm(self.map_, weights, intercept - offset)

    @property
    def is_centred(self) -> bool:
        """Whether the values among the training rows are products less the means of the rows."""
        return self.map_ is not None and self._gamma is None

    @property
    def mapped_rows(self) -> KeptRows | None:
        """The training rows as mapped, if the values are their products; else None."""
        return self.rows_ if self.is_centred else None

    @property
    def summands(self) -> list[tuple[KeptRows, float | None]] | None:
        """The training rows as mapped, with gamma, None for plain products; None for a kernel without a map."""
        return None if self.map_ is None else [(self.rows_, self._gamma)]

    def others(self, rows: Rows) -> list[OtherRows]:
        """Return checked rows (m, bins) in the form of the mapped training rows, for a kernel with a map."""
        if self.map_ is None:
            raise TypeError(f"{self.kernel_.name} has no map")
        return [self.rows_.others(self.map_.mapped(rows))]

    @property
    def _gamma(self) -> float | None:
        """gamma of the mapped rows; None for their plain products."""
        return self.kernel_.gamma if isinstance(self.kernel_, Exponential) else None  # type: ignore[return-value]

    def describe(self) -> str:
        """Return a short description, such as "values of the kernel with 342 rows"."""
        return f"values of the kernel with {self._n_features_out:,} rows"

    def squared_distances(self, rows: Rows) -> np.ndarray:
        values = np.empty((rows.shape[0], self._n_features_out), rows.dtype)
        self.features_into(rows, values)
        return self._distances_of(values, lambda: self._squares(rows))

    def squared_distances_at(self, places: np.ndarray) -> np.ndarray:
        """Return ``squared_distances`` of the kept rows at ``places``."""
        if self.map_ is None:
            return self.squared_distances(_arrays.take_rows(self.rows_, places))
        others = self.rows_.take(places).at(slice(None))
        values = np.empty((others.squares.size, self._n_features_out), self.rows_.squares.dtype)
        self.rows_.values_of(others, self._gamma, values)
        return self._distances_of(values, lambda: others.squares)

    def _squares(self, rows: Rows) -> np.ndarray:
        """Return K(x, x) of checked rows, about the means of the kept rows where values are products."""
        if self.map_ is None:
            return np.asarray(self.kernel_.diagonal(rows))
        return self.rows_.others(self.map_.mapped(rows)).squares

    def _distances_of(self, values: np.ndarray, squares: Callable[[], np.ndarray]) -> np.ndarray:
        """Return squared distances, given the values (n, m) and K(x, x) of the rows, which is 1 with a gamma."""
        distances = values.astype(np.float64)
        distances *= -2
        if self._gamma is not None:
            distances += 2
            return distances
        kept = self.rows_.squares if self.map_ is not None else np.asarray(self.kernel_.diagonal(self.rows_))
        distances += kept
        distances += squares()[:, None]
        return np.maximum(distances, 0, out=distances)

    @property
    def kept_rows(self) -> Rows | None:
        return self.rows_ if self.map_ is None else None

    def contributions(self, rows: Rows, reference: np.ndarray, coef: np.ndarray) -> np.ndarray | None:
        """See ``FittedFeatures``: they come from the kernel of each single bin."""
        if self.map_ is not None or self.kernel_.inner is not self.kernel_:
            return None
        out = np.zeros((*rows.shape, coef.shape[1]))
        for i in range(rows.shape[1]):
            column, kept = (_arrays.to_dense(_arrays.take_columns(some, np.array([i]))) for some in (rows, self.rows_))
            values = self.kernel_(np.vstack([column, reference[None, i : i + 1]]), kept) @ coef
            out[:, i] = values[:-1] - values[-1]
        return out

    def onnx(self, x: Value) -> Value:
        if self.map_ is None:
            return self.kernel_.onnx(x.cast(np.float64), _arrays.to_dense(self.rows_).astype(np.float64)).cast(x.dtype)
        kept, means = self.rows_.centred(), self.rows_.column_means()
        # float64, since weights of both signs magnify the rounding of kernel values
        u = self.map_.onnx(x).cast(np.float64) - means
        products = u @ x.graph.constant(np.ascontiguousarray(kept.T.astype(x.dtype))).cast(np.float64)
        if self._gamma is None:
            return products.cast(x.dtype)
        squares = (u * u).sum(1, keep=True) + np.square(kept).sum(axis=1)
        distances = (squares - products * 2.0).at_least(0.0)
        return (distances * -self._gamma).apply("Exp").cast(x.dtype)

    def mapped_model(self, coef: np.ndarray, intercept: np.ndarray) -> MappedModel | None:
        """See ``FittedFeatures``; None for a kernel without a map."""
        psi, kept, gamma = self.map_, self.rows_, self._gamma
        if psi is None:
            return None
        means = np.zeros(kept.n_columns)
        means[kept.columns] = kept.means
        bins = np.arange(kept.n_columns) % self.n_features_in_
        if gamma is None:  # an additive kernel gives a linear model of mapped rows
            function: MappedFunction = LinearFunction(kept.combine(coef)[0], intercept)
            return MappedModel(lambda X: dense(psi.mapped(X)) - means, bins, function)
        scale = float(np.sqrt(2 * gamma))
        function = GaussianExpansion(scale * kept.centred(), coef, intercept)
        return MappedModel(lambda X: scale * (dense(psi.mapped(X)) - means), bins, function)


class FeatureKeeper:
    """Replaces the training rows of fitted features by rows (n, bins) that come in pieces; map and gamma stay.

    Parameters
    ----------
    features : ExactFeatures
        The fitted features.
    n_rows : int
        Number of rows n.
    """

    def __init__(self, features: ExactFeatures, n_rows: int):
        self._features, self._n_rows = features, n_rows
        self._mapped = None if features.map_ is None else features.rows_.keeper(n_rows)
        self._rows: list[Rows] = []
        self._places: list[np.ndarray] = []

    def put(self, places: np.ndarray, rows: Rows) -> None:
        """Keep checked rows (m, bins) at these places (m,)."""
        features = self._features
        if self._mapped is not None and features.map_ is not None:
            self._mapped.put(places, features.map_.mapped(rows))
        else:
            self._rows.append(rows)
            self._places.append(places)

    def close(self) -> None:
        """Give the rows to the features, once all are there."""
        features = self._features
        if self._mapped is not None:
            features.rows_ = self._mapped.kept()
        else:
            order = np.argsort(np.concatenate(self._places))
            features.rows_ = _arrays.take_rows(_arrays.stack_rows(self._rows), order)
        features._n_features_out = self._n_rows


def weights_that_hold(features: RowKernel, coef: np.ndarray) -> np.ndarray:
    """Return the weights (n, t) in float32, or in float64 where float32 would move the outputs of the kept rows.

    Kernel values are computed in the dtype of the weights. Their rounding depends on the batch that a row stands in,
    and weights of both signs magnify it: with values in the hundreds, or weights in the thousands, so would the answer.
    """
    n, t = coef.shape
    rounded = coef.astype(np.float32)
    alone, single, double = np.zeros((1, t)), *np.zeros((2, min(n, _ROWS_MEASURED), t))
    with np.errstate(over="ignore", invalid="ignore"):
        for weights, out in ((rounded, alone), (rounded, single), (coef, double)):
            features.add_outputs(slice(0, len(out)), slice(0, n), weights, out)
    return rounded if are_near(np.vstack([alone, single]), np.vstack([double[:1], double])) else coef


def with_mean_gamma(kernel: Exponential, rows: KeptRows, spread: Spread) -> Exponential:
    """Return the kernel with gamma a number; "mean" is 1 / mean squared distance of the mapped rows behind ``spread``.

    ``rows`` give the dtype and the size of the means, which bound the rounding of distances.
    """
    if not isinstance(kernel.gamma, str):
        return kernel
    mean = spread.mean_distance
    # Mapped rows are off by half an eps of their dtype. Equal rows differ only by the float64 rounding of their mean.
    eps = np.finfo(rows.squares.dtype).eps + _ROUNDED_MEAN * np.finfo(np.float64).eps
    rounding = _CLEAR * eps * np.linalg.norm(rows.means)
    if not mean > rounding**2:
        if spread.n_rows != 1:
            raise DataError(
                Message(
                    "{gamma='mean'}: all rows are equal, or as close as rounding tells apart, so that there is no mean "
                    "distance. Check that the data vary; subtract what they have in common, use {precision='float64'}, "
                    "or pass {gamma} as a number."
                )
            )
        mean = 1.0  # a single row has no pairs: any gamma serves
    return kernel.of_mean_distance(mean, spread.n_rows)
