"""Visual words: centres of descriptors, found by k-means; how images teach them, and how points count for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from chimap import _loops
from chimap._messages import Message
from chimap._validation import DataError, check_choice, check_positive
from chimap.engines import Progress
from chimap.images.descriptors import Coded, LocalDescriptor, Points
from chimap.images.descriptors.base import check_image, within
from chimap.images.reading.reader import ImageReader, counted
from chimap.readers.io.files import needed

LEARNERS = ("sklearn", "faiss")
BLOCK_ROWS = 512  # vectors per block, so that its scores stay in cache


@dataclass(frozen=True)
class Vocabulary:
    """Words, as points in the space of the descriptors.

    Parameters
    ----------
    centres : ndarray of shape (words, dimensions), float32
        The words.
    spread : float
        Root of the mean squared distance of descriptors to their nearest word.

    Examples
    --------
    >>> words = Vocabulary(np.float32([[0, 0], [4, 4]]), spread=1.0)
    >>> words.nearest(np.float32([[1, 0], [3, 4]]))[0].ravel().tolist()
    [0, 1]
    """

    centres: np.ndarray
    spread: float

    def nearest(self, vectors: np.ndarray, k: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Find the k nearest words of each vector, nearest first.

        |v - c|^2 = |v|^2 - 2 (v . c - |c|^2 / 2), so the nearest words c of v are those with the largest
        v . c - |c|^2 / 2. These scores come from a matrix product, block by block.

        Parameters
        ----------
        vectors : ndarray of shape (n, dimensions), float32
            Descriptors.
        k : int, default=1
            Number of words to find for each vector.

        Returns
        -------
        words : ndarray of shape (n, k), int64
            Indices of the words.
        distances : ndarray of shape (n, k), float32
            Squared Euclidean distances to them.
        """
        words = np.empty((len(vectors), k), np.int64)
        values = np.empty((len(vectors), k), np.float32)
        halves = 0.5 * np.einsum("ij,ij->i", self.centres, self.centres)
        for first in range(0, len(vectors), BLOCK_ROWS):
            rows = slice(first, first + BLOCK_ROWS)
            scores = vectors[rows] @ self.centres.T
            scores -= halves
            if k == 1:
                words[rows, 0] = best = scores.argmax(axis=1)
                values[rows, 0] = scores[np.arange(len(best)), best]
            else:
                _loops.largest(scores, words[rows], values[rows])
        squares = np.einsum("ij,ij->i", vectors, vectors)
        return words, np.maximum(squares[:, None] - 2 * values, 0)


def learn_vocabulary(sample: np.ndarray, n_words: int, learner: str = "sklearn", seed: int = 0) -> Vocabulary:
    """Learn words by k-means on a sample of descriptors.

    Parameters
    ----------
    sample : ndarray of shape (n, dimensions), float32
        Descriptors.
    n_words : int
        Number of words to learn.
    learner : str, default="sklearn"
        "sklearn" is the mini-batch k-means of scikit-learn; "faiss" is the k-means of faiss, where it is installed.
    seed : int, default=0
        Seed of the random initialisation.

    Returns
    -------
    Vocabulary
        The words; its spread is estimated on the first 20,000 descriptors of the sample.

    Raises
    ------
    DataError
        If the sample has fewer distinct descriptors than words.
    ImportError
        If ``learner="faiss"`` and faiss is not installed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sample = np.repeat(np.float32([[0, 0], [4, 4]]), 50, axis=0) + rng.random((100, 2), np.float32)
    >>> sorted(learn_vocabulary(sample, 2).centres[:, 0].astype(int).tolist())
    [0, 4]
    """
    check_positive(n_words, "n_words", integer=True)
    check_choice(learner, "learner", LEARNERS)
    # Equal rows have equal sums under these random weights: sorting the sums counts distinct rows without sorting rows.
    weights = np.random.default_rng(0).random(sample.shape[1])
    different = np.unique(np.einsum("ij,j->i", sample, weights)).size
    if different < n_words:
        raise DataError(
            Message(
                "{n_words=!s}, but the images have only {:,} different descriptors to learn words from. Use fewer "
                "words, more or larger images, or a smaller step.",
                n_words,
                different,
            )
        )
    centres = _by_faiss(sample, n_words, seed) if learner == "faiss" else _by_sklearn(sample, n_words, seed)
    vocabulary = Vocabulary(np.ascontiguousarray(centres, dtype=np.float32), 0.0)
    distances = vocabulary.nearest(sample[:20000])[1]
    return Vocabulary(vocabulary.centres, float(np.sqrt(distances.mean(dtype=np.float64))))


def _by_sklearn(sample: np.ndarray, n_words: int, seed: int) -> np.ndarray:
    from sklearn.cluster import MiniBatchKMeans

    batch = max(1024, 4 * n_words)
    learner = MiniBatchKMeans(n_words, batch_size=batch, init_size=2 * batch, n_init=1, max_iter=20, random_state=seed)
    return learner.fit(sample).cluster_centers_


def _by_faiss(sample: np.ndarray, n_words: int, seed: int) -> np.ndarray:
    faiss = needed("faiss", "Words of learner=faiss", "faiss")
    learner = faiss.Kmeans(
        sample.shape[1], n_words, niter=20, seed=seed, min_points_per_centroid=1, max_points_per_centroid=len(sample)
    )
    learner.train(np.ascontiguousarray(sample, dtype=np.float32))
    return learner.centroids


def reservoir(parts: Iterable[np.ndarray], size: int, seed: int) -> np.ndarray:
    """Draw ``size`` rows uniformly at random from a stream of arrays, in one pass.

    Each row draws a random number, and the rows with the smallest numbers are kept. The sample does not depend on how
    the rows are divided into arrays.

    Parameters
    ----------
    parts : iterable of ndarray of shape (n_i, dimensions)
        The rows, array by array.
    size : int
        Number of rows to draw; all rows are kept if there are fewer.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    ndarray of shape (size, dimensions)
        The drawn rows, in the order of the stream.

    Raises
    ------
    DataError
        If there are no rows.

    Examples
    --------
    >>> reservoir([np.zeros((5, 2)), np.ones((5, 2))], size=3, seed=0).shape
    (3, 2)
    """
    check_positive(size, "size", integer=True)
    draws = np.random.default_rng(seed)
    kept: np.ndarray | None = None
    numbers = np.zeros(0)
    for part in parts:
        drawn = draws.random(len(part))
        lowest = drawn < (numbers.max() if numbers.size >= size else np.inf)
        kept = part[lowest] if kept is None else np.concatenate([kept, part[lowest]])
        numbers = np.concatenate([numbers, drawn[lowest]])
        if numbers.size > size:
            smallest = np.sort(np.argpartition(numbers, size - 1)[:size])
            kept, numbers = kept[smallest], numbers[smallest]
    if kept is None or not len(kept):
        raise DataError("there are no descriptors to learn words from: the images are too small. Use larger images.")
    return kept


Arrays = dict[str, np.ndarray]
Keep = Callable[[str, Callable[[], Arrays]], Arrays]


def forget(name: str, make: Callable[[], Arrays]) -> Arrays:
    """Return ``make()`` and keep nothing."""
    return make()


@dataclass(frozen=True)
class WordLearner:
    """Learner of the words of one descriptor; its settings are those of ``ImageHistograms``."""

    name: str
    descriptor: LocalDescriptor
    n_words: int
    n_sample: int
    max_side: int
    learner: str
    seed: int
    n_jobs: int | None

    def words(self, images: Any, chosen: np.ndarray, progress: Progress, keep: Keep) -> Vocabulary:
        """Return the vocabulary that is learned from descriptors of the ``chosen`` images.

        ``keep`` is that of ``ImageHistograms.fit``.
        """
        arrays = keep(f"words {self.name}", partial(self._learn, images, chosen, progress, keep))
        return Vocabulary(arrays["centres"], float(arrays["spread"][0]))

    def _learn(self, images: Any, chosen: np.ndarray, progress: Progress, keep: Keep) -> Arrays:
        sample = keep(f"sample {self.name}", partial(self._draw, images, chosen, progress))["vectors"]
        progress.stage(f"{self.name} words", None, "words")
        vocabulary = learn_vocabulary(sample, self.n_words, self.learner, self.seed)
        return {"centres": vocabulary.centres, "spread": np.array([vocabulary.spread])}

    def _draw(self, images: Any, chosen: np.ndarray, progress: Progress) -> Arrays:
        progress.stage(f"{self.name} sample", len(chosen), "images")
        most = max(64, 4 * self.n_sample // len(chosen))
        reader = ImageReader(images, partial(self._vectors, most), rows=chosen, n_jobs=self.n_jobs)
        return {"vectors": reservoir(counted(reader, progress), self.n_sample, self.seed)}

    def _vectors(self, most: int, i: int, image: np.ndarray) -> np.ndarray:
        """Return up to ``most`` descriptors of image i, drawn at random.

        Zero vectors are left out: they stand for flat places, which say nothing about words.
        """
        vectors = self.descriptor.points(within(self.max_side, check_image(image))[0]).vectors
        seen = np.flatnonzero(vectors.any(axis=1))
        if seen.size > most:
            seen = np.sort(np.random.default_rng([self.seed, i]).choice(seen, most, replace=False))
        return vectors[seen]


class Coding(ABC):
    """How points count for words."""

    @abstractmethod
    def code(self, points: Points, vocabulary: Vocabulary) -> Coded:
        """Return the points with the words that they count for.

        Parameters
        ----------
        points : Points
            n points, with vectors of the vocabulary's dimensions.
        vocabulary : Vocabulary
            The words.
        """


@dataclass(frozen=True)
class HardCoding(Coding):
    """Coding in which each point counts once, for its nearest word.

    Examples
    --------
    >>> from chimap.images.descriptors import Points
    >>> words = Vocabulary(np.float32([[0, 0], [4, 4]]), spread=1.0)
    >>> points = Points(np.float32([5]), np.float32([7]), np.float32([[2, 1]]))
    >>> HardCoding().code(points, words).words.tolist()
    [[0]]
    """

    def code(self, points: Points, vocabulary: Vocabulary) -> Coded:
        """Return the points with the index of their nearest word, ``words`` of shape (n, 1), and no weights."""
        return Coded(points.x, points.y, vocabulary.nearest(points.vectors)[0])


@dataclass(frozen=True)
class SoftCoding(Coding):
    """Coding in which each point is shared between its nearest words (a kernel codebook).

    The weight of a word is proportional to exp(-distance^2 / (2 width^2)), and the weights of a point sum to 1.

    Parameters
    ----------
    n_nearest : int, default=5
        Number of words that a point is shared between; all words if the vocabulary has fewer.
    width : float or None, default=None
        Standard deviation of the Gaussian, in the units of the descriptor. None takes the spread of the vocabulary
        (1 if the spread is 0).

    References
    ----------
    van Gemert, Veenman, Smeulders and Geusebroek, Visual word ambiguity, 2010 (codeword uncertainty). Chatfield,
    Lempitsky, Vedaldi and Zisserman, The devil is in the details, 2011 (the nearest five).

    Examples
    --------
    >>> from chimap.images.descriptors import Points
    >>> words = Vocabulary(np.float32([[0, 0], [4, 4]]), spread=1.0)
    >>> points = Points(np.float32([5]), np.float32([7]), np.float32([[2, 1]]))
    >>> coded = SoftCoding(n_nearest=2, width=3.0).code(points, words)
    >>> coded.words.tolist(), bool(coded.weights[0, 0] > coded.weights[0, 1])
    ([[0, 1]], True)
    """

    n_nearest: int = 5
    width: float | None = None

    def __post_init__(self) -> None:
        check_positive(self.n_nearest, "n_nearest", integer=True)
        if self.width is not None:
            check_positive(self.width, "width")

    def code(self, points: Points, vocabulary: Vocabulary) -> Coded:
        """Return the points with ``words`` and ``weights`` of shape (n, n_nearest), nearest word first."""
        words, distances = vocabulary.nearest(points.vectors, min(self.n_nearest, len(vocabulary.centres)))
        width = self.width or vocabulary.spread or 1.0
        distances -= distances[:, :1]  # the nearest word weighs 1, so that far points do not underflow
        weights = np.exp(distances / np.float32(-2 * width**2))
        weights /= weights.sum(axis=1, keepdims=True)
        return Coded(points.x, points.y, words, weights)


CODINGS: dict[str, Coding] = {"hard": HardCoding(), "soft": SoftCoding()}
