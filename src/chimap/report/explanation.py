"""``ModelExplanation``: everything that a page of explanations shows, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from chimap._types import JSON
from chimap.explain import Importance, Neighbours
from chimap.explain.effects import BinEffect
from chimap.report.formatting import plain
from chimap.report.page import now, package_versions


@dataclass(frozen=True, eq=False)
class Likeness:
    """A landmark or training row that contributes to a prediction.

    Parameters
    ----------
    name : str
        Its name.
    answer : object
        The model's prediction for it.
    similarity : float
        Its kernel value with the predicted row, at most 1.
    contribution : float
        What it adds to the score: kernel value times weight.
    """

    name: str
    answer: object
    similarity: float
    contribution: float

    @classmethod
    def of(cls, neighbours: Neighbours, kind: str) -> list[Likeness]:
        """Return the neighbours of a row.

        Parameters
        ----------
        neighbours : Neighbours
            The landmarks or training rows that contribute the most.
        kind : str
            What they are, in front of their places: "landmark" or "training row".

        Returns
        -------
        list of Likeness
            One entry per neighbour, in the same order.
        """
        answers = neighbours.answers if neighbours.answers is not None else [None] * neighbours.places.size
        listed = zip(
            neighbours.places, answers, neighbours.similarities, neighbours.contributions, strict=True
        )
        return [
            cls(
                f"{kind} {place}",
                answer,
                float(similarity),
                float(added),
            )
            for place, answer, similarity, added in listed
        ]


@dataclass(frozen=True, eq=False)
class ExplainedRow:
    """The explanation of the prediction for one row.

    For a classifier, scores and contributions are in favour of the predicted class. With one output per class, they are
    those of the predicted class minus those of its rival; with a single output, they have the sign of the predicted
    class.

    Parameters
    ----------
    name : str
        Name or number of the row.
    truth : object
        Its true label or target; None if it is unknown.
    predicted : object
        Its predicted label or target.
    rival : object
        The class that the predicted class is compared to: the true class if it is another one, else the second best;
        None for a regression.
    contributions : ndarray of shape (bins,)
        What each bin adds to the score.
    base : float
        Score of the reference row.
    score : float
        Score of this row.
    values : ndarray of shape (bins,)
        Values of the bins.
    likenesses : list of Likeness, optional
        Landmarks that contribute the most to the prediction; by default empty.
    picture : str or None, default=None
        The row as an image, a data URL.
    painted : str or None, default=None
        The contributions painted over the image, a data URL.
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

    def top(self, k: int = 10) -> np.ndarray:
        """Return the indices of the bins with the largest absolute contributions, by descending contribution.

        Parameters
        ----------
        k : int, default=10
            Largest number of bins; bins that contribute nothing are left out.
        """
        order = np.argsort(-np.abs(self.contributions), kind="stable")[:k]
        order = order[self.contributions[order] != 0]
        return np.asarray(order[np.argsort(-self.contributions[order], kind="stable")])

    def as_dict(self, names: np.ndarray, k: int = 20) -> JSON:
        """Return the explanation as JSON types.

        Parameters
        ----------
        names : ndarray of shape (bins,)
            Names of the bins.
        k : int, default=20
            Number of contributions to include, largest first.
        """
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
            "like": [plain(vars(likeness)) for likeness in self.likenesses],
        }


@dataclass(frozen=True, eq=False)
class ModelExplanation:
    """Everything that a page of ``chimap explain`` shows.

    Parameters
    ----------
    title : str
        Title of the page.
    model_name : str
        Name of the estimator.
    data : dict
        Facts about the model and the rows by name.
    importance : Importance
        Importance of all bins.
    is_additive : bool
        Whether the model is a sum of functions of single bins, which ``effects`` then shows.
    output_names : tuple
        The classes, or the names of what is predicted.
    bin_names : ndarray of shape (bins,)
        Names of the bins, in their order.
    effects : tuple of BinEffect, default=()
        Scores over the values of single bins.
    rows : tuple of ExplainedRow, default=()
        Explanations of single rows.
    which_rows : str, default=""
        Which rows were chosen, in words.
    painted : str or None, default=None
        The importance as an image (a data URL), if the bins are pixels.
    versions : mapping of str to str, optional
        Versions of packages by name; by default ``package_versions()``.
    created : datetime, optional
        Time of the explanation, with its time zone; by default now.
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
        """Return the explanation as JSON types.

        Parameters
        ----------
        k : int, default=20
            Number of bins, and of contributions per row, to include.
        """
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
