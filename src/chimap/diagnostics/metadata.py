"""Rows with columns of their metadata, which say to which group each belongs and what else is known of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

import numpy as np

from chimap._frames import is_frame, names_of
from chimap._messages import Message, Parameter, shown
from chimap._types import ArrayLike, MatrixLike
from chimap._validation import DataError
from chimap.data import Source
from chimap.data.covariates import table_of_columns, table_of_values, unwrapped
from chimap.data.frames import column_of
from chimap.data.source import CovariateTable
from chimap.data.table import NoColumnError, instead
from chimap.data.views import ChosenRows
from chimap.models.model import Model
from chimap.readers import open_source

Data: TypeAlias = "MatrixLike | Source | str | os.PathLike[str]"
Metadata: TypeAlias = "object"
"""None for columns of the data, the path of a table that is joined by ids, or a data frame or mapping of columns."""


def opened(X: Data, aside: Sequence[str], model: Model | None) -> Source:
    """Return rows of any kind as a source, with the columns of a model if there is one, and none of ``aside``."""
    if isinstance(X, Source):
        return X
    return open_source(X, like=model, aside=[unwrapped(name)[0] for name in aside], with_labels=False)


def columns_of(
    source: Source, roles: Mapping[str, Sequence[str]], metadata: Metadata, given: Mapping[str, object]
) -> CovariateTable:
    """Return named columns of the rows of a source, as numbers or text, masked where a value is missing.

    Numbers of which only two differ, such as 0 and 1, are text: they stand for groups.

    Parameters
    ----------
    source : Source
        The rows.
    roles : mapping of str to sequence of str
        The names of columns, by the parameter that gives them; ``C(year)`` is a category though it holds numbers.
    metadata : data frame, mapping, path or None
        Where the columns are.
    given : mapping of str to array
        Further columns.

    Raises
    ------
    DataError
        If there is no such column, or its values are neither numbers nor text, or not one for each row.
    """
    values: dict[str, np.ma.MaskedArray] = {}
    for role, names in roles.items():
        if names:
            values |= zip(names, _read(source, list(names), role, metadata).values, strict=True)
    if given:
        values |= zip(given, table_of_values(given, source.n_rows).values, strict=True)
    return CovariateTable(tuple(values), tuple(map(_grouped, values.values())))


def _grouped(values: np.ma.MaskedArray) -> np.ma.MaskedArray:
    """Return numbers of which only two differ, such as 0 and 1, as the groups that they stand for."""
    different = np.unique(values.compressed())
    if values.dtype.kind != "f" or different.size != 2:
        return values
    words = np.array([f"{number:g}" for number in different])
    return np.ma.MaskedArray(words[(values.data > different[0]).astype(int)], values.mask)


def _read(source: Source, names: list[str], role: str, metadata: Metadata) -> CovariateTable:
    if metadata is None:
        return table_of_columns(source, names, role)
    if isinstance(metadata, str | os.PathLike):
        return table_of_columns(source, [f"{os.fspath(metadata)}::{name}" for name in names], role)
    there: dict[str, ArrayLike]
    if is_frame(metadata):
        there = {str(name): column_of(metadata, place) for place, name in enumerate(names_of(metadata))}
    else:
        there = {str(name): values for name, values in cast("Mapping[object, ArrayLike]", metadata).items()}
    columns = {}
    for name in names:
        column, _ = unwrapped(name)
        if column not in there:
            others = instead(column, [*there], f"there are {shown([*there])}")
            raise NoColumnError(Message("{metadata} has no column {!r} for {}{}.", column, Parameter(role), others))
        columns[name] = there[column]
    return table_of_values(columns, source.n_rows, [name for name in names if unwrapped(name)[1]])


def complete_rows(source: Source, table: CovariateTable) -> tuple[Source, CovariateTable, tuple[str, ...]]:
    """Return the rows without a gap in these columns, their columns, and what to say of the others.

    Raises
    ------
    DataError
        If no row is left.
    """
    gaps = {name: np.ma.getmaskarray(values) for name, values in zip(table.names, table.values, strict=True)}
    is_whole = ~np.any([*gaps.values()], axis=0)
    if is_whole.all():
        return source, table, ()
    told = ", ".join(f"{name} in {np.count_nonzero(gap):,}" for name, gap in gaps.items() if gap.any())
    n_out = int(np.count_nonzero(~is_whole))
    if not is_whole.any():
        raise DataError(
            Message(
                "{}: no row has a value in every column ({} missing, of {:,} rows). Leave out the emptiest, or check "
                "the ids that metadata are joined by.",
                source.name,
                told,
                source.n_rows,
            )
        )
    kept = np.flatnonzero(is_whole)
    note = f"{n_out:,} of {source.n_rows:,} rows are left out, for want of metadata: {told}."
    return ChosenRows(source, kept, None), table.take(kept), (note,)
