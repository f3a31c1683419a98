"""A linear model trained on codes: tables are looked up, and features are never made."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays
from chimap._messages import Message
from chimap._threads import suited, threads
from chimap._types import JSON, ArrayLike, ClassWeight, MatrixLike, Rows, Shape, Sometimes
from chimap._validation import DataError, ParameterError, check_choice, check_positive, rows_as_fitted, validated
from chimap.data import Source
from chimap.data.frames import frame_rows
from chimap.estimators.compiled import CompiledClassifier, made_from
from chimap.estimators.targets import ClassTargets, answers_of
from chimap.export.parts import ModelParts, parts_of
from chimap.features.additive.base import AdditiveMap
from chimap.losses import Logistic, Loss, SquaredHinge
from chimap.model_files import register, saved
from chimap.model_files.restoring import Agreeing
from chimap.moments import rows_by_weight
from chimap.papers.anchors import AnchorMap
from chimap.papers.codes import add_up, check_codes, look_up
from chimap.papers.in_memory import CountedRows, Encoding, held_out_in_memory
from chimap.recipe.preparation import Preparation
from chimap.recipe.task import HeldOutRows
from chimap.solvers.lbfgs import stop_reason

if TYPE_CHECKING:
    from sklearn.utils import Tags

_CHUNK_ROWS = 2**14  # of a source, that are scored together
_ROUGH = 1e-2  # tolerance of a machine that only serves calibration

LOSSES: dict[str, Loss] = {loss.name: loss for loss in (SquaredHinge(), Logistic())}


class LookupClassifier(ClassTargets, Encoding, BaseEstimator):
    """One-versus-rest linear classifier on the features of an ``AnchorMap``, trained on their codes only.

    For each class, with targets y = +-1, it minimises over weights w and intercept b

        sum_r loss(y_r (w . Psi(x_r) + b)) + alpha/2 |w|^2.

    w . Psi(x) = sum_i T[i, code of x_i] is a sum of table entries. The gradient adds up the derivatives of the loss by
    code, which is the transpose of T. So a pass over the rows costs one look-up and one addition per bin and class,
    whatever the number of terms, and reads one byte per bin. All classes pass together; the minimiser is L-BFGS, in
    float64.

    Parameters
    ----------
    map : AnchorMap or None, default=None
        An unfitted map with one neighbour or uniform weights; None is ``AnchorMap()``.
    loss : {"squared_hinge", "logistic"}, default="squared_hinge"
        The loss; "squared_hinge" gives a support vector machine.
    alpha : float, default=1.0
        Strength of the ridge penalty, above 0: 1/C of scikit-learn.
    fit_intercept : bool, default=True
        Whether to fit b, which is not penalised.
    tol : float, default=0.001
        The minimiser stops when no entry of the gradient exceeds tol times its largest entry at zero weights.
    max_iter : int, default=1000
        Largest number of iterations of L-BFGS; a ConvergenceWarning is raised if they did not suffice.
    class_weight : "balanced", dict or None, default=None
        Factors of the row weights by class. See ``HistogramClassifier``.
    weights : {"importance", "frequency"}, default="importance"
        Meaning of ``sample_weight``: how much a row matters, or how many equal rows it stands for. See
        ``HistogramClassifier``.
    n_jobs : int or None, default=None
        Number of threads. None and -1 use all cores.

    Attributes
    ----------
    map_ : AnchorMap
        The fitted map.
    classes_ : ndarray of shape (classes,)
        The class labels.
    feature_coef_ : ndarray of shape (t, n_terms_ * bins)
        Weights; t is 1 for two classes.
    intercept_ : ndarray of shape (t,)
        Intercepts.
    tables_ : ndarray of shape (t, bins, n_codes_)
        The tables T.
    n_iter_ : int
        Number of iterations.
    feature_importances_ : ndarray of shape (bins,)
        The share of each bin in what the tables T say.
    codes_bytes_ : int
        Bytes that the training codes took.

    References
    ----------
    Additive nearest neighbor feature maps, secs. 3.4-3.5; the tables in training are this project's.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = LookupClassifier(AnchorMap("chi2", n_anchors=17), alpha=100.0).fit(X[:1200], y[:1200])
    >>> bool(model.score(X[1200:], y[1200:]) > 0.9)
    True
    """

    file_kind: ClassVar[str] = "estimator"
    save = saved.save
    load = saved.Load()
    n_features_in_: int
    feature_names_in_: Sometimes[np.ndarray]
    map_: AnchorMap
    feature_coef_: Annotated[np.ndarray, Shape("t", "terms")]
    intercept_: Annotated[np.ndarray, Shape("t")]
    tables_: Annotated[np.ndarray, Shape("t", "n_features_in_", "codes")]
    n_iter_: int
    codes_bytes_: int

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
        weights: str = "importance",
        n_jobs: int | None = None,
    ):
        self.map = map
        self.loss = loss
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.weights = weights
        self.n_jobs = n_jobs

    @saved.whole
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the map, encode the rows, and train on their codes.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, bins)
            Rows.
        y : array of shape (n,)
            Labels.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows in every sum, 0 for none. The map is fitted on
            rows drawn by their weights.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        DataError
            If rows are invalid, or there are fewer than two classes.
        ValueError
            If a parameter is invalid.
        """
        X, y = frame_rows(X, y, sample_weight=sample_weight)
        rows, labels = validated(self, X, y)
        psi = AnchorMap() if self.map is None else self.map
        if not isinstance(psi, AnchorMap):
            raise ParameterError("map", psi, "an AnchorMap, whose codes are looked up")
        counted = self._counted(rows, labels, sample_weight)
        rows, weights = counted.X, counted.weights
        sample = rows if weights is None else _arrays.take_rows(rows, rows_by_weight(weights, rows.shape[0], 0))
        with threads(suited(self.n_jobs, rows.shape[0])):
            psi = clone(psi).fit(sample)
            return self._fit_codes(counted._replace(X=psi.encode(rows)), psi)

    @saved.whole
    def fit_codes(self, codes: Rows, y: ArrayLike, map: AnchorMap, sample_weight: ArrayLike | None = None) -> Self:
        """Train on codes that a fitted map has made.

        Parameters
        ----------
        codes : array or CSR matrix of shape (n, bins)
            Codes, from ``map.encode``.
        y : array of shape (n,)
            Labels.
        map : AnchorMap
            The fitted map.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_settings()
        codes = check_codes(codes, map.n_features_in_, map.n_codes_)
        if np.size(y) != codes.shape[0]:
            raise DataError(f"y must have a label for each of the {codes.shape[0]} rows of codes; got {np.size(y)}.")
        return self._fit_codes(self._counted(codes, np.asarray(y), sample_weight), map)

    def _fit_codes(self, counted: CountedRows, map: AnchorMap) -> Self:
        """Train on the codes of rows with weight above 0."""
        self._check_settings()
        codes, y, weights, _ = counted
        self._learn_targets(y)
        signs, w = np.asarray(self._encode(y)), np.ones(len(y)) if weights is None else weights
        with threads(self.n_jobs):
            solution = self._minimise(codes, signs, w, map, self.tol)
            self._take_held_out(self._held_out(counted, signs, w, map))
        self.map_, self.n_features_in_ = map, map.n_features_in_
        self.feature_coef_, self.intercept_ = solution
        self.tables_ = map.tables(self.feature_coef_)
        self.codes_bytes_ = _arrays.stored_bytes(codes)
        return self

    def _held_out(self, counted: CountedRows, signs: np.ndarray, w: np.ndarray, map: AnchorMap) -> HeldOutRows | None:
        """Return outputs for a fifth of the rows, or for more where a class is rare; None if there are too few rows."""
        tolerance = max(self.tol, _ROUGH)

        def outputs(learning: np.ndarray, testing: np.ndarray) -> np.ndarray:
            codes = _arrays.take_rows(counted.X, learning)
            coef, intercept = self._minimise(codes, signs[learning], w[learning], map, tolerance, False)
            tables = map.tables(coef).transpose(1, 2, 0)
            return np.asarray(look_up(_arrays.take_rows(counted.X, testing), tables) + intercept)

        return held_out_in_memory(counted, self._codec, outputs)

    def predict_source(self, source: Source) -> np.ndarray:
        """Return the scores of the rows of a source.

        Parameters
        ----------
        source : Source
            Rows.

        Returns
        -------
        ndarray of shape (n, t)
            The scores, t = 1 for two classes.
        """
        return np.concatenate(
            [self.decision_function(chunk.X).reshape(chunk.X.shape[0], -1) for chunk in source.chunks(_CHUNK_ROWS)]
        )

    def compile(self) -> CompiledClassifier:
        """Return the same model in single precision, which ``chimap predict`` takes; see ``CompiledClassifier``."""
        check_is_fitted(self)
        tables = made_from(self, 1e-6, "1GiB")
        tables.exact_, tables._is_mixed = None, False
        exact = self.map_.code_tables(self.feature_coef_.T, self.intercept_)
        assert isinstance(tables, CompiledClassifier)
        assert exact is not None
        tables.tables_ = exact
        return tables

    def _outputs(self, X: MatrixLike) -> np.ndarray:
        """Return w . Psi(x) + b for rows X (n, bins), (n, t) float64."""
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
        self, codes: Rows, signs: np.ndarray, w: np.ndarray, psi: AnchorMap, tol: float, is_final: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        coef, intercept, n_iter, reason = minimised(
            codes, signs, w, psi, LOSSES[self.loss], self.alpha, self.fit_intercept, tol, self.max_iter
        )
        if is_final and reason:
            warnings.warn(
                Message(
                    "LookupClassifier stopped after {} iterations before reaching {tol=!s} ({}); raise {max_iter}, "
                    "{tol} or {alpha}.",
                    n_iter,
                    self.tol,
                    reason,
                ),
                ConvergenceWarning,
                stacklevel=3,
            )
        if is_final:
            self.n_iter_ = n_iter
        return coef, intercept

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = not getattr(getattr(self.map, "kernel", None), "is_signed", False)
        return tags


_FARTHEST = 40.0  # intercept of a class without rows
_PAIRS_KEPT = 10  # pairs of steps and gradients from which L-BFGS estimates the curvature


def minimised(
    codes: Rows,
    signs: np.ndarray,
    w: np.ndarray,
    psi: AnchorMap,
    loss: Loss,
    alpha: float,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
) -> tuple[np.ndarray, np.ndarray, int, str]:
    """Return weights (t, D), intercepts (t,), the number of iterations, and why they ended short of the tolerance.

    They are for codes (n, bins) of the map psi, targets ``signs`` (n, t) and weights w (n,) of the rows. The tolerance
    is of each target, relative to its gradient at zero weights and the best intercept: that at no intercept is n where
    a class of few rows matters, and would end the search before it has learned of them.
    """
    t = signs.shape[1]
    n_features = psi.n_terms_ * psi.n_features_in_

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights, intercept = flat[: t * n_features].reshape(t, n_features), flat[t * n_features :]
        outputs = look_up(codes, psi.tables_by_bin(weights)) + intercept
        row_weights = w[:, None]
        values = row_weights * loss.value(signs, outputs)
        slopes = row_weights * loss.gradient(signs, outputs)
        gradient = psi.weights_by_term(add_up(codes, slopes, psi.n_codes_)) + alpha * weights
        free = slopes.sum(axis=0) * fit_intercept
        totals = values.sum(axis=0) + 0.5 * alpha * np.square(weights).sum(axis=1)
        return float((totals / unit).sum()), np.concatenate([(gradient / unit[:, None]).reshape(-1), free / unit])

    # Rejected: weights in units of the curvature at zero, each up to the tolerance of its own gradient. On 10,000
    # rows of MNIST they took over 1000 iterations instead of 521 for chi2, 412 instead of 442 for intersection.
    start, unit = np.zeros(t * (n_features + 1)), np.ones(t)
    start[t * n_features :] = _constants(signs, w, loss) * fit_intercept
    steepest = np.abs(objective(start)[1][: t * n_features]).reshape(t, n_features).max(axis=1)
    unit = np.where(steepest > 0, steepest, 1.0)
    end = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "maxfun": 2 * max_iter, "maxcor": _PAIRS_KEPT, "gtol": tol, "ftol": 0.0},
    )
    coef, intercept = end.x[: t * n_features].reshape(t, n_features), end.x[t * n_features :]
    return coef, intercept, int(end.nit), stop_reason(end) if np.abs(end.jac).max() > tol else ""


def _constants(signs: np.ndarray, w: np.ndarray, loss: Loss) -> np.ndarray:
    """Return the intercepts (t,) of least loss at zero weights, by bisection."""
    t = signs.shape[1]
    totals = np.stack([w @ (signs > 0), w @ (signs < 0)])
    both = np.repeat([[1.0], [-1.0]], t, axis=1)
    low, high = np.full(t, -_FARTHEST), np.full(t, _FARTHEST)
    for _ in range(64):
        middle = (low + high) / 2
        falls = (totals * loss.gradient(both, np.stack([middle, middle]))).sum(axis=0) < 0
        low, high = np.where(falls, middle, low), np.where(falls, high, middle)
    return (low + high) / 2


@parts_of.register(LookupClassifier)
def _parts(model: LookupClassifier) -> ModelParts:
    psi = model.map_
    about = {"kernel": psi.kernel_.name, "gamma": psi.kernel_.gamma, "features": psi.describe()}
    answers = answers_of(model)
    return ModelParts(
        psi,
        model.feature_coef_.T,
        model.intercept_,
        Preparation([], np.dtype(np.float64), None),
        model.classes_,
        about,
        model._outputs,
        answers.predicted,
        answers.calibration,
    )


def _agreeing(state: JSON, sizes: dict[str, int]) -> Agreeing:
    map_ = state["map_"]
    return [
        ("whether its map has codes", map_.has_codes, True),
        ("codes", sizes["codes"], map_.n_codes_),
        ("weights", sizes["terms"], map_.n_terms_ * state["n_features_in_"]),
    ]


register(LookupClassifier, agreeing=_agreeing)
