"""``chimap permanova``: do groups of rows differ, and by which bins?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from chimap._errors import InputError
from chimap.cli import outputs, show
from chimap.cli.answers import print_answer
from chimap.cli.kernel_space import AS_ROWS, KernelSpace
from chimap.cli.options import TableOptions
from chimap.cli.parser import Without


def permanova(
    data: str,
    *,
    formula: str,
    covariates: str | None = None,
    strata: str | None = None,
    between: str | None = None,
    metadata: str | None = None,
    table: Annotated[TableOptions, Without(*AS_ROWS)],
    space: KernelSpace,
    permutations: int = 999,
    report: Path | None = None,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Test whether groups of rows of DATA differ.

    Each term explains what those before it do not (sequential sums of squares, as adonis2 of vegan by terms), and its
    p-value is the share of permuted rows with as large an F. A test of dispersion stands beside it, and the bins that
    make the difference between two groups.

    Parameters
    ----------
    formula : TERMS
        What may tell rows apart: columns, such as 'site + age'. site:age is an interaction, and site * age stands for
        both columns and their interaction. Text is a category, and so is C(year) though it holds numbers.
    covariates : COLUMNS, common
        Columns to account for first, such as batch,depth.
    strata : COLUMN, common
        Compare only within the values of this column, such as subject. Rows are permuted within them.
    between : GROUP,GROUP, common
        Two groups whose difference is shown column by column. They are values of the first category of --formula. The
        default are those of a category with two.
    metadata : TABLE, common
        Table with these columns, joined by the ids of the rows. By default they are columns of DATA.
    permutations : N
        How often to permute; more make p-values finer.
    report : FILE, common
        Write tables and figures as one HTML page.

    \b
    Examples:
      chimap permanova samples.csv --formula site
      chimap permanova samples.csv --formula 'site + age' --report site.html
      chimap permanova samples.csv --formula status --between healthy,ill
      chimap permanova samples.csv --formula 'site + age' --strata subject --report site.html
      chimap permanova counts.biom --metadata samples.tsv --formula treatment --covariates batch
      chimap permanova samples.csv --formula diagnosis --kernel intersection
      chimap permanova samples.csv --formula diagnosis --model my.model --json
    """
    from chimap.diagnostics import permanova as analysis

    outputs.check_outputs({"--report": report}, (data, metadata, space.model), overwrite)
    pair = None if between is None else tuple(name.strip() for name in between.split(","))
    if pair is not None and len(pair) != 2:
        raise InputError(f"--between must name two groups with a comma between them; got {between!r}.")
    columns = [name for names in analysis.columns_asked(formula, covariates, strata).values() for name in names]
    model = space.loaded()
    source = space.open(data, table, [] if metadata is not None else columns, model, json)
    result = analysis.permanova(
        source,
        formula,
        metadata,
        covariates=covariates,
        strata=strata,
        between=pair,
        model=model,
        permutations=permutations,
        progress=show.progress(json),
        **space.settings(),
    )
    print_answer("permanova", result, report, overwrite, json)
