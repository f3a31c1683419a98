"""The rows and labels that users pass, in any kind of object: to fit, in batches, to score and to predict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from chimap import _arrays
from chimap._catalogue import at_address
from chimap._errors import InputError
from chimap._formatting import kernel_in_words, measure_in_words
from chimap._frames import is_frame, names_of
from chimap._messages import Message
from chimap._types import JSON, ArrayLike, MatrixLike
from chimap._unicode import composed_texts
from chimap._validation import DataError, validated
from chimap.data import ArraySource, Source
from chimap.data.covariates import (
    beside,
    columns_aside,
    covariate_names,
    names_columns,
    table_of_columns,
    table_of_values,
)
from chimap.data.doubts import doubts_at_fit, doubts_of_groups, first_look, say
from chimap.data.frames import FrameSource, frame_rows
from chimap.data.label_kinds import as_array, is_text, order_of
from chimap.data.labelled import note_on_unread, notes_on_spellings, with_numbers, without_unlabelled
from chimap.data.labels import plain_labels
from chimap.data.overlap import TrainingMass
from chimap.data.reading import check_rows_order, opener_of, readers
from chimap.data.table import ColumnChoice, check_order
from chimap.data.units import Units
from chimap.data.views import ChosenRows
from chimap.models.model import Model
from chimap.models.schema import RowSchema, units_of
from chimap.recipe import Recipe
from chimap.recipe.codecs import Codec, checked_batch, is_matrix
from chimap.recipe.weights import checked_sample_weight, counts_in, with_weights

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


_LOOK_SHARE = 1 / 32  # of the memory of a fit, for rows that are looked at first, and for what is made of them


def source_to_fit(
    source: Source, recipe: Recipe, sample_weight: ArrayLike | None, groups: ArrayLike | str | None
) -> tuple[Source, ArrayLike | None]:
    """Return the labelled rows of a source, with weights and with targets of the kind that is learned; and the groups.

    Raise DataError if there are no labels, if weights are invalid, or if weights or groups are in another order.
    """
    if not source.has_labels:
        raise DataError(Message("{} has no labels; name them where the data are opened, with {labels}.", source.name))
    if source.row_ids is not None:
        for argument, values in {"sample_weight": sample_weight, "groups": groups}.items():
            check_order(source.row_ids, values, source.name, "source.row_ids", argument)
    weights = source.weights if sample_weight is None else sample_weight
    if weights is not None:
        weights = checked_sample_weight(weights, source.n_rows)
        source = with_weights(source, weights, counts_in(recipe.weights, weights))
    if isinstance(groups, str):
        groups = source.column(groups)
    if groups is not None and is_text(names := as_array(groups)):
        say(notes_on_spellings(source.name, Counter(map(str, names.tolist())), "groups"))
    told, source = source.notes, without_unlabelled(source)
    say(note for note in source.notes if note not in told)
    return source if recipe.is_classifier else with_numbers(source), groups


def say_of_study(source: Source, model: Model, groups: ArrayLike | None) -> None:
    """Warn where the groups of the rows of a fit with a race get most of the way to the labels.

    Where all settings are given, the question would take as long as the fit.
    """
    if model.learned.race is None or groups is None:
        return
    rows = without_unlabelled(source)
    y = (rows if model.recipe.is_classifier else with_numbers(rows)).labels()
    doubts = cast("Callable[..., Iterator[Message]]", at_address("chimap.diagnostics.shortcuts:doubts_of_study"))
    say(doubts(rows, y, model.recipe.is_classifier, as_array(groups)), stacklevel=4)


def with_columns_beside(source: Source, covariates: str | Sequence[str], groups: ArrayLike | str | None) -> Source:
    """Return the source with the columns that covariates name, if it has none yet.

    Raise DataError if one of them holds the groups of the rows.
    """
    if isinstance(groups, str) and groups in columns_aside(covariates):
        raise DataError(Message("{covariates} names {!r}, the groups of the rows: leave it out.", groups))
    if source.covariates is not None:
        return source
    return beside(source, table_of_columns(source, covariates))


def units_and_mass(source: Source, recipe: Recipe, has_groups: bool) -> tuple[Units | None, TrainingMass | None]:
    """Say what looks doubtful about some rows; return their units and mass, None where the fit will refuse the source.

    The rows take a share of the memory, and are let go before the fit.
    """
    if source.held_bytes >= recipe.most_memory:
        return None, None
    rows, y = first_look(source, _LOOK_SHARE * recipe.budget)
    say(doubts_at_fit(source, rows, y, recipe.normalize, recipe.is_classifier))
    if not has_groups:
        say(doubts_of_groups(source, rows))
    return units_of(rows, y if recipe.is_classifier else None, source.other_names)


def score_in_words(model: Model) -> str:
    """Return the score of a model on held-out rows, as its fit knows it."""
    raced, selection = model.learned.race, model.learned.selection
    if raced is not None:
        return f"the machine: {measure_in_words(raced.measure)} {raced.trials[0].score:.3f} in its race"
    return "the machine: not scored" if selection is None else f"the machine: {selection.describe()}"


def fit_in_words(model: Model) -> str:
    """Return what a model is, its score on left-out rows, and of how many rows it is."""
    race, normalization = model.learned.race, model.normalization
    if race is not None:
        told = race.sentence
    else:
        about, rows = model.describe(), "rows as they are" if normalization is None else f"{normalization.name} rows"
        kernel = kernel_in_words(about["kernel"], about["gamma"])
        told = f"{kernel}, {rows}; {score_in_words(model).removeprefix('the machine: ')}"
    return f"{told}; fitted on {model.learned.n_rows:,} rows"


def source_of(model: BaseEstimator, X: MatrixLike, y: ArrayLike, y_checks: JSON, **others: object) -> Source:
    """Return a source of rows X and labels y, with names of columns and tasks if the objects have them.

    Arrays are checked as scikit-learn checks them, by ``validated`` with ``y_checks``; nothing is written on the
    model. An array of several tasks may have missing entries. ``others`` are further values of the rows, by the name of
    their argument, which must be in the order of the rows too.
    """
    if _arrays.is_nameless(X):
        return _source_of_array(model, X, plain_labels(y, X), y_checks, order_of(y))
    check_rows_order(X, y=y, **others)
    if readers().task_words(X, y) is not None:
        return readers().open_source(X, y)
    if (opener := opener_of(X)) is not None:
        source: Source = opener(X, y, ColumnChoice())
        return source
    if isinstance(y, str) and is_frame(X):
        return FrameSource(X, y)
    return _source_of_array(model, *frame_rows(X, y), y_checks, order_of(y))


def _source_of_array(
    model: BaseEstimator, X: MatrixLike, y: ArrayLike, y_checks: JSON, order: tuple[object, ...] | None = None
) -> ArraySource:
    names = tuple(map(str, names_of(y))) if is_matrix(y) and is_frame(y) else None
    unfitted = type(model)(**model.get_params(deep=False))  # scikit-learn writes the columns of the rows on it
    if is_matrix(y):
        X = validated(unfitted, X)
    else:
        X, y = validated(unfitted, X, y, **y_checks)
    source = ArraySource(X, y, column_names=getattr(unfitted, "feature_names_in_", None))
    source.task_names, source.label_order = names, order
    return source


def source_with_covariates(
    model: BaseEstimator, X: MatrixLike, y: ArrayLike, y_checks: JSON, **others: object
) -> Source:
    """Return a source of rows X and labels y with the covariates of the model: columns of X, or values of their own."""
    covariates = model.covariates
    if not names_columns(covariates):
        source = source_of(model, X, y, y_checks, **others)
        return beside(source, table_of_values(covariates, source.n_rows + source.n_left_out))
    if not is_frame(X) and opener_of(X) is None:
        raise DataError(
            Message(
                "{covariates=} names columns, and X is an array, whose columns have no names: give a data frame, or "
                "the values as {covariates}.",
                covariates,
            )
        )
    if isinstance(y, str) and y in columns_aside(covariates):
        raise DataError(Message("{covariates} names {!r}, the labels: leave it out.", y))
    check_rows_order(X, y=y, **others)
    source = readers().open_source(X, y, aside=columns_aside(covariates))
    return beside(source, table_of_columns(source, covariate_names(covariates)))


def labelled_rows(
    model: BaseEstimator, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[MatrixLike, ArrayLike, ArrayLike | None]:
    """Return rows, labels and weights; where y names columns of X, they are read, and rows without a label left out.

    Rows whose record cannot be read, such as SMILES that RDKit refuses, are left out too, with a warning.

    Raises DataError where X has no named columns, or the model takes arrays only.
    """
    if not isinstance(y, str) and readers().task_words(X, y) is None:
        given = model.schema.source_of(X) if hasattr(model, "predict_chunks") else None  # others take arrays
        if given is None or not given.unread or np.shape(y)[:1] != (given.n_rows,):
            return X if given is None else cast("MatrixLike", given), y, sample_weight
        say([f"{note_on_unread(given)}. They are left out."])
        rows = np.setdiff1d(np.arange(given.n_rows), [*given.unread])
        weights = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return cast("MatrixLike", ChosenRows(given, rows, None)), np.asarray(y)[rows], weights
    if not hasattr(model, "predict_chunks"):
        raise DataError(
            f"y={y!r} names a column of the rows; {type(model).__name__} takes labels as an array (n,): give the "
            "values of the column."
        )
    if not is_frame(X) and opener_of(X) is None:
        frame_rows(X, y)
    source = readers().open_source(X, y, like=model)
    labels = source.labels()
    assert labels is not None  # they are named
    weights = None if sample_weight is None else np.asarray(sample_weight)[source.places_in_file()]
    return cast("MatrixLike", source), labels, weights


def checked_labels(
    y: ArrayLike, classes: ArrayLike | None, known: np.ndarray | None, codec: Codec | None
) -> tuple[ArrayLike, ArrayLike | None]:
    """Return the checked labels of a batch, and all labels for the codec to learn from, or None after the first batch.

    Parameters
    ----------
    y : array of shape (n,) or (n, t)
        Labels of the batch.
    classes : array of shape (classes,) or None
        All classes, as given with the batch.
    known : array of shape (classes,) or None
        The classes that the model knows from earlier rows.
    codec : Codec or None
        That of the earlier batches; None for the first batch.

    Raises
    ------
    ValueError
        If the classes are missing with the first batch, or differ from those of it, or are given for several tasks.
    """
    y = checked_batch(y, codec)
    if is_matrix(y):
        if classes is not None:
            raise InputError("classes are for a single task: labels of several tasks are 0 and 1. Leave classes out.")
        return y, y if codec is None else None
    if codec is None:
        classes = known if classes is None else classes
        if classes is None:
            raise InputError("classes must be given at the first call of partial_fit: all labels that will ever occur.")
        return y, classes
    if classes is not None and not np.array_equal(
        np.unique(composed_texts(np.asarray(classes))), np.unique(np.asarray(known))
    ):
        raise InputError(f"classes={classes!r} differs from those of the first call, {known!r}.")
    return y, None


def source_of_batch(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    y_checks: JSON,
    schema: RowSchema | None,
) -> Source:
    """Return a source of the rows and labels of a batch, with their weights.

    They are checked as scikit-learn checks them, by ``validated`` with ``y_checks``. ``schema`` is that of the first
    batch; None for this one.
    """
    check_rows_order(X, y=y, sample_weight=sample_weight)
    source: Source
    if (opener := opener_of(X)) is not None:
        source = opener(X, y, ColumnChoice() if schema is None else schema.chosen())
        source = source if schema is None else schema.rows(source)
    elif schema is None:
        source = _source_of_array(model, X, y, y_checks)
    else:
        if is_matrix(y):
            X = validated(model, X, reset=False)
        else:
            X, y = validated(model, X, y, reset=False, **y_checks)
        source = ArraySource(X, y)
    if sample_weight is not None:
        weights = checked_sample_weight(sample_weight, source.n_rows)
        source = with_weights(source, weights, counts_in(model.weights, weights))
    return without_unlabelled(source) if is_matrix(y) else source
