"""Learn the words of a descriptor from a sample of images; intermediate results may be kept, to resume from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from chimap.engines import Progress
from chimap.images.descriptors import LocalDescriptor
from chimap.images.descriptors.base import check_image
from chimap.images.reading.reader import ImageReader, counted
from chimap.images.resizing import within
from chimap.images.vocabulary import Vocabulary, learn_vocabulary, reservoir

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
