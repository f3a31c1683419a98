"""``chimap depth``: are the rows of a file deep enough for the answers of a model?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from chimap.cli import outputs, show
from chimap.cli.answers import print_answer
from chimap.cli.options import TableOptions
from chimap.cli.parser import Without


def depth(
    model: Path,
    data: str,
    *,
    labels: str | None = None,
    table: Annotated[TableOptions, Without("groups", "split", "sample_weight", "covariates")],
    times: float = 4.0,
    hold: float = 0.9,
    report: Path | None = None,
    seed: int = 0,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Ask whether rows of DATA have enough counts for MODEL.

    A row of counts is a sample, and a deeper one may get another answer. For each row: how probable it is that a deeper
    sample of the same thing gets the same answer, and an interval for its score. For the table: the depth from which
    most answers hold. DATA are counts, which are held in memory. 'chimap predict --depth' marks rows.

    Parameters
    ----------
    labels : NAME
        Column of DATA that is a label, and not to be counted. Needed only if it is not called y or label, nor as it was
        for the fit.
    times : T
        How much deeper the deeper sample is: T times as many counts as the row has.
    hold : SHARE, common
        How many answers must hold, as a share, for a depth to suffice. Rows below it are too shallow.
    report : REPORT, common
        Write a report as one HTML page.

    \b
    Examples:
      chimap depth my.model samples.csv
      chimap depth my.model table.biom --report depth.html
      chimap depth cells.model cells.h5ad --times 10 --hold 0.95
    """
    from chimap import load
    from chimap.cli import data_rows
    from chimap.diagnostics.depth import depth as depth_of

    outputs.check_outputs({"--report": report}, (model, data, labels), overwrite)
    fitted = load(model, kind="model").fitted
    source = data_rows.open_data(data, labels, model=fitted, silent=json, reads_labels=False, table=table)
    found = depth_of(fitted, source, times=times, hold=hold, random_state=seed, progress=show.progress(json))
    print_answer("depth", found, report, overwrite, json)
