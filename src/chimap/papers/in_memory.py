"""What classifiers share that learn from rows in memory and have no recipe.

``Encoding`` encodes their labels, weighs their rows and learns from their held-out rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from chimap import _arrays
from chimap._types import ArrayLike, ClassWeight, Rows, Sometimes
from chimap.data import ArraySource
from chimap.data.doubts import doubts_at_fit, doubts_of_groups, first_look, say
from chimap.estimators.targets import answers_of, without_shares
from chimap.machines.rows import FEWEST_UNITS, sufficient_folds
from chimap.models.answers import ClassAnswers, RealAnswers
from chimap.moments import Targets, fold_of_rows
from chimap.recipe.codecs import ClassCodec, Codec
from chimap.recipe.task import HeldOutRows, Task, classes_in, row_weights
from chimap.recipe.weights import checked_sample_weight, counts_in
from chimap.selection.base import USUAL_FOLDS
from chimap.selection.calibration import Calibration, TaskCalibration
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


class Encoding:
    """Classes of a classifier that learns from rows in memory, encoded by a codec, and answers learned from held-out
    rows. The answers are kept as attributes, as files hold them.
    """

    _codec: Sometimes[Codec]
    classes_: np.ndarray
    tables_: np.ndarray
    class_weight_: Sometimes[np.ndarray | None]
    _calibration: Sometimes[Calibration | TaskCalibration]
    _conformal: Sometimes[Conformal | None]
    class_weight: ClassWeight = None
    weights: str = "importance"  # also of models from files that do not say what weights are

    _outputs_with_shares = without_shares

    def _learn_targets(self, y: ArrayLike) -> None:
        """Learn the classes from all of y."""
        self._codec = ClassCodec.of(y)
        task = Task(self._codec)
        assert task.classes is not None
        self.classes_, self.multilabel_ = task.classes, task.is_multilabel

    def _take_held_out(self, held_out: HeldOutRows | None) -> None:
        """Learn how outputs become answers from outputs for rows that the machine has not seen."""
        answers = ClassAnswers.of(held_out, Task(self._codec, class_weight=self.class_weight_))
        self._calibration, self._conformal = answers.calibration, answers.conformal

    @property
    def feature_importances_(self) -> np.ndarray:
        """How far the function of each bin moves over its table (the root mean square of all scores), with sum 1."""
        moved = np.sqrt(np.square(self.tables_.std(axis=2)).sum(axis=0))
        total = moved.sum()
        return np.asarray(moved / total if total > 0 else moved)

    @property
    def _answers(self) -> ClassAnswers | RealAnswers:
        """From outputs to answers."""
        return answers_of(self)

    def _encode(self, y: np.ndarray) -> Targets:
        """Return targets (n, t), less the shift of the codec."""
        return self._codec.encode(y)

    def _counted(self, X: Rows, y: np.ndarray, sample_weight: ArrayLike | None, is_batch: bool = False) -> CountedRows:
        """Return the rows in memory with weight above 0, and say what looks doubtful of them. Sets ``class_weight_``.

        is_batch: whether more rows will come; nothing is said of one batch.
        """
        if not is_batch:
            source = ArraySource(X, y, "X", getattr(self, "feature_names_in_", None))
            seen, labels = first_look(source)
            say(doubts_at_fit(source, seen, labels, None, True), stacklevel=3)
            say(doubts_of_groups(source, seen), stacklevel=3)
        weights = checked_sample_weight(sample_weight, X.shape[0])
        counts_in(self.weights, weights)
        if weights is not None and not weights.all():
            rows = np.flatnonzero(weights)
            X, y, weights = _arrays.take_rows(X, rows), y[rows], weights[rows]
        counts, classes = counts_in(self.weights, weights), self.classes_ if is_batch else classes_in(y)
        weights, self.class_weight_ = row_weights(self.class_weight, None, classes, y, weights, is_batch=is_batch)
        return CountedRows(X, y, weights, counts)

    @property
    def _n_targets(self) -> int:
        return self._codec.n_targets


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
