"""Visual words: centres of descriptors by k-means, and the words that are nearest to a descriptor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from chimap import _loops
from chimap._validation import DataError, check_choice, check_positive
from chimap.data.io.files import needed

LEARNERS = ("sklearn", "faiss")
_ROWS = 512  # whose distances to all words stay in cache


@dataclass(frozen=True)
class Vocabulary:
    """Words as points among the descriptors.

    centres: (words, dimensions) float32. spread: root of the mean square distance of descriptors to their nearest word.

    Examples
    --------
    >>> words = Vocabulary(np.float32([[0, 0], [4, 4]]), spread=1.0)
    >>> words.nearest(np.float32([[1, 0], [3, 4]]))[0].ravel().tolist()
    [0, 1]
    """

    centres: np.ndarray
    spread: float

    def nearest(self, vectors: np.ndarray, k: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Words (n, k) and squared distances (n, k) float32 of the k nearest words of vectors (n, dimensions), nearest
        first.

        Of two words the nearer to v is the one with the larger v . c - |c|^2 / 2: a matrix product, by blocks.
        """
        words = np.empty((len(vectors), k), np.int64)
        values = np.empty((len(vectors), k), np.float32)
        halves = 0.5 * np.einsum("ij,ij->i", self.centres, self.centres)
        for first in range(0, len(vectors), _ROWS):
            rows = slice(first, first + _ROWS)
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
    """k-means of a sample (n, dimensions) float32: mini-batch k-means of scikit-learn, or faiss where it is installed.

    Raises DataError for fewer different descriptors than words, ImportError without faiss.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sample = np.repeat(np.float32([[0, 0], [4, 4]]), 50, axis=0) + rng.random((100, 2), np.float32)
    >>> sorted(learn_vocabulary(sample, 2).centres[:, 0].astype(int).tolist())
    [0, 4]
    """
    check_positive(n_words, "n_words", integer=True)
    check_choice(learner, "learner", LEARNERS)
    # equal rows have equal sums with these weights: a sort of numbers in place of one of rows
    weights = np.random.default_rng(0).random(sample.shape[1])
    different = np.unique(np.einsum("ij,j->i", sample, weights)).size
    if different < n_words:
        raise DataError(
            f"n_words={n_words}, but the images have only {different:,} different descriptors to learn words from. "
            "Take fewer words, more or larger images, or a smaller step."
        )
    centres = _by_faiss(sample, n_words, seed) if learner == "faiss" else _by_sklearn(sample, n_words, seed)
    vocabulary = Vocabulary(np.ascontiguousarray(centres, dtype=np.float32), 0.0)
    distances = vocabulary.nearest(sample[:20000])[1]
    return Vocabulary(vocabulary.centres, float(np.sqrt(distances.mean(dtype=np.float64))))


def _by_sklearn(sample: np.ndarray, n_words: int, seed: int) -> np.ndarray:
    from sklearn.cluster import MiniBatchKMeans

    batch = max(1024, 4 * n_words)
    learner = MiniBatchKMeans(
        n_words, batch_size=batch, init_size=2 * batch, n_init=1, max_iter=20, random_state=seed
    )
    return learner.fit(sample).cluster_centers_


def _by_faiss(sample: np.ndarray, n_words: int, seed: int) -> np.ndarray:
    faiss = needed("faiss", "Words of learner=faiss", "faiss")
    learner = faiss.Kmeans(
        sample.shape[1],
        n_words,
        niter=20,
        seed=seed,
        min_points_per_centroid=1,
        max_points_per_centroid=len(sample),
    )
    learner.train(np.ascontiguousarray(sample, dtype=np.float32))
    return learner.centroids


def reservoir(parts: Iterable[np.ndarray], size: int, seed: int) -> np.ndarray:
    """``size`` rows drawn uniformly from all parts (all, if there are fewer), which are seen once.

    Each row draws a number, and the rows of the smallest numbers stay: the same for the same parts, however many.

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
            stay = np.sort(np.argpartition(numbers, size - 1)[:size])
            kept, numbers = kept[stay], numbers[stay]
    if kept is None or not len(kept):
        raise DataError(
            "there are no descriptors to learn words from: the images are too small. Use larger ones."
        )
    return kept
