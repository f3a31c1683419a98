"""The figures of a report, each as SVG text for a page (see ``_figure``).

Only matplotlib's object interface is used; it is imported when the first figure is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from chimap.report._figure import BAD, GOOD, INK, house_style, new_figure, to_svg
from chimap.report._plain import number, one_line, percent, power_of_ten, seconds
from chimap.report.regression import RegressionMetrics
from chimap.report.selection_scores import StrengthCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


DOTTED = 500  # largest number of rows that are drawn as single dots


def strength_curve(curve: StrengthCurve) -> str:
    """Draw held-out error over the strength (logarithmic), with a band of one standard error and the choice marked."""
    with house_style():
        figure = new_figure(350, 230)
        axes = figure.add_axes((0, 0, 1, 1))
        low, high = curve.errors - curve.standard_errors, curve.errors + curve.standard_errors
        first, last = min(curve.alphas[0], curve.chosen), max(curve.alphas[-1], curve.chosen)
        margin = max(1.2, (last / first) ** 0.04)
        axes.set(xscale="log", xlim=(first / margin, last * margin))
        if curve.errors.min() > 0 and np.nanmax(curve.errors) > 20 * np.nanmin(curve.errors):
            axes.set_yscale("log", nonpositive="clip")
        axes.axvline(curve.chosen, color=BAD, linewidth=1.2, dashes=(4, 3), zorder=1)
        axes.fill_between(curve.alphas, low, high, color=GOOD, alpha=0.2, linewidth=0)
        if curve.alphas.size == 1:
            axes.errorbar(curve.alphas, curve.errors, curve.standard_errors, color=GOOD, linewidth=1.5)
        axes.plot(curve.alphas, curve.errors, color=GOOD, linewidth=2, marker="o", markersize=4)
        axes.plot([curve.chosen], [curve.error_at_chosen], "o", markersize=9, color=BAD, zorder=5)
        if curve.measure.startswith(("accuracy", "R²")) and axes.get_ylim()[1] > 1:
            axes.set_ylim(top=1.0 + 0.02 * (1.0 - axes.get_ylim()[0]))  # these scores are at most 1
        _label_choice(axes, curve)
        log_axis(axes.xaxis, *axes.get_xlim())
        if axes.get_yscale() == "log":
            log_axis(axes.yaxis, *axes.get_ylim())
        axes.grid(axis="y")
        axes.set_xlabel("strength of the penalty", labelpad=8)
        axes.set_ylabel(curve.measure, labelpad=8)
        alt = (
            f"{curve.measure[0].upper()}{curve.measure[1:]} at {curve.alphas.size} strengths from "
            f"{number(curve.alphas[0])} to {number(curve.alphas[-1])}. The chosen strength is {number(curve.chosen)}, "
            f"with a value of {number(curve.error_at_chosen)}."
        )
        return to_svg(figure, "strength", alt)


def _label_choice(axes: Axes, curve: StrengthCurve) -> None:
    left, right = np.log(axes.get_xlim())
    near_right = (np.log(curve.chosen) - left) / (right - left) > 0.6
    axes.annotate(
        f"chosen: {number(curve.chosen, 3)}",
        (curve.chosen, 1),
        xycoords=("data", "axes fraction"),
        xytext=(-7 if near_right else 7, 0),
        textcoords="offset points",
        ha="right" if near_right else "left",
        va="top",
        color=BAD,
        weight="bold",
    )


def log_axis(axis: Axis, low: float, high: float) -> None:
    """Label at most seven powers of ten, or plain numbers at 1, 2 and 5 within less than two decades."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    first, last = int(np.ceil(np.log10(low))), int(np.floor(np.log10(high)))
    if last - first >= 2:
        exponents = range(first, last + 1, (last - first) // 7 + 1)
        ticks, labels = [10.0**e for e in exponents], [power_of_ten(e) for e in exponents]
    else:
        candidates = [m * 10.0**e for e in range(first - 1, last + 1) for m in (1, 2, 5)]
        ticks = [t for t in candidates if low <= t <= high]
        labels = [number(t) for t in ticks]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter(labels))
    axis.set_minor_locator(NullLocator())


def stage_times(stages: Mapping[str, float]) -> str:
    """Draw the seconds of each stage and their share of the total as horizontal bars, in the given order."""
    names, times = list(stages), np.asarray(list(stages.values()), np.float64)
    total = times.sum()
    shares = times / total if total > 0 else np.zeros(len(names))
    with house_style():
        figure = new_figure(200, 28 * len(names))
        axes = figure.add_axes((0, 0, 1, 1))
        places = np.arange(len(names))
        axes.barh(places, shares, height=0.62, color=GOOD)
        for place, time, share in zip(places, times, shares, strict=True):
            text = f"{seconds(time)} · {percent(share, 0 if share >= 0.1 else 1)}"
            axes.annotate(
                text, (share, place), xytext=(7, 0), textcoords="offset points", va="center", color=INK
            )
        axes.set(xlim=(0, max(shares.max(), 1e-9)), ylim=(len(names) - 0.5, -0.5), xticks=[])
        axes.set_yticks(places, [one_line(name, 28) for name in names])
        axes.spines["bottom"].set_visible(False)
        listed = ", ".join(f"{one_line(n)} {seconds(t)}" for n, t in zip(names, times, strict=True))
        return to_svg(figure, "stages", f"Time per stage: {listed}; {seconds(total)} in total.")


def predicted_against_true(metrics: RegressionMetrics) -> str:
    """Draw predicted over true values: a dot per row, or for more than 500 rows their density in hexagons."""
    y, p = metrics.targets, metrics.predictions
    low, high = _range(np.concatenate([y, p]), pad=0.05)
    with house_style():
        figure = new_figure(330, 330)
        axes = figure.add_axes((0, 0, 1, 1))
        if y.size <= DOTTED:
            axes.plot(y, p, "o", markersize=5, color=GOOD, alpha=0.55, markeredgewidth=0)
        else:
            _draw_hexagons(axes, y, p, (low, high, low, high))
        axes.plot([low, high], [low, high], color=BAD, linewidth=1.3, dashes=(4, 3))
        axes.annotate(
            "no error", (1, 1), xycoords="axes fraction", xytext=(-24, -18), textcoords="offset points",
            ha="right", va="bottom", rotation=45, rotation_mode="anchor", color=BAD,
        )  # fmt: skip
        axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")
        _plain_ticks(axes, share_y=True)
        axes.grid()
        axes.set_xlabel("true", labelpad=8)
        axes.set_ylabel("predicted", labelpad=8)
        alt = (
            f"Predicted against true values of {y.size} rows, both from {number(low)} to {number(high)}. "
            f"R² {number(metrics.r2, 3)}."
        )
        return to_svg(figure, "predicted", alt)


def _draw_hexagons(
    axes: Axes, x: np.ndarray, y: np.ndarray, extent: tuple[float, float, float, float]
) -> None:
    """Draw the rows per hexagon (logarithmic): a single row at a quarter of the opacity, the most at full opacity."""
    from matplotlib.colors import ListedColormap, LogNorm, to_rgb

    opacity = np.linspace(0.25, 1, 32)[:, None]
    shades = ListedColormap(np.hstack([np.tile(to_rgb(GOOD), (32, 1)), opacity]))
    cells = axes.hexbin(x, y, gridsize=32, extent=extent, mincnt=1, cmap=shades, linewidths=0)
    cells.set_norm(LogNorm(1, max(2.0, float(np.max(np.asarray(cells.get_array()))))))


def residual_histogram(metrics: RegressionMetrics) -> str:
    """Draw the histogram of prediction - target, with zero marked."""
    residuals = metrics.residuals
    with house_style():
        figure = new_figure(350, 240)
        axes = figure.add_axes((0, 0, 1, 1))
        low, high = _range(residuals, tails=0.005)
        edges = np.linspace(low, high, min(60, max(12, int(2 * np.cbrt(residuals.size)))) + 1)
        counts, _ = np.histogram(residuals, edges)
        outside = residuals.size - counts.sum()
        axes.stairs(counts, edges, fill=True, color=GOOD, alpha=0.8)
        axes.axvline(0, color=BAD, linewidth=1.3, dashes=(4, 3))
        axes.set(ylim=(0, 1.05 * counts.max()))
        _plain_ticks(axes)
        axes.grid(axis="y")
        note = f" ({outside:,} rows are outside)" if outside else ""
        axes.set_xlabel(f"prediction − target{note}", labelpad=8)
        axes.set_ylabel("rows", labelpad=8)
        alt = (
            f"Histogram of {residuals.size} errors, prediction minus target: "
            f"mean {number(residuals.mean(), 3)}, "
            f"from {number(residuals.min(), 3)} to {number(residuals.max(), 3)}."
        )
        return to_svg(figure, "residuals", alt)


def _range(values: np.ndarray, pad: float = 0.0, tails: float = 0.0) -> tuple[float, float]:
    """Return the smallest and the largest value, padded, without values in the ``tails`` far from the others."""
    low, high = float(values.min()), float(values.max())
    inner_low, inner_high = np.quantile(values, (tails, 1 - tails))
    margin = 0.5 * (inner_high - inner_low)
    low, high = max(low, float(inner_low - margin)), min(high, float(inner_high + margin))
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        low, high = low - 0.5, high + 0.5
    return low - pad * (high - low), high + pad * (high - low)


def _plain_ticks(axes: Axes, share_y: bool = False) -> None:
    """Set few ticks, with full numbers instead of an offset in a corner."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: number(value, 6)))
    if share_y:
        axes.set_yticks([t for t in axes.get_xticks() if axes.get_ylim()[0] <= t <= axes.get_ylim()[1]])
