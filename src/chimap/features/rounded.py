"""Features rounded to bfloat16 before sums or predictions use them, and the projections that they begin with."""

from __future__ import annotations

import numpy as np

from chimap import _arrays, _loops, _threads
from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import Array, ArrayMap, Rows
from chimap.features.base import FittedFeatures
from chimap.features.mapped_functions import MappedModel

_EXAMPLES = 64  # rows that show how large angles are


def in_bfloat16(features: FittedFeatures, rows: Rows) -> FittedFeatures:
    """Return fitted features whose projections are products of bfloat16.

    ``rows`` are prepared rows that the features were fitted on; a few of them decide how exact the products have to be.
    """
    examples = _arrays.take_rows(rows, slice(None, None, -(-rows.shape[0] // _EXAMPLES)))
    return features.in_bfloat16(examples)


class RoundedFeatures(FittedFeatures):
    """Features rounded to the 8 significant bits of bfloat16, half to even, about a shift.

        z(x) = shift + round(features(x) - shift)

    Moments are made of the same numbers that a prediction multiplies, and a product of two of them is exact in float32:
    moments from units that multiply bfloat16 are those of this map, up to the order of sums. The shift, a provisional
    mean, is subtracted first, so that the bits represent the differences between rows.

    Parameters
    ----------
    features : FittedFeatures
        Features to round.
    shift : ndarray of shape (D,)
        Shift, in the precision of the sums.
    """

    is_rounded = True

    def __init__(self, features: FittedFeatures, shift: np.ndarray):
        self.features, self.shift = features, shift

    @property
    def _n_features_out(self) -> int:
        return int(self.features._n_features_out)

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write features minus ``shift`` of checked rows into float32 ``out``.

        With the object's own shift the numbers written are bfloat16.
        """
        self.features.features_into(rows, out, self.shift)
        _threads.over_rows(out.shape[0], out.shape[1], lambda part: _loops.round_to_bfloat16(out[part]))
        if shift is not self.shift and not np.array_equal(self.shift, 0.0 if shift is None else shift):
            out += (self.shift - (0.0 if shift is None else shift)).astype(out.dtype)

    def bound(self, like: Array) -> ArrayMap | None:
        """Return the unrounded features by the operations of a device, where the caller rounds them."""
        return self.features.bound(like)

    def mapped_model(self, coef: np.ndarray, intercept: np.ndarray) -> MappedModel | None:
        """See ``FittedFeatures``. The rounding of each feature has no gradient, so it is left out of the scores."""
        return self.features.mapped_model(coef, intercept)


def check_not_rounded(model: object, what: str) -> None:
    """Raise ValueError if the model rounds its features; ``what``, such as "a table", needs unrounded ones."""
    if getattr(model, "precision_", None) == "bfloat16":
        raise InputError(
            Message(
                "{} takes unrounded features, but {precision='bfloat16'} rounds them: its scores would differ from "
                "the model's. Fit with {precision='float32'}.",
                what,
            )
        )
