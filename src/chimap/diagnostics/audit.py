"""May a score be trusted? What it may rest on besides the counts, rows that look wrong, and what groups are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from chimap._errors import DataError, InputError
from chimap._formatting import counted, measure_in_words
from chimap._messages import Message
from chimap._types import JSON, ArrayLike
from chimap.data.covariates import columns_aside, names_columns, table_of_columns, table_of_values
from chimap.data.labels import Labels, check_labels
from chimap.data.split import name_of_whole
from chimap.diagnostics.answer import Answer
from chimap.diagnostics.audited import AuditedRows
from chimap.diagnostics.doubtful_rows import DoubtfulRows, doubtful_rows
from chimap.diagnostics.group_worth import GroupWorth, group_worth
from chimap.diagnostics.shortcuts import CLEAR, ShortcutScore, shortcuts
from chimap.engines import Progress
from chimap.readers import open_source

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from chimap.data import Source
    from chimap.data.source import CovariateTable

ROWS_IN_JSON = 100


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Audit(Answer):
    """Whether the score of a model on some rows may be trusted. See ``Answer`` for the other fields.

    Parameters
    ----------
    rows : AuditedRows
        The rows, and the machine of the model on them.
    shortcuts : tuple of ShortcutScore
        What the score may rest on, the most telling first.
    doubtful : DoubtfulRows
        Rows that look wrong or decide much.
    groups : GroupWorth or None
        What groups are worth; None for fewer than three.
    """

    kind: ClassVar[str] = "audit"

    rows: AuditedRows
    shortcuts: tuple[ShortcutScore, ...]
    doubtful: DoubtfulRows
    groups: GroupWorth | None

    @property
    def title(self) -> str:
        """Title of the page."""
        return f"Audit of {self.data['model']} on {self.data['file']}"

    @property
    def measure(self) -> str:
        """The score in words."""
        return measure_in_words(self.rows.score.name)

    @property
    def sentence(self) -> str:
        """The finding that matters most."""
        first = self.shortcuts[0]
        counts = next(line for line in self.shortcuts if line.kind == "counts")
        of_counts = f"the counts have {counts.score_in_words}"
        if first.kind != "alone" or not first.is_clear:
            return f"No shortcut tells the labels: {of_counts} {self.measure}."
        return f"Labels are told by {first.words}: {self.measure} {first.score_in_words}; {of_counts}."

    def wrong_labels(self, rate: float = 0.1) -> np.ndarray:
        """Return the places in the data of rows whose labels look wrong, at this rate of false discoveries.

        Parameters
        ----------
        rate : float, default=0.1
            The expected share of right labels among them.

        Returns
        -------
        ndarray of int
            Places, the most doubtful first.
        """
        order = self.doubtful.order
        return np.asarray(self.rows.source.places_in_file()[order[self.doubtful.rates[order] <= rate]])

    def fields(self) -> JSON:
        """Return all shortcuts and groups, and the first hundred rows of each kind."""
        found, first = self.doubtful, slice(ROWS_IN_JSON)
        changed = [None] * self.rows.n_rows if found.n_changed is None else found.n_changed
        return {
            "measure": self.rows.score.name,
            "data": self.data,
            "shortcuts": [vars(line) | {"is_clear": line.is_clear} for line in self.shortcuts],
            "labels": {
                "share_wrong": found.share_wrong,
                "doubtful": [
                    self._row(row)
                    | {"looks_like": found.looks_like[row], "p_value": found.p_values[row], "rate": found.rates[row]}
                    for row in found.order[first]
                ],
            },
            "deciding": [
                self._row(row) | {"influence": found.influence[row], "answers_changed": changed[row]}
                for row in found.deciding[first]
            ],
            "copies": [
                self._row(row) | {"other": self._row(other), "distance": distance}
                for row, other, distance in found.copies[first]
            ],
            "groups": self.groups and vars(self.groups),
            "notes": self.notes,
            "versions": self.versions,
        }

    def _row(self, row: int) -> JSON:
        place = self.rows.source.places_in_file()[row]
        return {"row": place, "name": self.rows.names[row], "label": self.rows.y[row]}


def audit(
    model: BaseEstimator,
    X: object,
    y: Labels = None,
    *,
    groups: ArrayLike | str | None = None,
    covariates: object = None,
    progress: Progress | None = None,
) -> Audit:
    """Ask whether the score of a model may be trusted: shortcuts, rows that look wrong, and what groups are worth.

    The machine of the model, with its kernel and strength, is solved once more on the rows by one factor, and all
    answers leave rows or groups out of it by downdates: nothing is learned twice. Rows beyond 6000 are audited in
    blocks, each of which is a machine of its own rows.

    Parameters
    ----------
    model : estimator
        A fitted ``HistogramClassifier`` or ``HistogramRegressor`` of one task.
    X : array, sparse matrix, data frame, path or Source of n rows
        The rows, best those that the model was fitted on: everything that ``open_source`` takes.
    y : array of shape (n,), str or None, default=None
        Labels or targets, or the name of the column that has them; None for those that the rows bring with them.
    groups : array of shape (n,), str or None, default=None
        The group of each row, such as its study, batch or donor, or the name of their column. Rows are left out with
        their group, and standard errors count groups.
    covariates : array, data frame or mapping of n rows, str, sequence of str, or None, default=None
        Values of covariates, or names of their columns; by default those of the rows.
    progress : Progress or None, default=None
        Receives the stages.

    Returns
    -------
    Audit

    Raises
    ------
    DataError
        If there are no labels, a single class, a single group, several tasks, or too few rows.
    InputError
        If the model is none of these estimators.

    Examples
    --------
    >>> from chimap import HistogramClassifier
    >>> rng = np.random.default_rng(0)
    >>> sick = np.arange(120) % 2 == 1
    >>> counts = rng.poisson(np.where(sick, 4.0, 2.0)[:, None] * rng.gamma(2.0, size=20), (120, 20))  # twice as deep
    >>> model = HistogramClassifier("chi2", normalize="l1", alpha=1.0, random_state=0).fit(counts, sick)
    >>> found = audit(model, counts, sick)
    >>> found.shortcuts[0].name, bool(found.shortcuts[0].score > 0.9)
    ('totals', True)
    """
    exact = getattr(model, "exact_", None)
    if exact is None or not hasattr(exact, "predict_chunks"):
        raise InputError(
            f"an audit takes a fitted HistogramClassifier or HistogramRegressor; got a {type(model).__name__}. Audit "
            "the model that it was made from."
        )
    source = open_source(X, y, like=model, with_labels=True, aside=_aside(groups, covariates))
    if not source.has_labels:
        raise DataError(Message("{} has no labels to judge a score by; name them with {labels}.", source.name))
    members = _groups(source, groups)
    progress = progress or Progress()
    with progress:
        progress.stage("audit", 4, "questions")
        rows = AuditedRows.of(exact.fitted, source, members, _covariates(source, covariates))
        progress.advance()
        lines, notes = shortcuts(rows)
        progress.advance()
        doubtful = doubtful_rows(rows)
        progress.advance()
        worth = group_worth(rows)
        progress.advance()
    about = exact.fitted.describe()
    data = {
        "file": name_of_whole(source.name),
        "rows": rows.n_rows,
        "bins": source.n_features,
        "groups": len(rows.group_names) or None,
        "covariates": None if rows.covariates is None else ", ".join(rows.covariates.names),
        "model": f"{type(exact).__name__} ({about['kernel']})",
        "machine": _machine(rows),
    }
    kept = {name: value for name, value in data.items() if value is not None}
    return Audit(
        rows=rows,
        shortcuts=lines,
        doubtful=doubtful,
        groups=worth,
        data=kept,
        settings={"standard errors of a clear shortcut": CLEAR},
        notes=notes,
    )


def _aside(groups: ArrayLike | str | None, covariates: object) -> Sequence[str]:
    """Return the columns of the data that are no bins."""
    named = columns_aside(covariates) if names_columns(covariates) else []
    return [*named, *([groups] if isinstance(groups, str) and "::" not in groups else [])]


def _groups(source: Source, groups: ArrayLike | str | None) -> np.ndarray | None:
    """Return the groups of the rows (n,)."""
    if groups is None:
        return None
    found = check_labels(source.column(groups) if isinstance(groups, str) else groups, source.n_rows, "groups")
    if np.unique(found).size < 2:
        raise DataError(
            Message(
                "{}: all rows are of one group, {}, so none can be left out. Give another {groups}, or none.",
                source.name,
                found[0],
            )
        )
    return found


def _covariates(source: Source, covariates: object) -> CovariateTable | None:
    if covariates is None:
        return source.covariates
    if names_columns(covariates):
        return table_of_columns(source, covariates)
    table = table_of_values(covariates, source.n_rows + source.n_left_out)
    return table if table.n_rows == source.n_rows else table.take(source.places_in_file())


def _machine(rows: AuditedRows) -> str:
    """Return which machine was asked, in words."""
    n_blocks = len(rows.blocks)
    if n_blocks > 1:
        return (
            f"ridge with the kernel of the model, on {counted(n_blocks, 'block')} of about "
            f"{rows.blocks[0].rows.size:,} rows, each by itself"
        )
    return "that of the model" if rows.is_own else "ridge with the kernel of the model, on these rows"
