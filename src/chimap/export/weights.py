"""The weights alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from chimap.export.parts import ModelParts


def write_weights(parts: ModelParts, path: Path, ending: str) -> None:
    """``coef`` (t, D), ``intercept`` (t,) and, of a classifier, ``classes`` and ``threshold``, as .npz or .safetensors;
    of several tasks their names, ``tasks`` (t,).

    A safetensors file holds numbers alone: classes and tasks are JSON in its metadata, beside kernel, gamma and
    features. Column q * bins + i of the weights of an additive map is term q of bin i.
    """
    arrays = {"coef": np.ascontiguousarray(parts.coef.T), "intercept": np.asarray(parts.intercept)}
    if ending == ".npz":
        if parts.classes is not None:
            arrays |= {"classes": parts.classes, "threshold": np.array(parts.threshold)}
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
