"""The origin of a data set, its layout when it has been unpacked, and the messages for when it is missing."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from chimap._validation import DataError
from chimap.images.reading.files import ImageFiles, open_files
from chimap.readers.image_names import is_image_name
from chimap.readers.io.files import plain_path


@dataclass(frozen=True)
class PublishedSet:
    """A data set as it is published.

    name: as papers call it. layout: an example of a path in it. homepage: where to get it. source: the paper.
    """

    name: str
    layout: str
    homepage: str
    source: str

    def open(self, path: str | os.PathLike[str]) -> ImageFiles:
        """Return the files at a path; raises FileNotFoundError that says where to get the data set."""
        try:
            return open_files(path)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{plain_path(path)}: nothing is there. {self.advice}") from error

    def root(self, files: ImageFiles, marker: str) -> str:
        """Return the part of the paths before ``marker``, a path of the data set: "" or folders that end with ``/``.

        So a user may name the folder around the data set, the folder in it, or the archive. Raises DataError if no path
        has the marker.
        """
        for path in files.paths:
            place = f"/{path}".find(f"/{marker}")
            if place >= 0:
                return path[:place]
        raise self.absent(files, marker)

    def absent(self, files: ImageFiles, what: str) -> DataError:
        """Return the error for files that are not of this data set."""
        return DataError(f"{files.name}: no {what} in it, so it is not {self.name} as published. {self.advice}")

    @property
    def advice(self) -> str:
        """A sentence on where to get the data set and what it looks like."""
        return f"Get {self.name} from {self.homepage} and unpack it, so that there is {self.layout}; pass its folder."


def images_in(files: ImageFiles, folder: str) -> list[str]:
    """Return the images in a folder and its subfolders, sorted."""
    return [path for path in files.paths if path.startswith(folder) and is_image_name(path)]


def lines_of(files: ImageFiles, path: str) -> list[str]:
    """Return the lines of a text file that are not blank."""
    return [line for line in files.read(path).decode("utf-8", "replace").splitlines() if line.strip()]


def folders_in(files: ImageFiles, root: str, names: Iterable[str]) -> list[str]:
    """Return the names that are folders in ``root``."""
    folders = {path[len(root) :].partition("/")[0] for path in files.paths if path.startswith(root)}
    return [name for name in names if name in folders]
