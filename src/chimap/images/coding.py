"""From descriptors to words: one each, or shares of the nearest few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._validation import check_positive
from chimap.images.descriptors import Coded, Points
from chimap.images.vocabulary import Vocabulary


@dataclass(frozen=True)
class HardCoding:
    """Each point counts for its nearest word.

    Examples
    --------
    >>> from chimap.images.descriptors import Points
    >>> words = Vocabulary(np.float32([[0, 0], [4, 4]]), spread=1.0)
    >>> points = Points(np.float32([5]), np.float32([7]), np.float32([[2, 1]]))
    >>> HardCoding().code(points, words).words.tolist()
    [[0]]
    """

    def code(self, points: Points, vocabulary: Vocabulary) -> Coded:
        """The points and their words."""
        return Coded(points.x, points.y, vocabulary.nearest(points.vectors)[0])


@dataclass(frozen=True)
class SoftCoding:
    """Kernel codebook: each point counts, 1 in all, for its nearest words, as exp(-distance^2 / (2 width^2)).

    n_nearest: words. width: None takes the spread of the vocabulary.

    Source: van Gemert, Veenman, Smeulders and Geusebroek, Visual word ambiguity, 2010 (codeword uncertainty);
    Chatfield, Lempitsky, Vedaldi and Zisserman, The devil is in the details, 2011 (the nearest five).

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
        """The points, their words, and the share of each."""
        words, distances = vocabulary.nearest(points.vectors, min(self.n_nearest, len(vocabulary.centres)))
        width = self.width or vocabulary.spread or 1.0
        distances -= distances[:, :1]  # the nearest gets 1 before the division, however far it is
        weights = np.exp(distances / np.float32(-2 * width**2))
        weights /= weights.sum(axis=1, keepdims=True)
        return Coded(points.x, points.y, words, weights)


Coding = HardCoding | SoftCoding
CATALOGUE: dict[str, Coding] = {"hard": HardCoding(), "soft": SoftCoding()}
