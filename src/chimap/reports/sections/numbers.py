"""The scores of predicted numbers, and how their errors are distributed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chimap._formatting import measure_in_words, number, one_line, score_in_words
from chimap.reports.evaluation import Evaluation
from chimap.reports.figures import BAD, GOOD, drawing, to_svg
from chimap.reports.measures import Interval
from chimap.reports.regression import RegressionMetrics
from chimap.reports.section import Figure, Headline, ScoreBar, Section

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def headline(evaluation: Evaluation[RegressionMetrics]) -> Section:
    """Return R², and the errors in the unit of the target."""
    metrics, baseline = evaluation.metrics, evaluation.baseline
    confidence = f"{number(100 * metrics.confidence)} %"
    linear = evaluation.insight and evaluation.insight.linear_line
    lead = metrics.leading(baseline)
    assert lead is not None  # numbers have one always
    is_r2, name = lead.measure == "r2", measure_in_words(lead.measure)
    keys = [
        *lead.keys(metrics.confidence),
        *(["R² is the share of the variance of the target that the model explains."] if is_r2 else []),
        *([linear] if linear else []),
    ]
    facts = [] if is_r2 else [("R²", score_in_words(metrics.r2, "r2"), "share of the variance explained")]
    facts += [
        ("Root mean squared error", number(metrics.rmse), f"{confidence}: {_between(metrics.rmse_interval, 4)}"),
        ("Mean absolute error", number(metrics.mae), f"{confidence}: {_between(metrics.mae_interval, 4)}"),
    ]
    if baseline is not None:
        facts.append(("RMSE of the baseline", number(baseline.value), one_line(baseline.name)))
    facts.append(("Mean error", number(metrics.residuals.mean(), 3), "prediction − target"))
    is_no_better = baseline is not None and metrics.rmse_interval[1] >= baseline.value
    return Headline(
        "Errors",
        label=f"{name[0].upper()}{name[1:]} on {metrics.n_rows:,} rows",
        score=score_in_words(lead.value, lead.measure),
        scale=ScoreBar.of(lead),
        keys=tuple(keys),
        baseline="" if is_r2 else lead.baseline_line("guessing"),
        facts=tuple(facts),
        note=""
        if baseline is None or not is_no_better
        else "The confidence interval of the RMSE is not entirely below the baseline: on these rows, the model is not "
        f"shown to be better than {one_line(baseline.name)}.",
        lines=metrics.lines(),
    )


def _between(interval: Interval, digits: int) -> str:
    return " to ".join(number(end, digits, zeros=True) for end in interval)


def section(evaluation: Evaluation[RegressionMetrics]) -> Section:
    """Return predicted over true values, and the distribution of the errors."""
    metrics = evaluation.metrics
    dots = (
        "Each dot is a row."
        if metrics.n_rows <= MOST_DOTS
        else "The colour of a hexagon shows its number of rows (logarithmic)."
    )
    spread = "Distribution of the errors. Predictions are too high right of zero and too low left of it."
    return Section(
        "Prediction errors",
        figures=(
            Figure(lambda: predicted_against_true(metrics), caption=f"Predicted over true values. {dots}"),
            Figure(lambda: residual_histogram(metrics), caption=spread),
        ),
        layout="two",
    )


MOST_DOTS = 500  # largest number of rows that are drawn as single dots


def predicted_against_true(metrics: RegressionMetrics) -> str:
    """Draw predicted over true values: a dot per row, or for more than 500 rows their density in hexagons."""
    y, p = metrics.targets, metrics.predictions
    low, high = _range(np.concatenate([y, p]), pad=0.05)
    with drawing(330, 330) as (figure, axes):
        if y.size <= MOST_DOTS:
            axes.plot(y, p, "o", markersize=5, color=GOOD, alpha=0.55, markeredgewidth=0)
        else:
            _draw_hexagons(axes, y, p, (low, high, low, high))
        axes.plot([low, high], [low, high], color=BAD, linewidth=1.3, dashes=(4, 3))
        axes.annotate(
            "no error",
            (1, 1),
            xycoords="axes fraction",
            xytext=(-24, -18),
            textcoords="offset points",
            ha="right",
            va="bottom",
            rotation=45,
            rotation_mode="anchor",
            color=BAD,
        )
        axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")
        _plain_ticks(axes, share_y=True)
        axes.grid()
        axes.set(xlabel="true", ylabel="predicted")
        alt = (
            f"Predicted against true values of {y.size} rows, both from {number(low)} to {number(high)}. "
            f"R² {number(metrics.r2, 3)}."
        )
        return to_svg(figure, "predicted", alt)


def _draw_hexagons(axes: Axes, x: np.ndarray, y: np.ndarray, extent: tuple[float, float, float, float]) -> None:
    """Draw the rows per hexagon (logarithmic): a single row at a quarter of the opacity, the most at full opacity."""
    from matplotlib.colors import ListedColormap, LogNorm, to_rgb

    opacity = np.linspace(0.25, 1, 32)[:, None]
    shades = ListedColormap(np.hstack([np.tile(to_rgb(GOOD), (32, 1)), opacity]))
    cells = axes.hexbin(x, y, gridsize=32, extent=extent, mincnt=1, cmap=shades, linewidths=0)
    cells.set_norm(LogNorm(1, max(2.0, float(np.max(np.asarray(cells.get_array()))))))


def residual_histogram(metrics: RegressionMetrics) -> str:
    """Draw the histogram of prediction - target, with zero marked."""
    residuals = metrics.residuals
    with drawing(350, 240) as (figure, axes):
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
        axes.set(xlabel=f"prediction − target{note}", ylabel="rows")
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
