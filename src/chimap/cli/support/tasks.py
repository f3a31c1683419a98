"""Models of several tasks on the command line: what their labels are, how they score, and how that is said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chimap.cli.support.options import Task

if TYPE_CHECKING:
    import numpy as np

    from chimap.report import TaskMetrics

_SHOWN = 20  # tasks on the terminal


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


def names_of(model: Any) -> list[str]:
    """The tasks of a model by name, or by number."""
    names = getattr(model, "task_names_", None)
    return [f"task_{i}" for i in range(model._n_outputs)] if names is None else [str(name) for name in names]


def is_of_tasks(model: Any) -> bool:
    """Whether a model has several tasks or targets."""
    return bool(getattr(model, "multilabel_", False)) or (
        not hasattr(model, "classes_") and model._n_outputs > 1
    )


def check(model: Any, y: np.ndarray, name: str) -> None:
    """Refuse labels that are not those of the model's tasks. Raises DataError."""
    from chimap._validation import DataError

    n_tasks = model._n_outputs if is_of_tasks(model) else 1
    given = y.shape[1] if y.ndim == 2 else 1
    if given != n_tasks:
        raise DataError(
            f"{name}: labels of {given} task(s), but the model has {n_tasks}. Name the columns that it was fitted on "
            "with --labels."
        )
    if n_tasks > 1 and hasattr(model, "classes_"):
        decide(y, Task.classify, name)


def lines(metrics: TaskMetrics) -> dict[str, str | None]:
    """The measures in words: their means, and a line a task."""
    means = {f"mean {name}": f"{metrics.mean(name):.4f}" for name in metrics.measures}
    rows = [
        f"{name}: "
        + ", ".join(f"{measure} {values[i]:.4f}" for measure, values in metrics.measures.items())
        + f" ({metrics.n_seen[i]:,} rows)"
        for i, name in enumerate(metrics.names[:_SHOWN])
    ]
    if len(metrics.names) > _SHOWN:
        rows.append(f"and {len(metrics.names) - _SHOWN} more: --json has all")
    return {**means, "tasks": "\n".join(rows)}
