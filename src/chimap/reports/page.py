"""Pages as single self-contained HTML files: no scripts, no fonts, no requests."""

from __future__ import annotations

import os
import platform
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chimap import _formatting
from chimap._files import check_free, check_writable, replacing
from chimap._types import JSON

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


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
    for name in ("number", "short", "one_line", "percent", "seconds", "microseconds", "words", "measure_in_words"):
        environment.filters[name] = getattr(_formatting, name)
    environment.filters["thousands"] = lambda n: f"{n:,}" if isinstance(n, int | np.integer) else _formatting.words(n)
    return environment


class Page(ABC):
    """A value that shows itself as a page: in a notebook, as text and as a file."""

    @abstractmethod
    def to_html(self) -> str:
        """Return the page as text; equal values give equal text."""

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the page to a file.

        The page is drawn before the file is written, so a page that cannot be completed leaves no file behind.

        Parameters
        ----------
        path : path-like
            The file to write.
        overwrite : bool, default=False
            Whether to replace an existing file.

        Returns
        -------
        Path
            The path of the page.

        Raises
        ------
        FileExistsError
            If ``path`` exists and ``overwrite`` is False.
        FileNotFoundError
            If the folder of ``path`` does not exist.
        IsADirectoryError
            If ``path`` is a folder.
        """
        target = Path(path)
        check_writable(target)
        check_free(target, overwrite)
        page = self.to_html()
        with replacing(target) as unfinished:
            unfinished.write_text(page, encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, as notebooks show it: its style stays within the frame."""
        from markupsafe import escape

        return (
            f'<iframe srcdoc="{escape(self.to_html())}" title="{escape(type(self).__name__)}" loading="lazy" '
            'style="width: 100%; height: 42rem; border: 1px solid #ccc; resize: vertical"></iframe>'
        )


def as_markup(text: str) -> Markup:
    """Mark an SVG of this package as safe: ElementTree has escaped its text."""
    from markupsafe import Markup

    return Markup(text)


def captioned(title: str, svg: str, caption: str) -> JSON:
    """Return a figure as a template takes it."""
    return {"title": title, "svg": as_markup(svg), "caption": caption}


def date_in_words(moment: datetime) -> str:
    """Return a moment as text: '4 March 2025, 12:30 UTC'."""
    return f"{moment.day} {moment:%B %Y, %H:%M %Z}".strip()


ROWS_LISTED = 10  # rows of a table that are shown; the rest is behind a click


def package_versions() -> dict[str, str]:
    """Return the versions of chimap, Python and the numerical libraries, by name."""
    versions = {}
    for name in ("chimap", "numpy", "scipy", "scikit-learn", "numba"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions | {"python": platform.python_version(), "platform": f"{platform.system()} {platform.machine()}"}


def now() -> datetime:
    """Return the current time in UTC, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)
