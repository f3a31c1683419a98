"""What reports and commands ask of a fitted model, whatever it is kept as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from chimap._types import JSON, Rows
from chimap.models.answers import ClassAnswers, RealAnswers
from chimap.models.model import Model
from chimap.models.schema import RowSchema

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


class RowScorer(Protocol):
    """What gives linear outputs f(x) of rows as they were read."""

    @property
    def n_outputs(self) -> int:
        """Number of outputs t."""
        ...

    @property
    def rows_at_once(self) -> int:
        """Rows whose features are in memory together."""
        ...

    def room(self, n_rows: int) -> np.ndarray:
        """Allocate the memory in which the outputs of up to ``n_rows`` rows are computed."""
        ...

    def scores(self, rows: Rows, first_row: int | np.ndarray, name: str, room: np.ndarray) -> np.ndarray:
        """Return f(x) (n, t) for rows as they were read; an error names the row of ``name``."""
        ...


class Predictor(RowScorer, Protocol):
    """A fitted model as reports and commands take it: a ``Model``, or the tables that one was compiled to."""

    @property
    def schema(self) -> RowSchema:
        """The rows that it takes."""
        ...

    @property
    def answers(self) -> ClassAnswers | RealAnswers:
        """From outputs to answers."""
        ...

    @property
    def exact(self) -> Model | None:
        """The model itself, or that of the tables; None for tables that were made of codes."""
        ...

    @property
    def task_names(self) -> list[str] | None:
        """The names of several tasks or targets; None for a single one."""
        ...

    @property
    def positive(self) -> object:
        """The class that is looked for, of two; None if none was named."""
        ...

    @property
    def training(self) -> JSON:
        """What the command line says of the fit; empty if it did not fit the model."""
        ...

    @property
    def histograms(self) -> BaseEstimator | None:
        """What describes images as rows."""
        ...

    @property
    def precision(self) -> str:
        """The precision of features and products."""
        ...

    @property
    def n_jobs(self) -> int | None:
        """Number of threads; None for all cores."""
        ...

    @property
    def settings(self) -> JSON:
        """The settings of the fit, with what was learned in place of instructions such as "auto"."""
        ...

    def describe(self) -> JSON:
        """Return a description of the kernel and the features."""
        ...
