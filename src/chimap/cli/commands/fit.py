"""``chimap fit``: a model from a file of rows and labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chimap.cli.commands import evaluate
from chimap.cli.support import config, fit_options, fit_summary, options, outputs, show
from chimap.cli.support.fit_settings import Settings
from chimap.cli.support.image_options import ImageSettings
from chimap.cli.support.table import CountedColumn, Table
from chimap.cli.support.training import train


def fit(
    context: typer.Context,
    data: options.DataOrImages,
    output: fit_options.Output,
    *,
    labels: options.Labels = None,
    table: Table,
    counted: CountedColumn,
    settings: Settings,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Address of a Dask cluster, such as tcp://host:8786; without it, workers on this machine.",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File to save progress to; rerun the command to resume an interrupted fit from it.",
            show_default=False,
        ),
    ] = None,
    checkpoint_every: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time between two writes of the checkpoint.")
    ] = 60.0,
    unlabelled: Annotated[
        str | None,
        typer.Option(
            metavar="DATA", help="Rows without labels that join the principal components.", show_default=False
        ),
    ] = None,
    images: ImageSettings,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="REPORT",
            help="Also write a report on the rows held out, as 'chimap evaluate' does (needs --test-fraction or "
            "--split).",
            show_default=False,
        ),
    ] = None,
    config_file: config.Config = None,
    save_config: config.SaveConfig = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Fit a model on the rows and labels of DATA.

    A classifier or a regression, whichever the labels ask for. DATA is read once, in chunks; for a loss other than
    square again and again, unless its features fit the memory. Memory does not grow with it, but for hinge. The model
    is a file that opens safely anywhere.

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
        raise ValueError(
            "--report is on rows that are held out: add --test-fraction 0.2 or --split, or leave it out."
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
    given = f" --labels {show.quoted(labels)}" if labels else ""
    page = " --output report.html"
    on_these = f"{show.quoted(output)} {show.quoted(data)}{given}"
    if report is not None:
        show.next_commands("next, why it answers as it does:", f"chimap explain {on_these} --output why.html")
    elif fitted.held_out:
        show.next_commands("next, a report on what was held out:", f"chimap evaluate {on_these}{page}")
    else:
        is_images = fitted.model.histograms_ is not None
        elsewhere = f"chimap evaluate {show.quoted(output)} {_others_like(data, is_images)}{_labels_like(labels)}{page}"
        show.next_commands(f"next, on {'images' if is_images else 'rows'} that it has not seen:", elsewhere)


def _labels_like(labels: str | None) -> str:
    """The flag that names labels of other data: the same column or member, or another file of labels alone."""
    if not labels:
        return ""
    is_file = "::" not in labels and Path(labels).is_file()
    return f" --labels {f'OTHER-LABELS{Path(labels).suffix}' if is_file else show.quoted(labels)}"


def _others_like(data: str, images: bool) -> str:
    """A name that stands for data of the same kind."""
    if images and Path(data).is_dir():
        return "OTHER-IMAGES/"
    file, colons, member = data.partition("::")
    endings = "".join(Path(file).suffixes[-2:] if file.endswith(".gz") else Path(file).suffixes[-1:])
    return f"OTHER{endings or '.npz'}{colons}{member}"
