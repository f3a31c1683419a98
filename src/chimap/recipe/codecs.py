"""Codecs: from labels to the targets of a quadratic loss.

The recipe names the codec. It learns from all labels before any row is read, encodes the labels of each chunk, and
gives the score of linear outputs.

Labels (n,) are classes or one regression. A matrix (n, t) is t tasks, each with two classes 0 and 1, or t regressions.
An entry of it may be missing (NaN) and is then left out of its task only: all tasks share the sums of the features and
differ in the products of features and targets (``solvers.observed`` describes what missing entries take).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import ArrayLike, Scoring
from chimap._unicode import composed_texts
from chimap._validation import DataError
from chimap.data.label_kinds import label_type, places_among
from chimap.data.labels import clean_targets
from chimap.data.source import Source
from chimap.losses import Loss, Square
from chimap.model_files import register
from chimap.moments import OneVersusAll, Targets
from chimap.normalizations import KnownTargets
from chimap.selection.scoring import HeldOutScore, LossScore, MeanScore, OutputScore
from chimap.selection.structures import Nominal, Structure

_OF_TWO_CLASSES = ("f1", "precision", "recall", "jaccard")
_OF_RELATED_CLASSES = {"weighted_kappa": Message("{ordered}"), "neg_mean_tree_distance": Message("{label_tree}")}
_LEAST_TARGET, _LARGEST_TARGET = 1e-30, 1e30  # float32 holds products of these, summed over very many rows
_ROUNDING = 1e-12  # deviations up to this part of the largest target are rounding errors of a constant


class Codec(Protocol):
    """What is learned from all labels before any row is read.

    Attributes
    ----------
    has_noise : bool
        Whether targets are real numbers, whose noise about the outputs has a variance.
    """

    has_noise: ClassVar[bool]

    @property
    def n_targets(self) -> int:
        """Number of targets, t."""
        ...

    @property
    def shift(self) -> np.ndarray:
        """A provisional mean of the targets, (t,), in their units."""
        ...

    @property
    def units(self) -> np.ndarray | None:
        """Units that the targets are divided by, (t,), and outputs multiplied by; None for 1."""
        ...

    def of(self, y: Any) -> Codec:
        """Return the codec that is learned from these labels. Raises DataError if they cannot be used."""
        ...

    def encode(self, y: np.ndarray) -> Targets:
        """Return targets (n, t) in their units, less the shift; NaN where an entry is missing."""
        ...

    def score(self, y: np.ndarray, scoring: Scoring, sample_weight: np.ndarray | None = None) -> OutputScore:
        """Return the score of linear outputs, in the units of the labels, for rows with these labels."""
        ...

    def rare(self, y: np.ndarray, n_drawn: int, fewest: int) -> np.ndarray:
        """Return whether each row (n,) has a rare label: ``n_drawn`` rows at random have fewer than ``fewest``."""
        ...


def known_targets(codec: Codec, y: np.ndarray, hidden: np.ndarray | None) -> KnownTargets:
    """Return the targets of labels y (n,) or (n, t) for a normalisation, but for those of ``hidden`` rows (n,)."""

    def at(rows: slice) -> np.ndarray:
        targets = np.array(codec.encode(y[rows]), dtype=np.float64)
        if hidden is not None:
            targets[hidden[rows]] = np.nan
        return targets

    return KnownTargets(at, codec.n_targets, isinstance(codec, ClassCodec | TaskCodec))


@dataclass(frozen=True, eq=False)
class ClassCodec:
    """One-versus-all targets: 1 for the class and -1 for the others; a single target for two classes.

    Parameters
    ----------
    classes : array of shape (k,)
        The classes, as their structure arranges them: sorted, if they are nominal.
    positive : int or None, default=None
        Place of the positive one of two classes, if it was named.
    structure : Structure, default=Nominal()
        How the classes are related.
    """

    has_noise: ClassVar[bool] = False
    units: ClassVar[None] = None
    classes: np.ndarray
    positive: int | None = None
    structure: Structure = field(default_factory=Nominal)

    @classmethod
    def of(cls, y: ArrayLike) -> Codec:
        """Return the codec of these labels; a matrix gets a ``TaskCodec``."""
        return TaskCodec.of(y) if is_matrix(y) else cls.of_classes(y)

    @classmethod
    def of_classes(cls, y: ArrayLike) -> ClassCodec:
        """Return the codec of one label for each row."""
        y = composed_texts(column_or_1d(y))
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
        """Zeros, (t,)."""
        return np.zeros(self.n_targets)

    def encode(self, y: np.ndarray) -> Targets:
        """See ``Codec``. Raises DataError for a label that is none of the classes."""
        place = places_among(y, self.classes)
        unknown = place < 0
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
        return self.structure.score(HeldOutScore(y, self.classes, scoring, sample_weight, self.positive))

    def rare(self, y: np.ndarray, n_drawn: int, fewest: int) -> np.ndarray:
        """See ``Codec``."""
        place = places_among(y, self.classes)
        counts = np.bincount(place, minlength=self.classes.size)
        return _are_few(counts, len(y), self.classes.size, n_drawn, fewest)[place]


@dataclass(frozen=True)
class TaskCodec:
    """Targets of several tasks of two classes: 1 and -1 for the labels 1 and 0, NaN for missing ones.

    Parameters
    ----------
    n_targets : int
        Number of tasks.
    has_gaps : bool
        Whether entries are missing.
    """

    has_noise: ClassVar[bool] = False
    units: ClassVar[None] = None
    n_targets: int
    has_gaps: bool

    @classmethod
    def of(cls, y: ArrayLike) -> TaskCodec:
        """See ``Codec``."""
        y = np.asarray(y, dtype=np.float64)
        return cls(y.shape[1], bool(np.isnan(y).any()))

    @property
    def shift(self) -> np.ndarray:
        """Zeros, (t,)."""
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

    def rare(self, y: np.ndarray, n_drawn: int, fewest: int) -> np.ndarray:
        """See ``Codec``: a label that is rare in its task."""
        is_rare = np.zeros(len(y), dtype=bool)
        for label in (0, 1):
            has_label = y == label
            is_rare |= has_label @ _are_few(has_label.sum(axis=0), (~np.isnan(y)).sum(axis=0), 2, n_drawn, fewest)
        return is_rare


@dataclass(frozen=True)
class RealCodec:
    """One real target, less its mean.

    Parameters
    ----------
    mean : float
        Mean of the target.
    """

    has_noise: ClassVar[bool] = True
    n_targets: ClassVar[int] = 1
    units: ClassVar[None] = None
    mean: float

    @classmethod
    def of_loss(cls, loss: str | Loss) -> type[RealCodec]:
        """Return the codec for a loss: one that keeps the units of the targets where widths are given in them."""
        return cls if isinstance(loss, str) or loss == Square() else RealCodecInUnits

    @classmethod
    def of(cls, y: ArrayLike) -> Codec:
        """Return the codec of these targets; a matrix gets a ``SeveralCodec``."""
        if is_matrix(y):
            return SeveralCodec.of(y)
        values: np.ndarray = column_or_1d(y)
        if label_type(values) not in ("numbers", "whole numbers"):
            raise DataError(
                f"a regressor needs numbers as targets; got labels such as {values[:1].tolist()[0]!r}. Use a "
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

    def rare(self, y: np.ndarray, n_drawn: int, fewest: int) -> np.ndarray:
        """See ``Codec``: no target is rare."""
        return np.zeros(len(y), dtype=bool)


@dataclass(frozen=True)
class RealCodecInUnits(RealCodec):
    """Real targets in their own units, for losses whose widths are in these units."""

    @classmethod
    def of(cls, y: ArrayLike) -> Codec:
        """Return the codec of these targets; a matrix gets a ``SeveralCodec`` without units."""
        codec = super().of(y)
        return replace(codec, scales=None) if isinstance(codec, SeveralCodec) else codec


@dataclass(frozen=True, eq=False)
class SeveralCodec:
    """Several real targets, each less the mean of its entries and over their deviation; NaN where an entry is missing.

    All targets share one strength and the score that chooses it: divided by their deviations, none of them decides by
    its units.

    Parameters
    ----------
    means : array of shape (t,)
        Means of the targets.
    has_gaps : bool
        Whether entries are missing.
    scales : array of shape (t,) or None, default=None
        Standard deviations of the targets, 1 for a constant one; None for 1, as in files from before they were added.
    """

    has_noise: ClassVar[bool] = True
    means: np.ndarray
    has_gaps: bool
    scales: np.ndarray | None = None

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
        scales = np.sqrt(np.where(missing, 0, np.square(y - means)).sum(axis=0) / counts)
        return cls(means, bool(missing.any()), np.where(scales > 0, scales, 1.0))

    @property
    def n_targets(self) -> int:
        """See ``Codec``."""
        return int(self.means.size)

    @property
    def shift(self) -> np.ndarray:
        """The means in units of the deviations, (t,)."""
        return self.means if self.scales is None else self.means / self.scales

    @property
    def units(self) -> np.ndarray | None:
        """See ``Codec``: the deviations."""
        return self.scales

    def encode(self, y: np.ndarray) -> np.ndarray:
        """See ``Codec``."""
        centred = np.asarray(y, dtype=np.float64) - self.means
        return centred if self.scales is None else centred / self.scales

    def score(self, y: np.ndarray, scoring: Scoring, sample_weight: np.ndarray | None = None) -> OutputScore:
        """See ``Codec``: the mean over the targets."""
        return MeanScore(y, None, scoring, sample_weight)

    def rare(self, y: np.ndarray, n_drawn: int, fewest: int) -> np.ndarray:
        """See ``Codec``: no target is rare."""
        return np.zeros(len(y), dtype=bool)


@dataclass(frozen=True, eq=False)
class LossCodec:
    """Real targets of a loss that has a score of its own, such as counts, or a target once for each of its quantiles.

    Parameters
    ----------
    inner : RealCodec or SeveralCodec
        Encodes the targets. The loss of counts depends on the targets and not on residuals, so they have no shift.
    loss : Loss
        The loss.
    """

    has_noise: ClassVar[bool] = False
    inner: RealCodec | SeveralCodec
    loss: Loss

    @classmethod
    def of_targets(cls, y: ArrayLike, loss: Loss) -> LossCodec:
        """Learn from all targets. Raises DataError for targets that the loss does not take."""
        inner = SeveralCodec.of(y) if is_matrix(y) else RealCodec.of(y)
        assert isinstance(inner, RealCodec | SeveralCodec)
        if loss.n_scores > 1 and inner.n_targets > 1:
            raise DataError(
                f"y has {inner.n_targets} targets, and several quantiles are predicted of one: fit the targets one by "
                "one, or give one quantile."
            )
        if loss.domain == "count":
            values = np.asarray(y, dtype=np.float64)
            if (values < 0).any():
                row = int(np.argwhere(values < 0)[0][0])
                raise DataError(
                    Message(
                        "y, row {}: {:g} is negative, and {loss='poisson'} takes counts and rates from 0 on. Use "
                        "{loss='square'} for targets of both signs.",
                        row,
                        values[values < 0][0],
                    )
                )
            zeros = np.zeros(inner.n_targets)
            has_gaps = bool(np.isnan(values).any())
            return cls(RealCodec(0.0) if inner.n_targets == 1 else SeveralCodec(zeros, has_gaps), loss)
        return cls(inner, loss)

    def of(self, y: ArrayLike) -> LossCodec:
        """Return the codec of other rows of the same targets."""
        return LossCodec.of_targets(y, self.loss)

    @property
    def n_targets(self) -> int:
        """See ``Codec``: the targets, once for each score of the loss."""
        return self.inner.n_targets * self.loss.n_scores

    @property
    def shift(self) -> np.ndarray:
        """See ``Codec``."""
        return np.tile(self.inner.shift, self.loss.n_scores)

    @property
    def units(self) -> np.ndarray | None:
        """See ``Codec``."""
        units = self.inner.units
        return None if units is None else np.tile(units, self.loss.n_scores)

    def encode(self, y: np.ndarray) -> np.ndarray:
        """See ``Codec``."""
        return np.tile(self.inner.encode(y), (1, self.loss.n_scores))

    def score(self, y: np.ndarray, scoring: Scoring, sample_weight: np.ndarray | None = None) -> OutputScore:
        """See ``Codec``: the share of the deviance that is explained."""
        return LossScore(np.asarray(y, dtype=np.float64), self.loss, scoring, sample_weight)

    def rare(self, y: np.ndarray, n_drawn: int, fewest: int) -> np.ndarray:
        """See ``Codec``: no target is rare."""
        return np.zeros(len(y), dtype=bool)


def _are_few(counts: np.ndarray, n_rows: int | np.ndarray, n_classes: int, n_drawn: int, fewest: int) -> np.ndarray:
    """Return whether classes of so many rows are few in a draw, and fewer than half of what they would equally be."""
    expected = counts * np.minimum(1.0, n_drawn / np.maximum(n_rows, 1))
    return np.asarray((expected < fewest) & (2 * n_classes * counts < n_rows))


def is_matrix(y: ArrayLike) -> bool:
    """Whether labels have a column for each of several tasks."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return len(shape) == 2 and shape[1] > 1


def with_positive(codec: Codec, label: object) -> Codec:
    """Return the codec with a label as the positive one of two classes. Raise ValueError where it is none."""
    if not isinstance(codec, ClassCodec) or codec.classes.size != 2:
        came = f"y has {codec.classes.size}" if isinstance(codec, ClassCodec) else "y has numbers or several tasks"
        raise InputError(Message("{positive=} names one of two classes, but {}. Leave it out.", label, came))
    place = int(places_among(np.asarray([label]), codec.classes)[0])
    if place < 0:
        first, second = codec.classes.tolist()
        raise InputError(Message("{positive=} is none of the classes {!r} and {!r}.", label, first, second))
    return replace(codec, positive=place)


def with_structure(codec: Codec, structure: Structure) -> Codec:
    """Return the codec with its classes as a structure arranges them. Raise ValueError where it has other targets."""
    if not isinstance(codec, ClassCodec):
        raise InputError(
            Message(
                "{ordered} and {label_tree} are for one column of classes, and y has several tasks. Fit the tasks one "
                "by one."
            )
        )
    classes = structure.arranged(codec.classes)
    return replace(codec, classes=classes, structure=structure.of_classes(classes))


def check_scoring(scoring: Scoring, codec: Codec) -> None:
    """Raise ValueError for a score of the positive class, or of related classes, where there are none of these."""
    own = codec.structure.scorers if isinstance(codec, ClassCodec) else ()
    if scoring in _OF_RELATED_CLASSES and scoring not in own:
        raise InputError(
            Message(
                "{scoring=} is of classes that are related, and nothing says how: give {} too.",
                scoring,
                _OF_RELATED_CLASSES[scoring],
            )
        )
    if isinstance(codec, ClassCodec) and codec.classes.size > 2 and scoring in _OF_TWO_CLASSES:
        raise InputError(
            Message(
                "{scoring=} is of the positive one of two classes, and y has {}: use {scoring='f1_macro'}, the mean "
                "over the classes, or the like.",
                scoring,
                codec.classes.size,
            )
        )


def check_tasks(source: Source) -> None:
    """Raise DataError if a task has no label in any row, before anything is learned about the others."""
    y = source.labels()
    if y is None or y.ndim == 1:
        return
    empty = np.flatnonzero(np.isnan(y).all(axis=0))
    if empty.size:
        task = empty[0] if source.task_names is None else repr(source.task_names[empty[0]])
        raise DataError(
            f"{source.name}: task {task} has no label in any of {y.shape[0]} rows. Leave it out, or check how missing "
            "labels are marked."
        )


def check_targets(y: np.ndarray, mean: np.ndarray | float) -> None:
    """Raise DataError if sums of products cannot hold the deviations of targets from their mean.

    ``y`` holds the targets of a regression, NaN where one is missing. Deviations that are rounding errors of a constant
    count as none.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        largest = float(np.nanmax(np.abs(y - mean), initial=0.0))
    top = float(np.nanmax(np.abs(y), initial=0.0))
    if _LEAST_TARGET <= largest <= _LARGEST_TARGET or (largest < 1 and largest <= _ROUNDING * top):
        return
    what, limit = ("large", f"above {_LARGEST_TARGET:g}") if largest > 1 else ("small", f"below {_LEAST_TARGET:g}")
    raise DataError(
        f"y: targets deviate from their mean by {largest:.2g} at most, {limit}, which is too {what} for sums of "
        f"products. Give them in another unit, y / {10.0 ** np.floor(np.log10(top)):.0e}, and multiply predictions by "
        "it."
    )


def check_varies(y: np.ndarray) -> None:
    """Raise DataError if the targets of a regression, (n,) or (n, t), are the same in all of several rows."""
    if y.shape[0] > 1 and np.array_equal(y, np.broadcast_to(y[0], y.shape), equal_nan=True):
        shown = ", ".join(f"{value:g}" for value in np.ravel(y[0])[:4].tolist())
        raise DataError(
            f"y: every target is {shown}, so there is nothing to predict. Check which array or column the targets come "
            "from."
        )


def checked_batch(y: ArrayLike, codec: Codec | None) -> ArrayLike:
    """Return the labels of a batch: those of one task as they are, a matrix as float64.

    ``codec`` is that of the earlier batches, or None. Raise DataError if they had another number of tasks.
    """
    n_tasks = np.shape(y)[1] if is_matrix(y) else 1
    if codec is not None and isinstance(codec, TaskCodec | SeveralCodec) and n_tasks != codec.n_targets:
        raise DataError(f"y has {n_tasks} task(s), but the batches before have {codec.n_targets}.")
    if codec is not None and n_tasks > 1 and not isinstance(codec, TaskCodec | SeveralCodec):
        raise DataError(f"y has {n_tasks} tasks, but the batches before have one label for each row.")
    if n_tasks == 1:
        return y
    return clean_targets(y, n_tasks, "y")


register(ClassCodec, RealCodec, TaskCodec, SeveralCodec, LossCodec)
