"""From class labels to targets, and from outputs back to labels, probabilities and sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from chimap._types import JSON, ArrayLike, MatrixLike, Sometimes
from chimap.data.catalogue import check_rows_order
from chimap.data.label_kinds import alike, is_text
from chimap.data.labels import check_labels, clean_targets
from chimap.estimators.class_threshold import check_threshold, chosen_threshold
from chimap.estimators.class_weighing import check_of_batch, classes_in, counts_of, weighed_by_class
from chimap.estimators.rows_given import labelled_rows
from chimap.estimators.targets import Encoding, known_conformal
from chimap.fit.result import HeldOutRows
from chimap.fit.targets import ClassCodec, Codec, TaskCodec
from chimap.losses import CATALOGUE as LOSSES
from chimap.moments import of_entries
from chimap.selection.calibration import Calibration, TaskCalibration
from chimap.selection.conformal import Conformal, checked_level


class ClassTargets(Encoding, ClassifierMixin):
    """One-versus-rest targets: 1 for the class and -1 for the others, or a single target for two classes.

    Labels (n, t) with entries 0, 1 and NaN are t tasks of two classes each. Answers are then matrices (n, t) of labels
    0 and 1, of scores, and of the probability of 1, and ``classes_`` holds the numbers of the tasks, as for
    scikit-learn's ``RidgeClassifier``, ``MLPClassifier`` and ``OneVsRestClassifier``.

    Learned: ``classes_``, ``multilabel_`` (whether the labels were of several tasks). The estimator defines
    ``_outputs(X)``, linear outputs (n, t).
    """

    _y_checks: ClassVar[JSON] = {}
    _losses: ClassVar[tuple[str, ...]] = (
        "square", *(name for name, loss in LOSSES.items() if loss.domain == "sign"), "hinge"
    )  # fmt: skip
    _domain: ClassVar[str] = "sign"
    _codec_type: ClassVar[type[Codec]] = ClassCodec
    _keeps_posterior: ClassVar[bool] = False  # a posterior would take a matrix over all features
    classes_: np.ndarray
    class_weight_: Sometimes[np.ndarray | None]
    multilabel_: bool = False
    threshold: Sometimes[str | float | None]
    threshold_: Sometimes[float]
    _outputs: Callable[[MatrixLike], np.ndarray]
    _calibration: Sometimes[Calibration | TaskCalibration]
    _conformal: Sometimes[Conformal | None]

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

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Return the labels of rows X.

        Parameters
        ----------
        X : array, sparse matrix, data frame or source of n rows
            Rows to classify.

        Returns
        -------
        ndarray of shape (n,) or (n, tasks)
            Labels; with several tasks, 0 and 1 for each.
        """
        return self.labels_of(self._outputs(X))

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
        return self._calibration.log(outputs)

    def probabilities_of(self, outputs: np.ndarray) -> np.ndarray:
        """Return the probabilities (n, classes) for linear outputs, such as those of ``predict_source``.

        Parameters
        ----------
        outputs : array of shape (n, t)
            Linear outputs.
        """
        return self._calibration(outputs)

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
        if self.multilabel_:
            return (outputs > 0).astype(np.int64)
        if outputs.shape[1] == 1:
            is_second = outputs[:, 0] > float(getattr(self, "threshold_", 0.0))
            return self.classes_[is_second.astype(np.intp)]
        return self.classes_[np.argmax(outputs, axis=1)]

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
        if not self.multilabel_:
            true, predicted = alike(check_labels(y, np.shape(y)[0], "y"), self.predict(X))
            from sklearn.metrics import accuracy_score

            return float(accuracy_score(true, predicted, sample_weight=sample_weight))
        Y = clean_targets(y, len(self.classes_), "y")
        right = (np.isnan(Y) | (self.predict(X) == Y)).all(axis=1)
        seen = ~np.isnan(Y).all(axis=1)
        weights = None if sample_weight is None else np.asarray(sample_weight)[seen]
        return float(np.average(right[seen], weights=weights))

    def _take_codec(self, codec: Any) -> None:
        """Set the classes that the codec has learned."""
        self.multilabel_ = isinstance(codec, TaskCodec)
        self.classes_ = np.arange(codec.n_targets) if isinstance(codec, TaskCodec) else codec.classes
        if getattr(self, "_has_objects", False) and is_text(self.classes_):
            self.classes_ = self.classes_.astype(object)

    def _class_weighed(
        self, y: np.ndarray, sample_weight: np.ndarray | None, is_batch: bool = False
    ) -> np.ndarray | None:
        """Return the weights of the rows times those of their classes; see ``Encoding``. Sets ``class_weight_``."""
        wanted, threshold = getattr(self, "class_weight", None), getattr(self, "threshold", None)
        if is_batch:
            check_of_batch(wanted, y)
        classes = self.classes_ if is_batch else classes_in(y)
        check_threshold(threshold, y, classes.size)
        weights, self.class_weight_ = weighed_by_class(
            wanted, classes, y, sample_weight, getattr(self, "task_names_", None)
        )
        return weights

    def predict_set(self, X: MatrixLike, alpha: float = 0.1) -> np.ndarray:
        """Return the set of classes that each row of X may have.

        The true class is in the set with a probability of at least 1 - alpha if future rows are like those of the fit.
        The set contains every class whose probability is at least as large as that of the true classes of most held-out
        rows; it is empty if no class is that probable.

        Parameters
        ----------
        X : array, sparse matrix, data frame or source of n rows
            Rows to classify.
        alpha : float, default=0.1
            Share of rows whose true class may lie outside the set, between 0 and 1.

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
        return self.sets_of(self._outputs(X), alpha)

    def sets_of(self, outputs: np.ndarray, alpha: float = 0.1) -> np.ndarray:
        """Return the sets of ``predict_set`` for linear outputs, such as those of ``predict_source``.

        Parameters
        ----------
        outputs : array of shape (n, t)
            Linear outputs.
        alpha : float, default=0.1
            Share of rows whose true class may lie outside the set, between 0 and 1.

        Returns
        -------
        boolean ndarray of shape (n, classes) or, with several tasks, (n, t, 2)
            Membership of the classes.
        """
        threshold = known_conformal(self).threshold(alpha)
        return -self._logs(outputs) <= (threshold[:, None] if self.multilabel_ else threshold[0])

    def _logs(self, outputs: np.ndarray) -> np.ndarray:
        """Return the log probabilities of the classes, (n, classes), or (n, t, 2) with several tasks."""
        if isinstance(self._calibration, TaskCalibration):
            return self._calibration.logs(outputs)
        return self._calibration.log(outputs)

    def _take_held_out(self, held_out: HeldOutRows | None) -> None:
        """Learn the calibration, the sets and the threshold from outputs for rows that the machine has not seen."""
        t, self._conformal = self._n_targets, None
        counts = counts_of(held_out, getattr(self, "class_weight_", None), self.classes_)
        if held_out is None:
            self._calibration = (
                TaskCalibration.unknown(t) if self.multilabel_ else Calibration(1.0, np.zeros(t))
            )
        elif self.multilabel_:
            weights = held_out.weights
            if weights is not None:  # a missing entry has no weight
                weights = np.where(np.isnan(held_out.y), 0.0, of_entries(weights))
            self._calibration = TaskCalibration.of(held_out.outputs, held_out.y, held_out.counted(weights))
            logs = self._logs(held_out.outputs)
            scores = np.where(held_out.y == 1, -logs[:, :, 1], -logs[:, :, 0])
            self._conformal = Conformal(np.where(np.isnan(held_out.y), np.nan, scores), counts)
        else:
            place = np.searchsorted(self.classes_, held_out.y)
            self._calibration = Calibration.of(held_out.outputs, place, held_out.counted(held_out.weights))
            scores = -self._logs(held_out.outputs)[np.arange(place.size), place]
            self._conformal = Conformal(scores[:, None], counts)
        threshold = getattr(self, "threshold", None)
        if threshold is None:
            self.__dict__.pop("threshold_", None)
        else:
            self.threshold_ = chosen_threshold(threshold, held_out, self.classes_, counts)
