"""How the classes of a task are related: which answer is best, how unlike the truth a class is, what is measured.

One object says all of it. ``recipe.codecs.ClassCodec`` keeps the classes in its order and scores outputs by it,
``models.answers.ClassAnswers`` makes labels and sets by it, and reports show its measures. ``Nominal`` classes have no
relation. Others are named by a setting of the recipe, which is their name in ``STRUCTURES``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from chimap._catalogue import Catalogue
from chimap._errors import InputError
from chimap._messages import Message
from chimap._onnx import Value
from chimap.data.label_kinds import places_among
from chimap.model_files import register, register_addresses
from chimap.selection.calibration import Calibration
from chimap.selection.jackknife import scores_without
from chimap.selection.scoring import HeldOutScore, OutputScore, best_temperature, probabilities


class Measure(NamedTuple):
    """A measure of answers that a structure adds to those of all classes.

    It has a name in reports (with underscores in place of blanks, the key in JSON), its value, the value as text, and
    what it says, in words.
    """

    name: str
    value: float
    text: str
    about: str


def mean_over(confusion: np.ndarray, values: np.ndarray) -> float:
    """Return the mean of values (k, k) by truth and answer over the rows of a confusion; NaN without rows."""
    total = confusion.sum()
    return float((confusion * values).sum() / total) if total > 0 else float("nan")


class Structure(ABC):
    """The relation of the classes. Probabilities (n, classes) and confusions are in the order of ``arranged``.

    Attributes
    ----------
    scorers : tuple of str
        Names of scores of its own, besides those of scikit-learn.
    """

    scorers: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def arranged(self, classes: np.ndarray) -> np.ndarray:
        """Return classes (k,), some or all, in their order. Raise InputError for one that has no place in it."""

    @abstractmethod
    def answers(self, outputs: np.ndarray, calibration: Calibration) -> np.ndarray:
        """Return the place (n,) of the answer to linear outputs (n, k) of three classes or more."""

    @abstractmethod
    def onnx(self, outputs: Value, calibration: Calibration) -> Value:
        """Return the same as a value of an ONNX graph."""

    @abstractmethod
    def unlikeness(self, logs: np.ndarray) -> np.ndarray:
        """Return how unusual (n, k) each class would be as the truth, given log probabilities (n, k).

        The sets of all classes up to a threshold are conformal sets; see ``selection.conformal``.
        """

    @abstractmethod
    def closed(self, sets: np.ndarray) -> np.ndarray:
        """Return the least sets (n, k) of a kind that the structure has, which hold these."""

    @abstractmethod
    def score(self, asked: HeldOutScore) -> OutputScore:
        """Return the score of linear outputs that is asked for, as one of classes without a relation."""

    @abstractmethod
    def measures(self, confusion: np.ndarray) -> list[Measure]:
        """Return its measures, given the numbers (k, k) of rows of each true class by answer."""

    def of_classes(self, classes: np.ndarray) -> Structure:
        """Return the structure of these classes (k,), as they are arranged: those of every method's arrays."""
        return self

    @property
    def names(self) -> np.ndarray:
        """Names of the nodes above the classes. Raise InputError for a structure that has none."""
        raise InputError(
            Message("{level} is for labels in a tree, and this model knows of none: fit it with {label_tree}.")
        )

    def nodes_of(self, sets: np.ndarray) -> np.ndarray:
        """Return the name (n,) of the deepest node that holds the classes of each set (n, k); see ``names``."""
        return self.names


@dataclass(frozen=True)
class Nominal(Structure):
    """Classes without a relation: the answer is that of the largest output, whatever the others are."""

    def arranged(self, classes: np.ndarray) -> np.ndarray:
        return classes

    def answers(self, outputs: np.ndarray, calibration: Calibration) -> np.ndarray:
        return np.argmax(outputs, axis=1)

    def onnx(self, outputs: Value, calibration: Calibration) -> Value:
        return outputs.place_of_largest()

    def unlikeness(self, logs: np.ndarray) -> np.ndarray:
        return -logs

    def closed(self, sets: np.ndarray) -> np.ndarray:
        return sets

    def score(self, asked: HeldOutScore) -> OutputScore:
        return asked

    def measures(self, confusion: np.ndarray) -> list[Measure]:
        return []


class RelatedClasses(Structure):
    """Classes of which some are nearer to each other than others: answers by probabilities, and scores of its own.

    Scorers of scikit-learn get places as labels, and the answers of the largest output.
    """

    @abstractmethod
    def best(self, p: np.ndarray) -> np.ndarray:
        """Return the place (n,) of the answer, given the probabilities (n, k)."""

    @abstractmethod
    def scored(self, scoring: str, confusion: np.ndarray) -> float:
        """Return one of its scores, greater is better, given rows (k, k) by true class and answer."""

    def answers(self, outputs: np.ndarray, calibration: Calibration) -> np.ndarray:
        return self.best(calibration(outputs))

    def score(self, asked: HeldOutScore) -> OutputScore:
        """Return the first of its scores, unless another one is named."""
        assert asked.classes is not None
        places, n_classes = places_among(asked.y, asked.classes), asked.classes.size
        name = self.scorers[0] if asked.scoring is None else asked.scoring
        if isinstance(name, str) and name in self.scorers:
            return RelatedScore(self, places, n_classes, name, asked.sample_weight)
        return HeldOutScore(places, np.arange(n_classes), asked.scoring, asked.sample_weight)


@dataclass(frozen=True)
class RelatedScore(OutputScore):
    """A score of the answers of related classes, by probabilities at the best temperature.

    Parameters
    ----------
    structure : RelatedClasses
        How the classes are related.
    places : array of int of shape (n,)
        Places of the true classes among as many as ``n_classes``.
    n_classes : int
        Number of classes.
    scoring : str
        One of the structure's ``scorers``.
    sample_weight : array of shape (n,) or None, default=None
        Weights of all rows.

    Examples
    --------
    >>> order = STRUCTURES["ordered"](["low", "medium", "high"])
    >>> score = RelatedScore(order, np.array([0, 1, 2]), 3, "neg_mean_absolute_error")
    >>> score(np.array([[1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, 1.0, -1.0]]))
    -0.3333333333333333
    """

    structure: RelatedClasses
    places: np.ndarray
    n_classes: int
    scoring: str
    sample_weight: np.ndarray | None = None

    @property
    def name(self) -> str:
        return self.scoring

    def __call__(self, outputs: np.ndarray, rows: slice | np.ndarray = slice(None)) -> float:
        """Return the score of the outputs of some rows."""
        return self._of_answers(outputs, rows)(slice(None))

    def without_each(self, outputs: np.ndarray, rows: np.ndarray, parts: np.ndarray) -> np.ndarray:
        """See ``OutputScore``; the temperature is that of all rows."""
        return scores_without(self._of_answers(outputs, rows), parts)

    def _of_answers(self, outputs: np.ndarray, rows: slice | np.ndarray) -> Callable[[slice | np.ndarray], float]:
        """Return the score of some of the answers to these rows; of two classes the temperature does not matter."""
        truth, k = self.places[rows], self.n_classes
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        temperature = 1.0 if k == 2 else best_temperature(outputs, truth, weights)
        cells = truth * k + self.structure.best(probabilities(outputs, temperature))

        def score(kept: slice | np.ndarray) -> float:
            confusion = np.bincount(cells[kept], None if weights is None else weights[kept], k * k)
            return self.structure.scored(self.scoring, confusion.reshape(k, k))

        return score


_ADDRESSES = {
    "ordered": "chimap.selection.ordered:OrderedClasses",
    "label_tree": "chimap.selection.label_tree:LabelTree",
}

STRUCTURES: Catalogue[Callable[..., Structure]] = Catalogue(
    {name: f"{address}.of" for name, address in _ADDRESSES.items()}
)
"""Makers of structures by the setting that describes them; each takes the value of the setting."""

register(Nominal)
register_addresses({address.partition(":")[2]: address for address in _ADDRESSES.values()})
