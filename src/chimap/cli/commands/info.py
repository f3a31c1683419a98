"""``chimap info``: describe a model file, a data file, a set of images or this installation."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from chimap._errors import InputError
from chimap.cli import image_rows, options, process, show
from chimap.cli.options import CountedColumn, TableOptions, Without

if TYPE_CHECKING:
    import numpy as np

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
    from chimap.cli import describe_data, describe_model, image_rows

    if memory is not None and (path is None or describe_model.is_model(path)):
        raise InputError("--memory plans a fit on a data file: name a data file, or leave --memory out.")
    if path is None:
        title, facts, lines = "This installation", *describe_machine()
    elif describe_model.is_model(path) and is_words(path):
        title, facts, lines = f"Visual words {path}", *describe_words(Path(path))
    elif describe_model.is_model(path):
        title, facts, lines = f"Model {path}", *describe_model.describe(Path(path))
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
