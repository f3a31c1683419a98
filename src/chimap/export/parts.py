"""What a fitted model consists of, as every format takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chimap._types import JSON
from chimap.estimators import CompiledClassifier, CompiledRegressor, LookupClassifier
from chimap.estimators.base import HistogramModel
from chimap.estimators.targets import task_names
from chimap.features.base import FittedFeatures

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


@dataclass(frozen=True, eq=False)
class ModelParts:
    """scores(x) = features(x') . coef + intercept, x' being x normalised.

    features : fitted. coef : (D, t) float64. intercept : (t,) float64. normalize : one of ``NORMALIZATIONS``, or None.
    blocks : columns of each block, which "l1" divides by its sum. classes : labels, of several tasks those of each, or
    None for a regression. tasks : names of several tasks or targets, or None for one.
    dtype : of the features (float32 of a model that rounds them to bfloat16, which files do not: scores differ by that
    rounding). about : kernel, gamma and features in words. threshold : scores above it are of the second of two
    classes. factors : (bins,) of the columns of normalised rows, or None.
    """

    features: FittedFeatures
    coef: np.ndarray
    intercept: np.ndarray
    normalize: str | None
    blocks: list[np.ndarray]
    classes: np.ndarray | None
    dtype: np.dtype
    about: JSON
    threshold: float = 0.0
    factors: np.ndarray | None = None
    tasks: list[str] | None = None

    @property
    def n_bins(self) -> int:
        """Bins a row."""
        return int(self.features.n_features_in_)

    @property
    def n_outputs(self) -> int:
        """t: 1 for two classes and for a regression."""
        return int(self.coef.shape[1])

    @property
    def output_names(self) -> list[str]:
        """A name for each output: the task, or the class; of two the second, for which positive scores speak."""
        if self.tasks is not None:
            return self.tasks
        if self.classes is None:
            return ["prediction"]
        names = [str(label) for label in self.classes.tolist()]
        return names if self.n_outputs > 1 else names[1:]

    def answers(self, scores: np.ndarray) -> np.ndarray:
        """Labels or predicted targets (n,), of several tasks (n, t), of scores (n, t)."""
        if self.classes is None:
            return scores[:, 0] if self.tasks is None else scores
        if self.tasks is not None:
            return self.classes[(scores > 0).astype(np.intp)]
        if self.n_outputs == 1:
            return self.classes[(scores[:, 0] > self.threshold).astype(np.intp)]
        return self.classes[scores.argmax(axis=1)]


def parts_of(model: BaseEstimator) -> ModelParts:
    """The parts of a fitted model; of a compiled one those of the model that was compiled.

    Raises ValueError for a model that has none, NotFittedError for one that is not fitted.
    """
    if isinstance(model, CompiledClassifier | CompiledRegressor):
        model._refresh()
        if model.exact_ is None:
            raise ValueError(
                "a compiled LookupClassifier holds tables alone: export the LookupClassifier that it was made from."
            )
        return parts_of(model.exact_)
    if isinstance(model, LookupClassifier):
        psi = model.map_
        about = {"kernel": psi.kernel_.name, "gamma": psi.kernel_.gamma, "features": psi.describe()}
        return ModelParts(
            psi, model.coef_.T, model.intercept_, None, [], model.classes_, np.dtype(np.float64), about
        )
    if not isinstance(model, HistogramModel):
        raise ValueError(
            "models that can be exported are HistogramClassifier, FourierKernelLearner, MultipleKernelLearner, the "
            f"regressions beside them, LookupClassifier and compiled models; got {type(model).__name__}."
        )
    model._refresh()
    tasks, classes = task_names(model), getattr(model, "classes_", None)
    if tasks is not None and classes is not None:
        classes = np.array([0, 1])
    blocks = [part.columns for part in model._parts(model.n_features_in_)]
    return ModelParts(
        model.features_, model.coef_.T, model.intercept_, model.normalize_, blocks,
        classes, model._dtype, model.describe(),
        float(getattr(model, "threshold_", 0.0)), model._preparation.factors, tasks,
    )  # fmt: skip
