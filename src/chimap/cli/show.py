"""Print facts in two columns, JSON and progress, and format numbers for reading."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from chimap.engines import Progress

_PLAIN_WIDTH = 80  # if the output is not a terminal


def facts(title: str, lines: Mapping[str, str | None]) -> None:
    """Print a title and the named facts below it. Facts of None are left out; a fact may have several lines."""
    from rich.text import Text

    out = console()
    shown = {name: fact for name, fact in lines.items() if fact is not None}
    margin = max(map(len, shown)) + 4
    out.print(Text(title, style="bold"), soft_wrap=True)
    for name, fact in shown.items():
        wrapped = [piece for line in fact.splitlines() for piece in _wrapped(line, out.width - margin)]
        for i, piece in enumerate(wrapped):
            head = f"  {name if i == 0 else '':<{margin - 2}}"
            out.print(Text.assemble((head, "cyan"), piece), soft_wrap=True)


def answer(lines: Mapping[str, str | None], command: str) -> None:
    """Print named lines, the first of which is the answer, and the command to go on with, of any length."""
    from rich.text import Text

    out = console()
    shown = {name: line for name, line in lines.items() if line is not None}
    margin = max(map(len, (*shown, "next"))) + 2
    for place, (name, line) in enumerate(shown.items()):
        for i, piece in enumerate(_wrapped(line, out.width - margin)):
            head = f"{name if i == 0 else '':<{margin}}"
            out.print(Text.assemble((head, "cyan"), (piece, "" if place else "bold")), soft_wrap=True)
    out.print(Text.assemble((f"{'next':<{margin}}", "cyan"), (command, "green")), soft_wrap=True)


def _wrapped(line: str, width: int) -> list[str]:
    """Wrap a line at this width without breaking file names."""
    return textwrap.wrap(line, max(20, width), break_long_words=False, break_on_hyphens=False) or [""]


def table(title: str, texts: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table with headed columns of texts, and of numbers on the right; rows that begin with ">" are bold."""
    from rich.table import Table

    shown = Table(box=None, padding=(0, 1, 0, 0), title_justify="left", title=title)
    for name in texts:
        shown.add_column(name, no_wrap=name != "")
    for name in numbers:
        shown.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        shown.add_row(*row, style="bold" if row and row[0].startswith(">") else None)
    console().print(shown, end="\n\n")


def next_commands(title: str, *commands: str) -> None:
    """Print a title and commands, each on a single line of any length so that it can be copied."""
    from rich.text import Text

    out = console()
    out.print()
    out.print(Text(title), soft_wrap=True)
    for command in commands:
        out.print(Text(f"  {command}", style="green"), soft_wrap=True)


def as_json(value: object) -> None:
    """Print the JSON object of ``--json``."""
    from chimap._formatting import plain

    print(json.dumps(plain(value), indent=2, ensure_ascii=False))


def progress(silent: bool, *, verbose: bool = False, later_steps: int = 0) -> Progress:
    """Return the progress display: a line that is rewritten if stderr is a terminal, else a line now and then.

    If ``silent`` is set and stderr is not a terminal, nothing is shown.
    """
    from chimap._progress import Progress, shown

    if silent and not sys.stderr.isatty():
        return Progress()
    return shown(verbose=verbose, later_steps=later_steps)


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show a spinner on a terminal while work without measurable progress runs."""
    if not sys.stderr.isatty():
        yield
        return
    with console(to_stderr=True).status(what):
        yield


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes, or None if the system does not report it."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def resident_memory() -> int | None:
    """Return the current memory of this process in bytes, or None if the system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # not Linux
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def size(n_bytes: int | None) -> str | None:
    """Format bytes: 1536 becomes '1.5 KiB'. None stays None."""
    from chimap._memory import format_bytes

    return None if n_bytes is None else format_bytes(n_bytes)


def stages(seconds: Mapping[str, float]) -> str:
    """Return '12.3 s: moments 7.1 s, features 4.0 s': the total and the stages of at least 1 %, longest first."""
    total = sum(seconds.values())
    shown = sorted((s for s in seconds.items() if s[1] >= 0.01 * total), key=lambda s: -s[1])
    return f"{duration(total)}: " + ", ".join(f"{name} {duration(time)}" for name, time in shown)


def duration(seconds: float) -> str:
    """Format seconds: 0.0042 becomes '4.2 ms', 3.14159 '3.14 s' and 125 '2 min 05 s'."""
    from chimap import _formatting

    return _formatting.seconds(seconds).replace(_formatting.NARROW_SPACE, " ")


def microseconds(seconds: float) -> str:
    """Format the seconds that a row takes: 1.5e-6 becomes '1.5 µs'."""
    from chimap import _formatting

    return _formatting.microseconds(seconds).replace(_formatting.NARROW_SPACE, " ")


def percent(share: float, digits: int = 1) -> str:
    """Format a share: 0.9312 becomes '93.1 %'."""
    return f"{100 * share:.{digits}f} %"


def quoted(path: str | os.PathLike[str]) -> str:
    """Quote a path for a shell."""
    import shlex

    return shlex.quote(str(path))


def console(to_stderr: bool = False, plain_width: int = _PLAIN_WIDTH) -> Console:
    """Return a rich console on stdout or stderr, of width ``plain_width`` if the output is not a terminal."""
    from rich.console import Console

    stream = sys.stderr if to_stderr else sys.stdout
    return Console(stderr=to_stderr, highlight=False, width=None if stream.isatty() else plain_width)
