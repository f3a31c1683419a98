"""The first screen of the README is the home of the site, so that both make the same promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

README = Path(__file__).resolve().parents[2] / "README.md"
PLACE, END = "<!-- readme -->", "## Ten lines of Python"


def first_screen() -> str:
    """Return the README up to its first code, with links as they are within docs/."""
    return README.read_text(encoding="utf-8").partition(END)[0].replace("](docs/", "](")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the placeholder by the first screen."""
    return markdown.replace(PLACE, first_screen())
