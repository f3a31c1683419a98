"""Precision-recall curves as SVG: the mean over the classes, and the best and worst classes."""

from __future__ import annotations

from chimap.report._figure import INK, LINES, house_style, new_figure, to_svg
from chimap.report._plain import number, one_line, percent
from chimap.report.ranking import RankingMetrics

DRAWN = (
    6  # largest number of classes that are all drawn; of more, the three best and the three worst are drawn
)


def drawn_classes(ranking: RankingMetrics) -> list[int]:
    """Return the indices of the classes to draw, best first."""
    order = ranking.ordered().tolist()
    return order if len(order) <= DRAWN else [*order[: DRAWN // 2], *order[-(DRAWN // 2) :]]


def precision_recall_figure(ranking: RankingMetrics) -> str:
    """Draw the best precision at each recall or beyond: the mean of all classes (thick) and single classes (thin)."""
    with house_style():
        figure = new_figure(380, 300)
        axes = figure.add_axes((0, 0, 1, 1))
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
        axes.set_xlabel("recall", labelpad=8)
        axes.set_ylabel("precision", labelpad=8)
        axes.legend(loc="upper left", bbox_to_anchor=(-0.02, -0.2), borderaxespad=0, labelspacing=0.6)
        alt = (
            f"Precision over recall of {ranking.ordered().size} classes; the mean average precision is "
            f"{number(ranking.mean_average_precision, 3)}."
        )
        return to_svg(figure, "precision", alt)
