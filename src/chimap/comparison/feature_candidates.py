"""What is tried: every map and every random feature of the catalogues that takes the kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from chimap._validation import check_positive
from chimap.features.additive import CATALOGUE as MAPS
from chimap.features.additive import DirichletMap
from chimap.features.base import Features
from chimap.features.fourier import FourierFeatures, SkewedFourierFeatures
from chimap.features.fourier.sampling import BY_QUANTILE
from chimap.features.fourier.sampling import CATALOGUE as SAMPLINGS
from chimap.features.landmarks.landmark_features import LandmarkFeatures
from chimap.features.landmarks.nystroem import NystroemFeatures
from chimap.features.minmax import MinMaxFeatures
from chimap.kernels import AdditiveKernel, DirichletKernel, Exponential, Kernel, MinMax
from chimap.kernels.skewed import Skewed

TERMS = (1, 2, 3, 5)
COMPONENTS = (256, 1024, 4096)
_INNER_TERMS = (2,)  # of the map below random features, whose own error is far larger
_USUAL = ("optimal", _INNER_TERMS[0])
_SAMPLING = "orthogonal"


@dataclass(frozen=True)
class Candidate:
    """A family of features with one number that makes them better and dearer.

    label: for tables and legends. make(size): an unfitted transformer. kernel: the exact kernel that it approximates.
    sizes: to try. unit: what a size counts, "terms" (a bin) or "features" (in all).
    """

    label: str
    make: Callable[[int], Features]
    kernel: Kernel
    sizes: tuple[int, ...]
    unit: str
    takes_rows: bool = False  # whether a size takes as many rows as landmarks


def candidates_for(
    kernel: Kernel,
    *,
    maps: Sequence[str] | None = None,
    n_terms: Sequence[int] | None = None,
    n_components: Sequence[int] = COMPONENTS,
    random_state: int = 0,
) -> list[Candidate]:
    """Candidates of a kernel: additive maps over ``n_terms``, random features of an exponential one over
    ``n_components``, landmarks over ``n_components`` where the package has them.

    maps: names in the catalogue of maps. None is every map that takes an additive kernel; below random features it is
    the optimal map, and the frequencies are drawn in every way of the catalogue of samplings.
    n_terms: None is 1, 2, 3, 5, or 2 below random features.
    Raises ValueError for an unknown map, one that does not take the kernel, and sizes that are not positive.
    """
    additive = kernel.kernel if isinstance(kernel, Exponential) else kernel
    terms = n_terms if n_terms is not None else _INNER_TERMS if isinstance(kernel, Exponential) else TERMS
    for name, sizes in (("n_terms", terms), ("n_components", n_components)):
        if not sizes:
            raise ValueError(f"{name} must hold at least one number; got none.")
        for size in sizes:
            check_positive(size, f"each of {name}", integer=True)
    terms, components = tuple(sorted(set(terms))), tuple(sorted(set(n_components)))
    if not isinstance(additive, AdditiveKernel):
        if maps is not None:
            raise ValueError(
                f"maps are of additive kernels and their exponential forms; got {kernel.name!r}."
            )
        return _without_map(kernel, components, random_state) + _landmarks(kernel, components, random_state)
    chosen = _chosen_maps(additive, maps)
    if isinstance(kernel, Exponential):
        names = ["optimal"] if maps is None else chosen
        candidates = _fourier(kernel, names, terms, components, random_state)
    else:
        candidates = [_map(name, additive, terms, components, random_state) for name in chosen]
    return candidates + (_landmarks(kernel, components, random_state) if maps is None else [])


def _chosen_maps(kernel: AdditiveKernel, names: Sequence[str] | None) -> list[str]:
    """Names of maps in the order of the catalogue, or as given."""
    able = [name for name, make in MAPS.items() if make.takes(kernel)]
    if names is None:
        return able
    for name in names:
        if name not in MAPS:
            raise ValueError(f"maps must be among {', '.join(MAPS)}; got {name!r}.")
        if name not in able:
            raise ValueError(
                f"maps: {name!r} does not approximate {kernel.name!r}. Maps of it: {', '.join(able)}."
            )
    return list(dict.fromkeys(names))


def _map(
    name: str, kernel: AdditiveKernel, terms: tuple[int, ...], components: tuple[int, ...], seed: int
) -> Candidate:
    """A map of the catalogue; one that has no terms a bin is sized by its features in all."""
    make = MAPS[name]
    if "n_terms" not in inspect.signature(make).parameters:
        return Candidate(
            make.__name__,
            lambda size: _made(make, kernel, "n_components", size, seed),
            kernel,
            components,
            "features",
        )
    return Candidate(
        make.__name__,
        lambda size: _made(make, kernel, "n_terms", size, seed),
        kernel,
        terms,
        "terms",
    )


def _made(make: Callable[..., Features], kernel: Kernel, size_name: str, size: int, seed: int) -> Features:
    is_random = "random_state" in inspect.signature(make).parameters
    return make(kernel=kernel, **{size_name: size}, **({"random_state": seed} if is_random else {}))


def _fourier(
    kernel: Exponential, names: list[str], terms: tuple[int, ...], components: tuple[int, ...], seed: int
) -> list[Candidate]:
    """The first map with every sampling; the others, and other terms, with the orthogonal one."""
    ways = [(sampling, names[0], terms[0]) for sampling in SAMPLINGS]
    ways += [(_SAMPLING, name, n) for name in names for n in terms if (name, n) != (names[0], terms[0])]
    return [_one_fourier(kernel, way, components, seed) for way in ways]


def _one_fourier(
    kernel: Exponential, way: tuple[str, str, int], components: tuple[int, ...], seed: int
) -> Candidate:
    sampling, name, n_terms = way

    def make(size: int) -> FourierFeatures:
        inner: Any = _made(MAPS[name], kernel.kernel, "n_terms", n_terms, seed)
        return FourierFeatures(kernel, size, map=inner, n_terms=n_terms, sampling=sampling, random_state=seed)

    label = f"FourierFeatures, {sampling}"
    if (name, n_terms) != _USUAL:
        label += f", {MAPS[name].__name__} with {n_terms} term{'s' if n_terms > 1 else ''}"
    return Candidate(label, make, kernel, components, "features")


def _without_map(kernel: Kernel, components: tuple[int, ...], seed: int) -> list[Candidate]:
    """Random features of the Gaussian and the skewed kernels, with every sampling that they take; the Dirichlet map."""
    if isinstance(kernel, Exponential):
        make: Callable[..., Features] = FourierFeatures
        samplings: Sequence[str] = tuple(SAMPLINGS)
    elif isinstance(kernel, Skewed):
        make, samplings = SkewedFourierFeatures, tuple(BY_QUANTILE)
    elif isinstance(kernel, DirichletKernel):
        return [Candidate("DirichletMap", lambda size: DirichletMap(kernel), kernel, (1,), "terms")]
    else:
        return []

    def one(sampling: str) -> Candidate:
        return Candidate(
            f"{make.__name__}, {sampling}",
            lambda size: make(kernel, n_components=size, sampling=sampling, random_state=seed),
            kernel,
            components,
            "features",
        )

    return [one(sampling) for sampling in samplings]


def _landmarks(kernel: Kernel, components: tuple[int, ...], seed: int) -> list[Candidate]:
    """Landmarks by products of mapped rows where the kernel has them, those of any kernel, and bits of min-max."""
    made: list[Callable[..., Features]] = [NystroemFeatures]
    if LandmarkFeatures.takes(kernel):
        made.insert(0, LandmarkFeatures)
    candidates = [_of_rows(make, kernel, components, seed) for make in made]
    if isinstance(kernel, MinMax):
        bits = lambda size: MinMaxFeatures(n_components=size, random_state=seed)  # noqa: E731
        candidates.insert(0, Candidate("MinMaxFeatures", bits, kernel, components, "features"))
    return candidates


def _of_rows(
    make: Callable[..., Features], kernel: Kernel, components: tuple[int, ...], seed: int
) -> Candidate:
    return Candidate(
        make.__name__, lambda size: make(kernel, n_components=size, random_state=seed), kernel, components,
        "features", takes_rows=True,
    )  # fmt: skip
