"""Models of several tasks on the command line: what their labels are, how they score, and how that is said."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from chimap.cli.support.options import Task

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from chimap.report import TaskMetrics

_SHOWN = 20  # tasks on the terminal
_HEADS = {"average precision": "avg precision", "balanced accuracy": "bal accuracy"}


def decide(y: np.ndarray, wanted: Task, name: str) -> tuple[Task, str]:
    """Classification or regression of labels (n, t), and why. Raises DataError where labels and task do not agree."""
    import numpy as np

    from chimap._validation import DataError

    other = np.argwhere(~(np.isnan(y) | (y == 0) | (y == 1)))
    if not other.size and wanted is not Task.regress:
        return Task.classify, f"{y.shape[1]} columns of 0 and 1" if wanted is Task.auto else "as asked"
    if wanted is Task.classify:
        row, task = other[0]
        raise DataError(
            f"{name}: --task classify needs labels 0, 1 or missing in every task; row {row}, task {task} has "
            f"{y[row, task]:g}. Use --task regress, or name one column of classes."
        )
    return Task.regress, "as asked" if wanted is Task.regress else f"{y.shape[1]} columns of numbers"


def names_of(model: BaseEstimator) -> list[str] | None:
    """The tasks, or targets, of a model of several; None for a model of one."""
    from chimap.estimators.targets import task_names

    return task_names(model)


def check(model: BaseEstimator, y: np.ndarray, name: str) -> None:
    """Refuse labels that are not those of the model's tasks. Raises DataError."""
    from chimap._validation import DataError

    names = names_of(model)
    n_tasks = 1 if names is None else len(names)
    given = y.shape[1] if y.ndim == 2 else 1
    if given != n_tasks:
        raise DataError(
            f"{name}: labels of {given} task(s), but the model has {n_tasks}. Name the columns that it was fitted on "
            "with --labels."
        )
    if n_tasks > 1 and hasattr(model, "classes_"):
        decide(y, Task.classify, name)


def lines(metrics: TaskMetrics) -> dict[str, str | None]:
    """The measures as a small table: their means, and a line a task."""
    heads = [f"{_HEADS.get(name, name):>8}" for name in metrics.measures]
    names = metrics.names[:_SHOWN]
    width = max(map(len, (*names, "mean")))

    def line(name: str, cells: Iterable[str], rows: str) -> str:
        numbers = (f"{cell:>{len(head)}}" for head, cell in zip(heads, cells, strict=True))
        return "  ".join((f"{name:<{width}}", *numbers, f"{rows:>7}"))

    table = [line("", heads, "rows")]
    table.append(line("mean", (f"{metrics.mean(name):#.4g}" for name in metrics.measures), ""))
    for i, name in enumerate(names):
        values = (f"{each[i]:#.4g}" for each in metrics.measures.values())
        table.append(line(name, values, f"{metrics.n_seen[i]:,}"))
    if len(metrics.names) > _SHOWN:
        table.append(f"and {len(metrics.names) - _SHOWN} more: --json and --output have all")
    return {"tasks": "\n".join(row.rstrip() for row in table)}
