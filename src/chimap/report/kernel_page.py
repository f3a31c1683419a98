"""A learned kernel as one page of HTML that needs nothing else."""

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
    """Write the page of a learned kernel to ``path``, whole or not at all, and return the path.

    FileExistsError if ``path`` exists and ``overwrite`` is False; FileNotFoundError if its folder does not.
    """
    return write_page(lambda: render_learned_kernel(learned), path, overwrite)


def render_learned_kernel(learned: LearnedKernel) -> str:
    """The page as text. The same kernel gives the same text."""
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
    """Title, what it says, and the SVG of each figure that there are numbers for."""
    from chimap.report import kernel_curves as curves
    from chimap.report.curves import strength_curve

    figures = []
    if learned.widths is not None:
        figures.append(
            ("Widths found", curves.width_ratios(learned.widths),
             "A narrower kernel tells rows apart by smaller differences in these columns; a much wider one hardly "
             "looks at them. 1 is where the search began: every block with the same share of the mean exponent.")
        )  # fmt: skip
    if learned.history:
        figures.append(
            ("Learning curve", curves.learning_curve(learned.history, learned.metric),
             "Objective and score by iteration. "
             + ("The rows of validation take no part in learning; the widths of least error on them are kept."
                if learned.history[0]["validation_score"] is not None else "No rows were kept for validation."))
        )  # fmt: skip
    if learned.channels is not None:
        figures.append(
            ("Channel weights", curves.channel_weights(learned.channels),
             "Share of each channel in the weights of the kernels, over all outputs.")
        )  # fmt: skip
    if learned.path is not None:
        figures.append(
            ("Regularisation path", curves.channel_path(learned.path),
             "From the left, where no channel is used, to weaker penalties. The dashed line is the strength chosen.")
        )  # fmt: skip
    if learned.curve is not None:
        figures.append(
            ("Regularisation path of the last fit", strength_curve(learned.curve),
             f"With the learned widths: {learned.curve.measure}, by strength; {learned.curve.method}."
             + (" The band is one standard error." if learned.curve.standard_errors.any() else ""))
        )  # fmt: skip
    return [{"title": title, "svg": as_markup(svg), "said": said} for title, svg, said in figures]


def _width_rows(learned: LearnedKernel) -> list[JSON]:
    """The widths as rows of a table, the most narrowed first."""
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
    """First and best score on the validation rows, in words."""
    scores = [step["validation_score"] for step in learned.history]
    if not scores or scores[0] is None:
        return None
    say = _plain.percent if learned.metric == "accuracy" else lambda v: _plain.number(v, 4)
    errors = [step["validation_error"] for step in learned.history]
    chosen = errors.index(min(errors))
    said = {"first": say(scores[0]), "kept": say(scores[chosen]), "iteration": str(chosen)}
    if say(max(scores)) != said["kept"]:  # widths are kept by the error, whose least may be elsewhere
        said |= {"highest": say(max(scores)), "at": str(scores.index(max(scores)))}
    return said
