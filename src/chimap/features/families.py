"""The catalogue of feature families, and which of them a kernel gets."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from sklearn.base import clone

from chimap._validation import check_choice
from chimap.features.additive.base import AdditiveMap
from chimap.features.additive.families import AdditiveFamily, DirichletFamily, LinearFamily
from chimap.features.additive.stationary import StationaryMap
from chimap.features.base import Family, Features, FeatureSettings
from chimap.features.exact.family import ExactFamily
from chimap.features.fourier.families import FourierFamily, SkewedFourierFamily
from chimap.features.landmarks.family import LandmarkFamily, NystroemFamily

FAMILIES: dict[str, tuple[type[Family], ...]] = {
    "additive": (AdditiveFamily, DirichletFamily, LinearFamily, StationaryMap),
    "fourier": (FourierFamily, SkewedFourierFamily),
    "landmarks": (LandmarkFamily, NystroemFamily),
    "exact": (ExactFamily,),
}
"""By the word of the parameter ``features``."""

AUTOMATIC: tuple[type[Family], ...] = (
    *FAMILIES["additive"],
    LandmarkFamily,
    *FAMILIES["fourier"],
    NystroemFamily,
)
"""features="auto" is the first of these that takes the kernel, where rows are too many for the exact machine."""


def check_features(features: Features) -> None:
    """Refuse a word that is no line of the catalogue."""
    if not isinstance(features, str):
        return
    check_choice(features, "features", ("auto", *FAMILIES))


def family_of(settings: FeatureSettings) -> type[Family]:
    """The family that makes the features. ValueError, naming those that would do, where none takes the kernel."""
    if not isinstance(settings.features, str):
        return _family_of_object(settings.features)
    kernel = settings.exact
    able = {
        word: next(family for family in several if family.takes(kernel))
        for word, several in FAMILIES.items()
        if any(family.takes(kernel) for family in several)
    }
    if settings.features == "auto":
        first = next(family for family in AUTOMATIC if family.takes(kernel))
        if first not in FAMILIES["landmarks"] or (settings.sampling == "auto" and settings.form == "pair"):
            return first
        if "fourier" not in able:
            raise ValueError(
                f"{kernel.name!r} has no random features: sampling must be 'auto'; got {settings.sampling!r}."
            )
        return able["fourier"]
    if settings.features not in able:
        raise ValueError(
            f"features={settings.features!r} are not features of {kernel.name!r}: use 'auto' or "
            f"{' or '.join(map(repr, able))}."
        )
    return able[settings.features]


def make_features(settings: FeatureSettings, seed: int) -> Features:
    """Unfitted features: of the catalogue, or a copy of those that are given."""
    if isinstance(settings.features, str):
        return family_of(settings).of(settings, seed)
    made = clone(settings.features)
    # rows may have been brought near 1, and the kernel with them
    return made.set_params(kernel=settings.exact) if "kernel" in made.get_params(deep=False) else made


def settings_of(features: Features) -> FeatureSettings:
    """What features that are given, fitted or not, would have been asked for by."""
    kernel = getattr(features, "kernel_", getattr(features, "kernel", "linear"))
    asked = {
        name: getattr(features, name)
        for name in ("gamma", "n_components", "n_terms", "map", "sampling", "form", "landmarks")
        if hasattr(features, name)
    }
    settings = replace(FeatureSettings(kernel, features=features), **asked)
    return replace(settings, map=features) if isinstance(features, AdditiveMap) else settings


def _family_of_object(features: object) -> type[Family]:
    for family in (family for several in FAMILIES.values() for family in several):
        if isinstance(features, family.makes):
            return family
    missing = [
        name for name in ("features_into", "footprint", "fitting_bytes") if not hasattr(features, name)
    ]
    if missing:
        raise ValueError(
            f"features must be a word of the catalogue ({', '.join(['auto', *FAMILIES])}) or features of a kernel, "
            f"such as FourierFeatures(); {features!r} has no {' and no '.join(missing)}."
        )
    return cast(type[Family], type(features))
