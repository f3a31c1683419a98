"""``Section``: a part of a report as a value, which pages and notebooks show, and of which terminals show the lines.

Figures are functions, which draw when a page shows them: a terminal loads no matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from chimap import _formatting

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from chimap.reports.measures import LeadingScore

ROWS_LISTED = 10  # rows of a table that are shown; the rest is behind a click


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure of a section.

    Parameters
    ----------
    draw : callable
        Draws it: returns an SVG of ``figures.to_svg``, or images as ``image`` returns them.
    title : str, default=""
        What stands above it.
    caption : str, default=""
        What stands below it.
    kind : str, default=""
        The class of its style, such as "strip".
    least : float or None, default=None
        Of wide figures, the share of its natural width below which it scrolls.
    """

    draw: Callable[[], str]
    title: str = ""
    caption: str = ""
    kind: str = ""
    least: float | None = None

    @property
    def drawn(self) -> Markup:
        """The figure as HTML, which is safe: ElementTree or ``image`` has escaped its text."""
        from markupsafe import Markup

        return Markup(self.draw())


def image(source: str, alt: str, kind: str, title: str = "") -> str:
    """Return the HTML of an image at a data URL; ``kind`` is the class of its style, a pointer shows its ``title``."""
    from markupsafe import Markup

    return Markup('<img class="{}" src="{}" alt="{}" title="{}">').format(kind, source, alt, title)


@dataclass(frozen=True, eq=False)
class Table:
    """A table of a section.

    Parameters
    ----------
    heads : sequence of str
        Heads of the columns; empty for a table without any.
    rows : sequence of sequences
        The cells: texts as readers see them, and shares of bars.
    kinds : sequence of str, optional
        The kind of each column: "text", "number", "extra" for numbers that narrow screens leave out, or "bar". By
        default, the first is a text and the others are numbers. The first text names its row.
    caption : str, default=""
        What stands above the table.
    fold : str, default=""
        What to click on to see the table; it is shown from the start if this is empty.
    chosen : int or None, default=None
        The row that is marked.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[object]]
    kinds: Sequence[str] = ()
    caption: str = ""
    fold: str = ""
    chosen: int | None = None

    @property
    def columns(self) -> list[str]:
        """The kind of each column, with "name" for the one that names its row."""
        width = len(self.rows[0]) if self.rows else len(self.heads)
        kinds = list(self.kinds or ["text", *["number"] * (width - 1)])
        if "text" in kinds:
            kinds[kinds.index("text")] = "name"
        return kinds


def folded(
    heads: Sequence[str],
    rows: Sequence[Sequence[object]],
    noun: str,
    kinds: Sequence[str] = (),
    *,
    caption: str = "",
    whole: str = "",
    listed: int = ROWS_LISTED,
) -> tuple[Table, ...]:
    """Return a table of the first rows and, if there are more, another of the rest behind a click.

    ``whole`` is the caption of a table that is not divided, and ``caption`` that of the first of two.
    """
    if len(rows) <= listed:
        return (Table(heads, rows, kinds, whole),)
    rest = f"The other {len(rows) - listed:,} {noun}"
    return Table(heads, rows[:listed], kinds, caption), Table(heads, rows[listed:], kinds, f"The other {noun}", rest)


@dataclass(frozen=True, eq=False)
class Section:
    """A section of a page.

    Parameters
    ----------
    title : str
        Its heading.
    summary : str, default=""
        What it shows, in words.
    figures : tuple of Figure, default=()
        Its figures.
    tables : tuple of Table, default=()
        Its tables.
    note : str, default=""
        A caveat.
    parts : tuple of Section, default=()
        Sections within this one, below its figures and tables.
    lines : mapping of str to str or None, optional
        What a terminal shows of it: lines by name, None for those that do not apply.
    lead : str, default=""
        The sentence that matters most, in large type above the summary.
    command : str, default=""
        A command to copy.
    legend : sequence of tuple of str and object, default=()
        Colours of ``figures.PALETTE`` and what they stand for in all figures, above them.
    layout : str, default="side"
        How figures and tables stand on a wide screen: "side" by side, one below the other ("stack"), in "two" columns,
        or as many "plots" a line as fit; a "wide-table" is small, with many columns.
    is_half : bool, default=False
        Whether it shares its line with a neighbour that is as narrow.

    Examples
    --------
    >>> section = Section("Rows", "Rows of each class.", tables=(Table(("Class", "Rows"), [("cat", "12")]),))
    >>> '<h2 id="rows">' in section.to_html()
    True
    """

    title: str
    summary: str = ""
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    note: str = ""
    parts: tuple[Section, ...] = ()
    lines: Mapping[str, str | None] = field(default_factory=dict)
    lead: str = ""
    command: str = ""
    legend: Sequence[tuple[str, object]] = ()
    layout: str = "side"
    is_half: bool = False

    template: ClassVar[str] = "section.html"

    @property
    def anchor(self) -> str:
        """Its name in the address of a page: letters and digits of the title with hyphens between them."""
        return "-".join("".join(c if c.isalnum() else " " for c in self.title.lower()).split())

    def to_html(self) -> Markup:
        """Return the section as a part of a page."""
        from markupsafe import Markup

        return Markup(render(self.template, section=self))

    def _repr_html_(self) -> str:
        """Return the section in a frame of its own, as notebooks show it."""
        return framed(render("alone.html", section=self), self.title)

    def __str__(self) -> str:
        return text_of(self.title, self.lines)


class ScoreBar(NamedTuple):
    """A score from 0 to 1 as a bar, with its confidence interval and the score of the baseline, as far as known."""

    value: float
    interval: tuple[float, float] | None = None
    baseline: float | None = None

    @classmethod
    def of(cls, lead: LeadingScore) -> ScoreBar | None:
        """Return the bar of a leading score; None where it is not above 0, as errors are not."""
        return cls(lead.value, lead.interval, lead.guess or None) if lead.value > 0 else None

    def places(self) -> dict[str, str]:
        """Return the places of the marks in percent of the bar."""
        low, high = self.interval or (np.nan, np.nan)
        marks = {"value": self.value, "low": low, "high": high, "baseline": self.baseline}
        return {k: f"{100 * min(max(v, 0), 1):.2f}%" for k, v in marks.items() if v is not None and v == v}


@dataclass(frozen=True, eq=False)
class Headline(Section):
    """The first section of an evaluation: one score in large type, and the most telling facts beside it.

    Parameters
    ----------
    label : str
        Name of the score.
    score : str
        The score.
    about : str
        What else to know about it, above the scale.
    scale : ScoreBar or None
        The score as a bar.
    keys : tuple of str
        Lines below the scale.
    baseline : str
        The line of the baseline, after the first of ``keys``.
    facts : tuple of (name, value, explanation)
        Further measures.
    """

    label: str = ""
    score: str = ""
    about: str = ""
    scale: ScoreBar | None = None
    keys: tuple[str, ...] = ()
    baseline: str = ""
    facts: tuple[tuple[str, str, str], ...] = ()

    template: ClassVar[str] = "headline.html"


def text_of(title: str, lines: Mapping[str, str | None]) -> str:
    """Return a title and the named lines below it as text; lines of None are left out."""
    shown = {name: line for name, line in lines.items() if line is not None}
    width = max(map(len, shown), default=0)
    rows = (line.replace("\n", "\n" + " " * (width + 4)) for line in shown.values())
    return "\n".join([title, *(f"  {name:<{width}}  {row}" for name, row in zip(shown, rows, strict=True))])


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text, its first column on the left and the others on the right.

    >>> print(text_table([("bin", "share"), ("moss", "0.5")]))
    bin   share
    moss    0.5
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([f"{row[0]:<{widths[0]}}", *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    )


def framed(page: str, title: str) -> str:
    """Return a page in a frame, as notebooks show it: its style stays within the frame."""
    from markupsafe import escape

    return (
        f'<iframe srcdoc="{escape(page)}" title="{escape(title)}" loading="lazy" '
        'style="width: 100%; height: 42rem; border: 1px solid #ccc; resize: vertical"></iframe>'
    )


def render(template: str, **parts: object) -> str:
    """Render a template of the folder ``templates``."""
    return _environment().get_template(template).render(**parts).strip() + "\n"


@cache
def _environment() -> Environment:
    """Return what keeps the templates, which take longer to compile than to render."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("chimap.reports", "templates"),
        autoescape=True,  # names of classes and files come from the user: "<script>" must stay text
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["one_line"] = _formatting.one_line
    environment.filters["words"] = _formatting.words
    environment.filters["thousands"] = lambda n: f"{n:,}" if isinstance(n, int | np.integer) else _formatting.words(n)
    return environment
