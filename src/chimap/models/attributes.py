"""A model as the attributes that estimators show and files hold, and back.

Files hold an estimator as its parameters and learned attributes, by name, so that a file does not depend on how a model
is kept in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, TypeVar

from chimap._types import JSON
from chimap.explain.background import RowStatistics
from chimap.features.covariates import Covariates
from chimap.losses import Square
from chimap.machines.method import LearnedWidths
from chimap.models.answers import ClassAnswers, RealAnswers
from chimap.models.learned import Learned
from chimap.models.model import Model
from chimap.models.schema import RowSchema
from chimap.recipe import Recipe
from chimap.recipe.task import Task
from chimap.selection.structures import Nominal
from chimap.solvers.findings import Findings

R = TypeVar("R", Findings, Learned, LearnedWidths, RowStatistics)
_RECORDS = {"findings", "rows", "width_search"}  # fields of ``Learned`` that are shown field by field


def attributes_of(model: Model) -> Mapping[str, Any]:
    """Return the learned attributes of a model by name; cached, as a prediction of one row asks for several."""
    state = vars(model)
    if "_attributes" not in state:
        state["_attributes"] = MappingProxyType(_attributes(model))
    attributes: Mapping[str, Any] = state["_attributes"]
    return attributes


def _attributes(model: Model) -> JSON:
    recipe, task, answers = model.recipe, model.task, model.answers
    found: JSON = {
        **model.schema.attributes,
        "features_": model.features,
        "kernel_": model.kernel,
        "_coef": model.coef,
        "_intercept": model.intercept,
        "normalization_": model.normalization,
        "bin_weights_": recipe.given_bin_weights,
        "_codec": task.codec,
        "task_names_": task.names,
        "_has_gaps": task.has_gaps,
        "_has_objects": task.has_objects,
        "_posterior": model.posterior,
        "_conformal": answers.conformal,
        "_seed": recipe.seed,
        "chosen_": recipe.raced_parameters,
        "_taken": {name: getattr(recipe, name) for name in sorted(recipe.resolved)},
    }
    if isinstance(answers, ClassAnswers):
        found |= {
            "classes_": answers.classes,
            "multilabel_": answers.is_multilabel,
            "class_weight_": task.class_weight,
            "_calibration": answers.calibration,
        }
        if answers.novelty is not None:
            found["_novelty"] = answers.novelty
        if answers.structure != Nominal():
            found["_structure"] = answers.structure
        if answers.threshold is not None:
            found["threshold_"] = answers.threshold
    else:
        found["noise_variance_"] = answers.noise
    if recipe.covariate_columns is not None:
        found["covariates_"] = recipe.covariate_columns
    found |= {"selection_": None, "loss_": None}  # which are shown whatever they are
    for record in (model.learned, model.learned.findings, model.learned.rows, model.learned.width_search):
        found |= {} if record is None else _shown(record)
    return found


def _shown(record: object) -> JSON:
    """Return the fields of a record that have a value by the names of attributes, but those that are records."""
    return {f"{name}_": value for name, value in vars(record).items() if value is not None and name not in _RECORDS}


def _popped(cls: type[R], left: JSON) -> R:
    """Return the record with the attributes that are its fields, and take these out of ``left``."""
    names = [field.name for field in fields(cls) if f"{field.name}_" in left]
    return cls(**{name: left.pop(f"{name}_") for name in names})


def model_of(attributes: Mapping[str, Any], asked: Recipe) -> Model:
    """Return the model with these attributes; ``asked``: the settings that the parameters of the estimator ask for."""
    left: JSON = dict(attributes)

    def take(name: str, usual: Any = None) -> Any:
        return left.pop(name, usual)

    recipe = asked.with_raced(**(take("chosen_") or {}))
    recipe = recipe.with_values(**(take("_taken") or {}))
    recipe = replace(recipe, seed=take("_seed", recipe.seed))
    covariates: Covariates | None = take("covariates_")
    bin_weights = take("bin_weights_", recipe.given_bin_weights)
    recipe = replace(recipe, bin_weights=bin_weights, covariate_columns=covariates)
    task = Task(
        left.pop("_codec"),
        take("task_names_"),
        take("class_weight_"),
        bool(take("_has_gaps", False)),
        bool(take("_has_objects", False)),
        recipe.threshold,
    )
    coef, conformal = take("_coef"), take("_conformal")
    answers: ClassAnswers | RealAnswers
    if recipe.is_classifier:
        answers = ClassAnswers(
            take("classes_"),
            bool(take("multilabel_", False)),
            left.pop("_calibration"),
            conformal,
            take("threshold_"),
            take("_novelty"),
            take("_structure", Nominal()),
        )
    else:
        answers = RealAnswers(conformal, take("noise_variance_"), left.get("loss_") or Square())
    features = take("features_")
    posterior = take("_posterior")
    rows = _popped(RowStatistics, left) if "mean_row_" in left else None
    widths = _popped(LearnedWidths, left) if "widths_" in left else None
    learned = replace(_popped(Learned, left), rows=rows, width_search=widths, findings=_popped(Findings, left))
    schema = RowSchema.of_attributes(recipe.estimator, {**attributes}).finished(None, covariates)
    return Model(
        recipe,
        task,
        schema,
        features,
        take("kernel_"),
        coef,
        take("_intercept"),
        answers,
        take("normalization_"),
        posterior,
        learned,
    )
