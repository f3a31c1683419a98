"""The confusion matrix of classes as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chimap._formatting import one_line, percent
from chimap.reports.classification import ClassificationMetrics, most_confused
from chimap.reports.evaluation import Evaluation
from chimap.reports.figures import BAD_SHADE, GOOD_SHADE, INK, MUTED, ON_SHADE, RULE, drawing, to_svg
from chimap.reports.section import Figure, Section, Table
from chimap.reports.sections.classes import MOST_CLASSES_NAMED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

MOST_CLASSES_COUNTED = 20  # largest number of classes for which counts are written into the cells
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
        starts = np.arange(0, k, classes_a_cell(k))
        largest = np.maximum.reduceat(np.maximum.reduceat(shares, starts, axis=0), starts, axis=1)
        image = _shades(largest)
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


def _key(figure: Drawing, side: float) -> None:
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


def section(evaluation: Evaluation[ClassificationMetrics]) -> Section:
    """Return the matrix and, for more than two classes, the most frequent confusions."""
    metrics = evaluation.metrics
    k = len(metrics.classes)
    is_numbered, a_cell = k > MOST_CLASSES_NAMED, classes_a_cell(k)
    summary = (
        "Each row of the matrix is a true class, each column a predicted class. The colour of a cell shows its share "
        f"of the true class{', the number its count of rows' if k <= MOST_CLASSES_COUNTED else ''}."
    )
    if is_numbered:
        summary += " The numbers on the axes refer to the table of classes below."
    if a_cell > 1:
        summary += f" Each cell combines {a_cell} × {a_cell} neighbouring classes and shows their largest share."
    pairs = [] if k == 2 else most_confused(metrics, 20 if is_numbered else 10)
    rows = [(pair.true, pair.predicted, f"{pair.rows:,}", percent(pair.share)) for pair in pairs]
    kinds = ("text", "text", "number", "number")
    table = Table(("True", "Predicted", "Rows", "Share"), rows, kinds, "Most frequent confusions")
    least = 0.85 if 12 < k <= MOST_CLASSES_NAMED else 0.6
    return Section(
        "Confusion matrix",
        summary,
        (Figure(lambda: confusion_heat_map(metrics), least=least),),
        (table,) if rows else (),
        layout="stack" if k > 12 else "side",
    )
