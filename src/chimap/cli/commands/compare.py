"""``chimap compare``: maps and features tried on the user's own rows, and which one to take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chimap.cli.support import data_rows, errors, fit_options, options, outputs, show
from chimap.cli.support.fit_options import Settings
from chimap.cli.support.options import Task

if TYPE_CHECKING:
    from chimap.data import Source
    from chimap.report import Comparison


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
    output: Annotated[Path | None, options.output("PAGE", "Write the curves as one page of HTML.")] = None,
    kernel: Annotated[str, typer.Option(metavar="NAME", help="As for 'chimap fit'.")] = Settings.kernel,
    gamma: Annotated[
        str, typer.Option(metavar="G", help="Of the exponential form: a number, or mean.")
    ] = Settings.gamma,
    maps: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Maps to try; by default all that take an additive kernel, optimal below random features.",
            show_default=False,
        ),
    ] = None,
    terms: Annotated[
        str | None,
        typer.Option(
            metavar="N,N",
            help="Features a bin to try; by default 1,2,3,5 for an additive kernel, 2 below random features.",
            show_default=False,
        ),
    ] = None,
    components: Annotated[
        str, typer.Option(metavar="N,N", help="Random features, or landmarks, to try.")
    ] = "256,1024,4096",
    task: fit_options.TaskOption = Task.auto,
    rows: Annotated[int, typer.Option(metavar="N", help="To learn from, at most.")] = 5000,
    test_rows: Annotated[int, typer.Option(metavar="N", help="To measure on, at most.")] = 2000,
    exact_rows: Annotated[
        int, typer.Option(metavar="N", help="For the exact kernel machine, at most; 0 leaves it out.")
    ] = 2000,
    test_fraction: Annotated[
        float, typer.Option(metavar="F", help="Share of DATA that the rows to measure on are drawn from.")
    ] = 0.3,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Budget, here and for the fit that is recommended.")
    ] = Settings.memory,
    precision: Annotated[Precision, typer.Option(help="Of features.")] = Precision.float32,
    jobs: options.Jobs = Settings.jobs,
    seed: options.Seed = Settings.seed,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Try the maps and features of a kernel on rows of DATA, and say which to take.

    Measures the error of the kernel against the least possible, the time of the map, the accuracy of a ridge on the
    features, and the bytes they take, beside an exact kernel machine and a linear model. Without labels: errors and
    times alone.

    \b
    Examples:
      chimap compare data.npz
      chimap compare data.npz --kernel chi2 --terms 1,2,3,5 --output comparison.html
      chimap compare rows.npy --kernel intersection --maps optimal,homogeneous
    """
    from chimap._validation import DataError
    from chimap.comparison import compare as measure
    from chimap.report import write_comparison

    outputs.check_outputs({"--output": output}, (data, labels), overwrite)
    options.check_kernel(kernel)
    trial = _trial(maps, terms, components, kernel)
    _check_sizes(rows, test_rows, exact_rows, test_fraction, jobs, seed)
    source = data_rows.open_data(
        data, labels, table=data_rows.Table(id, columns, exclude, missing, transpose)
    )
    try:
        found = measure(
            source,
            kernel=kernel,
            gamma=options.number_or("mean", gamma, "--gamma"),
            task=_task(source, task),
            n_rows=rows,
            n_test_rows=test_rows,
            exact_rows=exact_rows,
            test_fraction=test_fraction,
            memory=memory,
            precision=precision.value,
            n_jobs=jobs,
            random_state=seed,
            progress=show.progress(json),
            **trial,
        )
    except DataError:
        data_rows.check_every_row(source, precision.value)  # names the row of the file rather than of a part
        raise
    given = {"gamma": gamma, "seed": seed, "precision": precision, "task": task}
    command = fit_command(found, data, labels, given)
    if output is not None:
        with show.busy("drawing the page"):
            write_comparison(found, output, command=command, overwrite=overwrite)
        errors.written.append(str(output))
    if json:
        page = output and str(output)
        show.as_json({"command": "compare", "page": page, "fit_command": command, **found.as_dict()})
        return
    print_comparison(found, output, command)


def _trial(maps: str | None, terms: str | None, components: str, kernel: str) -> dict[str, Any]:
    """What the lists of the flags say; refused, by flag, before any row is read."""
    names = None if maps is None else options.listed(maps)
    if names is not None:
        if not names:
            raise ValueError(f"--maps must name at least one map; got {maps!r}.")
        for name in names:
            options.check_map(name, kernel, "--maps")
    return {
        "maps": names,
        "n_terms": None if terms is None else options.whole_numbers(terms, "--terms"),
        "n_components": options.whole_numbers(components, "--components"),
    }


def _check_sizes(
    rows: int, test_rows: int, exact_rows: int, test_fraction: float, jobs: int | None, seed: int
) -> None:
    for flag, value, least in (
        ("--rows", rows, 10), ("--test-rows", test_rows, 10), ("--exact-rows", exact_rows, 0), ("--jobs", jobs, 1),
        ("--seed", seed, 0),
    ):  # fmt: skip
        options.check_least(value, flag, least)
    if not 0 < test_fraction < 1:
        raise ValueError(f"--test-fraction must lie between 0 and 1, both excluded; got {test_fraction:g}.")


def _task(source: Source, wanted: Task) -> str:
    y = source.labels()
    return Task.classify.value if y is None else data_rows.decide_task(y, wanted, source.name)[0].value


def fit_command(found: Comparison, data: str, labels: str | None, given: dict[str, Any]) -> str | None:
    """The ``chimap fit`` that trains what is recommended on all of DATA; None where that command cannot.

    given: flags of this command that the fit has, too. LABELS stands for what is missing.
    """
    from chimap._validation import parse_memory

    chosen = found.recommendation.chosen
    if chosen.fit_options is None:
        return None
    if labels is None and found.task is None:
        labels = "LABELS"
    parts = ["chimap fit", show.quoted(data)] + ([f"--labels {show.quoted(labels)}"] if labels else [])
    for name, value in (given | dict(chosen.fit_options) | {"gamma": given["gamma"]}).items():
        if name in _SAID or value != getattr(Settings, name):
            parts.append(f"--{name} {value}")
    needed = max(found.memory, int(1.05 * chosen.fit_bytes))
    if needed > parse_memory(Settings.memory):
        parts.append(f"--memory {-(-needed // 2**20)}MiB")
    return " ".join([*parts, "--output my.model"])


_SAID = ("kernel", "terms", "components")  # in the command even where they are the defaults


def print_comparison(found: Comparison, output: Path | None, command: str | None) -> None:
    """The table, what is left out, and the recommendation."""
    from chimap.cli.support import comparison_table

    data, advice = found.data, found.recommendation
    comparison_table.print_table(found)
    refused = [f"{one.family}, {one.size:,}: {one.reason}" for one in found.left_out]
    refused += [f"{m.name}, not trained: {m.not_learned}" for m in found.measured if m.not_learned]
    show.facts(
        advice.sentence,
        {
            "note": advice.note,
            "rows": f"{data['rows to learn from']:,} to learn from, {data['rows to measure on']:,} to measure on, of "
            f"{data['rows in it']:,} in {data['file']}",
            "bound": comparison_table.bound_line(found),
            "left out": "\n".join(refused) or None,
            "time": show.stages(found.stages),
            "peak memory": show.size(show.peak_memory()),
            "page": None if output is None else str(output),
        },
    )
    if command is not None:
        show.next_commands("to train it on all rows:", command)
