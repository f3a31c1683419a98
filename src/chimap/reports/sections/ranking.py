"""Precision and recall of each class, with the images that rank first."""

from __future__ import annotations

from chimap._formatting import number, one_line, percent
from chimap.reports.classification import ClassificationMetrics
from chimap.reports.evaluation import Evaluation
from chimap.reports.figures import INK, LINES, drawing, to_svg
from chimap.reports.ranking import RankingMetrics
from chimap.reports.section import Figure, Section, Table

EXTREME_CLASSES = 8  # best classes, and worst classes, listed by average precision


def section(evaluation: Evaluation[ClassificationMetrics]) -> Section | None:
    """Return curves and average precisions, with the images that rank first, unless a ROC curve shows two classes."""
    ranking = evaluation.shown_ranking
    if ranking is None:
        return None
    method = "the area below the curve" if ranking.method == "area" else f"computed with the method “{ranking.method}”"
    rows = [
        (ranking.classes[k], percent(ranking.average_precision[k]), ranking.average_precision[k])
        for k in ranking.ordered()
    ]
    are_few = len(rows) <= 2 * EXTREME_CLASSES
    best, worst = (rows, []) if are_few else (rows[:EXTREME_CLASSES], rows[: -EXTREME_CLASSES - 1 : -1])
    listed = (("All classes" if are_few else "Best classes", best), ("Worst classes", worst))
    heads, kinds = ("Class", "Average precision", ""), ("text", "number", "bar")
    images = evaluation.examples
    return Section(
        "Precision and recall",
        "All rows are ranked by their score for a class. For each number of top-ranked rows, recall is the share of "
        "the class among them, and precision is the share of them that are of the class; the curve shows the best "
        f"precision at each recall or beyond. Average precision is {method}. The mean average precision (mAP) over the "
        f"classes is {percent(ranking.mean_average_precision)}.",
        (Figure(lambda: precision_recall_figure(ranking), least=0.6),),
        tuple(Table(heads, some, kinds, caption) for caption, some in listed if some),
        parts=() if images is None else images.sections(),
        layout="stack" if are_few else "two",
    )


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
