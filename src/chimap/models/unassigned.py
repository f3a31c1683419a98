"""Rows that are like none of the classes: the label "unassigned".

A row is unassigned at a share s, such as .05, where its conformal set is empty: no class is as probable as the true
classes of all but s of the held-out rows were. Or it is *far*: more novel than all but s of the rows that were left out
(``selection.conformal``), by the distance of the kernel to the nearest row that the machine keeps, or nearest landmark
(``features.nearest``), and by how low the largest of its outputs is. Machines that keep no rows, as linear ones on an
additive map, know rows by their weights alone, so that only the outputs tell. A row without any entry is unassigned.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass

import numpy as np

from chimap._errors import InputError, ParameterError
from chimap._messages import Message
from chimap._types import Rows
from chimap.features.nearest import has_entries
from chimap.models.answers import ClassAnswers
from chimap.models.model import Model
from chimap.models.predictor import Predictor

UNASSIGNED = "unassigned"


@dataclass(frozen=True, eq=False)
class ModelWithShares:
    """A model whose outputs have one more column: the smallest share at which the row is unassigned.

    It takes the place of the model where rows are read and scored (``models.predict``), so that both come of one pass.

    Parameters
    ----------
    model : Model
        A classifier with held-out rows.
    """

    model: Model

    @property
    def n_outputs(self) -> int:
        """Number of outputs t, and one."""
        return self.model.n_outputs + 1

    @property
    def rows_at_once(self) -> int:
        """See ``RowScorer``."""
        return self.model.rows_at_once

    def room(self, n_rows: int) -> np.ndarray:
        """See ``RowScorer``."""
        return self.model.room(n_rows)

    def scores(self, rows: Rows, first_row: int | np.ndarray, name: str, room: np.ndarray) -> np.ndarray:
        """See ``RowScorer``: outputs (n, t), and shares as the last column."""
        prepared = self.model.preparation(rows, first_row, name)
        outputs = self.model.outputs(prepared, room)
        return np.column_stack([outputs, self.shares(outputs, prepared)])

    def shares(self, outputs: np.ndarray, prepared: Rows) -> np.ndarray:
        """Return the smallest shares at which prepared rows with these outputs are unassigned, (n,)."""
        answers = self.model.answers
        assert isinstance(answers, ClassAnswers)
        assert answers.conformal is not None
        assert answers.novelty is not None
        least_unlike = answers.unlikeness(outputs).min(axis=1)
        far = answers.novelty.shares(self.model.signs(outputs, prepared))
        shares = np.minimum(answers.conformal.shares(least_unlike[:, None])[:, 0], far)
        return np.where(has_entries(prepared), shares, 0.0)


def with_shares(model: Predictor) -> ModelWithShares:
    """Return the model with the shares at which rows are unassigned.

    Raise ValueError for regressions, several tasks, and models that know of no left-out rows.
    """
    answers, exact = model.answers, model.exact
    if exact is None or exact is not model:
        raise keeps_no_shares(model.schema.owner)
    if not isinstance(answers, ClassAnswers):
        raise InputError(Message("{unassigned} is for classifiers: a regression has no classes that a row could lack."))
    if answers.is_multilabel:
        raise InputError(
            Message("{unassigned} is for one label per row: a model of several tasks answers 0 or 1 for each of them.")
        )
    if answers.novelty is None:
        raise InputError(
            Message(
                "{unassigned} compares rows with left-out rows, and this model knows of none: fit it again, with this "
                "version and with more rows."
            )
        )
    if UNASSIGNED in answers.classes.astype(str):
        raise InputError(
            Message(
                "{unassigned} gives rows the label {!r}, and a class of the model has this name. Rename the class, "
                "and fit again.",
                UNASSIGNED,
            )
        )
    return ModelWithShares(exact)


def keeps_no_shares(owner: str) -> InputError:
    """Return the error of an estimator of this class, which does not know how unlike the others left-out rows are."""
    return InputError(
        Message(
            "{unassigned} compares rows with the left-out rows of a fit, which a {} does not keep: use a "
            "HistogramClassifier, with {features='exact'} or {features='landmarks'} for distances to its rows.",
            owner,
        )
    )


def checked_share(unassigned: object) -> float:
    """Return the share of rows that may be unassigned; raise ValueError if it is not between 0 and 1."""
    if not isinstance(unassigned, numbers.Real) or isinstance(unassigned, bool) or not 0 < float(unassigned) < 1:
        raise ParameterError("unassigned", unassigned, "above 0 and below 1, a share of rows such as .05")
    return float(unassigned)


def is_unassigned(shares: np.ndarray, unassigned: float) -> np.ndarray:
    """Return which rows are unassigned at a share, given the smallest shares (n,) at which they are."""
    return np.asarray(shares <= unassigned * (1 + 1e-12))


def marked(labels: np.ndarray, is_marked: np.ndarray) -> np.ndarray:
    """Return labels (n,) with "unassigned" in the rows that are marked: text, or objects where labels are numbers."""
    if labels.dtype.kind == "U":
        return np.where(is_marked, UNASSIGNED, labels)
    out = labels.astype(object)
    out[is_marked] = UNASSIGNED
    return out
