"""Describe one image with learned words: the words at its points, its row, and the columns of the row."""

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
    """The part of ``ImageHistograms`` that describes one image once words are learned.

    Columns of a row are ordered by descriptor, region, level, cell and word.
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
        """Return the row of one image.

        Parameters
        ----------
        image : ndarray of shape (H, W, 3), uint8
            The image; (H, W) is gray.
        mask : ndarray of shape (H, W) or None, default=None
            Region of each pixel, if ``n_regions`` is 2 or more.

        Returns
        -------
        ndarray of shape (columns,), float32
            The row.
        """
        check_is_fitted(self)
        image, mask = within(self.max_side, check_image(image), mask)
        pool = self._pyramid.pool
        return np.concatenate([pool(coded, n, image.shape, mask) for _, coded, n in self._coded(image)])

    def painted(
        self, image: np.ndarray, contributions: ArrayLike, mask: np.ndarray | None = None
    ) -> np.ndarray:
        """Spread contributions to the score of one image over the pixels that they come from.

        The pixels are those of the image as it is described, scaled down to ``max_side``. A contribution of a word that
        occurs goes to the pixels of its points; a contribution of an absent word is spread evenly over its cell, see
        ``Pyramid.painted``.

        Parameters
        ----------
        image : ndarray of shape (H, W, 3), uint8
            The image.
        contributions : array of shape (columns,)
            A contribution for each column of the row.
        mask : ndarray of shape (H, W) or None, default=None
            Region of each pixel, if ``n_regions`` is 2 or more.

        Returns
        -------
        ndarray of shape (H, W), float64
            Contributions by pixel, with the same sum.

        Raises
        ------
        DataError
            If there is not one contribution per column.

        Examples
        --------
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
                f"contributions must be one number per column, shape ({self.n_columns},); got shape {values.shape}."
            )
        picture = np.zeros(image.shape[:2])
        for columns, coded, n_words in self._coded(image):
            picture += self._pyramid.painted(values[columns], coded, n_words, image.shape, mask)
        return picture

    @property
    def n_columns(self) -> int:
        """Number of columns of a row."""
        return max(columns.stop for columns in self.blocks_.values())

    @property
    def coder(self) -> Coding:
        """The coding, as an object."""
        return CODINGS[self.coding] if isinstance(self.coding, str) else self.coding

    def coded(
        self, image: np.ndarray, descriptor: Descriptor, vocabulary: Vocabulary | None
    ) -> tuple[Coded, int]:
        """Return the words at the points of an image, which is not scaled down.

        Parameters
        ----------
        image : ndarray of shape (H, W, 3), uint8
            The image.
        descriptor : descriptor
            One of ``descriptors_``.
        vocabulary : Vocabulary or None
            The words of the descriptor, from ``vocabularies_``.

        Returns
        -------
        coded : Coded
            The points and their words.
        n_words : int
            Number of words of the descriptor.
        """
        if isinstance(descriptor, CodedDescriptor):
            return descriptor.coded(image), descriptor.n_words
        assert vocabulary is not None
        return self.coder.code(descriptor.points(image), vocabulary), len(vocabulary.centres)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Return the names of the columns, such as "sift 2x2 cell 3 word 17".

        Parameters
        ----------
        input_features : sequence of str or None, default=None
            Ignored.

        Returns
        -------
        ndarray of shape (columns,), object
            The names.
        """
        names = []
        for level, columns in self.levels_.items():
            n_words = self._n_words(self.names_.index(level.split()[0]))
            cells = range((columns.stop - columns.start) // n_words)
            names += [f"{level} cell {cell} word {word}" for cell in cells for word in range(n_words)]
        return np.array(names, dtype=object)

    def describe(self) -> str:
        """Return a summary such as "sift, 600 words; colour, 256 words; grids 1x1, 2x2"."""
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
        """Yield the columns, points and number of words of each descriptor of an image, not scaled down."""
        parts = zip(self.blocks_.values(), self.descriptors_, self.vocabularies_, strict=True)
        for columns, descriptor, vocabulary in parts:
            coded, n_words = self.coded(image, descriptor, vocabulary)
            yield columns, coded, n_words

    def _lay_out(self, pyramid: Pyramid) -> None:
        """Set the columns of descriptors and levels."""
        start = 0
        self.blocks_, self.levels_ = {}, {}
        for i, name in enumerate(self.names_):
            for level, columns in pyramid.levels(self._n_words(i)):
                self.levels_[f"{name} {level}"] = slice(start + columns.start, start + columns.stop)
            stop = start + pyramid.n_cells * self._n_words(i)
            self.blocks_[name] = slice(start, stop)
            start = stop
