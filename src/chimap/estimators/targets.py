"""What classifiers and regressors share of their targets: encoding, weights of rows, names of tasks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from chimap import _arrays
from chimap._errors import InputError
from chimap._types import JSON, ArrayLike, Rows, Sometimes
from chimap.data import ArraySource
from chimap.data.doubts import doubts_at_fit, doubts_of_groups, first_look, say
from chimap.data.source import Source
from chimap.fit.result import HeldOutRows
from chimap.fit.rows import FEWEST_UNITS, sufficient_folds
from chimap.fit.targets import Codec
from chimap.fit.weights import checked_sample_weight, counts_in
from chimap.moments import Targets, fold_of_rows
from chimap.selection.base import USUAL_FOLDS
from chimap.selection.conformal import Conformal

_FEWEST_ROWS = 10  # with fewer rows, none are held out


class CountedRows(NamedTuple):
    """Rows in memory, their labels, their weights with class weights included, and how many equal rows each stands for.

    Weights and counts are None where all are 1.
    """

    X: Rows
    y: np.ndarray
    weights: np.ndarray | None
    counts: np.ndarray | None

    @property
    def mean_weight(self) -> float:
        """Mean weight of a row."""
        if self.weights is None:
            return 1.0
        n_rows = self.weights.size if self.counts is None else self.counts.sum()
        return float(self.weights.sum() / n_rows)


class Encoding:
    """Targets encoded by a codec, which learns the classes or the range of the targets from all labels."""

    _y_checks: ClassVar[JSON]
    _codec_type: ClassVar[type[Codec]]
    _codec: Sometimes[Codec]
    weights: str = "importance"  # also of models from files that do not say what weights are

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
    ) -> CountedRows:
        """Return the rows in memory with weight above 0, and say what looks doubtful of them.

        is_batch: whether more rows will come; nothing is said of one batch.
        """
        if not is_batch:
            self._say_doubts_of(X, y)
        weights = checked_sample_weight(sample_weight, X.shape[0])
        counts_in(self.weights, weights)
        if weights is not None and not weights.all():
            rows = np.flatnonzero(weights)
            X, y, weights = _arrays.take_rows(X, rows), y[rows], weights[rows]
        counts = counts_in(self.weights, weights)
        return CountedRows(X, y, self._class_weighed(y, weights, is_batch), counts)

    def _say_doubts_of(self, X: Rows, y: np.ndarray) -> None:
        """Say what looks doubtful of rows in memory to fit on."""
        source = ArraySource(X, y, "X", getattr(self, "feature_names_in_", None))
        rows, labels = first_look(source)
        say(doubts_at_fit(source, rows, labels, None, is_classifier(self)), stacklevel=4)
        say(doubts_of_groups(source, rows), stacklevel=4)

    @property
    def _n_targets(self) -> int:
        return self._codec.n_targets

    def _target_shift(self) -> np.ndarray:
        """Return a provisional mean of the targets, (t,)."""
        return self._codec.shift


def held_out_in_memory(
    rows: CountedRows, codec: Codec, outputs: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> HeldOutRows | None:
    """Return outputs of rows in memory by machines of other rows: of as many folds as are enough to calibrate by.

    ``outputs(learning, testing)`` returns those of the rows at the places ``testing`` by a machine of the others. None
    for fewer than ``_FEWEST_ROWS`` rows.
    """
    n = len(rows.y)
    if n < _FEWEST_ROWS:
        return None
    folds = fold_of_rows(0, n, USUAL_FOLDS, 0)
    is_rare = codec.rare(rows.y, n // USUAL_FOLDS, FEWEST_UNITS)
    held = [np.flatnonzero(folds == k) for k in sufficient_folds(folds, USUAL_FOLDS, is_rare, None)]
    found = [outputs(np.setdiff1d(np.arange(n), places), places) for places in held]
    places = np.concatenate(held)
    weights, counts = (None if part is None else part[places] for part in (rows.weights, rows.counts))
    return HeldOutRows(np.concatenate(found), rows.y[places], weights, counts=counts)


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
