"""What a score may rest on besides the counts: totals, filled bins, the group, covariates, the order of rows.

All lines are small machines of one kind, ridge with an intercept, whose outputs leave rows out in closed form:

- alone: a machine that sees nothing else. Numbers are cubic splines at their quantiles, groups and categories a column
  for each. The group is left out row by row (a group that nobody has seen tells nothing), all others with their group;
- told: the group as the label of the counts, row by row;
- left: the machine of the counts with these columns beside them, whose weights are not penalised. What is scored is the
  part of its outputs that comes from the counts, so that nothing counts that the columns could have told
  (a partially linear model; Frisch and Waugh 1933). Groups beside the counts are the kernel centred within groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.preprocessing import SplineTransformer

from chimap._errors import DataError
from chimap._formatting import counted, measure_in_words, one_line, words
from chimap._messages import Message
from chimap.data.units import TELLS
from chimap.diagnostics.audited import AuditedRows, Block, score_of_classes
from chimap.features.covariates import CovariateCode
from chimap.models.row_values import RowValues
from chimap.solvers.downdates import Downdates

if TYPE_CHECKING:
    from chimap.data import Source

_LEAST_ERROR = 0.0005  # that is told; below it, it would read as certainty
CLEAR = 2  # standard errors above chance from which a score is one
_FEW_GROUPS = 5
_KNOTS, _KNOTS_OF_ORDER = 5, 12
_FEW_VALUES = 6  # of a number, up to which each has a column of its own
_MOST_GROUPS_ALONE, _MOST_GROUPS_TOLD = 1000, 60
_FEWEST_ROWS_OF_TOLD = 4  # rows a group, on average, from which groups are told


@dataclass(frozen=True)
class ShortcutScore:
    """A line of the table.

    Parameters
    ----------
    kind : str
        "counts" for the machine itself, "alone", "told" or "left"; see the module.
    name : str
        What it is about, such as "totals".
    score : float
        Score of left-out outputs.
    error : float
        Its standard error, by group; by row where the group is what tells, or is told.
    chance : float
        The score of outputs that know nothing.
    """

    kind: str
    name: str
    score: float
    error: float
    chance: float

    @property
    def is_clear(self) -> bool:
        """Whether the score is above chance by more than two standard errors."""
        return bool(self.score - self.chance > CLEAR * self.error)

    @property
    def told(self) -> tuple[str, str]:
        """The score and its error as text; no text for an error that no part of the rows shows."""
        return f"{self.score:.3f}", f"{self.error:.3f}" if self.error >= _LEAST_ERROR else ""

    @property
    def score_in_words(self) -> str:
        """The score with its error: '0.981 ± 0.004'."""
        return " ± ".join(filter(None, self.told))

    @property
    def words(self) -> str:
        """The line in words."""
        told = {"alone": f"{self.name} alone", "told": f"{self.name}, told by the counts"}
        return told.get(self.kind, "the counts" if self.kind == "counts" else f"the counts, {self.name} taken out")


@dataclass(frozen=True, eq=False)
class Suspect:
    """What a score may rest on: columns (n, k) of the rows; groups are left out row by row."""

    name: str
    columns: np.ndarray
    is_group: bool = False


def columns_of_numbers(values: np.ndarray, knots: int = _KNOTS) -> np.ndarray:
    """Return columns (n, k) of which a sum is a smooth function of numbers (n,), or any function of a few values.

    >>> columns_of_numbers(np.array([3.0, 5.0, 3.0])).tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """
    distinct = np.unique(values)
    if distinct.size <= _FEW_VALUES:
        return np.asarray(values[:, None] == distinct, dtype=np.float64)
    places = np.unique(np.quantile(values, np.linspace(0, 1, knots)))
    if places.size < 3:
        places = np.linspace(distinct[0], distinct[-1], knots)
    return np.asarray(SplineTransformer(degree=3, knots=places[:, None]).fit_transform(values[:, None]))


def suspects(rows: AuditedRows) -> tuple[list[Suspect], list[str]]:
    """Return what the score may rest on, and why some of it cannot be judged."""
    found, notes = [], []
    for name, values in zip(("totals", "filled bins"), rows.totals_and_filled, strict=True):
        if np.ptp(values) > 1e-6 * max(np.abs(values).max(), 1e-30):
            found.append(Suspect(name, columns_of_numbers(np.log1p(np.maximum(values, 0)))))
        else:
            notes.append(f"{name}: the same in all rows")
    if rows.groups is not None:
        k = len(rows.group_names)
        if k <= _MOST_GROUPS_ALONE and 2 * k <= rows.n_rows:
            found.append(Suspect("group", (rows.groups[:, None] == np.arange(k)).astype(np.float64), True))
        else:
            notes.append(f"group: {k:,} groups of {rows.n_rows:,} rows have too few rows each to tell a label")
    if rows.covariates is not None:
        columns = []
        for name, values in zip(rows.covariates.names, rows.covariates.values, strict=True):
            try:
                columns.append(CovariateCode.of(name, values).columns(values, rows.source.name))
            except DataError as error:
                notes.append(str(error))
        if columns:
            names = ", ".join(one_line(name) for name in rows.covariates.names)
            found.append(Suspect(f"covariates ({names})", np.column_stack(columns)))
    places = rows.source.places_in_file()
    found.append(Suspect("order of rows", columns_of_numbers(places.astype(np.float64), _KNOTS_OF_ORDER)))
    return found, notes


def score_alone(rows: AuditedRows, suspect: Suspect) -> ShortcutScore:
    """Return the score of a machine that sees a suspect alone."""
    sets = None if suspect.is_group else rows.sets(np.arange(rows.n_rows))
    outputs = _or_mean(RowValues(suspect.columns, False).machine(rows.Y, None).left_out(sets), rows.Y)
    scored = rows.scored(outputs, by_row=suspect.is_group)
    return ShortcutScore("alone", suspect.name, *scored, rows.chance)


def _or_mean(outputs: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return outputs (n, t), or the mean targets where these are as close to the targets.

    Where each group has as many rows of each label, the others of its group tell a row the opposite of its label.
    """
    mean = np.broadcast_to(Y.mean(axis=0), Y.shape)
    return mean if np.square(Y - outputs).sum() >= np.square(Y - mean).sum() else outputs


def score_told(rows: AuditedRows) -> ShortcutScore | None:
    """Return how well the counts tell the group; None where groups are too many or too small."""
    k = len(rows.group_names)
    if rows.groups is None or k > _MOST_GROUPS_TOLD or rows.n_rows < _FEWEST_ROWS_OF_TOLD * k:
        return None
    names = np.arange(k)
    Y = np.where(rows.groups[:, None] == names, 1.0, -1.0)[:, -1 if k == 2 else 0 :]
    outputs = rows.by_block(lambda block: block.machine.for_targets(Y[block.rows]).left_out())
    scored = rows.scored(_or_mean(outputs, Y), score_of_classes(rows.groups, names), by_row=True)
    return ShortcutScore("told", "group", *scored, 0.5)


def score_left(rows: AuditedRows, suspect: Suspect) -> ShortcutScore:
    """Return the score of what counts tell that a suspect does not; see the module."""
    columns = suspect.columns - suspect.columns.mean(axis=0)

    def from_counts(block: Block) -> np.ndarray:
        wide = columns[block.rows] * block.values.width(columns[block.rows])
        both = block.values.beside(wide).machine(block.machine.Y, block.machine.alpha, block.machine.weights)
        return _from_counts(both, wide, None if suspect.is_group else block.sets)

    return ShortcutScore("left", suspect.name, *rows.scored(rows.by_block(from_counts)), rows.chance)


def _from_counts(machine: Downdates, wide: np.ndarray, sets: list[np.ndarray] | None) -> np.ndarray:
    """Return the part (n, t) of left-out outputs that comes from the counts, where columns (n, k) stand beside them.

    Without the rows S, the dual weights are a' = a - M_.S e_S, the columns have the weights C'a', and the outputs of
    all rows have the mean of y - alpha a' / w, of y' = y - e_S in S: what is about the rows beside is subtracted.
    """
    outputs, n = machine.left_out(sets), machine.n_rows
    residuals = machine.Y - outputs
    pulls = np.column_stack([wide, machine.alpha / machine.weights / n])  # C, and what the penalty takes off the mean
    moved, whole = machine.of_targets(pulls), pulls.T @ machine.duals
    sets = list(np.arange(n)[:, None]) if sets is None else sets
    for rows in sets:
        weights = whole - moved[rows].T @ residuals[rows]
        outputs[rows] += residuals[rows].sum(axis=0) / n + weights[-1] - wide[rows] @ weights[:-1]
    return outputs - machine.Y.mean(axis=0)


def shortcuts(rows: AuditedRows) -> tuple[tuple[ShortcutScore, ...], tuple[str, ...]]:
    """Return the lines of the table, shortcuts that are clear first, and notes on what could not be judged."""
    found, notes = suspects(rows)
    alone = [score_alone(rows, suspect) for suspect in found]
    lines = [*alone, *_told_and_left(rows, found, notes)]
    counts = ShortcutScore("counts", "counts", *rows.scored(rows.left_out), rows.chance)
    kinds = ("alone", "counts", "left", "told")
    lines = [*sorted((line for line in lines if line.kind == "alone"), key=_evidence), counts, *lines[len(alone) :]]
    return tuple(sorted(lines, key=lambda line: kinds.index(line.kind))), (*notes, *_of_few_groups(rows))


def _of_few_groups(rows: AuditedRows) -> Iterator[str]:
    """Yield notes on few groups, and on classes that no machine knows where their group is left out."""
    if rows.groups is None or rows.classes is None:
        return
    if len(rows.group_names) < _FEW_GROUPS:
        yield f"standard errors count {len(rows.group_names)} groups only, and are rough"
    alone = rows.classes[np.bincount(rows.labels_of_groups[1]) == 1]
    if alone.size:
        yield (
            f"{counted(alone.size, 'class')} with rows in one group only, such as {words(alone[0])}: without that "
            "group no machine knows it, and its rows count as wrong"
        )


def _told_and_left(rows: AuditedRows, found: list[Suspect], notes: list[str]) -> Iterator[ShortcutScore]:
    for suspect in found:
        if suspect.is_group and rows.are_nested:
            notes.append(
                "group: all rows of a group have the same label, so groups are nested in labels: nothing is left of "
                "the score within groups, and labels cannot be permuted there"
            )
        elif suspect.name != "order of rows":
            yield score_left(rows, suspect)
    if (told := score_told(rows)) is not None:
        yield told


def _evidence(line: ShortcutScore) -> float:
    """The order of the shortcuts: how many errors they are above chance, most first; one below chance is none."""
    above = line.score - line.chance
    return -above if above > CLEAR * line.error else 1.0 - above


_FEWEST_AT_FIT = 40  # rows from which a shortcut is told at a fit
_MOST_BYTES_READ = 2**25  # of a source that is read from its beginning for it
_MOST_NESTED = 20  # groups of one label each that are told to tell it
_FAR = 2 * TELLS - 1  # of the way from chance to certainty, from which a fit in Python warns of groups as of totals


def doubts_of_study(source: Source, y: np.ndarray, has_classes: bool, groups: np.ndarray) -> Iterator[Message]:
    """Yield a note where groups alone get most of the way to the labels; totals are told by ``data.units``.

    Groups of one label each, such as patients, are not meant. See ``shortcuts_at_fit``.
    """
    for line in shortcuts_at_fit(source, y, has_classes, groups, most_nested=0):
        if line.name == "group" and line.score - line.chance > _FAR * (1 - line.chance):
            yield Message("{}: labels are told by {}", source.name, shortcuts_in_words([line], has_classes))


def shortcuts_in_words(lines: Sequence[ShortcutScore], has_classes: bool) -> str:
    """Return what tells the labels besides the counts: 'totals alone 0.981 ± 0.004 (ROC AUC); see chimap audit'."""
    told = ", ".join(f"{line.words} {line.score_in_words}" for line in lines)
    return f"{told} ({measure_in_words('roc_auc' if has_classes else 'r2')}); see chimap audit"


def shortcuts_at_fit(
    source: Source, y: np.ndarray, has_classes: bool, groups: np.ndarray | None, most_nested: int = _MOST_NESTED
) -> tuple[ShortcutScore, ...]:
    """Return by what totals, filled bins or groups tell the labels of a sample by more than two errors.

    ``y`` are the labels (n,) and ``groups`` the groups (n,) of the rows, or None. It is empty for several tasks, for
    few rows, and for large sources that would have to be read from the beginning.
    """
    is_small = source.n_rows * source.row_bytes <= _MOST_BYTES_READ
    if y.ndim > 1 or y.size < _FEWEST_AT_FIT or not (is_small or source.can_seek):
        return ()
    rows = AuditedRows.sampled(source, y, has_classes, groups)
    if np.unique(rows.y).size < 2:
        return ()
    if len(rows.group_names) > most_nested and rows.are_nested:
        rows = replace(rows, groups=None)  # they are patients, whose samples have one label
    lines = [score_alone(rows, suspect) for suspect in suspects(rows)[0] if suspect.name != "order of rows"]
    return tuple(sorted((line for line in lines if line.is_clear), key=_evidence))
