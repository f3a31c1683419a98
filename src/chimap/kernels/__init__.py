"""Exact kernels: the reference that every feature map of the package approximates.

``CATALOGUE`` names the additive kernels; "exp-" before a name gives the exponential form. To add an additive kernel,
write its signature and spectrum in a file of this folder and add it to ``CATALOGUE``; a compiled formula in
``_loops/kernels.py`` makes it some fifty times as fast.
"""

from __future__ import annotations

import re

from chimap._catalogue import Catalogue
from chimap._validation import ParameterError
from chimap.kernels.additive import AdditiveKernel, chi2, hellinger, intersection, jensen_shannon
from chimap.kernels.anisotropic import Anisotropic
from chimap.kernels.arccos import ArccosKernel
from chimap.kernels.base import Kernel, Product, Sum
from chimap.kernels.columns import OnColumns
from chimap.kernels.exponential import Exponential, Gaussian
from chimap.kernels.minmax import MinMax
from chimap.kernels.ordinal import PQKernel
from chimap.kernels.plain import Linear
from chimap.kernels.skewed import SkewedChi2, SkewedIntersection

CATALOGUE = {"chi2": chi2, "intersection": intersection, "jensen_shannon": jensen_shannon, "hellinger": hellinger}

OTHERS = Catalogue[type[Kernel]](
    {
        "linear": Linear,
        "skewed-chi2": SkewedChi2,
        "skewed-intersection": SkewedIntersection,
        "pq": PQKernel,
        "dirichlet": "chimap.papers.dirichlet:DirichletKernel",
        "minmax": MinMax,
    }
)
"""Kernels by name that are not additive over the bins, or not homogeneous."""

STATIONARY = Catalogue[Kernel](
    {
        "additive-gaussian": "chimap.papers.stationary:stationary_gaussian",
        "additive-laplace": "chimap.papers.stationary:stationary_laplace",
        "additive-student": "chimap.papers.stationary:stationary_cauchy",
    }
)
"""Kernels by name that are sums over the bins of a function of a difference, for bins of either sign."""

_WEIGHTED = re.compile(r"(\d+\.?\d*|\.\d+) *\*([^+]+)")  # a product that begins with its weight

__all__ = [
    "AdditiveKernel",
    "Anisotropic",
    "ArccosKernel",
    "CATALOGUE",
    "Exponential",
    "Gaussian",
    "Kernel",
    "Linear",
    "MinMax",
    "OTHERS",
    "OnColumns",
    "PQKernel",
    "STATIONARY",
    "Product",
    "SkewedChi2",
    "SkewedIntersection",
    "Sum",
    "as_kernel",
    "chi2",
    "hellinger",
    "intersection",
    "jensen_shannon",
    "names",
]


def names() -> list[str]:
    """Return the kernel names that ``as_kernel`` accepts.

    Returns
    -------
    list of str
        The additive kernels, their exponential forms, "gaussian", the other kernels and the stationary ones.

    Examples
    --------
    >>> {"chi2", "exp-chi2", "gaussian"} <= set(names())
    True
    """
    return [*CATALOGUE, *(f"exp-{name}" for name in CATALOGUE), "gaussian", *OTHERS, *STATIONARY]


def as_kernel(kernel: str | Kernel, gamma: float | str = "mean") -> Kernel:
    """Return the kernel with the given name, such as "chi2", "exp-chi2", "gaussian", "chi2 + pq" or "2*minmax".

    Parameters
    ----------
    kernel : str or Kernel
        A name from ``names``, or several names joined by "+" (a sum) or "*" (a product); a product may begin with a
        number, its weight. Case does not matter, and "_" is read as "-". A kernel object is returned unchanged.
    gamma : float or str, default="mean"
        Bandwidth of the exponential forms, as in ``Exponential``; other kernels ignore it.

    Returns
    -------
    Kernel
        The kernel object.

    Raises
    ------
    ValueError
        If the name is not known.

    Examples
    --------
    >>> as_kernel("exp-chi2", gamma=2.0).name
    'exp-chi2'
    """
    if isinstance(kernel, Kernel):
        return kernel
    text = str(kernel).lower().replace("_", "-").strip()
    weighted = _WEIGHTED.fullmatch(text)
    if weighted and float(weighted[1]) > 0:
        return float(weighted[1]) * as_kernel(weighted[2], gamma)
    for sign, combined in (("+", Sum), ("*", Product)):
        if sign in text:
            return combined(tuple(as_kernel(term, gamma) for term in text.split(sign)))
    if text == "gaussian":
        return Gaussian(gamma)
    if text in OTHERS:
        return OTHERS[text]()
    if text in STATIONARY:
        return STATIONARY[text]
    base, is_exponential = (text[4:], True) if text.startswith("exp-") else (text, False)
    additive = CATALOGUE.get(base.replace("-", "_"))
    if additive is None:
        wanted = (
            f"one of {', '.join(names())}, several of these joined by '+' or '*', '2*' before one, or a kernel object"
        )
        raise ParameterError("kernel", kernel, wanted)
    return Exponential(additive, gamma) if is_exponential else additive
