"""What runs in a comparison: all kernels, or one that is named with all its features; linear machines always."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chimap._types import Parameters
from chimap.estimators.race_candidates import Look, candidates
from chimap.features.families import FAMILIES
from chimap.kernels import AdditiveKernel, Exponential, Gaussian, Kernel, Linear, as_kernel
from chimap.selection.race_trials import Candidate

SIZES = (256, 1024)
_EVERY = 10**9  # rows that every candidate is entered for


def all_kernels(look: Look) -> list[Candidate]:
    """Every kernel and normalisation that suits the rows, and the linear machines: all run, whatever others score."""
    return [replace(candidate, family="") for candidate in candidates(look, _EVERY)]


def of_kernel(
    kernel: str, gamma: float | str | None, look: Look, normalize: str | None = None
) -> list[Candidate]:
    """The exact machine of one kernel for every normalisation that suits the rows, and the linear machines.

    gamma: a number, or "auto" to have each fit choose. normalize: one normalisation alone, if it is given.
    """
    resolved = as_kernel(kernel, 1.0)
    tried = [normalize] if normalize is not None else _normalisations(resolved, look)
    more = {"gamma": gamma} if isinstance(resolved, Exponential | Gaussian) else {}
    made = [
        Candidate(
            f"{kernel}, {one or 'raw'} rows",
            {"kernel": kernel, "normalize": one, "features": "exact", "loss": "square", **more},
        )
        for one in tried
    ]
    return [*(c for c in all_kernels(look) if c.is_baseline), *made]


def _normalisations(kernel: Kernel, look: Look) -> list[str | None]:
    if look.is_signed:
        return [None]
    if isinstance(kernel, Linear | Gaussian):
        return [None, "log1p"] if look.has_counts else [None]
    return [None, "l1"] if look.has_sums else [None]


def features_of(
    winner: Candidate, learned: Parameters, look: Look, sizes: Sequence[int], n_rows: int
) -> list[Candidate]:
    """The other features that the kernel of an exact machine has, at the gamma that it chose.

    sizes: landmarks and random features to try. n_rows: that are learned from; landmarks are no more than these.
    """
    kernel = as_kernel(winner.settings["kernel"], 1.0)
    shared = {k: v for k, v in winner.settings.items() if k in ("kernel", "normalize", "gamma")}
    if "gamma" in learned and "gamma" in shared:
        shared["gamma"] = learned["gamma"]
    made: list[Parameters] = []
    if isinstance(kernel, AdditiveKernel) and any(f.takes(kernel) for f in FAMILIES["additive"]):
        made.append({"features": "additive", "loss": "square"})
        if look.takes_margins:
            made.append({"features": "additive", "loss": "hinge"})
    for word in ("landmarks", "fourier"):
        able = any(family.takes(kernel) for family in FAMILIES[word])
        if able and not isinstance(kernel, AdditiveKernel | Linear):
            made += [
                {"features": word, "loss": "square", "n_components": n}
                for n in sizes
                if word == "fourier" or n <= n_rows
            ]
    return [named(winner, {**shared, **more}) for more in made]


def named(base: Candidate, settings: Parameters) -> Candidate:
    """A candidate of the same kernel and normalisation with other settings, which its name tells."""
    n = settings.get("n_components")
    size = f" {n:,}" if isinstance(n, int) else ""
    how = "SVM" if settings.get("loss", "square") != "square" else f"{settings.get('features', '')}{size}"
    return Candidate(f"{base.name}, {how}", settings, base.is_baseline)
