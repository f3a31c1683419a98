"""Progress of long work: how much is done, how long the rest will take, and what took the time."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, TextIO, TypeVar

from chimap._formatting import measure_in_words, score_in_words


class Ahead(NamedTuple):
    """A stage that a plan expects.

    Attributes
    ----------
    stage : str
        Its name.
    total : int
        Its units, such as rows, or the values of a search as far as they are usual.
    seconds : callable
        Returns the seconds of the first n units, by the rates of the plan.
    is_relative : bool
        Whether these are in a unit of their own, so that they tell nothing before some of it is done.
    """

    stage: str
    total: int
    seconds: Callable[[float], float]
    is_relative: bool = False


class Progress:
    """Reports nothing; the default, and the base of the classes that report.

    A job enters the object, says how many steps there are and begins each. Within a step it names a stage with its
    total (None if it is unknown), and advances it.
    """

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        """Do nothing."""

    def steps(self, number: int) -> None:
        """Expect this number of steps."""

    def step(self, words: str, ahead: Sequence[Ahead] = ()) -> None:
        """Begin a step, such as "fitting 47,956 rows", with the stages that its plan expects."""

    def stage(self, name: str, total: int | None, unit: str = "rows") -> None:
        """Begin a stage of ``total`` units."""

    def advance(self, amount: int = 1) -> None:
        """Record that ``amount`` more units are done."""

    def scored(self, measure: str, value: float) -> None:
        """Record how good the machine is so far."""

    def planned(self, seconds: float) -> None:
        """Record the seconds of the running stage by rates: what it took corrects those of the steps that follow."""

    def note(self, text: str, *, matters: bool = False) -> None:
        """Write a separate line, for those who want to know all: what a stage found; or ``matters`` to everybody."""


@dataclass
class _RunningStage:
    """A stage that runs: units done, and what the plan expects of it."""

    name: str
    total: int | None
    unit: str
    began: float
    reported: float  # when the latest units were done
    warm_at: float = 0.0  # when its rate could first be measured, and the share that was done: the first of some trials
    warm_share: float = 0.0  # also loads what the others need
    ahead: Ahead | None = None
    done: int = 0
    latest: int = 0  # units of the latest report

    @property
    def seconds(self) -> float:
        """Seconds of all of it, by the plan; 0 without one."""
        return 0.0 if self.ahead is None else self.ahead.seconds(self.total or self.ahead.total)

    @property
    def next_share(self) -> float:
        """Share that will be done at the next report, if it is as large as the latest, and of rows not the first."""
        total = self.total or (self.ahead.total if self.ahead is not None else 0)
        step = (self.latest or total) if self.unit == "rows" else 1
        return (
            1.0 if self.ahead is None else self.ahead.seconds(min(self.done + step, total)) / self.ahead.seconds(total)
        )

    @property
    def share(self) -> float | None:
        """Share of the work that is done; None if that is unknown. A search may take more steps than are usual."""
        total = self.total or (self.ahead and self.ahead.total)
        if not total:
            return None
        done = min(self.done, total)
        share = done / total if self.ahead is None else self.ahead.seconds(done) / self.ahead.seconds(total)
        return share if self.total else min(share, _MOST_OF_USUAL)


_MOST_OF_USUAL = 0.95  # of a search whose steps are known as usual only
_FAITH = 0.02  # share of a stage for which the rates that are known count as measured
_LEAST_SECONDS = 1.0  # of a stage, before which nothing is told of the time that is left


class LineProgress(Progress):
    """Lines of text at intervals, for logs and notebooks. Short jobs write none.

    A line says the step, how much of it is done, and how long the job takes on. The plan of a machine tells the seconds
    of its stages; what is measured corrects them: of a stage by its rate so far, and of later ones by those before.
    Before anything is measured, the line says that it is estimating: computers differ more than plans know.

    Parameters
    ----------
    every : float, default=10.0
        Seconds between two lines, and before the first.
    stream : file object, default=None
        Where the lines are written. None is stderr.
    verbose : bool, default=False
        Whether to write all notes.
    later_steps : int, default=0
        Steps that follow those that the job expects.
    clock : callable, default=time.perf_counter
        Returns the seconds.
    """

    def __init__(
        self,
        every: float = 10.0,
        stream: TextIO | None = None,
        *,
        verbose: bool = False,
        later_steps: int = 0,
        clock: Callable[[], float] = time.perf_counter,
    ):
        self._every, self._stream, self._verbose, self._clock = every, stream, verbose, clock
        self._later_steps, self._n_steps, self._number, self._words = later_steps, 0, 0, ""
        self._ahead: list[Ahead] = []
        self._stage: _RunningStage | None = None
        self._score: tuple[str, float] | None = None
        self._planned = self._measured = 0.0  # seconds of the stages of the step that are over
        self._known: float | None = None  # seconds over those by rates, of the steps before
        self._began = self._printed_at = clock()
        self._entered, self._ended = 0, threading.Event()

    def __enter__(self) -> Progress:
        self._entered += 1
        if self._entered == 1:
            self._start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._entered -= 1
        if self._entered == 0:
            self._stop()

    def _start(self) -> None:
        """Write lines from a thread, as a step of a stage may take longer than an interval."""
        self._ended = ended = threading.Event()

        def write() -> None:
            while not ended.wait(self._every / 4):
                self._write_if_due()

        threading.Thread(target=write, daemon=True).start()

    def _stop(self) -> None:
        self._ended.set()

    def steps(self, number: int) -> None:
        """Expect this number of steps, and those that follow the job."""
        self._n_steps, self._number = number + self._later_steps, 0

    def step(self, words: str, ahead: Sequence[Ahead] = ()) -> None:
        """Begin a step, which is as fast by its rates as the one before."""
        if self._planned > 0:
            self._known = self._measured / self._planned
        self._number, self._words, self._ahead, self._stage = self._number + 1, words, list(ahead), None
        self._planned = self._measured = 0.0
        self._began = self._clock()

    def stage(self, name: str, total: int | None, unit: str = "rows") -> None:
        """Begin a stage; what the one before took corrects what is expected of others."""
        now = self._clock()
        if (last := self._stage) is not None and last.ahead is not None and not last.ahead.is_relative:
            self._planned += last.ahead.seconds(min(last.done, last.ahead.total))
            self._measured += now - last.began
        ahead = next((each for each in self._ahead if each.stage == name), None)
        if ahead is not None:
            self._ahead.remove(ahead)
        if not self._words:
            self._began = now
        self._stage = _RunningStage(name, total, unit, now, now, now, ahead=ahead)

    def advance(self, amount: int = 1) -> None:
        """Count, and write a line if it is time."""
        assert self._stage is not None  # a stage begins before it advances
        stage, now = self._stage, self._clock()
        is_first = stage.done == 0
        stage.done, stage.latest, stage.reported = stage.done + amount, amount, now
        if is_first and stage.ahead is not None and stage.ahead.is_relative and stage.done < stage.ahead.total:
            stage.warm_at, stage.warm_share = now, stage.share or 0.0
        self._write_if_due()

    def scored(self, measure: str, value: float) -> None:
        """Keep the score for the line."""
        self._score = measure, value

    def planned(self, seconds: float) -> None:
        """See ``Progress``."""
        if self._stage is not None and seconds > 0:
            self._known = (self._clock() - self._stage.began) / seconds

    def note(self, text: str, *, matters: bool = False) -> None:
        """Write a line."""
        if matters or self._verbose:
            self._write(text)

    def _write(self, text: str) -> None:
        print(text, file=self._stream or sys.stderr, flush=True)

    def _write_if_due(self) -> None:
        now = self._clock()
        if now - self._printed_at >= self._every:
            self._printed_at = now
            self._write(self.line())

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the end of the step, by the plan and what is measured; None if nothing tells."""
        now, stage = self._clock(), self._stage
        share = None if stage is None else stage.share
        ratio = self._measured / self._planned if self._planned > 0 else self._known
        left = None
        if stage is not None and stage.ahead is not None and share is not None:
            ratio = self._ratio_of(stage, share, now - stage.warm_at, None if stage.ahead.is_relative else ratio)
            whole = (1 - stage.warm_share) * stage.seconds
            left = None if ratio is None else max(0.0, whole * ratio - (now - stage.warm_at))
        elif stage is not None and share:
            left = (now - stage.began) * (1 - share) / share
        later = sum(each.seconds(each.total) for each in self._ahead)
        if not later:
            return left
        return None if ratio is None else (left or 0.0) + later * ratio

    @staticmethod
    def _ratio_of(stage: _RunningStage, share: float, took: float, known: float | None) -> float | None:
        """Return the seconds over those of the plan, by what a stage took so far; None before anything is measured."""
        share -= stage.warm_share
        if known is None and share <= 0:
            return None
        believed = 0.0 if known is None else _FAITH * stage.seconds
        reported = stage.reported - stage.warm_at
        ratio = (reported + believed * (known or 0.0)) / (share * stage.seconds + believed)
        return max(
            ratio, took / (stage.next_share * stage.seconds)
        )  # what is not reported yet takes that long at least

    def line(self) -> str:
        """Return the line: 'step 2 of 3: fitting 47,956 rows, 34 %, about 20 s left, accuracy so far 99.7 %'."""
        stage, left = self._stage, self.seconds_left
        parts = [self._words or ("" if stage is None else _done_of(stage))]
        if self._n_steps > 1 and self._words:
            parts[0] = f"step {min(self._number, self._n_steps)} of {self._n_steps}: {parts[0]}"
        took = self._clock() - self._began
        if left is None and self._ahead + ([] if stage is None or stage.ahead is None else [stage.ahead]):
            parts.append("estimating")
        if left is not None and took + left >= _LEAST_SECONDS:
            parts += [f"{100 * took / (took + left):.0f} %", f"about {_roughly(left)} left"]
        if self._score is not None:
            measure, value = self._score
            parts.append(f"{measure_in_words(measure)} so far {score_in_words(value, measure)}")
        return ", ".join(parts)


class RichProgress(LineProgress):
    """The line on a terminal, rewritten four times a second; it vanishes at the end.

    Parameters
    ----------
    verbose : bool, default=False
        Whether to write all notes.
    later_steps : int, default=0
        Steps that follow those that the job expects.
    """

    def __init__(self, *, verbose: bool = False, later_steps: int = 0):
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        super().__init__(verbose=verbose, later_steps=later_steps)
        shown = Console(stderr=True)
        self._live = Live(
            get_renderable=lambda: Text(self.line(), no_wrap=True, overflow="ellipsis"), console=shown, transient=True
        )

    def _start(self) -> None:
        self._live.start()

    def _stop(self) -> None:
        self._live.stop()

    def _write(self, text: str) -> None:
        self._live.console.print(text, style="dim", highlight=False)

    def _write_if_due(self) -> None:
        """Do nothing: the line is rewritten by itself."""


def shown(*, verbose: bool = False, later_steps: int = 0) -> Progress:
    """Return a line that is rewritten where stderr is a terminal, and else lines at intervals."""
    kind = RichProgress if sys.stderr.isatty() else LineProgress
    return kind(verbose=verbose, later_steps=later_steps)


def _done_of(stage: _RunningStage) -> str:
    """Return 'predicting 1,000 of 5,000 rows'."""
    if not stage.done and not stage.total:
        return stage.name
    of = f" of {stage.total:,}" if stage.total else ""
    return f"{stage.name} {stage.done:,}{of} {stage.unit}"


def _roughly(seconds: float) -> str:
    """Return seconds with no more digits than an estimate has.

    >>> _roughly(3.2), _roughly(22.0), _roughly(130.0), _roughly(5000.0)
    ('4 s', '20 s', '2 min', '1 h 20 min')
    """
    if seconds < 10:
        return f"{math.ceil(seconds)} s"
    if seconds < 57.5:
        return f"{5 * round(seconds / 5)} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {5 * (minutes % 60 // 5):02d} min"


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
                progress.note(
                    "compiling loops for this computer; this happens once, they are kept on disk", matters=True
                )

        def on_end(self, event: object) -> None:
            """Add the time of the outermost compilation."""
            self.depth -= 1
            if self.depth == 0:
                clock.put("compile", time.perf_counter() - self.began)

    with event.install_listener("numba:compile", Watch()):
        yield
