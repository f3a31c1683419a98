"""``chimap info``: describe a model file, a data file, a set of images or this installation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from chimap._errors import InputError
from chimap._formatting import bin_weights_in_words, blocks_in_words, class_weights_in_words, kernel_in_words
from chimap.cli import image_rows, machine, options, show
from chimap.cli.options import CountedColumn, TableOptions, Without

if TYPE_CHECKING:
    import numpy as np

    from chimap._types import JSON
    from chimap.images import ImageHistograms


def info(
    path: Annotated[
        str | None,
        typer.Argument(metavar="PATH", help="A model, visual words, a data file or images.", show_default=False),
    ] = None,
    *,
    labels: options.Labels = None,
    table: Annotated[
        TableOptions, Without("groups", "split", "sample_weight", "missing_columns", "covariates", "metadata")
    ],
    counted: CountedColumn,
    memory: str | None = None,
    components: str = "auto",
    json: options.Json = False,
) -> None:
    """Describe a model, a data file or this machine.

    Without PATH, show versions, the BLAS and its kernels, cores and memory.

    Parameters
    ----------
    memory : SIZE
        Plan a fit on a data file within this much memory.
    components : N
        Landmarks or random features of the fit planned by --memory.

    \b
    Examples:
      chimap info
      chimap info my.model
      chimap info data.npz
      chimap info photos/
      chimap info posts/ --text text
      chimap info data.npz --memory 512MiB --components 4096
    """
    from chimap.cli import describe_data, image_rows

    if memory is not None and (path is None or is_model(path)):
        raise InputError("--memory plans a fit on a data file: name a data file, or leave --memory out.")
    if path is None:
        title, facts, lines = "This installation", *machine.describe()
    elif is_model(path) and is_words(path):
        title, facts, lines = f"Visual words {path}", *describe_words(Path(path))
    elif is_model(path):
        title, facts, lines = f"Model {path}", *describe_model(Path(path))
    elif image_rows.holds_images(path):
        title, facts, lines = f"Images {path}", *describe_images(path, labels)
    else:
        title = f"Data {path}"
        facts, lines = describe_data.describe(
            path, labels, memory, components, silent=json, table=table, reading=counted.reading()
        )
    if json:
        show.as_json({"command": "info", **facts})
    else:
        show.facts(title, lines)


Described: TypeAlias = "tuple[JSON, dict[str, str | None]]"


def describe_images(path: str, labels: str | None) -> Described:
    """Return facts about a set of images as plain values, and as lines for the terminal."""
    import numpy as np

    images = image_rows.open_set(path, labels, None)

    def counted(values: np.ndarray | None) -> dict[object, int] | None:
        if values is None:
            return None
        names, counts = np.unique(values, return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))

    facts: JSON = {
        "data": images.name,
        "images": len(images),
        "classes": counted(images.labels),
        "parts": counted(images.splits),
        "masks": images.masks is not None,
    }
    return facts, {
        "images": f"{len(images):,}",
        "classes": _image_classes_line(facts["classes"]),
        "parts": facts["parts"] and ", ".join(f"{name}: {count:,}" for name, count in facts["parts"].items()),
        "masks": "one for each image" if facts["masks"] else None,
    }


def is_words(path: str) -> bool:
    """Return whether a chimap file holds visual words."""
    from chimap._files import read_header

    return read_header(path).get("kind") == "words"


def describe_words(path: Path) -> Described:
    """Return facts about a file of visual words as plain values, and as lines for the terminal.

    Raise DataError for other files.
    """
    from chimap.images import ImageHistograms

    histograms = ImageHistograms.load(path)
    facts: JSON = {
        "words": str(path),
        "histograms": histograms.describe(),
        "bins": histograms.n_columns,
        "blocks": {name: [columns.start, columns.stop] for name, columns in histograms.blocks_.items()},
        "coding": str(histograms.coder),
        "bytes": path.stat().st_size,
    }
    return facts, {
        "histograms": facts["histograms"],
        "descriptors": "\n".join(map(str, histograms.descriptors_)),
        "coding": facts["coding"],
        "bins": f"{histograms.n_columns:,}",
        "blocks": blocks_flag(histograms) or None,
        "size": show.size(facts["bytes"]),
    }


def blocks_flag(histograms: ImageHistograms) -> str:
    """Return the --blocks flag that gives each descriptor its own kernel, or "" for a single descriptor."""
    blocks = [f"{name}={columns.start}:{columns.stop}" for name, columns in histograms.blocks_.items()]
    return f"--blocks {','.join(blocks)}" if len(blocks) > 1 else ""


def _image_classes_line(classes: dict[object, int] | None) -> str | None:
    if classes is None:
        return "none: the images are not in folders by class; name labels with --labels"
    least, most = min(classes, key=classes.__getitem__), max(classes, key=classes.__getitem__)
    if classes[least] == classes[most]:
        return f"{len(classes):,}, {classes[most]:,} images each"
    return f"{len(classes):,}, from {classes[least]:,} images ({least}) to {classes[most]:,} ({most})"


def is_model(path: str) -> bool:
    """Return whether the file starts like a chimap file: the header of safetensors, a length of 8 bytes and JSON."""
    file = Path(path)
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        start = stream.read(9)
    is_long_enough = int.from_bytes(start[:8], "little") <= file.stat().st_size
    return start[8:] == b"{" and is_long_enough


def describe_model(path: Path) -> Described:
    """Return facts about a model file as plain values, and as lines for the terminal.

    Raise DataError for other files.
    """
    from chimap.models.header import header_of

    facts = header_of(path)
    training, tables = facts["training"], facts["tables"]
    features, alpha = facts["features"], facts["alpha"]
    return facts, {
        "model": facts["estimator"],
        "kernel": kernel_in_words(facts["kernel"], facts["gamma"]),
        "bins": f"{facts['bins']:,}" + _normalised(facts["normalize"]),
        "bin weights": bin_weights_in_words(facts["bin_weights"], facts["bin_names"]),
        "features": facts["made_of"]
        if features is None
        else f"{features:,} in {facts['precision']}: {facts['made_of']}",
        "tables": None if tables is None else _tables_line(tables),
        "classes": _classes_line(facts["classes"]),
        "tasks": _classes_line(facts["tasks"]),
        "rows": None if facts["rows"] is None else _rows_line(facts["rows"], facts["block_rows"], facts["unlearned"]),
        "loss": facts["loss"],
        "alpha": None if alpha is None else f"{alpha:.4g}",
        "class weights": class_weights_in_words(facts["classes"] or facts["tasks"], facts["class_weight"]),
        "positive": facts["positive"],
        "threshold": None if facts["threshold"] is None else f"{facts['threshold']:.4g}",
        "fitted in": None if facts["seconds"] is None else f"{facts['seconds']:.3g} s",
        "trained on": _training_line(training) if training else None,
        "version": f"chimap {facts['version']}",
        "size": show.size(facts["bytes"]),
    }


def _normalised(name: str | None) -> str:
    """Return what a normalisation makes of a row, after a comma; empty for none."""
    if name is None:
        return ""
    from chimap.normalizations import CATALOGUE

    return f", {CATALOGUE[name].about}" if name in CATALOGUE else ""


def _tables_line(tables: JSON) -> str:
    worst = tables["worst_error"]
    off = "" if worst is None else f"; scores are off by at most {worst:.2g}, and by far less for most rows"
    return f"{tables['a_bin']} {tables['kind']} per bin, {show.size(tables['bytes'])}{off}"


def _classes_line(classes: list[object] | None, most: int = 12) -> str | None:
    if classes is None:
        return None
    more = ", ..." if len(classes) > most else ""
    return f"{len(classes):,}: {', '.join(map(str, classes[:most]))}{more}"


def _rows_line(rows: int, block_rows: list[int] | None, unlearned: int) -> str:
    return f"{rows:,}{blocks_in_words(block_rows)}" + (
        f"; {unlearned:,} left out, as the work was limited" if unlearned else ""
    )


def _training_line(training: JSON) -> str:
    date = training["date"].replace("T", " ").replace("+00:00", " UTC")
    line = f"{training['file']}, {training['rows_in_file']:,} rows, on {date}"
    split = training["split"]
    if split and "column" in split:
        line += f"; the test rows of {split['column']} held out"
    elif split:
        line += f"; {100 * split['test_fraction']:g} % held out (seed {split['seed']})"
    return line
