"""A comparison as a table on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chimap.cli.support import show

if TYPE_CHECKING:
    from chimap.report import Comparison
    from chimap.report.comparison import Score

_PLAIN_WIDTH = 110  # where the output is no terminal: names on one line beside their numbers


def print_table(found: Comparison) -> None:
    """Best first; the recommended one in bold with a mark; the references below.

    error and worst are of the kernel: of the matrix (relative), and of a pair; row is what a stored row takes.
    """
    from rich.table import Table

    from chimap.report import _plain

    gamma = "" if found.gamma is None else f", gamma {found.gamma:.4g}"
    table = Table(
        box=None,
        padding=(0, 2, 0, 0),
        title=f"{found.kernel}{gamma} on {found.data['file']}",
        title_justify="left",
    )
    table.add_column("")
    names = ["features"] + ([found.metric, "95 %", "learning"] if found.task else [])
    for name in (*names, "map/row", "error", "worst", "row"):
        table.add_column(name, justify="right", no_wrap=True)
    chosen = found.recommendation.chosen
    for m in found.ranked:
        cells = [f"{m.n_features:,}"]
        if found.task:
            time = "-" if m.learn_seconds is None else show.duration(m.learn_seconds)
            cells += [*_score_cells(found, m.score), time]
        cells += [
            _words(_plain.microseconds(m.map_seconds)), _plain.short(m.error_relative), _plain.short(m.error_worst),
            show.size(int(m.least_bytes)) or "-",
        ]  # fmt: skip
        is_chosen, star = m is chosen, "" if found.fits(m) else " *"
        table.add_row(
            f"{'> ' if is_chosen else '  '}{m.short_name}{star}", *cells, style="bold" if is_chosen else None
        )
    table.add_row()
    for r in found.references:
        cells = [*_score_cells(found, r.score), show.duration(r.seconds)]
        table.add_row(f"  {r.name}, {r.n_rows:,} rows", "", *cells)
    if not all(map(found.fits, found.measured)):
        table.caption = f"* a fit needs more memory than {show.size(found.memory)}"
    show.console(plain_width=_PLAIN_WIDTH).print(table, end="\n\n")


def bound_line(found: Comparison) -> str | None:
    """The least error of any map at the sizes tried."""
    from chimap.report import _plain

    if not found.bounds:
        return None
    unit = "terms" if found.bound_of == "values" else "features"
    listed = ", ".join(f"{size:,}: {_plain.short(error)}" for size, error in found.bounds.items())
    if found.bound_of == "values":
        best = {
            size: min(
                (m.value_error for m in found.measured if m.size == size and m.value_error is not None),
                default=None,
            )
            for size in found.bounds
        }
        reached = ", ".join(f"{size:,}: {_plain.short(error)}" for size, error in best.items())
        return f"least relative error over pairs of values, by {unit}: {listed}\nreached by the best map: {reached}"
    return f"least error of the kernel matrix of {found.n_gram_rows:,} rows, by {unit}: {listed}"


def _score_cells(found: Comparison, score: Score | None) -> list[str]:
    if score is None:
        return ["-", "-"]
    if found.task == "regress":
        return [f"{score.value:.3f}", f"{score.interval[0]:.3f}–{score.interval[1]:.3f}"]
    low, high = (f"{100 * end:.1f}" for end in score.interval)
    return [show.percent(score.value), f"{low}–{high}"]


def _words(text: str) -> str:
    from chimap.report import _plain

    return text.replace(_plain.NARROW_SPACE, " ")
