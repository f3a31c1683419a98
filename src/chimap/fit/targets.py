"""From labels to the targets of a quadratic loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from chimap._validation import DataError
from chimap.model_files import register
from chimap.moments import OneVersusAll, Targets


class Codec(Protocol):
    """What is learned of all labels y before any row is read."""

    @property
    def n_targets(self) -> int:
        """t."""
        ...

    @property
    def shift(self) -> np.ndarray:
        """A provisional mean of the targets, (t,)."""
        ...

    @classmethod
    def of(cls, y: Any) -> Self:
        """Learn from all of y. Raises DataError for labels that will not do."""
        ...

    def encode(self, y: np.ndarray) -> Targets:
        """Targets (n, t) less the shift."""
        ...


@dataclass(frozen=True, eq=False)
class ClassCodec:
    """One versus all: a target of 1 for the class and -1 for the others; a single target for two classes."""

    classes: np.ndarray

    @classmethod
    def of(cls, y: Any) -> ClassCodec:
        """See ``Codec``."""
        y = column_or_1d(y)
        check_classification_targets(y)
        classes = np.unique(y)
        if classes.size < 2:
            raise DataError(
                f"one class only: all labels are {classes.tolist()[0]!r}. A classifier needs at least two "
                "classes; check the labels, or the rows chosen for training."
            )
        return cls(classes)

    @property
    def n_targets(self) -> int:
        """See ``Codec``."""
        return 1 if self.classes.size == 2 else int(self.classes.size)

    @property
    def shift(self) -> np.ndarray:
        """0."""
        return np.zeros(self.n_targets)

    def encode(self, y: np.ndarray) -> Targets:
        """See ``Codec``. Raises DataError for a label that is none of the classes."""
        place = np.searchsorted(self.classes, y).clip(0, self.classes.size - 1)
        unknown = self.classes[place] != y
        if unknown.any():
            raise DataError(
                f"unknown label {y[unknown][:1].tolist()[0]!r}: the classes are "
                f"{', '.join(map(str, self.classes[:20]))}. Pass every class in classes= at the first partial_fit."
            )
        if self.n_targets == 1:
            return np.where(place == 1, 1.0, -1.0)[:, None]
        return OneVersusAll(place, self.classes.size)


@dataclass(frozen=True)
class RealCodec:
    """One real target, less its mean."""

    mean: float
    n_targets = 1

    @classmethod
    def of(cls, y: Any) -> RealCodec:
        """See ``Codec``."""
        y = column_or_1d(y)
        if not np.issubdtype(y.dtype, np.number):
            raise DataError(
                f"a regressor needs numbers for targets; got labels such as {y[0]!r}. Use a classifier."
            )
        return cls(float(np.mean(y, dtype=np.float64)))

    @property
    def shift(self) -> np.ndarray:
        """The mean, (1,)."""
        return np.array([self.mean])

    def encode(self, y: np.ndarray) -> np.ndarray:
        """See ``Codec``."""
        return np.asarray(y, dtype=np.float64)[:, None] - self.mean


register(ClassCodec, RealCodec)
