"""Pages as single self-contained HTML files: no scripts, no fonts, no requests."""

from __future__ import annotations

import os
import platform
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from chimap._catalogue import at_address
from chimap._files import check_free, check_writable, replacing
from chimap._formatting import plain
from chimap.reports.contents import CONTENTS
from chimap.reports.section import Section, framed, render

if TYPE_CHECKING:
    from collections.abc import Callable


class Page(ABC):
    """A value that shows itself as a page of sections: in a notebook and as a file.

    ``contents.CONTENTS`` lists the sections of each page, and each is a function of the value.
    """

    kind: ClassVar[str]  # of page, in a word
    if TYPE_CHECKING:  # fields, which properties of the base would stand in the way of

        @property
        def title(self) -> str:
            """Title of the page."""

        @property
        def versions(self) -> Mapping[str, str]:
            """Versions of packages by name."""

        @property
        def created(self) -> datetime:
            """Time of the result, with its time zone."""

    @property
    def subject(self) -> str:
        """What the page is of, such as the name of an estimator."""
        return ""

    @property
    def listed(self) -> str:
        """The name under which ``CONTENTS`` lists the sections."""
        return self.kind

    @abstractmethod
    def details(self) -> dict[str, Mapping[str, object]]:
        """Return the tables of facts at the end of the page, by their captions."""

    def sections(self) -> list[Section]:
        """Return the sections for which there is something to show, in their order."""
        of = (cast("Callable[[Page], Section | None]", at_address(address)) for address in CONTENTS[self.listed])
        return [section for make in of if (section := make(self)) is not None]

    def to_html(self) -> str:
        """Return the page as text; equal values give equal text."""
        lines = [(is_half, list(some)) for is_half, some in groupby(self.sections(), lambda section: section.is_half)]
        return render(
            "page.html",
            page=self,
            lines=lines,
            details={name: plain(values) for name, values in self.details().items()},
            created=f"{self.created.day} {self.created:%B %Y, %H:%M %Z}".strip(),
        )

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
        """Return the page in a frame of its own, as notebooks show it."""
        return framed(self.to_html(), type(self).__name__)


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
