"""Turn images into rows of histograms: descriptors, their words, a spatial pyramid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from chimap._errors import InputError
from chimap._messages import Message
from chimap._progress import shown
from chimap._types import ArrayLike, RandomState, Transformed
from chimap._validation import DataError, ParameterError, check_choice, check_positive
from chimap.data.source import choose_rows
from chimap.engines import Progress
from chimap.images.descriptors import CATALOGUE as DESCRIPTORS
from chimap.images.descriptors import Coded, Descriptor, LocalDescriptor
from chimap.images.descriptors.base import check_image, opencv, within
from chimap.images.pyramid import Pyramid
from chimap.images.reading.image_set import ImageSet
from chimap.images.reading.reader import ImageReader, counted
from chimap.images.vocabulary import CODINGS, Coding, Keep, Vocabulary, WordLearner, forget
from chimap.model_files import saved

Described: TypeAlias = str | Descriptor | Sequence[str | Descriptor] | Mapping[str, str | Descriptor]
"""Descriptors as users pass them: a name or an object, a sequence of these, or a mapping from names to these."""
Images: TypeAlias = "Sequence[np.ndarray] | ImageSet | ImageArrays"
"""Images in memory, or a set of image files."""


def described(descriptors: Described) -> dict[str, Descriptor]:
    """Return descriptors by name, given a name, a descriptor, a list of these or a mapping.

    A descriptor without a name is called by its class in lower case. Raises ValueError for an unknown name, for two
    descriptors of one name and for an empty list.
    """
    if isinstance(descriptors, Mapping):
        listed: list[tuple[str, str | Descriptor]] = list(descriptors.items())
    else:
        entries: Sequence[Any] = descriptors if isinstance(descriptors, list | tuple) else [descriptors]
        listed = [(d if isinstance(d, str) else type(d).__name__.lower(), d) for d in entries]
    by_name: dict[str, Descriptor] = {}
    for name, descriptor in listed:
        if isinstance(descriptor, str):
            check_choice(descriptor, Message("each of {descriptors}"), tuple(DESCRIPTORS))
            descriptor = DESCRIPTORS[descriptor]
        if not isinstance(descriptor, Descriptor):
            raise ParameterError(Message("each of {descriptors}"), descriptor, "a name or a descriptor")
        if name in by_name:
            raise InputError(
                f"descriptors has two of the name {name!r}; give a mapping from distinct names to descriptors."
            )
        by_name[name] = descriptor
    if not by_name:
        raise InputError(Message("{descriptors} must hold at least one descriptor; got none."))
    return by_name


class ImageArrays:
    """A sequence of arrays with the reading interface of an ``ImageSet``."""

    name = "images"

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self._arrays = arrays

    def __len__(self) -> int:
        return len(self._arrays)

    def where(self, i: int) -> str:
        """Return the name of image i for messages."""
        return f"image {i}"

    def open(self, i: int) -> tuple[np.ndarray, tuple[int, int]]:
        """Return image i as (H, W, 3) uint8, and its height and width."""
        image = check_image(self._arrays[i], self.where(i))
        return image, (image.shape[0], image.shape[1])

    def pixels(self, i: int, image: np.ndarray) -> np.ndarray:
        """Return the image that ``open`` returned, as it is."""
        return image


def as_images(X: Images) -> Any:
    """Return a set of images as it is, and a sequence of arrays wrapped so that it reads like a set."""
    return X if isinstance(X, ImageSet | ImageArrays) else ImageArrays(X)


class ImageHistograms(TransformerMixin, BaseEstimator):
    """Histograms of visual words over a spatial pyramid, one row per image.

    ``fit`` learns words from a sample of images, for the descriptors that need words; ``transform`` counts them.
    Several descriptors stand side by side in a row, whose columns are ordered by descriptor, region, level, cell and
    word. Each level of the pyramid of each descriptor sums to 1, or to 0
    where an image is too small to have points. The column of word w in cell c is the share of the level's points that
    lie in c and have word w (hard coding), or the sum of their shares in w (soft coding).

    Parameters
    ----------
    descriptors : str, descriptor, list or dict, default="sift"
        One or several of "sift", "sift-rgb", "sift-hsv", "sift-opponent", "hog", "hog-blocks", "phog", "colour" and
        "lbp", or objects of ``chimap.images`` such as ``SIFT(step=4)``. A dict gives them names.
    n_words : int, default=600
        Number of words of each vocabulary.
    coding : str or coding, default="hard"
        "hard", "soft" (shares of the 5 nearest words) or ``SoftCoding(...)``.
    grids : sequence of (rows, columns), default=((1, 1), (2, 2), (4, 4))
        Grids of the levels.
    n_regions : int, default=1
        Number of regions of an image that its mask distinguishes; each region has its own pyramid.
    max_side : int, default=480
        Images whose longer side has more pixels are scaled down to it first.
    n_sample : int, default=100000
        Number of descriptors that words are learned from.
    n_images : int, default=400
        Number of images that the sample is drawn from.
    learner : str, default="sklearn"
        "sklearn" (mini-batch k-means), or "faiss" where it is installed.
    sparse_output : bool, default=False
        Whether rows are CSR rather than dense.
    n_jobs : int or None, default=None
        Number of threads; None is all cores.
    random_state : int, RandomState or None, default=None
        Seed or generator for the sample and for k-means. None differs at each fit.
    verbose : bool, default=False
        Whether to show progress.

    Attributes
    ----------
    vocabularies_ : list of Vocabulary or None
        Words of each descriptor; None for a descriptor that needs none.
    blocks_ : dict of str to slice
        Columns of each descriptor by name, for ``HistogramClassifier("exp-chi2", blocks=...)``.
    levels_ : dict of str to slice
        Columns of each level of each descriptor by name.

    References
    ----------
    See the descriptors, ``Pyramid`` and ``SoftCoding``.

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 256, size=(6, 40, 50, 3), dtype=np.uint8)
    >>> histograms = ImageHistograms(["sift", "colour"], n_words=8, grids=((1, 1), (2, 2)), random_state=0)
    >>> histograms.fit_transform(images).shape, histograms.blocks_
    ((6, 1320), {'sift': slice(0, 40, None), 'colour': slice(40, 1320, None)})
    """

    file_kind: ClassVar[str] = "words"
    save = saved.save
    load = saved.Load()

    names_: list[str]
    descriptors_: list[Descriptor]
    vocabularies_: list[Vocabulary | None]
    blocks_: dict[str, slice]
    levels_: dict[str, slice]

    def __init__(
        self,
        descriptors: Described = "sift",
        *,
        n_words: int = 600,
        coding: str | Coding = "hard",
        grids: Sequence[tuple[int, int]] = ((1, 1), (2, 2), (4, 4)),
        n_regions: int = 1,
        max_side: int = 480,
        n_sample: int = 100_000,
        n_images: int = 400,
        learner: str = "sklearn",
        sparse_output: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.descriptors = descriptors
        self.n_words = n_words
        self.coding = coding
        self.grids = grids
        self.n_regions = n_regions
        self.max_side = max_side
        self.n_sample = n_sample
        self.n_images = n_images
        self.learner = learner
        self.sparse_output = sparse_output
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @saved.whole
    def fit(
        self, X: Images, y: ArrayLike | None = None, progress: Progress | None = None, keep: Keep = forget
    ) -> ImageHistograms:
        """Learn the words; broken files of an ``ImageSet`` are left out.

        Parameters
        ----------
        X : ImageSet or sequence of ndarray of shape (H, W, 3), uint8
            Images to learn from.
        y : object, default=None
            Ignored.
        progress : Progress or None, default=None
            Display of progress; None follows ``verbose``.
        keep : callable, default=forget
            ``keep(name, make)`` returns the arrays that ``make()`` returns, or those that it kept from an earlier call.
            The default keeps nothing.

        Returns
        -------
        ImageHistograms
            self

        Raises
        ------
        DataError
            If no image can be read, or the images are too small to have ``n_words`` distinct descriptors.
        """
        images = as_images(X)
        if not len(images):
            raise DataError("there are no images to learn words from; give at least one.")
        self._check_settings()
        descriptors, pyramid = described(self.descriptors), self._pyramid
        self.names_, self.descriptors_ = list(descriptors), list(descriptors.values())
        seed = int(check_random_state(self.random_state).randint(2**31))
        chosen = choose_rows(len(images), self.n_images, seed)
        self.vocabularies_ = []
        progress = progress or self._progress()
        with progress:
            for name, descriptor in descriptors.items():
                words = None
                if isinstance(descriptor, LocalDescriptor):
                    learner = WordLearner(
                        name, descriptor, self.n_words, self.n_sample, self.max_side, self.learner, seed, self.n_jobs
                    )
                    words = learner.words(images, chosen, progress, keep)
                self.vocabularies_.append(words)
        self._lay_out(pyramid)
        return self

    def transform(self, X: Images, masks: Sequence[np.ndarray] | None = None) -> Transformed:
        """Return the histograms of images.

        Parameters
        ----------
        X : ImageSet or sequence of ndarray of shape (H, W, 3), uint8
            n images.
        masks : sequence of ndarray of shape (H, W) or None, default=None
            Region of each pixel, if ``n_regions`` is 2 or more. None takes the masks of the ``ImageSet``, if it has
            any.

        Returns
        -------
        ndarray or CSR matrix of shape (n, columns), float32
            The rows.

        Raises
        ------
        ImageError
            If a file is broken; ``rows`` can leave it out.
        """
        check_is_fitted(self)
        images = as_images(X)
        progress = self._progress()
        with progress:
            progress.stage("describing", len(images), "images")
            rows = counted(self.rows(images, masks=masks, strict=True), progress)
            if self.sparse_output:
                return sp.vstack(
                    [sp.csr_matrix((0, self.n_columns), dtype=np.float32), *map(sp.csr_matrix, rows)], "csr"
                )
            out = np.empty((len(images), self.n_columns), np.float32)
            for i, row in enumerate(rows):
                out[i] = row
        return out

    def rows(
        self,
        images: Any,
        chosen: Sequence[int] | np.ndarray | None = None,
        masks: Sequence[np.ndarray] | None = None,
        *,
        strict: bool = False,
    ) -> ImageReader:
        """Iterate over pairs of an index i and the row of image i, computed by threads.

        Memory is the budget of ``ImageReader`` for decoded images, plus the work on an image of ``max_side`` on each
        thread.

        Parameters
        ----------
        images : ImageSet or sequence of ndarray of shape (H, W, 3), uint8
            The images.
        chosen : sequence of int or None, default=None
            Indices of the images to describe, in this order; None is all.
        masks : sequence of ndarray of shape (H, W) or None, default=None
            Region of each pixel, as in ``transform``.
        strict : bool, default=False
            Whether a broken image is an error. Otherwise it is left out, and the ``broken`` of the reader names it
            afterwards.

        Returns
        -------
        ImageReader
            Iterator of (i, row), with rows of shape (columns,), float32.
        """
        check_is_fitted(self)
        images = as_images(images)
        read_mask: Callable[[int], np.ndarray] | None = None if masks is None else masks.__getitem__
        if read_mask is None and self.n_regions > 1 and isinstance(images, ImageSet):
            read_mask = images.mask

        def work(i: int, image: np.ndarray) -> np.ndarray:
            return self.histogram(image, None if read_mask is None else read_mask(i))

        return ImageReader(images, work, rows=chosen, n_jobs=self.n_jobs, strict=strict)

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
        return np.concatenate([pool(coded, n, image.shape, mask) for _, coded, n in self.coded(image)])

    def painted(self, image: np.ndarray, contributions: ArrayLike, mask: np.ndarray | None = None) -> np.ndarray:
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
        for columns, coded, n_words in self.coded(image):
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

    def coded(self, image: np.ndarray) -> Iterator[tuple[slice, Coded, int]]:
        """Yield the columns of each descriptor, the points of an image with their words, and the number of words.

        Parameters
        ----------
        image : ndarray of shape (H, W, 3), uint8
            The image, which is not scaled down.
        """
        for i, columns in enumerate(self.blocks_.values()):
            yield columns, self.words_at(image, i), self._n_words(i)

    def words_at(self, image: np.ndarray, number: int) -> Coded:
        """Return the points of an image with their words, for one descriptor.

        Parameters
        ----------
        image : ndarray of shape (H, W, 3), uint8
            The image, which is not scaled down.
        number : int
            Number of the descriptor.
        """
        code = partial(self.coder.code, vocabulary=self.vocabularies_[number])  # type: ignore[arg-type]  # used if not None
        return self.descriptors_[number].coded_by(code, image)

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

    def _check_settings(self) -> None:
        opencv()
        for name in ("n_words", "max_side", "n_sample", "n_images"):
            check_positive(getattr(self, name), name, integer=True)
        if isinstance(self.coding, str):
            check_choice(self.coding, "coding", tuple(CODINGS))

    def _progress(self) -> Progress:
        return shown(verbose=True) if self.verbose else Progress()

    @property
    def _pyramid(self) -> Pyramid:
        return Pyramid(tuple(self.grids), self.n_regions)

    def _n_words(self, i: int) -> int:
        vocabulary = self.vocabularies_[i]
        return self.descriptors_[i].n_words_of(0 if vocabulary is None else len(vocabulary.centres))

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
