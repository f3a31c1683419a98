"""Where a data set comes from, how it is laid out when it has been unpacked, and what to say when it is not there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from chimap._validation import DataError
from chimap.data.image_names import is_image_name
from chimap.data.io.files import plain_path
from chimap.images.reading.files import ImageFiles, open_files


@dataclass(frozen=True)
class Origin:
    """A data set as its makers give it away.

    name: as papers call it. layout: a path in it, as an example. homepage: where to get it. source: the paper.
    """

    name: str
    layout: str
    homepage: str
    source: str

    def open(self, path: str | os.PathLike[str]) -> ImageFiles:
        """The files at a path. Raises FileNotFoundError that says where the data set is to be had."""
        try:
            return open_files(path)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{plain_path(path)}: nothing is there. {self.advice}") from error

    def root(self, files: ImageFiles, marker: str) -> str:
        """What stands before ``marker``, a path of the data set, in the files: "" or folders with a ``/`` at the end.

        A user may name the folder around the data set, the one in it, or the archive. Raises DataError if no path has
        it.
        """
        for path in files.paths:
            place = f"/{path}".find(f"/{marker}")
            if place >= 0:
                return path[:place]
        raise self.absent(files, marker)

    def absent(self, files: ImageFiles, what: str) -> DataError:
        """The error for files that are not of this data set."""
        return DataError(
            f"{files.name}: no {what} in it, so it is not {self.name} as it comes. {self.advice}"
        )

    @property
    def advice(self) -> str:
        """Where to get the data set and how it looks."""
        return f"Get {self.name} from {self.homepage} and unpack it, so that there is {self.layout}; name its folder."


def images_in(files: ImageFiles, folder: str) -> list[str]:
    """Images right in a folder, or in folders in it, sorted."""
    return [path for path in files.paths if path.startswith(folder) and is_image_name(path)]


def lines_of(files: ImageFiles, path: str) -> list[str]:
    """The lines of a text file that are not blank."""
    return [line for line in files.read(path).decode("utf-8", "replace").splitlines() if line.strip()]


def folders_in(files: ImageFiles, root: str, names: Iterable[str]) -> list[str]:
    """Those of the names that are folders in ``root``."""
    there = {path[len(root) :].partition("/")[0] for path in files.paths if path.startswith(root)}
    return [name for name in names if name in there]
