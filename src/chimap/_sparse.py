"""``scipy.sparse``, imported when the first of its names is used: dense rows are opened in less time without."""

from typing import Any


def __getattr__(name: str) -> Any:
    """A name of ``scipy.sparse``, at hand from the first use on (PEP 562)."""
    if name.startswith("__"):
        raise AttributeError(name)
    import scipy.sparse

    globals()[name] = getattr(scipy.sparse, name)
    return globals()[name]
