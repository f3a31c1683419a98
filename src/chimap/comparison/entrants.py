"""The candidates of a comparison: all kernels, or one named kernel with all its features; linear machines always."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chimap._types import Parameters
from chimap.estimators.race_candidates import Look, candidates
from chimap.features.families import FAMILIES
from chimap.fit.recipe import checked_normalizations
from chimap.kernels import AdditiveKernel, Exponential, Gaussian, Kernel, Linear, as_kernel
from chimap.race.trials import Candidate

SIZES = (256, 1024)


def all_kernels(look: Look) -> list[Candidate]:
    """Return every kernel and normalisation that suits the rows, and the linear machines; all of them run."""
    return [replace(candidate, family="") for candidate in candidates(look)]


def of_kernel(
    kernel: str,
    gamma: float | str | None,
    look: Look,
    normalize: str | Sequence[str | None] | None = None,
) -> list[Candidate]:
    """Return the exact machine of a kernel for every normalisation that suits the rows, and the linear machines.

    ``gamma`` is a number, or "auto" for each fit to choose. ``normalize``, if given, are the only normalisations.
    """
    resolved = as_kernel(kernel, 1.0)
    normalisations = _normalisations(resolved, look)
    if normalize is not None:
        normalisations = [None if each is None else each.name for each in checked_normalizations(normalize)]
    gamma_setting = {"gamma": gamma} if isinstance(resolved, Exponential | Gaussian) else {}
    machines = [
        Candidate(
            f"{kernel}, {normalisation or 'raw'} rows",
            {
                "kernel": kernel,
                "normalize": normalisation,
                "features": "exact",
                "loss": "square",
                **gamma_setting,
            },
        )
        for normalisation in normalisations
    ]
    return [*(c for c in all_kernels(look) if c.is_baseline), *machines]


def _normalisations(kernel: Kernel, look: Look) -> list[str | None]:
    """Return the normalisations that suit a kernel and the rows."""
    if look.is_signed:
        return [None]
    if isinstance(kernel, Linear | Gaussian):
        return [None, "log1p"] if look.has_counts else [None]
    return [None, "l1"] if look.has_sums else [None]


def features_of(
    winner: Candidate, learned: Parameters, look: Look, sizes: Sequence[int], n_rows: int
) -> list[Candidate]:
    """Return the other features of the kernel of an exact machine, at the gamma that the machine chose.

    ``sizes`` are the numbers of landmarks and random features to try. ``n_rows`` is the number of rows to learn from,
    which bounds the landmarks.
    """
    kernel = as_kernel(winner.settings["kernel"], 1.0)
    shared = {k: v for k, v in winner.settings.items() if k in ("kernel", "normalize", "gamma")}
    if "gamma" in learned and "gamma" in shared:
        shared["gamma"] = learned["gamma"]
    settings: list[Parameters] = []
    if isinstance(kernel, AdditiveKernel) and any(f.takes(kernel) for f in FAMILIES["additive"]):
        settings.append({"features": "additive", "loss": "square"})
        if look.takes_margins:
            settings.append({"features": "additive", "loss": "hinge"})
    for features in ("landmarks", "fourier"):
        has_features = any(family.takes(kernel) for family in FAMILIES[features])
        if has_features and not isinstance(kernel, AdditiveKernel | Linear):
            settings += [
                {"features": features, "loss": "square", "n_components": n}
                for n in sizes
                if features == "fourier" or n <= n_rows
            ]
    return [named(winner, {**shared, **setting}) for setting in settings]


def named(base: Candidate, settings: Parameters) -> Candidate:
    """Return a candidate of the same kernel and normalisation with other settings, which are part of its name."""
    n = settings.get("n_components")
    size = f" {n:,}" if isinstance(n, int) else ""
    how = "SVM" if settings.get("loss", "square") != "square" else f"{settings.get('features', '')}{size}"
    return Candidate(f"{base.name}, {how}", settings, base.is_baseline)
