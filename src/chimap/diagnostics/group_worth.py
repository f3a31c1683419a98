"""What each group is worth to the others: scores of left-out groups with and without it, by downdates of one factor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap.diagnostics.audited import AuditedRows, Block
from chimap.selection.scoring import HeldOutScore, OutputScore

MOST_GROUPS = 60  # that leave in turn, the largest ones


@dataclass(frozen=True, eq=False)
class GroupWorth:
    """What groups are worth.

    Parameters
    ----------
    names : tuple of str
        Names of the k groups that leave in turn.
    n_rows : ndarray of shape (k,)
        Rows of each.
    measure : str
        Name of the score; greater is better.
    own : ndarray of shape (k,)
        Score on each group of the machine of all others; NaN where it is not defined.
    worth : ndarray of shape (k,)
        How much higher the score on all other groups is with this group than without it, each row left out with its
        group.
    errors : ndarray of shape (k,)
        Its standard errors, by group.
    helps : ndarray of shape (k, k)
        How much higher the score on group j is with group i; NaN where i is j, and where it is not defined.
    """

    names: tuple[str, ...]
    n_rows: np.ndarray
    measure: str
    own: np.ndarray
    worth: np.ndarray
    errors: np.ndarray
    helps: np.ndarray


def group_worth(rows: AuditedRows) -> GroupWorth | None:
    """Return what each group is worth; None without groups, and for two, of which neither has others to help."""
    if rows.groups is None or len(rows.group_names) < 3:
        return None
    counts = np.bincount(rows.groups)
    chosen = np.sort(np.argsort(-counts, kind="stable")[:MOST_GROUPS])
    members, score = [np.flatnonzero(rows.groups == g) for g in range(counts.size)], _score(rows)
    own = np.array([_defined(score, rows.left_out, members[g]) for g in chosen])
    helps, worth, errors = np.full((chosen.size, chosen.size), np.nan), np.empty(chosen.size), np.empty(chosen.size)
    for i, g in enumerate(chosen.tolist()):
        without = _left_out_without(rows, g)
        others = np.flatnonzero(rows.groups != g)
        _, parts = np.unique(rows.parts[others], return_inverse=True)
        worth[i], errors[i] = score.gain_and_error(without[others], rows.left_out[others], others, parts)
        for j, h in enumerate(chosen.tolist()):
            if h != g:
                helps[i, j] = own[j] - _defined(score, without, members[h])
    names = tuple(rows.group_names[g] for g in chosen)
    return GroupWorth(names, counts[chosen], score.name, own, worth, errors, helps)


def _left_out_without(rows: AuditedRows, group: int) -> np.ndarray:
    """Return the outputs (n, t) of the rows of all other groups, each left out with its group, without one group."""
    groups = rows.groups

    def without(block: Block) -> np.ndarray:
        assert groups is not None
        assert block.sets is not None
        of_rows = groups[block.rows]
        sets = [members for members in block.sets if of_rows[members[0]] != group]
        return block.machine.left_out_without(np.flatnonzero(of_rows == group), sets)

    return rows.by_block(without)


def _score(rows: AuditedRows) -> OutputScore:
    """Return the score of the audit, or accuracy where most groups have one label only."""
    if rows.classes is None or rows.groups is None:
        return rows.score
    n_single = int((np.bincount(rows.labels_of_groups[0]) == 1).sum())
    return rows.score if 2 * n_single <= len(rows.group_names) else HeldOutScore(rows.y, rows.classes)


def _defined(score: OutputScore, outputs: np.ndarray, members: np.ndarray) -> float:
    """Return the score of some rows; NaN for R^2 of a single row, which is not defined."""
    return float("nan") if members.size < 2 else score(outputs[members], members)
