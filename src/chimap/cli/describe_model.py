"""Describe a model file from its header, reading only a few small arrays such as the names of classes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chimap._formatting import bin_weights_in_words, blocks_in_words, class_weights_in_words, kernel_in_words
from chimap.cli import show

if TYPE_CHECKING:
    from safetensors import safe_open

    from chimap._types import JSON


def is_model(path: str) -> bool:
    """Return whether the file starts like a chimap file: the header of safetensors, a length of 8 bytes and JSON."""
    file = Path(path)
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        start = stream.read(9)
    is_long_enough = int.from_bytes(start[:8], "little") <= file.stat().st_size
    return start[8:] == b"{" and is_long_enough


def describe(path: Path) -> tuple[JSON, dict[str, str | None]]:
    """Return facts about a model file as plain values, and as lines for the terminal.

    Raise DataError for other files.
    """
    facts = _found(path)
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
        "rows": None
        if facts["rows"] is None
        else _rows_line(facts["rows"], facts["block_rows"], facts["unlearned"]),
        "loss": facts["loss"],
        "alpha": None if alpha is None else f"{alpha:.4g}",
        "class weights": class_weights_in_words(facts["classes"] or facts["tasks"], facts["class_weight"]),
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


def _found(path: Path) -> JSON:
    from safetensors import safe_open

    from chimap._files import kind_named, read_header
    from chimap._validation import DataError

    meta = read_header(path)
    if meta.get("kind") != "model":
        raise DataError(
            f"{path} holds {kind_named(meta.get('kind'))}, not a chimap model. Name another file."
        )
    try:
        with safe_open(path, framework="numpy") as file:
            state = _plain(meta["model"]["state"], file)
            # A compiled model keeps its tables; the other facts come from the model that it was compiled from, if kept.
            fitted = (state["exact_"] or {}).get("state", {}) if "tables_" in state else state
            about = meta["about"]
            coef = fitted.get("_coef")
            chosen = fitted.get("chosen_") or {}  # settings that the race chose
            blocks, seconds = fitted.get("block_rows_"), fitted.get("stage_seconds_")
            weights, of_classes = fitted.get("bin_weights_"), fitted.get("class_weight_")
            return {
                "version": meta["version"],
                "bytes": path.stat().st_size,
                "estimator": meta["model"]["object"],
                "kernel": about["kernel"],
                "gamma": about["gamma"],
                "made_of": about["features"],
                "tables": _tables(state, file),
                "features": None if coef is None else file.get_slice(coef["array"]).get_shape()[0],
                "bins": state["n_features_in_"],
                "normalize": chosen.get("normalize", fitted.get("normalize")),
                "precision": _precision(fitted),
                "rows": fitted.get("n_rows_"),
                "block_rows": None if blocks is None else file.get_tensor(blocks["array"]).tolist(),
                "unlearned": fitted.get("n_unlearned_", 0),
                "seconds": sum(seconds.values()) if seconds else None,
                "loss": _loss_name(chosen.get("loss", fitted["loss"])) if "loss" in fitted else None,
                "alpha": fitted.get("alpha_"),
                "bin_weights": None if weights is None else file.get_tensor(weights["array"]).tolist(),
                "class_weight": None if of_classes is None else file.get_tensor(of_classes["array"]).tolist(),
                "threshold": state.get("threshold_"),
                "bin_names": _classes(fitted.get("feature_names_in_"), file),
                "classes": None if state.get("multilabel_") else _classes(state.get("classes_"), file),
                "tasks": _tasks(fitted, file),
                "training": state.get("training_"),
            }
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise DataError(f"{path} is damaged: {error!r}. Fit the model again.") from error


def _precision(fitted: JSON) -> str:
    """Return the precision of the fit: as given, or what "auto" resolved to."""
    setting: str = fitted.get("precision", "float32")
    return (fitted.get("_taken") or {}).get("precision", "float32") if setting == "auto" else setting


def _tables(state: JSON, file: safe_open) -> JSON | None:
    """Return the kind, size and bytes of the tables of a compiled model, and the bound on the error of its scores.

    Return None for other models.
    """
    if "tables_" not in state:
        return None
    from chimap.tables.lines import worst_error

    tables = state["tables_"]["state"]
    lines = "lines" in tables
    shape = file.get_slice(tables["lines" if lines else "tables"]["array"]).get_shape()
    worst = None
    if lines:
        errors, n_below = (file.get_tensor(tables[name]["array"]) for name in ("errors", "n_below"))
        worst = worst_error(errors, n_below)
    kind = "straight pieces" if lines else "codes"
    return {"kind": kind, "a_bin": shape[1], "bytes": 4 * math.prod(shape), "worst_error": worst}


def _tables_line(tables: JSON) -> str:
    worst = tables["worst_error"]
    off = "" if worst is None else f"; scores are off by at most {worst:.2g}, and by far less for most rows"
    return f"{tables['a_bin']} {tables['kind']} per bin, {show.size(tables['bytes'])}{off}"


def _loss_name(loss: str | JSON) -> str:
    """Return the name of a loss, or the class name of a loss object."""
    return loss if isinstance(loss, str) else loss["object"]


def _plain(value: object, file: safe_open) -> Any:
    """Return the JSON of the header without its markers of lists and dictionaries. Arrays stay references by name."""
    if not isinstance(value, dict):
        return value
    if set(value) == {"list"}:
        return [_plain(item, file) for item in value["list"]]
    if set(value) == {"dict"}:
        return {key: _plain(item, file) for key, item in value["dict"].items()}
    return {key: _plain(item, file) for key, item in value.items()}


def _classes(value: JSON | None, file: safe_open) -> list[object] | None:
    if value is None:
        return None
    names = value.get("texts", value.get("objects"))
    return file.get_tensor(value["array"]).tolist() if names is None else list(names)


def _tasks(state: JSON, file: safe_open) -> list[object] | None:
    """Return the names or numbers of the tasks of a multi-task model, or None for other models."""
    coef = state.get("_coef")
    n_outputs = 1 if coef is None else file.get_slice(coef["array"]).get_shape()[1]
    if not state.get("multilabel_") and (n_outputs == 1 or "classes_" in state):
        return None
    names = state.get("task_names_")
    return list(range(n_outputs)) if names is None else list(names["texts"])


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
