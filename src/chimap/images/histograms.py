"""Turn images into rows of histograms: descriptors, their words, a spatial pyramid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from chimap._types import ArrayLike, RandomState, Transformed
from chimap._validation import DataError, check_choice, check_positive
from chimap.data.source import choose_rows
from chimap.engines import Progress, RichProgress
from chimap.images.coding import CATALOGUE as CODINGS
from chimap.images.coding import Coding
from chimap.images.descriptors import CodedDescriptor
from chimap.images.descriptors.base import opencv
from chimap.images.fitted_words import FittedWords
from chimap.images.given import Described, Images, as_images, described
from chimap.images.reading.reader import ImageReader, counted
from chimap.images.word_learner import Keep, WordLearner, forget
from chimap.model_files import model_file


class ImageHistograms(FittedWords, TransformerMixin, BaseEstimator):
    """Histograms of visual words over a spatial pyramid, one row per image.

    ``fit`` learns words from a sample of images, for the descriptors that need words; ``transform`` counts them.
    Several descriptors stand side by side in a row. Each level of the pyramid of each descriptor sums to 1, or to 0
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
        Number of regions of an image that its mask tells apart; each region has its own pyramid.
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
                if isinstance(descriptor, CodedDescriptor):
                    self.vocabularies_.append(None)
                    continue
                learner = WordLearner(
                    name, descriptor, self.n_words, self.n_sample, self.max_side, self.learner, seed, self.n_jobs
                )  # fmt: skip
                self.vocabularies_.append(learner.words(images, chosen, progress, keep))
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
                csr_rows = [sp.csr_matrix(row) for row in rows]
                return (
                    sp.vstack(csr_rows, format="csr")
                    if csr_rows
                    else sp.csr_matrix((0, self.n_columns), dtype=np.float32)
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
        if read_mask is None and self.n_regions > 1 and hasattr(images, "mask"):
            read_mask = images.mask

        def work(i: int, image: np.ndarray) -> np.ndarray:
            return self.histogram(image, None if read_mask is None else read_mask(i))

        return ImageReader(images, work, rows=chosen, n_jobs=self.n_jobs, strict=strict)

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the fitted histograms to a file, so that other images get the same words.

        The file is safetensors and JSON, without code.

        Parameters
        ----------
        path : str or Path
            File to write.
        overwrite : bool, default=False
            Whether an existing file is replaced.

        Raises
        ------
        FileExistsError
            If the path exists, unless ``overwrite``.
        """
        check_is_fitted(self)
        model_file.save(self, path, overwrite=overwrite, kind="words")

    @classmethod
    def load(cls, path: str | Path) -> ImageHistograms:
        """Read histograms that ``save`` wrote.

        Parameters
        ----------
        path : str or Path
            File to read.

        Returns
        -------
        ImageHistograms
            The fitted histograms.

        Raises
        ------
        DataError
            If the file is any other.
        """
        return model_file.load(path, kind="words")

    def _check_settings(self) -> None:
        opencv()
        for name in ("n_words", "max_side", "n_sample", "n_images"):
            check_positive(getattr(self, name), name, integer=True)
        if isinstance(self.coding, str):
            check_choice(self.coding, "coding", tuple(CODINGS))

    def _progress(self) -> Progress:
        return RichProgress() if self.verbose else Progress()
