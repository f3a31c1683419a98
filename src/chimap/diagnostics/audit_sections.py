"""The sections of an audit: shortcuts, labels that look wrong, rows that decide, near copies, groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chimap._formatting import counted, number, one_line, words
from chimap.diagnostics.audit import Audit
from chimap.diagnostics.group_worth import GroupWorth
from chimap.diagnostics.shortcuts import CLEAR, ShortcutScore
from chimap.reports.figures import BAD, GOOD, INK, MUTED, drawing, to_svg
from chimap.reports.section import Figure, Section, folded, text_table

if TYPE_CHECKING:
    from matplotlib.patches import Rectangle

RATE = 0.1  # of false discoveries, up to which labels are listed as wrong
_LISTED, _LISTED_GROUPS = 50, 30
_FITS = 0.5  # p-value of a label from which it is as good as any, and not listed
_IN_TERMINAL = 5
_CELL = 18, 44  # least and most pixels of a cell of the picture of groups


def shortcut_table(audit: Audit) -> Section:
    """Return what the score may rest on."""
    cells = [(line.words, *line.told) for line in audit.shortcuts]
    marks = ["  <" if _is_shortcut(line) else "" for line in audit.shortcuts]
    text = text_table([(name, f"{score} ± {error}" if error else f"{score:<13}") for name, score, error in cells])
    return Section(
        "What the score may rest on",
        f"{audit.measure} of machines that see nothing but totals, filled bins, groups, covariates or the order of the "
        "rows; of the counts; and of what the counts tell beyond each of them. Rows are left out"
        f"{_OF_GROUPS if audit.rows.groups is not None else '; standard errors count rows'}. The machine is "
        f"{audit.data['machine']}.",
        (Figure(lambda: shortcut_figure(audit), caption=_COLOURS),),
        folded(("What is known", audit.measure, "Standard error"), cells, "lines"),
        note=" ".join(f"{note[0].upper()}{note[1:]}." for note in audit.notes),
        lines={
            "machine": str(audit.data["machine"]),
            "rests on": "\n".join(map(str.__add__, text.splitlines(), marks)),
        },
        lead=audit.sentence,
    )


_OF_GROUPS = (
    " with their group, and standard errors count groups; where the group itself tells, is told or is taken out, each "
    "row is left out alone"
)
_COLOURS = (
    f"Blue: the counts, and what is left of them. Orange: shortcuts above chance by more than {CLEAR} errors. The "
    "dashed line is chance."
)


def _is_shortcut(line: ShortcutScore) -> bool:
    return line.kind == "alone" and line.is_clear


def shortcut_figure(audit: Audit) -> str:
    """Draw the scores as dots with two standard errors."""
    lines = audit.shortcuts
    with drawing(250, 24 * len(lines) + 20) as (figure, axes):
        for place, line in enumerate(lines):
            colour = GOOD if line.kind in ("counts", "left") else BAD if _is_shortcut(line) else MUTED
            axes.errorbar(
                line.score, place, xerr=CLEAR * line.error, fmt="o", color=colour, markersize=6, linewidth=1.6
            )
        axes.axvline(audit.rows.chance, color=INK, linewidth=1, dashes=(4, 3))
        axes.set_yticks(range(len(lines)), [one_line(line.words, 44) for line in lines])
        axes.set(ylim=(len(lines) - 0.5, -0.5), xlabel=f"{audit.measure} ± {CLEAR} standard errors")
        axes.grid(axis="x")
        listed = ", ".join(f"{line.words} {number(line.score, 3)}" for line in lines)
        return to_svg(figure, "shortcuts", f"{audit.measure}: {listed}.")


def labels(audit: Audit) -> Section:
    """Return the labels that look wrong."""
    found, n_wrong = audit.doubtful, int((audit.doubtful.rates <= RATE).sum())
    looks = words if audit.rows.classes is not None else lambda y: number(float(y), 4)
    cells = [
        (*_row(audit, row), looks(found.looks_like[row]), number(found.p_values[row], 2), number(found.rates[row], 2))
        for row in found.order[:_LISTED].tolist()
        if found.p_values[row] < _FITS
    ]
    share = "" if not n_wrong or found.share_wrong is None else f" About {found.share_wrong:.1%} of all are wrong."
    found_at = f"{counted(n_wrong, 'label') if n_wrong else 'none'} at a rate of false discoveries of {RATE:.0%}"
    named = [f"{name} ({label}, looks like {looks})" for name, label, looks, *_ in cells[: min(n_wrong, _IN_TERMINAL)]]
    more = ["..."] if n_wrong > _IN_TERMINAL else []
    listed = f": {', '.join([*named, *more])}" if named else ""
    return Section(
        "Labels that look wrong",
        f"{found_at[0].upper()}{found_at[1:]}.{share} A row is answered by a machine without it; p is the probability "
        "of a label that fits as badly, and the rate the share of right labels that is expected among the rows down to "
        "this one.",
        tables=folded(("Row", "Label", "Looks like", "p", "Rate"), cells, "rows", _KINDS[:5]) if cells else (),
        lines={"wrong labels": found_at + listed + share.replace(" ", "\n", 1)},
        layout="wide-table",
    )


_KINDS = ("text", "text", "text", "number", "number")


def _row(audit: Audit, row: int) -> tuple[str, str]:
    """Return the name of a row, and its label."""
    return str(audit.rows.names[row]), words(audit.rows.y[row])


def _factor(audit: Audit) -> str:
    return "one factor" if len(audit.rows.blocks) == 1 else "the factor of each block"


def deciding(audit: Audit) -> Section:
    """Return the rows that decide most."""
    found = audit.doubtful
    cells = [
        (
            *_row(audit, row),
            number(found.influence[row], 3),
            "" if found.n_changed is None else f"{found.n_changed[row]:,}",
        )
        for row in found.deciding[:_LISTED].tolist()
    ]
    name, label, influence, n_changed = cells[0]
    told = f"{name} ({label}): left-out outputs move by {influence} without it"
    return Section(
        "Rows that decide most",
        "How far the left-out outputs of all other rows move when this row goes too, as their root mean square, and "
        f"the number of answers that change: exactly, by downdates of {_factor(audit)}.",
        tables=folded(("Row", "Label", "Outputs move by", "Answers that change"), cells, "rows", _KINDS[1:]),
        lines={"decides most": told + (f", and {n_changed} answers change" if n_changed else "")},
        layout="wide-table",
    )


def copies(audit: Audit) -> Section | None:
    """Return near copies with other labels; None if there are none."""
    found = audit.doubtful.copies
    if not found:
        return None
    cells = [(*_row(audit, a), *_row(audit, b), number(distance, 2)) for a, b, distance in found[:_LISTED]]
    told, first = counted(len(found), "pair"), "{} ({}) and {} ({})".format(*cells[0])
    return Section(
        "Near copies with other labels",
        f"{told} of rows that are nearly equal to the kernel, with different labels. Distances are squared, as shares "
        "of the mean one between two rows.",
        tables=folded(("Row", "Label", "Copy", "Its label", "Distance"), cells, "pairs", ("text", *_KINDS[:4])),
        lines={"copies": f"{told} of near copies with different labels: {first}"},
        layout="wide-table",
    )


def groups(audit: Audit) -> Section | None:
    """Return what groups are worth; None without groups."""
    found = audit.groups
    if found is None:
        return None
    order = np.argsort(-np.nan_to_num(found.worth), kind="stable")
    cells = [
        (
            found.names[g],
            f"{found.n_rows[g]:,}",
            f"{found.own[g]:.3f}",
            f"{found.worth[g]:+.4f}",
            f"{found.errors[g]:.4f}",
        )
        for g in order.tolist()
    ]
    measure = audit.measure if found.measure == audit.rows.score.name else found.measure
    harmful = [g for g in order.tolist() if found.worth[g] < -CLEAR * found.errors[g]]
    told = f"{cells[0][0]} is worth most to the others: {cells[0][3]} ± {cells[0][4]} {measure}"
    if not np.round(found.worth, 4).any():
        told = f"the {measure} on the others is the same without any group"
    harm = ", ".join(f"{found.names[g]} ({found.worth[g]:+.3f})" for g in harmful[:_IN_TERMINAL])
    return Section(
        "What each group is worth",
        f"The {measure} on a group of the machine of all others, and how much higher that on all other groups is with "
        f"this group than without it, each left out in turn: exactly, by downdates of {_factor(audit)}."
        + (f" Without {harm} the others are better." if harm else ""),
        (Figure(lambda: groups_figure(found, order[:_LISTED_GROUPS]), title="Who helps whom", caption=_HELPS),),
        folded(("Group", "Rows", f"{measure} on it", "Worth to the others", "Standard error"), cells, "groups"),
        lines={"groups": told + (f"\nthe others are better without {harm}" if harm else "")},
        layout="stack",
    )


_HELPS = "Blue: the score of a group is better with the other one. Orange: it is worse."


def groups_figure(found: GroupWorth, order: np.ndarray) -> str:
    """Draw who helps whom: a line for the group that helps, a column for the one that is helped."""
    helps = found.helps[np.ix_(order, order)]
    most = float(np.nanmax(np.abs(helps))) if np.isfinite(helps).any() else 1.0
    names, size = [one_line(found.names[g], 24) for g in order], order.size * float(np.clip(260 / order.size, *_CELL))
    with drawing(size, size) as (figure, axes):
        axes.set(
            xlim=(-0.5, order.size - 0.5),
            ylim=(order.size - 0.5, -0.5),
            xlabel="group that is scored",
            ylabel="group that is added",
        )
        for i, j in np.argwhere(np.isfinite(helps)).tolist():
            side = 0.9 * np.sqrt(abs(helps[i, j]) / (most or 1.0))
            colour = GOOD if helps[i, j] > 0 else BAD
            axes.add_patch(_square(j, i, side, colour))
        axes.set_xticks(range(order.size), names, rotation=90)
        axes.set_yticks(range(order.size), names)
        return to_svg(figure, "groups", f"Who helps whom among {', '.join(names)}; the largest square is {most:.3f}.")


def _square(x: float, y: float, side: float, colour: str) -> Rectangle:
    from matplotlib.patches import Rectangle

    return Rectangle((x - side / 2, y - side / 2), side, side, color=colour, linewidth=0)
