"""How much each bin matters to a model, and its section."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chimap._errors import DataError
from chimap._messages import Message
from chimap.models.explain import importance
from chimap.reports.rows import sample_of

if TYPE_CHECKING:
    from chimap.data import Source
    from chimap.explain.importance import Importance
    from chimap.models.model import Model

_ROWS_PERMUTED = 300  # rows among which bins are shuffled


def importance_of(model: Model, sample: Source | None, y: np.ndarray | None, kind: str) -> Importance:
    """Return the bins ranked by importance.

    ``kind="auto"`` is "variance" for additive models, "gradient" for others that have slopes, and else "variance".
    """
    if kind == "permutation":
        if sample is None or y is None:
            raise DataError(
                Message("{kind='permutation'} needs rows with labels: give DATA, and {labels} if DATA has none.")
            )
        few, places = sample_of(sample, _ROWS_PERMUTED)
        return importance(model, few, y[places], kind="permutation")
    if kind == "auto":
        has_slopes = model.mapped() is not None and not model.is_additive
        kind = "gradient" if has_slopes else "variance"
    return importance(model, sample, kind=kind)
