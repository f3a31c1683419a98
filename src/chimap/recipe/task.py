"""The targets of a fit: how labels become numbers, what classes and rows weigh, and which rows were held out.

``Task.of`` looks at all labels before a row is read. The task and the weighted source are all that a fit knows of the
labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import ArrayLike, ClassWeight, Scoring
from chimap._validation import DataError
from chimap.data.label_kinds import as_array, is_missing, is_text, places_among
from chimap.data.labels import check_labels
from chimap.data.source import Source
from chimap.data.views import ChosenRows
from chimap.losses import CATALOGUE, Loss, Square
from chimap.moments import as_counts
from chimap.recipe.codecs import (
    ClassCodec,
    Codec,
    LossCodec,
    RealCodec,
    TaskCodec,
    check_scoring,
    check_tasks,
    check_varies,
    is_matrix,
    with_positive,
    with_structure,
)
from chimap.recipe.recipe import Recipe
from chimap.recipe.weights import (
    checked_class_weight,
    class_weights,
    weights_of_entries,
    weights_of_tasks,
    with_weights,
)
from chimap.selection.calibration import best_threshold, checked_threshold
from chimap.selection.structures import Nominal, Structure

_RARE = 0.2  # share of the rarer of two classes below which accuracy says little
_FEWEST_OF_CLASS = 4  # rows of the rarer class: one for every fold of a race


@dataclass(frozen=True, eq=False)
class Task:
    """The targets of a fit.

    Parameters
    ----------
    codec : Codec
        How labels or targets become numbers.
    names : array of shape (t,) or None, default=None
        Names of several tasks or targets.
    class_weight : array of shape (classes,) or (t, 2), or None, default=None
        Weights of the classes, or of the labels of tasks.
    has_gaps : bool, default=False
        Whether several targets need sums of their own: entries are missing, or classes have weights.
    has_objects : bool, default=False
        Whether labels came as Python objects.
    threshold : str, float or None, default=None
        What the threshold of two classes is to be best for.
    """

    codec: Codec
    names: np.ndarray | None = None
    class_weight: np.ndarray | None = None
    has_gaps: bool = False
    has_objects: bool = False
    threshold: str | float | None = None

    @classmethod
    def of(
        cls, source: Source, recipe: Recipe, groups: ArrayLike | None = None
    ) -> tuple[Task, Source, np.ndarray | None]:
        """Return the task, the rows that count, with class weights in their weights, and the groups of these rows.

        Raises
        ------
        DataError
            If labels cannot be used: of several tasks where one is taken, of one class only, of a task without labels.
        ValueError
            If weights of classes, or the threshold, are invalid.
        """
        y = source.labels()
        assert y is not None
        if y.ndim == 2 and (recipe.learner is not None or recipe.solver is not None):  # the estimator names its solver
            raise DataError(
                f"{recipe.estimator} takes one label per row, shape ({source.n_rows},); got {y.shape}. Fit one model "
                "per column, or use HistogramClassifier or HistogramRegressor, which take several tasks at once."
            )
        check_tasks(source)
        names = None if source.task_names is None else np.array(source.task_names)
        if not isinstance(loss := recipe.requested_loss, str) and loss.n_scores > 1:
            names = np.array(loss.score_names)
        has_gaps = y.ndim == 2 and (recipe.class_weight is not None or bool(np.isnan(y).any()))
        source, groups = rows_that_count(source, groups)
        y = source.labels()
        assert y is not None
        classes = classes_in(y, recipe.structure) if recipe.is_classifier else None
        weights, of_classes = row_weights(recipe.class_weight, recipe.threshold, classes, y, source.weights, names)
        task = cls(codec_of(recipe, y), names, of_classes, has_gaps, source.has_object_labels, recipe.threshold)
        return (task, source if weights is source.weights else with_weights(source, weights, source.counts), groups)

    @classmethod
    def of_batches(cls, recipe: Recipe, y: np.ndarray, first: Source) -> Task:
        """Return the task of rows that come in batches: of all labels, or those of the first batch."""
        task = cls(codec_of(recipe, y), threshold=recipe.threshold)
        rows, _ = rows_that_count(first, None)
        labels = rows.labels()
        assert labels is not None
        _, of_classes = row_weights(
            recipe.class_weight, recipe.threshold, task.classes, labels, rows.weights, None, is_batch=True
        )
        return replace(task, class_weight=of_classes)

    @property
    def n_targets(self) -> int:
        """Number of targets, t."""
        return self.codec.n_targets

    def codec_of(self, y: np.ndarray) -> Codec:
        """Return how labels of some of the rows become numbers: it knows no class, and no mean, that is not theirs."""
        codec = self.codec.of(y)
        codec = with_structure(codec, self.structure) if isinstance(self.codec, ClassCodec) else codec
        return codec if self.positive is None else with_positive(codec, self.positive_class)

    @property
    def positive(self) -> int | None:
        """Place of the positive one of two classes, if it was named."""
        return self.codec.positive if isinstance(self.codec, ClassCodec) else None

    @property
    def positive_class(self) -> object:
        """The positive one of two classes, if it was named; else None."""
        place, classes = self.positive, self.classes
        return None if place is None or classes is None else classes[place]

    @property
    def structure(self) -> Structure:
        """How the classes are related."""
        return self.codec.structure if isinstance(self.codec, ClassCodec) else Nominal()

    @property
    def is_multilabel(self) -> bool:
        """Whether targets are several tasks of two classes."""
        return isinstance(self.codec, TaskCodec)

    @property
    def classes(self) -> np.ndarray | None:
        """The classes, or the numbers of the tasks; None for real targets."""
        codec = self.codec
        if isinstance(codec, TaskCodec):
            return np.arange(codec.n_targets)
        if not isinstance(codec, ClassCodec):
            return None
        return codec.classes.astype(object) if self.has_objects and is_text(codec.classes) else codec.classes

    def weighed(self, batch: Source, recipe: Recipe) -> Source:
        """Return the rows of a batch that count, with the weights of classes that were given by label."""
        batch, _ = rows_that_count(batch, None)
        y = batch.labels()
        assert y is not None
        weights, _ = row_weights(
            recipe.class_weight, recipe.threshold, self.classes, y, batch.weights, self.names, is_batch=True
        )
        return batch if weights is batch.weights else with_weights(batch, weights, batch.counts)


def codec_of(recipe: Recipe, y: np.ndarray) -> Codec:
    """Return how the labels of a recipe become numbers.

    Raise DataError for labels that its loss does not take, and ValueError for a positive class, a structure or a score
    that it has not.
    """
    loss = recipe.requested_loss
    shown = CATALOGUE[loss]() if isinstance(loss, str) and loss in CATALOGUE else loss
    codec: Codec
    if recipe.is_classifier:
        codec = ClassCodec.of(y)
        codec = codec if recipe.structure is None else with_structure(codec, recipe.structure)
    elif isinstance(shown, Loss) and shown.score_name != Square.score_name:
        codec = LossCodec.of_targets(y, shown)
    else:
        codec = RealCodec.of_loss(loss).of(y)
    check_scoring(recipe.scoring, codec)
    return codec if recipe.positive is None else with_positive(codec, recipe.positive)


# --- weights


def rows_that_count(source: Source, groups: ArrayLike | None) -> tuple[Source, np.ndarray | None]:
    """Return the rows with weight above 0, and their groups, numbered from 0."""
    numbers, weights = None if groups is None else checked_groups(groups, source.n_rows), source.weights
    if weights is None or (weights > 0).all():
        return source, numbers
    places, y = np.flatnonzero(weights > 0), source.labels()
    source = ChosenRows(source, places, None if y is None else y[places])
    return source, None if numbers is None else numbers[places]


def checked_groups(groups: ArrayLike | None, n_rows: int) -> np.ndarray:
    """Return the groups of the rows as numbers from 0, (n_rows,); raise DataError if there are not two or more."""
    labels = as_array(groups)
    if labels.shape != (n_rows,):
        raise DataError(
            Message(
                "{groups} must have one entry for each of the {} rows that have labels; got {}.", n_rows, labels.shape
            )
        )
    missing = np.array([is_missing(group) for group in labels.tolist()], dtype=bool)
    if missing.any():
        raise DataError(
            f"groups, row {int(missing.argmax())}: missing. Every row needs a group: give rows without one a name of "
            "their own, or leave them out."
        )
    names, numbers = np.unique(check_labels(labels, n_rows, "groups"), return_inverse=True)
    if names.size < 2:
        raise DataError("all rows are of one group: none can be held out. Leave groups out.")
    return np.asarray(numbers)


def classes_in(y: np.ndarray, structure: Structure | None = None) -> np.ndarray:
    """Return the classes among labels, or the labels 0 and 1 of several tasks. Raise DataError for a single class."""
    if is_matrix(y):
        return np.array([0, 1])
    classes = ClassCodec.of_classes(y).classes
    return classes if structure is None else structure.arranged(classes)


def row_weights(
    class_weight: ClassWeight,
    threshold: str | float | None,
    classes: np.ndarray | None,
    y: np.ndarray,
    sample_weight: np.ndarray | None,
    names: Sequence[str] | np.ndarray | None = None,
    *,
    is_batch: bool = False,
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the weights of the rows times those of their classes, and the weights of the classes.

    See ``weighed_by_class``. classes: None for real targets, which have neither weights of classes nor a threshold.
    is_batch: whether the rows are a batch, which shows only some of the labels.
    """
    if classes is None:
        if not is_batch:  # those of a batch may be equal
            check_varies(y)
        return sample_weight, None
    if is_batch:
        check_of_batch(class_weight, y)
    check_threshold(threshold, y, classes.size)
    return weighed_by_class(class_weight, classes, y, sample_weight, names)


def check_of_batch(class_weight: ClassWeight, y: np.ndarray) -> None:
    """Raise ValueError for class weights that a batch of rows cannot have, as it shows only some of the labels."""
    if isinstance(class_weight, str):
        checked_class_weight(class_weight)
        raise InputError(
            Message(
                "{class_weight='balanced'} needs the labels of all rows, and partial_fit sees only a batch of "
                "them. Give weights by label: compute_class_weight('balanced', classes=classes, y=y) of "
                "sklearn.utils."
            )
        )
    if is_matrix(y) and class_weight is not None:
        raise InputError(
            Message(
                "{class_weight} with several tasks needs separate sums for each task, and partial_fit adds up "
                "one set of sums for all: use fit or fit_source, or give {sample_weight}."
            )
        )


def weighed_by_class(
    class_weight: ClassWeight,
    classes: np.ndarray,
    y: np.ndarray,
    sample_weight: np.ndarray | None,
    names: Sequence[str] | np.ndarray | None,
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the weights of the rows times those of their classes, and the weights of the classes or None.

    They have shapes (n,) and (k,), or (n, t) and (t, 2) for the labels 0 and 1 of several tasks with these names.
    Without weights of classes, those of the rows are returned as they are. Raise DataError for a label that is not a
    class.
    """
    if class_weight is None:
        return sample_weight, None
    if is_matrix(y):
        Y = np.asarray(y, dtype=np.float64)
        of_tasks = weights_of_tasks(class_weight, Y, sample_weight, names)
        return weights_of_entries(of_tasks, Y, sample_weight), of_tasks
    of_classes = class_weights(class_weight, classes, y, sample_weight)
    ClassCodec(classes).encode(y)  # raises for a label that is not a class
    class_factors = of_classes[places_among(y, classes)]
    return (class_factors if sample_weight is None else sample_weight * class_factors), of_classes


# --- rows that were held out


@dataclass(frozen=True)
class HeldOutRows:
    """Outputs of rows by machines that have not seen them.

    Parameters
    ----------
    outputs : array of shape (m, t)
        The outputs.
    y : array of shape (m,) or (m, t)
        Labels or targets of the rows.
    weights : array of shape (m,) or (m, t), or None, default=None
        Weights of the rows, or of their targets.
    noise : array of shape (t,) or None, default=None
        Variance of the targets that remains where the machine is certain; None where it is not known.
    counts : array of shape (m,) or None, default=None
        How many equal rows each row stands for; None for one.
    groups : array of shape (m,) or None, default=None
        Groups of the rows, which are independent of each other; None if the rows are.
    """

    outputs: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None = None
    noise: np.ndarray | None = None
    counts: np.ndarray | None = None
    groups: np.ndarray | None = None

    def counted(self, weights: np.ndarray | None) -> np.ndarray | None:
        """Return weights (m,) or (m, t) of the rows that add up to the number of independent rows or groups.

        None if all rows count once.
        """
        if weights is None and self.groups is None:
            return None
        weights = np.ones(self.outputs.shape[0]) if weights is None else weights
        return as_counts(weights, self.counts, self.groups)

    def counted_by_class(self, weights: np.ndarray | None, places: np.ndarray) -> np.ndarray | None:
        """Return weights (m, t) that add up to the number of independent rows, or groups, of each class of each task.

        ``weights`` (m,) are those of ``counts_of``, ``places`` (m, t) the indices of the classes. None if all rows
        count once.
        """
        if weights is None:
            return None
        out = np.zeros(places.shape)
        for task, k in product(range(places.shape[1]), np.unique(places)):
            rows = places[:, task] == k
            parts = (None if each is None else each[rows] for each in (self.counts, self.groups))
            out[rows, task] = as_counts(weights[rows], *parts)
        return out


def counts_of(held_out: HeldOutRows | None, class_weight: np.ndarray | None, classes: np.ndarray) -> np.ndarray | None:
    """Return how many independent rows each held-out row counts as; None if each is one.

    Weights of classes change what is learned, not what is counted. class_weight: the learned weights of the classes
    (k,), or of the labels of tasks (t, 2), or None.
    """
    if held_out is None or held_out.weights is None:
        return None if held_out is None else held_out.counted(None)
    weights = held_out.weights
    if class_weight is not None and weights.ndim == 2:
        class_factors = np.where(held_out.y == 1, class_weight[:, 1], class_weight[:, 0])
        weights = np.nanmean(np.where(np.isnan(held_out.y), np.nan, weights / class_factors), axis=1)
    elif class_weight is not None:
        weights = weights / class_weight[places_among(held_out.y, classes)]
    return held_out.counted(weights)


def check_threshold(threshold: str | float | None, y: np.ndarray, n_classes: int) -> None:
    """Raise ValueError for a threshold that is none, or that is given for several tasks or not two classes."""
    checked_threshold(threshold)
    if threshold is None:
        return
    if is_matrix(y):
        raise InputError("threshold is for a single task: leave it out, or fit the tasks one by one.")
    if n_classes != 2:
        raise InputError(
            Message(
                "{threshold=} needs two classes, and y has {}. Leave {threshold} out; {class_weight='balanced'} "
                "makes up for rare classes.",
                threshold,
                n_classes,
            )
        )


def chosen_threshold(
    threshold: str | float,
    held_out: HeldOutRows | None,
    classes: np.ndarray,
    counts: np.ndarray | None,
    positive: int | None = None,
) -> float:
    """Return the best threshold for held-out rows that count so often. Raise DataError if there are no such rows.

    Scores above it mean the second class, whichever is the positive one.
    """
    if held_out is None:
        raise DataError(
            Message(
                "{threshold=} is chosen on held-out rows, and there are too few rows to hold any out. Leave it out.",
                threshold,
            )
        )
    outputs = held_out.outputs[:, 0]
    if positive == 0:
        return -best_threshold(-outputs, held_out.y == classes[0], threshold, counts)
    return best_threshold(outputs, held_out.y == classes[1], threshold, counts)


def scoring_of(scoring: Scoring, is_classification: bool, y: np.ndarray | None, is_few: bool = False) -> Scoring:
    """Return the scorer: the user's; else ROC AUC if one of two classes is rare; else None, for accuracy or R^2.

    is_few: whether rows are few, so that ROC AUC compares machines of two classes whatever their shares. Every pair of
    rows counts for it, not only the rows near the border, and it ranks machines that accuracy cannot: of a
    hundred rows, accuracy has an error of five points.
    """
    if scoring is not None or y is None or not is_classification:
        return scoring
    if y.ndim == 2:
        ones = np.nanmean(y, axis=0)
        return "roc_auc" if is_few or np.median(np.minimum(ones, 1 - ones)) < _RARE else None
    _, counts = np.unique(y, return_counts=True)
    is_rare = is_few or counts.min() < _RARE * counts.sum()
    return "roc_auc" if counts.size == 2 and counts.min() >= _FEWEST_OF_CLASS and is_rare else None
