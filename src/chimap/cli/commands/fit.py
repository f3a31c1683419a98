"""``chimap fit``: a model from a file of rows and labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chimap.cli.commands import evaluate
from chimap.cli.support import (
    config,
    data_rows,
    fit_options,
    fit_summary,
    image_options,
    options,
    outputs,
    show,
)
from chimap.cli.support.fit_options import Settings
from chimap.cli.support.image_options import ImageSettings
from chimap.cli.support.options import Engine
from chimap.cli.support.training import train


def fit(
    context: typer.Context,
    data: options.DataOrImages,
    output: fit_options.Output,
    labels: options.Labels = None,
    id: options.Id = None,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    missing: options.Missing = None,
    transpose: options.Transpose = False,
    groups: options.Groups = None,
    split: options.Split = None,
    sample_weight: options.SampleWeight = None,
    text: options.Text = None,
    smiles: options.Smiles = None,
    morgan_radius: options.MorganRadius = 2,
    morgan_size: options.MorganSize = 2048,
    kernel: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="chi2, intersection, jensen_shannon or hellinger, with exp- before it for the exponential form; "
            "gaussian, "
            "skewed-chi2, pq and others; auto runs a race. Sums: chi2+pq.",
        ),
    ] = Settings.kernel,
    gamma: Annotated[
        str,
        typer.Option(
            metavar="G", help="Scale of the exponential form: a number; mean, 1 / mean distance; or auto."
        ),
    ] = Settings.gamma,
    terms: fit_options.Terms = Settings.terms,
    components: Annotated[
        str,
        typer.Option(
            metavar="N",
            help="Landmarks, or random features, of an exponential kernel: a number, or auto. More is more "
            "accurate.",
        ),
    ] = str(Settings.components),
    map: Annotated[
        str, typer.Option(metavar="NAME", help="Map of the additive kernel; 'chimap compare' tries them all.")
    ] = Settings.map,
    features: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Features of the kernel: auto, additive, exact, landmarks or fourier."
        ),
    ] = Settings.features,
    sampling: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How to draw the frequencies of random features: orthogonal, structured, iid or qmc.",
        ),
    ] = Settings.sampling,
    loss: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="square, in one pass over DATA; or logistic, squared_hinge, smooth_hinge, epsilon_insensitive, "
            "hinge. "
            "The others pass over the rows some tens of times; hinge keeps their features in memory.",
        ),
    ] = Settings.loss,
    class_weight: fit_options.ClassWeight = Settings.class_weight,
    threshold: fit_options.Threshold = Settings.threshold,
    alpha: fit_options.Alpha = Settings.alpha,
    normalize: fit_options.Normalize = Settings.normalize,
    normalization: fit_options.Normalization = Settings.normalization,
    bin_weights: fit_options.BinWeights = Settings.bin_weights,
    race_seconds: fit_options.RaceSeconds = Settings.race_seconds,
    scoring: fit_options.Scoring = Settings.scoring,
    task: fit_options.TaskOption = Settings.task,
    test_fraction: fit_options.TestFraction = Settings.test_fraction,
    memory: fit_options.Memory = Settings.memory,
    precision: fit_options.PrecisionOption = Settings.precision,
    device: Annotated[
        str,
        typer.Option(metavar="DEVICE", help="cpu, or cuda: the pass and the solution there (needs torch)."),
    ] = Settings.device,
    engine: Annotated[
        Engine, typer.Option(help="What reads the rows: this process, or Dask workers.")
    ] = Settings.engine,
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
    blocks: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Columns of several descriptors, each with features of its own: sift=0:300,hog=hog_*. "
            "--kernel "
            "may then be a list.",
            show_default=False,
        ),
    ] = Settings.blocks,
    principal: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Principal components a block to learn on, found in a first pass. Several, such as "
            "500,1000,3000: the "
            "best of them by folds, with the strength.",
            show_default=False,
        ),
    ] = Settings.principal,
    unlabelled: Annotated[
        str | None,
        typer.Option(
            metavar="DATA", help="Rows without labels that join the principal components.", show_default=False
        ),
    ] = None,
    descriptors: image_options.Descriptors = ImageSettings.descriptors,
    words: image_options.Words = ImageSettings.words,
    coding: image_options.Coding = ImageSettings.coding,
    grids: image_options.Grids = ImageSettings.grids,
    step: image_options.Step = ImageSettings.step,
    sizes: image_options.Sizes = ImageSettings.sizes,
    part: image_options.ImagePart = None,
    strict: image_options.Strict = False,
    jobs: options.Jobs = Settings.jobs,
    folds: fit_options.Folds = Settings.folds,
    seed: options.Seed = Settings.seed,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="REPORT",
            help="Also write a report on the rows held out, as 'chimap evaluate' does (needs "
            "--test-fraction or "
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
    if report is not None and not test_fraction and split is None:
        raise ValueError(
            "--report is on rows that are held out: add --test-fraction 0.2 or --split, or leave it out."
        )
    config.save(context, save_config)
    settings = Settings(
        kernel, gamma, terms, components, map, sampling, alpha, normalize, task, test_fraction, memory,
        precision, engine, jobs, folds, seed, loss, blocks, principal, device, features,
        normalization=normalization, scoring=scoring, class_weight=class_weight, threshold=threshold,
        bin_weights=bin_weights, race_seconds=race_seconds,
    )  # fmt: skip
    table = data_rows.Table(id, columns, exclude, missing, transpose, groups, split, sample_weight)
    fitted = train(
        data, labels, output, settings, overwrite=overwrite, silent=json, unlabelled=unlabelled, scheduler=scheduler,
        checkpoint=checkpoint, checkpoint_every=checkpoint_every,
        images=ImageSettings(descriptors, words, coding, grids, step, sizes, part, strict),
        table=table,
        reading=options.reading_of(text, smiles, morgan_radius, morgan_size),
        learning_curve=report is not None,
    )  # fmt: skip
    if report is not None:
        evaluate.measure(
            output, data, labels, report, part=part, overwrite=overwrite, silent=json, table=table,
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
        images = fitted.model.histograms_ is not None
        elsewhere = (
            f"chimap evaluate {show.quoted(output)} {_others_like(data, images)}{_labels_like(labels)}{page}"
        )
        show.next_commands(f"next, on {'images' if images else 'rows'} that it has not seen:", elsewhere)


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
