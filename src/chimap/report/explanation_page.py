"""Render an explanation as a single self-contained HTML page."""

from __future__ import annotations

import os
from pathlib import Path

from chimap._types import JSON
from chimap.report import _plain
from chimap.report._figure import LINES, PALETTE
from chimap.report.explanation import ExplainedRow, ModelExplanation
from chimap.report.html import as_markup, date_in_words, render, write_page

TOP = 20  # bins in the table
OPEN = 10  # bins shown without unfolding the table
_NAMES = {value: name for name, value in PALETTE.items()}
KINDS = {
    "variance": "The importance of a bin is the standard deviation, over the rows, of its contribution to the scores.",
    "gradient": "The importance of a bin is the root mean square slope of the scores times the standard deviation of "
    "the bin.",
    "removal": "The importance of a bin is the root mean square change of the scores when the bin and all bins above "
    "it are emptied.",
    "permutation": "The importance of a bin is the loss in score when its values are shuffled among the rows.",
}


def write_explanation(
    explanation: ModelExplanation, path: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write the page of an explanation to a file.

    A page that cannot be completed leaves no file behind.

    Parameters
    ----------
    explanation : ModelExplanation
        What to show.
    path : path-like
        The file to write.
    overwrite : bool, default=False
        Whether to replace an existing file.

    Returns
    -------
    Path
        The path of the page.

    Raises
    ------
    FileExistsError
        If ``path`` exists and ``overwrite`` is False.
    FileNotFoundError
        If the folder of ``path`` does not exist.
    """
    return write_page(lambda: render_explanation(explanation), path, overwrite)


def render_explanation(explanation: ModelExplanation) -> str:
    """Return the page of an explanation as text; equal explanations give equal text.

    Parameters
    ----------
    explanation : ModelExplanation
        What to show.
    """
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
