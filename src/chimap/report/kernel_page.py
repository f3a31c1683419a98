"""Render a learned kernel as a single self-contained HTML page."""

from __future__ import annotations

import os
from pathlib import Path

from chimap._types import JSON
from chimap.report import _plain
from chimap.report.html import LISTED, as_markup, date_in_words, render, write_page
from chimap.report.kernel import LearnedKernel


def write_learned_kernel(
    learned: LearnedKernel, path: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write the page of a learned kernel to a file.

    A page that cannot be completed leaves no file behind.

    Parameters
    ----------
    learned : LearnedKernel
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
    return write_page(lambda: render_learned_kernel(learned), path, overwrite)


def render_learned_kernel(learned: LearnedKernel) -> str:
    """Return the page of a learned kernel as text; equal values give equal text.

    Parameters
    ----------
    learned : LearnedKernel
        What to show.
    """
    widths = _width_rows(learned)
    return render(
        "kernel.html",
        learned=learned,
        figures=_figures(learned),
        first_rows=widths[:LISTED],
        folded_rows=widths[LISTED:],
        best=_best(learned),
        data=_plain.plain(learned.data),
        settings={k: v for k, v in _plain.plain(learned.settings).items() if v is not None},
        versions=_plain.plain(learned.versions),
        stages={name: _plain.seconds(time) for name, time in learned.stages.items()},
        created=date_in_words(learned.created),
    )


def _figures(learned: LearnedKernel) -> list[JSON]:
    """Return title, caption and SVG of each figure for which there is data."""
    from chimap.report import kernel_curves as curves
    from chimap.report.curves import strength_curve

    figures = []
    if learned.widths is not None:
        figures.append(
            ("Learned widths", curves.width_ratios(learned.widths),
             "A narrower kernel responds to smaller differences in these columns; a much wider one hardly uses them. "
             "The search starts at 1, where every block has the same share of the mean exponent.")
        )  # fmt: skip
    if learned.history:
        figures.append(
            ("Learning curve", curves.learning_curve(learned.history, learned.metric),
             "Objective and score by iteration. "
             + ("The validation rows are not learned from; the widths with the smallest error on them are kept."
                if learned.history[0]["validation_score"] is not None else "No rows were kept for validation."))
        )  # fmt: skip
    if learned.channels is not None:
        figures.append(
            ("Channel weights", curves.channel_weights(learned.channels),
             "Share of each channel in the sum of the kernel weights over all outputs.")
        )  # fmt: skip
    if learned.path is not None:
        figures.append(
            ("Regularisation path", curves.channel_path(learned.path),
             "The penalty gets weaker from left to right; at the left end no channel is used. The dashed line marks "
             "the chosen strength.")
        )  # fmt: skip
    if learned.curve is not None:
        figures.append(
            ("Regularisation path of the last fit", strength_curve(learned.curve),
             f"The fit with the learned widths, by strength of the penalty: {learned.curve.measure}; "
             f"{learned.curve.method}."
             + (" The band is one standard error." if learned.curve.standard_errors.any() else ""))
        )  # fmt: skip
    return [{"title": title, "svg": as_markup(svg), "caption": caption} for title, svg, caption in figures]


def _width_rows(learned: LearnedKernel) -> list[JSON]:
    """Return the widths as rows of a table, by descending ratio."""
    if learned.widths is None:
        return []
    widths = learned.widths
    rows = [
        {"name": name, "start": float(start), "found": float(end), "ratio": float(ratio)}
        for name, start, end, ratio in zip(
            widths.names, widths.start, widths.found, widths.ratios, strict=True
        )
    ]
    return sorted(rows, key=lambda row: -row["ratio"])


def _best(learned: LearnedKernel) -> dict[str, str] | None:
    """Return the first and the kept score on the validation rows as text, and the highest if it is another one."""
    scores = [step["validation_score"] for step in learned.history]
    if not scores or scores[0] is None:
        return None
    as_text = _plain.percent if learned.metric == "accuracy" else lambda v: _plain.number(v, 4)
    errors = [step["validation_error"] for step in learned.history]
    chosen = errors.index(min(errors))
    texts = {"first": as_text(scores[0]), "kept": as_text(scores[chosen]), "iteration": str(chosen)}
    if (
        as_text(max(scores)) != texts["kept"]
    ):  # the kept widths minimise the error, which need not maximise the score
        texts |= {"highest": as_text(max(scores)), "at": str(scores.index(max(scores)))}
    return texts
