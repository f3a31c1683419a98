"""Answers of estimators: ``ClassTargets`` and ``RealTargets`` make them of linear outputs, whatever learned these."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import JSON, ArrayLike, MatrixLike, Sometimes
from chimap.data.label_kinds import alike, as_targets
from chimap.data.labels import check_labels, clean_targets
from chimap.data.reading import check_rows_order
from chimap.estimators.rows import labelled_rows
from chimap.losses import Square
from chimap.models.answers import ClassAnswers, RealAnswers
from chimap.models.unassigned import checked_share, is_unassigned, keeps_no_shares, marked
from chimap.selection.calibration import Calibration, TaskCalibration
from chimap.selection.conformal import Conformal, Novelty, checked_level
from chimap.selection.scoring import MeanScore, explained
from chimap.selection.structures import Nominal, Structure

if TYPE_CHECKING:
    pass


class ClassTargets(ClassifierMixin):
    """Answers of one-versus-rest targets: 1 for the class and -1 for the others, or a single target for two classes.

    Labels (n, t) with entries 0, 1 and NaN are t tasks of two classes each. Answers are then matrices (n, t) of labels
    0 and 1, of scores, and of the probability of 1, and ``classes_`` holds the numbers of the tasks, as for
    scikit-learn's ``RidgeClassifier``, ``MLPClassifier`` and ``OneVsRestClassifier``.

    The estimator defines ``_outputs(X)``, linear outputs (n, t), and ``_answers``.
    """

    _y_checks: ClassVar[JSON] = {}
    _keeps_posterior: ClassVar[bool] = False  # a posterior would take a matrix over all features
    classes_: np.ndarray
    class_weight_: Sometimes[np.ndarray | None]
    multilabel_: Sometimes[bool]
    threshold_: Sometimes[float]
    _outputs: Callable[[MatrixLike], np.ndarray]
    _outputs_with_shares: Callable[[MatrixLike], tuple[np.ndarray, np.ndarray]]
    _answers: ClassVar[ClassAnswers]
    _calibration: Sometimes[Calibration | TaskCalibration]
    _conformal: Sometimes[Conformal | None]
    _novelty: Sometimes[Novelty]
    _structure: Sometimes[Structure]

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Return the scores of rows X: the class with the largest one is predicted.

        Parameters
        ----------
        X : array, sparse matrix, data frame or source of n rows
            Rows to score.

        Returns
        -------
        ndarray of shape (n, classes), (n,) or (n, tasks)
            Scores. For two classes they have shape (n,), and positive scores mean the second; with several tasks there
            is one column per task.
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: MatrixLike, unassigned: float | None = None, level: float | None = None) -> np.ndarray:
        """Return the labels of rows X.

        Parameters
        ----------
        X : array, sparse matrix, data frame or source of n rows
            Rows to classify.
        unassigned : float or None, default=None
            Label rows that are like none of the classes "unassigned", of an unseen cell type for example: where
            ``predict_set(X, alpha=unassigned)`` is empty, or where the row is more unlike the training rows than all
            but this share of left-out training rows (left-out groups, if the fit had groups). It is unlike them by its
            distance in the kernel to the nearest training row or landmark, and by how low its largest score is; models
            that keep no rows, and those of ``partial_fit``, judge by the scores alone. Rows without any entry are
            unassigned. None labels every row.
        level : float or None, default=None
            Of labels in a tree, answer the deepest node that holds the true class with this probability, by
            ``predict_set(X, 1 - level)``. None answers a class.

        Returns
        -------
        ndarray of shape (n,) or (n, tasks)
            Labels; with several tasks, 0 and 1 for each. With ``unassigned``, numbers are in an array of objects.

        Raises
        ------
        ValueError
            If ``unassigned`` is not between 0 and 1, or the model has several tasks, a class called "unassigned", or no
            left-out rows.

        References
        ----------
        See ``selection.conformal.Novelty``.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from chimap import HistogramClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> known = y < 8
        >>> model = HistogramClassifier("exp-chi2", random_state=0).fit(X[known][:1000], y[known][:1000])
        >>> found = model.predict(X[~known], unassigned=0.1)
        >>> bool((found == "unassigned").mean() > 0.5)
        True
        """
        if level is not None and unassigned is not None:
            raise InputError(Message("{level} and {unassigned} exclude each other: leave one of them out."))
        if level is not None:
            return self._answers.nodes(self._outputs(X), level)
        if unassigned is None:
            return self.labels_of(self._outputs(X))
        share = checked_share(unassigned)
        outputs, shares = self._outputs_with_shares(X)
        return marked(self.labels_of(outputs), is_unassigned(shares, share))

    def unassigned_at(self, X: MatrixLike) -> np.ndarray:
        """Return the smallest shares ``unassigned`` at which ``predict`` gives rows X no label.

        Small shares speak for a class that the fit has not seen; those of rows like the training rows are spread evenly
        between 0 and 1, or somewhat lower.

        Parameters
        ----------
        X : array, sparse matrix, data frame or source of n rows
            Rows to classify.

        Returns
        -------
        ndarray of shape (n,)
            Shares in float64.
        """
        return self._outputs_with_shares(X)[1]

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Return the probabilities of the classes of rows X.

        Whatever the loss, they are calibrated on the outputs of held-out rows: by Platt's sigmoid for two classes; for
        more classes by a softmax of the outputs and of the sigmoids of each class against the rest. The class that
        ``predict`` returns has the largest probability, unless a ``threshold`` other than 0 was given or chosen. See
        ``selection.calibration.Calibration``.

        Parameters
        ----------
        X : array, sparse matrix, data frame or source of n rows
            Rows to classify.

        Returns
        -------
        ndarray of shape (n, classes) or (n, tasks)
            Probabilities in the order of ``classes_``; each row sums to one. With several tasks: the probability of
            label 1, calibrated for each task separately.
        """
        return self.probabilities_of(self._outputs(X))

    def predict_log_proba(self, X: MatrixLike) -> np.ndarray:
        """Return the logarithms of ``predict_proba``, without underflow.

        Parameters
        ----------
        X : array, sparse matrix, data frame or source of n rows
            Rows to classify.
        """
        outputs = self._outputs(X)  # first, as it refuses a model that is not fitted
        return self._answers.calibration.log(outputs)

    def probabilities_of(self, outputs: np.ndarray) -> np.ndarray:
        """Return the probabilities (n, classes) for linear outputs, such as those of ``predict_source``.

        Parameters
        ----------
        outputs : array of shape (n, t)
            Linear outputs.
        """
        return self._answers.calibration(outputs)

    def labels_of(self, outputs: np.ndarray) -> np.ndarray:
        """Return the labels for linear outputs, such as those of ``predict_source``.

        Parameters
        ----------
        outputs : array of shape (n, t)
            Linear outputs.

        Returns
        -------
        ndarray of shape (n,) or, with several tasks, (n, t)
            Labels.
        """
        return self._answers.labels(outputs)

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean accuracy of ``predict(X)``.

        Parameters
        ----------
        X : array, sparse matrix, data frame or source of n rows
            Rows to classify.
        y : array of shape (n,) or (n, tasks), or str
            True labels. A string names a column of X, as in ``fit``; rows without a label are left out. With several
            tasks, as in scikit-learn, the score is the share of rows whose labels are all right, among the entries of
            y that are not missing.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows.
        """
        check_rows_order(X, y=y, sample_weight=sample_weight)
        X, y, sample_weight = labelled_rows(self, X, y, sample_weight)
        answers = self._answers
        if not answers.is_multilabel:
            true, predicted = alike(check_labels(y, np.shape(y)[0], "y"), self.predict(X))
            from sklearn.metrics import accuracy_score

            return float(accuracy_score(true, predicted, sample_weight=sample_weight))
        Y = clean_targets(y, len(answers.classes), "y")
        right = (np.isnan(Y) | (self.predict(X) == Y)).all(axis=1)
        seen = ~np.isnan(Y).all(axis=1)
        weights = None if sample_weight is None else np.asarray(sample_weight)[seen]
        return float(np.average(right[seen], weights=weights))

    def predict_set(self, X: MatrixLike, alpha: float = 0.1, class_conditional: bool = False) -> np.ndarray:
        """Return the set of classes that each row of X may have.

        The true class is in the set with a probability of at least 1 - alpha if future rows are like those of the fit.
        The set contains every class whose probability is at least as large as that of the true classes of most held-out
        rows; it is empty if no class is that probable. That probability is over all rows: those of a rare class may lie
        outside far more often, unless the sets are class-conditional.

        Parameters
        ----------
        X : array, sparse matrix, data frame or source of n rows
            Rows to classify.
        alpha : float, default=0.1
            Share of rows whose true class may lie outside the set, between 0 and 1.
        class_conditional : bool, default=False
            Whether the share is that of the rows of each class. A class with fewer than 1 / alpha - 1 held-out rows, or
            groups, is then in all sets.

        Returns
        -------
        boolean ndarray of shape (n, classes) or, with several tasks, (n, tasks, 2)
            Membership, in the order of ``classes_``; with several tasks, of labels 0 and 1.

        Raises
        ------
        ValueError
            If alpha is not between 0 and 1, or no rows were held out.

        References
        ----------
        See ``selection.conformal.Conformal``.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from chimap import HistogramClassifier
        >>> from sklearn.utils import shuffle
        >>> X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
        >>> model = HistogramClassifier("exp-chi2", n_components=256, random_state=0).fit(X[:1200], y[:1200])
        >>> sets = model.predict_set(X[1200:], alpha=0.1)
        >>> bool(sets[range(597), y[1200:]].mean() > 0.85)
        True
        """
        checked_level(alpha)
        return self.sets_of(self._outputs(X), alpha, class_conditional)

    def sets_of(self, outputs: np.ndarray, alpha: float = 0.1, class_conditional: bool = False) -> np.ndarray:
        """Return the sets of ``predict_set`` for linear outputs, such as those of ``predict_source``.

        Parameters
        ----------
        outputs : array of shape (n, t)
            Linear outputs.
        alpha : float, default=0.1
            Share of rows whose true class may lie outside the set, between 0 and 1.
        class_conditional : bool, default=False
            Whether the share is that of the rows of each class.

        Returns
        -------
        boolean ndarray of shape (n, classes) or, with several tasks, (n, t, 2)
            Membership of the classes.
        """
        return self._answers.sets(outputs, alpha, class_conditional)


class RealTargets(RegressorMixin):
    """Answers of one or several real targets.

    The estimator defines ``_outputs(X)``, linear outputs (n, t), and ``_answers``.
    """

    _y_checks: ClassVar[JSON] = {"y_numeric": True}
    _keeps_posterior: ClassVar[bool] = True
    noise_variance_: Sometimes[np.ndarray | None]
    _outputs: Callable[[MatrixLike], np.ndarray]
    _variance_factors: Callable[..., np.ndarray]
    _answers: ClassVar[RealAnswers]
    _conformal: Sometimes[Conformal | None]

    def predict(self, X: MatrixLike, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict the targets of rows X.

        Parameters
        ----------
        X : array, sparse matrix, data frame or source of n rows
            Rows to predict.
        return_std : bool, default=False
            Whether to return standard deviations of new targets around the predictions too. They come from the
            posterior of Bayesian ridge in the space of the features, with the noise of left-out rows
            (``loss="square"``), and grow where rows are unlike those of the fit.

        Returns
        -------
        ndarray of shape (n,) or (n, targets)
            Predictions in float64; with ``return_std``, a pair of predictions and standard deviations of the same
            shape.

        Raises
        ------
        ValueError
            If ``return_std`` is True and the model has no posterior.
        """
        predicted = self.targets_of(self._outputs(X))
        if not return_std:
            return predicted
        factors = self._variance_factors(X)
        noise = self._answers.noise
        if noise is None:
            raise InputError("return_std needs the noise of left-out rows: fit on at least two rows.")
        return predicted, self.targets_of(np.sqrt(np.outer(factors, noise)))

    def targets_of(self, outputs: np.ndarray) -> np.ndarray:
        """Return the predictions for linear outputs, such as those of ``predict_source``.

        Parameters
        ----------
        outputs : array of shape (n, t)
            Linear outputs.

        Returns
        -------
        ndarray of shape (n,) or, with several targets, (n, t)
            Predicted targets.
        """
        return self._answers.targets(outputs)

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return R^2 of ``predict(X)``, or the share of the deviance that is explained.

        For ``loss="poisson"`` and ``loss="quantile"`` it is D^2 = 1 - deviance / that of the best constant, with the
        Poisson deviance or the pinball loss. With several targets, or quantiles, it is the mean over them, on the
        entries of y that are not missing.

        Parameters
        ----------
        X : array, sparse matrix, data frame or source of n rows
            Rows to predict.
        y : array of shape (n,) or (n, targets), or str
            True targets. A string names a column of X, as in ``fit``; rows without a target are left out.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows.
        """
        check_rows_order(X, y=y, sample_weight=sample_weight)
        X, y, sample_weight = labelled_rows(self, X, y, sample_weight)
        predicted, loss = self.targets_of(self._outputs(X)), self._answers.loss
        weights = None if sample_weight is None else np.asarray(sample_weight)
        if loss.score_name != Square.score_name:
            Z = predicted.reshape(predicted.shape[0], -1)
            n_targets = Z.shape[1] // loss.n_scores
            Y = as_targets(np.asarray(y), "y") if n_targets == 1 else clean_targets(y, n_targets, "y")
            return explained(loss, Y, Z, weights)
        if predicted.ndim == 1:
            from sklearn.metrics import r2_score

            y = as_targets(np.asarray(y), "y")
            return float(r2_score(y, predicted, sample_weight=sample_weight))
        Y = clean_targets(y, predicted.shape[1], "y")
        return MeanScore(Y, None, None, weights)(predicted)

    def predict_set(self, X: MatrixLike, alpha: float = 0.1) -> np.ndarray:
        """Return intervals that contain the target of each row of X with a probability of at least 1 - alpha.

        This holds if future rows are like those of the fit: the interval reaches as far from the prediction as the
        targets of most held-out rows did. All intervals have the same width, which is infinite if too few rows were
        held out for alpha.

        Parameters
        ----------
        X : array, sparse matrix, data frame or source of n rows
            Rows to predict.
        alpha : float, default=0.1
            Share of targets that may lie outside, between 0 and 1.

        Returns
        -------
        ndarray of shape (n, 2) or, with several targets, (n, targets, 2)
            Lower and upper ends.

        Raises
        ------
        ValueError
            If alpha is not between 0 and 1, or no rows were held out.

        References
        ----------
        See ``selection.conformal.Conformal``.

        Examples
        --------
        >>> import numpy as np
        >>> from chimap import HistogramRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.dirichlet(np.ones(8), size=600)
        >>> y = np.sqrt(X[:, 0]) + 0.1 * rng.normal(size=600)
        >>> model = HistogramRegressor("chi2", random_state=0).fit(X[:300], y[:300])
        >>> low, high = model.predict_set(X[300:], alpha=0.1).T
        >>> bool(0.85 < np.mean((low <= y[300:]) & (y[300:] <= high)) < 0.95)
        True
        """
        checked_level(alpha)
        return self.intervals_of(self._outputs(X), alpha)

    def intervals_of(self, outputs: np.ndarray, alpha: float = 0.1) -> np.ndarray:
        """Return the intervals of ``predict_set`` for linear outputs, such as those of ``predict_source``.

        Parameters
        ----------
        outputs : array of shape (n, t)
            Linear outputs.
        alpha : float, default=0.1
            Share of targets that may lie outside, between 0 and 1.

        Returns
        -------
        ndarray of shape (n, 2) or, with several targets, (n, t, 2)
            Lower and upper ends.
        """
        return self._answers.intervals(outputs, alpha)


def without_shares(self: object, X: MatrixLike) -> tuple[np.ndarray, np.ndarray]:
    """Raise ValueError; see ``keeps_no_shares``."""
    raise keeps_no_shares(type(self).__name__)


def answers_of(model: object) -> ClassAnswers | RealAnswers:
    """Return the answers of an estimator that keeps what they are made of as attributes."""
    state = vars(model)
    if "classes_" not in state:
        return RealAnswers(state.get("_conformal"), state.get("noise_variance_"), state.get("loss_") or Square())
    classes, is_multilabel = state["classes_"], state.get("multilabel_", False)
    return ClassAnswers(
        classes,
        is_multilabel,
        state["_calibration"],
        state.get("_conformal"),
        state.get("threshold_"),
        structure=state.get("_structure", Nominal()),
    )
