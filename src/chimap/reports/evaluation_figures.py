"""The figures of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import auc

from chimap._formatting import measure_in_words, number, one_line, percent, seconds
from chimap.reports.classification import ClassificationMetrics, Reliability
from chimap.reports.figures import (
    BAD,
    BAD_SHADE,
    GOOD,
    GOOD_SHADE,
    INK,
    LINES,
    MUTED,
    ON_SHADE,
    RULE,
    drawing,
    horizontal_bars,
    house_style,
    log_axis,
    new_figure,
    to_svg,
    write_beside,
)
from chimap.reports.insight import TwoClasses
from chimap.reports.ranking import RankingMetrics
from chimap.reports.regression import RegressionMetrics
from chimap.selection import LearningCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOST_DOTS = 500  # largest number of rows that are drawn as single dots


def stage_times(stages: Mapping[str, float]) -> str:
    """Draw the seconds of each stage and their share of the total as horizontal bars, in the given order."""
    names, times = list(stages), np.asarray(list(stages.values()), np.float64)
    total = times.sum()
    shares = times / total if total > 0 else np.zeros(len(names))
    with drawing(200, 28 * len(names)) as (figure, axes):
        places = horizontal_bars(axes, names, shares)
        for place, time, share in zip(places, times, shares, strict=True):
            text = f"{seconds(time)} · {percent(share, 0 if share >= 0.1 else 1)}"
            write_beside(axes, place, share, text, gap=7)
        listed = ", ".join(f"{one_line(n)} {seconds(t)}" for n, t in zip(names, times, strict=True))
        return to_svg(figure, "stages", f"Time per stage: {listed}; {seconds(total)} in total.")


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


MOST_CLASSES_COUNTED = 20  # largest number of classes for which counts are written into the cells
MOST_CLASSES_NAMED = 60  # largest number of classes for which the axes name every class
MOST_CELLS = 260  # largest number of cells per side; with more classes, neighbours share a cell


def confusion_heat_map(metrics: ClassificationMetrics) -> str:
    """Draw the share of each true class (row) that is predicted as each class (column); return SVG.

    Correct predictions are blue, wrong ones orange. The opacity is the square root of the share, so that one error in a
    hundred is visible. Counts are written for up to 20 classes. The axes name up to 60 classes and number more. Beyond
    260 classes, neighbours share a cell (``classes_a_cell``), which shows the largest share.
    """
    k = len(metrics.classes)
    cell = _cell_size(k)
    with drawing(cell * k, cell * k) as (figure, axes):
        shares = metrics.confusion / np.maximum(metrics.support, 1)[:, None]  # of each row
        image = _shades(_largest_in_blocks(shares, classes_a_cell(k)))
        axes.imshow(image, interpolation="none", aspect="auto", zorder=0, extent=(-0.5, k - 0.5, k - 0.5, -0.5))
        _frame(axes, k)
        if k <= MOST_CLASSES_COUNTED:
            _write_counts(axes, metrics.confusion, shares, cell)
        if k <= MOST_CLASSES_NAMED:
            _name_classes(axes, metrics.classes, cell)
        else:
            _number_classes(axes, k)
        axes.set(xlabel="predicted class", ylabel="true class")
        _key(figure, cell * k)
        alt = (
            f"Confusion matrix of {k} classes: {metrics.n_correct} of {metrics.n_rows} rows "
            "are on the diagonal, where predicted and true class agree."
        )
        return to_svg(figure, "confusion", alt)


def _cell_size(k: int) -> float:
    """Return the pixels per class: counts fit into the cells of 20 classes, names next to 60, a thousand on a page."""
    if k <= MOST_CLASSES_COUNTED:
        return float(np.clip(460 / k, 33, 92))
    return float(np.clip(640 / k, 13, 30)) if k <= MOST_CLASSES_NAMED else 780 / k


def classes_a_cell(k: int) -> int:
    """Return the number of neighbouring classes per cell in the map of ``k`` classes."""
    return -(-k // MOST_CELLS)


def _largest_in_blocks(shares: np.ndarray, block: int) -> np.ndarray:
    starts = np.arange(0, len(shares), block)
    return np.maximum.reduceat(np.maximum.reduceat(shares, starts, axis=0), starts, axis=1)


def _shades(shares: np.ndarray) -> np.ndarray:
    """Return the shares as an RGBA image (k, k, 4)."""
    image = np.empty((*shares.shape, 4))
    image[..., :3] = BAD_SHADE
    image[..., 3] = np.sqrt(shares)
    diagonal = np.arange(len(shares))
    image[diagonal, diagonal, :3] = GOOD_SHADE
    return image


def _frame(axes: Axes, k: int) -> None:
    for spine in axes.spines.values():
        spine.set(visible=True, edgecolor=RULE, linewidth=1)
    if k <= MOST_CLASSES_NAMED:
        between = np.arange(0.5, k - 1)
        width = 1.0 if k <= MOST_CLASSES_COUNTED else 0.5
        axes.hlines(between, -0.5, k - 0.5, color=RULE, linewidth=width)
        axes.vlines(between, -0.5, k - 0.5, color=RULE, linewidth=width)
    axes.set(xlim=(-0.5, k - 0.5), ylim=(k - 0.5, -0.5))


def _write_counts(axes: Axes, counts: np.ndarray, shares: np.ndarray, cell: float) -> None:
    size = 15 if cell >= 80 else 13 if cell >= 42 else 11
    for i, j in np.argwhere(counts > 0):
        # Dark text is the most legible on the strongest shades, on light and on dark pages.
        color = ON_SHADE if np.sqrt(shares[i, j]) > 0.85 else INK
        text = _short_count(int(counts[i, j]), int(cell // (0.68 * size)))
        axes.text(j, i, text, ha="center", va="center_baseline", fontsize=size, color=color)


def _short_count(count: int, longest: int) -> str:
    """Return a count that fits into ``longest`` characters, in thousands or millions if needed: 12345 -> '12k'."""
    text = str(count)
    for unit, name in ((1000, "k"), (1_000_000, "M")):
        if len(text) <= longest:
            break
        text = f"{count / unit:.1f}{name}" if count < 10 * unit and longest > 3 else f"{count / unit:.0f}{name}"
    return text


def _name_classes(axes: Axes, classes: tuple[object, ...], cell: float) -> None:
    names = [one_line(c, 24) for c in classes]
    size = 12 if cell >= 16 else 11
    places = np.arange(len(names))
    axes.set_yticks(places, names, fontsize=size)
    if max(map(len, names)) * 0.68 * size <= cell:
        axes.set_xticks(places, names, fontsize=size)
    else:
        slope = 45 if len(names) <= MOST_CLASSES_COUNTED else 90
        axes.set_xticks(places, names, fontsize=size, rotation=slope, ha="right", rotation_mode="anchor")
        if slope == 90:
            for label in axes.get_xticklabels():
                label.set_verticalalignment("center")


def _number_classes(axes: Axes, k: int) -> None:
    step = next(s for s in (10, 20, 25, 50, 100, 200, 500, 1000, k) if k / s <= 11)
    numbers = np.concatenate([[1], np.arange(step, k + 1, step)])
    axes.set_xticks(numbers - 1, [str(n) for n in numbers])
    axes.set_yticks(numbers - 1, [str(n) for n in numbers])


def _key(figure: Figure, side: float) -> None:
    """Draw two colour ramps above the matrix, the key to the opacity of blue and orange."""
    ramp = np.sqrt(np.linspace(0, 1, 60))[None, :, None]
    for left, name, shade in ((0, "right", GOOD_SHADE), (140, "wrong", BAD_SHADE)):
        axes = figure.add_axes((left / side, 1 + 26 / side, 100 / side, 9 / side))
        color = np.broadcast_to(np.asarray(shade), (1, 60, 3))
        axes.imshow(np.concatenate([color, ramp], axis=2), aspect="auto", extent=(0, 1, 0, 1))
        axes.set_xticks([0, 1], ["0", percent(1, 0)], fontsize=11, color=MUTED)
        axes.tick_params(pad=3)
        axes.set_yticks([])
        axes.set_title(name, loc="center", fontsize=12, pad=4, color=INK)
        for spine in axes.spines.values():
            spine.set(visible=True, edgecolor=RULE, linewidth=0.8)


MOST_CURVES = 6  # largest number of classes that are all drawn; of more, the three best and the three worst are drawn


def drawn_classes(ranking: RankingMetrics) -> list[int]:
    """Return the indices of the classes to draw, best first."""
    order = ranking.ordered().tolist()
    return order if len(order) <= MOST_CURVES else [*order[: MOST_CURVES // 2], *order[-(MOST_CURVES // 2) :]]


def precision_recall_figure(ranking: RankingMetrics) -> str:
    """Draw the best precision at each recall or beyond: the mean of all classes (thick) and single classes (thin)."""
    with drawing(380, 300) as (figure, axes):
        has_mean = ranking.ordered().size > 1
        if has_mean:
            mean = ranking.mean_curve
            label = f"mean of {ranking.ordered().size} classes · {percent(ranking.mean_average_precision)}"
            axes.plot(mean.recall, mean.precision, color=INK, linewidth=3, label=label)
        for k, color in zip(drawn_classes(ranking), LINES, strict=False):
            curve = ranking.curves[k]
            assert curve is not None
            label = f"{one_line(ranking.classes[k], 24)} · {percent(ranking.average_precision[k])}"
            recall = [0.0, *curve.recall]
            best = curve.interpolated(curve.recall)
            axes.step(recall, [best[0], *best], where="pre", color=color, linewidth=1.4, label=label)
        axes.set(xlim=(0, 1), ylim=(0, 1.02), xticks=[0, 0.25, 0.5, 0.75, 1], yticks=[0, 0.25, 0.5, 0.75, 1])
        axes.set_xticklabels([percent(t, 0) for t in axes.get_xticks()])
        axes.set_yticklabels([percent(t, 0) for t in axes.get_yticks()])
        axes.grid()
        axes.set(xlabel="recall", ylabel="precision")
        axes.legend(loc="upper left", bbox_to_anchor=(-0.02, -0.2), borderaxespad=0, labelspacing=0.6)
        alt = (
            f"Precision over recall of {ranking.ordered().size} classes; the mean average precision is "
            f"{number(ranking.mean_average_precision, 3)}."
        )
        return to_svg(figure, "precision", alt)


def learning_curve(curve: LearningCurve) -> str:
    """Draw the held-out score over the number of training rows (logarithmic)."""
    measure = measure_in_words(curve.measure)
    with drawing(330, 210) as (figure, axes):
        axes.plot(curve.rows, curve.scores, color=GOOD, linewidth=2, marker="o", markersize=4)
        axes.set(xscale="log", xlim=(curve.rows[0] / 1.1, curve.rows[-1] * 1.1))
        axes.margins(y=0.2)
        log_axis(axes.xaxis, *axes.get_xlim())
        axes.grid(axis="y")
        axes.set(xlabel="training rows", ylabel=measure)
        steps = ", ".join(f"{n:,} rows {number(s, 3)}" for n, s in zip(curve.rows, curve.scores, strict=True))
        return to_svg(figure, "learning", f"Held-out {measure} by number of training rows: {steps}.")


def roc_figure(two: TwoClasses) -> str:
    """Draw the ROC curve: true positive rate over false positive rate."""
    false_positives, true_positives = two.roc()
    area = auc(false_positives, true_positives)
    with house_style():
        figure = new_figure(260, 260)
        axes = _square(figure)
        axes.plot(false_positives, true_positives, color=GOOD, linewidth=2)
        axes.annotate(f"AUC {area:.3f}", (0.95, 0.06), ha="right", color=INK, weight="bold")
        axes.set(xlabel="false positive rate", ylabel="true positive rate")
        return to_svg(figure, "roc", f"ROC curve, with an area of {area:.3f} below it.")


def reliability_figure(two: TwoClasses) -> str:
    """Draw the share of the positive class among the rows of each band of predicted probabilities."""
    x, y = "predicted probability", "share of the positive class"
    return _shares(two.reliability(), "reliability", x, y, "Share of the positive class by predicted probability")


def calibration_figure(reliability: Reliability) -> str:
    """Draw the share of right predictions in each band of predicted probabilities."""
    x, y = "predicted probability", "share of right predictions"
    title = "Share of right predictions by predicted probability"
    return _shares(reliability.bands(), "calibration", x, y, title)


def _shares(bands: Sequence[tuple[float, float, int]], name: str, x: str, y: str, title: str) -> str:
    """Draw shares over probabilities, with larger dots for more rows; ``title`` begins the text alternative."""
    probabilities, shares, rows = (np.array(column) for column in zip(*bands, strict=True))
    with house_style():
        figure = new_figure(260, 260)
        axes = _square(figure)
        axes.plot(probabilities, shares, color=GOOD, linewidth=1.5)
        axes.scatter(probabilities, shares, 12 + 90 * rows / rows.max(), color=GOOD, zorder=3)
        axes.set(xlabel=x, ylabel=y)
        steps = ", ".join(f"{percent(p, 0)}: {percent(t, 0)}" for p, t, _ in bands)
        return to_svg(figure, name, f"{title}: {steps}.")


def _square(figure: Figure) -> Axes:
    axes = figure.add_axes((0, 0, 1, 1))
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, dashes=(4, 3))
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    axes.grid()
    return axes
