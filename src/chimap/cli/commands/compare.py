"""``chimap compare``: the full race on the user's rows, with a recommendation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from chimap.cli.support import data_rows, errors, held_out_rows, options, outputs, show
from chimap.cli.support.compare_settings import CompareSettings
from chimap.cli.support.flag_names import in_flags
from chimap.cli.support.table import TableOptions

if TYPE_CHECKING:
    from chimap.report import Comparison, KernelErrors


def compare(
    data: options.Data,
    *,
    labels: options.Labels = None,
    table: TableOptions,
    output: Annotated[
        Path | None, options.output("PAGE", "Write the table and curves as one HTML page.")
    ] = None,
    settings: CompareSettings,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Race kernels on a sample of DATA and recommend a model.

    The race enters every kernel that suits the rows, on raw and on normalised rows, and linear models. All learn from
    the same rows and are scored on the same held-out rows; the better ones learn from more rows in each round. With
    --kernel, the race compares the exact machine of one kernel with its features. The recommendation weighs the score
    against the prediction time, and says how long a fit on all rows takes.

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
            data_rows.labels_of(source)  # without labels, its error says how to name them
            held_out_rows.warn_of_groups(source, table)
            parts = held_out_rows.Parts.of(source, 0.0, settings.seed, table)
            result = settings.race(parts.training, parts.groups, show.progress(json))
        if settings.kernel_errors:
            errors_by_kernel = settings.errors(source, show.progress(json))
    except DataError:
        # names the row of the file, not that of a part of it
        data_rows.check_every_row(source, settings.precision.value)
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
    result: Comparison, data: str, labels: str | None, table: TableOptions, settings: CompareSettings
) -> dict[str, str]:
    """Return the commands that fit the recommended machine and, if it is another, the one of the best score.

    The keys say what each command is for.
    """
    from chimap.cli.support.fit_command import fit_command

    advice, shared_flags = result.recommendation, settings.for_fit()
    entrants = {"To fit it on all rows:": advice.chosen}
    if advice.best is not advice.chosen:
        entrants["For the best score, whatever the prediction time:"] = advice.best
    return {
        purpose: fit_command(entrant.fit_settings or {}, data, labels, table, shared_flags)
        for purpose, entrant in entrants.items()
    }


def _print(
    result: Comparison | None, errors: KernelErrors | None, output: Path | None, commands: dict[str, str]
) -> None:
    """Print the tables, the recommendation and the cost of a fit."""
    from chimap.cli.support import comparison_table as tables

    page = None if output is None else str(output)
    if result is not None:
        tables.print_comparison(result)
    if errors is not None:
        tables.print_errors(errors)
        refused = "\n".join(
            f"{refusal.family}, {refusal.size:,}: {in_flags(refusal.reason)}" for refusal in errors.refused
        )
        facts = {"bound": tables.bound_line(errors), "left out": refused or None}
        show.facts(
            f"Features of {errors.kernel} against the exact kernel",
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
            "rows": f"{data['training rows']:,} training rows in the last round; {data['held-out rows']:,} "
            f"held out{groups}; {data['rows']:,} in total",
            "not fitted": tables.failures(result),
            "time": show.stages(result.stages),
            "peak memory": show.size(show.peak_memory()),
            "page": page,
        },
    )
    for purpose, command in commands.items():
        show.next_commands(purpose, command)
