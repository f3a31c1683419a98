"""Scores study by study, and against permuted labels."""

from __future__ import annotations

import numpy as np

from chimap._formatting import number, one_line
from chimap.reports.evaluation import Evaluation
from chimap.reports.figures import BAD, GOOD, INK, MUTED, drawing, to_svg
from chimap.reports.measures import Metrics
from chimap.reports.section import Figure, Section, Table
from chimap.reports.studies import STUDIES_NAMED, PermutationTest, StudyScores


def section(evaluation: Evaluation[Metrics]) -> Section | None:
    """Return the scores of each study, and the permutation test."""
    by = evaluation.studies
    if by is None:
        return None
    rows = [(name, f"{n:,}", number(a, 3, zeros=True), number(b, 3, zeros=True)) for name, n, a, b in by.listed]
    means = number(by.mean, 3, zeros=True), number(by.mean_within, 3, zeros=True)
    rows.append(("Mean", f"{by.n_rows.sum():,}", *means))
    rows.append(("Standard deviation", "", number(by.spread, 3, zeros=True), ""))
    heads = ("Study", "Rows", f"{by.name} across", f"{by.name} within")
    return Section(
        "Study by study",
        "Across studies, the model was retrained on all other studies and scored on this one; a new study may expect "
        "as much. Within a study, it was retrained on parts of the study alone and scored on the rest. A score that is "
        "high within studies and low across them says that studies differ.",
        (Figure(lambda: studies_figure(by)),),
        (Table(heads, rows, ("text", "extra", "number", "number")),),
        note=f"Not scored: {'; '.join(by.notes)}." if by.notes else "",
        parts=() if by.test is None else (_test_section(by.test, by.name),),
        lines=by.lines(),
    )


def _test_section(test: PermutationTest, name: str) -> Section:
    permuted = test.permuted
    return Section(
        "Permutation test",
        f"p = {number(test.p_value, 2)}: the mean {name} across studies is {number(test.score, 3, zeros=True)}, and "
        f"{number(permuted.mean(), 3, zeros=True)} ± {number(permuted.std(), 2, zeros=True)} where the labels are "
        f"permuted within each study ({permuted.size:,} times, {test.method}). Permutations keep the kernel and the "
        "normalisation of the model.",
        (Figure(lambda: permutations_figure(test, name)),),
    )


def studies_figure(scores: StudyScores) -> str:
    """Draw the scores across and within studies as dots, a line a study."""
    shown = min(len(scores.studies), STUDIES_NAMED)
    with drawing(330, 60 + 24 * shown) as (figure, axes):
        places = np.arange(shown)
        for place, across, within in zip(places, scores.across, scores.within, strict=False):
            axes.plot([across, within], [place, place], color=MUTED, linewidth=1, zorder=1)
        axes.plot(
            scores.within[:shown],
            places,
            "o",
            markersize=7,
            markerfacecolor="none",
            markeredgecolor=GOOD,
            markeredgewidth=1.6,
            label="within the study",
        )
        axes.plot(scores.across[:shown], places, "o", markersize=7, color=GOOD, label="by models of the other studies")
        if np.isfinite(scores.mean):
            axes.axvline(scores.mean, color=INK, linewidth=1, dashes=(4, 3))
        if scores.measure == "roc_auc":
            axes.axvline(0.5, color=BAD, linewidth=1, dashes=(2, 3))
        axes.set_yticks(places, [one_line(name, 28) for name in scores.studies[:shown]])
        axes.set(ylim=(shown - 0.5, -0.5), xlabel=f"{scores.name}; the dashed line is the mean across studies")
        axes.grid(axis="x")
        axes.legend(loc="upper left", bbox_to_anchor=(-0.02, -0.24 - 0.5 / shown), borderaxespad=0, fontsize=11.5)
        listed = ", ".join(f"{one_line(name)} {number(a, 3)} and {number(b, 3)}" for name, _, a, b in scores.listed)
        return to_svg(figure, "studies", f"{scores.name} across and within studies: {listed}.")


def permutations_figure(test: PermutationTest, name: str) -> str:
    """Draw the histogram of the scores of permuted labels, with the score of the labels as they are."""
    with drawing(330, 200) as (figure, axes):
        axes.hist(test.permuted, bins=min(30, max(8, int(2 * np.cbrt(test.permuted.size)))), color=GOOD, alpha=0.8)
        axes.axvline(test.score, color=BAD, linewidth=1.6)
        axes.margins(x=0.08)
        axes.grid(axis="y")
        axes.set(xlabel=f"mean {name}; the line is that of the labels as they are", ylabel="permutations")
        return to_svg(
            figure,
            "permutations",
            f"Mean {name} of {test.permuted.size} permutations, {number(test.permuted.mean(), 3)} on average; "
            f"{number(test.score, 3)} for the labels as they are.",
        )
