"""What the header of a model file says, without what a model needs to predict."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chimap._files import kind_named, read_header
from chimap._types import JSON
from chimap._validation import DataError

if TYPE_CHECKING:
    from safetensors import safe_open


def header_of(path: Path) -> JSON:
    """Return facts about the model in a file by name, as plain values. Raise DataError for other files.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict
        Among them "kernel", "gamma", "bins", "rows", "alpha", "classes" and "training"; None where they do not apply.
    """
    from safetensors import safe_open

    meta = read_header(path)
    if meta.get("kind") != "model":
        raise DataError(f"{path} holds {kind_named(meta.get('kind'))}, not a chimap model. Name another file.")
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
            setting: str = fitted.get("precision", "float32")
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
                "reading": _reading(state.get("reading_")),
                "normalize": chosen.get("normalize", fitted.get("normalize")),
                "precision": (fitted.get("_taken") or {}).get("precision", "float32") if setting == "auto" else setting,
                "rows": fitted.get("n_rows_"),
                "block_rows": None if blocks is None else file.get_tensor(blocks["array"]).tolist(),
                "unlearned": fitted.get("n_unlearned_", 0),
                "seconds": sum(seconds.values()) if seconds else None,
                "loss": _loss_name(chosen.get("loss", fitted["loss"])) if "loss" in fitted else None,
                "alpha": fitted.get("alpha_"),
                "bin_weights": None if weights is None else file.get_tensor(weights["array"]).tolist(),
                "class_weight": None if of_classes is None else file.get_tensor(of_classes["array"]).tolist(),
                "positive": fitted.get("positive"),
                "threshold": state.get("threshold_"),
                "bin_names": _classes(fitted.get("feature_names_in_"), file),
                "classes": None if state.get("multilabel_") else _classes(state.get("classes_"), file),
                "tasks": _tasks(fitted, file),
                "training": state.get("training_"),
            }
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise DataError(f"{path} is damaged: {error!r}. Fit the model again.") from error


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


def _reading(reading: JSON | None) -> JSON | None:
    """Return what turns a column into rows: its class, the column, and RDKit's version where it counts molecules."""
    if reading is None:
        return None
    return {"kind": reading["object"], "column": reading["state"]["column"], "rdkit": reading["state"].get("rdkit")}


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
