"""``chimap fit``: fit a model on a file of rows and labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from chimap._errors import InputError
from chimap.cli import config, outputs, show
from chimap.cli.commands import evaluate
from chimap.cli.fit_settings import Settings
from chimap.cli.fitted import details, fit_as_dict, fitted_line, headline, lines_to_keep
from chimap.cli.image_rows import ImageSettings
from chimap.cli.options import CountedColumn, ForwardOptions, TableOptions
from chimap.cli.parser import Without

if TYPE_CHECKING:
    from chimap.cli.training import FittedModel


def fit(
    data: str,
    *,
    output: Path,
    labels: str | None = None,
    table: Annotated[TableOptions, Without("missing_columns")],
    forward: ForwardOptions,
    counted: CountedColumn,
    settings: Settings,
    scheduler: str | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: float = 60.0,
    unlabelled: str | None = None,
    images: ImageSettings,
    report: Path | None = None,
    config_file: Path | None = None,
    save_config: Path | None = None,
    overwrite: bool = False,
    verbose: bool = False,
    json: bool = False,
) -> None:
    """Fit a model on the rows and labels of DATA.

    The labels decide whether classes or numbers are predicted. DATA is read in pieces, so that memory does not grow
    with the number of rows, except with --loss hinge. The model file opens safely on any computer.

    Parameters
    ----------
    scheduler : ADDRESS
        Address of a Dask cluster, such as tcp://host:8786. By default, workers start on this computer.
    checkpoint : FILE
        File to save progress to. Run the same command again to go on after an interruption.
    checkpoint_every : SECONDS
        Seconds between two writes of --checkpoint.
    unlabelled : DATA
        More rows, without labels, to find principal components with.
    report : REPORT, common
        Also write a report on the rows kept apart, as 'chimap evaluate' does. It needs --test-fraction or --split.
    verbose
        Also print the race, how each setting was chosen, times and memory, which 'chimap info MODEL' shows later.

    \b
    Examples:
      chimap fit plots.csv --labels site --test-fraction 0.2 --output plots.model
      chimap fit reviews.csv --text review --labels stars --output reviews.model
      chimap fit photos/ --test-fraction 0.2 --output photos.model
      chimap fit samples.csv --labels site --groups subject --test-fraction 0.3 --output samples.model
      chimap fit data.npz --test-fraction 0.2 --output my.model
      chimap fit rows.npy --labels labels.csv --kernel intersection --output my.model
      chimap fit samples.csv --labels site --splits forward --time date --output samples.model
      chimap fit cells.h5ad --labels cell_type --output cells.model
      chimap fit data.npz --save-config fit.toml --output my.model
      chimap fit --config fit.toml --alpha 0.1 --output other.model
      chimap fit big.svm.gz --components 8192 --memory 4GiB --output my.model
      chimap fit data.npz --blocks sift=0:300,hog=300:500 --kernel exp-chi2,chi2 --output my.model
      chimap fit data.npz --components 9000 --principal 1000,3000 --output my.model
      chimap fit huge.parquet --labels species --checkpoint fit.checkpoint --output my.model
      chimap fit huge.parquet --engine dask --scheduler tcp://head:8786 --output my.model
      chimap fit data.npz --loss squared_hinge --output my.model
      chimap fit data.npz --kernel chi2 --terms 3 --loss hinge --output my.model
      chimap fit plots.csv --labels species_count --loss poisson --output counts.model
      chimap fit soil.csv --labels carbon --loss quantile --quantile 0.05,0.5,0.95 --output carbon.model
      chimap fit photos.tar --descriptors sift,colour --kernel exp-chi2,chi2 --output photos.model
      chimap fit table.biom --labels metadata.tsv::body_site --output samples.model
      chimap fit samples.csv --labels disease --covariates age,sex,batch --output samples.model
      chimap fit table.biom --labels meta.tsv::disease --covariates age,sex --metadata meta.tsv --output my.model
      chimap fit table.biom --labels meta.tsv::disease --depth-robust --output my.model
      chimap fit abundance.txt --labels disease --groups subjectID --rank s__ --output disease.model
      chimap fit final.opti_mcc.shared::0.03 --labels mouse.time.design::time --output time.model
      chimap fit signs.parquet --labels sign --split part --output signs.model
      chimap fit hits.parquet --labels active --class-weight balanced --threshold f1 --output hits.model
      chimap fit samples.csv --labels stage --ordered low,medium,high --output stage.model
      chimap fit cells.h5ad --labels cell_type --label-tree tree.tsv --output cells.model
      chimap fit samples.csv --labels site --sample-weight times --output samples.model
      chimap fit molecules.csv --smiles smiles --labels toxic --output molecules.model
      chimap fit archive.npz::x_train --labels ::y_train --output my.model
    """
    from chimap.cli.training import train

    outputs.check_outputs(
        {"--output": output, "--save-config": save_config, "--report": report},
        (data, labels, unlabelled, config_file),
        overwrite,
        resumed={"--checkpoint": checkpoint},
    )
    reading = counted.reading(settings.memory)
    by_column = table.split is not None and not table.splits_by_structure(reading)
    forward.check(table.split)
    if report is not None and not settings.test_fraction and not by_column and forward.time is None:
        raise InputError("--report needs held-out rows: add --test-fraction 0.2 or --split, or leave --report out.")
    config.save(save_config)
    fitted = train(
        data,
        labels,
        output,
        settings,
        overwrite=overwrite,
        silent=json,
        unlabelled=unlabelled,
        scheduler=scheduler,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        images=images,
        table=table,
        forward=forward,
        reading=reading,
        learning_curve=report is not None,
        lines_to_keep=lines_to_keep,
        verbose=verbose,
    )
    if report is not None:
        how = evaluate.EvaluateSettings(part=images.part)
        evaluate.measure(output, data, labels, report, how, table, overwrite=overwrite, silent=json)
    if json:
        show.as_json(fit_as_dict(fitted, output))
        return
    after = headline(fitted) | {"fitted": fitted_line(fitted.model)}
    show.answer(after, next_command(fitted, output, data, labels, reported=report is not None))
    if verbose:
        size = show.size(output.stat().st_size)
        show.facts("All of it", details(fitted) | {"model": f"{output} ({size})"})


def next_command(fitted: FittedModel, output: Path, data: str, labels: str | None, reported: bool) -> str:
    """Return the command to go on with: a report on the rows kept apart, or else on other rows, or explanations."""
    same = f"{show.quoted(output)} {show.quoted(data)}" + (f" --labels {show.quoted(labels)}" if labels else "")
    if reported:
        return f"chimap explain {same} --output why.html"
    if fitted.held_out is None:
        is_images = fitted.model.histograms_ is not None
        same = f"{show.quoted(output)} {_others_like(data, is_images)}{_labels_like(labels)}"
    return f"chimap evaluate {same} --output report.html"


def _labels_like(labels: str | None) -> str:
    """Return the flag that names the labels of other data.

    A column or member keeps its name; a separate file of labels becomes a placeholder with the same ending.
    """
    if not labels:
        return ""
    is_file = Path(labels).is_file()
    return f" --labels {f'OTHER-LABELS{Path(labels).suffix}' if is_file else show.quoted(labels)}"


def _others_like(data: str, images: bool) -> str:
    """Return a placeholder name for other data of the same kind."""
    if images and Path(data).is_dir():
        return "OTHER-IMAGES/"
    from chimap.readers.io.files import COMPRESSIONS, split_member

    file, member = split_member(data)
    is_compressed = file.endswith(COMPRESSIONS[1:])
    endings = "".join(Path(file).suffixes[-2 if is_compressed else -1 :])
    return f"OTHER{endings or '.npz'}{'' if member is None else f'::{member}'}"
