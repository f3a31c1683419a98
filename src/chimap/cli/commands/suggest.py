"""``chimap suggest``: the rows of a pool that are worth a label, or more counts."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from chimap.cli import flag_values, outputs, show
from chimap.cli.answers import print_answer
from chimap.cli.options import TableOptions
from chimap.cli.parser import Without

if TYPE_CHECKING:
    from chimap.diagnostics.suggestion import Suggestion


def suggest(
    model: Path,
    pool: str,
    *,
    n: int = 20,
    cost: str | None = None,
    labelled: str | None = None,
    deeper: float | None = None,
    output: Path | None = None,
    report: Path | None = None,
    table: Annotated[TableOptions, Without("split", "sample_weight", "covariates")],
    jobs: int | None = None,
    seed: int = 0,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Suggest rows of POOL to label next, or to sequence deeper.

    A label tells about the rows that are like it. Rows are chosen one after the other for how much of what MODEL does
    not know about POOL each removes: uncertain answers count, and near copies are not chosen twice. With --groups,
    whole groups are chosen, such as the donors whose cells to label. With --deeper, rows of counts are chosen for how
    much the chance falls that their answer is not that of full depth.

    Parameters
    ----------
    pool
        Rows without labels, as for 'chimap predict'.
    n : N, common
        How many rows, or groups, to suggest.
    cost : COLUMN, common
        Column that says what labelling each row costs, such as minutes. Costs are above 0; rows are chosen by what
        their labels tell for it.
    labelled : DATA, common
        Rows with labels, for models that keep none of the rows they were fitted on.
    deeper : TIMES, common
        Suggest rows to sequence this many times as deep, such as 2, in place of rows to label.
    output : FILE, common
        File to write, .csv: the suggested rows or groups, the first one first.
    report : PAGE, common
        Write the suggestion as one HTML page.

    \b
    Examples:
      chimap suggest my.model unlabelled.csv --n 20
      chimap suggest samples.model table.biom --deeper 2 --report next.html
      chimap suggest cells.model new.h5ad --n 3 --groups donor -o next.csv
      chimap suggest cells.model new.h5ad --n 3 --groups donor --cost minutes --output next.csv
    """
    from chimap import load
    from chimap import suggest as suggested
    from chimap.cli import data_rows

    flag_values.check_least(n, "--n", 1)
    outputs.check_ending(output, "--output", ".csv")
    outputs.check_outputs({"--output": output, "--report": report}, (model, pool, labelled), overwrite)
    fitted = load(model, kind="model").set_params(n_jobs=jobs)
    prices = [] if cost is None else [cost]
    source = data_rows.open_data(
        pool, None, fitted.fitted, silent=json, reads_labels=False, table=table, metadata=prices
    )
    known = None if labelled is None else data_rows.open_data(labelled, None, fitted.fitted, silent=json, table=table)
    groups = data_rows.groups_of(source, table)
    with show.busy("choosing rows"):
        found = suggested(fitted, source, n, groups=groups, cost=cost, labelled=known, deeper=deeper, random_state=seed)
    if output is not None:
        _write(found, output)
    written = {} if output is None else {"output": str(output)}
    print_answer("suggest", found, report, overwrite, json, **written)


def _write(found: Suggestion, output: Path) -> None:
    from chimap._files import replacing

    heads, lines = found.table()
    with replacing(output) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([[head.lower() for head in heads[1:]], *(line[1:] for line in lines)])
