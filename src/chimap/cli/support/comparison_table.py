"""Tables for the terminal, 80 columns wide: a comparison, and the kernel errors of features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chimap.cli.support import show
from chimap.cli.support.flag_names import in_flags

if TYPE_CHECKING:
    from chimap.report import Comparison, KernelErrors
    from chimap.report.comparison import Entrant

_MOST_REFUSED = 5  # machines listed with the reason for their failure


def print_comparison(comparison: Comparison) -> None:
    """Print the machines of a comparison, best first.

    The recommended one is marked and bold. Machines that left in earlier rounds, with fewer rows, follow below. ± is
    half the width of the 95 % interval.
    """
    from rich.table import Table

    table = Table(
        box=None, padding=(0, 1, 0, 0), title_justify="left",
        title=f"{comparison.metric} on {comparison.n_held_out:,} held-out rows of {comparison.data['file']}",
    )  # fmt: skip
    table.add_column("")
    table.add_column("method", no_wrap=True)
    for name in (comparison.metric, "±", "rows", "fit", "predict/row"):
        table.add_column(name, justify="right", no_wrap=True)
    chosen, rounds = comparison.recommendation.chosen, None
    for e in comparison.ranked:
        if rounds is not None and e.last.n_rows != rounds:
            table.add_row()
        rounds = e.last.n_rows
        mark = "> " if e is chosen else "  "
        table.add_row(
            f"{mark}{e.kernel}", e.method, *_cells(comparison, e), style="bold" if e is chosen else None
        )
    show.console().print(table, end="\n\n")


def _cells(comparison: Comparison, e: Entrant) -> list[str]:
    from chimap.report import formatting
    from chimap.report.comparison import SURE

    run, is_share = e.last, comparison.measure == "accuracy"
    half = SURE * run.standard_error
    error = "-" if half != half else f"{100 * half:.1f}" if is_share else f"{half:.3f}"
    score = f"{100 * run.score:.1f}" if is_share else f"{run.score:.3f}"
    per_row = _words(formatting.microseconds(run.predict_seconds))
    return [score, error, f"{run.n_rows:,}", show.duration(run.seconds), per_row]


def failures(comparison: Comparison) -> str | None:
    """Return why machines could not be fitted, one per line, or None if all could."""
    lines = [f"{e.name}: {in_flags(e.error)}" for e in comparison.failed[:_MOST_REFUSED]]
    more = len(comparison.failed) - _MOST_REFUSED
    return "\n".join(lines + ([f"and {more} more"] if more > 0 else [])) or None


def print_errors(errors: KernelErrors) -> None:
    """Print the kernel errors of features, the most accurate first.

    The columns are the error of the kernel matrix, the worst error of a pair, the time of the map and the bytes of a
    stored row.
    """
    from rich.table import Table

    from chimap.report import formatting

    gamma = "" if errors.gamma is None else f", gamma {errors.gamma:.4g}"
    table = Table(
        box=None, padding=(0, 1, 0, 0), title_justify="left",
        title=f"error of the kernel, {errors.kernel}{gamma}, on {errors.n_gram_rows:,} rows",
    )  # fmt: skip
    table.add_column("")
    for name in ("features", "matrix", "worst", "map/row", "stored row"):
        table.add_column(name, justify="right", no_wrap=True)
    for m in errors.ranked:
        name = m.family if m.unit == "features" else m.name
        table.add_row(
            f"  {name}", f"{m.n_features:,}", formatting.short(m.error_relative), formatting.short(m.error_worst),
            _words(formatting.microseconds(m.map_seconds)), show.size(int(m.row_bytes)) or "-",
        )  # fmt: skip
    show.console().print(table, end="\n\n")


def bound_line(errors: KernelErrors) -> str:
    """Return the smallest error possible at each of the sizes tried."""
    from chimap.report import formatting

    listed = ", ".join(f"{size:,}: {formatting.short(error)}" for size, error in errors.bounds.items())
    if errors.bound_of == "values":
        return f"smallest possible relative error over pairs of values, by terms: {listed}"
    return f"smallest possible error of the kernel matrix, by features: {listed}"


def _words(text: str) -> str:
    from chimap.report import formatting

    return text.replace(formatting.NARROW_SPACE, " ")
