"""What classifiers and regressors share of their targets: encoding, weights of rows, names of tasks."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from chimap import _arrays
from chimap._errors import InputError
from chimap._types import JSON, ArrayLike, Rows, Sometimes
from chimap.data.source import Source
from chimap.fit.result import HeldOutRows
from chimap.fit.targets import Codec
from chimap.fit.weights import checked_sample_weight
from chimap.moments import Targets
from chimap.selection.conformal import Conformal


class Encoding:
    """Targets encoded by a codec, which learns the classes or the range of the targets from all labels."""

    _y_checks: ClassVar[JSON]
    _codec_type: ClassVar[type[Codec]]
    _codec: Sometimes[Codec]

    def _learn_targets(self, y: ArrayLike) -> None:
        """Learn the classes, or the range of the targets, from all of y."""
        self._codec = self._codec_type.of(y)
        self._take_codec(self._codec)

    def _with_targets(self, source: Source) -> Source:
        """Return the source with labels of the kind that the estimator learns."""
        return source

    def _take_codec(self, codec: Any) -> None:
        """Keep what the codec has learned."""

    @abstractmethod
    def _take_held_out(self, held_out: HeldOutRows | None) -> None:
        """Learn how far outputs are from the truth, from outputs for rows that the machine has not seen."""

    def _encode(self, y: np.ndarray) -> Targets:
        """Return targets (n, t) minus ``_target_shift``."""
        return self._codec.encode(y)

    @abstractmethod
    def _class_weighed(
        self, y: np.ndarray, sample_weight: np.ndarray | None, is_batch: bool = False
    ) -> np.ndarray | None:
        """Return the weights of the rows (n,), with class weights included, or None."""

    def _counted(
        self, X: Rows, y: np.ndarray, sample_weight: ArrayLike | None, is_batch: bool = False
    ) -> tuple[Rows, np.ndarray, np.ndarray | None]:
        """Return the rows in memory with weight above 0, their labels, and their weights with class weights included.

        is_batch: whether more rows will come.
        """
        weights = checked_sample_weight(sample_weight, X.shape[0])
        if weights is not None and not weights.all():
            rows = np.flatnonzero(weights)
            X, y, weights = _arrays.take_rows(X, rows), y[rows], weights[rows]
        return X, y, self._class_weighed(y, weights, is_batch)

    @property
    def _n_targets(self) -> int:
        return self._codec.n_targets

    def _target_shift(self) -> np.ndarray:
        """Return a provisional mean of the targets, (t,)."""
        return self._codec.shift


def task_names(model: BaseEstimator) -> list[str] | None:
    """Return the names of the tasks or targets of a fitted model with several, else None.

    Without names, they are "task_0" and so on.
    """
    is_of_classes = hasattr(model, "classes_")
    if not (getattr(model, "multilabel_", False) if is_of_classes else model.n_outputs > 1):
        return None
    names = getattr(model, "task_names_", None)
    return [f"task_{i}" for i in range(model.n_outputs)] if names is None else [str(name) for name in names]


def known_conformal(model: BaseEstimator) -> Conformal:
    """Return what a model has learned from held-out rows. Raise ValueError if it has none."""
    conformal: Conformal | None = getattr(model, "_conformal", None)
    if conformal is None:
        raise InputError(
            f"this {type(model).__name__} has no outputs of held-out rows: fit it again, with more rows."
        )
    return conformal
