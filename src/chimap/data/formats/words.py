"""Texts as counts of their words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, pairwise

import numpy as np

from chimap import _arrays
from chimap import _sparse as sp
from chimap._messages import Message
from chimap._unicode import composed
from chimap._validation import DataError, check_choice
from chimap.data.formats.fields import Fields, Reading
from chimap.data.formats.records import why_no_text

_FEWEST_TEXTS = 10  # fewer texts may well have no word in common
_MOST_WORDS_COUNTED = 2**21  # most distinct words that are counted at a time


@cache
def _runs(fewest: int) -> re.Pattern[str]:
    """Return the pattern of runs of at least so many letters, digits and marks.

    Python's ``\\w`` leaves out the marks that letters of many scripts have; neither do joiners end a word.
    """
    marks = "".join(chr(code) for code in range(0x300, 0x20000) if unicodedata.category(chr(code))[0] == "M")
    return re.compile(rf"\w[\w{re.escape(marks)}\u200c\u200d]{{{fewest - 1},}}")


def words_in(text: str) -> list[str]:
    """Return the words of a text, of two characters or more, in lower case.

    >>> words_in("A fox, 2 हिन्दी")
    ['fox', 'हिन्दी']
    """
    return _runs(2).findall(composed(text.lower()))


def characters_in(text: str) -> list[str]:
    """Return the characters of a text and the pairs of neighbours in its words, in lower case.

    >>> characters_in("天安门!")
    ['天', '安', '门', '天安', '安门']
    """
    runs = _runs(1).findall(composed(text.lower()))
    return [*chain(*runs), *("".join(pair) for run in runs for pair in pairwise(run))]


TOKENS: dict[str, Callable[[str], list[str]]] = {"words": words_in, "characters": characters_in}
"""What is counted in a text, by the name of the setting ``tokens``."""


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
    tokens : {"words", "characters"}, default="words"
        What is counted. "words" are runs of letters, digits and the marks that belong to them, as vowels in Hindi and
        Thai. "characters", for texts without blanks between words, are the characters of such runs, and pairs of
        neighbours.

    Raises
    ------
    DataError
        For texts without a word in common.

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
    tokens: str = "words"

    def __post_init__(self) -> None:
        object.__setattr__(self, "vocabulary", tuple(map(str, self.vocabulary)))
        check_choice(self.tokens, "tokens", [*TOKENS])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the bins, the vocabulary."""
        return self.vocabulary

    def learned(self, fields: Iterator[Fields], where: str) -> WordCounts:
        """Return the reading with the words of all texts, in alphabetical order."""
        words_of, rows_with = TOKENS[self.tokens], Counter[str]()
        unread: object = ""
        for texts in fields:
            for text in texts:
                if isinstance(text, str):
                    rows_with.update({*words_of(text)})
                else:
                    unread = text
            if len(rows_with) > _MOST_WORDS_COUNTED:
                rows_with = Counter({word: count for word, count in rows_with.items() if count > 1})
        common = [(-count, word) for word, count in rows_with.items() if count >= self.least_rows]
        if not common:
            raise DataError(
                Message(
                    "{}, column {!r}: no word is in {} texts or more{}. Is this the column of text? If it has no "
                    "blanks between words, count its characters with {tokens='characters'}.",
                    where,
                    self.column,
                    self.least_rows,
                    "" if unread == "" else f", and one of them cannot be read: {why_no_text(unread)}",
                )
            )
        chosen = sorted(word for _, word in sorted(common)[: self.most_words])
        return replace(self, vocabulary=tuple(chosen))

    def rows(self, fields: Fields, first: int, where: str) -> tuple[sp.csr_matrix, dict[int, str]]:
        """Return the counts of known words, and why others are no text; other words are skipped."""
        unread: dict[int, str] = {}
        places = {composed(word): place for place, word in enumerate(self.vocabulary)}
        counts: list[int] = []
        columns: list[int] = []
        borders = [0]
        for row, text in enumerate(fields):
            if not isinstance(text, str):
                unread[row] = why_no_text(text)
                borders.append(len(columns))
                continue
            known = Counter(places[word] for word in TOKENS[self.tokens](text) if word in places)
            counts += known.values()
            columns += known.keys()
            borders.append(len(columns))
        csr = (np.array(counts, self.dtype), np.array(columns, np.int32), np.array(borders, np.int32))
        return _arrays.as_csr(sp.csr_matrix(csr, shape=(len(fields), len(self.vocabulary)))), unread

    def doubts(self, n_unknown: int, n_texts: int, where: str) -> tuple[str, ...]:
        """Return a note if most texts have no word that is counted.

        Parameters
        ----------
        n_unknown, n_texts : int
            Number of records without any of the bins, and of all records.
        where : str
            Name of the data.
        """
        if self.tokens != "words" or n_texts < _FEWEST_TEXTS or n_unknown <= n_texts / 2:
            return ()
        note = Message(
            "{}, column {!r}: {:,} of {:,} texts have no word that others have. If they have no blanks between words, "
            "count their characters with {tokens='characters'}.",
            where,
            self.column,
            n_unknown,
            n_texts,
        )
        return (note,)
