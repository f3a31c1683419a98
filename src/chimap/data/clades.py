"""Names of clades, ``k__Bacteria|p__Firmicutes``: the rank that a name stands for, and one rank of many."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from chimap._messages import Message
from chimap._validation import DataError

_STEP = re.compile(r"([A-Za-z](?:_\d+)?)__")  # k__ of MetaPhlAn, Greengenes and UNITE; D_5__ of older SILVA
_MOST_RANKS_SHOWN = 12
_PREFIXES = {
    "domain": "d",
    "kingdom": "k",
    "phylum": "p",
    "class": "c",
    "order": "o",
    "family": "f",
    "genus": "g",
    "species": "s",
    "strain": "t",
}


def rank_of(name: str) -> str | None:
    """Return the rank of a clade by the prefix of its last step, or None for names that are no clades.

    >>> rank_of("k__Bacteria|p__Firmicutes"), rank_of("d__Bacteria;p__Firmicutes; c__"), rank_of("age")
    ('p__', 'c__', None)
    """
    steps = [_STEP.match(step.strip()) for step in re.split(r"[|;]", name)]
    last = steps[-1]
    return last[0] if last is not None and all(steps) else None


def of_rank(names: Sequence[str], rank: str, where: str) -> list[int]:
    """Return the positions of the clades of one rank, "s__", "s" or "species".

    Raises DataError, with the ranks that there are, if none is of that rank.
    """
    word = rank.strip().lower().rstrip("_")
    prefix = f"{_PREFIXES.get(word, word)}__"
    ranks = [rank_of(name) for name in names]
    places = [place for place, each in enumerate(ranks) if each is not None and each.lower() == prefix]
    if not places:
        there = ranks_in_words(names)
        what = f"there are {there}" if there else f"no column is named like k__Bacteria|{prefix}..."
        raise DataError(Message("{}: no clade of {rank=}; {}. Name one of these ranks.", where, rank, what))
    return places


def ranks_in_words(names: Sequence[str]) -> str:
    """Return the ranks of clades with their numbers, the most frequent first; "" without clades.

    >>> ranks_in_words(["k__A", "k__A|p__B", "k__A|p__C"])
    '2 p__ and 1 k__'
    """
    counts = Counter(rank for rank in map(rank_of, names) if rank is not None)
    words = [f"{count:,} {rank}" for rank, count in counts.most_common(_MOST_RANKS_SHOWN)]
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def has_several_ranks(names: Sequence[str]) -> bool:
    """Return whether names are clades of more than one rank."""
    return len({rank for rank in map(rank_of, names) if rank is not None}) > 1
