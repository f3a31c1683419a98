"""Features rounded to bfloat16 before anything is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from chimap import _loops, _threads
from chimap._types import Array, ArrayMap, Rows
from chimap.backends.base import RowFeatures


class RoundedFeatures:
    """z(x) = shift + round(features(x) - shift), rounded to the 8 significant bits of bfloat16, half to even.

    What the moments are made of and what a prediction multiplies are the same numbers so, and a product of two of them
    is exact in float32: moments from units that multiply bfloat16 are those of this map, up to the order of sums. The
    shift, a provisional mean, comes off first, so that the bits are spent on what differs between rows.

    features: what it rounds. shift: (D,), numbers of the precision that sums are taken in.
    """

    is_rounded = True

    def __init__(self, features: RowFeatures, shift: np.ndarray):
        self.features, self.shift = features, shift

    @property
    def _n_features_out(self) -> int:
        return int(self.features._n_features_out)

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Features minus ``shift`` of checked rows into float32 ``out``; about its own shift they are bfloat16."""
        self.features.features_into(rows, out, self.shift)
        _threads.over_rows(out.shape[0], out.shape[1], lambda part: _loops.round_to_bfloat16(out[part]))
        if shift is not self.shift and not np.array_equal(self.shift, 0.0 if shift is None else shift):
            out += (self.shift - (0.0 if shift is None else shift)).astype(out.dtype)

    def bound(self, like: Array) -> ArrayMap:
        """The features that are rounded, by the operations of a device; who takes them rounds them there."""
        inner: Any = self.features
        bound: ArrayMap = inner.bound(like)
        return bound


def check_not_rounded(model: object, what: str) -> None:
    """Refuse a model of rounded features for what takes them as they are, such as tables. Raises ValueError."""
    if getattr(model, "precision_", None) == "bfloat16":
        raise ValueError(
            f"{what} takes features as they are, and those of precision='bfloat16' are rounded: its scores would be "
            "others than the model's. Fit with precision='float32'."
        )
