"""Options that say what the columns of DATA are, and how rows are made of one of them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from chimap._types import JSON
    from chimap.data.formats.fields import Reading


@dataclasses.dataclass(frozen=True)
class Table:
    """What the columns of DATA are."""

    id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Column, or array of DATA, that names the rows. It is not a bin; predictions are written beside it, "
            "and labels of another table are joined by it.",
            show_default=False,
        ),
    ] = None
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Columns that are bins: names, globs, numbers or ranges, such as otu_*,depth or 0:300.",
            show_default=False,
        ),
    ] = None
    exclude: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC", help="Columns that are not bins, written as for --columns.", show_default=False
        ),
    ] = None
    missing: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE",
            help="Value that marks a missing label, such as -1, beside empty text and NaN. Rows without "
            "a label are left out.",
            show_default=False,
        ),
    ] = None
    transpose: Annotated[
        bool,
        typer.Option("--transpose", help="Take the columns of a .mtx file as rows, as for genes by cells."),
    ] = False
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column, or array of DATA, or TABLE::COLUMN by id, whose equal values mark rows that belong together, "
            "such as those of one patient: they are held out together. It is not a bin.",
            show_default=False,
        ),
    ] = None
    split: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column, or array of DATA, or TABLE::COLUMN by id, whose values are train and test. It is not a bin.",
            show_default=False,
        ),
    ] = None
    sample_weight: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column, or array of DATA, or TABLE::COLUMN by id, that says how often each row counts: 2 is two "
            "rows, 0 none. It is not a bin.",
            show_default=False,
        ),
    ] = None

    def given(self) -> JSON:
        """Those that were given."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value not in (None, False)}


@dataclasses.dataclass(frozen=True)
class CountedColumn:
    """A column of text or molecules, which rows are counted from."""

    text: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of text whose words are counted; for a folder of texts, text. The model keeps the words.",
            show_default=False,
        ),
    ] = None
    smiles: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of SMILES; Morgan fingerprints of the molecules are counted (needs RDKit).",
            show_default=False,
        ),
    ] = None
    morgan_radius: Annotated[
        int, typer.Option(metavar="N", help="Radius of the fingerprints of --smiles, in bonds.")
    ] = 2
    morgan_size: Annotated[int, typer.Option(metavar="N", help="Bins of the fingerprints of --smiles.")] = (
        2048
    )

    def reading(self) -> Reading | None:
        """How rows are made of it, or None where no column of text or SMILES is named."""
        from chimap.data import MorganCounts, WordCounts

        if self.text is not None and self.smiles is not None:
            raise ValueError("--text and --smiles name one column each, of which one is read; leave one out.")
        if self.text is not None:
            return WordCounts(self.text)
        return (
            None if self.smiles is None else MorganCounts(self.smiles, self.morgan_radius, self.morgan_size)
        )


AS_IT_IS = Table()
