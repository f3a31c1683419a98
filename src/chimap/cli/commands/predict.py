"""``chimap predict``: write a prediction for each row of a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from chimap._errors import InputError
from chimap.cli import messages, outputs, show
from chimap.cli.options import TableOptions
from chimap.cli.parser import Without

if TYPE_CHECKING:
    from chimap._types import JSON
    from chimap.models.predictor import Predictor


def predict(
    model: Path,
    data: str,
    *,
    output: Path,
    labels: str | None = None,
    table: Annotated[TableOptions, Without("groups", "split", "sample_weight", "covariates")],
    scores: bool = False,
    probabilities: bool = False,
    sets: bool = False,
    class_conditional_sets: bool = False,
    intervals: bool = False,
    coverage: float = 0.9,
    unassigned: float | None = None,
    level: float | None = None,
    depth: bool = False,
    part: str | None = None,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Write a prediction for every row of DATA.

    Predictions are labels, or numbers if MODEL is a regression, in the order of the rows. A model of several tasks
    writes one column for each task. DATA needs no labels: if a table has a column of labels that is not called y or
    label, name it with --labels so that it is not read as a bin. Predictions for images carry the names of the images.
    SMILES, texts and images that cannot be read have blank predictions, and a last column with the reason.

    Parameters
    ----------
    output : FILE
        File to write the answers to: .csv, .npy or .npz; - prints CSV.
    labels : NAME
        Column of DATA that is a label, and not to be counted. Needed only if it is not called y or label, nor as it was
        for the fit.
    scores
        Add the score of every class. The answer is the class with the largest score.
    probabilities : common
        Add the probability of every class. Probabilities sum to 1.
    sets : common
        Add all classes that are possible: a set that holds the true class in 9 of 10 rows. --coverage sets another
        share.
    class_conditional_sets
        Add all classes that are possible, so that the sets hold the true class as often for rare classes as for common
        ones. --coverage sets how often.
    intervals : common
        Add an interval to each predicted number, which holds the truth in 9 of 10 rows. --coverage sets another share.
    coverage : SHARE, common
        How often --sets and --intervals hold the truth, as a share of the rows.
    unassigned : SHARE, common
        Answer "unassigned" for rows that are like none of the classes, such as cells of a new type; 0.05 is usual.
        These are rows without a probable class, and rows more unlike the training rows than all but this share of
        left-out training rows.
    level : SHARE
        For labels in a tree (chimap fit --label-tree): answer the deepest node that is right in this share of the rows.
    depth
        Add how probable it is that a deeper sample gets the same answer, and mark rows that are too shallow. Deeper
        means four times as many counts; stability is the probability, and too_shallow is 1 below 0.9, as chimap depth
        finds them. DATA are counts, which are held in memory.

    \b
    Examples:
      chimap predict plots.model new-plots.csv --output answers.csv
      chimap predict plots.model new-plots.csv --probabilities -o answers.csv
      chimap predict my.model new.csv --sets --coverage 0.95 --output answers.csv
      chimap predict my.model new.npz --scores --output predictions.npz
      chimap predict my.model new.svm --output - | head
      chimap predict cells.model new.h5ad --unassigned 0.05 --output predictions.csv
      chimap predict cells.model new.h5ad --level 0.9 --output predictions.csv
      chimap predict my.model huge.parquet --labels species --output predictions.csv
      chimap predict disease.model other-study.txt --missing-columns refuse --output predictions.csv
      chimap predict disease.model samples.biom --depth --output predictions.csv
      chimap predict photos.model new-photos/ --output predictions.csv
    """
    from chimap import load
    from chimap.cli import data_rows
    from chimap.cli.predictions import in_order, writer
    from chimap.reports.classification import threshold_in_words

    to_stdout = str(output) == "-"
    if to_stdout and json:
        raise InputError("--json and --output - both write to stdout; name a file with --output.")
    outputs.check_outputs({"--output": None if to_stdout else output}, (model, data, labels), overwrite)
    fitted: Predictor = load(model, kind="model").fitted
    if not 0 < coverage < 1:
        raise InputError(f"--coverage must be above 0 and below 1, such as 0.9; got {coverage:g}.")
    if level is not None and unassigned is not None:
        raise InputError("--level and --unassigned exclude each other: leave one of them out.")
    if level is not None and not 0 < level < 1:
        raise InputError(f"--level must be above 0 and below 1, such as 0.9; got {level:g}.")
    extras = {
        "scores": scores,
        "probabilities": probabilities,
        "sets": sets,
        "class_conditional_sets": class_conditional_sets,
        "intervals": intervals,
    }
    wanted = [name for name, is_wanted in extras.items() if is_wanted]
    write = writer(output, fitted, wanted, coverage, unassigned, level)
    if depth and output.suffix.lower() == ".npy":
        raise InputError(f"--output {output}: .npy holds one array, so it cannot take --depth; use .npz or .csv.")
    began = time.perf_counter()
    source = data_rows.open_data(data, labels, model=fitted, part=part, silent=json, reads_labels=False, table=table)
    found, of_rows = None, {}
    if depth:
        from chimap.diagnostics.depth import depth as depth_of

        found = depth_of(fitted, source, has_curve=False, progress=show.progress(json))
        of_rows["depth"] = in_order({"stability": found.stability, "too_shallow": found.too_shallow})
    n_unassigned = write(source, show.progress(json), of_rows)
    if to_stdout:
        return
    messages.written.append(str(output))
    facts = _found(model, data, output, source.n_rows, time.perf_counter() - began)
    if unassigned is not None:
        facts["unassigned"] = n_unassigned
    if found is not None:
        facts["too_shallow"] = int(found.too_shallow.sum())
    answers = fitted.answers
    facts["positive"], facts["threshold"] = fitted.positive, answers.threshold
    if json:
        show.as_json(facts)
        return
    seconds = show.duration(facts["seconds"])
    blank = f", {len(source.unread):,} of them blank," if source.unread else ""
    if unassigned is not None:
        blank += f", {n_unassigned:,} ({n_unassigned / source.n_rows:.1%}) of them unassigned,"
    if found is not None:
        blank += f", {facts['too_shallow']:,} of them too shallow to hold,"
    print(f"Wrote {source.n_rows:,} predictions{blank} to {output} ({show.size(facts['output_bytes'])}) in {seconds}")
    if answers.classes is not None and answers.threshold is not None:
        print(f"threshold {threshold_in_words(answers.threshold, answers.classes, fitted.positive)}")


def _found(model: Path, data: str, output: Path, rows: int, seconds: float) -> JSON:
    return {
        "command": "predict",
        "model": str(model),
        "data": data,
        "output": str(output),
        "output_bytes": output.stat().st_size,
        "rows": rows,
        "seconds": seconds,
        "peak_memory_bytes": show.peak_memory(),
    }
