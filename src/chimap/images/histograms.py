"""From images to rows of histograms: descriptors, their words, a pyramid."""

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
from chimap.images.word_learner import Keep, WordLearner, made
from chimap.model_files import model_file


class ImageHistograms(FittedWords, TransformerMixin, BaseEstimator):
    """Histograms of visual words over a spatial pyramid, one row an image; several descriptors side by side.

    ``fit`` learns words for the descriptors that need them, from a sample of images; ``transform`` counts them. Each
    level of the pyramid of each descriptor sums to 1 (to 0 where an image is too small to have points).

    Parameters
    ----------
    descriptors : one or a list of "sift", "sift-rgb", "sift-hsv", "sift-opponent", "hog", "hog-blocks", "phog",
        "colour", "lbp", or
        objects of ``chimap.images`` such as ``SIFT(step=4)``.
    n_words : of each vocabulary.
    coding : "hard", "soft" (shares of the 5 nearest words), or ``SoftCoding(...)``.
    grids : (rows, columns) of the levels.
    n_regions : parts of an image that its mask tells apart, each with a pyramid of its own.
    max_side : images whose longer side has more pixels are made smaller first.
    n_sample : descriptors that words are learned from. n_images : images that they are drawn from.
    learner : "sklearn", mini-batch k-means; or "faiss", where it is installed.
    sparse_output : CSR rows rather than dense ones.
    n_jobs : threads; None is all cores. verbose : whether to show progress.

    Learned: ``vocabularies_``, a ``Vocabulary`` a descriptor, None where it needs none; ``blocks_``, columns of each
    descriptor by name, for ``HistogramClassifier("exp-chi2", blocks=...)``; ``levels_``, columns of each level of each.

    The column of word w in cell c is the share of the level's points that lie in c and are of word w (hard words), or
    the sum of their shares in w (soft ones). Sources: see the descriptors, ``Pyramid`` and ``SoftCoding``.

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
        self, X: Images, y: ArrayLike | None = None, progress: Progress | None = None, keep: Keep = made
    ) -> ImageHistograms:
        """Learn the words from images X: an ``ImageSet``, or a sequence of arrays (H, W, 3) uint8; y is not used.

        keep: keep(name, make) gives the arrays that make() does, or those that it kept of an earlier call.

        Broken files of a set are passed over. Raises DataError where nothing is left, and for images that are too small
        to have so many descriptors.
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
        """Rows (n, columns) float32 of images X, dense or CSR.

        masks: region of each pixel, (H, W) each, for ``n_regions`` of two or more; an ``ImageSet`` with masks brings
        its own. Raises ImageError for a broken file; ``rows`` can leave them out.
        """
        check_is_fitted(self)
        images = as_images(X)
        progress = self._progress()
        with progress:
            progress.stage("describing", len(images), "images")
            rows = counted(self.rows(images, masks=masks, strict=True), progress)
            if self.sparse_output:
                parts = [sp.csr_matrix(row) for row in rows]
                return (
                    sp.vstack(parts, format="csr")
                    if parts
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
        """(i, row (columns,)) of the chosen images (None: all), in this order, by threads, as they are ready.

        Unless ``strict``, broken ones are left out and then named by the ``broken`` of the reader. Memory is a budget
        for what is decoded, and what an image of ``max_side`` needs on each thread.
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
        """Write what was learned, so that other images get the same words (safetensors and JSON; no code in it).

        Raises FileExistsError if the path exists, unless ``overwrite``.
        """
        check_is_fitted(self)
        model_file.save(self, path, overwrite=overwrite, kind="words")

    @classmethod
    def load(cls, path: str | Path) -> ImageHistograms:
        """What ``save`` wrote. Raises DataError for any other file."""
        return model_file.load(path, kind="words")

    def _check_settings(self) -> None:
        opencv()
        for name in ("n_words", "max_side", "n_sample", "n_images"):
            check_positive(getattr(self, name), name, integer=True)
        if isinstance(self.coding, str):
            check_choice(self.coding, "coding", tuple(CODINGS))

    def _progress(self) -> Progress:
        return RichProgress() if self.verbose else Progress()
