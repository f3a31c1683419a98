"""The figures of a comparison: error against size, score against features, score against time.

A family keeps its colour and its marker through all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from chimap.report._figure import INK, LINES, MUTED, house_style, new_figure, to_svg
from chimap.report._plain import number, one_line, percent
from chimap.report.comparison import Comparison, Measured
from chimap.report.curves import log_axis

_MARKERS = "osD^vPX*"
_SIZE = (380, 250)
_NARROW = 30  # letters of a label of which two go side by side
_FLOOR = 1e-16  # below it an error is rounding


def value_error(comparison: Comparison) -> str:
    """Relative error over pairs of values against terms, logarithmic, with the bound."""
    return _error_figure(
        comparison, lambda m: m.value_error, "values", "relative error over pairs of values", True
    )


def gram_error(comparison: Comparison) -> str:
    """Relative error of the kernel matrix against the size, logarithmic, with the bound if it is that of the matrix."""
    has_bound = comparison.bound_of == "gram"
    return _error_figure(
        comparison, lambda m: m.error_relative, "matrix", "relative error of the kernel matrix", has_bound
    )


def score_by_features(comparison: Comparison) -> str:
    """Score against the number of features, with the exact machine and the linear model as horizontal lines."""
    with house_style():
        figure, axes = _new_axes()
        axes.set_xscale("log")
        for family, style in _styles(comparison).items():
            points = sorted((m for m in comparison.measured if m.family == family and m.score), key=_features)
            if points:
                sizes, (scores, errors) = [m.n_features for m in points], _scores(points)
                axes.plot(sizes, scores, label=_label(family), **style)
                axes.errorbar(sizes, scores, errors, fmt="none", ecolor=style["color"], elinewidth=1)
        _lines(axes, comparison)
        _features_axis(axes, [m.n_features for m in comparison.measured if m.score])
        return _finished(figure, axes, comparison, "features", "features in all", _score_name(comparison))


def score_by_time(comparison: Comparison) -> str:
    """Score against seconds to map and learn; the front of those that nothing beats in both is joined."""
    with house_style():
        figure, axes = _new_axes()
        axes.set_xscale("log")
        learned = [m for m in comparison.measured if m.score]
        for family, style in _styles(comparison).items():
            points = [m for m in learned if m.family == family]
            if points:
                plain = style | {"linestyle": "none"}
                axes.plot(_times(points), _scores(points)[0], label=_label(family), **plain)
        front = pareto_front(learned)
        axes.plot(
            _times(front), _scores(front)[0], color=MUTED, linewidth=1.2, zorder=1, drawstyle="steps-post"
        )
        chosen = [comparison.recommendation.chosen]
        if chosen[0].score:
            axes.plot(
                _times(chosen), _scores(chosen)[0], "o", markersize=15, markerfacecolor="none", markeredgecolor=INK,
                markeredgewidth=1.6, label="recommended",
            )  # fmt: skip
        _lines(axes, comparison)
        log_axis(axes.xaxis, *_wide(axes, _times(learned)))
        return _finished(
            figure, axes, comparison, "time", "seconds to map and learn", _score_name(comparison)
        )


def pareto_front(candidates: Sequence[Measured]) -> list[Measured]:
    """Those that no other beats in both time and score, the fastest first."""
    front: list[Measured] = []
    for m in sorted(candidates, key=lambda m: (m.learn_seconds or 0.0, -_score(m))):
        if not front or _score(m) > _score(front[-1]):
            front.append(m)
    return front


def _error_figure(
    comparison: Comparison,
    error: Callable[[Measured], float | None],
    name: str,
    y_label: str,
    has_bound: bool,
) -> str:
    unit = "terms" if comparison.bound_of == "values" else "features"
    with house_style():
        figure, axes = _new_axes()
        sizes: list[int] = []
        errors: list[float] = []
        for family, style in _styles(comparison).items():
            found = [(m.size, error(m)) for m in comparison.measured if m.family == family and m.unit == unit]
            points = sorted((size, max(e, _FLOOR)) for size, e in found if e is not None)
            if points:
                x, y = zip(*points, strict=True)
                axes.plot(x, y, label=_label(family), **style)
                sizes += x
                errors += y
        if has_bound:
            bound = [(size, e) for size, e in sorted(comparison.bounds.items()) if e > _FLOOR]
            if bound:
                x, y = zip(*bound, strict=True)
                axes.plot(
                    x,
                    y,
                    color=INK,
                    linewidth=1.4,
                    dashes=(4, 3),
                    marker="_",
                    label="least possible",
                    zorder=5,
                )
                errors += y
        axes.set_yscale("log")
        if unit == "terms":
            axes.set_xticks(sorted(set(sizes)))
        else:
            axes.set_xscale("log")
            _features_axis(axes, sizes)
        if errors:
            axes.set_ylim(min(errors) / 2, max(errors) * 2)
            log_axis(axes.yaxis, *axes.get_ylim())
        x_label = "terms a bin" if unit == "terms" else "features in all"
        return _finished(figure, axes, comparison, name, x_label, y_label)


def _new_axes() -> tuple[Any, Any]:
    figure = new_figure(*_SIZE)
    return figure, figure.add_axes((0, 0, 1, 1))


def _styles(comparison: Comparison) -> dict[str, dict[str, Any]]:
    """Colour and marker of each family, in the order of the comparison."""
    families = list(dict.fromkeys(m.family for m in comparison.measured))
    return {
        family: {
            "color": LINES[i % len(LINES)], "marker": _MARKERS[(i + i // len(LINES)) % len(_MARKERS)],
            "markersize": 6, "linewidth": 1.7,
            "linestyle": "-" if i < len(LINES) else ":",
        }
        for i, family in enumerate(families)
    }  # fmt: skip


def _lines(axes: Any, comparison: Comparison) -> None:
    for reference, dashes in zip(comparison.references, ((5, 2), (1.5, 2)), strict=False):
        label = f"{reference.name}, {reference.n_rows:,} rows"
        axes.axhline(reference.score.value, color=INK, linewidth=1.2, dashes=dashes, zorder=1, label=label)


def _wide(axes: Any, values: Sequence[float]) -> tuple[float, float]:
    """Set the limits of the horizontal axis a little beyond the values, and return them."""
    low, high = min(values), max(values)
    margin = max(1.2, (high / low) ** 0.06)
    axes.set_xlim(low / margin, high * margin)
    return low / margin, high * margin


def _features_axis(axes: Any, sizes: Sequence[int]) -> None:
    """Ticks at the sizes themselves where they are few, else as on any logarithmic axis."""
    from matplotlib.ticker import NullLocator

    low, high = _wide(axes, sizes)
    ticks = sorted(set(sizes))
    if len(ticks) > 5 or any(b < 1.6 * a for a, b in pairwise(ticks)):
        log_axis(axes.xaxis, low, high)
        return
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def _finished(figure: Any, axes: Any, comparison: Comparison, name: str, x_label: str, y_label: str) -> str:
    if name in ("features", "time"):
        _percent_axis(axes, comparison)
    axes.grid(axis="y")
    axes.set_xlabel(x_label, labelpad=8)
    axes.set_ylabel(y_label, labelpad=8)
    labels = axes.get_legend_handles_labels()[1]
    is_long = len(labels) > 6 and max(map(len, labels)) <= _NARROW
    axes.legend(
        loc="upper left", bbox_to_anchor=(-0.02, -0.2), borderaxespad=0, fontsize=11.5, handlelength=2.2,
        labelspacing=0.45, ncols=2 if is_long else 1,
    )  # fmt: skip
    listed = ", ".join(one_line(m.name) for m in comparison.ranked)
    return to_svg(figure, f"comparison-{name}", f"{y_label} against {x_label} of {listed}.")


def _percent_axis(axes: Any, comparison: Comparison) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    if comparison.task == "classify":
        low, high = axes.get_ylim()
        digits = 0 if high - low > 0.05 else 1
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: percent(value, digits)))
    else:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value, 4)))


def _label(family: str) -> str:
    return one_line(family, 60)


def _score_name(comparison: Comparison) -> str:
    return f"{comparison.metric} on held-out rows"


def _features(m: Measured) -> int:
    return m.n_features


def _score(m: Measured) -> float:
    return m.score.value if m.score else float("nan")


def _scores(points: Sequence[Measured]) -> tuple[np.ndarray, np.ndarray]:
    found = [m.score for m in points if m.score]
    return np.array([s.value for s in found]), np.array([s.standard_error for s in found])


def _times(points: Sequence[Measured]) -> list[float]:
    return [max(m.learn_seconds or 0.0, 1e-6) for m in points]
