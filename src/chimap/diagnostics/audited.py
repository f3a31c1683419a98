"""The machine of a model on labelled rows, from which rows can leave: what an audit asks.

The rows are those that the model was fitted on, or others: its kernel, its normalisation and its strength are kept, and
one factor of the rows is made. Machines that minimise another loss than the square are audited by ridge with their
kernel, whose strength left-out rows choose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from chimap import _arrays
from chimap._errors import DataError
from chimap._formatting import one_line
from chimap._messages import Message
from chimap._threads import threads
from chimap._types import Rows
from chimap.data.label_kinds import places_among, texts_of
from chimap.data.views import ChosenRows
from chimap.losses import Square
from chimap.models.row_values import RowValues
from chimap.normalizations.tf_idf import TfIdf
from chimap.recipe.codecs import ClassCodec
from chimap.selection.jackknife import deviations_of, parts_of_rows, standard_error
from chimap.selection.scoring import HeldOutScore, MeanScore, OutputScore
from chimap.solvers.downdates import Downdates

if TYPE_CHECKING:
    from chimap.data import Source
    from chimap.data.source import CovariateTable
    from chimap.models.model import Model

MOST_ROWS = 6000  # of a machine; more rows are audited in blocks, each of which is a machine of its own rows
_SQUARES = 4  # matrices between these rows that are in memory at once
_ROWS_TO_CHOOSE = 1500  # that choose the strength of a model of another loss
_ROWS_OF_A_SAMPLE = 2000  # that show a shortcut at a fit
_SAME = 1e-3  # share of the spread of outputs by which those of the model may differ from those of its ridge


def without_taught_weights(model: Model, rows: Source) -> Model:
    """Return the model with bins as heavy as each other where the labels of its rows have weighed them.

    Machines that leave rows out would know the labels of these rows by such weights: with labels of noise they find
    what is not there.
    """
    recipe, normalization = model.recipe, model.normalization
    if "bin_weights" in recipe.raced:
        recipe = replace(recipe, bin_weights=None)
    if normalization is not None and normalization.needs_labels:
        normalization = TfIdf().fitted(rows)
    return replace(model, recipe=recipe, normalization=normalization)


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of a machine.

    Parameters
    ----------
    rows : ndarray of shape (n,)
        Their places among all.
    sets : list of ndarray, or None
        The places of the rows of each group among them; None without groups.
    values : RowValues
        As the kernel sees them.
    machine : Downdates
        The machine.
    """

    rows: np.ndarray
    sets: list[np.ndarray] | None
    values: RowValues
    machine: Downdates


@dataclass(frozen=True, eq=False)
class AuditedRows:
    """Labelled rows, and the machine of a model on them.

    Parameters
    ----------
    source : Source
        The rows.
    y : ndarray of shape (n,)
        Labels or targets.
    classes : ndarray of shape (classes,) or None
        The classes; None for numbers.
    groups : ndarray of shape (n,) or None
        The group of each row as a place among the names.
    group_names : tuple of str, default=()
        Names of the groups.
    covariates : CovariateTable or None, default=None
        Covariates of the rows.
    blocks : tuple of Block, default=()
        The machine, in one block or several; none where only what stands besides the counts is asked.
    is_own : bool, default=False
        Whether the machine answers as the model does; else it is ridge with the kernel of the model.
    """

    source: Source
    y: np.ndarray
    classes: np.ndarray | None
    groups: np.ndarray | None
    group_names: tuple[str, ...] = ()
    covariates: CovariateTable | None = None
    blocks: tuple[Block, ...] = ()
    is_own: bool = False

    @classmethod
    def of(
        cls, model: Model, source: Source, groups: np.ndarray | None, covariates: CovariateTable | None = None
    ) -> AuditedRows:
        """Return the rows of a source, which has labels, with the groups of rows (n,), and the machine on them.

        Raises DataError for several tasks, for a single class, and for rows that are no more than a few.
        """
        from chimap.reports.score import true_answers  # which a fit, that asks for shortcuts, does without

        y = true_answers(model, source)
        rows = cls(source, y, _checked_classes(model, y, source.name), *_places_and_names(groups), covariates)
        view, n = model.schema.rows(source), rows.n_rows
        model = without_taught_weights(model, view)
        X, weights = view.take(np.arange(n)), np.ones(n)
        if model.task.class_weight is not None and model.task.classes is not None:
            weights = model.task.class_weight[places_among(y, model.task.classes)]
        size = min(MOST_ROWS, int(np.sqrt(model.recipe.budget / (8 * _SQUARES))))
        order = np.random.default_rng(0).permutation(n) if n > size else np.arange(n)

        def block(places: np.ndarray, alpha: float | None) -> Block:
            values = RowValues.of(model, _arrays.take_rows(X, places))
            machine = values.machine(rows.Y[places], alpha, weights[places])
            return Block(places, rows.sets(places), values, machine)

        with threads(model.n_jobs):
            alpha = model.learned.alpha
            if not isinstance(model.learned.loss, Square):
                some = np.random.default_rng(0).permutation(n)[:_ROWS_TO_CHOOSE]
                alpha = block(np.sort(some), None).machine.alpha
            blocks = tuple(block(np.sort(some), alpha) for some in np.array_split(order, -(-n // size)))
            is_own = len(blocks) == 1 and _answers_alike(model, X, blocks[0])
        return replace(rows, blocks=blocks, is_own=is_own)

    @classmethod
    def sampled(cls, source: Source, y: np.ndarray, has_classes: bool, groups: np.ndarray | None) -> AuditedRows:
        """Return some rows of a source with labels y (n,) and groups (n,), without a machine on them."""
        some = np.sort(np.random.default_rng(0).permutation(y.size)[:_ROWS_OF_A_SAMPLE])
        classes = np.unique(y[some]) if has_classes else None
        named = _places_and_names(None if groups is None else groups[some])
        return cls(ChosenRows(source, some, None), y[some], classes, *named)

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        return int(self.y.size)

    @cached_property
    def Y(self) -> np.ndarray:
        """Targets (n, t) of the square loss: 1 for a class and -1 for the others, one column for two classes."""
        if self.classes is None:
            return self.y.astype(np.float64)[:, None]
        return np.asarray(ClassCodec(self.classes).encode(self.y), np.float64)

    @cached_property
    def totals_and_filled(self) -> tuple[np.ndarray, np.ndarray]:
        """Sum and number of filled bins of each row, (n,)."""
        counts = self.source.take(np.arange(self.n_rows))
        totals = np.asarray(counts.sum(axis=1, dtype=np.float64)).reshape(-1)
        return totals, np.bincount(counts.nonzero()[0], minlength=totals.size).astype(np.float64)

    @cached_property
    def labels_of_groups(self) -> np.ndarray:
        """Each group with each label that it has, as places (2, pairs)."""
        assert self.groups is not None
        return np.unique(np.stack([self.groups, np.unique(self.y, return_inverse=True)[1]]), axis=1)

    @property
    def are_nested(self) -> bool:
        """Whether there are groups, and all rows of each have the same label."""
        return self.groups is not None and self.labels_of_groups.shape[1] == len(self.group_names)

    @cached_property
    def score(self) -> OutputScore:
        """The score of outputs: area under the ROC curve, its mean over several classes, or R^2."""
        return score_of_classes(self.y, self.classes)

    @property
    def chance(self) -> float:
        """The score of outputs that know nothing."""
        return 0.0 if self.classes is None else 0.5

    @cached_property
    def parts(self) -> np.ndarray:
        """Parts of the rows (n,), of whole groups, whose jackknife gives the standard errors of scores."""
        return parts_of_rows(self.n_rows, self.groups, 0)

    def scored(
        self, outputs: np.ndarray, score: OutputScore | None = None, *, by_row: bool = False
    ) -> tuple[float, float]:
        """Return the score of outputs (n, t), and its standard error by group, or by row."""
        score, parts = score or self.score, parts_of_rows(self.n_rows, None, 0) if by_row else self.parts
        deviations = deviations_of(score.without_each(outputs, np.arange(self.n_rows), parts))
        return score(outputs), standard_error(deviations)

    def sets(self, rows: np.ndarray) -> list[np.ndarray] | None:
        """Return the places of the rows of each group among some rows; None without groups."""
        if self.groups is None:
            return None
        order = np.argsort(self.groups[rows], kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.groups[rows][order])) + 1)

    def by_block(self, call: Callable[[Block], np.ndarray]) -> np.ndarray:
        """Return what a function says of the rows of each block (m, ...), in the order of all rows (n, ...)."""
        places = np.concatenate([block.rows for block in self.blocks])
        return np.concatenate([call(block) for block in self.blocks])[np.argsort(places)]

    @cached_property
    def left_out(self) -> np.ndarray:
        """Outputs (n, t) of each row without it, or without its group."""
        return self.by_block(lambda block: block.machine.left_out(block.sets))

    def predicted(self, outputs: np.ndarray) -> np.ndarray:
        """Return the place of the class of outputs (..., t), of two or more; the outputs of numbers themselves."""
        if self.classes is None:
            return outputs[..., 0]
        return (outputs[..., 0] > 0).astype(np.intp) if outputs.shape[-1] == 1 else outputs.argmax(axis=-1)

    @cached_property
    def names(self) -> np.ndarray:
        """Names of the rows, or their numbers in the data."""
        from chimap.reports.rows import row_names

        return row_names(self.source)


def score_of_classes(y: np.ndarray, classes: np.ndarray | None) -> OutputScore:
    """Return the area under the ROC curve, for more than two classes its mean over them; R^2 for numbers."""
    if classes is None:
        return HeldOutScore(y, None)
    if classes.size == 2:
        return HeldOutScore(y, classes, "roc_auc")
    return MeanScore((y[:, None] == classes).astype(float), np.array([0, 1]), "roc_auc")


def _places_and_names(groups: np.ndarray | None) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return the groups of rows as places among their names, and the names."""
    if groups is None:
        return None, ()
    names, places = np.unique(groups, return_inverse=True)
    return places, tuple(one_line(name) for name in texts_of(names))


def check_labels_vary(y: np.ndarray, name: str) -> None:
    """Raise DataError for rows ``name`` that all have the same label."""
    if y.ndim == 1 and np.unique(y).size < 2:
        raise DataError(
            Message("{}: one class only: all labels are {!s}, so nothing tells rows apart. Check {labels}.", name, y[0])
        )


def _checked_classes(model: Model, y: np.ndarray, name: str) -> np.ndarray | None:
    if y.ndim != 1 or model.n_outputs != (1 if model.answers.classes is None else model.task.n_targets):
        raise DataError(f"{name}: an audit takes one label for each row: fit a model of one task, and audit that.")
    check_labels_vary(y, name)
    found = np.unique(y)
    if y.size < 3 or (model.answers.classes is not None and y.size < 2 * found.size):
        raise DataError(f"{name}: {y.size} rows are too few to leave any out. An audit takes two rows of each class.")
    return None if model.answers.classes is None else found


def _answers_alike(model: Model, X: Rows, block: Block) -> bool:
    """Return whether a machine gives the outputs of the model for its own rows."""
    outputs, own = model.outputs_of_all(model.preparation(X, 0, "X")), block.machine.outputs
    return outputs.shape == own.shape and bool(np.abs(outputs - own).max() <= _SAME * float(own.std()))
