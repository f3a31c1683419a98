"""From labels of classes to targets, and from outputs back to labels, probabilities and sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from chimap._types import JSON, ArrayLike, MatrixLike, Sometimes
from chimap._validation import DataError
from chimap.data.labels import check_labels
from chimap.data.targets import clean_targets
from chimap.estimators.class_weighing import ClassWeighing
from chimap.estimators.targets import known_conformal
from chimap.fit.result import HeldOutRows
from chimap.fit.targets import ClassCodec, Codec, TaskCodec
from chimap.losses import CATALOGUE as LOSSES
from chimap.selection.calibration import Calibration, TaskCalibration
from chimap.selection.conformal import Conformal, checked_level
from chimap.selection.threshold import best_threshold


class ClassTargets(ClassWeighing, ClassifierMixin):
    """One versus all: a target of 1 for the class and -1 for the others; a single target for two classes.

    Labels (n, t) of 0, 1 and NaN are t tasks of two classes each: answers are then matrices (n, t) of labels 0 and 1,
    of scores, and of the probability of 1, and ``classes_`` are the numbers of the tasks, as of scikit-learn's
    ``RidgeClassifier``, ``MLPClassifier`` and ``OneVsRestClassifier``.

    Learned: ``classes_``, ``multilabel_`` (whether the labels were of several tasks). The estimator gives
    ``_outputs(X)``, linear outputs (n, t).
    """

    _y_checks: ClassVar[JSON] = {}
    _losses: ClassVar[tuple[str, ...]] = (
        "square", *(name for name, loss in LOSSES.items() if loss.domain == "sign"), "hinge"
    )  # fmt: skip
    _domain: ClassVar[str] = "sign"
    _codec_type: ClassVar[type[Codec]] = ClassCodec
    keeps_posterior: ClassVar[bool] = False  # which takes a matrix of all features
    multilabel_: bool = False
    threshold: Sometimes[str | float | None]
    threshold_: Sometimes[float]
    _outputs: Callable[[MatrixLike], np.ndarray]
    _calibration: Sometimes[Calibration | TaskCalibration]
    _conformal: Sometimes[Conformal | None]

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Scores (n, classes), or (n,) for two classes: positive means the second. Of several tasks (n, tasks)."""
        outputs = self._outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Labels of rows X, (n,); of several tasks 0 and 1, (n, tasks)."""
        return self.labels_of(self._outputs(X))

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Probabilities of the classes (n, classes), in the order of ``classes_``; each row sums to one.

        Of several tasks the probabilities (n, tasks) of label 1, each task being calibrated on its own.

        By calibration on outputs of rows that were held out, whatever the loss: of two classes Platt's sigmoid, of more
        a softmax of the outputs and of the sigmoids of each class against the rest. The class that ``predict`` gives
        has the largest. See ``selection.calibration.Calibration``.
        """
        return self.probabilities_of(self._outputs(X))

    def predict_log_proba(self, X: MatrixLike) -> np.ndarray:
        """Logarithms of ``predict_proba``, of the same shape, without underflow."""
        outputs = self._outputs(X)
        return self._calibration.log(outputs)

    def probabilities_of(self, outputs: np.ndarray) -> np.ndarray:
        """Probabilities (n, classes) of linear outputs (n, t), as ``predict_source`` gives them."""
        return self._calibration(outputs)

    def labels_of(self, outputs: np.ndarray) -> np.ndarray:
        """Labels (n,), of several tasks (n, t), of linear outputs (n, t), as ``predict_source`` gives them."""
        if self.multilabel_:
            return (outputs > 0).astype(np.int64)
        if outputs.shape[1] == 1:
            return self.classes_[(outputs[:, 0] > self._cut).astype(np.intp)]
        return self.classes_[np.argmax(outputs, axis=1)]

    @property
    def _cut(self) -> float:
        """Outputs above it are of the second of two classes."""
        return float(getattr(self, "threshold_", 0.0))

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Mean accuracy of ``predict(X)``; of several tasks, as in scikit-learn, the share of rows all of whose labels
        are right, of the entries of y (n, tasks) that are there."""
        if not self.multilabel_:
            kind = getattr(getattr(y, "dtype", None), "kind", "")
            if kind == "O":  # such as whole numbers, of which scikit-learn cannot tell what they are
                y = check_labels(y, np.shape(y)[0], "y")
            return float(super().score(X, y, sample_weight))
        Y = clean_targets(y, len(self.classes_), "y")
        right = (np.isnan(Y) | (self.predict(X) == Y)).all(axis=1)
        seen = ~np.isnan(Y).all(axis=1)
        weights = None if sample_weight is None else np.asarray(sample_weight)[seen]
        return float(np.average(right[seen], weights=weights))

    def _take_codec(self, codec: Any) -> None:
        self.multilabel_ = isinstance(codec, TaskCodec)
        self.classes_ = np.arange(codec.n_targets) if isinstance(codec, TaskCodec) else codec.classes
        if getattr(self, "_has_objects", False) and self.classes_.dtype.kind == "U":
            self.classes_ = self.classes_.astype(object)

    def predict_set(self, X: MatrixLike, alpha: float = 0.1) -> np.ndarray:
        """The classes that each row of X may be of: boolean (n, classes), in the order of ``classes_``.

        The true class is in the set with a probability of at least 1 - alpha if rows to come are like those of the fit:
        every class whose probability is no smaller than that of the true classes of most rows that were held out. A set
        is empty where no class is that probable. Of several tasks (n, tasks, 2), for labels 0 and 1.

        Raises
        ------
        ValueError
            For alpha that is not between 0 and 1, and where no rows were held out.

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
        """Sets, as of ``predict_set``, of linear outputs (n, t), as ``predict_source`` gives them."""
        threshold = known_conformal(self).threshold(alpha)
        strangeness = -self._logs(outputs)
        return strangeness <= (threshold[:, None] if self.multilabel_ else threshold[0])

    def _logs(self, outputs: np.ndarray) -> np.ndarray:
        """Logarithms of the probabilities of the classes (n, classes), of several tasks (n, t, 2)."""
        if isinstance(self._calibration, TaskCalibration):
            return self._calibration.logs(outputs)
        return self._calibration.log(outputs)

    def _take_held_out(self, held_out: HeldOutRows | None) -> None:
        """Learn what needs outputs of rows that the machine has not seen."""
        t, self._conformal = self._n_targets, None
        if held_out is None:
            self._calibration = (
                TaskCalibration.unknown(t) if self.multilabel_ else Calibration(1.0, np.zeros(t))
            )
        elif self.multilabel_:
            self._calibration = TaskCalibration.of(held_out.outputs, held_out.y, held_out.weights)
            logs = self._logs(held_out.outputs)
            scores = np.where(held_out.y == 1, -logs[:, :, 1], -logs[:, :, 0])
            self._conformal = Conformal(np.where(np.isnan(held_out.y), np.nan, scores), self._times(held_out))
        else:
            place = np.searchsorted(self.classes_, held_out.y)
            self._calibration = Calibration.of(held_out.outputs, place, held_out.weights)
            scores = -self._logs(held_out.outputs)[np.arange(place.size), place]
            self._conformal = Conformal(scores[:, None], self._times(held_out))
        if getattr(self, "threshold", None) is None:
            self.__dict__.pop("threshold_", None)
        else:
            self.threshold_ = self._best_threshold(held_out)

    def _best_threshold(self, held_out: HeldOutRows | None) -> float:
        if held_out is None:
            raise DataError(
                f"threshold={self.threshold!r} is chosen on rows that are held out, and there are too few. "
                "Leave it out."
            )
        is_second = held_out.y == self.classes_[1]
        assert self.threshold is not None  # which asks for none
        return best_threshold(held_out.outputs[:, 0], is_second, self.threshold, self._times(held_out))
