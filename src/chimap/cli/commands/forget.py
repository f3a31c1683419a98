"""``chimap forget``: write a model again without some of the rows that it was fitted on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from chimap._errors import DataError, InputError
from chimap._formatting import one_line
from chimap.cli import messages, outputs, show
from chimap.cli.options import TableOptions
from chimap.cli.parser import Without

if TYPE_CHECKING:
    import numpy as np

    from chimap.data import Source

_SHOWN, _LONGEST = 3, 40  # unknown ids that an error lists, and their letters


def forget(
    model: Path,
    data: str,
    *,
    ids: Path,
    labels: str | None = None,
    roles: Annotated[TableOptions, Without("split", "sample_weight", "missing_columns")],
    output: Path,
    choose_again: bool = False,
    jobs: int | None = None,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Take rows out of MODEL, as if it had never seen them.

    The new model equals a fit without the rows at the same choices, and its file holds nothing of them. A receipt names
    what they took part in choosing: kernel, features, normalisation, strength.

    Parameters
    ----------
    ids : FILE
        Text file with the ids of the rows to forget, one a line. Where DATA has no ids, these are numbers of rows from
        0.
    choose_again
        Choose anew how strongly to smooth, by the rows that are left.

    \b
    Examples:
      chimap forget my.model samples.csv --ids withdrawn.txt --output new.model
      chimap forget my.model samples.csv --ids withdrawn.txt -o new.model --json
      chimap forget my.model data.npz --ids gone.txt --output new.model
      chimap forget my.model samples.csv --labels site --id sample --ids withdrawn.txt --output new.model
      chimap forget my.model samples.csv --ids withdrawn.txt --choose-again --output new.model --json
    """
    from chimap import forget as forgotten
    from chimap import load
    from chimap.cli import data_rows

    outputs.check_outputs({"--output": output}, (model, data, labels, ids), overwrite)
    fitted = load(model, kind="model").set_params(n_jobs=jobs)
    source = data_rows.open_data(data, labels, fitted.fitted, table=roles, silent=json)
    chosen = data_rows.choose_rows(fitted.fitted, source, False, roles)
    rows = source if chosen.training is None else chosen.training
    groups = data_rows.groups_of(source, roles)
    if groups is not None:
        groups = groups[source.places_in_file().searchsorted(rows.places_in_file())]
    found = forgotten(fitted, rows, rows=_rows_named(rows, source, ids), groups=groups, choose_again=choose_again)
    found.model.set_params(n_jobs=None).save(output, overwrite=True)
    messages.written.append(str(output))
    if json:
        show.as_json({"command": "forget", "model": str(model), "output": str(output), **found.as_dict()})
        return
    show.facts(f"Wrote {output}", found.lines())
    if not choose_again:
        again = f"chimap forget {show.quoted(model)} {show.quoted(data)} --ids {show.quoted(ids)} --choose-again"
        show.next_commands("To choose the strength again:", f"{again} --output {show.quoted(output)} --overwrite")
    print(f"{model} still holds the rows: delete it, and copies of it.")


def _rows_named(rows: Source, source: Source, ids: Path) -> np.ndarray:
    """Return which rows (n,) a file of ids names. Raise DataError for ids that are not there."""
    import numpy as np

    from chimap.reports.rows import row_names

    words = [line.strip() for line in ids.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    if not words:
        raise DataError(f"{ids} names no row: write the id of each row to forget on a line of its own.")
    unknown = sorted({*words} - {*row_names(source).tolist()})
    if unknown:
        more = ", ..." if len(unknown) > _SHOWN else ""
        listed = ", ".join(repr(one_line(word, _LONGEST)) for word in unknown[:_SHOWN]) + more
        of_ids = "ids" if source.row_ids is not None else "numbers of rows (it has no ids: name their column with --id)"
        raise DataError(f"{ids}: {len(unknown):,} of {len(words):,} are no {of_ids} of {source.name}: {listed}.")
    is_named = np.isin(row_names(rows), words)
    if not is_named.any():
        raise InputError(f"{ids}: all of these rows were held out when the model was fitted, which has not seen them.")
    return np.asarray(is_named)
