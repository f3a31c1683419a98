"""``chimap compare``: the race told in full on the user's own rows, and which machine to take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from chimap.cli.support import data_rows, errors, held_out_rows, options, outputs, show
from chimap.cli.support.compare_settings import CompareSettings
from chimap.cli.support.table import Table

if TYPE_CHECKING:
    from chimap.report import Comparison, KernelErrors


def compare(
    data: options.Data,
    *,
    labels: options.Labels = None,
    table: Table,
    output: Annotated[
        Path | None, options.output("PAGE", "Write table and curves as one page of HTML.")
    ] = None,
    settings: CompareSettings,
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
    settings.check()
    source = data_rows.open_data(data, labels, table=table)
    data_rows.weigh(source, table)
    result: Comparison | None = None
    errors_by_kernel: KernelErrors | None = None
    try:
        if source.has_labels or not settings.kernel_errors:
            data_rows.labels_of(source)  # says how to name them where there are none
            held_out_rows.warn_of_groups(source, table)
            parts = held_out_rows.Parts.of(source, 0.0, settings.seed, table)
            result = settings.race(parts.training, parts.groups, show.progress(json))
        if settings.kernel_errors:
            errors_by_kernel = settings.errors(source, show.progress(json))
    except DataError:
        data_rows.check_every_row(
            source, settings.precision.value
        )  # names the row of the file rather than of a part
        raise
    commands = {} if result is None else _commands(result, data, labels, table, settings)
    if output is not None:
        with show.busy("drawing the page"):
            command = next(iter(commands.values()), None)
            write_comparison(result, output, command=command, errors=errors_by_kernel, overwrite=overwrite)
        errors.written.append(str(output))
    if json:
        show.as_json(
            {
                "command": "compare", "page": output and str(output),
                "fit_command": next(iter(commands.values()), None),
                **({} if result is None else result.as_dict()),
                "kernel_errors": None if errors_by_kernel is None else errors_by_kernel.as_dict(),
            }
        )  # fmt: skip
        return
    _print(result, errors_by_kernel, output, commands)


def _commands(
    result: Comparison, data: str, labels: str | None, table: Table, settings: CompareSettings
) -> dict[str, str]:
    """The commands that fit what is recommended, and what has the best score if that is another, by what they do."""
    from chimap.cli.support.fit_command import fit_command

    advice, given = result.recommendation, settings.for_fit()
    wanted = {"to train it on all rows:": advice.chosen}
    if advice.best is not advice.chosen:
        wanted["for the best score, however long a prediction takes:"] = advice.best
    return {
        what: fit_command(entrant.fit_settings or {}, data, labels, table, given)
        for what, entrant in wanted.items()
    }


def _print(
    result: Comparison | None, errors: KernelErrors | None, output: Path | None, commands: dict[str, str]
) -> None:
    """The tables, the recommendation, and what it takes."""
    from chimap.cli.support import comparison_table as tables

    page = None if output is None else str(output)
    if result is not None:
        tables.print_comparison(result)
    if errors is not None:
        tables.print_errors(errors)
        refused = "\n".join(f"{one.family}, {one.size:,}: {one.reason}" for one in errors.refused)
        facts = {"bound": tables.bound_line(errors), "left out": refused or None}
        show.facts(
            f"Features of {errors.kernel} beside the kernel itself",
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
    for what, command in commands.items():
        show.next_commands(what, command)
