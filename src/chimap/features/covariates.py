"""Covariates as columns whose dot products are a kernel of them: what stands beside the counts of a row in a model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message, shown
from chimap._types import JSON
from chimap._validation import DataError
from chimap.data.covariates import Widened
from chimap.data.doubts import say
from chimap.data.label_kinds import is_text, texts_of
from chimap.data.source import CovariateTable, Source
from chimap.data.table import instead
from chimap.features.additive.identity import IdentityMap
from chimap.features.landmarks.nystroem import NystroemFeatures
from chimap.kernels import Gaussian
from chimap.model_files import register

MOST_LEVELS = 100  # of a category; more are names of the rows
_LANDMARKS = 128  # of the gaussian kernel: of so few columns, it is exact but for rounding
_SHARE_OF_NAMES = 0.5  # of rows with a level of their own, from which a category names the rows
_SHOWN = 3  # unknown levels that a note lists


@dataclass(frozen=True, eq=False)
class CovariateCode:
    """How a covariate becomes columns, as learned from the rows of a fit.

    A number x is (x - mean) / deviation, and 0 where it is missing. A category is a column of 0 and 1 for each level;
    an unknown level is 0 in all of them. A further column of 0 and 1 says where a value is missing, if one was.

    Parameters
    ----------
    name : str
        The covariate.
    mean, deviation : float
        Of the numbers of the fit; 0 and 1 for a category.
    levels : sequence of str
        The levels of a category; empty for numbers.
    has_gaps : bool
        Whether a value was missing.
    """

    name: str
    mean: float
    deviation: float
    levels: Sequence[str]
    has_gaps: bool

    @classmethod
    def of(cls, name: str, values: np.ma.MaskedArray) -> CovariateCode:
        """Return the code of the values of a covariate. Raises DataError for a category with a level for each row."""
        known, has_gaps = values.compressed(), bool(np.ma.is_masked(values))
        if not is_text(known):
            deviation = float(known.std())
            return cls(name, float(known.mean()), deviation if deviation > 0 else 1.0, (), has_gaps)
        levels, counts = np.unique(known, return_counts=True)
        if levels.size > MOST_LEVELS or (counts == 1).sum() > max(2, _SHARE_OF_NAMES * known.size):
            raise DataError(
                Message(
                    "{covariates}, {!r}: {:,} levels in {:,} rows, {:,} of them in one row only, such as {!r}. "
                    "Names of rows say nothing of other rows: leave it out, or join rare levels.",
                    name,
                    levels.size,
                    known.size,
                    (counts == 1).sum(),
                    str(levels[0]),
                )
            )
        return cls(name, 0.0, 1.0, tuple(levels.tolist()), has_gaps)

    @property
    def column_names(self) -> list[str]:
        """Names of its columns."""
        own = [f"{self.name}={level}" for level in self.levels] if self.levels else [self.name]
        return [*own, f"{self.name} missing"] if self.has_gaps else own

    def columns(self, values: np.ma.MaskedArray, where: str) -> np.ndarray:
        """Return its columns (n, k), float64, for values of new rows. Raises DataError for text among numbers."""
        missing, data = np.ma.getmaskarray(values), np.ma.getdata(values)
        if not self.levels:
            if is_text(data):
                row = int(np.flatnonzero(~missing)[0])
                raise DataError(
                    Message(
                        "{}: {!r} was a number in the rows of the fit, but row {} has {!r}.",
                        where,
                        self.name,
                        row,
                        str(data[row]),
                    )
                )
            own = np.where(missing, 0.0, (data - self.mean) / self.deviation)[:, None]
        else:
            texts = texts_of(data)
            own = (texts[:, None] == np.array(self.levels)) & ~missing[:, None]
            unknown = np.unique(texts[~own.any(axis=1) & ~missing])
            if unknown.size:
                listed = ", ".join(map(repr, unknown[:_SHOWN].tolist())) + (", ..." if unknown.size > _SHOWN else "")
                say([f"{where}: {self.name!r} has levels that the model has not seen ({listed}): they say nothing."])
        return np.column_stack([own, missing]).astype(float) if self.has_gaps else own.astype(float)


@dataclass(frozen=True, eq=False)
class Covariates:
    """Columns whose dot products are weight times a kernel of covariates, as a model has them beside its bins.

    Parameters
    ----------
    codes : sequence of CovariateCode
        How each covariate becomes columns.
    kernel : {"linear", "gaussian"}
        The kernel of these columns.
    weight : float
        Its weight beside the kernel of the counts.
    features : IdentityMap or NystroemFeatures
        Fitted features of the kernel.
    scores : dict of str to float
        Scores of left-out rows by "counts" alone, "covariates" alone and "both", and the standard errors of what either
        adds to the other: "counts add", "error of counts add", "covariates add", "error of covariates add".
    measure : str
        What the scores are.
    n_scored : int
        Number of rows that were left out in turn.
    words : sequence of str, default=()
        The words that named columns of the data, such as "meta.tsv::C(batch)"; empty where values were given.
    """

    codes: Sequence[CovariateCode]
    kernel: str
    weight: float
    features: IdentityMap | NystroemFeatures
    scores: dict[str, float]
    measure: str
    n_scored: int
    words: Sequence[str] = ()

    @classmethod
    def fitted(cls, table: CovariateTable, kernel: str, weight: float = 1.0) -> Covariates:
        """Return the columns of covariates, fitted on a table of them."""
        codes = codes_of(table)
        unit = _unit(codes, table, "covariates")
        features: IdentityMap | NystroemFeatures = IdentityMap()
        if kernel == "gaussian":
            distinct = np.unique(unit, axis=0).shape[0]
            features = NystroemFeatures(Gaussian(), min(_LANDMARKS, distinct), random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # fewer landmarks than asked for are all that there are
            features.fit(unit)
        return cls(codes, kernel, weight, features, {}, "", 0, table.words)

    @property
    def names(self) -> list[str]:
        """Names of the covariates."""
        return [code.name for code in self.codes]

    @property
    def n_columns(self) -> int:
        """Number of columns that stand behind the bins; none of weight 0."""
        return self.features._n_features_out if self.weight else 0

    @property
    def column_names(self) -> list[str]:
        """Names of these columns."""
        if self.kernel == "linear":
            return [name for code in self.codes for name in code.column_names][: self.n_columns]
        return [f"{', '.join(self.names)} ({j})" for j in range(self.n_columns)]

    def columns(self, table: CovariateTable, where: str) -> np.ndarray:
        """Return the columns (n, k), float64, of covariates of new rows, which are found by their names."""
        return np.sqrt(self.weight) * self.features.transform(_unit(self.codes, table, where))

    def widened(self, source: Source) -> Source:
        """Return a source with these columns behind its bins; unchanged for weight 0.

        Raises DataError where the source has no covariates, or lacks one.
        """
        if not self.weight:
            return source
        if source.covariates is None:
            raise DataError(
                Message(
                    "{}: the model takes {} besides the bins, and the rows have none. Give a data frame or a file "
                    "with these columns, or chimap.with_covariates(X, values).",
                    source.name,
                    ", ".join(map(repr, self.names)),
                )
            )
        return Widened(source, self.columns(source.covariates, source.name), self.column_names)

    def describe(self) -> JSON:
        """Return what the covariates are and what they add, as JSON types."""
        return {
            "names": self.names,
            "kernel": self.kernel,
            "weight": self.weight,
            "columns": self.n_columns,
            "measure": self.measure,
            "rows": self.n_scored,
            **self.scores,
        }


def check_takes_bins_only(covariates: Covariates | None, what: str) -> None:
    """Raise ValueError for covariates that a model takes besides the bins, which ``what`` does not hold."""
    if covariates is not None:
        raise InputError(
            Message(
                "the model takes {} besides the bins, and {} holds bins only: save the model and predict with chimap, "
                "or fit it without {covariates}.",
                ", ".join(map(repr, covariates.names)),
                what,
            )
        )


def codes_of(table: CovariateTable) -> tuple[CovariateCode, ...]:
    """Return the codes of covariates, without those that are the same in all rows, of which a warning tells.

    Raises DataError if none is left.
    """
    codes, constant = [], []
    for name, values in zip(table.names, table.values, strict=True):
        known = values.compressed()
        if not known.size:
            raise DataError(Message("{covariates}, {!r}: all values are missing. Leave it out, or name another.", name))
        if not np.ma.is_masked(values) and (known == known[0]).all():
            constant.append(name)
        else:
            codes.append(CovariateCode.of(name, values))
    if not codes:
        raise DataError(
            Message("{covariates}: all rows have the same {}. Name others, or none.", " and ".join(map(repr, constant)))
        )
    if constant:
        say([f"covariates: all rows have the same {' and '.join(map(repr, constant))}, which is left out."])
    return tuple(codes)


def _unit(codes: Sequence[CovariateCode], table: CovariateTable, where: str) -> np.ndarray:
    values = dict(zip(table.names, table.values, strict=True))
    missing = [code.name for code in codes if code.name not in values]
    if missing:
        there = instead(missing[0], table.names, f"there are {shown(table.names)}")
        raise DataError(Message("{}: no covariate {!r}, which the model takes{}.", where, missing[0], there))
    return np.column_stack([code.columns(values[code.name], where) for code in codes])


register(CovariateCode, Covariates)
