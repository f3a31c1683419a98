"""Every estimator that is fitted from a source of rows, with every family of features and loss, and such sources."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier

from chimap import (
    FourierKernelLearner,
    FourierKernelRegressor,
    HistogramClassifier,
    HistogramRegressor,
    MultipleKernelLearner,
    MultipleKernelRegressor,
    PrincipalFeatures,
)
from chimap.data import ArraySource
from chimap.features.families import FAMILIES
from chimap.machines.objective import loss_names

from ..covering import covering
from ..histograms import classes
from .estimators import ESTIMATORS, FEW, GIVEN, HALVES, LEARNER, tolerance_of

ROWS, LABELS = classes(1300, 8)
ROWS = ROWS.astype(np.float32).astype(np.float64)
TARGETS = ROWS[:, 0] + np.sqrt(ROWS[:, 1])


def with_each_loss(model: BaseEstimator, name: str) -> dict[str, BaseEstimator]:
    """The estimator with every loss that it takes."""
    return {f"{name}, {loss}": clone(model).set_params(loss=loss) for loss in loss_names(model._recipe())}


def of_family(make: type, features: str) -> BaseEstimator:
    return make("chi2" if features == "additive" else "exp-chi2", features=features, **FEW)


FROM_SOURCES: dict[str, BaseEstimator] = {
    **{name: model for name, model in ESTIMATORS.items() if hasattr(model, "fit_source")},
    **{
        name: model
        for features in FAMILIES
        for kind, make in (("classifier", HistogramClassifier), ("regressor", HistogramRegressor))
        for name, model in with_each_loss(of_family(make, features), f"{kind}, {features}").items()
    },
    **with_each_loss(FourierKernelLearner(blocks=HALVES, alpha=0.1, **LEARNER), "fourier learner"),
    **with_each_loss(FourierKernelRegressor(blocks=HALVES, alpha=0.1, **LEARNER), "fourier learner, regression"),
    # a strength at which the weights take tens of passes, not hundreds
    **with_each_loss(MultipleKernelLearner(blocks=HALVES, **FEW | {"alpha": 10.0}), "multiple kernels"),
    **with_each_loss(MultipleKernelRegressor(blocks=HALVES, **FEW | {"alpha": 10.0}), "multiple kernels, regression"),
    "fourier learner, training": FourierKernelLearner(
        blocks=HALVES, objective="training", width_strength=0.1, **LEARNER
    ),
    "fourier learner, gradients": FourierKernelLearner(blocks=HALVES, objective="gradients", **LEARNER),
    "multiple kernels, joint": MultipleKernelLearner(blocks=HALVES, joint=True, max_iter=2, **FEW),
    "components": HistogramClassifier("exp-chi2", features=PrincipalFeatures(9, "fourier"), **FEW),
    "components of blocks": HistogramClassifier("exp-chi2", blocks=HALVES, features=PrincipalFeatures([4, 9]), **FEW),
    "strength by rows held out": HistogramClassifier("chi2", features="additive", selection="holdout", random_state=0),
    "learned weights of bins": HistogramClassifier("exp-chi2", bin_weights="learn", **FEW),
    # a memory that holds no matrix of all rows
    "rows in blocks": HistogramClassifier("exp-chi2", features="exact", memory="5MiB", n_jobs=1, random_state=0),
    "rows in blocks, additive": HistogramRegressor("chi2", features="exact", memory="5MiB", n_jobs=1, random_state=0),
    "rows in blocks, no map": HistogramClassifier("minmax", features="exact", memory="5MiB", n_jobs=1, **GIVEN),
    "rows in blocks, blocks of columns": HistogramRegressor(
        ["exp-chi2", "gaussian"], blocks=HALVES, features="exact", memory="5MiB", n_jobs=1, **GIVEN
    ),
}


def made(name):
    return clone(FROM_SOURCES[name])


def truths(model):
    return LABELS if is_classifier(model) else TARGETS


def source_for(model):
    return ArraySource(ROWS, truths(model))


def keeps_every_row(model):
    """Whether the machine is an exact one, whose rows stay in one process."""
    return getattr(model, "features", None) == "exact"


def learns_by_blocks(model):
    """Whether it is an exact machine whose memory holds the matrix of a block of rows only."""
    return keeps_every_row(model) and model.memory == "5MiB"


def passes_again(model):
    """Whether weights come from passes that stop within a tolerance, and not from sums."""
    return getattr(model, "loss", "square") != "square"


def covered(models: dict[str, BaseEstimator]) -> set[str]:
    """Return the names of few models that show each machine, from sums and by passes, each loss and each estimator.

    Of machines that are solved alike, another loss is another formula, and classes and targets are other columns.
    """

    def shown(name, model):
        way = "from sums" if model.loss == "square" else "by passes"
        machine = name.removesuffix(f", {model.loss}").removeprefix("classifier, ").removeprefix("regressor, ")
        return (machine.removesuffix(", regression"), way), str(model.loss), type(model).__name__

    names = [*models]
    return {names[place] for place in covering([shown(*item) for item in models.items()], 1)}


def cases(models: dict[str, BaseEstimator]) -> list:
    """Return the names as cases of pytest, of which those that show nothing that others do not are thorough."""
    few = covered(models)
    return [pytest.param(name, marks=() if name in few else pytest.mark.thorough) for name in models]


def rounding_of(model):
    """By how much outputs may differ after another order of sums."""
    return 2e-3 if passes_again(model) else 10 * tolerance_of(model)
