"""Moments: the sums over the data that a quadratic loss needs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from chimap._files import read_tensors, write_tensors
from chimap._types import ArrayLike, MatrixLike
from chimap._validation import DataError
from chimap.moments.checked import checked_row_weights, checked_rows
from chimap.moments.product import BatchProduct
from chimap.moments.shift import provisional_mean
from chimap.moments.sums import MomentSums
from chimap.moments.symmetric import Symmetric
from chimap.moments.targets import weighted


class Moments(MomentSums):
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

    # --- adding rows

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

    def _combine(self, other: Moments, sign: int) -> Moments:
        if (other.n_features, other.n_targets) != (self.n_features, self.n_targets):
            raise DataError(
                f"moments of {other.n_features} features and {other.n_targets} targets do not merge with "
                f"{self.n_features} and {self.n_targets}: they come from different maps or labels."
            )
        if other.n_rows == 0:
            return self
        if self.shift is None:
            self.shift, self.target_shift = other.shift, other.target_shift
        other = other._reshifted(*self.shifts)
        self.n_rows += sign * other.n_rows
        self.count = self.count + sign * other.count if self.n_rows else 0
        self.feature_sum += sign * other.feature_sum
        self.target_sum += sign * other.target_sum
        self.features.combine(other.features, sign)
        self._cross += sign * other._cross
        self.target_squares += sign * other.target_squares
        self._waiting.combine(other._waiting, sign)
        return self

    def _reshifted(self, shift: np.ndarray, target_shift: np.ndarray) -> Moments:
        """Return moments of the same rows about other shifts: z - b = (z - a) + (a - b)."""
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
        selected.count, selected.n_rows, selected.feature_sum = (
            self.count,
            self.n_rows,
            self.feature_sum[chosen],
        )
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
