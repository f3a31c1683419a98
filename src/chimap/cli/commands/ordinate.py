"""``chimap ordinate``: rows in the plane that shows most of how a kernel tells them apart."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from chimap.cli import flag_values, outputs, show
from chimap.cli.answers import print_answer
from chimap.cli.kernel_space import AS_ROWS, KernelSpace
from chimap.cli.options import TableOptions
from chimap.cli.parser import Without


def ordinate(
    data: str,
    *,
    colour: str | None = None,
    metadata: str | None = None,
    new: str | None = None,
    table: Annotated[TableOptions, Without(*AS_ROWS)],
    space: KernelSpace,
    axes: int = 2,
    output: Path | None = None,
    picture: Path | None = None,
    report: Path | None = None,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Draw a map of the rows of DATA: those alike are near.

    These are the principal coordinates of the distances of the kernel. The share of each axis in the variation is
    shown, and the bins that follow the axes.

    Parameters
    ----------
    colour : COLUMN, common
        Column by which points are coloured: text, or numbers. C(year) is a category though it holds numbers.
    metadata : TABLE, common
        Table with that column, joined by the ids of the rows. By default it is a column of DATA.
    new : DATA, common
        More rows with the same columns, to draw on the same axes.
    axes : N, common
        How many axes.
    output : FILE, common
        Write the coordinates as a table (.csv).
    picture : FILE, common
        Write the first two axes as a picture (.png).
    report : FILE, common
        Write picture, axes and columns as one HTML page.

    \b
    Examples:
      chimap ordinate samples.csv --colour site --picture site.png
      chimap ordinate samples.csv --colour site --report map.html
      chimap ordinate samples.csv --colour site --new later.csv --output axes.csv
      chimap ordinate counts.biom --metadata samples.tsv --colour diagnosis --report map.html
      chimap ordinate samples.csv --colour site --model my.model --json
    """
    from chimap.diagnostics import ordination

    files = {"--output": output, "--picture": picture, "--report": report}
    outputs.check_outputs(files, (data, metadata, new, space.model), overwrite)
    outputs.check_ending(output, "--output", ".csv")
    outputs.check_ending(picture, "--picture", ".png")
    flag_values.check_least(axes, "--axes")
    model = space.loaded()
    source = space.open(data, table, [] if colour is None or metadata is not None else [colour], model, json)
    result = ordination.ordinate(
        source,
        metadata,
        colour=colour,
        new=new,
        n_axes=axes,
        model=model,
        progress=show.progress(json),
        **space.settings(),
    )
    if output is not None:
        result.save_table(output)
    if picture is not None:
        result.save_picture(picture)
    written = {name[2:]: str(path) for name, path in files.items() if path not in (None, report)}
    print_answer("ordinate", result, report, overwrite, json, **written)
