"""Exact kernels: the oracle for every map and feature of the package.

``CATALOGUE`` names the additive kernels; "exp-" before a name gives the exponential form. A new additive kernel is
its signature and spectrum in a file of this folder and a line here; a compiled formula in ``_loops/kernels.py``
makes it some fifty times as fast.
"""

from __future__ import annotations

from chimap.kernels.additive import AdditiveKernel, chi2, hellinger, intersection, jensen_shannon
from chimap.kernels.base import Kernel
from chimap.kernels.exponential import Exponential

CATALOGUE = {k.name: k for k in (chi2, intersection, jensen_shannon, hellinger)}

__all__ = [
    "AdditiveKernel",
    "CATALOGUE",
    "Exponential",
    "Kernel",
    "as_kernel",
    "chi2",
    "hellinger",
    "intersection",
    "jensen_shannon",
    "names",
]


def names() -> list[str]:
    """What ``as_kernel`` takes."""
    return [*CATALOGUE, *(f"exp-{name}" for name in CATALOGUE)]


def as_kernel(kernel: str | Kernel, gamma: float | str = "mean") -> Kernel:
    """The kernel of a name such as "chi2" or "exp-chi2", or the object itself.

    ``gamma`` is that of the exponential form and is not used otherwise. "-" and "_" are the same in names.
    """
    if isinstance(kernel, Kernel):
        return kernel
    text = str(kernel).lower().replace("_", "-")
    base, is_exponential = (text[4:], True) if text.startswith("exp-") else (text, False)
    additive = CATALOGUE.get(base.replace("-", "_"))
    if additive is None:
        raise ValueError(f"kernel must be one of {', '.join(names())}, or a kernel object; got {kernel!r}.")
    return Exponential(additive, gamma) if is_exponential else additive
