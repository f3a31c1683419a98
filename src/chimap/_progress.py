"""Progress of long work: how much is done, how fast, how long the rest will take, and what took the time."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, TextIO, TypeVar

if TYPE_CHECKING:
    from rich.progress import TaskID


class Progress:
    """Reports nothing; the default, and the base of the classes that report.

    A job enters the object, names a stage with its total (None if it is unknown), and advances it.
    """

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        """Do nothing."""

    def stage(self, name: str, total: int | None, unit: str = "rows") -> None:
        """Begin a stage of ``total`` units."""

    def advance(self, amount: int = 1) -> None:
        """Record that ``amount`` more units are done."""

    def note(self, text: str) -> None:
        """Write a separate line: the result of the stage, or why it takes longer than usual."""


class RichProgress(Progress):
    """A line on the terminal: stage, bar, rows done, rows per second, time left.

    Parameters
    ----------
    transient : bool, default=False
        Whether the lines vanish at the end.
    """

    def __init__(self, *, transient: bool = False):
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self._bars = Bars(
            TextColumn("{task.description:<10}"),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[done]}"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            TextColumn("{task.fields[left]}"),
            console=Console(stderr=True),
            transient=transient,
        )
        self._task: TaskID | None = None
        self._unit = "rows"
        self._began = 0.0

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._close_stage(complete=exception[0] is None)
        self._bars.stop()

    def stage(self, name: str, total: int | None, unit: str = "rows") -> None:
        """Close the previous stage and begin a line for this one."""
        self._close_stage()
        self._unit, self._began = unit, time.perf_counter()
        left = "left" if total else ""
        self._task = self._bars.add_task(name, total=total, done="", rate="", left=left)

    def advance(self, amount: int = 1) -> None:
        """Move the bar, and show the count and the mean rate of the stage."""
        assert self._task is not None  # a stage begins before it advances
        task = self._bars.tasks[self._task]
        done = int(task.completed) + amount
        of_total = f" of {task.total:,.0f}" if task.total else ""
        rate = done / max(time.perf_counter() - self._began, 1e-9)
        self._bars.update(
            self._task, advance=amount, done=f"{done:,}{of_total} {self._unit}", rate=_speed(rate, self._unit)
        )

    def note(self, text: str) -> None:
        """Write a line above the bars."""
        self._bars.console.print(text, style="dim", highlight=False)

    def _close_stage(self, complete: bool = True) -> None:
        if self._task is not None and complete:
            # A search may take fewer steps than announced.
            task = self._bars.tasks[self._task]
            done = f"{task.completed:,.0f} {self._unit}" if task.completed else ""
            self._bars.update(self._task, total=task.completed or 1, completed=task.completed or 1, done=done, left="")


class LineProgress(Progress):
    """Plain lines of text at intervals, for logs. Short jobs write none.

    Parameters
    ----------
    every : float, default=15.0
        Seconds between two lines, and before the first.
    stream : file object, default=None
        Where the lines are written. None is stderr.
    """

    def __init__(self, every: float = 15.0, stream: TextIO | None = None):
        self._every, self._stream = every, stream or sys.stderr
        self._name, self._unit = "", "rows"
        self._total: int | None = None
        self._done, self._began, self._printed_at = 0, 0.0, time.perf_counter()

    def stage(self, name: str, total: int | None, unit: str = "rows") -> None:
        """Restart the count for a new stage."""
        self._name, self._unit, self._total = name, unit, total
        self._done, self._began = 0, time.perf_counter()

    def advance(self, amount: int = 1) -> None:
        """Count, and write a line if ``every`` seconds have passed since the last."""
        self._done += amount
        now = time.perf_counter()
        if now - self._printed_at >= self._every:
            self._printed_at = now
            print(self._line(now - self._began), file=self._stream, flush=True)

    def note(self, text: str) -> None:
        """Write a line."""
        print(text, file=self._stream, flush=True)

    def _line(self, seconds: float) -> str:
        rate = self._done / max(seconds, 1e-9)
        line = f"{self._name}: {self._done:,}"
        if self._total:
            line += f" of {self._total:,} {self._unit}"
            if self._done:
                left = max(0, self._total - self._done) / max(rate, 1e-9)
                speed = _speed(rate, self._unit)
                line += f", {speed}" if speed else ""
                line += f", {timedelta(seconds=round(left))} left"
        return line


def _speed(rate: float, unit: str) -> str:
    """Return '19/s' for units that come in large numbers, and nothing for others."""
    if unit not in ("rows", "images"):
        return ""
    return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"


Item = TypeVar("Item")


class Stopwatch:
    """Seconds by stage, summed over the runs of a stage; ``seconds`` keeps the order of first use.

    The time of a nested stage is not counted twice: it is subtracted from that of the outer stage.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._accounted = 0.0

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Add the time of the block to ``stage``."""
        self.seconds.setdefault(stage, 0.0)
        began, before = time.perf_counter(), self._accounted
        try:
            yield
        finally:
            took = time.perf_counter() - began
            self.seconds[stage] += took - (self._accounted - before)
            self._accounted = before + took

    def put(self, stage: str, seconds: float) -> None:
        """Add to ``stage`` the seconds that the running block has spent on it."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
        self._accounted += seconds

    def timed(self, stage: str, items: Iterable[Item]) -> Iterator[Item]:
        """Iterate over the items, and add the time that each takes to arrive to ``stage``."""
        iterator = iter(items)
        while True:
            with self(stage):
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item


@contextmanager
def compilation(clock: Stopwatch, progress: Progress) -> Iterator[None]:
    """Count the compilation of loops within the block as the stage "compile"; the first one sends a note to progress.

    A loop compiles at its first call for each kind of array after the installation, and is then cached on disk.
    """
    from numba.core import event

    class Watch(event.Listener):
        """A loop that calls others compiles them within its time, so only the outermost of these counts."""

        depth, began, has_noted = 0, 0.0, False

        def on_start(self, event: object) -> None:
            """Note the start. The compiler holds a lock, so there is only one at a time."""
            if self.depth == 0:
                self.began = time.perf_counter()
            self.depth += 1
            if not self.has_noted:
                self.has_noted = True
                progress.note("compiling loops for this machine; this happens once, they are kept on disk")

        def on_end(self, event: object) -> None:
            """Add the time of the outermost compilation."""
            self.depth -= 1
            if self.depth == 0:
                clock.put("compile", time.perf_counter() - self.began)

    with event.install_listener("numba:compile", Watch()):
        yield
