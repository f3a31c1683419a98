"""The parts of a fitted model, from which every format is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import singledispatch
from typing import TYPE_CHECKING

import numpy as np

from chimap._errors import InputError
from chimap._types import JSON
from chimap.features.base import FittedFeatures
from chimap.features.covariates import check_takes_bins_only
from chimap.losses import Loss, Square
from chimap.models.model import Model
from chimap.models.predictor import Predictor
from chimap.recipe.preparation import Preparation
from chimap.selection.calibration import Calibration, TaskCalibration
from chimap.selection.structures import Nominal, Structure

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


@dataclass(frozen=True, eq=False)
class ModelParts:
    """The parts of a fitted model, which compute its scores.

        scores(x) = features(x') . coef + intercept

    Here x' is the row x, prepared: normalised and then multiplied by factors of the columns.

    Parameters
    ----------
    features : FittedFeatures
        The fitted features.
    coef : ndarray of shape (D, t), float64
        The weights of the features.
    intercept : ndarray of shape (t,), float64
        The intercepts of the outputs.
    preparation : Preparation
        How rows are prepared.
    classes : ndarray or None
        The labels (0 and 1 for several tasks), or None for a regression.
    about : dict
        Kernel, gamma and features in words.
    outputs : callable
        Returns the scores (n, t) of rows (n, bins), as the model computes them.
    predicted : callable
        Returns the labels or targets for scores (n, t).
    calibration : Calibration, TaskCalibration or None, default=None
        From scores to probabilities; None for a regression.
    structure : Structure, default=Nominal()
        How the classes are related, which says the label.
    threshold : float, default=0.0
        Scores above it mean the second of two classes.
    tasks : list of str or None, default=None
        Names of several tasks or targets, or None for a single one.
    loss : Loss, default=Square()
        Says how the scores of a regression become predictions.
    mean_row : ndarray of shape (bins,) or None, default=None
        The mean of the prepared rows of the fit, if the model knows it.
    is_of_numbers : bool, default=True
        Whether a row is given as numbers; False for texts, molecules and images.
    """

    features: FittedFeatures
    coef: np.ndarray
    intercept: np.ndarray
    preparation: Preparation
    classes: np.ndarray | None
    about: JSON
    outputs: Callable[[np.ndarray], np.ndarray]
    predicted: Callable[[np.ndarray], np.ndarray]
    calibration: Calibration | TaskCalibration | None = None
    structure: Structure = field(default_factory=Nominal)
    threshold: float = 0.0
    tasks: list[str] | None = None
    loss: Loss = field(default_factory=Square)
    mean_row: np.ndarray | None = None
    is_of_numbers: bool = True

    @property
    def n_bins(self) -> int:
        """Number of bins in a row."""
        return int(self.features.n_features_in_)

    @property
    def n_outputs(self) -> int:
        """Number of outputs t: 1 for two classes and for a regression with a single target."""
        return int(self.coef.shape[1])

    @property
    def output_names(self) -> list[str]:
        """The name of each output: a task, a class, or "prediction".

        Two classes share a single output, named after the second class, which positive scores favour.
        """
        if self.tasks is not None:
            return self.tasks
        if self.classes is None:
            return ["prediction"]
        names = [str(label) for label in self.classes.tolist()]
        return names if self.n_outputs > 1 else names[1:]


@singledispatch
def parts_of(model: BaseEstimator) -> ModelParts:
    """Return the parts of a fitted model; for a compiled model, those of the model it was compiled from.

    Raises
    ------
    ValueError
        If this kind of model cannot be exported.
    NotFittedError
        If the model is not fitted.
    """
    if not hasattr(type(model), "fitted"):
        raise InputError(
            "only HistogramClassifier, FourierKernelLearner, MultipleKernelLearner, the corresponding regressors, "
            f"LookupClassifier and compiled models can be exported; got {type(model).__name__}."
        )
    fitted: Predictor = model.fitted
    if fitted.exact is None:
        raise InputError(
            "a compiled LookupClassifier holds only tables: export the LookupClassifier that it was made from."
        )
    return _of_model(fitted.exact)


def _of_model(model: Model) -> ModelParts:
    check_takes_bins_only(model.schema.covariates, "an export")
    answers, tasks = model.answers, model.task_names
    return ModelParts(
        model.features,
        model.coef,
        model.intercept,
        model.preparation,
        np.array([0, 1]) if answers.is_multilabel else answers.classes,
        model.describe(),
        lambda rows: model.outputs_of_all(model.preparation(rows, 0, "X")),
        answers.predicted,
        answers.calibration,
        answers.structure,
        answers.threshold or 0.0,
        tasks,
        answers.loss,
        None if model.learned.rows is None else model.learned.rows.mean_row,
        model.schema.reading is None and model.histograms is None,
    )
