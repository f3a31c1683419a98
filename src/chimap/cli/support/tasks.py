"""Models of several tasks on the command line: check their labels, and print their scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from chimap.cli.support.options import Task

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from chimap.report import TaskMetrics

_SHOWN = 20  # tasks shown on the terminal
_HEADS = {"average precision": "avg precision", "balanced accuracy": "bal accuracy"}


def decide(y: np.ndarray, wanted: Task, name: str) -> tuple[Task, str]:
    """Return the task for labels (n, t), and the reason for it.

    Raise DataError if the labels do not suit the task ``wanted``.
    """
    import numpy as np

    from chimap._validation import DataError

    not_binary = np.argwhere(~(np.isnan(y) | (y == 0) | (y == 1)))
    if not not_binary.size and wanted is not Task.regress:
        return (
            Task.classify,
            f"{y.shape[1]} columns of 0 and 1" if wanted is Task.auto else "as set with --task",
        )
    if wanted is Task.classify:
        row, task = not_binary[0]
        raise DataError(
            f"{name}: --task classify needs labels that are 0, 1 or missing in every task; row {row}, task {task} has "
            f"{y[row, task]:g}. Use --task regress, or name one column of classes."
        )
    return (
        Task.regress,
        "as set with --task" if wanted is Task.regress else f"{y.shape[1]} columns of numbers",
    )


def names_of(model: BaseEstimator) -> list[str] | None:
    """Return the names of the tasks or targets of a multi-task model, or None for a model of a single task."""
    from chimap.estimators.targets import task_names

    return task_names(model)


def check(model: BaseEstimator, y: np.ndarray, name: str) -> None:
    """Raise DataError if the labels do not match the tasks of the model."""
    from chimap._validation import DataError

    names = names_of(model)
    n_tasks = 1 if names is None else len(names)
    n_labels = y.shape[1] if y.ndim == 2 else 1
    if n_labels != n_tasks:
        raise DataError(
            f"{name}: labels of {n_labels} task(s), but the model has {n_tasks}. Use --labels to name the columns that "
            "it was fitted on."
        )
    if n_tasks > 1 and hasattr(model, "classes_"):
        decide(y, Task.classify, name)


def lines(metrics: TaskMetrics) -> dict[str, str | None]:
    """Return the measures as a small table: their means, then one line for each task."""
    heads = [f"{_HEADS.get(name, name):>8}" for name in metrics.measures]
    names = metrics.names[:_SHOWN]
    width = max(map(len, (*names, "mean")))

    def line(name: str, cells: Iterable[str], rows: str) -> str:
        numbers = (f"{cell:>{len(head)}}" for head, cell in zip(heads, cells, strict=True))
        return "  ".join((f"{name:<{width}}", *numbers, f"{rows:>7}"))

    table = [line("", heads, "rows")]
    table.append(line("mean", (f"{metrics.mean(name):#.4g}" for name in metrics.measures), ""))
    for i, name in enumerate(names):
        values = (f"{by_task[i]:#.4g}" for by_task in metrics.measures.values())
        table.append(line(name, values, f"{metrics.n_seen[i]:,}"))
    if len(metrics.names) > _SHOWN:
        table.append(f"and {len(metrics.names) - _SHOWN} more; --json and --output show all tasks")
    return {"tasks": "\n".join(row.rstrip() for row in table)}
