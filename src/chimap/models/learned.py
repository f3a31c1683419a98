"""What a fit has learned besides features, weights and answers: how, from how many rows, and what it compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chimap.solvers.findings import Findings

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from chimap._types import JSON
    from chimap.explain.background import RowStatistics
    from chimap.losses import Loss
    from chimap.machines.method import LearnedWidths
    from chimap.models.race_result import RaceResult
    from chimap.selection.base import SelectionResult
    from chimap.selection.learning_curve import LearningCurve


@dataclass(frozen=True, eq=False)
class Learned:
    """What a fit has learned; estimators show each field, and those of its records, with an underscore at the end.

    Parameters
    ----------
    alpha : float
        The strength of the penalty.
    loss : Loss or None
        The loss that was minimised; None for the hinge.
    selection : SelectionResult or None
        The scores of the settings that were compared, if any.
    n_passes : int
        Passes over the rows; 0 for those of LIBLINEAR.
    n_rows : int
        Rows that the weights were learned from.
    findings : Findings, default=Findings()
        What the solver has found besides the weights.
    rows : RowStatistics or None, default=None
        Of the fit's sample as prepared.
    width_search : LearnedWidths or None, default=None
        The widths of a learned kernel.
    learning_curve : LearningCurve or None, default=None
        How the score grows with the rows.
    stage_seconds : mapping of str to float or None, default=None
        Seconds of each stage of the fit.
    race : RaceResult or None, default=None
        The race that chose what was open.
    training : dict or None, default=None
        What the command line says of the fit.
    histograms : ImageHistograms or None, default=None
        Which describe images as rows.
    depth_gain : dict or None, default=None
        Scores of left-out rows, thinned and as they are, without thinned copies in the fit and with them.
    """

    alpha: float
    loss: Loss | None
    selection: SelectionResult | None
    n_passes: int
    n_rows: int
    findings: Findings = field(default_factory=Findings)
    rows: RowStatistics | None = None
    width_search: LearnedWidths | None = None
    learning_curve: LearningCurve | None = None
    stage_seconds: Mapping[str, float] | None = None
    race: RaceResult | None = None
    training: JSON | None = None
    histograms: BaseEstimator | None = None
    depth_gain: JSON | None = None
