"""The result of a fit: features, their weights, and what turns outputs into answers. It is frozen.

    f(x) = Psi(x) . w + b,

with features Psi of the kernel, weights w (D, t) and intercepts b (t,). Estimators forward to it what is asked of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from chimap import _arrays, _blas
from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import JSON, Rows
from chimap.backends import backend_of, check_device, on_host
from chimap.explain.neighbours import expansion_of
from chimap.features.base import FittedFeatures
from chimap.features.exact import RowKernel
from chimap.features.mapped_functions import LinearFunction, MappedModel
from chimap.features.nearest import empty_rows, nearest_distances
from chimap.kernels import AdditiveKernel, Kernel, OnColumns, Sum
from chimap.models.answers import ClassAnswers, RealAnswers, largest, named_tasks
from chimap.models.learned import Learned
from chimap.models.schema import RowSchema
from chimap.normalizations import Normalization
from chimap.recipe import Recipe
from chimap.recipe.parts import FeatureBlock, parts_of
from chimap.recipe.preparation import Preparation
from chimap.recipe.task import Task
from chimap.solvers.posterior import DualPosterior, Posterior

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


ROWS_AT_ONCE = 2048  # rows whose features are in memory together
_SUMMED_IN_DOUBLE = 64  # up to this number of features, products with the weights are summed in float64


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model.

    Parameters
    ----------
    recipe : Recipe
        The settings of the fit, all of them resolved.
    task : Task
        Its targets.
    schema : RowSchema
        The rows that it takes.
    features : FittedFeatures
        Features of prepared rows.
    kernel : Kernel
        The kernel, with its parameters set to numbers.
    coef : array of shape (D, t)
        Weights of the features.
    intercept : array of shape (t,)
        Intercepts.
    answers : ClassAnswers or RealAnswers
        From outputs to answers.
    normalization : Normalization or None
        The fitted normalisation of the rows.
    posterior : Posterior, DualPosterior or None
        How certain the weights are, if the model keeps it.
    learned : Learned
        What else was learned.
    """

    recipe: Recipe
    task: Task
    schema: RowSchema
    features: Any
    kernel: Kernel
    coef: np.ndarray
    intercept: np.ndarray
    answers: ClassAnswers | RealAnswers
    normalization: Normalization | None
    posterior: Posterior | DualPosterior | None
    learned: Learned

    @property
    def n_bins(self) -> int:
        """Number of columns of a row: the bins, and those of covariates behind them."""
        return self.schema.n_columns

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of these columns, if the bins have any."""
        return self.schema.columns

    @property
    def n_outputs(self) -> int:
        """Number of outputs t: one per class, task or target, and one for two classes."""
        return int(self.coef.shape[1])

    @property
    def task_names(self) -> list[str] | None:
        """The names of several tasks or targets, "task_0" and so on without any; None for a single one."""
        return named_tasks(self.answers, self.n_outputs, self.task.names)

    @property
    def exact(self) -> Model:
        """This model; tables have the one that they were compiled from."""
        return self

    @property
    def positive(self) -> object:
        """The class that ``positive`` named when the model was fitted; None for none."""
        return self.task.positive_class

    @property
    def training(self) -> JSON:
        """What the command line says of the fit; empty if it did not fit the model."""
        return self.learned.training or {}

    @property
    def histograms(self) -> BaseEstimator | None:
        """What describes images as rows."""
        return self.learned.histograms

    @property
    def precision(self) -> str:
        """The precision of features and products."""
        return self.recipe.precision

    @property
    def n_jobs(self) -> int | None:
        """Number of threads; None for all cores."""
        return self.recipe.n_jobs

    @property
    def settings(self) -> JSON:
        """The settings of the fit, with what was learned in place of instructions such as "auto"."""
        learned = {"kernel": self.kernel.name, "gamma": self.gamma, "alpha": self.learned.alpha}
        return self.recipe.settings | learned

    @property
    def rows_at_once(self) -> int:
        """Rows whose features are in memory together."""
        return ROWS_AT_ONCE

    @property
    def gamma(self) -> float | None:
        """Gamma of the kernel; None for a kernel without one."""
        gamma = getattr(self.kernel, "gamma", None)
        return None if gamma is None else float(gamma)

    def describe(self) -> JSON:
        """Return a description of the kernel and the features.

        Returns
        -------
        dict
            "kernel" is the name of the kernel; "gamma" is None for a kernel without gamma and for a plain additive
            kernel, whose gamma is 1; "features" describes the features.
        """
        kernel, name = self.kernel, self.kernel.name
        if self.recipe.n_covariates and isinstance(kernel, Sum):
            *bins, _ = kernel.kernels
            kernel = bins[0].kernel if len(bins) == 1 and isinstance(bins[0], OnColumns) else Sum(tuple(bins))
            covariates = self.recipe.covariate_columns
            assert covariates is not None
            name = f"{kernel.name} + {covariates.kernel} of {', '.join(covariates.names)}"
        gamma = getattr(kernel, "gamma", None)
        is_plain = isinstance(kernel, AdditiveKernel) and gamma == 1
        return {"kernel": name, "gamma": None if is_plain else gamma, "features": self.features.describe()}

    @property
    def bin_names(self) -> np.ndarray:
        """The names of the bins, or their numbers; bins of images are named by cells and words."""
        if self.columns is not None:
            return np.array(self.columns, dtype=object)
        histograms = self.learned.histograms
        return np.arange(self.n_bins) if histograms is None else np.asarray(histograms.get_feature_names_out())

    @property
    def output_names(self) -> np.ndarray:
        """The names of the outputs: classes, tasks or targets; two classes have one output, for the second."""
        n_outputs, answers, names = self.n_outputs, self.answers, self.task.names
        if isinstance(answers, ClassAnswers) and not answers.is_multilabel:
            return answers.classes[-n_outputs:]
        if names is not None:
            return names
        return np.array(["prediction"]) if n_outputs == 1 else np.arange(n_outputs)

    # --- from rows to outputs

    @cached_property
    def parts(self) -> list[FeatureBlock]:
        """The blocks of the columns, with their unfitted features."""
        return parts_of(self.recipe, self.recipe.blocks_in(self.columns), self.n_bins)

    @cached_property
    def preparation(self) -> Preparation:
        """How rows become the input of the features."""
        recipe = self.recipe
        return Preparation(self.parts, recipe.dtype, self.normalization, recipe.given_bin_weights, self.columns)

    @cached_property
    def merged(self) -> tuple[FittedFeatures, np.ndarray, np.ndarray]:
        """Features, weights (D, t) in their dtype and intercepts, ready to be multiplied.

        ``merged_into_weights`` moves a factor of the features into the weights, if they allow it. Features that
        multiply themselves choose the dtype of the weights.
        """
        merged = self.features.merged_into_weights(self.coef, self.intercept)
        dtype = merged.coef.dtype if hasattr(merged.features, "outputs") else self.recipe.dtype
        return merged.features, np.ascontiguousarray(merged.coef, dtype=dtype), merged.intercept

    @cached_property
    def scorer(self) -> Callable[[Rows], np.ndarray]:
        """The scores of prepared rows on the device; cached, as the rows of an exact machine are moved there."""
        recipe = self.recipe
        check_device(recipe.device)
        shift = np.zeros(self.coef.shape[0])
        return backend_of(recipe.device).scorer(self.features, shift, self.coef, self.intercept, recipe.dtype)

    def room(self, n_rows: int) -> np.ndarray:
        """Allocate the memory in which ``outputs`` of up to ``n_rows`` rows are computed."""
        if not on_host(self.recipe.device):
            self.scorer  # noqa: B018  moves the features there
            return np.empty((0, 0))
        features = self.merged[0]
        n_features = 0 if hasattr(features, "outputs") else features._n_features_out
        return np.empty((n_rows, n_features), dtype=self.recipe.dtype)

    def outputs(self, rows: Rows, room: np.ndarray) -> np.ndarray:
        """Return f(x) (n, t) for prepared rows, n of them at most as many as ``room`` was made for."""
        if not on_host(self.recipe.device):
            return self.scorer(rows)
        features, weights, intercept = self.merged
        return products(features, rows, weights, room) + intercept

    def scores(self, rows: Rows, first_row: int | np.ndarray, name: str, room: np.ndarray) -> np.ndarray:
        """Return f(x) (n, t) for rows as they were read; an error names the row of ``name``. See ``outputs``."""
        return self.outputs(self.preparation(rows, first_row, name), room)

    def outputs_of_all(self, rows: Rows) -> np.ndarray:
        """Return f(x) (n, t) for any number of prepared rows."""
        room = self.room(min(ROWS_AT_ONCE, rows.shape[0]))
        pieces = [slice(i, i + ROWS_AT_ONCE) for i in range(0, rows.shape[0], ROWS_AT_ONCE)]
        return np.vstack([self.outputs(_arrays.take_rows(rows, piece), room) for piece in pieces])

    def variances(self, rows: Rows) -> np.ndarray:
        """Return the variances (n,) of the outputs of prepared rows by the posterior, divided by that of the noise."""
        posterior, features = self.checked_posterior, self.features
        if isinstance(posterior, DualPosterior) and posterior.n_rows < features._n_features_out:
            # a machine in blocks has that of its first rows
            features = cast(FittedFeatures, cast(RowKernel, features).take(slice(posterior.n_rows)))
        Z = np.empty((rows.shape[0], features._n_features_out), dtype=self.recipe.dtype)
        features.features_into(rows, Z)
        if isinstance(posterior, DualPosterior):
            return posterior.variances(Z, np.asarray(self.kernel.diagonal(rows), dtype=np.float64))
        return posterior.variances(Z)

    @property
    def checked_posterior(self) -> Posterior | DualPosterior:
        """The posterior. Raise ValueError if the fit left none."""
        if self.posterior is None:
            raise InputError(
                Message(
                    "return_std needs {loss='square'}, features as they are, and a y without missing entries; this "
                    "model has no posterior. predict_set returns intervals for every model."
                )
            )
        return self.posterior

    # --- for rows that are like none of the classes

    @cached_property
    def empty_rows(self) -> np.ndarray:
        """Which of the rows that the features keep have no entries, (m,)."""
        return empty_rows(self.features, self.recipe.dtype)

    def signs(self, outputs: np.ndarray, rows: Rows) -> np.ndarray:
        """Return the signs (n, k) that prepared rows with these outputs are of no class; see ``Novelty``."""
        answers = self.answers
        assert isinstance(answers, ClassAnswers)
        assert answers.novelty is not None
        low = -largest(outputs)
        if not answers.novelty.has_distances:
            return low[:, None]
        return np.column_stack([low, nearest_distances(self.features, rows, self.empty_rows)])

    # --- for explanations

    def mapped(self) -> MappedModel | None:
        """Return the scores as a function of mapped rows, or None for features that are none of one."""
        return self.features.mapped_model(self.coef, self.intercept)

    @property
    def is_additive(self) -> bool:
        """Whether the scores are a sum of functions of single bins."""
        mapped = self.mapped()
        return mapped is not None and isinstance(mapped.function, LinearFunction)

    def kernel_values(self, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return kernel values (n, m) of prepared rows with the m kept ones, the weights (m, t) and outputs of these.

        Raise DataError if the model is not a sum over landmarks or rows.
        """
        kept = self.features.kept_rows
        if kept is not None:
            return self.features.mapped(rows), self.coef, self.outputs_of_all(kept)
        mapped = self.mapped()
        function = expansion_of(mapped)
        assert mapped is not None
        return function.values(mapped.rows(rows)), function.coef, function(function.centres)

    @property
    def takes_signs(self) -> bool:
        """Whether bins may be negative."""
        return any(part.kernel.is_signed for part in self.parts)


def products(features: FittedFeatures, rows: Rows, weights: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Return Psi(x) . w (n, t) for prepared rows and weights (D, t) of the same dtype.

    room (n, D): where dense features are written, by those that do not give their outputs tile by tile.
    """
    if hasattr(features, "outputs"):
        return np.asarray(features.outputs(rows, weights))
    if _arrays.is_sparse(rows) and features.keeps_zeros:
        out = np.empty((rows.shape[0], weights.shape[1]), dtype=weights.dtype)
        _blas.sparse_product(features.transform_sparse(rows), weights, out)
        return out
    z = room[: rows.shape[0]]
    features.features_into(rows, z)
    # a float32 sum of few terms would depend on the place of the row in the chunk
    if weights.shape[0] <= _SUMMED_IN_DOUBLE:
        return z.astype(np.float64) @ weights
    outputs = np.empty((z.shape[0], weights.shape[1]), dtype=weights.dtype)
    _blas.project(z, weights, z, outputs)
    return outputs
