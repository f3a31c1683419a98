"""All that a page of explanations shows, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from chimap._types import JSON
from chimap.explain import Importance, Neighbours
from chimap.explain.effects import BinEffect
from chimap.report._plain import plain
from chimap.report.evaluation import now, package_versions


@dataclass(frozen=True, eq=False)
class Likeness:
    """A landmark, or training row, that a prediction rests on: its name, what it is, how similar, what it adds."""

    name: str
    answer: object
    similarity: float
    contribution: float

    @classmethod
    def of(cls, neighbours: Neighbours, names: np.ndarray | None) -> list[Likeness]:
        """Of all neighbours of a row; names of all landmarks, or None for their numbers."""
        answers = neighbours.answers if neighbours.answers is not None else [None] * neighbours.places.size
        listed = zip(
            neighbours.places, answers, neighbours.similarities, neighbours.contributions, strict=True
        )
        return [
            cls(f"landmark {place}" if names is None else str(names[place]), a, float(s), float(c))
            for place, a, s, c in listed
        ]


@dataclass(frozen=True, eq=False)
class ExplainedRow:
    """Why one row is answered as it is.

    name: of the row, or its number. truth: its label, or None. predicted: the answer. rival: the class that the answer
    is compared with (the truth where it is another, else the second best), None for a regression. contributions: of
    each bin to the score of the answer less that of the rival, (bins,). base, score: of the reference row and of this
    one, likewise. values: of the bins, (bins,). likenesses: landmarks that speak for the answer. picture, painted: the
    row as an image and its contributions on it, as addresses that hold their data, or None.
    """

    name: str
    truth: object
    predicted: object
    rival: object
    contributions: np.ndarray
    base: float
    score: float
    values: np.ndarray
    likenesses: list[Likeness] = field(default_factory=list)
    picture: str | None = None
    painted: str | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether the answer is known to be wrong, of a class."""
        return self.truth is not None and self.rival is not None and self.truth != self.predicted

    def top(self, k: int = 10) -> np.ndarray:
        """Places of the k bins that add or take the most, those that add first."""
        order = np.argsort(-np.abs(self.contributions), kind="stable")[:k]
        order = order[self.contributions[order] != 0]
        return np.asarray(order[np.argsort(-self.contributions[order], kind="stable")])

    def as_dict(self, names: np.ndarray, k: int = 20) -> JSON:
        """Plain JSON types, with the k largest contributions."""
        listed = [
            {"bin": int(i), "name": str(names[i]), "value": self.values[i], "adds": self.contributions[i]}
            for i in self.top(k)
        ]
        return {
            "row": self.name,
            "truth": plain(self.truth),
            "predicted": plain(self.predicted),
            "compared_with": plain(self.rival),
            "base": self.base,
            "score": self.score,
            "contributions": plain(listed),
            "like": [plain(vars(one)) for one in self.likenesses],
        }


@dataclass(frozen=True, eq=False)
class ModelExplanation:
    """What a page of ``chimap explain`` shows.

    importance: of all bins. is_additive: whether ``effects`` are the functions that the model is the sum of.
    output_names: classes, or what is predicted. bin_names: in the order of the bins. painted: the importance as a
    picture, where bins are pixels.
    """

    title: str
    model_name: str
    data: JSON
    importance: Importance
    is_additive: bool
    output_names: tuple[object, ...]
    bin_names: np.ndarray
    effects: tuple[BinEffect, ...] = ()
    rows: tuple[ExplainedRow, ...] = ()
    which_rows: str = ""
    painted: str | None = None
    versions: Mapping[str, str] = field(default_factory=package_versions)
    created: datetime = field(default_factory=now)

    def as_dict(self, k: int = 20) -> JSON:
        """Plain JSON types: the k bins that matter most, their functions, and the rows."""
        ranked = zip(self.importance.bins[:k], self.importance.top(k), strict=True)
        return {
            "title": self.title,
            "model": self.model_name,
            "data": plain(self.data),
            "importance": {
                "kind": self.importance.kind,
                "bins": [{"bin": int(i), "name": name, "importance": value} for i, (name, value) in ranked],
            },
            "additive": self.is_additive,
            "outputs": plain(list(self.output_names)),
            "functions": [
                {"bin": e.bin, "name": e.name, "values": plain(e.values), "effects": plain(e.effects)}
                for e in self.effects
            ],
            "rows": [row.as_dict(self.bin_names, k) for row in self.rows],
            "versions": plain(self.versions),
        }
