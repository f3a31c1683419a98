"""``chimap compare``: the race told in full on the user's own rows, and which machine to take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chimap.cli.support import data_rows, errors, fit_options, held_out_rows, options, outputs, show
from chimap.cli.support.fit_options import Settings
from chimap.cli.support.options import Task

if TYPE_CHECKING:
    from chimap.data import Source
    from chimap.report import Comparison, KernelErrors


class Precision(StrEnum):
    """Of features that are compared: rounded ones are those of a fit alone."""

    float32 = "float32"
    float64 = "float64"


def compare(
    data: options.Data,
    labels: options.Labels = None,
    id: options.Id = None,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    missing: options.Missing = None,
    transpose: options.Transpose = False,
    groups: options.Groups = None,
    split: options.Split = None,
    output: Annotated[
        Path | None, options.output("PAGE", "Write table and curves as one page of HTML.")
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Compare the features of one kernel, named as for 'chimap fit'; without it all kernels.",
            show_default=False,
        ),
    ] = None,
    gamma: Annotated[
        str,
        typer.Option(
            metavar="G", help="Of --kernel, if it is exponential: a number, or auto, chosen by each fit."
        ),
    ] = "auto",
    components: Annotated[
        str, typer.Option(metavar="N,N", help="Landmarks, and random features, of --kernel to try.")
    ] = "256,1024",
    normalization: fit_options.Normalization = None,
    scoring: fit_options.Scoring = None,
    kernel_errors: Annotated[
        bool,
        typer.Option(
            "--kernel-errors",
            help="Also measure how far maps and features of --kernel are from the kernel itself; without labels these "
            "alone.",
        ),
    ] = False,
    maps: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Of --kernel-errors: maps to try; all that take an additive kernel, optimal below random features.",
            show_default=False,
        ),
    ] = None,
    terms: Annotated[
        str | None,
        typer.Option(
            metavar="N,N",
            help="Of --kernel-errors: features a bin to try; 1,2,3,5 of an additive kernel, 2 below random features.",
            show_default=False,
        ),
    ] = None,
    task: fit_options.TaskOption = Task.auto,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Budget, here and for the fit that is recommended.")
    ] = Settings.memory,
    precision: Annotated[Precision, typer.Option(help="Of features.")] = Precision.float32,
    jobs: options.Jobs = Settings.jobs,
    seed: options.Seed = Settings.seed,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Race kernels on a sample of DATA, and say which to take and how long a fit takes.

    All kernels, on rows as they are and divided by their sums, and linear machines: all learn from the same rows, the
    better ones from more of them each round, and are scored on the same rows held out. With --kernel the exact machine
    of one kernel beside its features. The recommendation weighs the score against the time of a prediction.

    \b
    Examples:
      chimap compare data.npz
      chimap compare data.npz --output comparison.html
      chimap compare samples.csv --labels site --groups subject
      chimap compare data.npz --kernel exp-chi2 --components 256,1024,4096
      chimap compare data.npz --kernel chi2 --kernel-errors --terms 1,2,3,5
      chimap compare rows.npy --kernel intersection --kernel-errors --maps optimal,homogeneous
    """
    from chimap._validation import DataError
    from chimap.report import write_comparison

    outputs.check_outputs({"--output": output}, (data, labels), overwrite)
    sizes = _checked(
        kernel, gamma, components, normalization, scoring, kernel_errors, maps, terms, jobs, seed
    )
    table = data_rows.Table(id, columns, exclude, missing, transpose, groups, split)
    source = data_rows.open_data(data, labels, table=table)
    if not source.has_labels and not kernel_errors:
        data_rows.labels_of(source)  # says how to name them
    model_settings: dict[str, Any] = {
        "memory": memory, "precision": precision.value, "n_jobs": jobs, "random_state": seed,
    }  # fmt: skip
    result: Comparison | None = None
    found: KernelErrors | None = None
    try:
        if source.has_labels:
            result = _raced(
                source, table, task, kernel, gamma, normalization, scoring, sizes, json, model_settings
            )
        if kernel_errors and kernel is not None:
            found = _errors(source, kernel, gamma, maps, terms, sizes, json, model_settings)
    except DataError:
        data_rows.check_every_row(source, precision.value)  # names the row of the file rather than of a part
        raise
    given = {"task": task, "seed": seed, "memory": memory, "precision": precision, "scoring": scoring}
    command = None if result is None else _command(result, data, labels, table, given)
    if output is not None:
        with show.busy("drawing the page"):
            write_comparison(result, output, command=command, errors=found, overwrite=overwrite)
        errors.written.append(str(output))
    if json:
        show.as_json(
            {
                "command": "compare", "page": output and str(output), "fit_command": command,
                **({} if result is None else result.as_dict()),
                "kernel_errors": None if found is None else found.as_dict(),
            }
        )  # fmt: skip
        return
    _print(result, found, output, command)


def _checked(
    kernel: str | None, gamma: str, components: str, normalization: str | None, scoring: str | None,
    kernel_errors: bool, maps: str | None, terms: str | None, jobs: int | None, seed: int,
) -> list[int]:  # fmt: skip
    """The sizes to try; refuses, by flag and before any row is read, what cannot be done."""
    if kernel is not None:
        options.check_kernel(kernel)
        if kernel == "auto":
            raise ValueError("--kernel auto is every kernel: leave --kernel out.")
    for flag, is_given in (("--normalization", normalization is not None), ("--gamma", gamma != "auto")):
        if is_given and kernel is None:
            raise ValueError(f"{flag} is of one kernel: name it with --kernel, or leave {flag} out.")
    if kernel_errors and kernel is None:
        raise ValueError("--kernel-errors are of one kernel: name it with --kernel, such as chi2.")
    for flag, text in (("--maps", maps), ("--terms", terms)):
        if text is not None and not kernel_errors:
            raise ValueError(f"{flag} is of --kernel-errors: add that, or leave {flag} out.")
    options.gamma_of(gamma)
    options.check_normalization(normalization)
    options.check_scoring(scoring)
    for name in [] if maps is None else _listed(maps):
        options.check_map(name, str(kernel), "--maps")
    if terms is not None:
        options.whole_numbers(terms, "--terms")
    options.check_least(jobs, "--jobs")
    options.check_least(seed, "--seed", 0)
    return options.whole_numbers(components, "--components")


def _listed(maps: str) -> list[str]:
    names = options.listed(maps)
    if not names:
        raise ValueError(f"--maps must name at least one map; got {maps!r}.")
    return names


def _raced(
    source: Source, table: data_rows.Table, task: Task, kernel: str | None, gamma: str, normalization: str | None,
    scoring: str | None, sizes: list[int], silent: bool, settings: dict[str, Any],
) -> Comparison:  # fmt: skip
    """The race on the rows that a fit would learn from: of a split those for training."""
    import numpy as np

    from chimap import HistogramClassifier, HistogramRegressor
    from chimap._validation import DataError
    from chimap.comparison import compare as race

    y = data_rows.labels_of(source)
    decided = data_rows.decide_task(y, task, source.name)[0]
    if decided is Task.classify and np.unique(y).size < 2:
        raise DataError(
            f"{source.name}: one class only: all labels are {y[0]!s}. A comparison of classifiers needs two."
        )
    held_out_rows.warn_of_groups(source, table)
    parts = held_out_rows.Parts.of(source, 0.0, settings["random_state"], table)
    model = (HistogramClassifier if decided is Task.classify else HistogramRegressor)(
        scoring=scoring, **settings
    )
    return race(
        model, parts.training, kernel=kernel, gamma=options.gamma_of(gamma), normalize=normalization, sizes=sizes,
        groups=parts.groups, progress=show.progress(silent),
    )  # fmt: skip


def _errors(
    source: Source, kernel: str, gamma: str, maps: str | None, terms: str | None, sizes: list[int], silent: bool,
    settings: dict[str, Any],
) -> KernelErrors:  # fmt: skip
    from chimap.comparison import kernel_errors

    value = options.gamma_of(gamma)
    return kernel_errors(
        source,
        kernel=kernel,
        gamma="mean" if value == "auto" else value,
        maps=None if maps is None else _listed(maps),
        n_terms=None if terms is None else options.whole_numbers(terms, "--terms"),
        n_components=sizes,
        progress=show.progress(silent),
        **settings,
    )


def _command(
    result: Comparison, data: str, labels: str | None, table: data_rows.Table, given: dict[str, Any]
) -> str:
    from chimap.cli.support.fit_command import fit_command

    return fit_command(result.recommendation.chosen.fit_settings or {}, data, labels, table, given)


def _print(
    result: Comparison | None, found: KernelErrors | None, output: Path | None, command: str | None
) -> None:
    """The tables, the recommendation, and what it takes."""
    from chimap.cli.support import comparison_table as tables

    page = None if output is None else str(output)
    if result is not None:
        tables.print_comparison(result)
    if found is not None:
        tables.print_errors(found)
        refused = "\n".join(f"{one.family}, {one.size:,}: {one.reason}" for one in found.refused)
        facts = {"bound": tables.bound_line(found), "left out": refused or None}
        show.facts(
            f"Features of {found.kernel} beside the kernel itself",
            facts | ({"page": page} if result is None else {}),
        )
    if result is None:
        return
    advice, data = result.recommendation, result.data
    groups = "" if data.get("groups") is None else f", by {data['groups']:,} groups"
    show.facts(
        advice.sentence,
        {
            "note": advice.note,
            "a fit takes": result.time_words,
            "rows": f"{data['rows to learn from']:,} to learn from in the last round, {data['rows to measure on']:,} "
            f"held out{groups}, of {data['rows in it']:,}",
            "left out": tables.failures(result),
            "time": show.stages(result.stages),
            "peak memory": show.size(show.peak_memory()),
            "page": page,
        },
    )
    show.next_commands("to train it on all rows:", command or "")
