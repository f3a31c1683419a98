"""Names of clades, ``k__Bacteria|p__Firmicutes``: the rank that a name stands for, and one rank of many."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from chimap._messages import Message
from chimap._validation import DataError

ALL_RANKS = "all"
_STEP = re.compile(r"([A-Za-z](?:_\d+)?)__")  # k__ of MetaPhlAn, Greengenes and UNITE; D_5__ of older SILVA
_MOST_RANKS_SHOWN = 12
_RANK = "rank "  # before the prefix of a rank that has no name
_RANKS_OF_TAXONOMY = "kpcofgs"
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


def steps_of(name: str) -> list[tuple[str, str]]:
    """Return the steps of a lineage, each with the prefix of its rank; none for names that are no clades.

    >>> steps_of("k__Bacteria|p__Firmicutes"), steps_of("age")
    ([('k__', 'k__Bacteria'), ('p__', 'p__Firmicutes')], [])
    """
    steps = [step.strip() for step in re.split(r"[|;]", name)]
    found = [(prefix[0], step) for step in steps if (prefix := _STEP.match(step))]
    return found if len(found) == len(steps) else []


def rank_of(name: str) -> str | None:
    """Return the rank of a clade by the prefix of its last step, or None for names that are no clades.

    >>> rank_of("k__Bacteria|p__Firmicutes"), rank_of("d__Bacteria;p__Firmicutes; c__"), rank_of("age")
    ('p__', 'c__', None)
    """
    steps = steps_of(name)
    return steps[-1][0] if steps else None


def of_rank(names: Sequence[str], rank: str, where: str) -> list[int]:
    """Return the positions of the clades of one rank, "s__", "s" or "species"; of "all", those of the leaves.

    Raises DataError, with the ranks that there are, if none is of that rank.
    """
    prefix = prefix_of(rank)
    if prefix == f"{ALL_RANKS}__":
        return leaves_of(names, where)
    ranks = [rank_of(name) for name in names]
    places = [place for place, each in enumerate(ranks) if each is not None and each.lower() == prefix]
    if not places:
        there = ranks_in_words(names)
        what = f"there are {there}" if there else f"no column is named like k__Bacteria|{prefix}..."
        raise DataError(Message("{}: no clade of {rank=}; {}. Name one of these ranks.", where, rank, what))
    return places


def prefix_of(rank: str) -> str:
    """Return the prefix of a rank that is named in any way.

    >>> prefix_of("genus"), prefix_of("g"), prefix_of("g__")
    ('g__', 'g__', 'g__')
    """
    word = rank.strip().lower().rstrip("_")
    return f"{_PREFIXES.get(word, word)}__"


def lineages_of(taxonomies: Iterable[object]) -> tuple[str, ...]:
    """Return the lineages that taxonomies state as lists or texts, such as "k__Bacteria; p__Firmicutes"; "" for none.

    Where no step has a prefix, at most seven are the ranks from the kingdom to the species.

    >>> lineages_of([["k__Bacteria", "p__", ""], None]), lineages_of(["Bacteria;Firmicutes"])
    (('k__Bacteria; p__', ''), ('k__Bacteria; p__Firmicutes',))
    """
    rows = []
    for taxonomy in taxonomies:
        given = taxonomy.split(";") if isinstance(taxonomy, str) else taxonomy
        steps = [str(step).strip().replace("|", "/") for step in given] if isinstance(given, Iterable) else []
        rows.append(steps[: max((n for n, step in enumerate(steps, 1) if step), default=0)])
    are_bare = not any(_STEP.match(step) for steps in rows for step in steps)
    if are_bare and max(map(len, rows), default=0) <= len(_RANKS_OF_TAXONOMY):
        rows = [
            [f"{prefix}__{step}" for prefix, step in zip(_RANKS_OF_TAXONOMY, steps, strict=False)] for steps in rows
        ]
    return tuple("; ".join(steps) for steps in rows)


def leaves_of(names: Sequence[str], where: str) -> list[int]:
    """Return the positions of the clades that hold no other column.

    A clade above others has their sum in tables of MetaPhlAn, whose steps are joined by "|". Where they are joined by
    ";", as in those of QIIME, it has what could not be told further, and is a leaf too.

    Raises DataError if no name has several steps.

    >>> leaves_of(["k__A", "k__A|p__B", "k__A|p__C", "age"], "X"), leaves_of(["k__A", "k__A;p__B"], "X")
    ([1, 2], [0, 1])
    """
    lineages = [[step for _, step in steps_of(name)] for name in names]
    if all(len(steps) < 2 for steps in lineages):
        example = f", as {names[0]!r} is not" if names else ""
        message = Message(
            "{}: {rank='all'} sums bins over the ranks of their lineages, so that they are named like "
            "k__Bacteria|p__Firmicutes|g__Dorea or d__Bacteria; p__Firmicutes{}. Rename them, or leave {rank} out.",
            where,
            example,
        )
        raise DataError(message)
    above = {
        tuple(steps[:n]) for name, steps in zip(names, lineages, strict=True) if "|" in name for n in range(len(steps))
    }
    return [place for place, steps in enumerate(lineages) if steps and tuple(steps) not in above]


def rank_word(prefix: str) -> str:
    """Return the name of the rank that a prefix stands for.

    >>> rank_word("g__"), rank_word("D_5__")
    ('genus', 'rank D_5')
    """
    short = prefix.rstrip("_").lower()
    return next((word for word, each in _PREFIXES.items() if each == short), f"{_RANK}{prefix.rstrip('_')}")


def are_ranks(words: Iterable[str]) -> bool:
    """Return whether all words are names of ranks, see ``rank_word``; False without words."""
    words = [*words]
    return bool(words) and all(word in _PREFIXES or word.startswith(_RANK) for word in words)


def by_rank(words: Iterable[str]) -> list[str]:
    """Return names of ranks, the highest first.

    >>> by_rank(["species", "phylum", "genus"])
    ['phylum', 'genus', 'species']
    """
    order = [*_PREFIXES]
    return sorted(words, key=lambda word: (order.index(word) if word in order else len(order), word))


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
