"""A linear model trained on codes: tables that are looked up, features that are never made."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from chimap import _arrays
from chimap._arrays import stored_bytes
from chimap._threads import suited, threads
from chimap._types import ArrayLike, ClassWeight, MatrixLike, Rows
from chimap._validation import DataError, check_choice, check_positive, rows_as_fitted
from chimap.data.formats.frames import frame_rows
from chimap.estimators.class_targets import ClassTargets
from chimap.estimators.compiled import CompiledClassifier, compiled_codes
from chimap.features.additive import AnchorMap
from chimap.features.additive.base import AdditiveMap
from chimap.features.additive.codes import add_up, check_codes, look_up
from chimap.fit.result import HeldOutRows
from chimap.losses import Logistic, Loss, SquaredHinge
from chimap.moments import fold_of_rows, rows_by_weight
from chimap.selection.base import USUAL_FOLDS

if TYPE_CHECKING:
    from sklearn.utils import Tags


_FEWEST_ROWS = 10  # that some are held out of
_ROUGH = 1e-2  # tolerance of a machine whose outputs are only calibrated by
_PAIRS_KEPT = 10  # of steps and gradients from which L-BFGS makes its curvature


LOSSES: dict[str, Loss] = {loss.name: loss for loss in (SquaredHinge(), Logistic())}


class LookupClassifier(ClassTargets, BaseEstimator):
    """One-versus-rest linear classifier on the features of an ``AnchorMap`` that sees the codes alone.

    For each class, with targets y = +-1, it minimises over weights w and intercept b

        sum_r loss(y_r (w . Psi(x_r) + b)) + alpha/2 |w|^2.

    w . Psi(x) = sum_i T[i, code of x_i] is a sum of table entries, and the gradient is the derivatives of the loss
    added up by code, T's transpose: a pass over the rows costs one look-up and one addition a bin and class, whatever
    the number of terms, and reads one byte a bin. All classes pass together; the minimiser is L-BFGS, in float64.

    Parameters
    ----------
    map : AnchorMap (unfitted) with one neighbour or uniform weights; None is ``AnchorMap()``.
    loss : "squared_hinge" (a support vector machine) or "logistic".
    alpha : of the ridge penalty, > 0; 1/C of scikit-learn.
    fit_intercept : whether there is b, which is not penalised.
    tol : stop where no entry of the gradient exceeds tol times its largest entry at zero weights.
    max_iter : iterations of L-BFGS at most; a ConvergenceWarning says when they did not do.
    class_weight : None, "balanced", or a dictionary of labels and weights, as in ``HistogramClassifier``.
    n_jobs : threads; None and -1 are all cores.

    Learned: ``map_``, ``classes_``, ``coef_`` (t, n_terms_ * bins) and ``intercept_`` (t,), with t = 1 for two
    classes; ``tables_`` (t, bins, n_codes_); ``n_iter_``; ``codes_bytes_``, what the training codes took.

    Source: Additive nearest neighbor feature maps, secs. 3.4-3.5; the tables in training are this project's.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = LookupClassifier(AnchorMap("chi2", n_anchors=17), alpha=100.0).fit(X[:1200], y[:1200])
    >>> bool(model.score(X[1200:], y[1200:]) > 0.9)
    True
    """

    def __init__(
        self,
        map: AdditiveMap | None = None,
        *,
        loss: str = "squared_hinge",
        alpha: float = 1.0,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
    ):
        self.map = map
        self.loss = loss
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the map, encode the rows X (n, bins), dense or sparse, and train on their codes; returns self.

        sample_weight (n,): a row of weight 2 is two rows, one of weight 0 none; the map is fitted on rows drawn by
        their weights.

        Raises DataError for bad rows and for fewer than two classes, ValueError for parameters.
        """
        X, y = frame_rows(X, y)
        rows, labels = validate_data(
            self, X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False
        )
        psi = AnchorMap() if self.map is None else self.map
        if not isinstance(psi, AnchorMap):
            raise ValueError(f"map must be an AnchorMap, whose codes are looked up; got {psi!r}.")
        rows, labels, weights = self._counted(rows, labels, sample_weight)
        sample = (
            rows if weights is None else _arrays.take_rows(rows, rows_by_weight(weights, rows.shape[0], 0))
        )
        with threads(suited(self.n_jobs, rows.shape[0])):
            psi = clone(psi).fit(sample)
            return self._fit_codes(psi.encode(rows), labels, psi, weights)

    def fit_codes(
        self, codes: Rows, y: ArrayLike, map: AnchorMap, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train on codes (n, bins) that a fitted map has made (``map.encode``), dense or CSR, labels y (n,) and weights
        (n,) of the rows."""
        self._check_settings()
        codes = check_codes(codes, map.n_features_in_, map.n_codes_)
        if np.size(y) != codes.shape[0]:
            raise DataError(
                f"y must have a label for each of the {codes.shape[0]} rows of codes; got {np.size(y)}."
            )
        codes, y, weights = self._counted(codes, np.asarray(y), sample_weight)
        return self._fit_codes(codes, y, map, weights)

    def _fit_codes(self, codes: Rows, y: np.ndarray, map: AnchorMap, weights: np.ndarray | None) -> Self:
        """Train on codes of rows that count."""
        self._check_settings()
        self._learn_targets(y)
        signs, w = np.asarray(self._encode(y)), np.ones(len(y)) if weights is None else weights
        with threads(self.n_jobs):
            solution = self._minimise(codes, signs, w, map, self.tol)
            self._take_held_out(self._held_out(codes, signs, w, y, map))
        self.map_, self.n_features_in_ = map, map.n_features_in_
        self.coef_, self.intercept_ = solution
        self.tables_ = map.tables(self.coef_)
        self.codes_bytes_ = stored_bytes(codes)
        return self

    def _held_out(
        self, codes: Rows, signs: np.ndarray, w: np.ndarray, y: np.ndarray, map: AnchorMap
    ) -> HeldOutRows | None:
        """Outputs of a fifth of the rows by a machine of the others; None of too few rows."""
        if len(y) < _FEWEST_ROWS:
            return None
        held = fold_of_rows(0, len(y), USUAL_FOLDS, 0) == 0
        learning, rest = np.flatnonzero(~held), np.flatnonzero(held)
        few = max(self.tol, _ROUGH)
        own = _arrays.take_rows(codes, learning)
        coef, intercept = self._minimise(own, signs[learning], w[learning], map, few, False)
        outputs = look_up(_arrays.take_rows(codes, rest), map.tables(coef).transpose(1, 2, 0)) + intercept
        return HeldOutRows(outputs, y[rest], w[rest])

    def decision_codes(self, codes: Rows) -> np.ndarray:
        """What ``decision_function`` gives of rows, from their codes (n, bins)."""
        outputs = self._outputs_of_codes(codes)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict_codes(self, codes: Rows) -> np.ndarray:
        """The class of each row, (n,), from the codes of the rows."""
        return self.labels_of(self._outputs_of_codes(codes))

    def compile(self) -> CompiledClassifier:
        """The same model in single precision, which saves and loads as a model file; see ``CompiledModel``."""
        check_is_fitted(self)
        return compiled_codes(self)

    def _outputs(self, X: MatrixLike) -> np.ndarray:
        """w . Psi(x) + b of rows X (n, bins), (n, t) float64."""
        check_is_fitted(self)
        X = rows_as_fitted(self, X)
        with threads(self.n_jobs):
            return self._outputs_of_codes(self.map_.encode(X))

    def _outputs_of_codes(self, codes: Rows) -> np.ndarray:
        check_is_fitted(self)
        codes = check_codes(codes, self.n_features_in_, self.map_.n_codes_)
        outputs: np.ndarray = look_up(codes, self.tables_.transpose(1, 2, 0)) + self.intercept_
        return outputs

    def _check_settings(self) -> None:
        check_choice(self.loss, "loss", tuple(LOSSES))
        check_positive(self.alpha, "alpha")
        check_positive(self.tol, "tol")
        check_positive(self.max_iter, "max_iter", integer=True)

    def _minimise(
        self,
        codes: Rows,
        signs: np.ndarray,
        w: np.ndarray,
        psi: AnchorMap,
        tol: float,
        is_final: bool = True,
    ) -> tuple[np.ndarray, np.ndarray]:
        loss, t = LOSSES[self.loss], signs.shape[1]
        n_features = psi.n_terms_ * psi.n_features_in_

        def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
            weights, intercept = flat[: t * n_features].reshape(t, n_features), flat[t * n_features :]
            outputs = look_up(codes, psi.tables_by_bin(weights)) + intercept
            each = w[:, None]
            values, slopes = each * loss.value(signs, outputs), each * loss.gradient(signs, outputs)
            gradient = psi.weights_by_term(add_up(codes, slopes, psi.n_codes_)) + self.alpha * weights
            free = slopes.sum(axis=0) * self.fit_intercept
            penalty = 0.5 * self.alpha * float(np.vdot(weights, weights))
            return float(values.sum()) + penalty, np.concatenate([gradient.reshape(-1), free])

        # Weights in units of the curvature at zero were tried on 10 000 rows of MNIST, each to its own gradient's
        # tolerance: over 1000 iterations in place of 521 for chi2, 412 in place of 442 for intersection. Not kept.
        start = np.zeros(t * (n_features + 1))
        steepest = np.abs(objective(start)[1]).max()
        end = minimize(
            objective, start, jac=True, method="L-BFGS-B",
            options={"maxiter": self.max_iter, "maxfun": 2 * self.max_iter, "maxcor": _PAIRS_KEPT,
                     "gtol": tol * steepest, "ftol": 0.0},
        )  # fmt: skip
        if is_final and np.abs(end.jac).max() > tol * steepest and end.nit >= self.max_iter:
            warnings.warn(
                f"LookupClassifier stopped after max_iter={self.max_iter} iterations short of tol={self.tol}; "
                "raise max_iter, tol or strength.", ConvergenceWarning, stacklevel=3,
            )  # fmt: skip
        if is_final:
            self.n_iter_ = int(end.nit)
        return end.x[: t * n_features].reshape(t, n_features), end.x[t * n_features :]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = not getattr(getattr(self.map, "kernel", None), "is_signed", False)
        return tags
