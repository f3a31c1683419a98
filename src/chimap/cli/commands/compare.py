"""``chimap compare``: the race of a fit without the fit, with every candidate in a table."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from chimap.cli import messages, outputs, show
from chimap.cli.fit_settings import Settings
from chimap.cli.messages import flag_of, in_flags
from chimap.cli.options import CountedColumn, ForwardOptions, TableOptions
from chimap.cli.parser import Only, Without

if TYPE_CHECKING:
    from chimap._types import ArrayLike, Parameters
    from chimap.cli.data_rows import Parts
    from chimap.engines import Progress
    from chimap.reports import Comparison


OF_FIT = ("task", "seed", "memory", "precision", "scoring", "class_weight", "positive")  # options that its winner keeps


def compare(
    data: str,
    *,
    labels: str | None = None,
    roles: Annotated[TableOptions, Without("missing_columns", "covariates", "metadata")],
    forward: ForwardOptions,
    counted: CountedColumn,
    output: Path | None = None,
    settings: Annotated[Settings, Only(*OF_FIT, "normalization", "time_limit", "jobs")],
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Compare how well models predict DATA; none is kept.

    The race is that of 'chimap fit': kernels that suit the rows, on raw and on normalised rows, and linear models. All
    learn from the same rows and are scored on the same held-out rows; the better ones learn from more rows in each
    round. The table shows every candidate, and what a fit of the winner to all rows takes.

    Parameters
    ----------
    output : PAGE, common
        Write the table and curves as one HTML page.

    \b
    Examples:
      chimap compare plots.csv --labels site
      chimap compare plots.csv --labels site --output comparison.html
      chimap compare samples.csv --labels site --groups subject
      chimap compare samples.csv --labels site --splits forward --time date
      chimap compare molecules.csv --smiles smiles --labels toxic --split scaffold
      chimap compare data.npz --normalization none,l1,log-cpm
    """
    from chimap._validation import DataError
    from chimap.cli import data_rows
    from chimap.data.labelled import labels_of

    outputs.check_outputs({"--output": output}, (data, labels), overwrite)
    settings.check()
    forward.check(roles.split)
    source = data_rows.open_data(
        data, labels, table=roles, reading=counted.reading(settings.memory), metadata=forward.aside()
    )
    data_rows.weigh(source, roles)
    try:
        labels_of(source)  # without labels, its error says how to name them
        data_rows.warn_of_groups(source, roles)
        parts = data_rows.Parts.of(source, 0.0, settings.seed, roles)
        time = None if forward.time is None else data_rows.forward_splits(source, forward.time).time
        result = _raced(parts, settings, time, show.progress(json))
    except DataError:
        # names the row of the file, not that of a part of it
        data_rows.check_every_row(source, settings.precision)
        raise
    command = fit_command(
        result.winner.settings,
        data,
        labels,
        (roles, forward, counted),
        {name: getattr(settings, name) for name in OF_FIT},
    )
    if output is not None:
        with show.busy("drawing the page"):
            dataclasses.replace(result, command=command).save(output, overwrite=overwrite)
        messages.written.append(str(output))
    page = None if output is None else str(output)
    if json:
        show.as_json({"command": "compare", "page": page, "fit_command": command, **result.as_dict()})
        return
    _print(result, page)
    show.next_commands("To fit it on all rows:", command)


def _raced(parts: Parts, settings: Settings, time: ArrayLike | None, progress: Progress) -> Comparison:
    """Run the race on the training rows."""
    import numpy as np

    from chimap._validation import DataError
    from chimap.cli.data_rows import decide_task
    from chimap.data.labelled import labels_of, with_numbers
    from chimap.reports import compare

    source = parts.training
    y = labels_of(source)
    task, _ = decide_task(y, settings.task, source.name)
    if task == "classify" and y.ndim == 1 and np.unique(y).size < 2:
        raise DataError(
            f"{source.name}: one class only: all labels are {y[0]!s}. A comparison of classifiers needs at least two."
        )
    model = settings.estimator(task).set_params(**settings.weighing(task, y))
    source = with_numbers(source) if task == "regress" else source
    return compare(model, source, groups=parts.groups, time=time, progress=progress)


def _print(result: Comparison, page: str | None) -> None:
    """Print the table of candidates, the winner first, what its fit takes, and what could not be fitted."""
    rows: list[list[str]] = []
    n_rows = result.winner.trial.n_rows
    for rival in result.ranked:
        trial = rival.trial
        rows += [[]] if trial.n_rows != n_rows else []
        n_rows = trial.n_rows
        mark, score = "> " if rival is result.winner else "  ", result.score(trial.score)
        rows.append([f"{mark}{rival.name}", score, result.interval(trial), f"{trial.n_rows:,}", rival.time])
    title = f"{result.metric} on {result.result.n_held_out:,} held-out rows of {result.data['file']}"
    show.table(title, ("",), (result.metric, "95 % interval", "rows", "fit"), rows)
    data = result.data
    groups = "" if data.get("groups") is None else f", by {data['groups']:,} groups"
    show.facts(
        result.sentence,
        {
            "note": result.note or None,
            "a fit takes": result.cost or None,
            "rows": f"{data['training rows']:,} training rows in the last round; {data['held-out rows']:,} "
            f"held out{groups}{', the latest' if data.get('forward in time') else ''}; {data['rows']:,} in total",
            "not fitted": failures(result),
            "time": show.duration(result.result.seconds),
            "peak memory": show.size(show.peak_memory()),
            "page": page,
        },
    )


def fit_command(
    settings: Parameters,
    data: str,
    labels: str | None,
    columns: tuple[TableOptions | ForwardOptions | CountedColumn, ...],
    given: Parameters,
) -> str:
    """Return the command on one line.

    ``settings`` are those of the estimator, with blocks that the names of columns declare, and ``given`` the options of
    ``chimap compare`` that ``chimap fit`` has; those with their default values are left out.
    """
    from chimap.data.table import BLOCK_SIGN

    parts = ["chimap fit", show.quoted(data)]
    flags: Parameters = {
        "labels": labels,
        **{name.replace("_", "-"): value for each in columns for name, value in each.given().items()},
    }
    flags |= {name.replace("_", "-"): value for name, value in given.items() if value != getattr(Settings, name)}
    named = {name: f"{name}{BLOCK_SIGN}*" for name in settings.get("blocks") or ()}
    blocks = {"blocks": ",".join(f"{name}={columns}" for name, columns in named.items()) or None}
    for name, value in (settings | blocks).items():
        flag = flag_of(name).removeprefix("--")
        if value is not None and value != getattr(Settings, flag.replace("-", "_"), None):
            flags[flag] = f"{value:.6g}" if isinstance(value, float) else value
    for flag, value in flags.items():
        if isinstance(value, bool):
            parts.append(f"--{flag}" if value else f"--no-{flag}")
        elif value is not None:
            parts.append(f"--{flag} {show.quoted(value)}")
    return " ".join([*parts, "--output my.model"])


_MOST_REFUSED = 5  # candidates listed with the reason for their failure


def failures(comparison: Comparison) -> str | None:
    """Return why candidates could not be fitted, one per line, or None if all could."""
    lines = [f"{rival.name}: {in_flags(rival.trial.error)}" for rival in comparison.failed[:_MOST_REFUSED]]
    more = len(comparison.failed) - _MOST_REFUSED
    return "\n".join(lines + ([f"and {more} more"] if more > 0 else [])) or None
