"""What the answers to questions about rows have in common: facts, settings and notes, as a page and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime

from chimap._formatting import plain
from chimap._types import JSON, Parameters
from chimap.reports.page import Page, now, package_versions
from chimap.reports.section import text_of


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer(Page):
    """An answer, as a page.

    Parameters
    ----------
    data : mapping of str to object
        Facts about the rows by name.
    settings : mapping of str to object
        Settings by name.
    notes : tuple of str, default=()
        What to know before it is read.
    versions : mapping of str to str, optional
        Versions of packages by name.
    created : datetime, optional
        Time of the result, with its time zone; by default now.
    """

    data: Mapping[str, object]
    settings: Parameters
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=package_versions)
    created: datetime = field(default_factory=now)

    @property
    def title(self) -> str:
        """Title of the page."""
        return f"{self.kind.capitalize()} of {self.data['file']}"

    @property
    def sentence(self) -> str:
        """The answer in a sentence."""
        raise NotImplementedError

    def details(self) -> dict[str, Mapping[str, object]]:
        """Return facts about the rows, the settings, and the versions."""
        known = {name: fact for name, fact in self.data.items() if fact is not None}
        return {"Data": known, "Settings": self.settings, "Versions": self.versions}

    def lines(self) -> dict[str, str | None]:
        """Return what a terminal shows of it in lines of text by name; None for those that do not apply."""
        lines = {name: line for section in self.sections() for name, line in section.lines.items()}
        return lines | {"notes": "\n".join(self.notes) or None}

    def __repr__(self) -> str:
        return text_of(self.sentence, self.lines())

    def as_dict(self) -> JSON:
        """Return the answer as JSON types: its title and sentence, and what it holds."""
        fields: JSON = plain(self.fields())
        return {"title": self.title, "sentence": self.sentence} | fields | {"created": self.created.isoformat()}

    def fields(self) -> Mapping[str, object]:
        """Return what the JSON says by name: every field, unless an answer says otherwise."""
        return asdict(self)
