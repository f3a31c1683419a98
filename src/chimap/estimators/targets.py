"""From labels to the targets of a quadratic loss, and from outputs back to labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from chimap._validation import DataError
from chimap.losses import CATALOGUE as LOSSES
from chimap.moments import OneVersusAll, Targets


class ClassTargets(ClassifierMixin):
    """One versus all: a target of 1 for the class and -1 for the others; a single target for two classes.

    Learned: ``classes_``. The estimator gives ``_outputs(X)``, linear outputs (n, t).
    """

    _y_checks: ClassVar[dict[str, Any]] = {}
    _losses: ClassVar[tuple[str, ...]] = (
        "square", *(name for name, loss in LOSSES.items() if loss.domain == "sign"), "hinge"
    )  # fmt: skip
    _domain: ClassVar[str] = "sign"
    classes_: np.ndarray
    _n_targets: int
    _outputs: Callable[[Any], np.ndarray]

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores (n, classes), or (n,) for two classes: positive means the second."""
        outputs = self._outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: Any) -> np.ndarray:
        """Labels of rows X, (n,)."""
        return self.labels_of(self._outputs(X))

    def labels_of(self, outputs: np.ndarray) -> np.ndarray:
        """Labels (n,) of linear outputs (n, t), as ``predict_source`` gives them."""
        if outputs.shape[1] == 1:
            return self.classes_[(outputs[:, 0] > 0).astype(np.intp)]
        return self.classes_[np.argmax(outputs, axis=1)]

    def _learn_targets(self, y: Any) -> None:
        y = column_or_1d(y)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if self.classes_.size < 2:
            raise DataError(
                f"one class only: all labels are {self.classes_.tolist()[0]!r}. A classifier needs at least two "
                "classes; check the labels, or the rows chosen for training."
            )
        self._n_targets = 1 if self.classes_.size == 2 else self.classes_.size

    def _encode(self, y: np.ndarray) -> Targets:
        place = np.searchsorted(self.classes_, y).clip(0, self.classes_.size - 1)
        unknown = self.classes_[place] != y
        if unknown.any():
            raise DataError(
                f"unknown label {y[unknown][:1].tolist()[0]!r}: the classes are "
                f"{', '.join(map(str, self.classes_[:20]))}. Pass every class in classes= at the first partial_fit."
            )
        if self._n_targets == 1:
            return np.where(place == 1, 1.0, -1.0)[:, None]
        return OneVersusAll(place, self.classes_.size)

    def _target_shift(self) -> np.ndarray:
        return np.zeros(self._n_targets)


class RealTargets(RegressorMixin):
    """One real target, shifted by its mean. The estimator gives ``_outputs(X)``, linear outputs (n, 1)."""

    _y_checks: ClassVar[dict[str, Any]] = {"y_numeric": True}
    _losses: ClassVar[tuple[str, ...]] = tuple(n for n, loss in LOSSES.items() if loss.domain == "real")
    _domain: ClassVar[str] = "real"
    _n_targets: int
    _outputs: Callable[[Any], np.ndarray]

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets of rows X, (n,) float64."""
        return self._outputs(X)[:, 0]

    def _learn_targets(self, y: Any) -> None:
        y = column_or_1d(y)
        if not np.issubdtype(y.dtype, np.number):
            raise DataError(
                f"a regressor needs numbers for targets; got labels such as {y[0]!r}. Use a classifier."
            )
        self._n_targets = 1
        self._provisional_mean = float(np.mean(y, dtype=np.float64))

    def _encode(self, y: np.ndarray) -> np.ndarray:
        return np.asarray(y, dtype=np.float64)[:, None] - self._provisional_mean

    def _target_shift(self) -> np.ndarray:
        return np.array([self._provisional_mean])
