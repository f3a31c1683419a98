"""Moments: the sums over the data that a quadratic loss needs."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, Self, cast

import numpy as np

from chimap import _arrays, _threads
from chimap._catalogue import at_address
from chimap._files import read_tensors, write_tensors
from chimap._types import JSON, ArrayLike, MatrixLike, Rows
from chimap._validation import DataError
from chimap.moments.symmetric import PANEL, BatchProduct, Symmetric
from chimap.moments.targets import (
    OneVersusAll,
    Targets,
    add_by_class,
    count_of,
    of_rows,
    split,
    sums_of,
    sums_with,
    weighted,
)


class Accumulator(Protocol):
    """Sums over rows that engines add up in parts: of features and targets, of blocks, or of a loss and its gradient.

    Sums of any two parts of the rows merge into those of both, in any order, so that it does not matter how the rows
    are split between workers.
    """

    def fresh(self) -> Self:
        """Return empty sums about the same shifts."""
        ...

    def merge(self, other: Self) -> object:
        """Add the rows of other sums."""
        ...

    def release_buffers(self) -> None:
        """Free the buffers for the next chunk."""
        ...


class LinearModel(Protocol):
    """f(z) = z'coef + intercept, as ``Moments.ridge`` returns it: a ``SumsModel`` of ``selection.sums``."""

    @property
    def coef(self) -> np.ndarray:
        """Weights (D, t)."""

    @property
    def intercept(self) -> np.ndarray:
        """Intercepts (t,)."""

    @property
    def alpha(self) -> float:
        """The strength used."""


def _linear_model(name: str, folds: Sequence[Moments], settings: dict[str, object]) -> LinearModel:
    """Return a linear model of ``selection.sums``, which solves what these sums are for."""
    return cast(Callable[..., LinearModel], at_address(f"chimap.selection.sums:{name}"))(folds, **settings)


class Moments:
    """Sums over rows of features z and targets y, computed in one pass.

    The sums are the count n, sum z, sum y, H = sum zz', V = sum zy' and sum y^2 of each target. Rows with weights w
    give sum w, sum w z and so on: a row of weight 2 counts as two rows.

    Sums are kept in float64; the products of a batch are computed in the dtype of its features. Features and targets
    are first shifted by a provisional mean (given, or that of the first batch), so that subtracting the mean afterwards
    loses no digits however far the data lie from zero.

    Moments are a commutative monoid: ``a + b`` merges, empty moments are neutral, and ``a - b`` undoes a merge. Moments
    of parts of the data merge to those of the whole, wherever they were computed.

    Parameters
    ----------
    n_features : int
        Number of features D.
    n_targets : int
        Number of targets t.
    shift : ndarray of shape (D,), default=None
        Shift of the features; None takes the mean of the first batch.
    target_shift : ndarray of shape (t,), default=None
        Shift of the targets; None takes the mean of the first batch.

    Attributes
    ----------
    count : float
        Sum of the weights of the rows; equal to ``n_rows`` if they have no weights.
    n_rows : int
        Number of rows.

    References
    ----------
    Li, Lebanon and Sminchisescu, sec. 6, Algorithm 3. Merging: Chan, Golub and LeVeque.

    Examples
    --------
    >>> import numpy as np
    >>> Z, y = np.random.default_rng(0).random((100, 3)), np.arange(100.0)
    >>> whole = Moments(3, 1).update(Z, y)
    >>> parts = Moments(3, 1).update(Z[:40], y[:40]) + Moments(3, 1).update(Z[40:], y[40:])
    >>> bool(np.allclose(whole.covariance(), parts.covariance()))
    True
    """

    def __init__(
        self, n_features: int, n_targets: int, shift: np.ndarray | None = None, target_shift: np.ndarray | None = None
    ):
        self.n_features = n_features
        self.n_targets = n_targets
        self.shift = None if shift is None else np.array(shift, dtype=np.float64)
        self.target_shift = None if target_shift is None else np.array(target_shift, dtype=np.float64)
        self.count: float = 0
        self.n_rows = 0
        self.feature_sum = np.zeros(n_features)
        self.target_sum = np.zeros(n_targets)
        self.features = Symmetric(n_features)
        self._cross = np.zeros((n_targets, n_features))
        self.target_squares = np.zeros(n_targets)
        self._waiting = np.zeros(n_features)  # see ``add_by_class``

    @property
    def cross(self) -> np.ndarray:
        """Sum zy', (D, t); the entries of a column, which belong to a target, are contiguous in memory."""
        if self._waiting.any():
            self._cross -= self._waiting
            self._waiting[:] = 0
        return self._cross.T

    @cross.setter
    def cross(self, sums: np.ndarray) -> None:
        self._cross = np.ascontiguousarray(sums.T)

    def add_shifted(self, Z: np.ndarray, Y: Targets, product: BatchProduct) -> None:
        """Add rows that are already less the shifts, without checks. Z'Z is added to ``product``, all else to the sums.

        Parameters
        ----------
        Z : ndarray of shape (n, D)
            Features, C-contiguous. Rows with weights are multiplied by the roots of these, in place, and the product
            may overwrite all rows.
        Y : array of shape (n, t), OneVersusAll or WeightedTargets
            Targets.
        product : BatchProduct
            Product to which Z'Z is added.
        """
        self.add_targets(Y)
        plain, weights = split(Y)
        roots = None if weights is None else np.sqrt(of_rows(weights)).astype(Z.dtype)
        if roots is not None:
            Z *= roots[:, None]
        if isinstance(plain, OneVersusAll):
            self.feature_sum += add_by_class(Z, plain, roots, self._cross, self._waiting)
        else:
            feature_sum, cross = sums_with(Z, plain, roots)
            self.feature_sum += feature_sum
            self._cross += cross
        product.add(Z)

    def add_sums(self, square: np.ndarray, sums: np.ndarray) -> None:
        """Add sums over the features of rows that ``add_targets`` counts.

        Parameters
        ----------
        square : ndarray of shape (D, D)
            Sum zz', of which the upper triangle is read.
        sums : ndarray of shape (1 + t, D)
            Sum z, then sum y z'.
        """
        self.features.flat += Symmetric.of(square).flat
        self.feature_sum += sums[0]
        self.cross += sums[1:].T

    def add_targets(self, Y: Targets) -> None:
        """Add the sums over targets alone, and count the rows.

        Parameters
        ----------
        Y : array of shape (n, t), OneVersusAll or WeightedTargets
            Targets less their shift.
        """
        target_sum, squares = sums_of(Y)
        self.count += count_of(Y)
        self.n_rows += Y.shape[0]
        self.target_sum += target_sum
        self.target_squares += squares

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle empty moments without their zeros."""
        if self.n_rows == 0:
            return type(self), (self.n_features, self.n_targets, self.shift, self.target_shift)
        return copyreg.__newobj__, (type(self),), vars(self)  # type: ignore[attr-defined]

    def __sizeof__(self) -> int:
        """Return the size in bytes, arrays included, by which a scheduler plans transfers between machines."""
        _, arrays = self.state()
        return object.__sizeof__(self) + sum(array.nbytes for array in arrays.values())

    def state(self) -> tuple[JSON, dict[str, np.ndarray]]:
        """Return plain values and arrays (not copied) from which ``of_state`` makes the same moments."""
        shift, target_shift = self.shifts
        arrays = {
            "shift": shift,
            "target_shift": target_shift,
            "feature_sum": self.feature_sum,
            "target_sum": self.target_sum,
            "features": self.features.flat,
            "cross": self._cross,
            "target_squares": self.target_squares,
            "class_total": self._waiting,
        }
        meta = {
            "count": self.count,
            "n_rows": self.n_rows,
            "n_features": self.n_features,
            "n_targets": self.n_targets,
            "is_shifted": self.shift is not None,
        }
        return meta, arrays

    @classmethod
    def of_state(cls, meta: JSON, arrays: dict[str, np.ndarray]) -> Self:
        """Return the moments that ``state`` described.

        Parameters
        ----------
        meta : dict
            Plain values.
        arrays : dict of str to ndarray
            Arrays, which are not copied.
        """
        moments = cls(meta["n_features"], meta["n_targets"])
        if meta["is_shifted"]:
            moments.shift, moments.target_shift = arrays["shift"], arrays["target_shift"]
        moments.count = meta["count"]
        moments.n_rows = meta["n_rows"]
        moments.feature_sum, moments.target_sum = arrays["feature_sum"], arrays["target_sum"]
        moments._cross, moments.target_squares = arrays["cross"], arrays["target_squares"]
        moments._waiting = arrays["class_total"]
        moments.features = Symmetric(moments.n_features, arrays["features"])
        return moments

    @property
    def mean(self) -> np.ndarray:
        """Mean features, (D,)."""
        return self.shifts[0] + self.feature_sum / (self.count or 1)

    @property
    def target_mean(self) -> np.ndarray:
        """Mean targets, (t,)."""
        return self.shifts[1] + self.target_sum / (self.count or 1)

    def check_rows(self) -> None:
        """Raise DataError if there are no rows to solve for weights from."""
        if self.count == 0:
            raise DataError("no rows: the moments are empty. Update them with rows before the fit.")

    @property
    def shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """Shifts of the features (D,) and of the targets (t,); zeros as long as none are set."""
        shift = np.zeros(self.n_features) if self.shift is None else self.shift
        target = np.zeros(self.n_targets) if self.target_shift is None else self.target_shift
        return shift, target

    def scatter_into(self, square: np.ndarray) -> None:
        """Write Hc = sum (z - mean)(z - mean)' into the upper triangle of an array.

        Parameters
        ----------
        square : ndarray of shape (D, D)
            The float64 array to fill.
        """
        scaled = self.feature_sum / (self.count or 1)
        panels = list(self.features.panels())

        def fill(chosen: slice) -> None:
            for first, panel in panels[chosen]:
                rows = slice(first, first + panel.shape[0])
                block = square[rows, first:]
                np.multiply(self.feature_sum[rows, None], scaled[first:], out=block)
                np.subtract(panel, block, out=block)

        # All threads share this: most of the time goes to the operating system's clearing of new pages.
        _threads.over_rows(len(panels), self.n_features * PANEL, fill)

    def scatter_product(self, B: np.ndarray) -> np.ndarray:
        """Return Hc B, an array of shape (D, columns).

        Parameters
        ----------
        B : ndarray of shape (D, columns)
            Right-hand factor.
        """
        return self.features @ B - np.outer(self.feature_sum, (self.feature_sum @ B) / (self.count or 1))

    def scatter_quadratic(self, B: np.ndarray) -> float:
        """Return tr(B' Hc B), with half the work of ``scatter_product``.

        Parameters
        ----------
        B : ndarray of shape (D, columns)
            Factor on both sides.
        """
        return self.features.quadratic(B) - float(np.square(self.feature_sum @ B).sum()) / (self.count or 1)

    def scatter_diagonal(self) -> np.ndarray:
        """Return the diagonal of Hc, (D,): the scatter of each feature."""
        return self.features.diagonal() - self.feature_sum**2 / (self.count or 1)

    def cross_scatter(self) -> np.ndarray:
        """Return Vc = sum (z - mean)(y - mean)', (D, t), with contiguous columns."""
        by_target = np.outer(self.target_sum / -(self.count or 1), self.feature_sum)
        by_target += self.cross.T
        return by_target.T

    def target_scatter(self) -> np.ndarray:
        """Return sum (y - mean)^2 of each target, (t,)."""
        return self.target_squares - self.target_sum**2 / (self.count or 1)

    def covariance(self) -> np.ndarray:
        """Return the covariance Hc / n, (D, D) float64."""
        square = np.zeros((self.n_features, self.n_features))
        self.scatter_into(square)
        upper = np.triu(square)
        return (upper + np.triu(upper, 1).T) / (self.count or 1)

    def update(self, Z: MatrixLike, Y: ArrayLike, sample_weight: ArrayLike | None = None) -> Moments:
        """Add rows and return self.

        Parameters
        ----------
        Z : array or sparse matrix of shape (n, D)
            Features.
        Y : array-like of shape (n, t) or (n,)
            Targets.
        sample_weight : array-like of shape (n,), default=None
            Weights above 0; None if all are 1.

        Raises
        ------
        DataError
            If values are NaN or infinite, weights are not above 0, or shapes do not fit; then nothing is added.
        """
        Z, Y = checked_rows(Z, Y, self.n_features, self.n_targets)
        weights = checked_row_weights(sample_weight, Z.shape[0])
        if Z.shape[0] == 0:
            return self
        if self.shift is None or self.target_shift is None:
            self.shift = provisional_mean(Z)
            self.target_shift = Y.mean(axis=0, dtype=np.float64)
        product = BatchProduct(self.n_features, Z.dtype)
        shifted = np.ascontiguousarray(Z - self.shift.astype(Z.dtype))
        self.add_shifted(shifted, weighted(Y - self.target_shift, weights), product)
        product.move_to(self.features)
        return self

    # --- the monoid

    def fresh(self) -> Moments:
        """Return empty moments with the same shifts."""
        return Moments(self.n_features, self.n_targets, self.shift, self.target_shift)

    def copy(self) -> Moments:
        """Return an independent copy."""
        twin = Moments(self.n_features, self.n_targets, self.shift, self.target_shift)
        for name in ("feature_sum", "target_sum", "_cross", "target_squares", "features", "_waiting"):
            setattr(twin, name, getattr(self, name).copy())
        twin.count, twin.n_rows = self.count, self.n_rows
        return twin

    def __add__(self, other: Moments) -> Moments:
        return self.copy().merge(other)

    def __sub__(self, other: Moments) -> Moments:
        return self.copy().subtract(other)

    def merge(self, other: Moments) -> Moments:
        """Add the rows of other moments in place; return self.

        Parameters
        ----------
        other : Moments
            Moments of as many features and targets.

        Raises
        ------
        DataError
            If the numbers of features or targets differ.
        """
        return self._combine(other, 1)

    def subtract(self, other: Moments) -> Moments:
        """Remove rows that were merged before, in place; return self.

        Parameters
        ----------
        other : Moments
            Moments of the rows to remove.

        Raises
        ------
        DataError
            If ``other`` has more rows, or another number of features or targets.
        """
        if other.n_rows > self.n_rows:
            raise DataError(f"cannot take {other.n_rows} rows out of {self.n_rows}: they were never merged.")
        return self._combine(other, -1)

    def check_alike(self, other: Moments) -> None:
        """Raise DataError for moments of other numbers of features or targets.

        Parameters
        ----------
        other : Moments
            The other moments.
        """
        if (other.n_features, other.n_targets) != (self.n_features, self.n_targets):
            raise DataError(
                f"moments of {other.n_features} features and {other.n_targets} targets do not merge with "
                f"{self.n_features} and {self.n_targets}: they come from different maps or labels."
            )

    def _combine(self, other: Moments, sign: int) -> Moments:
        self.check_alike(other)
        if other.n_rows == 0:
            return self
        if self.shift is None:
            self.shift, self.target_shift = other.shift, other.target_shift
        other = other.about(*self.shifts)
        self.n_rows += sign * other.n_rows
        self.count = self.count + sign * other.count if self.n_rows else 0
        self.feature_sum += sign * other.feature_sum
        self.target_sum += sign * other.target_sum
        self.features.combine(other.features, sign)
        self._cross += sign * other._cross
        self.target_squares += sign * other.target_squares
        self._waiting += sign * other._waiting
        return self

    def about(self, shift: np.ndarray, target_shift: np.ndarray) -> Moments:
        """Return moments of the same rows about other shifts: z - b = (z - a) + (a - b).

        Parameters
        ----------
        shift : ndarray of shape (D,)
            Shift of the features.
        target_shift : ndarray of shape (t,)
            Shift of the targets.
        """
        old_shift, old_target_shift = self.shifts
        if np.array_equal(shift, old_shift) and np.array_equal(target_shift, old_target_shift):
            return self
        moved = self.copy()
        d, e, n = old_shift - shift, old_target_shift - target_shift, self.count
        # sum (z+d)(z+d)' = H + m d' + d m' + n d d' = H + sym(2 (m + n d / 2), d)
        moved.features.add_outer(self.feature_sum + 0.5 * n * d, d, 2.0)
        moved.cross += np.outer(self.feature_sum, e) + np.outer(d, self.target_sum) + n * np.outer(d, e)
        moved.target_squares += e * (2 * self.target_sum + n * e)
        moved.feature_sum += n * d
        moved.target_sum += n * e
        moved.shift, moved.target_shift = shift, target_shift
        return moved

    # --- moments of other features

    def without_targets(self) -> Moments:
        """Return moments of the same rows without targets; sums are shared.

        Principal components use them when there are more rows than labels.
        """
        bare = Moments(self.n_features, 0, self.shift, None if self.shift is None else np.zeros(0))
        bare.count, bare.n_rows = self.count, self.n_rows
        bare.feature_sum, bare.features = self.feature_sum, self.features
        return bare

    def of_features(self, chosen: np.ndarray) -> Moments:
        """Return the moments of selected features.

        Parameters
        ----------
        chosen : ndarray of int
            Ascending indices of the features.
        """
        shift, target_shift = self.shifts
        selected = Moments(chosen.size, self.n_targets, shift[chosen], target_shift)
        selected.count, selected.n_rows, selected.feature_sum = (self.count, self.n_rows, self.feature_sum[chosen])
        selected.features = self.features.taken(chosen)
        selected.cross = self.cross[chosen]
        selected.target_sum, selected.target_squares = self.target_sum.copy(), self.target_squares.copy()
        return selected

    def projected(self, components: np.ndarray, center: np.ndarray) -> Moments:
        """Return the moments of the coordinates U'(z - center), which any solver takes in place of moments of z.

        Parameters
        ----------
        components : ndarray of shape (D, p)
            Components U.
        center : ndarray of shape (D,)
            Point at which the coordinates are zero.
        """
        shift, target_shift = self.shifts
        moved = Moments(components.shape[1], self.n_targets, components.T @ (shift - center), target_shift)
        moved.count, moved.n_rows = self.count, self.n_rows
        moved.feature_sum = components.T @ self.feature_sum
        moved.features = Symmetric.of(components.T @ (self.features @ components))
        moved.cross = components.T @ self.cross
        moved.target_sum, moved.target_squares = self.target_sum.copy(), self.target_squares.copy()
        return moved

    # --- linear models, of a folder below: named by their addresses

    def ridge(self, *folds: Moments, **settings: object) -> LinearModel:
        """Return ridge regression from these sums: ``chimap.ridge([self, *folds], **settings)``.

        Parameters
        ----------
        *folds : Moments
            Those of the other folds of the rows, which choose the strength; without them GCV does.
        **settings : object
            As in ``chimap.ridge``: alpha, n_components, device.

        Returns
        -------
        SumsModel
            Weights, intercept, strength.

        Examples
        --------
        >>> Z, y = np.random.default_rng(0).random((200, 10)), np.arange(200.0)
        >>> Moments(10, 1).update(Z, y).ridge(alpha=1.0).coef.shape
        (10, 1)
        """
        return _linear_model("ridge", [self, *folds], settings)

    def lasso(self, *folds: Moments, **settings: object) -> LinearModel:
        """Return the LASSO or elastic net from these sums: ``chimap.lasso([self, *folds], **settings)``.

        Parameters
        ----------
        *folds : Moments
            Those of the other folds of the rows, which choose the strength; without them the path's middle is taken.
        **settings : object
            As in ``chimap.lasso``: alpha, l1_ratio, n_alphas.

        Returns
        -------
        SumsModel
            Weights, intercept, strength, and the path.
        """
        return _linear_model("lasso", [self, *folds], settings)

    def group_lasso(self, *folds: Moments, **settings: object) -> LinearModel:
        """Return the group LASSO from these sums: ``chimap.group_lasso([self, *folds], **settings)``.

        Parameters
        ----------
        *folds : Moments
            Those of the other folds of the rows, which choose the strength; without them the path's middle is taken.
        **settings : object
            As in ``chimap.group_lasso``: groups, alpha, n_alphas.

        Returns
        -------
        SumsModel
            Weights, intercept, strength, and the path.
        """
        return _linear_model("group_lasso", [self, *folds], settings)

    # --- files

    def save(self, path: str | Path) -> None:
        """Write the moments to a safetensors file: arrays and plain metadata, so that opening it runs no code.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        write_tensors(path, "moments", *self.state())

    @classmethod
    def load(cls, path: str | Path) -> Moments:
        """Return the moments that ``save`` wrote.

        Parameters
        ----------
        path : str or Path
            The file.

        Raises
        ------
        DataError
            If the file is not one that ``save`` wrote.
        """
        return cls.of_state(*read_tensors(path, "moments"))


def provisional_mean(Z: Rows) -> np.ndarray:
    """Return the mean (D,) float64 of rows Z (n, D), dense or CSR, rounded to their dtype.

    It is rounded so that exactly the number that is kept is subtracted from the rows.

    >>> provisional_mean(np.array([[0.1], [0.2]], np.float32)).tolist()
    [0.15000000596046448]
    """
    return np.asarray(_arrays.column_means(Z).astype(Z.dtype).astype(np.float64))


def checked_rows(Z: MatrixLike, Y: ArrayLike, n_features: int, n_targets: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features (n, D) and targets (n, t) as dense arrays of finite numbers; raise DataError for other input."""
    Z = _arrays.to_dense(_arrays.as_rows(Z))
    Y = np.asarray(Y, dtype=np.float64)
    Y = Y[:, None] if Y.ndim == 1 else Y
    if Z.shape != (Y.shape[0], n_features) or Y.shape[1] != n_targets:
        raise DataError(
            f"these moments take Z of {n_features} features and Y of {n_targets} targets, with the same number "
            f"of rows; got Z {Z.shape} and Y {Y.shape}."
        )
    for name, values in (("Z", Z), ("Y", Y)):
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise DataError(f"{name}, row {row}, column {column}: {values[row, column]}; moments need finite numbers.")
    return Z, Y


def checked_row_weights(weights: ArrayLike | None, n_rows: int) -> np.ndarray | None:
    """Return weights (n,) as float64 numbers above 0, or None; raise DataError for other input."""
    if weights is None:
        return None
    checked = np.asarray(weights, dtype=np.float64)
    if checked.shape != (n_rows,) or not (np.isfinite(checked) & (checked > 0)).all():
        raise DataError(
            f"sample_weight must be one finite number above 0 for each of the {n_rows} rows; got shape {checked.shape}"
            f"{'' if checked.shape != (n_rows,) else ' with other values among them'}. Leave rows of weight 0 out."
        )
    return checked
