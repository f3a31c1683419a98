"""The columns of fitted image histograms: words at the points of an image, and the levels that they are counted in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.utils.validation import check_is_fitted

from chimap._types import ArrayLike
from chimap._validation import DataError
from chimap.images.coding import CATALOGUE as CODINGS
from chimap.images.coding import Coding
from chimap.images.descriptors import Coded, CodedDescriptor
from chimap.images.descriptors.base import check_image
from chimap.images.given import Descriptor
from chimap.images.pyramid import Pyramid
from chimap.images.resizing import within
from chimap.images.vocabulary import Vocabulary


class FittedWords:
    """The fitted side of ``ImageHistograms``: which word of which cell each column of a row counts.

    Columns are ordered by descriptor, region, level, cell and word.
    """

    coding: str | Coding
    grids: Sequence[tuple[int, int]]
    n_regions: int
    max_side: int
    names_: list[str]
    descriptors_: list[Descriptor]
    vocabularies_: list[Vocabulary | None]
    blocks_: dict[str, slice]
    levels_: dict[str, slice]

    def histogram(self, image: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        """The row (columns,) float32 of one image."""
        check_is_fitted(self)
        image, mask = within(self.max_side, check_image(image), mask)
        pool = self._pyramid.pool
        return np.concatenate([pool(coded, n, image.shape, mask) for _, coded, n in self._coded(image)])

    def painted(
        self, image: np.ndarray, contributions: ArrayLike, mask: np.ndarray | None = None
    ) -> np.ndarray:
        """Contributions (columns,) to the score of one image where they come from: (H, W) float64, of the same sum.

        Of the image as it is described: made smaller to ``max_side``. What a word adds goes to the pixels of its
        points, what it adds by its absence evenly to its cell; see ``Pyramid.painted``.

        >>> from chimap import ImageHistograms
        >>> image = np.random.default_rng(0).integers(0, 256, size=(40, 50, 3), dtype=np.uint8)
        >>> histograms = ImageHistograms("colour", grids=((1, 1), (2, 2))).fit([image])
        >>> histograms.painted(image, histograms.histogram(image)).sum().round(6)
        np.float64(2.0)
        """
        check_is_fitted(self)
        image, mask = within(self.max_side, check_image(image), mask)
        values = np.asarray(contributions, np.float64)
        if values.shape != (self.n_columns,):
            raise DataError(
                f"contributions must be one number a column, shape ({self.n_columns},); got shape {values.shape}."
            )
        picture = np.zeros(image.shape[:2])
        for columns, coded, n_words in self._coded(image):
            picture += self._pyramid.painted(values[columns], coded, n_words, image.shape, mask)
        return picture

    @property
    def n_columns(self) -> int:
        """Columns of a row."""
        return max(columns.stop for columns in self.blocks_.values())

    @property
    def coder(self) -> Coding:
        """What ``coding`` stands for."""
        return CODINGS[self.coding] if isinstance(self.coding, str) else self.coding

    def coded(
        self, image: np.ndarray, descriptor: Descriptor, vocabulary: Vocabulary | None
    ) -> tuple[Coded, int]:
        """The words at the points of an image (H, W, 3) uint8, as it is, and how many words there are."""
        if isinstance(descriptor, CodedDescriptor):
            return descriptor.coded(image), descriptor.n_words
        assert vocabulary is not None
        return self.coder.code(descriptor.points(image), vocabulary), len(vocabulary.centres)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Names of the columns: "sift 2x2 cell 3 word 17"."""
        names = []
        for level, columns in self.levels_.items():
            n_words = self._n_words(self.names_.index(level.split()[0]))
            cells = range((columns.stop - columns.start) // n_words)
            names += [f"{level} cell {cell} word {word}" for cell in cells for word in range(n_words)]
        return np.array(names, dtype=object)

    def describe(self) -> str:
        """'sift, 600 words; colour, 256 words; grids 1x1, 2x2'."""
        check_is_fitted(self)
        words = [f"{name}, {self._n_words(i)} words" for i, name in enumerate(self.names_)]
        return f"{'; '.join(words)}; grids {', '.join(f'{rows}x{columns}' for rows, columns in self.grids)}"

    @property
    def _pyramid(self) -> Pyramid:
        return Pyramid(tuple(self.grids), self.n_regions)

    def _n_words(self, i: int) -> int:
        vocabulary, descriptor = self.vocabularies_[i], self.descriptors_[i]
        return descriptor.n_words if isinstance(descriptor, CodedDescriptor) else len(vocabulary.centres)  # type: ignore[union-attr]

    def _coded(self, image: np.ndarray) -> Iterator[tuple[slice, Coded, int]]:
        """Columns, points and number of words of each descriptor of an image, as it is."""
        parts = zip(self.blocks_.values(), self.descriptors_, self.vocabularies_, strict=True)
        for columns, descriptor, vocabulary in parts:
            coded, n_words = self.coded(image, descriptor, vocabulary)
            yield columns, coded, n_words

    def _lay_out(self, pyramid: Pyramid) -> None:
        """Columns of descriptors and levels."""
        start = 0
        self.blocks_, self.levels_ = {}, {}
        for i, name in enumerate(self.names_):
            for level, columns in pyramid.levels(self._n_words(i)):
                self.levels_[f"{name} {level}"] = slice(start + columns.start, start + columns.stop)
            stop = start + pyramid.n_cells * self._n_words(i)
            self.blocks_[name] = slice(start, stop)
            start = stop
