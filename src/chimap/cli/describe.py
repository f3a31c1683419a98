"""What ``chimap info`` says of data, models, words and images: as plain values, and as lines for the terminal.

Data are described in one pass over their rows, with memory that does not grow with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from chimap._arrays import stored_values
from chimap._formatting import (
    bin_weights_in_words,
    blocks_in_words,
    class_weights_in_words,
    counted,
    kernel_in_words,
    left_out_in_words,
)
from chimap._memory import parse_memory
from chimap._validation import DataError
from chimap.cli import data_rows, image_rows, show
from chimap.cli.fit_settings import Settings
from chimap.cli.messages import in_flags
from chimap.cli.options import AS_IT_IS, TableOptions
from chimap.data.label_kinds import label_type
from chimap.readers.opening import text_columns

if TYPE_CHECKING:
    from chimap._types import JSON
    from chimap.data import Source
    from chimap.data.reading import Reading
    from chimap.engines import Progress

Described: TypeAlias = "tuple[JSON, dict[str, str | None]]"  # plain values, and lines for the terminal

_MOST_CLASSES = 12  # whose rows are counted in a line
_UNEVEN_RATIO = 10  # ratio of largest to smallest sum beyond which a kernel mostly compares the sizes of rows

# Memory of the compiled loops, their compiler and the BLAS buffers after their first use (measured on two cores).
_RUNNING_BYTES = 104 * 2**20


def data(
    path: str,
    labels: str | None,
    memory: str | None,
    components: str,
    *,
    silent: bool,
    table: TableOptions = AS_IT_IS,
    reading: Reading | None = None,
) -> Described:
    """Describe a data file; ``reading`` turns a column of text or molecules into rows."""
    _ = Settings(components=components).n_components  # raises an error before the file is opened
    texts: list[str] = []
    if reading is None and labels is None and table.columns is None and table.exclude is None:
        texts = text_columns(path)  # a fit needs these named; here they are set aside and listed
    source = data_rows.open_data(path, labels, table=table, reading=reading, aside=texts)
    plan = None if memory is None else _plan(source, memory, components)
    facts = {
        "data": source.name,
        "rows": source.n_rows,
        "bins": source.n_features,
        "named": source.column_names is not None,
        "ids": None if source.row_ids is None else source.row_ids[:3].tolist(),
        "rows_left_out": source.n_left_out,
        "rows_unreadable": source.n_unreadable,
        "sparse": source.is_sparse,
        **_scan(source, show.progress(silent)),
        "labels": _labels(source),
        "text_columns": texts,
        "metadata": _metadata(source),
        "other_matrices": [*source.matrices],
        "plan": plan,
    }
    negative, refused = counted(facts["negative"], "value"), facts["not_finite"]
    return facts, {
        "rows": f"{source.n_rows:,}{left_out_in_words(source.n_left_out, source.n_unreadable)}",
        "ids": None if source.row_ids is None else ", ".join(map(str, source.row_ids[:3])) + ", ...",
        "bins": f"{source.n_features:,}"
        + (", stored sparse" if source.is_sparse else "")
        + (f", named {', '.join(source.column_names[:3])}, ..." if source.column_names else ""),
        "non-zero": f"{show.percent(facts['density'], 2)} of the entries",
        "range": f"{facts['least']:.6g} to {facts['most']:.6g}",
        "sums": _sums_line(facts["least_sum"], facts["most_sum"]),
        "empty rows": f"{facts['empty_rows']:,}" if facts["empty_rows"] else None,
        "below zero": f"{negative}: only linear and gaussian machines take them" if facts["negative"] else None,
        "bad entries": f"{refused:,} NaN or infinite: 'chimap fit' will refuse them" if refused else None,
        "labels": _labels_line(facts["labels"]),
        "text columns": _text_line(texts),
        "other columns": _metadata_lines(facts["metadata"], source.metadata[_MOST_METADATA:]),
        "other matrices": ", ".join(f"::{name}" for name in source.matrices) or None,
        "plan": facts["plan"] and _plan_line(facts["plan"]),
    }


_MOST_METADATA = 20  # columns that are described; each is read from the file


def _metadata(source: Source) -> list[JSON]:
    """Describe the metadata columns of the rows, which --labels and --groups can name."""
    columns: list[JSON] = []
    for name in source.metadata[:_MOST_METADATA]:
        try:
            values = source.column(name)
        except DataError as error:  # a row has no value, or the values cannot be labels
            columns.append({"name": name, "kind": None, "distinct": None, "note": in_flags(error)})
            continue
        columns.append({"name": name, "kind": label_type(values), "distinct": int(np.unique(values).size)})
    return columns


def _metadata_lines(columns: list[JSON], further: Sequence[str]) -> str | None:
    """Return a line for each column that is described, and one with the names of the others."""
    lines = [
        f"{column['name']}: {column['kind']}, {column['distinct']:,} different"
        if column["kind"]
        else f"{column['name']}: some rows have no value"
        for column in columns
    ]
    lines += [f"and {len(further):,} more: {', '.join(further)}"] if further else []
    return "\n".join(lines) or None


def _text_line(texts: list[str]) -> str | None:
    """Return the text columns, which are not bins, with the flags that a fit needs for them."""
    if not texts:
        return None
    others = "" if len(texts) == 1 else f" and --exclude {show.quoted(','.join(texts[1:]))}"
    return f"{', '.join(texts)}, not used as bins; to fit, name labels with --labels {show.quoted(texts[0])}{others}"


def _sums_line(least: float, most: float) -> str:
    """Return the range of the row sums, with advice if the sums vary so much that they hide the shapes."""
    line = f"rows sum to {least:.6g} to {most:.6g}"
    if least >= 0 and most > _UNEVEN_RATIO * least:
        line += "; --normalize divides each row by its sum, so that shapes are compared, not sizes"
    return line


def _scan(source: Source, progress: Progress) -> JSON:
    """Return counts and ranges over all entries. Entries that are not finite are only counted."""
    nonzero = negative = not_finite = empty = 0
    ends, sums = [np.inf, -np.inf], [np.inf, -np.inf]
    with progress:
        progress.stage("reading", source.n_rows)
        for chunk in source.chunks(max(1, int(2**25 / max(1.0, source.row_bytes)))):
            values = stored_values(chunk.X)
            is_finite = np.isfinite(values)
            not_finite += int(values.size - np.count_nonzero(is_finite))
            if not is_finite.all():
                values = np.where(is_finite, values, 0)
            nonzero += int(np.count_nonzero(values))
            negative += int(np.count_nonzero(values < 0))
            has_zeros = source.is_sparse and values.size < chunk.X.shape[0] * chunk.X.shape[1]
            _widen(ends, np.append(values, 0) if has_zeros else values)
            totals = np.asarray(chunk.X.sum(axis=1, dtype=np.float64)).reshape(-1)
            _widen(sums, totals[np.isfinite(totals) & (totals != 0)])
            empty += int(np.count_nonzero(totals == 0))
            progress.advance(chunk.X.shape[0])
    if sums[0] > sums[1]:  # every row is empty
        sums = [0.0, 0.0]
    return {
        "density": nonzero / (source.n_rows * source.n_features),
        "least": ends[0],
        "most": ends[1],
        "least_sum": sums[0],
        "most_sum": sums[1],
        "empty_rows": empty,
        "negative": negative,
        "not_finite": not_finite,
    }


def _widen(ends: list[float], values: np.ndarray) -> None:
    if values.size:
        ends[:] = min(ends[0], float(values.min())), max(ends[1], float(values.max()))


def _labels(source: Source) -> JSON | None:
    y = source.labels()
    if y is None:
        return None
    try:
        task, reason = data_rows.decide_task(y, "auto", source.name)
    except DataError as error:  # the labels leave the task open, which a fit asks for
        return {"task": None, "reason": in_flags(error)}
    about: JSON = {"task": task, "reason": reason}
    if y.ndim == 2:
        return about | {"tasks": source.task_names or y.shape[1], "entries": (~np.isnan(y)).sum(axis=0).tolist()}
    if task == "regress":
        return about | {"least": float(y.min()), "most": float(y.max()), "mean": float(y.mean())}
    classes, counts = np.unique(y, return_counts=True)
    return about | {"counts": {str(c): int(n) for c, n in zip(classes, counts, strict=True)}}


def _plan(source: Source, memory: str, components: str) -> JSON:
    """Plan a fit of an exponential kernel: its features, chunks and peak memory.

    Raise MemoryBudgetError if the budget is too small.
    """
    from chimap.machines.base import Facts, Request
    from chimap.machines.catalogue import machine_for
    from chimap.recipe import Recipe
    from chimap.recipe.codecs import RealCodec
    from chimap.recipe.task import Task

    y = source.labels()
    task = "classify" if y is None else data_rows.decide_task(y, "auto", source.name)[0]
    estimator = Settings(kernel="exp-chi2", components=components, memory=memory).estimator(task)
    loaded = show.resident_memory()  # every library of a fit is loaded now; of the data, only the labels are
    libraries = None if loaded is None else loaded + _RUNNING_BYTES
    recipe = Recipe.of(estimator)
    targets = Task(RealCodec(0.0)) if y is None else Task.of(source, recipe)[0]  # without labels, one target
    plan = machine_for(recipe, Facts.of(source, targets, None, Request(can_keep=True)))
    cost, budget = plan.cost, parse_memory(memory)
    return {"memory_bytes": budget, "library_bytes": libraries, "peak_bytes": cost.n_bytes} | cost.sizes


def _plan_line(plan: JSON) -> str:
    libraries = show.size(plan["library_bytes"])
    besides = f"plus {libraries} for libraries" if libraries else "libraries not counted"
    if "seconds" in plan:
        time = show.duration(float(f"{plan['seconds']:.2g}"))
        reads = (
            f"an exact fit learns {plan['components']:,} rows in blocks of up to {plan['chunk_rows']:,}, takes about "
            f"{time} of two cores"
        )
    elif plan["features"] == "exact":
        reads = f"an exact fit keeps all {plan['chunk_rows']:,} rows"
    else:
        reads = f"a fit with {plan['components']:,} landmarks reads {plan['chunk_rows']:,} rows at a time"
    return f"{reads} and peaks at {show.size(plan['peak_bytes'])} of {show.size(plan['memory_bytes'])}, {besides}"


def _labels_line(labels: JSON | None) -> str:
    if labels is None:
        return "none; name them with --labels"
    if labels["task"] is None:
        return str(labels["reason"])
    if "entries" in labels:
        entries = labels["entries"]
        kind = "tasks of two classes" if labels["task"] == "classify" else "regressions"
        return f"{len(entries)} {kind}, {min(entries):,} to {max(entries):,} labels each ({labels['reason']})"
    if "counts" not in labels:
        ends = f"{labels['least']:.6g} to {labels['most']:.6g}, mean {labels['mean']:.6g}"
        return f"{ends}: a regression ({labels['reason']})"
    counts = sorted(labels["counts"].items(), key=lambda pair: -pair[1])
    shown = ", ".join(f"{name}: {count:,}" for name, count in counts[:_MOST_CLASSES])
    more = f", and {len(counts) - _MOST_CLASSES:,} more" if len(counts) > _MOST_CLASSES else ""
    return f"{len(counts):,} classes ({labels['reason']})\nrows per class: {shown}{more}"


# --- models, words and images


def images(path: str, labels: str | None) -> Described:
    """Describe a set of images."""
    opened = image_rows.open_set(path, labels, None)

    def counted(values: np.ndarray | None) -> dict[object, int] | None:
        if values is None:
            return None
        names, counts = np.unique(values, return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))

    facts: JSON = {
        "data": opened.name,
        "images": len(opened),
        "classes": counted(opened.labels),
        "parts": counted(opened.splits),
        "masks": opened.masks is not None,
    }
    return facts, {
        "images": f"{len(opened):,}",
        "classes": _image_classes_line(facts["classes"]),
        "parts": facts["parts"] and ", ".join(f"{name}: {count:,}" for name, count in facts["parts"].items()),
        "masks": "one for each image" if facts["masks"] else None,
    }


def words(path: Path) -> Described:
    """Describe a file of visual words. Raise DataError for other files."""
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
        "blocks": image_rows.blocks_flag(histograms) or None,
        "size": show.size(facts["bytes"]),
    }


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


def model(path: Path) -> Described:
    """Describe a model file. Raise DataError for other files."""
    from chimap.models.header import header_of

    facts = header_of(path)
    training, tables = facts["training"], facts["tables"]
    features, alpha = facts["features"], facts["alpha"]
    lines = {
        "model": facts["estimator"],
        "kernel": kernel_in_words(facts["kernel"], facts["gamma"]),
        "bins": f"{facts['bins']:,}" + _normalised(facts["normalize"]),
        "counts": _reading_line(facts["reading"]),
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
    kept = {name: line for name, line in ((training or {}).get("lines") or {}).items() if name not in ("data", "bins")}
    return facts, {"model": lines.pop("model"), **kept, **{n: line for n, line in lines.items() if n not in kept}}


def _normalised(name: str | None) -> str:
    """Return what a normalisation makes of a row, after a comma; empty for none."""
    if name is None:
        return ""
    from chimap.normalizations import CATALOGUE

    return f", {CATALOGUE[name].about}" if name in CATALOGUE else ""


def _reading_line(reading: JSON | None) -> str | None:
    if reading is None:
        return None
    by = f", by RDKit {reading['rdkit']}" if reading["rdkit"] else ""
    return f"{reading['kind']} of the column {reading['column']!r}{by}"


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
    elif split and "time" in split:
        line += f"; the latest {100 * split['test_fraction']:g} % by {split['time']} held out"
    elif split:
        line += f"; {100 * split['test_fraction']:g} % held out (seed {split['seed']})"
    return f"{line}; {training['n_forgotten']:,} forgotten" if "n_forgotten" in training else line
