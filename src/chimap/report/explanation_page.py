"""An explanation as one page of HTML that needs nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from chimap._types import JSON
from chimap.report import _plain
from chimap.report._figure import LINES, PALETTE
from chimap.report.explanation import ExplainedRow, ModelExplanation
from chimap.report.html import as_markup, date_in_words, render, write_page

TOP = 20  # bins in the table
OPEN = 10  # of them before the fold
_NAMES = {value: name for name, value in PALETTE.items()}
KINDS = {
    "variance": "Root of the variance, over the rows, of what the bin adds to the scores.",
    "gradient": "Root mean square slope of the scores, times the spread of the bin.",
    "removal": "How far the scores move, root mean square, when the bin is emptied beside those above it.",
    "permutation": "What the model loses when the values of the bin are shuffled among rows.",
}


def write_explanation(
    explanation: ModelExplanation, path: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write the page of ``explanation`` to ``path``, whole or not at all, and return the path.

    FileExistsError if ``path`` exists and ``overwrite`` is False; FileNotFoundError if its folder does not.
    """
    return write_page(lambda: render_explanation(explanation), path, overwrite)


def render_explanation(explanation: ModelExplanation) -> str:
    """The page as text. The same explanation gives the same text."""
    from chimap.report.explanation_curves import importance_bars

    top = explanation.importance.top(TOP)
    return render(
        "explanation.html",
        explanation=explanation,
        measure=KINDS[explanation.importance.kind],
        first=top[:OPEN],
        folded=top[OPEN:],
        importance_svg=as_markup(
            importance_bars([name for name, _ in top], explanation.importance.values[:TOP])
        ),
        effects=_effects(explanation),
        rows=[_row(explanation, row, i) for i, row in enumerate(explanation.rows)],
        data=_plain.plain(explanation.data),
        versions=_plain.plain(explanation.versions),
        created=date_in_words(explanation.created),
    )


def _effects(explanation: ModelExplanation) -> list[JSON]:
    from chimap.report.explanation_curves import effect_curves, shown_outputs

    return [
        {
            "name": effect.name,
            "svg": as_markup(effect_curves(effect, explanation.output_names, f"effect{i}")),
            "lines": [
                (_NAMES[colour], explanation.output_names[c])
                for colour, c in zip(LINES, shown_outputs(effect), strict=False)
            ],
        }
        for i, effect in enumerate(explanation.effects)
    ]


def _row(explanation: ModelExplanation, row: ExplainedRow, place: int) -> JSON:
    from chimap.report.explanation_curves import contribution_bars

    top = row.top()
    names = [str(explanation.bin_names[i]) for i in top]
    svg = as_markup(contribution_bars(names, row.contributions[top], f"row{place}")) if top.size else None
    listed = [(n, row.values[i], row.contributions[i]) for n, i in zip(names, top, strict=True)]
    return {
        "row": row,
        "svg": svg,
        "top": listed,
        "rest": row.score - row.base - row.contributions[top].sum(),
    }
