"""Defaults of options, and names that they list, as the signatures and catalogues of the package declare them.

``--help`` answers before NumPy could be loaded, so what the signatures declare is kept in ``declared.json``. After a
change of a default or of a catalogue, ``python -m chimap.cli.declared`` writes it again; a test compares the two.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chimap._types import JSON

KEPT_IN = Path(__file__).with_suffix(".json")


def default(parameter: str, owner: str = "HistogramClassifier") -> Any:
    """Return the default of a parameter of a function or class.

    >>> default("n_components"), default("radius", "MorganCounts"), default("tolerance", "export_model")
    ('auto', 2, 0.001)
    """
    return _kept()["defaults"][owner][parameter]


def names(catalogue: str) -> tuple[str, ...]:
    """Return the names in a catalogue of the package.

    >>> names("engines")
    ('local', 'dask')
    """
    return tuple(_kept()["names"][catalogue])


def sizes(tried: str) -> tuple[int, ...]:
    """Return the sizes that ``chimap compare`` tries by default.

    >>> sizes("components")
    (256, 1024)
    """
    return tuple(_kept()["sizes"][tried])


def either(words: Iterable[str]) -> str:
    """Return words as a list to choose from.

    >>> either(("local", "dask", "moon"))
    'local, dask or moon'
    """
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


@cache
def _kept() -> JSON:
    return json.loads(KEPT_IN.read_text(encoding="utf-8"))


def declared_by_the_package() -> JSON:
    """Return what ``declared.json`` holds, from the signatures and catalogues themselves."""
    from chimap import (
        AutomaticFeatures,
        FourierKernelLearner,
        HistogramClassifier,
        MultipleKernelLearner,
        engines,
        kernels,
        losses,
    )
    from chimap.export import export_model
    from chimap.export.files import FORMATS
    from chimap.export.onnx import INPUT_TYPES
    from chimap.features.families import FAMILIES
    from chimap.features.fourier import sampling
    from chimap.fit.checkpoint import Checkpoint
    from chimap.images import SIFT, ImageHistograms, descriptors
    from chimap.models.explain import KINDS
    from chimap.race import compare
    from chimap.readers import MorganCounts, WordCounts
    from chimap.readers.molecules import FINGERPRINTS, SALTS
    from chimap.readers.words import TOKENS
    from chimap.recipe.recipe import PRECISIONS

    owners: tuple[Callable[..., object], ...] = (
        HistogramClassifier,
        FourierKernelLearner,
        MultipleKernelLearner,
        ImageHistograms,
        SIFT,
        MorganCounts,
        WordCounts,
        AutomaticFeatures,
        Checkpoint,
        export_model,
    )
    catalogues: dict[str, Iterable[str]] = {
        "additive kernels": kernels.CATALOGUE,
        "other kernels": ("gaussian", *kernels.OTHERS, *kernels.STATIONARY),
        "features": FAMILIES,
        "samplings": sampling.CATALOGUE,
        "losses": (*losses.CATALOGUE, "hinge"),
        "engines": engines.ENGINES,
        "precisions": PRECISIONS,
        "tokens": TOKENS,
        "fingerprints": FINGERPRINTS,
        "salts": SALTS,
        "structures": MorganCounts.splits,
        "formats of export": FORMATS,
        "input types of export": INPUT_TYPES,
        "descriptors": descriptors.CATALOGUE,
        "importances": KINDS,
    }
    return {
        "defaults": {owner.__name__: _defaults(owner) for owner in owners},
        "names": {catalogue: [*listed] for catalogue, listed in catalogues.items()},
        "sizes": {"components": [*compare.SIZES]},
    }


def _defaults(owner: Callable[..., object]) -> JSON:
    """Return the defaults that JSON can hold, by name."""
    parameters = inspect.signature(owner).parameters.values()
    plain = str | int | float | tuple | None
    return {
        p.name: p.default
        for p in parameters
        if p.default is not inspect.Parameter.empty and isinstance(p.default, plain)
    }


if __name__ == "__main__":
    KEPT_IN.write_text(json.dumps(declared_by_the_package(), indent=1) + "\n", encoding="utf-8")
