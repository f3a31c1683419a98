"""Options that set how images become histograms, shared by the commands that read images."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from chimap._errors import InputError
from chimap.cli.support import flag_values, options
from chimap.cli.support.declared import default, names

if TYPE_CHECKING:
    from chimap.images import ImageHistograms


@dataclasses.dataclass(frozen=True)
class ImageSettings:
    """The options for images and their defaults."""

    descriptors: Annotated[
        str,
        options.value(
            "NAMES",
            f"Image descriptors, separated by commas: {', '.join(names('images/descriptors/__init__.py'))}.",
        ),
    ] = default("descriptors", "ImageHistograms")
    words: Annotated[int, options.value("N", "Number of visual words of each descriptor.")] = default(
        "n_words", "ImageHistograms"
    )
    coding: Annotated[
        str,
        options.value(
            "NAME", "Visual words that each point counts for: hard (the nearest) or soft (the 5 nearest)."
        ),
    ] = default("coding", "ImageHistograms")
    grids: Annotated[
        str,
        options.value(
            "GRIDS",
            "Grids of cells in which words are counted, as ROWSxCOLUMNS for each level of the pyramid.",
        ),
    ] = ",".join(f"{rows}x{columns}" for rows, columns in default("grids", "ImageHistograms"))
    step: Annotated[int, options.value("PIXELS", "Distance between neighbouring SIFT points.")] = default(
        "step", "SIFT"
    )
    sizes: Annotated[str, options.value("PIXELS", "Width of a SIFT bin at each scale.")] = ",".join(
        map(str, default("sizes", "SIFT"))
    )
    part: ImagePart = None
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at a broken image instead of leaving it out.")
    ] = False

    def check(self) -> None:
        """Raise ValueError, naming the flag, before any image is read, for settings that cannot work."""
        from chimap.images.coding import CATALOGUE as CODINGS
        from chimap.images.descriptors import CATALOGUE

        names = flag_values.listed(self.descriptors)
        unknown = [name for name in names if name not in CATALOGUE]
        if unknown or not names or len(set(names)) < len(names):
            raise InputError(
                f"--descriptors must be different names among {', '.join(CATALOGUE)}, with commas; got "
                f"{self.descriptors!r}."
            )
        flag_values.check_known(self.coding, CODINGS, "--coding")
        flag_values.check_least(self.words, "--words")
        flag_values.check_least(self.step, "--step")
        flag_values.whole_numbers(self.sizes, "--sizes")
        grids_of(self.grids)

    def check_unused(self, data: str) -> None:
        """Raise ValueError, naming the first one, if image options are set but DATA holds no images."""
        for field in dataclasses.fields(self):
            if getattr(self, field.name) != field.default:
                raise InputError(
                    f"--{field.name} is for images, but {data} holds rows of bins; leave it out."
                )

    def histograms(self, seed: int, jobs: int | None) -> ImageHistograms:
        """Return the unfitted histograms of these settings."""
        from chimap.images import SIFT, ImageHistograms
        from chimap.images.descriptors import CATALOGUE

        descriptors = {}
        sizes = tuple(flag_values.whole_numbers(self.sizes, "--sizes"))
        for name in flag_values.listed(self.descriptors):
            descriptor = CATALOGUE[name]
            if isinstance(descriptor, SIFT):
                descriptor = dataclasses.replace(descriptor, step=self.step, sizes=sizes)
            descriptors[name] = descriptor
        return ImageHistograms(
            descriptors,
            n_words=self.words,
            coding=self.coding,
            grids=grids_of(self.grids),
            n_jobs=jobs,
            random_state=seed,
        )


def grids_of(text: str) -> tuple[tuple[int, int], ...]:
    """Return the (rows, columns) of each grid. Raise ValueError, naming the flag, for bad text.

    >>> grids_of("1x1, 3x1")
    ((1, 1), (3, 1))
    """
    grids = []
    for word in flag_values.listed(text) or [text]:
        rows, _, columns = word.partition("x")
        if not (rows.isdecimal() and columns.isdecimal() and int(rows) and int(columns)):
            raise InputError(f"--grids must be ROWSxCOLUMNS with commas, such as 1x1,2x2,3x1; got {word!r}.")
        grids.append((int(rows), int(columns)))
    return tuple(grids)


ImagePart = Annotated[
    str | None,
    options.optional("NAME", "Part of a split image data set to use, such as train.", "--part"),
]
