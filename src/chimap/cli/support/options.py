"""Arguments and flags that commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

_ROWS = (
    "A table of counts: .csv, .tsv, .npz (X and y, CSR parts, or FILE.npz::MEMBER), .npy, .parquet (also a folder), "
    ".feather, .jsonl, .h5ad, .biom, .zarr, .h5, .mtx, or svmlight text; a path, or an address such as s3://BUCKET/FILE."
)
_OR_IMAGES = " Or images, as for 'chimap features'."
Data = Annotated[str, typer.Argument(metavar="DATA", help=_ROWS, show_default=False)]
DataOrImages = Annotated[str, typer.Argument(metavar="DATA", help=_ROWS + _OR_IMAGES, show_default=False)]
Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="A model that 'chimap fit' or 'chimap learn-kernel' wrote.", show_default=False
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        metavar="LABELS",
        help="The labels: a column or array of DATA by name; or a file (.npy, .csv, or text with one label a line), "
        "FILE::COLUMN, or ::MEMBER of DATA.",
        show_default=False,
    ),
]
Jobs = Annotated[
    int | None, typer.Option(metavar="N", help="Threads; all cores by default.", show_default=False)
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Seed = Annotated[
    int, typer.Option(metavar="N", help="Seed of everything random: the same seed gives the same result.")
]


def output(metavar: str, help: str) -> Any:
    """The flag ``--output`` of a command, with what it writes."""
    return typer.Option("--output", "-o", metavar=metavar, help=help, show_default=False)


class Task(StrEnum):
    """What the labels are."""

    auto = "auto"
    classify = "classify"
    regress = "regress"


class Precision(StrEnum):
    """Of features and their products."""

    auto = "auto"
    float32 = "float32"
    float64 = "float64"
    bfloat16 = "bfloat16"


class Engine(StrEnum):
    """What reads the rows: this process, or workers of ``dask.distributed``."""

    local = "local"
    dask = "dask"
