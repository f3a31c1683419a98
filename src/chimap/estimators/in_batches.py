"""Fits from batches that arrive one after the other: ``partial_fit``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from chimap._messages import Message
from chimap._threads import threads
from chimap._types import ArrayLike, MatrixLike, Parameters, Sometimes
from chimap.data import ArraySource, Source
from chimap.data.labelling import labelled
from chimap.engines import Progress
from chimap.estimators.recipe_model import RecipeModel
from chimap.fit.batches import Batches
from chimap.fit.holding_out import checked_groups
from chimap.fit.targets import checked_batch, is_matrix
from chimap.fit.weights import checked_sample_weight, with_weights, without_absent
from chimap.losses import Loss
from chimap.solvers.from_moments import RidgeSolver


class BatchModel(RecipeModel):
    """A model to which batches of rows can be added. It is solved anew when its weights are next needed."""

    _batches: Batches | None
    _y_checks: ClassVar[Parameters]
    _class_weighed: Any
    _learn_targets: Callable[[ArrayLike], None]
    loss: str | Loss
    classes_: Sometimes[np.ndarray]

    def _weighed(
        self, source: Source, groups: ArrayLike | None, is_batch: bool = False
    ) -> tuple[Source, np.ndarray | None]:
        """Return the rows with weight above 0, with class weights included in their weights, and their groups."""
        if groups is not None:
            groups = checked_groups(groups, source.n_rows)
        source, places = without_absent(source)
        groups = groups if places is None or groups is None else groups[places]
        weights = self._class_weighed(source.labels(), source.weights, is_batch)
        return (source if weights is source.weights else with_weights(source, weights)), groups

    def _partial_fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add a batch to the sums; the first one settles the features."""
        batches: Batches | None = getattr(self, "_batches", None)
        self._spread = None
        checks: Parameters = {"accept_sparse": "csr", "dtype": "numeric", "ensure_all_finite": False}
        if is_matrix(y):
            X = validate_data(self, X, reset=batches is None, **checks)
        else:
            X, y = validate_data(self, X, y, reset=batches is None, **checks, **self._y_checks)
        rows: Source = ArraySource(X, y)
        if sample_weight is not None:
            rows = with_weights(rows, checked_sample_weight(sample_weight, rows.n_rows))
        rows = labelled(rows) if is_matrix(y) else rows
        source, _ = self._weighed(rows, None, is_batch=True)
        with threads(self.n_jobs):
            if batches is None:
                self._draw_seed()
                self._race(source, None, Progress(), False)
                self._settle(source, None, is_batch=True)
                batches = Batches(self._recipe(), self._codec, source)
            batches.add(source)
        self._batches, self._stale = batches, True
        self.features_, self.kernel_ = batches.known.features, batches.known.features.kernel_
        return self

    def _refresh(self) -> None:
        """Solve for the rows that ``partial_fit`` has added since the last solution."""
        if not hasattr(self, "features_"):
            # It raises the error. It takes longer than predicting a row, so it is not called otherwise.
            check_is_fitted(self, "features_")
        if self._stale and self._batches is not None:
            with threads(self.n_jobs):
                self._adopt(self._batches.result())


def keeps_moments(model: BatchModel) -> bool:
    """Return whether the loss is solved from moments; raise AttributeError for other losses."""
    if not RidgeSolver().supports(model.loss):
        raise AttributeError(
            Message(
                "partial_fit needs {loss='square'}: {loss=} needs several passes over the rows.", model.loss
            )
        )
    return True


def learned_labels(model: BatchModel, y: ArrayLike, classes: ArrayLike | None) -> ArrayLike:
    """Return the checked labels of a batch, after the model has learned the classes from the first one."""
    is_first = getattr(model, "_batches", None) is None
    y = checked_batch(y, None if is_first else model._codec)
    if is_matrix(y):
        if classes is not None:
            raise ValueError(
                "classes are for a single task: labels of several tasks are 0 and 1. Leave classes out."
            )
        if is_first:
            model._learn_targets(y)
    elif is_first:
        classes = getattr(model, "classes_", None) if classes is None else classes
        if classes is None:
            raise ValueError(
                "classes must be given at the first call of partial_fit: all labels that will ever occur."
            )
        model._learn_targets(classes)
    elif classes is not None and not np.array_equal(np.unique(classes), model.classes_):
        raise ValueError(f"classes={classes!r} differs from those of the first call, {model.classes_!r}.")
    return y
