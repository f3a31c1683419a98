"""Coding: turn descriptors into words, one word each or shares of the nearest few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._validation import check_positive
from chimap.images.descriptors import Coded, Points
from chimap.images.vocabulary import Vocabulary


@dataclass(frozen=True)
class HardCoding:
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
        """Return the points with the index of their nearest word.

        Parameters
        ----------
        points : Points
            n points, with vectors of the vocabulary's dimensions.
        vocabulary : Vocabulary
            The words.

        Returns
        -------
        Coded
            The n points, with ``words`` of shape (n, 1) and no weights.
        """
        return Coded(points.x, points.y, vocabulary.nearest(points.vectors)[0])


@dataclass(frozen=True)
class SoftCoding:
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
        """Return the points with their nearest words and the share of each word.

        Parameters
        ----------
        points : Points
            n points, with vectors of the vocabulary's dimensions.
        vocabulary : Vocabulary
            The words.

        Returns
        -------
        Coded
            The n points, with ``words`` and ``weights`` of shape (n, n_nearest), nearest word first.
        """
        words, distances = vocabulary.nearest(points.vectors, min(self.n_nearest, len(vocabulary.centres)))
        width = self.width or vocabulary.spread or 1.0
        distances -= distances[:, :1]  # the nearest word weighs 1, so that far points do not underflow
        weights = np.exp(distances / np.float32(-2 * width**2))
        weights /= weights.sum(axis=1, keepdims=True)
        return Coded(points.x, points.y, words, weights)


Coding = HardCoding | SoftCoding
CATALOGUE: dict[str, Coding] = {"hard": HardCoding(), "soft": SoftCoding()}
