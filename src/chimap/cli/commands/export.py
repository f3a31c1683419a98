"""``chimap export``: a model as an ONNX graph, as tables of its bins, or as weights."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chimap.cli.support import errors, options, outputs, show

if TYPE_CHECKING:
    from chimap._types import JSON
    from chimap.export import Exported


class Format(StrEnum):
    """What is written."""

    onnx = "onnx"
    tables = "tables"
    weights = "weights"


def export(
    model: options.Model,
    output: Annotated[
        Path,
        options.output(
            "FILE", "File to write: .onnx; .npz, .csv or .json of tables; .npz or .safetensors of weights."
        ),
    ],
    format: Annotated[
        Format | None,
        typer.Option(help="What to write; without it what the ending of FILE says.", show_default=False),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(metavar="T", help="Error of tables, as a share of the functions' largest values."),
    ] = 1e-3,
    check: Annotated[
        bool,
        typer.Option(
            help="Compare the file with the model: tables, and ONNX where onnxruntime is installed."
        ),
    ] = True,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Write MODEL to a file that needs no chimap: ONNX, tables or weights.

    onnx: map, features and linear model as one graph. Input X (rows, bins); outputs label and scores, or prediction.
    tables: of a model of an additive kernel such as chi2, each bin's function at knots, with straight lines between.
    weights: coefficients and intercepts alone.

    \b
    Examples:
      chimap export my.model --output my.onnx
      chimap export my.model --output tables.csv --tolerance 1e-4
      chimap export my.model --output weights.safetensors
      chimap export my.model --output weights.npz --format weights
    """
    from chimap import load
    from chimap.export import export_model

    outputs.check_outputs({"--output": output}, (model,), overwrite)
    chosen = None if format is None else str(format)
    done = export_model(
        load(model, kind="model"), output, chosen, tolerance=tolerance, overwrite=True, check=check
    )
    errors.written.append(str(output))
    if json:
        show.as_json(_found(model, done))
        return
    print(f"{done.format} in {output} ({show.size(done.n_bytes)})")
    for line in _lines(done, check):
        print(line)


def _found(model: Path, done: Exported) -> JSON:
    compared = done.comparison
    return {
        "command": "export",
        "model": str(model),
        "output": str(done.path),
        "output_bytes": done.n_bytes,
        "format": done.format,
        "error_at_most": done.error,
        "compared": None if compared is None else vars(compared),
    }


def _lines(done: Exported, check: bool) -> list[str]:
    """What is to be said of how far the file is from the model."""
    lines = []
    if done.comparison is not None:
        compared = done.comparison
        n = compared.differing
        labels = f", {n} label{'s differ' if n > 1 else ' differs'}" if n else ""
        lines.append(
            f"compared with the model on {compared.rows} made rows: scores differ by {compared.difference:.2g} at most "
            f"(of up to {compared.size:.2g}){labels}"
        )
    elif done.format == "onnx" and check:
        lines.append('not compared with the model: pip install "chimap[onnx]" for onnxruntime')
    if done.error is not None:
        lines.append(
            f"no row within the tables has scores that differ from the model's by more than {done.error:.2g}"
        )
    return lines
