"""Arguments and flags that commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from chimap.data.formats.fields import Reading


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
Id = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="Column, or array of DATA, that names the rows. It is not a bin; predictions are "
        "written beside it, and labels "
        "of another table are joined by it.",
        show_default=False,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC",
        help="Columns that are bins: names, globs, numbers or ranges, such as otu_*,depth or 0:300.",
        show_default=False,
    ),
]
Exclude = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC", help="Columns that are not bins, written as for --columns.", show_default=False
    ),
]
Transpose = Annotated[
    bool, typer.Option("--transpose", help="Take the columns of a .mtx file as rows, as for genes by cells.")
]
Text = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of text whose words are counted; for a folder of texts, text. The model keeps the words.",
        show_default=False,
    ),
]
Smiles = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of SMILES; Morgan fingerprints of the molecules are counted (needs RDKit).",
        show_default=False,
    ),
]
MorganRadius = Annotated[
    int, typer.Option(metavar="N", help="Radius of the fingerprints of --smiles, in bonds.")
]
MorganSize = Annotated[int, typer.Option(metavar="N", help="Bins of the fingerprints of --smiles.")]
Missing = Annotated[
    str | None,
    typer.Option(
        metavar="VALUE",
        help="Value that marks a missing label, such as -1, beside empty text and NaN. Rows without "
        "a label are left out.",
        show_default=False,
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column, or array of DATA, or TABLE::COLUMN by id, whose equal values mark rows that belong together, "
        "such as those of one patient: they are held out together. It is not a bin.",
        show_default=False,
    ),
]
Split = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column, or array of DATA, or TABLE::COLUMN by id, whose values are train and test. It is not a bin.",
        show_default=False,
    ),
]
SampleWeight = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column, or array of DATA, or TABLE::COLUMN by id, that says how often each row "
        "counts: 2 is two rows, 0 "
        "none. It is not a bin.",
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


def reading_of(text: str | None, smiles: str | None, radius: int, size: int) -> Reading | None:
    """How rows are made of a column, or None where no column of text or SMILES is named."""
    from chimap.data import MorganCounts, WordCounts

    if text is not None and smiles is not None:
        raise ValueError("--text and --smiles name one column each, of which one is read; leave one out.")
    if text is not None:
        return WordCounts(text)
    return None if smiles is None else MorganCounts(smiles, radius, size)


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
