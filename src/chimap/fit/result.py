"""What a fit returns: the features, their weights, and what was learned beside them.

``Known`` is complete before the passes over the rows and is what a checkpoint stores. ``FitResult`` is what ``fit.fit``
hands to the estimator, which sets its attributes from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from chimap._types import Parameters
from chimap.fit.rows import PreparedRows
from chimap.fit.targets import Codec
from chimap.moments import as_counts, of_entries
from chimap.selection.choose import ChosenSolution
from chimap.selection.learning_curve import LearningCurve
from chimap.solvers.held_out import HeldOut


@dataclass(frozen=True)
class Known:
    """What is learned before the rows are added up.

    Parameters
    ----------
    seed : int
        Seed of the fit.
    codec : Codec
        Encodes the targets.
    features : FittedFeatures
        The fitted features.
    attributes : dict
        Further attributes that the estimator shows, by name.
    """

    seed: int
    codec: Codec
    features: Any
    attributes: Parameters


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

    @classmethod
    def of(cls, held_out: HeldOut | None, rows: PreparedRows) -> HeldOutRows | None:
        """Add what is known of the rows."""
        if held_out is None:
            return None
        places, source = held_out.rows, rows.source
        weights, shares = source.weights, rows.shares(places)
        weights = None if weights is None else weights[places]
        if shares is not None:
            weights = shares if weights is None else (of_entries(weights).T * shares).T.reshape(weights.shape)
        return cls(
            held_out.outputs, rows.labels[places], weights, held_out.noise,
            None if source.counts is None else source.counts[places],
            None if rows.groups is None else rows.groups[places],
        )  # fmt: skip

    def counted(self, weights: np.ndarray | None) -> np.ndarray | None:
        """Return weights (m,) or (m, t) of the rows that add up to the number of independent rows or groups.

        None if all rows count once.
        """
        if weights is None and self.groups is None:
            return None
        weights = np.ones(self.outputs.shape[0]) if weights is None else weights
        return as_counts(weights, self.counts, self.groups)


@dataclass(frozen=True)
class FitResult:
    """Fitted features and their weights.

    Parameters
    ----------
    known : Known
        What was learned before the rows were added up.
    learned : ChosenSolution
        The solution and how it was found.
    coef : array of shape (D, t)
        Weights of the features.
    intercept : array of shape (t,)
        Intercepts.
    shift : array of shape (D,) or None
        Shift of the features if they are rounded.
    n_features_in : int
        Bins of a row.
    seconds : dict of str to float
        Seconds of each stage.
    chunk_rows : int
        Rows of a chunk; 0 if the fit had no chunks to plan.
    held_out : HeldOutRows or None, default=None
        Outputs of rows that the model has not seen; None if there are too few.
    curve : LearningCurve or None, default=None
        How the score grows with the rows, if the fit gives it.
    """

    known: Known
    learned: ChosenSolution
    coef: np.ndarray
    intercept: np.ndarray
    shift: np.ndarray | None
    n_features_in: int
    seconds: dict[str, float]
    chunk_rows: int
    held_out: HeldOutRows | None = None
    curve: LearningCurve | None = None
