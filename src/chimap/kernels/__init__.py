"""Exact kernels: the oracle for every map and feature of the package.

``CATALOGUE`` names the additive kernels; "exp-" before a name gives the exponential form. A new additive kernel is
its signature and spectrum in a file of this folder and a line here; a compiled formula in ``_loops/kernels.py``
makes it some fifty times as fast.
"""

from __future__ import annotations

from collections.abc import Callable

from chimap.kernels.additive import AdditiveKernel, chi2, hellinger, intersection, jensen_shannon
from chimap.kernels.arccos import ArccosKernel
from chimap.kernels.base import Kernel
from chimap.kernels.dirichlet import DirichletKernel
from chimap.kernels.exponential import Exponential, Gaussian
from chimap.kernels.plain import Linear
from chimap.kernels.skewed import SkewedChi2, SkewedIntersection

CATALOGUE = {k.name: k for k in (chi2, intersection, jensen_shannon, hellinger)}

OTHERS: dict[str, Callable[[], Kernel]] = {
    "linear": Linear,
    "skewed-chi2": SkewedChi2,
    "skewed-intersection": SkewedIntersection,
    "dirichlet": DirichletKernel,
}
"""Kernels by name that are not additive over the bins, or not homogeneous."""

__all__ = [
    "AdditiveKernel",
    "ArccosKernel",
    "CATALOGUE",
    "DirichletKernel",
    "Exponential",
    "Gaussian",
    "Kernel",
    "Linear",
    "OTHERS",
    "SkewedChi2",
    "SkewedIntersection",
    "as_kernel",
    "chi2",
    "hellinger",
    "intersection",
    "jensen_shannon",
    "names",
]


def names() -> list[str]:
    """What ``as_kernel`` takes."""
    return [*CATALOGUE, *(f"exp-{name}" for name in CATALOGUE), "gaussian", *OTHERS]


def as_kernel(kernel: str | Kernel, gamma: float | str = "mean") -> Kernel:
    """The kernel of a name such as "chi2", "exp-chi2" or "gaussian", or the object itself.

    ``gamma`` is that of the exponential forms and is not used otherwise. "-" and "_" are the same in names.
    """
    if isinstance(kernel, Kernel):
        return kernel
    text = str(kernel).lower().replace("_", "-")
    if text == "gaussian":
        return Gaussian(gamma)
    if text in OTHERS:
        return OTHERS[text]()
    base, is_exponential = (text[4:], True) if text.startswith("exp-") else (text, False)
    additive = CATALOGUE.get(base.replace("-", "_"))
    if additive is None:
        raise ValueError(f"kernel must be one of {', '.join(names())}, or a kernel object; got {kernel!r}.")
    return Exponential(additive, gamma) if is_exponential else additive
