"""Write the weights of a model without its features."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from chimap.data.label_kinds import fixed_width
from chimap.export.parts import ModelParts


def write_weights(parts: ModelParts, path: Path, ending: str) -> None:
    """Write the weights to ``path`` in the format of ``ending``, .npz or .safetensors.

    The arrays are ``coef`` (t, D) and ``intercept`` (t,), for a classifier also ``classes`` and ``threshold``, and for
    several tasks their names ``tasks`` (t,). With an additive map, column q * bins + i of ``coef`` is term q of bin i.

    A safetensors file holds only numbers, so classes and tasks are stored as JSON in its metadata, next to kernel,
    gamma and features.
    """
    arrays = {"coef": np.ascontiguousarray(parts.coef.T), "intercept": np.asarray(parts.intercept)}
    if ending == ".npz":
        if parts.classes is not None:
            arrays |= {"classes": fixed_width(parts.classes), "threshold": np.array(parts.threshold)}
        if parts.tasks is not None:
            arrays["tasks"] = np.array(parts.tasks)
        with path.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        return
    notes = {name: str(value) for name, value in parts.about.items() if value is not None}
    if parts.classes is not None:
        notes |= {"classes": json.dumps(parts.classes.tolist()), "threshold": str(parts.threshold)}
    if parts.tasks is not None:
        notes["tasks"] = json.dumps(parts.tasks)
    path.write_bytes(save(arrays, metadata=notes))
