"""How the classes of a task are related: which answer is best, how unlike the truth a class is, what is measured.

One object says all of it. ``recipe.codecs.ClassCodec`` keeps the classes in its order and scores outputs by it,
``models.answers.ClassAnswers`` makes labels and sets by it, and reports show its measures. ``Nominal`` classes have no
relation. Others are named by a setting of the recipe, which is their name in ``STRUCTURES``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from chimap._catalogue import Catalogue
from chimap._onnx import Value
from chimap._types import Scoring
from chimap.model_files import register, register_addresses
from chimap.selection.calibration import Calibration
from chimap.selection.scoring import HeldOutScore, OutputScore


class Measure(NamedTuple):
    """A measure of answers that a structure adds to those of all classes.

    Attributes
    ----------
    name : str
        Its name in reports; with underscores in place of blanks, the key in JSON.
    value : float
        The value.
    text : str
        The value as text.
    about : str
        What it says, in words.
    """

    name: str
    value: float
    text: str
    about: str


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
    def score(
        self,
        y: np.ndarray,
        classes: np.ndarray,
        scoring: Scoring,
        sample_weight: np.ndarray | None,
        positive: int | None,
    ) -> OutputScore:
        """Return the score of linear outputs for rows with labels y (n,); the arguments are those of HeldOutScore."""

    @abstractmethod
    def measures(self, confusion: np.ndarray) -> list[Measure]:
        """Return its measures, given the numbers (k, k) of rows of each true class by answer."""


@dataclass(frozen=True)
class Nominal(Structure):
    """Classes without a relation: the answer is that of the largest output, whatever the others are."""

    def arranged(self, classes: np.ndarray) -> np.ndarray:
        """Return the classes as they are: sorted."""
        return classes

    def answers(self, outputs: np.ndarray, calibration: Calibration) -> np.ndarray:
        """Return the place of the largest output."""
        return np.argmax(outputs, axis=1)

    def onnx(self, outputs: Value, calibration: Calibration) -> Value:
        """See ``Structure``."""
        return outputs.place_of_largest()

    def unlikeness(self, logs: np.ndarray) -> np.ndarray:
        """Return minus the log probabilities."""
        return -logs

    def closed(self, sets: np.ndarray) -> np.ndarray:
        """Return the sets as they are."""
        return sets

    def score(
        self,
        y: np.ndarray,
        classes: np.ndarray,
        scoring: Scoring,
        sample_weight: np.ndarray | None,
        positive: int | None,
    ) -> OutputScore:
        """Return accuracy, or a scorer of scikit-learn."""
        return HeldOutScore(y, classes, scoring, sample_weight, positive)

    def measures(self, confusion: np.ndarray) -> list[Measure]:
        """Return none."""
        return []


_ADDRESSES = {"ordered": "chimap.selection.ordered:OrderedClasses"}

STRUCTURES: Catalogue[Callable[[Any], Structure]] = Catalogue(
    {name: f"{address}.of" for name, address in _ADDRESSES.items()}
)
"""Makers of structures by the setting that describes them; each takes the value of the setting."""

register(Nominal)
register_addresses({address.partition(":")[2]: address for address in _ADDRESSES.values()})
