"""Choose columns of a source: those that a model was fitted on, or those that a caller named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._unicode import composed_names
from chimap._validation import DataError, check_counted
from chimap.data.ids import unique_ids
from chimap.data.label_kinds import whole_numbers
from chimap.data.rows import check_exact
from chimap.data.source import Source
from chimap.data.table import ColumnChoice, ignored, present_names, roles_of
from chimap.data.views import ChosenColumns

GENES = "Gene Expression"  # the kind of column of 10x Genomics that is a bin by default


def matched(source: Source, names: Sequence[str] | None, n_features: int, owner: str) -> Source:
    """Return the source with the columns that a model was fitted on, in the model's order.

    Columns are matched by name; unknown ones are ignored, with a note. Where the source or the model has no names,
    columns are taken by position and their number must agree.

    Parameters
    ----------
    source : Source
        The rows.
    names : sequence of str or None
        Names of the model's columns.
    n_features : int
        Number of the model's columns.
    owner : str
        Class of the model, for errors.

    Returns
    -------
    Source

    Raises
    ------
    DataError
        If columns are missing (the message names them), or if their number differs and there are no names.

    Examples
    --------
    >>> import pandas as pd
    >>> from chimap import open_source
    >>> source = open_source(pd.DataFrame({"b": [1.0], "c": [2.0], "a": [3.0]}))
    >>> view = matched(source, ["a", "b"], 2, "HistogramClassifier")
    >>> view.column_names, view.block(0, 1).X.tolist()
    (('a', 'b'), [[3.0, 1.0]])
    """
    if names is None or source.column_names is None:
        if source.n_features != n_features:
            raise DataError(
                f"{source.name}: {source.n_features:,} bins per row, but {owner} was fitted on {n_features:,}. Give "
                "rows with the same bins in the same order."
            )
        if source.column_names is not None:
            check_counted(source.column_names, source.name)
        return source
    model_names, source_names = composed_names(names), composed_names(source.column_names)
    if model_names == source_names:
        return source
    place_of_name = {name: i for i, name in enumerate(source_names)}
    places = [place_of_name[name] for name in present_names(model_names, place_of_name, source.name)]
    view = ChosenColumns(source, places)
    names_known = {*model_names}
    unknown = [name for name in source_names if name not in names_known]
    view.notes = (*source.notes, *ignored(unknown, source.name))
    return view


def fitted_names(model: object) -> tuple[str, ...] | None:
    """Return the names of the columns that a model was fitted on, or None where it knows none."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else composed_names(names)


def choice_like(model: object) -> ColumnChoice:
    """Return the choice of the columns that a model was fitted on; a silent choice for None."""
    first_column = getattr(model, "first_column_", None)
    if first_column is None:  # older model files keep it with the description of the training
        zero_based = (getattr(model, "training_", None) or {}).get("zero_based")
        first_column = None if zero_based is None else int(not zero_based)
    width = getattr(model, "n_features_in_", None)
    return ColumnChoice(names=fitted_names(model), width=width, first_column=first_column)


def chosen(source: Source, choice: ColumnChoice) -> Source:
    """Return the columns that a caller chose from a source that was opened without the choice.

    Positions stand in for names that the source does not have. A column that names the rows is read once, as a whole.
    """
    if choice.columns is None and choice.names is None:
        source = _genes(source)
    if choice.is_silent:
        return source
    names = source.column_names or tuple(map(str, range(source.n_features)))
    without_model = replace(choice, names=None)
    roles = roles_of(names, None, without_model, source.name, has_names=source.column_names is not None)
    if choice.id is not None and roles.id is not None:
        blocks = [chunk.X[:, [roles.id]] for chunk in source.chunks(4096)]
        values = np.concatenate([_arrays.to_dense(block) for block in blocks])[:, 0]
        check_exact(values, f"{source.name}: the id")
        id_numbers = whole_numbers(values.astype(np.float64))
        source.row_ids = unique_ids(id_numbers.astype(str), source.name)
    return source if roles.bins == [*range(source.n_features)] else ChosenColumns(source, roles.bins)


def _genes(source: Source) -> Source:
    """Return only the genes of a source that says it has columns of other kinds too, such as proteins, with a note."""
    others = [kind for kind in dict.fromkeys(source.column_kinds or ()) if kind != GENES]
    if source.column_kinds is None or not others or GENES not in source.column_kinds:
        return source
    genes = [place for place, kind in enumerate(source.column_kinds) if kind == GENES]
    view = ChosenColumns(source, genes)
    note = Message(
        "{}: {:,} columns that measure no genes ({}) are left out, as scanpy does. Name the bins with {columns} to "
        "have them.",
        source.name, source.n_features - len(genes), ", ".join(others),
    )  # fmt: skip
    view.notes = (*source.notes, note)
    return view
