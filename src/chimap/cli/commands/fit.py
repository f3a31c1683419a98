"""``chimap fit``: fit a model on a file of rows and labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chimap._errors import InputError
from chimap.cli.commands import evaluate
from chimap.cli.support import config, fit_options, fit_summary, options, outputs, show
from chimap.cli.support.declared import default
from chimap.cli.support.fit_settings import Settings
from chimap.cli.support.image_options import ImageSettings
from chimap.cli.support.table import CountedColumn, TableOptions
from chimap.cli.support.training import train


def fit(
    context: typer.Context,
    data: options.DataOrImages,
    output: fit_options.Output,
    *,
    labels: options.Labels = None,
    table: TableOptions,
    counted: CountedColumn,
    settings: Settings,
    scheduler: Annotated[
        str | None,
        options.optional(
            "ADDRESS",
            "Address of a Dask cluster, such as tcp://host:8786. By default, workers start on this machine.",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        options.optional(
            "FILE", "File to save progress to. Rerun the command to resume an interrupted fit from it."
        ),
    ] = None,
    checkpoint_every: Annotated[
        float, options.value("SECONDS", "Seconds between two writes of the checkpoint.")
    ] = default("seconds", "Checkpoint"),
    unlabelled: Annotated[
        str | None,
        options.optional("DATA", "Unlabelled rows to include in the principal components."),
    ] = None,
    images: ImageSettings,
    report: Annotated[
        Path | None,
        options.optional(
            "REPORT",
            "Also write a report on the held-out rows, as 'chimap evaluate' does. It needs --test-fraction or "
            "--split.",
        ),
    ] = None,
    config_file: config.Config = None,
    save_config: config.SaveConfig = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Fit a model on the rows and labels of DATA.

    The labels decide between classification and regression. DATA is read in chunks: once for the square loss, and
    several times for other losses unless the features fit in memory. Memory use does not grow with the number of rows,
    except with the hinge loss. The model file opens safely on any machine.

    \b
    Examples:
      chimap fit data.npz --test-fraction 0.2 --output my.model
      chimap fit rows.npy --labels labels.csv --kernel intersection --output my.model
      chimap fit photos/ --test-fraction 0.2 --output photos.model
      chimap fit data.npz --save-config fit.toml --output my.model
      chimap fit --config fit.toml --alpha 0.1 --output other.model
      chimap fit big.svm.gz --components 8192 --memory 4GiB --output my.model
      chimap fit data.npz --blocks sift=0:300,hog=300:500 --kernel exp-chi2,chi2 --output my.model
      chimap fit data.npz --components 9000 --principal 1000,3000 --output my.model
      chimap fit huge.parquet --labels species --checkpoint fit.checkpoint --output my.model
      chimap fit huge.parquet --engine dask --scheduler tcp://head:8786 --output my.model
      chimap fit data.npz --loss squared_hinge --output my.model
      chimap fit data.npz --kernel chi2 --terms 3 --loss hinge --output my.model
      chimap fit photos.tar --descriptors sift,colour --kernel exp-chi2,chi2 --output photos.model
      chimap fit cells.h5ad --labels cell_type --output cells.model
      chimap fit table.biom --labels metadata.tsv::body_site --output samples.model
      chimap fit samples.csv --labels site --groups subject --test-fraction 0.3 --output samples.model
      chimap fit signs.parquet --labels sign --split part --output signs.model
      chimap fit hits.parquet --labels active --class-weight balanced --threshold f1 --output hits.model
      chimap fit samples.csv --labels site --sample-weight times --output samples.model
      chimap fit reviews.csv --text review --labels stars --output reviews.model
      chimap fit molecules.csv --smiles smiles --labels toxic --output molecules.model
      chimap fit archive.npz::x_train --labels ::y_train --output my.model
    """
    outputs.check_outputs(
        {"--output": output, "--save-config": save_config, "--report": report},
        (data, labels, unlabelled, config_file),
        overwrite,
        resumed={"--checkpoint": checkpoint},
    )
    if report is not None and not settings.test_fraction and table.split is None:
        raise InputError(
            "--report needs held-out rows: add --test-fraction 0.2 or --split, or leave --report out."
        )
    config.save(context, save_config)
    fitted = train(
        data, labels, output, settings, overwrite=overwrite, silent=json, unlabelled=unlabelled, scheduler=scheduler,
        checkpoint=checkpoint, checkpoint_every=checkpoint_every, images=images, table=table,
        reading=counted.reading(), learning_curve=report is not None,
    )  # fmt: skip
    if report is not None:
        evaluate.measure(
            output, data, labels, report, part=images.part, overwrite=overwrite, silent=json, table=table,
        )  # fmt: skip
    if json:
        show.as_json(fit_summary.as_dict(fitted, output))
        return
    seconds = show.duration(sum(fitted.model.stage_seconds_.values()))
    show.facts(f"Fitted in {seconds}", fit_summary.summary(fitted, output))
    labels_flag = f" --labels {show.quoted(labels)}" if labels else ""
    page = " --output report.html"
    same_data = f"{show.quoted(output)} {show.quoted(data)}{labels_flag}"
    if report is not None:
        show.next_commands("Next, explain its predictions:", f"chimap explain {same_data} --output why.html")
    elif fitted.held_out:
        show.next_commands("Next, write a report on the held-out rows:", f"chimap evaluate {same_data}{page}")
    else:
        is_images = fitted.model.histograms_ is not None
        command = f"chimap evaluate {show.quoted(output)} {_others_like(data, is_images)}{_labels_like(labels)}{page}"
        show.next_commands(f"Next, evaluate on new {'images' if is_images else 'rows'}:", command)


def _labels_like(labels: str | None) -> str:
    """Return the flag that names the labels of other data.

    A column or member keeps its name; a separate file of labels becomes a placeholder with the same ending.
    """
    if not labels:
        return ""
    is_file = "::" not in labels and Path(labels).is_file()
    return f" --labels {f'OTHER-LABELS{Path(labels).suffix}' if is_file else show.quoted(labels)}"


def _others_like(data: str, images: bool) -> str:
    """Return a placeholder name for other data of the same kind."""
    if images and Path(data).is_dir():
        return "OTHER-IMAGES/"
    file, colons, member = data.partition("::")
    endings = "".join(Path(file).suffixes[-2:] if file.endswith(".gz") else Path(file).suffixes[-1:])
    return f"OTHER{endings or '.npz'}{colons}{member}"
