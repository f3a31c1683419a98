"""``chimap export``: write a model as an ONNX graph, as tables of its bins, as weights, or as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from chimap._messages import Message
from chimap.cli import messages, outputs, show

if TYPE_CHECKING:
    from chimap._types import JSON
    from chimap.export import Exported


Format: TypeAlias = Literal["onnx", "tables", "weights", "page"]
"""A name of ``export.files.FORMATS``."""
InputType: TypeAlias = Literal["float32", "float64", "int64"]
"""A name of ``export.onnx.INPUT_TYPES``."""


def export(
    model: Path,
    *,
    output: Path | None = None,
    format: Format | None = None,
    tolerance: float = 1e-3,
    input_type: InputType | None = None,
    check: bool = True,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Write MODEL for use without chimap: ONNX, tables or a page.

    Parameters
    ----------
    output : FILE, common
        File to write: .onnx; .npz, .csv or .json for tables; .npz or .safetensors for weights; .html for a page. By
        default, the name of MODEL with the ending of the format.
    format : common
        What to write; tables and pages take kernels that add up columns, such as chi2 and linear. By default, the
        ending of FILE decides.
    tolerance : T
        Largest error of tables and pages, as a share of the largest value of any of their functions.
    input_type
        Type of the counts that the ONNX file takes. By default that with which the model was fitted.
    check
        Compare the answers of the file with those of the model. ONNX files need onnxruntime for this; weights are not
        compared.

    \b
    onnx     Map, features and linear model as one graph. The input is X (rows,
             bins); the outputs are label, probabilities and scores, or
             prediction.
    tables   For additive kernels such as chi2: the function of each bin at
             knots, with straight lines between them.
    weights  Coefficients and intercepts only.
    page     One HTML file for colleagues: it predicts rows that are pasted or
             dropped, in any browser and without a network. Models as of tables.

    \b
    Examples:
      chimap export my.model --format page
      chimap export my.model --output my.onnx
      chimap export my.model --output tables.csv
      chimap export my.model --output weights.safetensors
      chimap export my.model --output my.onnx --input-type int64
      chimap export my.model --output tables.csv --tolerance 1e-4
      chimap export my.model --output weights.npz --format weights
    """
    from chimap import load
    from chimap._errors import InputError
    from chimap.export import FORMATS, export_model

    if output is None:
        if format is None:
            raise InputError(Message("{output} names the file to write, or {format} says what: give one of them."))
        output = model.with_suffix(FORMATS[format].endings[0])
    outputs.check_outputs({"--output": output}, (model,), overwrite)
    done = export_model(
        load(model, kind="model"),
        output,
        format,
        tolerance=tolerance,
        input_type=input_type,
        overwrite=True,
        check=check,
    )
    messages.written.append(str(output))
    if json:
        show.as_json(_found(model, done))
        return
    print(f"Wrote {done.format} to {output} ({show.size(done.n_bytes)})")
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
    """Return lines that say how far the file is from the model."""
    lines = []
    if done.comparison is not None:
        compared = done.comparison
        n = compared.differing
        labels = f", {n} label{'s differ' if n > 1 else ' differs'}" if n else ""
        p = compared.probabilities
        probabilities = "" if p is None else f", probabilities by at most {p:.2g}"
        lines.append(
            f"compared with the model on {compared.rows} synthetic rows: scores differ by at most "
            f"{compared.difference:.2g} (largest score {compared.size:.2g}){probabilities}{labels}"
        )
        if compared.is_widened:
            lines.append("the graph computes in float64: in float32 it would not answer as the model does")
    elif done.format == "onnx" and check:
        lines.append('not compared with the model: install onnxruntime with pip install "chimap[onnx]"')
    if done.error is not None:
        lines.append(f"within the tables, no score differs from the score of the model by more than {done.error:.2g}")
    return lines
