"""A comparison as one page of HTML that needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from chimap._types import Parameters
from chimap.report import _plain
from chimap.report.comparison import SURE, Comparison
from chimap.report.entrants import Entrant
from chimap.report.html import LISTED, as_markup, date_in_words, render, write_page
from chimap.report.kernel_errors import KernelErrors


def write_comparison(
    comparison: Comparison | None,
    path: str | os.PathLike[str],
    *,
    command: str | None = None,
    errors: KernelErrors | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the page of a comparison, of kernel errors or of both to ``path``, whole or not at all; returns the path.

    command: the one that fits what is recommended. FileExistsError if ``path`` exists and ``overwrite`` is False;
    FileNotFoundError if its folder does not.
    """
    return write_page(lambda: render_comparison(comparison, command=command, errors=errors), path, overwrite)


def render_comparison(
    comparison: Comparison | None, *, command: str | None = None, errors: KernelErrors | None = None
) -> str:
    """The page as text. The same values give the same text."""
    return render(
        "comparison.html",
        title=_title(comparison, errors),
        comparison=comparison,
        errors=errors,
        advice=None if comparison is None else comparison.recommendation,
        listed=LISTED,
        command=command,
        figures=[] if comparison is None else _figures(comparison),
        error_figures=[] if errors is None else _error_figures(errors),
        has_values=errors is not None and any(m.value_error is not None for m in errors.measured),
        score=lambda value: _score(comparison, value),
        between=lambda entrant: _between(comparison, entrant),
        stored=_stored,
        data={} if comparison is None else _plain.plain(_there(comparison.data)),
        settings={} if comparison is None else _plain.plain(comparison.settings),
        versions={} if comparison is None else _plain.plain(comparison.versions),
        stages={} if comparison is None else {n: _plain.seconds(t) for n, t in comparison.stages.items()},
        created="" if comparison is None else date_in_words(comparison.created),
    )


def _title(comparison: Comparison | None, errors: KernelErrors | None) -> str:
    if comparison is not None:
        return f"Kernels on {comparison.data.get('file', 'rows')}"
    assert errors is not None
    return f"Features of {errors.kernel}"


def _there(values: Mapping[str, object]) -> Parameters:
    return {name: value for name, value in values.items() if value is not None}


def _figures(comparison: Comparison) -> list[Parameters]:
    """Title, what it says, and the SVG of each figure of the race."""
    from chimap.report import comparison_curves as curves

    name = comparison.metric[0].upper() + comparison.metric[1:]
    figures = [
        (f"{name} by prediction time", curves.score_by_prediction(comparison),
         "The line joins what nothing else beats in both; the ring is what is recommended."),
    ]  # fmt: skip
    if max(len(e.runs) for e in comparison.ranked) > 1:
        figures.insert(
            0,
            (f"{name} by rows", curves.score_by_rows(comparison),
             "Round by round; those that left earlier are grey. Bars are one standard error."),
        )  # fmt: skip
    return [{"title": title, "svg": as_markup(svg), "said": said} for title, svg, said in figures]


def _error_figures(errors: KernelErrors) -> list[Parameters]:
    from chimap.report import kernel_error_curves as curves

    rows = f"{errors.n_gram_rows:,} rows"
    if errors.bound_of == "values":
        figures = [
            ("Kernel error by terms", curves.value_error(errors),
             "Relative error over pairs of non-zero entries. No map that is the same in every bin can go below the "
             "dashed line (Eckart and Young)."),
            ("Error of the kernel matrix", curves.gram_error(errors),
             f"Relative Frobenius error of the kernel matrix of {rows}."),
        ]  # fmt: skip
    else:
        figures = [
            ("Kernel error by features", curves.gram_error(errors),
             f"Relative Frobenius error of the kernel matrix of {rows}. No features of any kind can go below the "
             "dashed line (Eckart and Young), drawn where it is not zero."),
        ]  # fmt: skip
    return [{"title": title, "svg": as_markup(svg), "said": said} for title, svg, said in figures]


def _score(comparison: Comparison | None, value: float) -> str:
    is_share = comparison is not None and comparison.measure == "accuracy"
    return _plain.percent(value) if is_share else _plain.number(value, 3)


def _between(comparison: Comparison | None, entrant: Entrant) -> str:
    """The 95 % interval, '92.8 – 96.6'."""
    unit, digits = (100, 1) if comparison is not None and comparison.measure == "accuracy" else (1, 3)
    run = entrant.last
    if run.standard_error != run.standard_error:
        return "–"
    ends = (run.score - SURE * run.standard_error, min(1.0, run.score + SURE * run.standard_error))
    return " – ".join(f"{unit * end:.{digits}f}" for end in ends)


def _stored(n_bytes: float | None) -> str:
    """Bytes a row, in words."""
    from chimap._validation import format_bytes

    return "–" if n_bytes is None else format_bytes(n_bytes).replace(" ", _plain.NARROW_SPACE)
