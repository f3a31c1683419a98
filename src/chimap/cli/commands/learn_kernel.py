"""``chimap learn-kernel``: learn the widths of a kernel, or the weights of several, from rows and labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from chimap._errors import InputError
from chimap._formatting import kernel_in_words
from chimap.cli import config, flag_values, messages, outputs, show
from chimap.cli.fit_settings import Settings
from chimap.cli.options import TaskName
from chimap.cli.parser import Without

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from chimap.cli.training import FittedModel
    from chimap.reports import LearnedKernel


Method: TypeAlias = Literal["widths", "multiple"]
"""What to learn: the widths of one kernel, or the weights of several."""
WidthsOf: TypeAlias = Literal["block", "bin", "one"]
"""The columns that share a width."""
Objective: TypeAlias = Literal["held-out", "training", "gradients"]
"""The error that the widths minimise, or the method that finds them."""
COMPONENTS: dict[Method, int] = {"widths": 2048, "multiple": 512}
"""Default number of random features: of the model for widths, of each block for multiple."""
_WIDTH_OPTIONS = (
    "widths",
    "objective",
    "width_strength",
    "tune_components",
    "tune_rows",
    "validation_fraction",
    "iterations",
)


@dataclasses.dataclass(frozen=True)
class KernelSettings(Settings):
    """The options of ``chimap learn-kernel`` and their defaults.

    Parameters
    ----------
    kernel : NAME
        How rows are compared: exp-chi2 or another exp- kernel, gaussian, skewed-chi2 or skewed-intersection. --method
        multiple takes any kernel, or a list with one for each block.
    components : N
        How many random features the model has, or each block with --method multiple. auto is 2048, and 512 for
        multiple.
    loss : NAME
        How mistakes count while learning, as in 'chimap fit'. Widths are always learned with square.
    blocks : SPEC, common
        Groups of columns that are of different kinds, such as sift=0:300,hog=300:500. Each column is in one block. By
        default, all columns form one block.
    method : common
        What to learn: one kernel and how much each block counts in it (widths), or a kernel for each block (multiple).
        multiple learns the weights of the kernels, many of which are 0.
    widths : common
        Which columns count alike: those of a block, none (bin), or all (one).
    tune_components : N
        With how many random features the widths are learned.
    tune_rows : N
        From how many rows the widths are learned. The rest is learned from all rows.
    validation_fraction : F
        Share of those rows that are kept apart to see when to stop.
    iterations : N
        After how many steps to stop at the latest.
    objective
        How to find the widths: held-out, training or gradients. held-out makes the error on held-out parts small;
        training that on the training rows; gradients takes the widths from the slopes of the model, in rounds scored on
        rows kept apart.
    width_strength : RHO
        How strongly to hold widths back; 0 is not at all. The penalty is on squared widths, in units of the first ones.
    """

    kernel: str = "exp-chi2"
    loss: str = Settings.loss
    blocks: str | None = None
    method: Method = "widths"
    widths: WidthsOf = "block"
    tune_components: int = 512
    tune_rows: int = 10_000
    validation_fraction: float = 0.1
    iterations: int = 30
    objective: Objective = "held-out"
    width_strength: float = 0.0

    def complete(self) -> KernelSettings:
        """Return these settings with ``components`` set to the default of the method where it is "auto"."""
        return dataclasses.replace(self, components=str(COMPONENTS[self.method])) if self.components == "auto" else self

    def check(self, n_descriptors: int = 0) -> None:
        """Raise ValueError, naming the flag, before any row is read, for settings that the fit would refuse later."""
        super().check(n_descriptors)
        for flag, value in (
            ("--tune-components", self.tune_components),
            ("--tune-rows", self.tune_rows),
            ("--iterations", self.iterations),
        ):
            flag_values.check_least(value, flag)
        if not 0 < self.validation_fraction < 1:
            raise InputError(f"--validation-fraction must be above 0 and below 1; got {self.validation_fraction:g}.")
        if not 0 <= self.width_strength < float("inf"):
            raise InputError(f"--width-strength must be a number of at least 0; got {self.width_strength:g}.")
        if self.objective == "gradients" and self.width_strength:
            raise InputError(
                "--objective gradients takes no --width-strength, as it minimises no objective: leave one of them out."
            )
        if self.method == "widths" and len(self.kernels) > 1:
            raise InputError(
                "--kernel names several kernels, but --method widths learns one for all blocks. Use --method multiple."
            )
        if self.method == "multiple" and not self.blocks and n_descriptors < 2:
            raise InputError(
                "--method multiple needs blocks: name their columns with --blocks, such as sift=0:300,hog=300:500."
            )
        if self.method == "multiple":
            for name in _WIDTH_OPTIONS:
                if getattr(self, name) != getattr(KernelSettings, name):
                    raise InputError(f"--{name.replace('_', '-')} is for --method widths; leave it out.")

    def estimator(self, task: TaskName) -> BaseEstimator:
        """Return the unfitted model of these settings."""
        from chimap import (
            AutomaticFeatures,
            FourierKernelLearner,
            FourierKernelRegressor,
            MultipleKernelLearner,
            MultipleKernelRegressor,
        )

        shared = self.of_every_model()
        shared["features"] = "auto" if self.n_terms == "auto" else AutomaticFeatures(n_terms=self.n_terms)
        if self.method == "multiple":
            return (MultipleKernelLearner if task == "classify" else MultipleKernelRegressor)(**shared)
        return (FourierKernelLearner if task == "classify" else FourierKernelRegressor)(
            widths=self.widths,
            objective=self.objective,
            width_strength=self.width_strength,
            n_tune_components=self.tune_components,
            n_tune_rows=self.tune_rows,
            validation_fraction=self.validation_fraction,
            max_iter=self.iterations,
            **shared,
        )


_LINES_SHOWN = 12  # widths or weights shown on the terminal; the page and the model hold all of them


def learn_kernel(
    data: str,
    *,
    output: Path,
    page: Path | None = None,
    labels: str | None = None,
    settings: Annotated[
        KernelSettings,
        Without(
            "gamma",
            "map",
            "features",
            "sampling",
            "normalization",
            "bin_weights",
            "time_limit",
            "scoring",
            "device",
            "engine",
            "principal",
            "ordered",
            "label_tree",
        ),
    ],
    config_file: Path | None = None,
    save_config: Path | None = None,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Fit a model and learn how much each column counts.

    --method widths learns how much each block of columns, or each column, counts. It follows exact gradients of the
    error on held-out rows, using a sample of the rows and few features, then reads all rows once with the final widths.

    --method multiple gives each block its own kernel and learns their weights; blocks that do not help get weight 0.

    The model works like any other with chimap predict, evaluate and info.

    Parameters
    ----------
    page : PAGE, common
        Write the learned kernel as one HTML page.

    \b
    Examples:
      chimap learn-kernel plots.csv --labels site --widths bin -o plots.model
      chimap learn-kernel data.npz --blocks a=0:300,b=300:500 --output my.model
      chimap learn-kernel data.npz --widths bin -o my.model --page kernel.html
      chimap learn-kernel data.npz --widths bin --kernel gaussian --test-fraction 0.2 --output my.model
      chimap learn-kernel data.npz --blocks sift=0:300,hog=300:500 --method multiple --output my.model
      chimap learn-kernel big.parquet --labels species --tune-rows 30000 --tune-components 1024 --output my.model
      chimap predict my.model new.npz --output predictions.csv
    """
    from chimap.cli.training import train
    from chimap.reports import LearnedKernel

    outputs.check_outputs(
        {"--output": output, "--page": page, "--save-config": save_config}, (data, labels, config_file), overwrite
    )
    config.save(save_config)
    settings = settings.complete()
    fitted = train(data, labels, output, settings, overwrite=overwrite, silent=json, verbose=True)
    held_out = fitted.held_out and fitted.held_out.line
    learned_kernel = LearnedKernel.of(fitted.model, fitted.source, score=held_out)
    if page is not None:
        with show.busy("drawing the page"):
            learned_kernel.save(page, overwrite=overwrite)
        messages.written.append(str(page))
    if json:
        about = {"command": "learn-kernel", "model": str(output), "page": page and str(page)}
        metrics = fitted.held_out and fitted.held_out.metrics.as_dict()
        show.as_json({**about, **learned_kernel.as_dict(), "held_out": metrics})
        return
    seconds = show.duration(sum(fitted.model.stage_seconds_.values()))
    show.facts(f"Learned in {seconds}", summary(fitted, learned_kernel, output, page))


def summary(fitted: FittedModel, kernel: LearnedKernel, output: Path, page: Path | None) -> dict[str, str | None]:
    """Return the lines of the terminal summary."""
    model, about = fitted.model, fitted.model.describe()
    lines: dict[str, str | None] = {
        "data": f"{fitted.source.name}, {model.n_rows_:,} training rows",
        "task": model.training_["task"] + f" ({fitted.task_reason})",
        "kernel": kernel_in_words(about["kernel"], about["gamma"]),
        "features": about["features"],
    }
    if kernel.widths is not None:
        first, last = kernel.history[0], kernel.history[-1]
        lines["objective"] = (
            f"{first['objective']:.4f} to {last['objective']:.4f} in {last['iteration']} iterations ({kernel.stopped})"
        )
        lines["widths"] = _listed(kernel.widths.names, kernel.widths.ratios, "{:.2f}x narrower", "{:.2f}x wider")
    if kernel.channels is not None:
        shares = zip(kernel.channels.names, kernel.channels.shares, strict=True)
        lines["channels"] = "\n".join(
            f"{name}: {show.percent(share)}" if share else f"{name}: not used"
            for name, share in list(shares)[:_LINES_SHOWN]
        )
    return lines | {
        "alpha": f"{model.alpha_:.4g}",
        "held out": kernel.score,
        "time": show.stages(model.stage_seconds_),
        "peak memory": show.size(show.peak_memory()),
        "page": str(page) if page else None,
        "model": f"{output} ({show.size(output.stat().st_size)})",
    }


def _listed(names: Sequence[str], ratios: np.ndarray, narrower: str, wider: str) -> str:
    """Return the widths that changed most, one line each."""
    order = sorted(range(len(names)), key=lambda j: -abs(float(ratios[j]) - 1 / float(ratios[j])))
    lines = [
        f"{names[j]}: {narrower.format(ratios[j]) if ratios[j] >= 1 else wider.format(1 / ratios[j])}"
        for j in order[:_LINES_SHOWN]
    ]
    return "\n".join(lines + (["..."] if len(order) > _LINES_SHOWN else []))
