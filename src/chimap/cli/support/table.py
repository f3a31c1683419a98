"""Options for the roles of the columns of DATA, and for columns of text or molecules."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from chimap._errors import InputError
from chimap.cli.support import options
from chimap.cli.support.declared import default, names

if TYPE_CHECKING:
    from chimap._types import JSON
    from chimap.data.formats.fields import Reading


@dataclasses.dataclass(frozen=True)
class TableOptions:
    """The roles of the columns of DATA."""

    id: Annotated[
        str | None,
        options.optional(
            "COLUMN",
            "Column or array of DATA with the names of the rows. It is not a bin; predictions carry these names, "
            "and labels of another table are joined on them.",
            "--id",
        ),
    ] = None
    columns: Annotated[
        str | None,
        options.optional(
            "SPEC", "Columns to use as bins: names, globs, numbers or ranges, such as otu_*,depth or 0:300."
        ),
    ] = None
    exclude: Annotated[
        str | None,
        options.optional("SPEC", "Columns that are not bins, in the form of --columns."),
    ] = None
    missing: Annotated[
        str | None,
        options.optional(
            "VALUE",
            "Value that marks a missing label, such as -1, in addition to empty text and NaN; several with commas "
            "between them. Rows without a label are left out.",
        ),
    ] = None
    transpose: Annotated[
        bool,
        typer.Option(
            "--transpose", help="Read the columns of a .mtx file as rows, such as a matrix of genes by cells."
        ),
    ] = False
    groups: Annotated[
        str | None,
        options.optional(
            "COLUMN",
            "Column with the group of each row, such as the patient. Rows of a group are held out together. Give "
            "a column or array of DATA, or TABLE::COLUMN joined by id. It is not a bin.",
        ),
    ] = None
    split: Annotated[
        str | None,
        options.optional(
            "COLUMN",
            "Column whose values are train and test. Give a column or array of DATA, or TABLE::COLUMN joined by "
            "id. It is not a bin.",
        ),
    ] = None
    sample_weight: Annotated[
        str | None,
        options.optional(
            "COLUMN",
            "Column with the weight of each row: 2 counts as two rows, 0 as none. Give a column or array of DATA, "
            "or TABLE::COLUMN joined by id. It is not a bin.",
        ),
    ] = None

    def given(self) -> JSON:
        """Return the options that are set, by name."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value not in (None, False)}


Tokens = StrEnum("Tokens", [(name, name) for name in names("data/formats/words.py", "TOKENS")])  # type: ignore[misc]
"""What is counted in a text: a name of ``TOKENS``."""
_TOKENS = Tokens(default("tokens", "WordCounts"))


@dataclasses.dataclass(frozen=True)
class CountedColumn:
    """A column of text or molecules whose words or fingerprints are counted to form the bins."""

    text: Annotated[
        str | None,
        options.optional(
            "COLUMN",
            "Column of text whose words are counted (for a folder of texts: text). The model stores the words.",
        ),
    ] = None
    smiles: Annotated[
        str | None,
        options.optional("COLUMN", "Column of SMILES whose Morgan fingerprints are counted (needs RDKit)."),
    ] = None
    tokens: Annotated[
        Tokens,
        options.value(
            "TOKENS", "What --text counts: words, or, for texts without blanks between them, characters."
        ),
    ] = _TOKENS
    morgan_radius: Annotated[int, options.value("N", "Radius of the --smiles fingerprints, in bonds.")] = (
        default("radius", "MorganCounts")
    )
    morgan_size: Annotated[int, options.value("N", "Number of bins of the --smiles fingerprints.")] = default(
        "size", "MorganCounts"
    )

    def reading(self) -> Reading | None:
        """Return the reading that turns the column into rows, or None if no column is named."""
        from chimap._validation import ParameterError, check_positive
        from chimap.data import MorganCounts, WordCounts

        if self.text is not None and self.smiles is not None:
            raise InputError(
                "--text and --smiles name one column each, but only one can be read: leave one of them out."
            )
        if self.text is not None:
            return WordCounts(self.text, tokens=self.tokens.value)
        check_positive(self.morgan_size, "morgan_size", integer=True)
        if self.morgan_radius < 0:
            raise ParameterError("morgan_radius", self.morgan_radius, "a whole number, 0 or more")
        return (
            None if self.smiles is None else MorganCounts(self.smiles, self.morgan_radius, self.morgan_size)
        )


AS_IT_IS = TableOptions()
