"""The sums that moments consist of: their arrays, the rows that are added to them, and their state in files."""

from __future__ import annotations

import copyreg
from typing import Self

import numpy as np

from chimap._types import JSON
from chimap.moments.product import BatchProduct
from chimap.moments.scatter import Scatter
from chimap.moments.symmetric import Symmetric
from chimap.moments.targets import ClassSums, OneVersusAll, Targets, count_of, split, sums_of, sums_with
from chimap.moments.weights import of_rows


class MomentSums(Scatter):
    """The sums over rows of features z and targets y; ``Moments`` describes them and its parameters."""

    def __init__(
        self,
        n_features: int,
        n_targets: int,
        shift: np.ndarray | None = None,
        target_shift: np.ndarray | None = None,
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
        self._waiting = ClassSums(n_features)

    @property
    def cross(self) -> np.ndarray:
        """Sum zy', (D, t); the entries of a column, which belong to a target, are contiguous in memory."""
        self._waiting.join(self._cross)
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
        product : Product
            Product to which Z'Z is added.
        """
        self.add_targets(Y)
        plain, weights = split(Y)
        roots = None if weights is None else np.sqrt(of_rows(weights)).astype(Z.dtype)
        if roots is not None:
            Z *= roots[:, None]
        if isinstance(plain, OneVersusAll):
            self.feature_sum += self._waiting.add(Z, plain, roots, self._cross)
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
            "shift": shift, "target_shift": target_shift, "feature_sum": self.feature_sum,
            "target_sum": self.target_sum, "features": self.features.flat, "cross": self._cross,
            "target_squares": self.target_squares, "class_total": self._waiting.total,
        }  # fmt: skip
        meta = {"count": self.count, "n_rows": self.n_rows, "n_features": self.n_features, "n_targets": self.n_targets,
                "is_shifted": self.shift is not None}  # fmt: skip
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
        # Files from before weights were added hold no n_rows.
        moments.n_rows = meta["n_rows"] if "n_rows" in meta else meta["count"]
        moments.feature_sum, moments.target_sum = arrays["feature_sum"], arrays["target_sum"]
        moments._cross, moments.target_squares = arrays["cross"], arrays["target_squares"]
        moments._waiting.total = arrays["class_total"]
        moments.features = Symmetric(moments.n_features, arrays["features"])
        return moments
