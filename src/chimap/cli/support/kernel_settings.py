"""The options of ``chimap learn-kernel``, and the model that they describe."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from chimap._errors import InputError
from chimap.cli.support import flag_values, options
from chimap.cli.support.declared import default
from chimap.cli.support.fit_settings import Settings
from chimap.cli.support.options import Task

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from chimap._types import JSON


class Method(StrEnum):
    """What to learn: the widths of one kernel, or the weights of several."""

    widths = "widths"
    multiple = "multiple"


class WidthsOf(StrEnum):
    """The columns that share a width."""

    block = "block"
    bin = "bin"
    one = "one"


class ObjectiveOption(StrEnum):
    """The error that the widths minimise, or the method that finds them."""

    held_out = "held-out"
    training = "training"
    gradients = "gradients"


COMPONENTS = {
    Method.widths: default("n_components", "KernelLearner"),
    Method.multiple: default("n_components", "MultipleKernelModel"),
}
"""Default number of random features: of the model for widths, of each block for multiple."""

_WIDTHS = WidthsOf(default("widths", "KernelLearner"))
_OBJECTIVE = ObjectiveOption(default("objective", "KernelLearner"))
_OF_WIDTHS = (
    "widths", "objective", "width_strength", "tune_components", "tune_rows", "validation_fraction", "iterations"
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class KernelSettings(Settings):
    """The options of ``chimap learn-kernel`` and their defaults."""

    kernel: Annotated[
        str,
        options.value(
            "NAME",
            "Kernel: an exponential one such as exp-chi2, gaussian, skewed-chi2 or skewed-intersection. --method "
            "multiple takes any kernel, or a list with one for each block.",
        ),
    ] = default("kernel", "KernelLearner")
    components: Annotated[
        str,
        options.optional(
            "N",
            f"Random features of the model, or of each block with --method multiple.  [default: "
            f"{COMPONENTS[Method.widths]}; for multiple {COMPONENTS[Method.multiple]}]",
        ),
    ] = "auto"
    loss: Annotated[
        str,
        options.value(
            "NAME", "Loss of the weights, as in 'chimap fit'. Widths always minimise the square loss."
        ),
    ] = Settings.loss
    blocks: Annotated[
        str | None,
        options.optional(
            "SPEC",
            "Blocks of columns, such as sift=0:300,hog=300:500, with each column in one block. By default, all "
            "columns form one block.",
        ),
    ] = None
    method: Annotated[
        Method,
        typer.Option(
            help="What to learn: widths fits one kernel with a width for each block; multiple fits a kernel for each "
            "block and their weights, many of them 0."
        ),
    ] = Method.widths
    widths: Annotated[
        WidthsOf,
        typer.Option(help="Which columns share a width: those of a block, none (bin), or all (one)."),
    ] = _WIDTHS
    tune_components: Annotated[int, options.value("N", "Random features to learn the widths with.")] = (
        default("n_tune_components", "KernelLearner")
    )
    tune_rows: Annotated[
        int,
        options.value("N", "Rows to learn the widths on. The weights are learned on all rows."),
    ] = default("n_tune_rows", "KernelLearner")
    validation_fraction: Annotated[
        float,
        options.value("F", "Share of those rows that scores each iteration, for early stopping."),
    ] = default("validation_fraction", "KernelLearner")
    iterations: Annotated[int, options.value("N", "Maximum number of iterations of the search.")] = default(
        "max_iter", "KernelLearner"
    )
    objective: Annotated[
        ObjectiveOption,
        typer.Option(
            help="How to find the widths: held-out minimises the error on held-out folds; training minimises it on the "
            "training rows; gradients takes the widths from the slopes of the model, in rounds scored on validation "
            "rows."
        ),
    ] = _OBJECTIVE
    width_strength: Annotated[
        float,
        options.value("RHO", "Strength of a penalty on the squared widths, in units of the initial widths."),
    ] = default("width_strength", "KernelLearner")

    def complete(self) -> KernelSettings:
        """Return these settings with ``components`` set to the default of the method where it is "auto"."""
        return (
            dataclasses.replace(self, components=str(COMPONENTS[self.method]))
            if self.components == "auto"
            else self
        )

    def check(self, n_descriptors: int = 0) -> None:
        """Raise ValueError, naming the flag, before any row is read, for settings that the fit would refuse later."""
        super().check(n_descriptors)
        for flag, value in (
            ("--tune-components", self.tune_components), ("--tune-rows", self.tune_rows),
            ("--iterations", self.iterations),
        ):  # fmt: skip
            flag_values.check_least(value, flag)
        flag_values.check_share(self.validation_fraction, "--validation-fraction")
        if not 0 <= self.width_strength < float("inf"):
            raise InputError(f"--width-strength must be a number of at least 0; got {self.width_strength:g}.")
        if self.objective is ObjectiveOption.gradients and self.width_strength:
            raise InputError(
                "--objective gradients takes no --width-strength, as it minimises no objective: leave one of them out."
            )
        if self.method is Method.widths and len(self.kernels) > 1:
            raise InputError(
                "--kernel names several kernels, but --method widths learns one for all blocks. Use --method multiple."
            )
        if self.method is Method.multiple and not self.blocks and n_descriptors < 2:
            raise InputError(
                "--method multiple needs blocks: name their columns with --blocks, such as sift=0:300,hog=300:500."
            )
        if self.method is Method.multiple:
            for name in _OF_WIDTHS:
                if getattr(self, name) != getattr(KernelSettings, name):
                    raise InputError(f"--{name.replace('_', '-')} is for --method widths; leave it out.")

    def estimator(self, task: Task) -> BaseEstimator:
        """Return the unfitted model of these settings."""
        return self._widths(task) if self.method is Method.widths else self._multiple(task)

    def _widths(self, task: Task) -> BaseEstimator:
        from chimap import FourierKernelLearner, FourierKernelRegressor

        return (FourierKernelLearner if task is Task.classify else FourierKernelRegressor)(
            self.kernel,
            widths=self.widths.value,
            n_terms=self.n_terms or default("n_terms", "KernelLearner"),
            objective=self.objective.value,
            width_strength=self.width_strength,
            n_tune_components=self.tune_components,
            n_tune_rows=self.tune_rows,
            validation_fraction=self.validation_fraction,
            max_iter=self.iterations,
            **self._common(),
        )

    def _multiple(self, task: Task) -> BaseEstimator:
        from chimap import MultipleKernelLearner, MultipleKernelRegressor

        return (MultipleKernelLearner if task is Task.classify else MultipleKernelRegressor)(
            self.kernels if len(self.kernels) > 1 else self.kernel,
            n_terms=self.n_terms or default("n_terms", "MultipleKernelModel"),
            **self._common(),
        )

    def _common(self) -> JSON:
        return {
            "blocks": flag_values.blocks_of(self.blocks),
            "n_components": self.n_components,
            "normalize": "l1" if self.normalize else None,
            "loss": self.loss,
            "alpha": flag_values.number_or("auto", self.alpha, "--alpha"),
            "selection": "auto" if self.folds is None else self.folds,
            "memory": self.memory,
            "precision": self.precision.value,
            "n_jobs": self.jobs,
            "random_state": self.seed,
        }
