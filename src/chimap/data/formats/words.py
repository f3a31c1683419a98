"""Texts as counts of their words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from chimap import _sparse as sp
from chimap._validation import DataError
from chimap.data.formats.fields import Fields, Reading

_MOST_COUNTED = 2**21  # most distinct words that are counted at a time


@dataclass(frozen=True)
class WordCounts(Reading):
    """Counts of words, as scikit-learn's ``CountVectorizer`` counts them: in lower case, of two characters or more.

    Parameters
    ----------
    column : str, default="text"
        Name of the column of text.
    vocabulary : tuple of str, default=()
        The words that are counted; () learns them.
    least_rows : int, default=2
        Learn only words that occur in at least this many texts: a word of a single text says nothing about others.
    most_words : int, default=100000
        Learn at most this many words: those that occur in the most texts.

    Raises
    ------
    DataError
        For missing texts, and for texts without a word in common.

    References
    ----------
    scikit-learn, User Guide, 6.2.3, "Text feature extraction".

    Examples
    --------
    >>> texts = ["a red fox", "The red hen", "a hen"]
    >>> source = WordCounts().source(texts)
    >>> source.column_names, next(source.chunks(3)).X.toarray().tolist()
    (('hen', 'red'), [[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    """

    column: str = "text"
    vocabulary: tuple[str, ...] = ()
    least_rows: int = 2
    most_words: int = 100_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "vocabulary", tuple(map(str, self.vocabulary)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the bins, the vocabulary."""
        return self.vocabulary

    def learned(self, fields: Iterator[Fields], where: str) -> WordCounts:
        """Return the reading with the words of all texts, in alphabetical order."""
        from sklearn.feature_extraction.text import CountVectorizer  # slow to import, and only text needs it

        words_of, rows_with, first = CountVectorizer().build_analyzer(), Counter[str](), 0
        for texts in fields:
            _check(texts, first, self.column, where)
            first += len(texts)
            for text in texts:
                rows_with.update({*words_of(text)})
            if len(rows_with) > _MOST_COUNTED:
                rows_with = Counter({word: count for word, count in rows_with.items() if count > 1})
        common = [(-count, word) for word, count in rows_with.items() if count >= self.least_rows]
        if not common:
            raise DataError(
                f"{where}, column {self.column!r}: no word is in {self.least_rows} texts or more. Is this the "
                "column of text?"
            )
        chosen = sorted(word for _, word in sorted(common)[: self.most_words])
        return replace(self, vocabulary=tuple(chosen))

    def rows(self, fields: Fields, first: int, where: str) -> sp.csr_matrix:
        """Return the counts of known words; other words are skipped."""
        _check(fields, first, self.column, where)
        from sklearn.feature_extraction.text import CountVectorizer

        counted = CountVectorizer(vocabulary=self._places, dtype=np.float32).transform(fields)
        return sp.csr_matrix(counted)

    @property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.vocabulary)}


def _check(texts: Fields, first: int, column: str, where: str) -> None:
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(
                f"{where}, record {first + row}: {column!r} is {text!r}, expected text. Fill it, or leave the record "
                "out."
            )
