"""From labels to the targets of a quadratic loss.

Labels (n,) are classes or one regression; a matrix (n, t) is t tasks of two classes each, 0 or 1, or t regressions. An
entry of it may be missing, NaN, and is then left out of that task alone: the sums of the features are shared by all
tasks, which differ in the products of features and targets (see ``solvers.observed`` for what missing entries take).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from chimap._types import ArrayLike, Scoring
from chimap._validation import DataError
from chimap.data.source import Source
from chimap.data.targets import clean_targets
from chimap.fit.precision import check_targets
from chimap.model_files import register
from chimap.moments import OneVersusAll, Targets
from chimap.selection.scoring import HeldOutScore, MeanScore, OutputScore


class Codec(Protocol):
    """What is learned of all labels y before any row is read."""

    @property
    def n_targets(self) -> int:
        """t."""
        ...

    @property
    def shift(self) -> np.ndarray:
        """A provisional mean of the targets, (t,)."""
        ...

    @property
    def has_gaps(self) -> bool:
        """Whether entries of the targets are missing."""
        ...

    @classmethod
    def of(cls, y: Any) -> Codec:
        """Learn from all of y. Raises DataError for labels that will not do."""
        ...

    def encode(self, y: np.ndarray) -> Targets:
        """Targets (n, t) less the shift; NaN where an entry is missing."""
        ...

    def score(self, y: np.ndarray, scoring: Scoring, sample_weight: np.ndarray | None = None) -> OutputScore:
        """The score of linear outputs for rows with these labels."""
        ...


@dataclass(frozen=True, eq=False)
class ClassCodec:
    """One versus all: a target of 1 for the class and -1 for the others; a single target for two classes."""

    classes: np.ndarray
    has_gaps: ClassVar[bool] = False

    @classmethod
    def of(cls, y: ArrayLike) -> Codec:
        """See ``Codec``; of a matrix it is a ``TaskCodec``."""
        return TaskCodec.of(y) if is_matrix(y) else cls.of_classes(y)

    @classmethod
    def of_classes(cls, y: ArrayLike) -> ClassCodec:
        """Of one label a row."""
        y = column_or_1d(y)
        check_classification_targets(y)
        classes = np.unique(y)
        if classes.size < 2:
            raise DataError(
                f"one class only: all labels are {classes.tolist()[0]!r}. A classifier needs at least two "
                "classes; check the labels, or the rows chosen for training."
            )
        return cls(classes)

    @property
    def n_targets(self) -> int:
        """See ``Codec``."""
        return 1 if self.classes.size == 2 else int(self.classes.size)

    @property
    def shift(self) -> np.ndarray:
        """0."""
        return np.zeros(self.n_targets)

    def encode(self, y: np.ndarray) -> Targets:
        """See ``Codec``. Raises DataError for a label that is none of the classes."""
        place = np.searchsorted(self.classes, y).clip(0, self.classes.size - 1)
        unknown = self.classes[place] != y
        if unknown.any():
            raise DataError(
                f"unknown label {y[unknown][:1].tolist()[0]!r}: the classes are "
                f"{', '.join(map(str, self.classes[:20]))}. Pass every class in classes= at the first partial_fit."
            )
        if self.n_targets == 1:
            return np.where(place == 1, 1.0, -1.0)[:, None]
        return OneVersusAll(place, self.classes.size)

    def score(self, y: np.ndarray, scoring: Scoring, sample_weight: np.ndarray | None = None) -> OutputScore:
        """See ``Codec``."""
        return HeldOutScore(y, self.classes, scoring, sample_weight)


@dataclass(frozen=True)
class TaskCodec:
    """Several tasks of two classes: targets of 1 and -1 for labels 1 and 0, NaN for those that are missing."""

    n_targets: int
    has_gaps: bool

    @classmethod
    def of(cls, y: ArrayLike) -> TaskCodec:
        """See ``Codec``."""
        y = np.asarray(y, dtype=np.float64)
        return cls(y.shape[1], bool(np.isnan(y).any()))

    @property
    def shift(self) -> np.ndarray:
        """0."""
        return np.zeros(self.n_targets)

    def encode(self, y: np.ndarray) -> np.ndarray:
        """See ``Codec``. Raises DataError for a label that is neither 0 nor 1."""
        bad = ~np.isnan(y) & (y != 0) & (y != 1)
        if bad.any():
            row, task = np.argwhere(bad)[0]
            raise DataError(
                f"y, row {row}, task {task}: {y[row, task]:g}. Labels of several tasks are 0, 1 or missing (NaN); give "
                "classes of one task as one column, or use a regressor."
            )
        return 2.0 * np.asarray(y, dtype=np.float64) - 1.0

    def score(self, y: np.ndarray, scoring: Scoring, sample_weight: np.ndarray | None = None) -> OutputScore:
        """See ``Codec``: the mean over the tasks."""
        return MeanScore(y, np.array([0, 1]), scoring, sample_weight)


@dataclass(frozen=True)
class RealCodec:
    """One real target, less its mean."""

    mean: float
    n_targets: ClassVar[int] = 1
    has_gaps: ClassVar[bool] = False

    @classmethod
    def of(cls, y: ArrayLike) -> Codec:
        """See ``Codec``; of a matrix it is a ``SeveralCodec``."""
        if is_matrix(y):
            return SeveralCodec.of(y)
        values: np.ndarray = column_or_1d(y)
        if not np.issubdtype(values.dtype, np.number):
            raise DataError(
                f"a regressor needs numbers for targets; got labels such as {values[:1].tolist()[0]!r}. Use a "
                "classifier."
            )
        with np.errstate(over="ignore"):
            mean = float(np.mean(values, dtype=np.float64))
        check_targets(values, mean)
        return cls(mean)

    @property
    def shift(self) -> np.ndarray:
        """The mean, (1,)."""
        return np.array([self.mean])

    def encode(self, y: np.ndarray) -> np.ndarray:
        """See ``Codec``."""
        return np.asarray(y, dtype=np.float64)[:, None] - self.mean

    def score(self, y: np.ndarray, scoring: Scoring, sample_weight: np.ndarray | None = None) -> OutputScore:
        """See ``Codec``."""
        return HeldOutScore(y, None, scoring, sample_weight)


@dataclass(frozen=True, eq=False)
class SeveralCodec:
    """Several real targets, each less the mean of its entries; NaN where one is missing."""

    means: np.ndarray
    has_gaps: bool

    @classmethod
    def of(cls, y: ArrayLike) -> SeveralCodec:
        """See ``Codec``."""
        y = np.asarray(y, dtype=np.float64)
        missing = np.isnan(y)
        counts = np.maximum((~missing).sum(axis=0), 1)
        with np.errstate(over="ignore"):
            means = np.where(missing, 0, y).sum(axis=0) / counts
        for task in range(means.size):
            check_targets(y[:, task], means[task])
        return cls(means, bool(missing.any()))

    @property
    def n_targets(self) -> int:
        """See ``Codec``."""
        return int(self.means.size)

    @property
    def shift(self) -> np.ndarray:
        """The means, (t,)."""
        return self.means

    def encode(self, y: np.ndarray) -> np.ndarray:
        """See ``Codec``."""
        return np.asarray(y, dtype=np.float64) - self.means

    def score(self, y: np.ndarray, scoring: Scoring, sample_weight: np.ndarray | None = None) -> OutputScore:
        """See ``Codec``: the mean over the targets."""
        return MeanScore(y, None, scoring, sample_weight)


def is_matrix(y: ArrayLike) -> bool:
    """Whether labels are of several tasks."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return len(shape) == 2 and shape[1] > 1


def check_tasks(source: Source) -> None:
    """Raise DataError for a task that no row has a label of, before anything is learned of the others."""
    y = source.labels()
    if y is None or y.ndim == 1 or y.dtype.kind != "f":
        return
    empty = np.flatnonzero(np.isnan(y).all(axis=0))
    if empty.size:
        task = empty[0] if source.task_names is None else repr(source.task_names[empty[0]])
        raise DataError(
            f"{source.name}: task {task} has no label in any of {y.shape[0]} rows. Leave it out, or check how missing "
            "labels are marked."
        )


def checked_batch(y: ArrayLike, codec: Codec | None) -> ArrayLike:
    """Labels of a batch: those of one task as they come, a matrix as float64. codec: of the batches before, or None.

    Raises DataError for another number of tasks than before.
    """
    n_tasks = np.shape(y)[1] if is_matrix(y) else 1
    if codec is not None and isinstance(codec, TaskCodec | SeveralCodec) and n_tasks != codec.n_targets:
        raise DataError(f"y has {n_tasks} task(s), and the batches before have {codec.n_targets}.")
    if codec is not None and n_tasks > 1 and not isinstance(codec, TaskCodec | SeveralCodec):
        raise DataError(f"y has {n_tasks} tasks, and the batches before have one label a row.")
    if n_tasks == 1:
        return y
    return clean_targets(y, n_tasks, "y")


register(ClassCodec, RealCodec, TaskCodec, SeveralCodec)
