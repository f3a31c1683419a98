"""Render a comparison as a single self-contained HTML page."""

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
    """Write the page of a comparison, of kernel errors or of both to a file.

    A page that cannot be completed leaves no file behind.

    Parameters
    ----------
    comparison : Comparison or None
        The comparison to show.
    path : path-like
        The file to write.
    command : str or None, default=None
        The command that fits the recommended model.
    errors : KernelErrors or None, default=None
        The kernel errors to show.
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
    return write_page(lambda: render_comparison(comparison, command=command, errors=errors), path, overwrite)


def render_comparison(
    comparison: Comparison | None, *, command: str | None = None, errors: KernelErrors | None = None
) -> str:
    """Return the page as text; equal values give equal text.

    Parameters
    ----------
    comparison : Comparison or None
        The comparison to show.
    command : str or None, default=None
        The command that fits the recommended model.
    errors : KernelErrors or None, default=None
        The kernel errors to show.
    """
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
        data={} if comparison is None else _plain.plain(_without_none(comparison.data)),
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


def _without_none(values: Mapping[str, object]) -> Parameters:
    return {name: value for name, value in values.items() if value is not None}


def _figures(comparison: Comparison) -> list[Parameters]:
    """Return title, caption and SVG of each figure of the race."""
    from chimap.report import comparison_curves as curves

    name = comparison.metric[0].upper() + comparison.metric[1:]
    figures = [
        (f"{name} by prediction time", curves.score_by_prediction(comparison),
         "The line joins the models that no other beats in both score and speed. The ring marks the recommended one."),
    ]  # fmt: skip
    if max(len(e.runs) for e in comparison.ranked) > 1:
        figures.insert(
            0,
            (f"{name} by rows", curves.score_by_rows(comparison),
             "Each line is a model, each point a round; models that did not reach the last round are grey. The bars "
             "are one standard error."),
        )  # fmt: skip
    return [{"title": title, "svg": as_markup(svg), "caption": caption} for title, svg, caption in figures]


def _error_figures(errors: KernelErrors) -> list[Parameters]:
    from chimap.report import kernel_error_curves as curves

    rows = f"{errors.n_gram_rows:,} rows"
    if errors.bound_of == "values":
        figures = [
            ("Kernel error by terms", curves.value_error(errors),
             "Relative error over pairs of non-zero entries. No map that is the same in every bin can be below the "
             "dashed line (Eckart and Young)."),
            ("Error of the kernel matrix", curves.gram_error(errors),
             f"Relative Frobenius error of the kernel matrix of {rows}."),
        ]  # fmt: skip
    else:
        figures = [
            ("Kernel error by features", curves.gram_error(errors),
             f"Relative Frobenius error of the kernel matrix of {rows}. No features of any kind can be below the "
             "dashed line (Eckart and Young), which is drawn where it is not zero."),
        ]  # fmt: skip
    return [{"title": title, "svg": as_markup(svg), "caption": caption} for title, svg, caption in figures]


def _score(comparison: Comparison | None, value: float) -> str:
    is_share = comparison is not None and comparison.measure == "accuracy"
    return _plain.percent(value) if is_share else _plain.number(value, 3)


def _between(comparison: Comparison | None, entrant: Entrant) -> str:
    """Return the 95 % interval as text: '92.8 – 96.6'."""
    unit, digits = (100, 1) if comparison is not None and comparison.measure == "accuracy" else (1, 3)
    run = entrant.last
    if run.standard_error != run.standard_error:
        return "–"
    ends = (run.score - SURE * run.standard_error, min(1.0, run.score + SURE * run.standard_error))
    return " – ".join(f"{unit * end:.{digits}f}" for end in ends)


def _stored(n_bytes: float | None) -> str:
    """Return the bytes of a row as text, with a unit."""
    from chimap._memory import format_bytes

    return "–" if n_bytes is None else format_bytes(n_bytes).replace(" ", _plain.NARROW_SPACE)
