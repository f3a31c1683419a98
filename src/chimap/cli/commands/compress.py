"""``chimap compress``: write an exact machine again with few of the rows that it keeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from chimap.cli import flag_values, messages, outputs, show

if TYPE_CHECKING:
    from chimap.models.compress import Compressed


def compress(
    model: Path,
    *,
    rows: int,
    output: Path | None = None,
    jobs: int | None = None,
    seed: int = 0,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Make MODEL smaller and faster, by fewer rows.

    A prediction takes a product with every row that an exact machine keeps. Fewer rows learn its outputs, and their
    probabilities, sets and intervals are learned again. A table shows, for a quarter and a half of the rows and for all
    of them, how often their answers are those of the exact machine on rows that were left out, and the time of a
    prediction.

    Parameters
    ----------
    rows : N
        How many rows to keep, at most four fifths of those of MODEL.
    output : FILE, common
        File to write the model to; without it, only the table is printed.

    \b
    Examples:
      chimap compress my.model --rows 4000
      chimap compress my.model --rows 4000 --output small.model
      chimap compress my.model --rows 1000 --output tiny.model --json
    """
    from chimap import load
    from chimap.models.compress import compressions, exact_row

    flag_values.check_least(rows, "--rows", 1)
    outputs.check_outputs({"--output": output}, (model,), overwrite)
    fitted = load(model, kind="model").set_params(n_jobs=jobs)
    kept, took = exact_row(fitted.fitted)
    sizes = sorted({max(1, rows // 4), max(1, rows // 2), rows})
    found = compressions(fitted.fitted, sizes, seed, show.progress(json))
    n_bytes = None
    if output is not None:
        fitted.with_model(found[-1].model).set_params(n_jobs=None).save(output, overwrite=True)
        messages.written.append(str(output))
        n_bytes = output.stat().st_size
    if json:
        show.as_json(
            {
                "command": "compress",
                "model": str(model),
                "output": None if output is None else str(output),
                "output_bytes": n_bytes,
                "exact": {"rows": kept, "microseconds": took},
                "compressed": [_values(one) for one in found],
            }
        )
        return
    of_all = "like all rows" if fitted.fitted.recipe.is_classifier else "R² of all rows' outputs"
    heads = ["rows", of_all, "µs a row"]
    lines = [[f"{kept:,}", "", f"{took:,.1f}"], *map(_line, found)]
    show.table(f"Compressed {model}", (), heads, lines)
    if output is not None:
        print(f"Wrote {rows:,} of {kept:,} rows to {output} ({show.size(n_bytes)}; {model}: {_size(model)})")
        return
    small = show.quoted(model.with_stem(f"{model.stem}-small"))
    show.next_commands("Next, write it:", f"chimap compress {show.quoted(model)} --rows {rows} --output {small}")


def _values(one: Compressed) -> dict[str, float]:
    return {"rows": one.n_rows, "agreement": one.agreement, "microseconds": one.microseconds}


def _line(one: Compressed) -> list[str]:
    return [f"{one.n_rows:,}", f"{one.agreement:.4f}", f"{one.microseconds:,.1f}"]


def _size(path: Path) -> str | None:
    return show.size(path.stat().st_size)
