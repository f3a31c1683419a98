"""``chimap fit``: fit a model on a file of rows and labels."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from chimap._errors import InputError
from chimap._formatting import (
    bin_weights_in_words,
    blocks_in_words,
    class_weights_in_words,
    covariates_in_words,
    depth_gain_in_words,
    kernel_in_words,
    left_out_in_words,
)
from chimap.cli import config, outputs, show
from chimap.cli.commands import evaluate
from chimap.cli.fit_settings import Settings
from chimap.cli.image_rows import ImageSettings
from chimap.cli.options import CountedColumn, TableOptions
from chimap.cli.parser import Without

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from chimap._types import JSON
    from chimap.cli.training import FittedModel
    from chimap.data import Source


def fit(
    data: str,
    *,
    output: Path,
    labels: str | None = None,
    table: Annotated[TableOptions, Without("missing_columns")],
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

    \b
    Examples:
      chimap fit plots.csv --labels site --test-fraction 0.2 --output plots.model
      chimap fit reviews.csv --text review --labels stars --output reviews.model
      chimap fit photos/ --test-fraction 0.2 --output photos.model
      chimap fit samples.csv --labels site --groups subject --test-fraction 0.3 --output samples.model
      chimap fit data.npz --test-fraction 0.2 --output my.model
      chimap fit rows.npy --labels labels.csv --kernel intersection --output my.model
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
    if report is not None and not settings.test_fraction and not by_column:
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
        reading=reading,
        learning_curve=report is not None,
    )
    if report is not None:
        how = evaluate.EvaluateSettings(part=images.part)
        evaluate.measure(output, data, labels, report, how, table, overwrite=overwrite, silent=json)
    if json:
        show.as_json(fit_as_dict(fitted, output))
        return
    seconds = show.duration(sum(fitted.model.stage_seconds_.values()))
    show.facts(f"Fitted in {seconds}", fit_summary(fitted, output))
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


_ROWS_WORTH_TIMING = 10_000  # rows that a machine keeps from which its predictions take a time worth a line
_ROWS_TIMED = 256  # rows that are predicted to time them
_CANDIDATES_LISTED = 5  # candidates of the race to show


def fit_summary(fitted: FittedModel, output: Path) -> dict[str, str | None]:
    """Return the lines of the terminal summary of a fit."""

    model, source = fitted.model, fitted.source
    learned = model.fitted.learned
    held_out, absent = _not_learned_from(fitted)
    rows = f"{model.n_rows_:,}{blocks_in_words(learned.findings.block_rows)}"
    rows += f" plus {held_out:,} held out" if held_out else ""
    unlearned = learned.findings.n_unlearned
    rows += f"; {unlearned:,} left out, as the work is limited: --time-limit allows more" if unlearned else ""
    rows += f"; {absent:,} of weight 0" if absent > 0 else ""
    rows += left_out_in_words(source.n_left_out, source.n_unreadable)
    has_classes = model.fitted.recipe.is_classifier
    task = f"classification, {model.classes_.size:,} classes" if has_classes else "regression"
    if model.fitted.task_names is not None:
        kind = "tasks of two classes" if has_classes else "quantiles" if model.loss == "quantile" else "regressions"
        task = f"{model.n_outputs} {kind}"
    n_features = model.feature_coef_.shape[1]
    about = model.describe()
    in_precision = "" if model.precision == "float32" else f" in {model.precision_}"
    covariates = model.fitted.recipe.covariate_columns
    return {
        "data": source.name,
        "rows": rows,
        "bins": f"{source.n_features:,}",
        "histograms": None if model.histograms_ is None else model.histograms_.describe(),
        "task": f"{task} ({fitted.task_reason})",
        "race": race_lines(model),
        "kernel": kernel_in_words(about["kernel"], about["gamma"]),
        "features": f"{n_features:,}{in_precision}: {about['features']}",
        "loss": loss_line(model),
        "alpha": f"{model.alpha_:.4g} ({choice_of_alpha(model)})",
        "covariates": None if covariates is None else covariates_in_words(covariates.describe()),
        "bin weights": bin_weights_line(model),
        "weights": weights_line(fitted),
        "positive": None if model.positive_ is None else str(model.positive_),
        "threshold": threshold_line(model),
        "depth": depth_line(model),
        "held out": fitted.held_out and fitted.held_out.line,
        "linear": None if fitted.linear is None else fitted.linear.line,
        "shortcuts": shortcuts_line(fitted),
        "time": show.stages(model.stage_seconds_),
        "prediction": prediction_line(model, source),
        "peak memory": f"{show.size(show.peak_memory())}{of_budget(model)}",
        "model": f"{output} ({show.size(output.stat().st_size)})",
    }


def shortcuts_line(fitted: FittedModel) -> str | None:
    """Return what tells the labels besides the counts, by more than two standard errors; None if nothing does."""
    from chimap._formatting import measure_in_words

    if not fitted.shortcuts:
        return None
    measure = measure_in_words("roc_auc" if fitted.model.fitted.recipe.is_classifier else "r2")
    told = ", ".join(f"{line.words} {line.score:.3f} +- {line.error:.3f}" for line in fitted.shortcuts)
    return f"{told} ({measure}); chimap audit says what is left without them"


def depth_line(model: BaseEstimator) -> str | None:
    """Return what thinned copies of the rows gain; None without any."""
    if not model.depth_robust:
        return None
    gain = model.fitted.learned.depth_gain
    return "too few rows to tell what thinned copies gain" if gain is None else depth_gain_in_words(gain)


def choice_of_alpha(model: BaseEstimator) -> str:
    """Return how the strength was chosen."""
    raced = model.fitted.learned.race
    if model.selection_ is None:
        if "alpha" in model.chosen_ and raced is not None:
            return f"chosen by the race, on {raced.trials[0].n_rows:,} rows"
        return "as given" if model.alpha != "auto" else "not cross-validated: too few rows, or all targets are equal"
    chosen = str(model.selection_.describe())
    if model.fitted.learned.findings.n_principal is not None:
        numbers = ", ".join(f"{n:,}" for n in sorted(set(model.selection_.settings["n_components"])))
        chosen += f", with {model.n_principal_:,} components in each block, chosen from {numbers}"
    return chosen


def of_budget(model: BaseEstimator) -> str:
    """Return ' of 2.0 GiB (automatic: up to half of what is free)', the budget of the fit."""
    from chimap._memory import format_bytes

    how = " (automatic: up to half of what is free)" if model.memory == "auto" else ""
    return f" of {format_bytes(model.fitted.recipe.budget)}{how}"


def prediction_line(model: BaseEstimator, source: Source) -> str | None:
    """Return how long a thousand predictions take, for machines of so many rows that it matters; else None."""
    if model.fitted.learned.findings.row_numbers is None or model.n_rows_ < _ROWS_WORTH_TIMING:
        return None
    import numpy as np

    from chimap.reports.rows import taken

    rows = taken(source, np.arange(min(_ROWS_TIMED, source.n_rows)))
    began = time.perf_counter()
    model.predict_source(rows)
    seconds = (time.perf_counter() - began) * 1000 / rows.n_rows
    return f"1,000 rows in {show.duration(seconds)}; chimap compress makes a smaller model"


def race_lines(model: BaseEstimator) -> str | None:
    """Return the best trials of the race, and a last line with the winner and the linear model; None without a race."""
    result = model.fitted.learned.race
    if result is None:
        return None
    from chimap._formatting import measure_in_words, score_in_words
    from chimap.models.race_result import SAME

    best = result.trials[0]
    lines = [
        f"{score_in_words(t.score, result.measure)}  {t.candidate.name} ({t.n_rows:,} rows, {show.duration(t.seconds)})"
        for t in result.trials[:_CANDIDATES_LISTED]
    ]
    verdict = (
        f"{best.candidate.name} {score_in_words(best.score, result.measure)}{result.against_linear} "
        f"({measure_in_words(result.measure)} on {result.n_held_out:,} held-out rows)"
    )
    if result.expected is not None:
        verdict += f". Expect {result.expected[0]:.3f} +- {2 * result.expected[1]:.3f} of unseen rows"
    if best.score < max(t.score for t in result.trials if t.n_rows == best.n_rows) - SAME:
        verdict += ". Others lead by no more than chance, and tables of the kind mostly prefer the winner"
    if any(trial.candidate.settings.get("bin_weights") == "learn" for trial in result.trials[1:]):
        verdict += ". Learned bins are taken only if they gain more than two standard errors"
    return "\n".join([*lines, verdict])


def _not_learned_from(fitted: FittedModel) -> tuple[int, int]:
    """Return the numbers of held-out rows and of rows with weight 0."""
    held_out = 0 if fitted.held_out is None else fitted.held_out.metrics.n_rows
    unlearned = fitted.model.fitted.learned.findings.n_unlearned or 0
    return held_out, fitted.source.n_rows - fitted.model.n_rows_ - unlearned - held_out


def bin_weights_line(model: BaseEstimator) -> str | None:
    """Return the heaviest bins, or why none could be learned; None for equal weights."""
    if isinstance(model.bin_weights, str) and model.bin_weights == "learn" and model.fitted.learned.race is None:
        return "equal, as --memory is too small to learn them"
    return bin_weights_in_words(model.bin_weights_, model.fitted.columns)


def weights_line(fitted: FittedModel) -> str | None:
    """Return 'rows by times; classes 0.52 (inactive), 12.3 (active)', or None if all rows count equally."""
    model, by = fitted.model, (fitted.model.training_["table"] or {}).get("sample_weight")
    names = model.fitted.task_names or (model.classes_ if model.fitted.recipe.is_classifier else None)
    by_class = class_weights_in_words(names, model.fitted.task.class_weight)
    of_rows = f"rows by {by}, numbers of equal rows" if model.weights == "frequency" else f"rows by {by}"
    kinds = [of_rows if by else None, f"classes {by_class}" if by_class else None]
    return "; ".join(kind for kind in kinds if kind) or None


def threshold_line(model: BaseEstimator) -> str | None:
    """Return '-0.42: scores above it mean active (chosen by f1 on held-out rows)', or None without a threshold.

    If the positive class was named, the line says on which side it is, and that the rule is about it.
    """
    from chimap.reports.classification import threshold_in_words

    answers = model.fitted.answers
    if not model.fitted.recipe.is_classifier or answers.threshold is None:
        return None
    rule = model.threshold if isinstance(model.threshold, str) else f"a cost of {model.threshold:g}"
    about = "" if model.positive_ is None else f" of {model.positive_}"
    meaning = threshold_in_words(answers.threshold, model.classes_, model.positive_)
    return f"{meaning} (chosen by {rule}{about} on held-out rows)"


def loss_line(model: BaseEstimator) -> str | None:
    """Return a line such as 'logistic, 59 passes', or None for the square loss, the default."""
    loss = model.chosen_.get("loss", model.loss)
    if loss == "square":
        return None
    if loss == "quantile":
        loss = f"{loss} {', '.join(f'{level:g}' for level in model.loss_.levels)}"
    if model.n_passes_ == 1:
        return str(loss)
    return f"{loss}, {model.n_passes_} passes" if model.n_passes_ else f"{loss}, by LIBLINEAR"


def fit_as_dict(fitted: FittedModel, output: Path) -> JSON:
    """Return the values of ``--json``."""
    model, source = fitted.model, fitted.source
    held_out, learned = fitted.held_out, model.fitted.learned
    covariates = model.fitted.recipe.covariate_columns
    return {
        "command": "fit",
        "model": str(output),
        "model_bytes": output.stat().st_size,
        "data": source.name,
        "rows": model.n_rows_,
        "block_rows": learned.findings.block_rows,
        "covariates": covariates and covariates.describe(),
        "rows_unlearned": learned.findings.n_unlearned or 0,
        "rows_held_out": _not_learned_from(fitted)[0],
        "rows_of_weight_0": _not_learned_from(fitted)[1],
        "rows_left_out": source.n_left_out,
        "rows_unreadable": source.n_unreadable,
        "bins": source.n_features,
        "task": model.training_["task"],
        "task_reason": fitted.task_reason,
        "classes": model.classes_ if model.fitted.recipe.is_classifier else None,
        "kernel": model.kernel_.name,
        "gamma": model.describe()["gamma"],
        "features": model.feature_coef_.shape[1],
        "precision": model.precision_,
        "race": learned.race and learned.race.rows(),
        "race_expected": learned.race and learned.race.expected,
        "bin_weights": model.bin_weights_,
        "loss": model.chosen_.get("loss", model.loss),
        "alpha": model.alpha_,
        "class_weight": model.fitted.task.class_weight,
        "positive": model.positive_,
        "threshold": model.fitted.answers.threshold if model.fitted.recipe.is_classifier else None,
        "depth_gain": learned.depth_gain,
        "cross_validated_r2": cross_validated_r2(model),
        "shortcuts": [vars(line) for line in fitted.shortcuts],
        "held_out": held_out and {**held_out.metrics.as_dict(), "baseline": held_out.baseline.as_dict()},
        "linear": fitted.linear and fitted.linear.as_dict(),
        "seconds": model.stage_seconds_,
        "peak_memory_bytes": show.peak_memory(),
        "settings": model.training_["settings"],
        "version": model.training_["version"],
    }


def cross_validated_r2(model: BaseEstimator) -> float | None:
    """Return R², 1 - error / total, at the chosen strength, or None if the strength was given."""
    scores = model.selection_
    if scores is None or not scores.baseline > 0:
        return None
    return float(scores.r2[scores.chosen])
