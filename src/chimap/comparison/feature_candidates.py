"""The features that ``kernel_errors`` measures: every map and random feature in the catalogues that suits a kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from chimap._errors import InputError
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
INNER_TERMS = (2,)  # terms of the map below random features, which have a far larger error
_USUAL = ("optimal", INNER_TERMS[0])
_SAMPLING = "orthogonal"


@dataclass(frozen=True)
class FeatureCandidate:
    """A family of features whose size trades accuracy for cost.

    Parameters
    ----------
    label : str
        Name for tables and legends.
    make : callable
        ``make(size)`` returns an unfitted transformer.
    kernel : Kernel
        The exact kernel that it approximates.
    sizes : tuple of int
        Sizes to try.
    unit : {"terms", "features"}
        What a size counts: terms of each bin, or features in all.
    takes_rows : bool, default=False
        Whether a size takes as many rows, as landmarks do.
    """

    label: str
    make: Callable[[int], Features]
    kernel: Kernel
    sizes: tuple[int, ...]
    unit: str
    takes_rows: bool = False


def candidates_for(
    kernel: Kernel,
    *,
    maps: Sequence[str] | None = None,
    n_terms: Sequence[int] | None = None,
    n_components: Sequence[int] = COMPONENTS,
    random_state: int = 0,
) -> list[FeatureCandidate]:
    """Return the candidates for a kernel.

    They are additive maps over ``n_terms``, random features of an exponential kernel over ``n_components``, and
    landmarks over ``n_components`` where the package has them.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    maps : sequence of str or None, default=None
        Names in the catalogue of maps. None tries every map that takes an additive kernel. For an exponential kernel,
        None uses the optimal map below the random features, whose frequencies are drawn in every way of the catalogue
        of samplings.
    n_terms : sequence of int or None, default=None
        Terms of the maps; None for 1, 2, 3, 5, or 2 below random features.
    n_components : sequence of int, default=(256, 1024, 4096)
        Numbers of random features and landmarks.
    random_state : int, default=0
        Seed.

    Raises
    ------
    ValueError
        If a map is unknown or does not take the kernel, or a size is not positive.
    """
    additive = kernel.kernel if isinstance(kernel, Exponential) else kernel
    terms = n_terms if n_terms is not None else INNER_TERMS if isinstance(kernel, Exponential) else TERMS
    for name, sizes in (("n_terms", terms), ("n_components", n_components)):
        if not sizes:
            raise InputError(f"{name} must hold at least one number; got none.")
        for size in sizes:
            check_positive(size, f"each of {name}", integer=True)
    terms, components = tuple(sorted(set(terms))), tuple(sorted(set(n_components)))
    if not isinstance(additive, AdditiveKernel):
        if maps is not None:
            raise InputError(
                f"maps need an additive kernel or an exponential form of one; got {kernel.name!r}."
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
    """Return names of maps, in the order of the catalogue or as given."""
    suitable = [name for name, make in MAPS.items() if make.takes(kernel)]
    if names is None:
        return suitable
    for name in names:
        if name not in MAPS:
            raise InputError(f"maps must be among {', '.join(MAPS)}; got {name!r}.")
        if name not in suitable:
            raise InputError(
                f"maps: {name!r} does not approximate {kernel.name!r}. Maps that do: {', '.join(suitable)}."
            )
    return list(dict.fromkeys(names))


def _map(
    name: str, kernel: AdditiveKernel, terms: tuple[int, ...], components: tuple[int, ...], seed: int
) -> FeatureCandidate:
    """Return a map of the catalogue; the size of one without terms is its number of features in all."""
    make = MAPS[name]
    if "n_terms" not in inspect.signature(make).parameters:
        return FeatureCandidate(
            make.__name__,
            lambda size: _made(make, kernel, "n_components", size, seed),
            kernel,
            components,
            "features",
        )
    return FeatureCandidate(
        make.__name__,
        lambda size: _made(make, kernel, "n_terms", size, seed),
        kernel,
        terms,
        "terms",
    )


def _made(make: Callable[..., Features], kernel: Kernel, size_name: str, size: int, seed: int) -> Features:
    """Return an unfitted transformer of a size, with the seed if it takes one."""
    is_random = "random_state" in inspect.signature(make).parameters
    return make(kernel=kernel, **{size_name: size}, **({"random_state": seed} if is_random else {}))


def _fourier(
    kernel: Exponential, names: list[str], terms: tuple[int, ...], components: tuple[int, ...], seed: int
) -> list[FeatureCandidate]:
    """Return the first map with every sampling, and other maps and terms with the orthogonal one."""
    settings = [(sampling, names[0], terms[0]) for sampling in SAMPLINGS]
    settings += [(_SAMPLING, name, n) for name in names for n in terms if (name, n) != (names[0], terms[0])]
    return [_one_fourier(kernel, setting, components, seed) for setting in settings]


def _one_fourier(
    kernel: Exponential, way: tuple[str, str, int], components: tuple[int, ...], seed: int
) -> FeatureCandidate:
    """Return random features with one sampling, map and number of terms."""
    sampling, name, n_terms = way

    def make(size: int) -> FourierFeatures:
        inner: Any = _made(MAPS[name], kernel.kernel, "n_terms", n_terms, seed)
        return FourierFeatures(kernel, size, map=inner, n_terms=n_terms, sampling=sampling, random_state=seed)

    label = f"FourierFeatures, {sampling}"
    if (name, n_terms) != _USUAL:
        label += f", {MAPS[name].__name__} with {n_terms} term{'s' if n_terms > 1 else ''}"
    return FeatureCandidate(label, make, kernel, components, "features")


def _without_map(kernel: Kernel, components: tuple[int, ...], seed: int) -> list[FeatureCandidate]:
    """Return random features of a Gaussian or skewed kernel, with every sampling they take, or the Dirichlet map."""
    if isinstance(kernel, Exponential):
        make: Callable[..., Features] = FourierFeatures
        samplings: Sequence[str] = tuple(SAMPLINGS)
    elif isinstance(kernel, Skewed):
        make, samplings = SkewedFourierFeatures, tuple(BY_QUANTILE)
    elif isinstance(kernel, DirichletKernel):
        return [FeatureCandidate("DirichletMap", lambda size: DirichletMap(kernel), kernel, (1,), "terms")]
    else:
        return []

    def one(sampling: str) -> FeatureCandidate:
        return FeatureCandidate(
            f"{make.__name__}, {sampling}",
            lambda size: make(kernel, n_components=size, sampling=sampling, random_state=seed),
            kernel,
            components,
            "features",
        )

    return [one(sampling) for sampling in samplings]


def _landmarks(kernel: Kernel, components: tuple[int, ...], seed: int) -> list[FeatureCandidate]:
    """Return landmarks by products of mapped rows where possible, those of any kernel, and bits for min-max."""
    families: list[Callable[..., Features]] = [NystroemFeatures]
    if LandmarkFeatures.takes(kernel):
        families.insert(0, LandmarkFeatures)
    candidates = [_of_rows(make, kernel, components, seed) for make in families]
    if isinstance(kernel, MinMax):
        bits = lambda size: MinMaxFeatures(n_components=size, random_state=seed)  # noqa: E731
        candidates.insert(0, FeatureCandidate("MinMaxFeatures", bits, kernel, components, "features"))
    return candidates


def _of_rows(
    make: Callable[..., Features], kernel: Kernel, components: tuple[int, ...], seed: int
) -> FeatureCandidate:
    """Return a candidate whose features are made of rows."""
    return FeatureCandidate(
        make.__name__, lambda size: make(kernel, n_components=size, random_state=seed), kernel, components,
        "features", takes_rows=True,
    )  # fmt: skip
