"""``scipy.sparse``, imported when one of its names is first used, so that dense rows are opened faster."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return a name of ``scipy.sparse``, and keep it for the next use (PEP 562)."""
    if name.startswith("__"):
        raise AttributeError(name)
    import scipy.sparse

    globals()[name] = getattr(scipy.sparse, name)
    return globals()[name]
