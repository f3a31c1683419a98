"""Linear models on given features, solved from the moments of one pass: what they share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from chimap import _arrays
from chimap._types import JSON, ArrayLike, MatrixLike, RandomState, Rows, Shape, Sometimes
from chimap._validation import DataError, check_weights, validated
from chimap.backends.host import HOST
from chimap.data.catalogue import check_rows_order
from chimap.data.source import choose_rows
from chimap.engines import Stopwatch
from chimap.engines.local import Pass
from chimap.engines.memory import FIRST_ROWS
from chimap.estimators.real_targets import RealTargets
from chimap.estimators.targets import CountedRows, Encoding
from chimap.features.additive.identity import IdentityMap
from chimap.fit.recipe import checked_alpha
from chimap.fit.result import HeldOutRows
from chimap.model_files.model_file import SavedEstimator
from chimap.moments import DealtFolds, FoldMoments, Moments, RowWeights, provisional_mean
from chimap.selection import SelectionResult, fold_count
from chimap.solvers import LinearSolution

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator
    from sklearn.utils import Tags


_ROWS = 8192  # rows that are made dense and added together
_WITNESSES = 2000  # rows for which held-out outputs are computed


_FINITE_FLOATS: JSON = {"dtype": [np.float64, np.float32], "ensure_all_finite": True}


class MomentsModel(Encoding, SavedEstimator, BaseEstimator):
    """What the linear models share: they add rows to the moments of folds, solve for weights, and do not keep rows.

    ``partial_fit`` adds rows to the moments; the weights are solved for again at the next use. A model file holds the
    weights and not the moments, so a model that comes from one predicts, and takes no more rows.
    """

    selection: str | int | BaseCrossValidator
    random_state: RandomState

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, D)
            Features.
        y : array of shape (n,)
            Labels or targets.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows in every sum, 0 for none.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        DataError
            If values or labels are invalid.
        ValueError
            If a parameter is out of range.
        """
        check_rows_order(X, y=y, sample_weight=sample_weight)
        rows, labels = self._valid(X, y, reset=True)
        counted = self._counted(rows, labels, sample_weight)
        self._learn_targets(counted.y)
        self._moments = self._empty(counted.X)
        self._witness(counted)
        self._add(counted)
        return self._solve_now()

    def _witness(self, rows: CountedRows) -> None:
        """Keep some rows, for which held-out outputs are computed."""
        chosen = choose_rows(rows.X.shape[0], _WITNESSES, self._seed)
        weights, counts = (None if part is None else part[chosen] for part in (rows.weights, rows.counts))
        self._witnesses = CountedRows(_arrays.take_rows(rows.X, chosen), rows.y[chosen], weights, counts)

    def _partial_fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        first = self._is_new
        check_rows_order(X, y=y, sample_weight=sample_weight)
        rows, labels = self._valid(X, y, reset=first)
        counted = self._counted(rows, labels, sample_weight, is_batch=True)
        self._encode(counted.y)  # checks the labels before anything is added
        if first:
            self._moments = self._empty(counted.X)
            self._witness(counted)
        self._add(counted)
        self._stale = True
        return self

    def _valid(self, X: MatrixLike, y: ArrayLike, *, reset: bool) -> tuple[Rows, np.ndarray]:
        return validated(self, X, y, reset=reset, **_FINITE_FLOATS, **self._y_checks)

    def _empty(self, X: Rows) -> FoldMoments:
        self._check_settings(X.shape[1])
        self._seed = int(check_random_state(self.random_state).randint(2**31))
        n_folds = max(1, min(fold_count(self.selection, 1), X.shape[0] // 2)) if self._chooses() else 1
        shift = provisional_mean(X[:FIRST_ROWS])
        return FoldMoments(n_folds, X.shape[1], self._n_targets, shift, self._target_shift(), X.dtype)

    def _add(self, rows: CountedRows) -> None:
        X, y, weights, _ = rows
        moments, n_before = self._moments, self._moments.n_rows
        sums = HOST.sums(IdentityMap(), moments)
        folds = DealtFolds(len(moments.folds), self._seed)
        adding = Pass(self._rows, self._encode, sums, folds, Stopwatch(), RowWeights(weights, n_before))
        for first in range(0, X.shape[0], _ROWS):
            chunk = slice(first, first + _ROWS)
            adding.add(_arrays.take_rows(X, chunk), y[chunk], n_before + first, "X")

    def _rows(self, X: Rows, first_row: int, name: str) -> Rows:
        """Return rows as the pass takes them; they are checked already."""
        return _arrays.as_rows(X, self._moments.dtype)

    def _solve_now(self) -> Self:
        whole = self._moments.whole()
        solution = self._solve(self._moments, whole)
        check_weights(solution.coef, solution.alpha)
        # The order in memory is that of a file, so that products with weights from one give the same bits.
        self.coef_ = np.ascontiguousarray(solution.coef.T)
        self.intercept_, self.alpha_ = solution.intercept, solution.alpha
        self.n_rows_ = whole.n_rows
        self._stale = False
        rows = self._witnesses
        Z = _arrays.to_dense(_arrays.as_rows(rows.X, np.float64))
        outputs = self._held_out(whole, solution, Z, rows)
        self._take_held_out(
            None if outputs is None else HeldOutRows(outputs, rows.y, rows.weights, counts=rows.counts)
        )
        return self

    def _held_out(
        self,
        whole: Moments,
        solution: LinearSolution,
        Z: np.ndarray,
        rows: CountedRows,
    ) -> np.ndarray | None:
        """Return outputs for rows Z (m, D) of a model fitted without each row; None if no formula gives them."""
        return None

    def _refresh(self) -> None:
        """Solve for the rows that ``partial_fit`` has added since the last solution."""
        if self._stale:
            self._solve_now()
        elif not hasattr(self, "coef_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted: call fit or partial_fit first.")

    def __sklearn_is_fitted__(self) -> bool:
        return self._stale or hasattr(self, "coef_")

    @property
    def _is_new(self) -> bool:
        """Whether no rows were added yet. Raise DataError for a model from a file, which has forgotten their sums."""
        if hasattr(self, "_moments"):
            return False
        self._check_has_sums("partial_fit")
        return True

    def _check_has_sums(self, method: str) -> None:
        if hasattr(self, "coef_") and not hasattr(self, "_moments"):
            raise DataError(
                f"{method} needs the sums of the rows, and this {type(self).__name__} comes from a file, which holds "
                "its weights only. Call fit on all rows; sums are kept by Moments.save."
            )

    def _outputs(self, X: MatrixLike) -> np.ndarray:
        self._refresh()
        rows = validated(self, X, reset=False, **_FINITE_FLOATS)
        return np.asarray(rows @ self.coef_.T.astype(rows.dtype)) + self.intercept_

    def _chooses(self) -> bool:
        """Whether folds choose a setting."""
        return not isinstance(self._given_alpha, float)

    @property
    def _given_alpha(self) -> float | tuple[float, ...] | None:
        """One strength, several to choose from, or None for "auto"."""
        return checked_alpha(self.alpha)

    def _check_settings(self, n_features: int) -> None:
        # Given strengths make a path, which takes no folds.
        fold_count(self.selection, 2 if self._given_alpha is None else 1)

    @abstractmethod
    def _solve(self, folds: FoldMoments, whole: Moments) -> LinearSolution:
        """Choose settings by the folds, and solve for all rows."""

    n_features_in_: int
    feature_names_in_: Sometimes[np.ndarray]
    coef_: Annotated[np.ndarray, Shape("t", "n_features_in_")]
    intercept_: Annotated[np.ndarray, Shape("t")]
    alpha_: float
    n_rows_: int
    selection_: SelectionResult | None
    alpha: str | float | Sequence[float]
    _moments: FoldMoments
    _stale: bool = False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


class RealMomentsModel(RealTargets, MomentsModel):
    """A model of one real target, which takes batches."""

    def partial_fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add rows to the moments; the first call fixes the point around which moments are taken.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, D)
            Features.
        y : array of shape (n,)
            Targets.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows.

        Returns
        -------
        self
            The estimator.
        """
        if self._is_new:
            self._learn_targets(y)
        return self._partial_fit(X, y, sample_weight)
