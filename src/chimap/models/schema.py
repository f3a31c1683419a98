"""What rows a fitted model takes: its columns, how other data become rows, and what the rows of the fit were like."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self, cast

import numpy as np

from chimap._errors import InputError
from chimap._frames import is_frame, names_of
from chimap._types import JSON, MatrixLike, Rows
from chimap._unicode import composed_names
from chimap._validation import DataError
from chimap.data import ArraySource, Source, matched
from chimap.data.clade_sums import are_sums, summed_as
from chimap.data.clades import ALL_RANKS
from chimap.data.covariates import beside, table_of_columns
from chimap.data.doubts import first_look, say
from chimap.data.labels import IGNORE_LABELS
from chimap.data.overlap import TrainingMass
from chimap.data.reading import opener_of, readers
from chimap.data.table import LABEL_NAMES, ColumnChoice
from chimap.data.units import RowTraits, Units

if TYPE_CHECKING:
    from chimap.data.reading import Reading
    from chimap.features.covariates import Covariates
    from chimap.normalizations import Normalization

ATTRIBUTES = {
    "n_features_in_": "n_features",
    "feature_names_in_": "names",
    "first_column_": "first_column",
    "reading_": "reading",
    "units_": "units",
    "mass_": "mass",
}
"""The attributes by which estimators show a schema, and files hold it, with its fields."""


@dataclass(frozen=True, eq=False)
class RowSchema:
    """The rows of a fit, as new rows have to be.

    Parameters
    ----------
    owner : str
        Class of the estimator, for errors.
    n_features : int
        Number of bins.
    names : tuple of str or None, default=None
        Names of the bins.
    first_column : int or None, default=None
        Number of the first column in svmlight text, see ``Source.first_column``.
    reading : Reading or None, default=None
        How texts, molecules or named counts become rows.
    units : Units or None, default=None
        What the rows were like; None where it does not matter.
    mass : TrainingMass or None, default=None
        What the bins held of these rows.
    covariates : Covariates or None, default=None
        What the model takes besides the bins; their columns stand behind these.
    unused : tuple of str, default=()
        Covariates of the fit that the model does not take, as they add nothing: data frames may have them.
    """

    owner: str
    n_features: int
    names: tuple[str, ...] | None = None
    first_column: int | None = None
    reading: Reading | None = None
    units: Units | None = None
    mass: TrainingMass | None = None
    covariates: Covariates | None = None
    unused: tuple[str, ...] = ()

    @classmethod
    def of(cls, owner: str, source: Source, units: Units | None = None, mass: TrainingMass | None = None) -> Self:
        """Return the schema of the rows that a model is fitted on."""
        names = None if source.column_names is None else composed_names(source.column_names)
        return cls(owner, source.n_features, names, source.first_column, source.reading, units, mass)

    @classmethod
    def of_attributes(cls, owner: str, attributes: JSON) -> Self:
        """Return the schema that an estimator shows by ``ATTRIBUTES``."""
        found = {name: attributes[shown] for shown, name in ATTRIBUTES.items() if shown in attributes}
        if found.get("names") is not None:
            found["names"] = composed_names(found["names"])
        if found.get("first_column") is None:  # older model files keep it with the description of the training
            zero_based = (attributes.get("training_") or {}).get("zero_based")
            found["first_column"] = None if zero_based is None else int(not zero_based)
        return cls(owner, **found)

    @cached_property
    def attributes(self) -> JSON:
        """The schema as attributes, by their names; the names of the bins are missing where there are none."""
        shown = {attribute: getattr(self, name) for attribute, name in ATTRIBUTES.items()}
        if self.names is None:
            del shown["feature_names_in_"]
        else:
            shown["feature_names_in_"] = np.array(self.names, dtype=object)
        return shown

    def finished(self, normalization: Normalization | None, covariates: Covariates | None) -> Self:
        """Return the schema with what a fit has chosen.

        Where the normalisation ignores the totals of rows, it does not matter what they were. Covariates of weight 0
        are not needed.
        """
        units = self.units
        if units is not None and normalization is not None and normalization.ignores_totals:
            units = replace(units, totals=None)
        if covariates is None or covariates.n_columns > 0:
            return replace(self, units=units, covariates=covariates, unused=())
        return replace(self, units=units, covariates=None, unused=tuple(covariates.names))

    @property
    def n_columns(self) -> int:
        """Number of bins, and of columns of covariates behind them."""
        return self.n_features + (0 if self.covariates is None else self.covariates.n_columns)

    @cached_property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the bins, and of the columns of covariates behind them; None for bins without names alone."""
        if self.covariates is None:
            return self.names
        names = self.names or tuple(f"bin {place}" for place in range(self.n_features))
        return (*names, *self.covariates.column_names)

    @cached_property
    def shares(self) -> np.ndarray:
        """The share of each bin in the mass of the rows of the fit, (n_features,); zeros where it is not known."""
        return np.zeros(self.n_features, np.float32) if self.mass is None else self.mass.shares

    def chosen(self, choice: ColumnChoice | None = None) -> ColumnChoice:
        """Return a choice of columns, none by default, with these columns, or the leaves that they are sums of."""
        choice = choice or ColumnChoice()
        of_leaves = are_sums(self.names)
        return replace(
            choice,
            names=None if of_leaves else self.names,
            rank=ALL_RANKS if of_leaves else choice.rank,
            other_names=None if self.mass is None else self.mass.other_names,
            width=self.n_features,
            first_column=self.first_column,
        )

    def source_of(self, X: MatrixLike | Source) -> Source | None:
        """Return rows of any kind as a source; None for an array or data frame of bins."""
        if isinstance(X, Source):
            return X
        if self.covariates is not None:
            return readers().open_source(X, like=self, aside=self.covariates.names)
        if self.unused and is_frame(X) and not {*self.unused}.isdisjoint(names_of(X)):
            return readers().open_source(X, like=self, aside=[name for name in self.unused if name in names_of(X)])
        if self.reading is not None and (source := self.reading.source_of(X)) is not None:
            return source
        opener = opener_of(X)
        aside = tuple(name for name in LABEL_NAMES if name not in (self.names or ()))
        return None if opener is None else opener(X, IGNORE_LABELS, replace(self.chosen(), aside=aside))

    def matched(self, source: Source, missing_columns: str | None = None) -> Source:
        """Return a source with the bins of the fit, in their order, summed over clades as they were."""
        summed = summed_as(source, self.names)
        return matched(summed, self.names, self.n_features, self.owner, self.mass, missing_columns)

    def rows(self, X: MatrixLike | Source) -> Source:
        """Return rows of any kind with the columns of the fit, in their order, and covariates; see ``data.matched``.

        Raise DataError if columns are missing, or were counted from another number.
        """
        opened = X if isinstance(X, Source) else self.source_of(X)
        source = ArraySource(cast("MatrixLike", X), name="X") if opened is None else opened
        first = self.first_column
        if None not in (first, source.first_column) and first != source.first_column:
            raise DataError(
                f"{source.name}: its columns were counted from {source.first_column}, but those of the model from "
                f"{first}. Open it with open_source(path, like=model)."
            )
        view = self.matched(source)
        say(view.notes[len(source.notes) :])
        covariates = self.covariates
        if covariates is None:
            return view
        if view.covariates is None and view.read_column is not None:
            view = beside(view, table_of_columns(view, covariates.words or covariates.names))
        return covariates.widened(view)

    def doubts(self, source: Source) -> list[str]:
        """Return how some rows of a source are unlike those of the fit."""
        if self.units is None:
            return []
        return [*self.units.doubts(RowTraits.of(first_look(self.rows(source))[0], self.shares), source.name)]


def units_of(
    rows: Rows, y: np.ndarray | None, other_names: tuple[str, ...] | None = None
) -> tuple[Units, TrainingMass]:
    """Return what rows of a fit are like, with classes y if they have any, and what their bins hold."""
    mass = TrainingMass.of(rows, other_names)
    return Units.of(RowTraits.of(rows, mass.shares), y), mass


def schema_of(fitted: object) -> RowSchema | None:
    """Return the schema of a model or fitted estimator; None for what was fitted on no columns, and for None."""
    if isinstance(fitted, RowSchema):
        return fitted
    schema: RowSchema | None = getattr(fitted, "schema", None)
    if schema is not None or not hasattr(fitted, "n_features_in_"):
        return schema
    shown = (*ATTRIBUTES, "training_")
    return RowSchema.of_attributes(
        type(fitted).__name__, {name: getattr(fitted, name) for name in shown if hasattr(fitted, name)}
    )


def check_source(source: Source) -> None:
    """Raise ValueError for rows that are no source, such as arrays."""
    if not isinstance(source, Source):
        raise InputError(
            f"expected a source of rows, such as chimap.open_source('rows.csv', labels='site'); got "
            f"{type(source).__name__}. Pass arrays and data frames to fit and predict, or open them by "
            "chimap.open_source."
        )
