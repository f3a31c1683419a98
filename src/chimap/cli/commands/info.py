"""``chimap info``: describe a model file, a data file, a set of images or this installation."""

from __future__ import annotations

import math
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from chimap._errors import InputError
from chimap._formatting import bin_weights_in_words, blocks_in_words, class_weights_in_words, kernel_in_words
from chimap.cli import image_rows, options, process, show
from chimap.cli.options import CountedColumn, TableOptions, Without

if TYPE_CHECKING:
    import numpy as np
    from safetensors import safe_open

    from chimap._types import JSON
    from chimap.images import ImageHistograms


def info(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH", help="A model, visual words, a data file or images.", show_default=False
        ),
    ] = None,
    *,
    labels: options.Labels = None,
    table: Annotated[TableOptions, Without("groups", "split", "sample_weight")],
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
        title, facts, lines = "This installation", *describe_machine()
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


_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "safetensors")
_OPTIONAL_PACKAGES = ("torch", "dask", "pyarrow", "zarr", "h5py", "opencv-python-headless", "onnx")


def describe_machine() -> tuple[JSON, dict[str, str | None]]:
    """Return facts about the installation as plain values, and as lines for the terminal."""
    import numpy as np
    import scipy.linalg  # noqa: F401  loads a second BLAS
    from threadpoolctl import threadpool_info

    from chimap import _threads
    from chimap._version import __version__

    np.ones((2, 2)) @ np.ones((2, 2))
    pools = [p for p in threadpool_info() if p["user_api"] == "blas"]
    keys = ("internal_api", "version", "architecture", "num_threads")
    facts: JSON = {
        "version": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "machine": platform.machine(),
        "packages": _versions(_PACKAGES),
        "optional": _versions(_OPTIONAL_PACKAGES),
        "blas": [{key: pool.get(key) for key in keys} for pool in pools],
        "cores": _threads.available(),
        "memory_bytes": _total_memory(),
        "openblas_coretype": os.environ.get("OPENBLAS_CORETYPE"),
        "recommended_coretype": process.recommended_coretype(),
    }
    return facts, {
        "chimap": f"{facts['version']}, Python {facts['python']} on {facts['platform']} ({facts['machine']})",
        "packages": _listed_versions(facts["packages"]),
        "optional": _listed_versions(facts["optional"]) or "none installed",
        "BLAS": "\n".join(dict.fromkeys(_blas_line(p) for p in facts["blas"])) or "unknown",
        "advice": _advice(facts["recommended_coretype"]),
        "cores": str(facts["cores"]),
        "memory": show.size(facts["memory_bytes"]),
    }


def _versions(names: tuple[str, ...]) -> dict[str, str]:
    installed = {}
    for name in names:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed


def _listed_versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {text}" for name, text in versions.items())


def _blas_line(pool: JSON) -> str:
    name = f"{pool['internal_api']} {pool['version']}"
    return f"{name}, kernels {pool['architecture']}, {pool['num_threads']} threads"


def _advice(coretype: str | None) -> str | None:
    """Return advice for programs that import the package; the command line sets the variable itself."""
    if coretype is None:
        return None
    return (
        f"in your programs, set OPENBLAS_CORETYPE={coretype} before importing NumPy: this is up to twice as fast on "
        "new processors (chimap commands set it themselves)"
    )


def _total_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return None


def installation() -> str:
    """Return a line such as 'Python 3.11.7, Linux x86_64, numpy 2.1.0, ...', without importing the packages.

    The line ends with the commit if it is known.
    """
    import json
    import platform
    from importlib import metadata

    parts = [f"Python {platform.python_version()}", f"{platform.system()} {platform.machine()}"]
    for name in ("numpy", "scipy", "scikit-learn", "numba", "safetensors"):
        try:
            parts.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            parts.append(f"no {name}")
    try:
        origin = json.loads(metadata.distribution("chimap").read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        origin = {}
    commit = origin.get("vcs_info", {}).get("commit_id")
    return ", ".join([*parts, *([f"commit {commit[:12]}"] if commit else [])])


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


def describe_model(path: Path) -> tuple[JSON, dict[str, str | None]]:
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
                "positive": fitted.get("positive"),
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
