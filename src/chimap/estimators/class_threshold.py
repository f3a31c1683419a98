"""The score above which a row belongs to the second of two classes."""

from __future__ import annotations

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._validation import DataError
from chimap.fit.result import HeldOutRows
from chimap.fit.targets import is_matrix
from chimap.selection.threshold import best_threshold, checked_threshold


def check_threshold(threshold: str | float | None, y: np.ndarray, n_classes: int) -> None:
    """Raise ValueError for a threshold that is none, or that is given for several tasks or not two classes."""
    checked_threshold(threshold)
    if threshold is None:
        return
    if is_matrix(y):
        raise InputError("threshold is for a single task: leave it out, or fit the tasks one by one.")
    if n_classes != 2:
        raise InputError(
            Message(
                "{threshold=} needs two classes, and y has {}. Leave {threshold} out; {class_weight='balanced'} "
                "makes up for rare classes.",
                threshold,
                n_classes,
            )
        )


def chosen_threshold(
    threshold: str | float, held_out: HeldOutRows | None, classes: np.ndarray, counts: np.ndarray | None
) -> float:
    """Return the best threshold for held-out rows that count so often. Raise DataError if there are no such rows."""
    if held_out is None:
        raise DataError(
            Message(
                "{threshold=} is chosen on held-out rows, and there are too few rows to hold any out. Leave it out.",
                threshold,
            )
        )
    return best_threshold(held_out.outputs[:, 0], held_out.y == classes[1], threshold, counts)
