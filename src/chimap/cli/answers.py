"""How the commands that ask about rows write their answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from chimap.cli import messages, show

if TYPE_CHECKING:
    from chimap.diagnostics.answer import Answer


def print_answer(command: str, found: Answer, report: Path | None, overwrite: bool, json: bool, **more: str) -> None:
    """Write the page of an answer, if there is to be one, and print the answer and ``more`` files by what they are."""
    messages.written.extend(more.values())
    if report is not None:
        with show.busy("drawing the page"):
            found.save(report, overwrite=overwrite)
        messages.written.append(str(report))
        more["report"] = str(report)
    if json:
        show.as_json({"command": command, "report": None, **more, **found.as_dict()})
    else:
        show.facts(found.sentence, found.lines() | more)
