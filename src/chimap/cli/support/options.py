"""Arguments and options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from chimap.cli.support.declared import constant, names


def value(metavar: str, help: str, *flags: str) -> Any:
    """Return an option with a value, which the help calls ``metavar``, and with its default in the help."""
    return typer.Option(*flags, metavar=metavar, help=help)


def optional(metavar: str, help: str, *flags: str) -> Any:
    """Return an option with a value, and without a default that could be shown."""
    return typer.Option(*flags, metavar=metavar, help=help, show_default=False)


def output(metavar: str, help: str) -> Any:
    """Return the ``--output`` option of a command; ``help`` says what the command writes."""
    return optional(metavar, help, "--output", "-o")


_ROWS = (
    "A table of counts: .csv, .tsv, .npz (X and y, CSR parts, or FILE.npz::MEMBER), .npy, .parquet (file or folder), "
    ".feather, .jsonl, .h5ad, .biom, .zarr, .h5, .mtx or svmlight text, at a path or an address such as "
    "s3://BUCKET/FILE."
)
_OR_IMAGES = " DATA may also be images, as for 'chimap features'."
Data = Annotated[str, typer.Argument(metavar="DATA", help=_ROWS, show_default=False)]
DataOrImages = Annotated[str, typer.Argument(metavar="DATA", help=_ROWS + _OR_IMAGES, show_default=False)]
Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A model file written by 'chimap fit' or 'chimap learn-kernel'.",
        show_default=False,
    ),
]
Labels = Annotated[
    str | None,
    optional(
        "LABELS",
        "The labels: the name of a column or array of DATA, a file (.npy, .csv, or text with one label per "
        "line), FILE::COLUMN, or ::MEMBER of DATA.",
    ),
]
Jobs = Annotated[int | None, optional("N", "Number of threads; all cores by default.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Seed = Annotated[int, value("N", "Random seed; the same seed gives the same result.")]


class Task(StrEnum):
    """Whether the labels are classes or numbers."""

    auto = "auto"
    classify = "classify"
    regress = "regress"


Precision = StrEnum("Precision", [(n, n) for n in constant("fit/recipe.py", "PRECISIONS")])  # type: ignore[misc]
"""Precision of the features and their products."""
EngineChoice = StrEnum("EngineChoice", [(n, n) for n in names("engines/__init__.py", "ENGINES")])  # type: ignore[misc]
"""Where the rows are read: a name of ``chimap.engines.ENGINES``."""
IN_PROCESS = EngineChoice("local")
