"""``chimap learn-kernel``: learn the widths of a kernel, or the weights of several, from rows and labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chimap.cli.support import config, errors, fit_options, options, outputs, show
from chimap.cli.support.bundles import Without
from chimap.cli.support.evaluated import strength_curve
from chimap.cli.support.kernel_settings import KernelSettings
from chimap.cli.support.score_lines import score_line
from chimap.cli.support.training import FittedModel, train

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from chimap._types import Parameters
    from chimap.report import LearnedKernel
    from chimap.report.kernel import ChannelPath, ChannelWeights

_SHOWN = 12  # widths or weights shown on the terminal; the page and the model hold all of them


def learn_kernel(
    context: typer.Context,
    data: options.Data,
    output: fit_options.Output,
    *,
    page: Annotated[
        Path | None,
        options.optional("PAGE", "Write the learned kernel as one HTML page."),
    ] = None,
    labels: options.Labels = None,
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
        ),
    ],
    config_file: config.Config = None,
    save_config: config.SaveConfig = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Fit a model together with its kernel.

    --method widths learns how much each block of columns, or each column, counts. It follows exact gradients of the
    error on held-out rows, using a sample of the rows and few features, then reads all rows once with the final widths.

    --method multiple gives each block its own kernel and learns their weights; blocks that do not help get weight 0.

    The model works like any other with chimap predict, evaluate and info.

    \b
    Examples:
      chimap learn-kernel data.npz --blocks sift=0:300,hog=300:500 --output my.model --page kernel.html
      chimap learn-kernel data.npz --widths bin --kernel gaussian --test-fraction 0.2 --output my.model
      chimap learn-kernel data.npz --blocks sift=0:300,hog=300:500 --method multiple --output my.model
      chimap learn-kernel big.parquet --labels species --tune-rows 30000 --tune-components 1024 --output my.model
      chimap predict my.model new.npz --output predictions.csv
    """  # fmt: skip
    outputs.check_outputs(
        {"--output": output, "--page": page, "--save-config": save_config},
        (data, labels, config_file),
        overwrite,
    )
    config.save(context, save_config)
    settings = settings.complete()
    fitted = train(data, labels, output, settings, overwrite=overwrite, silent=json)
    learned_kernel = learned(fitted)
    if page is not None:
        from chimap.report import write_learned_kernel

        with show.busy("drawing the page"):
            write_learned_kernel(learned_kernel, page, overwrite=overwrite)
        errors.written.append(str(page))
    if json:
        about = {"command": "learn-kernel", "model": str(output), "page": page and str(page)}
        held_out = fitted.held_out and fitted.held_out.metrics.as_dict()
        show.as_json({**about, **learned_kernel.as_dict(), "held_out": held_out})
        return
    seconds = show.duration(sum(fitted.model.stage_seconds_.values()))
    show.facts(f"Learned in {seconds}", summary(fitted, learned_kernel, output, page))


def learned(fitted: FittedModel) -> LearnedKernel:
    """Return everything that the page and ``--json`` show."""
    from chimap.kernel_learning.widths import tune_components
    from chimap.report import LearnedKernel, Widths, package_versions
    from chimap.report.formatting import counted

    model, source = fitted.model, fitted.source
    is_classifier = hasattr(model, "classes_")
    metric = "accuracy" if is_classifier else "R²"
    data = {
        "file": source.name.partition(",")[0],
        "rows": source.n_rows,
        "rows learned from": model.n_rows_,
        "columns": source.n_features,
        "classes": len(model.classes_) if is_classifier else None,
    }
    common: Parameters = {
        "metric": metric,
        "data": {name: value for name, value in data.items() if value is not None},
        "settings": dict(model.training_["settings"]),
        "score": fitted.held_out and score_line(fitted.held_out),
        "stages": model.stage_seconds_,
        "versions": package_versions(),
        "title": f"{model.kernel_.name} on {data['file']}",
    }
    if hasattr(model, "kernel_weights_"):
        channels, path = _channels(model)
        used = int((channels.shares > 0).sum())
        kernels = counted(len(channels.names), "kernel")
        method = f"Weights of {kernels}, one for each channel; {used} of them are used (l21 penalty)."
        return LearnedKernel(method=method, channels=channels, path=path, **common)
    n_rows = min(model.n_tune_rows or model.n_rows_, model.n_rows_)
    n_features = min(
        tune_components(model.n_tune_components, n_rows) or model.n_components, model.n_components
    )
    method = (
        f"{counted(len(model.width_names_), 'width')} of one kernel, learned on {n_rows:,} rows with {n_features:,} "
        f"random features. The weights were learned on {model.n_rows_:,} rows with {model.n_components:,}."
    )
    return LearnedKernel(
        method=method, widths=Widths(model.width_names_, model.start_widths_, model.widths_),
        history=model.history_, stopped=model.stopped_,
        curve=None if hasattr(model, "path_") else strength_curve(model), **common,
    )  # fmt: skip


def _channels(model: BaseEstimator) -> tuple[ChannelWeights, ChannelPath]:
    """Return the weights and the regularisation path of a model of several kernels."""
    from chimap.report import ChannelPath, ChannelWeights

    n_outputs = model.kernel_weights_.shape[0]
    names = [str(c) for c in model.classes_] if n_outputs > 1 else ["all"]
    weights = ChannelWeights(model.channels_, model.kernel_weights_, names)
    path = model.path_
    errors = None if model.selection_ is None else model.selection_.scores.mean(axis=1)
    return weights, ChannelPath(model.channels_, path.alphas, path.weights.sum(axis=1), errors, path.chosen)


def summary(
    fitted: FittedModel, kernel: LearnedKernel, output: Path, page: Path | None
) -> dict[str, str | None]:
    """Return the lines of the terminal summary."""
    model, about = fitted.model, fitted.model.describe()
    lines: dict[str, str | None] = {
        "data": f"{fitted.source.name}, {model.n_rows_:,} training rows",
        "task": model.training_["task"] + f" ({fitted.task_reason})",
        "kernel": show.kernel(about["kernel"], about["gamma"]),
        "features": about["features"],
    }
    if kernel.widths is not None:
        first, last = kernel.history[0], kernel.history[-1]
        lines["objective"] = (
            f"{first['objective']:.4f} to {last['objective']:.4f} in {last['iteration']} iterations "
            f"({kernel.stopped})"
        )
        lines["widths"] = _listed(
            kernel.widths.names, kernel.widths.ratios, "{:.2f}x narrower", "{:.2f}x wider"
        )
    if kernel.channels is not None:
        shares = zip(kernel.channels.names, kernel.channels.shares, strict=True)
        lines["channels"] = "\n".join(
            f"{name}: {show.percent(share)}" if share else f"{name}: not used"
            for name, share in list(shares)[:_SHOWN]
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
        for j in order[:_SHOWN]
    ]
    return "\n".join(lines + (["..."] if len(order) > _SHOWN else []))
