"""A comparison as one page of HTML that needs nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from chimap.report import _plain
from chimap.report.comparison import Comparison
from chimap.report.html import as_markup, date_in_words, render, write_page

_VOTES = " The exact SVM decides by votes over all pairs of classes, the ridge by one output a class."


def write_comparison(
    comparison: Comparison,
    path: str | os.PathLike[str],
    *,
    command: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the page of ``comparison`` to ``path``, whole or not at all, and return the path.

    command: the one that trains what is recommended. FileExistsError if ``path`` exists and ``overwrite`` is False;
    FileNotFoundError if its folder does not.
    """
    return write_page(lambda: render_comparison(comparison, command=command), path, overwrite)


def render_comparison(comparison: Comparison, *, command: str | None = None) -> str:
    """The page as text. The same comparison gives the same text."""
    return render(
        "comparison.html",
        comparison=comparison,
        advice=comparison.recommendation,
        command=command,
        figures=_figures(comparison),
        has_values=any(m.value_error is not None for m in comparison.measured),
        score=lambda value: _score(comparison, value),
        between=lambda interval: _between(comparison, interval),
        stored=_stored,
        data=_plain.plain(comparison.data),
        settings=_plain.plain(comparison.settings),
        versions=_plain.plain(comparison.versions),
        stages={name: _plain.seconds(time) for name, time in comparison.stages.items()},
        created=date_in_words(comparison.created),
    )


def _figures(comparison: Comparison) -> list[dict[str, Any]]:
    """Title, what it says, and the SVG of each figure that there are numbers for."""
    from chimap.report import comparison_curves as curves

    rows = f"{comparison.n_gram_rows:,} held-out rows"
    found = []
    if comparison.bound_of == "values":
        found.append(
            (
                "Kernel error by terms", curves.value_error(comparison),
                "Relative error over pairs of non-zero entries of held-out rows. No map that is the same in every bin "
                "can go below the dashed line (Eckart and Young).",
            )
        )  # fmt: skip
        found.append(
            ("Error of the kernel matrix", curves.gram_error(comparison),
             f"Relative Frobenius error of the kernel matrix of {rows}.")
        )  # fmt: skip
    else:
        found.append(
            (
                "Kernel error by features", curves.gram_error(comparison),
                f"Relative Frobenius error of the kernel matrix of {rows}. No features of any kind can go below the "
                "dashed line (Eckart and Young), drawn where it is not zero.",
            )
        )  # fmt: skip
    if any(m.score for m in comparison.measured):
        name = comparison.metric[0].upper() + comparison.metric[1:]
        found.append(
            (f"{name} by features", curves.score_by_features(comparison),
             "On the rows to measure on; bars are one standard error." + _VOTES * (comparison.task == "classify"))
        )  # fmt: skip
        found.append(
            (f"{name} by time", curves.score_by_time(comparison),
             "To map and to learn. The line joins what nothing else beats in both; the ring is what is recommended.")
        )  # fmt: skip
    return [{"title": title, "svg": as_markup(svg), "said": said} for title, svg, said in found]


def _score(comparison: Comparison, value: float) -> str:
    return _plain.number(value, 3) if comparison.task == "regress" else _plain.percent(value)


def _between(comparison: Comparison, interval: tuple[float, float]) -> str:
    """'92.8 – 96.6'."""
    unit, digits = (1, 3) if comparison.task == "regress" else (100, 1)
    return " – ".join(f"{unit * end:.{digits}f}" for end in interval)


def _stored(n_bytes: float | None) -> str:
    """Bytes a row, in words."""
    from chimap._validation import format_bytes

    return "–" if n_bytes is None else format_bytes(n_bytes).replace(" ", _plain.NARROW_SPACE)
