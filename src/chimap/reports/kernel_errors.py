"""How far maps and features approximate a kernel: the numbers, and their figures over size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from chimap._formatting import one_line
from chimap._types import JSON
from chimap.features.kernel_errors import FeatureError, KernelErrors
from chimap.reports.figures import (
    CURVE_SIZE,
    INK,
    LINES,
    MARKERS,
    drawing,
    legend_below,
    log_axis,
    to_svg,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_SMALLEST_ERROR = 1e-16  # smaller errors are rounding


def value_error(errors: KernelErrors) -> str:
    """Draw the relative error over pairs of values by number of terms (logarithmic), with the bound."""
    return _error_figure(
        errors, lambda m: m.value_error, "values", "relative error over pairs of values", True
    )


def gram_error(errors: KernelErrors) -> str:
    """Draw the relative error of the kernel matrix by size (logarithmic), with the bound if it is one of the matrix."""
    has_bound = errors.bound_of == "gram"
    return _error_figure(
        errors, lambda m: m.error_relative, "matrix", "relative error of the kernel matrix", has_bound
    )


def _error_figure(
    errors: KernelErrors,
    error: Callable[[FeatureError], float | None],
    name: str,
    y_label: str,
    has_bound: bool,
) -> str:
    unit = "terms" if errors.bound_of == "values" else "features"
    with drawing(*CURVE_SIZE) as (figure, axes):
        sizes: list[int] = []
        heights: list[float] = []
        for family, style in _styles(errors).items():
            points = [
                (m.size, max(e, _SMALLEST_ERROR))
                for m in errors.measured
                if m.family == family and m.unit == unit and (e := error(m)) is not None
            ]
            if points:
                x, y = zip(*sorted(points), strict=True)
                axes.plot(x, y, label=one_line(family, 60), **style)
                sizes += x
                heights += y
        bound = [(size, e) for size, e in sorted(errors.bounds.items()) if e > _SMALLEST_ERROR]
        if has_bound and bound:
            x, y = zip(*bound, strict=True)
            axes.plot(
                x, y, color=INK, linewidth=1.4, dashes=(4, 3), marker="_", label="smallest possible", zorder=5
            )
            heights += y
        axes.set_yscale("log")
        if unit == "terms":
            axes.set_xticks(sorted(set(sizes)))
        else:
            axes.set_xscale("log")
            _features_axis(axes, sizes)
        if heights:
            axes.set_ylim(min(heights) / 2, max(heights) * 2)
            log_axis(axes.yaxis, *axes.get_ylim())
        x_label = "terms per bin" if unit == "terms" else "number of features"
        return _finished(figure, axes, errors, name, x_label, y_label)


def _styles(errors: KernelErrors) -> dict[str, JSON]:
    """Return colour and marker of each family, in the order of measurement."""
    families = list(dict.fromkeys(m.family for m in errors.measured))
    return {
        family: {
            "color": LINES[i % len(LINES)],
            "marker": MARKERS[(i + i // len(LINES)) % len(MARKERS)],
            "markersize": 6,
            "linewidth": 1.7,
            "linestyle": "-" if i < len(LINES) else ":",
        }
        for i, family in enumerate(families)
    }


def _features_axis(axes: Axes, sizes: Sequence[int]) -> None:
    """Set ticks at the sizes if they are few and far apart, else as on any logarithmic axis."""
    from matplotlib.ticker import NullLocator

    ticks = sorted(set(sizes))
    low, high = ticks[0] / 1.2, ticks[-1] * 1.2
    axes.set_xlim(low, high)
    if len(ticks) > 5 or any(b < 1.6 * a for a, b in pairwise(ticks)):
        log_axis(axes.xaxis, low, high)
        return
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def _finished(figure: Figure, axes: Axes, errors: KernelErrors, name: str, x_label: str, y_label: str) -> str:
    axes.grid(axis="y")
    axes.set(xlabel=x_label, ylabel=y_label)
    legend_below(axes)
    listed = ", ".join(one_line(m.name) for m in errors.ranked)
    return to_svg(figure, f"errors-{name}", f"{y_label} by {x_label}: {listed}.")
