"""``chimap audit``: ask whether the score of a model may be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from chimap.cli import outputs, show
from chimap.cli.answers import print_answer
from chimap.cli.fit_settings import Settings
from chimap.cli.options import TableOptions
from chimap.cli.parser import Only, Without

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from chimap.cli.data_rows import Parts
    from chimap.engines import Progress


def audit(
    data: str,
    *,
    labels: str | None = None,
    model: Path | None = None,
    roles: Annotated[TableOptions, Without("split", "sample_weight")],
    report: Path | None = None,
    settings: Annotated[
        Settings, Only("kernel", "normalization", "alpha", "task", "memory", "time_limit", "jobs", "seed")
    ],
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Ask whether a score on DATA may be trusted.

    Four questions to one factor of the rows. Does something other than the counts tell the labels: totals, filled bins,
    the group, covariates, the order of the rows? Which labels look wrong, which rows decide most, which are near
    copies? What is each group worth to the others? Rows are left out with their group, exactly.

    Parameters
    ----------
    model : MODEL, common
        A model of these rows to audit; without it, one is fitted as 'chimap fit'
        does.
    report : PAGE, common
        Write the audit as one HTML page.

    \b
    Examples:
      chimap audit samples.csv --labels disease
      chimap audit samples.csv --labels disease --groups study --report audit.html
      chimap audit cells.h5ad --labels cell_type --groups donor --json
      chimap audit samples.csv --labels disease --groups study --covariates age,sex --report audit.html
    """
    from chimap import audit as audited
    from chimap import load
    from chimap._validation import DataError
    from chimap.cli import data_rows
    from chimap.data.labelled import labels_of
    from chimap.diagnostics.audited import check_labels_vary

    outputs.check_outputs({"--report": report}, (data, labels, model), overwrite)
    settings.check()
    fitted = None if model is None else load(model, kind="model").set_params(n_jobs=settings.jobs)
    source = data_rows.open_data(data, labels, None if fitted is None else fitted.fitted, table=roles, silent=json)
    check_labels_vary(labels_of(source), source.name)  # without labels, the error says how to name them
    data_rows.warn_of_groups(source, roles)
    progress = show.progress(json)
    parts = data_rows.Parts.of(source, 0.0, settings.seed, roles)
    try:
        fitted = fitted or _fitted(parts, settings, roles, progress)
        found = audited(fitted, source, groups=parts.groups, progress=progress)
    except DataError:
        # names the row of the file, not that of a part of it
        data_rows.check_every_row(source, settings.precision)
        raise
    print_answer("audit", found, report, overwrite, json)


def _fitted(parts: Parts, settings: Settings, roles: TableOptions, progress: Progress) -> BaseEstimator:
    """Return a model of the rows, as a fit makes it."""
    from chimap.cli import data_rows
    from chimap.data.labelled import labels_of, with_numbers

    source = parts.training
    y = labels_of(source)
    task, _ = data_rows.decide_task(y, settings.task, source.name)
    estimator = settings.estimator(task).set_params(**settings.weighing(task, y))
    source = with_numbers(source) if task == "regress" else source
    return estimator.fit_source(source, progress, groups=parts.groups)
