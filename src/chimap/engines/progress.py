"""Progress of long work: what is done, how fast, how long it will take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Progress:
    """Says nothing; the base of what does, and the default.

    A job enters the object, names a stage with its total (None where it is not known), and advances it.
    """

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing to close."""

    def stage(self, name: str, total: int | None, unit: str = "rows") -> None:
        """Begin a stage of ``total`` units."""

    def advance(self, amount: int = 1) -> None:
        """So many units more are done."""


class RichProgress(Progress):
    """A line on the terminal: stage, bar, rows done, rows per second, time left."""

    def __init__(self, console: Any = None):
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self._bars = Bars(
            TextColumn("{task.description:<16}"),
            BarColumn(bar_width=28),
            TextColumn("{task.fields[done]:>22}"),
            TextColumn("{task.fields[rate]:>15}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(compact=True),
            console=console or Console(stderr=True),
        )
        self._task: Any = None
        self._unit = "rows"
        self._began = 0.0

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._close_stage(complete=exception[0] is None)
        self._bars.stop()

    def stage(self, name: str, total: int | None, unit: str = "rows") -> None:
        """Close the stage before and begin a line for this one."""
        self._close_stage()
        self._unit, self._began = unit, time.perf_counter()
        self._task = self._bars.add_task(name, total=total, done="", rate="")

    def advance(self, amount: int = 1) -> None:
        """Move the bar, and show the count and the mean rate of the stage."""
        task = self._bars.tasks[self._task]
        done = int(task.completed) + amount
        of = f" / {task.total:,.0f}" if task.total else ""
        rate = done / max(time.perf_counter() - self._began, 1e-9)
        self._bars.update(
            self._task, advance=amount, done=f"{done:,}{of} {self._unit}",
            rate=f"{rate:,.0f} {self._unit}/s" if self._unit == "rows" else "",
        )  # fmt: skip

    def _close_stage(self, complete: bool = True) -> None:
        if self._task is not None and complete:
            # a search may take fewer steps than announced
            task = self._bars.tasks[self._task]
            self._bars.update(self._task, total=task.completed or 1, completed=task.completed or 1)


class Stopwatch:
    """Seconds by stage, summed over the times that a stage ran; ``seconds`` keeps the order of first use."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - began

    def timed(self, stage: str, items: Any) -> Iterator[Any]:
        """The items of an iterable, the wait for each put down to ``stage``."""
        iterator = iter(items)
        while True:
            with self(stage):
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item
