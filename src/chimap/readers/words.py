"""Texts as counts of their words, or of neighbours among their words or characters."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import islice
from numbers import Integral
from typing import ClassVar, NamedTuple

import numpy as np

from chimap import _arrays
from chimap import _sparse as sp
from chimap._memory import format_bytes, parse_memory, room_in
from chimap._messages import Message
from chimap._unicode import composed
from chimap._validation import AUTO, DataError, ParameterError, check_choice, check_positive
from chimap.data.reading import Fields
from chimap.readers.fields import FieldReading
from chimap.readers.records import why_no_text

_FEWEST_TEXTS = 10  # fewer texts may well have no word in common
_BYTES_OF_ENTRY = 80  # of a word while it is counted, besides the word itself: its place in the table, and its count
_BUCKETS = 2**18  # that words are hashed to if there are too many to be kept
_BUCKET = "bucket "
_WORDS_AND_PAIRS = (1, 2)


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


class Tokens(NamedTuple):
    """What is counted in a text.

    Parameters
    ----------
    runs : callable
        Returns the runs of a text: sequences of words or characters that are neighbours of each other.
    joint : str
        What stands between neighbours in the name of several.
    ngrams : tuple of int
        How many neighbours are counted together, at least and at most, unless the user says so.
    """

    runs: Callable[[str], Sequence[Sequence[str]]]
    joint: str
    ngrams: tuple[int, int]


TOKENS = {
    "words": Tokens(lambda text: [words_in(text)], " ", (1, 1)),
    "characters": Tokens(lambda text: _runs(1).findall(composed(text.lower())), "", (1, 2)),
    "symbols": Tokens(lambda text: composed(text).split(), "", (1, 3)),
}
"""What is counted in a text, by the name of the setting ``tokens``."""


def tokens_in(text: str, kind: str = "words", ngrams: tuple[int, int] | None = None) -> list[str]:
    """Return what is counted in a text: from the fewest to the most neighbours together.

    >>> tokens_in("A red fox, a fox", ngrams=(1, 2))
    ['red', 'fox', 'fox', 'red fox', 'fox fox']
    >>> tokens_in("天安门!", "characters"), tokens_in("C(=O)N", "symbols", (2, 2))
    (['天', '安', '门', '天安', '安门'], ['C(', '(=', '=O', 'O)', ')N'])
    """
    tokens = TOKENS[kind]
    fewest, most = ngrams or tokens.ngrams
    runs = tokens.runs(text)
    return [
        tokens.joint.join(run[start : start + n])
        for run in runs
        for n in range(fewest, most + 1)
        for start in range(len(run) - n + 1)
    ]


@dataclass(frozen=True)
class WordCounts(FieldReading):
    """Counts of words, as scikit-learn's ``CountVectorizer`` counts them: in lower case, of two characters or more.

    Parameters
    ----------
    column : str, default="text"
        Name of the column of text.
    vocabulary : tuple of str, default=()
        The words that are counted; () learns them.
    min_count : int, default=2
        Learn only words that occur in at least this many texts: a word of a single text says nothing about others.
    most_words : int, default=100000
        Learn at most this many words: those that occur in the most texts.
    tokens : {"words", "characters", "symbols"}, default="words"
        What is counted. "words" are runs of letters, digits and the marks that belong to them, as vowels in Hindi and
        Thai. "characters", for texts without blanks between words, are the characters of such runs. "symbols" are all
        characters but blanks, in upper and lower case: of SMILES, say, or of sequences.
    ngrams : tuple of two int, "auto" or None, default=None
        How many neighbours are counted together, at least and at most: (1, 2) counts words and pairs of neighbours.
        "auto" counts pairs of words where a fit finds that they predict better: ``fit.optional`` says how. None is
        (1, 1) for words, (1, 2) for characters and (1, 3) for symbols.
    memory : str or int, default="1GiB"
        Memory budget in which words are counted before the vocabulary is known, as that of a fit. Where it is too
        small, words of a single text so far are forgotten, and where that is not enough, words are hashed.
    n_buckets : int or None, default=None
        Hash words to this many buckets, of which those of at least ``min_count`` texts are counted and are the
        vocabulary; None keeps words by name, unless the memory is too small.
    n_optional : int, default=0
        How many of the last names are pairs of words that a fit may do without, of ngrams="auto".

    Raises
    ------
    DataError
        For texts without a word in common.

    References
    ----------
    scikit-learn, User Guide, 6.2.3, "Text feature extraction". Weinberger, Dasgupta, Langford, Smola and Attenberg,
    Feature hashing for large scale multitask learning (2009); no signs are drawn here, since counts are not below 0.

    Examples
    --------
    >>> texts = ["a red fox", "The red hen", "a hen"]
    >>> source = WordCounts().source(texts)
    >>> source.column_names, next(source.chunks(3)).X.toarray().tolist()
    (('hen', 'red'), [[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    """

    column: str = "text"
    vocabulary: tuple[str, ...] = ()
    min_count: int = 2
    most_words: int = 100_000
    tokens: str = "words"
    ngrams: tuple[int, int] | str | None = None
    memory: str | int = "1GiB"
    n_buckets: int | None = None
    n_optional: int = 0
    optional_name: ClassVar[str] = "pairs of words"
    known_of_all: ClassVar[str] = (
        "Which words are counted, and whether pairs of them are if a fit settled that, was decided by all its rows"
    )
    notes: tuple[str, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "vocabulary", tuple(map(str, self.vocabulary)))
        check_choice(self.tokens, "tokens", [*TOKENS])
        check_positive(self.min_count, "min_count", integer=True)
        check_positive(self.most_words, "most_words", integer=True)
        if self.n_buckets is not None:
            check_positive(self.n_buckets, "n_buckets", integer=True)
        parse_memory(self.memory)
        if self.ngrams == AUTO and (self.tokens != "words" or self.n_buckets is not None):
            raise ParameterError("ngrams", self.ngrams, "two whole numbers; 'auto' is for words that are not hashed")
        if self.ngrams not in (None, AUTO):
            object.__setattr__(self, "ngrams", checked_ngrams(self.ngrams))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the bins, the vocabulary."""
        return self.vocabulary

    def _tokens_in(self, text: str) -> list[str]:
        return tokens_in(text, self.tokens, _WORDS_AND_PAIRS if isinstance(self.ngrams, str) else self.ngrams)

    def settled(self, keeps_optional: bool) -> WordCounts:
        """Return the reading that counts words, and pairs of them too if so."""
        if self.ngrams != AUTO:
            return self
        n_names = len(self.vocabulary) - (0 if keeps_optional else self.n_optional)
        ngrams = _WORDS_AND_PAIRS if keeps_optional else TOKENS["words"].ngrams
        return replace(self, vocabulary=self.vocabulary[:n_names], ngrams=ngrams, n_optional=0)

    def learned(self, fields: Iterator[Fields], where: str) -> WordCounts:
        """Return the reading with the words of all texts in alphabetical order, or the buckets of their hashes.

        Pairs of "auto" follow the words.
        """
        if self.ngrams == AUTO:
            return self._with_pairs(fields, where)
        counted, unread = _Counted(room_in(parse_memory(self.memory)) // 2, self.n_buckets), ""
        for texts in fields:
            counted.add(self._tokens_in(text) for text in texts if isinstance(text, str))
            for text in texts:
                if not isinstance(text, str):
                    unread = f", and one of them cannot be read: {why_no_text(text)}"
        rows_with = counted.rows_with()
        common = [(-count, word) for word, count in rows_with if count >= self.min_count]
        if not common:
            word, most = max(rows_with, key=lambda entry: entry[1], default=("", 0))
            raise DataError(
                Message(
                    "{}, column {!r}: no word is in {} texts or more{}{}. Is this the column of text? If it has no "
                    "blanks between words, count its characters with {tokens='characters'}; for rarer words, lower "
                    "{min_count}.",
                    where,
                    self.column,
                    self.min_count,
                    unread,
                    f"; the most common, {word!r}, is in {most}" if most else counted.why_none,
                )
            )
        notes = [*counted.notes(where)]
        if counted.n_buckets is None:
            common, told = self._in_most_texts(common, "words", where)
            notes += told
        reading = replace(self, vocabulary=tuple(sorted(word for _, word in common)), n_buckets=counted.n_buckets)
        return reading._with_notes(notes)

    def _with_pairs(self, fields: Iterator[Fields], where: str) -> WordCounts:
        """Return the reading with the words of all texts, and with pairs of them behind these if words are not hashed.

        Pairs are counted within half of the memory of the words.
        """
        pairs = _CountedPairs(room_in(parse_memory(self.memory)) // 4)

        def passing() -> Iterator[Fields]:
            for texts in fields:
                pairs.add(tokens_in(text, ngrams=(2, 2)) for text in texts if isinstance(text, str))
                yield texts

        words = replace(self, ngrams=TOKENS["words"].ngrams).learned(passing(), where)
        if words.n_buckets is not None:
            return words
        common = [(-count, pair) for pair, count in pairs.rows_with() if count >= self.min_count]
        common, told = self._in_most_texts(common, self.optional_name, where)
        names = (*words.vocabulary, *sorted(pair for _, pair in common))
        reading = replace(words, vocabulary=names, ngrams=AUTO, n_optional=len(common))
        return reading._with_notes([*words.notes, *pairs.notes(where), *told])

    def _in_most_texts(
        self, common: list[tuple[int, str]], kind: str, where: str
    ) -> tuple[list[tuple[int, str]], list[str]]:
        """Return the words that are counted, of those behind minus the number of their texts, and a note of others."""
        if len(common) <= self.most_words:
            return common, []
        common = sorted(common)
        note = (
            f"{where}: of {len(common):,} {kind}, the {self.most_words:,} that are in the most texts, in "
            f"{-common[self.most_words - 1][0]:,} or more, are counted."
        )
        return common[: self.most_words], [note]

    def _with_notes(self, notes: Sequence[str]) -> WordCounts:
        object.__setattr__(self, "notes", tuple(notes))
        return self

    def rows(self, fields: Fields, first: int, where: str) -> tuple[sp.csr_matrix, dict[int, str]]:
        """Return the counts of known words, and why others are no text; other words are skipped."""
        unread = {row: why_no_text(text) for row, text in enumerate(fields) if not isinstance(text, str)}
        tokens = (self._tokens_in(text) if isinstance(text, str) else [] for text in fields)
        if self.n_buckets is not None:
            return _hashed(tokens, self.n_buckets)[:, self._kept], unread
        places = self._places
        counts: list[int] = []
        columns: list[int] = []
        borders = [0]
        for words in tokens:
            known = Counter(places[word] for word in words if word in places)
            counts += known.values()
            columns += known.keys()
            borders.append(len(columns))
        csr = (np.array(counts, self.dtype), np.array(columns, np.int32), np.array(borders, np.int32))
        return _arrays.as_csr(sp.csr_matrix(csr, shape=(len(fields), len(self.vocabulary)))), unread

    @cached_property
    def _places(self) -> dict[str, int]:
        """Columns of the words."""
        return {composed(word): place for place, word in enumerate(self.vocabulary)}

    @cached_property
    def _kept(self) -> np.ndarray:
        """The buckets that are counted."""
        return np.array([int(name.removeprefix(_BUCKET)) for name in self.vocabulary], np.int64)

    def doubts(self, n_unknown: int, n_texts: int, where: str) -> tuple[str, ...]:
        """Return what was decided while words were counted, and a note if most texts have no word that is counted.

        Parameters
        ----------
        n_unknown, n_texts : int
            Number of records without any of the bins, and of all records.
        where : str
            Name of the data.
        """
        if self.tokens != "words" or n_texts < _FEWEST_TEXTS or n_unknown <= n_texts / 2:
            return self.notes
        note = Message(
            "{}, column {!r}: {:,} of {:,} texts have no word that others have. If they have no blanks between words, "
            "count their characters with {tokens='characters'}.",
            where,
            self.column,
            n_unknown,
            n_texts,
        )
        return (*self.notes, note)


def checked_ngrams(ngrams: object) -> tuple[int, int]:
    """Return the fewest and the most neighbours. Raise ParameterError for anything but two rising whole numbers."""
    pair = tuple(ngrams) if isinstance(ngrams, list | tuple) else ()
    are_whole = all(isinstance(n, Integral) and not isinstance(n, bool) for n in pair)
    if len(pair) != 2 or not are_whole or not 1 <= pair[0] <= pair[1]:
        raise ParameterError(
            "ngrams", ngrams, "the fewest and the most neighbours, two whole numbers such as (1, 2), or 'auto'"
        )
    return int(pair[0]), int(pair[1])


class _Counted:
    """In how many texts each word occurs, within so many bytes: by name, or where these are too few by hash."""

    def __init__(self, n_bytes: int, n_buckets: int | None) -> None:
        self._most_bytes, self._bytes = n_bytes, 0
        self._words = Counter[str]()
        self._has_forgotten = False
        self._n_hashed = 0  # distinct words when hashing began
        self.n_buckets = n_buckets
        self._buckets = np.zeros(n_buckets or 0, np.int64)

    def add(self, texts: Iterator[list[str]]) -> None:
        """Count the words of several texts."""
        while self.n_buckets is None:
            words = next(texts, None)
            if words is None:
                return
            before = len(self._words)
            self._words.update({*words})
            new = islice(reversed(self._words), len(self._words) - before)
            self._bytes += sum(sys.getsizeof(word) + _BYTES_OF_ENTRY for word in new)
            if self._bytes > self._most_bytes:
                self._forget()
        places = _hashed(texts, self.n_buckets).indices
        self._buckets += np.bincount(places, minlength=self.n_buckets)

    def _forget(self) -> None:
        """Forget words of a single text; where that frees less than half, count hashes from here on."""
        n_distinct = len(self._words)
        self._forget_up_to(1)
        if self._bytes <= self._most_bytes / 2:
            return
        self.n_buckets, self._n_hashed = _BUCKETS, n_distinct
        places = _hashed(([word] for word in self._words), _BUCKETS).indices
        counts = np.bincount(places, [*self._words.values()], minlength=_BUCKETS)
        self._buckets = counts.astype(np.int64)
        self._words.clear()

    def _forget_up_to(self, most: int) -> None:
        """Forget words of at most so many texts."""
        self._words = Counter({word: count for word, count in self._words.items() if count > most})
        self._bytes = sum(sys.getsizeof(word) + _BYTES_OF_ENTRY for word in self._words)
        self._has_forgotten = True

    def rows_with(self) -> list[tuple[str, int]]:
        """Return words, or names of buckets, with the number of texts that have them."""
        if self.n_buckets is None:
            return [*self._words.items()]
        filled = np.flatnonzero(self._buckets)
        names = (f"{_BUCKET}{bucket}" for bucket in filled.tolist())
        return [*zip(names, self._buckets[filled].tolist(), strict=True)]

    @property
    def why_none(self) -> str:
        """Why no word is left."""
        return "; all others were forgotten" if self._has_forgotten else "; there are no words at all"

    def notes(self, where: str) -> Iterator[str]:
        """Yield what the user should know of the counting."""
        if self._n_hashed:
            yield Message(
                "{}: more than {:,} different words do not fit in {}, half of the memory of the fit. They are hashed "
                "to {:,} buckets, of which {:,} are filled, so that words may share one, and bins have no names. "
                "Allow more {memory}, or count fewer with {ngrams} or {tokens}.",
                where,
                self._n_hashed,
                format_bytes(self._most_bytes),
                self.n_buckets,
                np.count_nonzero(self._buckets),
            )
        elif self._has_forgotten:
            yield Message(
                "{}: words of a single text were forgotten now and then, to count within {}; a few rare ones may be "
                "missing. Allow more {memory} to keep them.",
                where,
                format_bytes(self._most_bytes),
            )


class _CountedPairs(_Counted):
    """In how many texts each pair of words occurs: by name, and where memory is too small, the common ones.

    References
    ----------
    Manku and Motwani, Approximate frequency counts over data streams, VLDB 2002: what is rare so far is forgotten.
    """

    def __init__(self, n_bytes: int) -> None:
        super().__init__(n_bytes, None)
        self._forgotten = 0  # pairs of so many texts, and of fewer, have been forgotten

    def _forget(self) -> None:
        while self._bytes > self._most_bytes / 2:
            self._forgotten += 1
            self._forget_up_to(self._forgotten)

    def notes(self, where: str) -> Iterator[str]:
        """Yield what the user should know of the counting."""
        if self._forgotten:
            yield Message(
                "{}: pairs of words that were in at most {:,} of the texts so far were forgotten now and then, to "
                "count within {}; rare ones may be missing. Allow more {memory} to keep them.",
                where,
                self._forgotten,
                format_bytes(self._most_bytes),
            )


def _hashed(texts: Iterator[list[str]], n_buckets: int) -> sp.csr_matrix:
    """Return the counts of the hashes of the words of texts, (texts, buckets), float32."""
    from sklearn.feature_extraction import FeatureHasher

    hasher = FeatureHasher(n_buckets, input_type="string", alternate_sign=False, dtype=np.float32)
    counts = [*texts]
    return _arrays.as_csr(hasher.transform(counts) if counts else sp.csr_matrix((0, n_buckets), dtype=np.float32))
