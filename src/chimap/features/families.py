"""The catalogue of feature families, and the choice of one for a kernel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from sklearn.base import clone

from chimap._errors import InputError
from chimap._messages import Message
from chimap._validation import check_choice
from chimap.features.additive.base import AdditiveMap
from chimap.features.additive.families import AdditiveFamily, DirichletFamily, LinearFamily
from chimap.features.additive.stationary import StationaryMap
from chimap.features.base import Family, Features, FeatureSettings
from chimap.features.blocks import BlockFeatures
from chimap.features.exact import ExactBlocks
from chimap.features.exact.family import ExactFamily
from chimap.features.fourier.families import FourierFamily, SkewedFourierFamily
from chimap.features.landmarks.family import LandmarkFamily, NystroemFamily

FAMILIES: dict[str, tuple[type[Family], ...]] = {
    "additive": (AdditiveFamily, DirichletFamily, LinearFamily, StationaryMap),
    "fourier": (FourierFamily, SkewedFourierFamily),
    "landmarks": (LandmarkFamily, NystroemFamily),
    "exact": (ExactFamily,),
}
"""The families by the value of the parameter ``features``."""

AUTOMATIC: tuple[type[Family], ...] = (
    *FAMILIES["additive"],
    LandmarkFamily,
    *FAMILIES["fourier"],
    NystroemFamily,
)
"""features="auto" takes the first of these that serves the kernel, if there are too many rows for the exact machine."""


def check_features(features: str | Features) -> None:
    """Raise ValueError for a string that is not in the catalogue."""
    if not isinstance(features, str):
        return
    check_choice(features, "features", ("auto", *FAMILIES))


def family_of(settings: FeatureSettings) -> type[Family]:
    """Return the family that makes the features.

    Raises ValueError, naming families that serve the kernel, if the requested one does not.
    """
    if not isinstance(settings.features, str):
        return _family_of_object(settings.features)
    kernel = settings.exact
    able = {
        name: next(family for family in families if family.takes(kernel))
        for name, families in FAMILIES.items()
        if any(family.takes(kernel) for family in families)
    }
    if settings.features == "auto":
        chosen = next(family for family in AUTOMATIC if family.takes(kernel))
        if chosen not in FAMILIES["landmarks"] or (settings.sampling == "auto" and settings.form == "pair"):
            return chosen
        if "fourier" not in able:
            raise InputError(
                Message(
                    "{!r} has no random features: {sampling} must be 'auto'; got {!r}.",
                    kernel.name,
                    settings.sampling,
                )
            )
        return able["fourier"]
    if settings.features not in able:
        raise InputError(
            Message(
                "{features=} does not serve the kernel {!r}: use 'auto' or {}.",
                settings.features,
                kernel.name,
                " or ".join(map(repr, able)),
            )
        )
    return able[settings.features]


def made_by(family: type[Family]) -> type:
    """Return the class of the features of a family: the one that it names as ``makes``, or the family itself."""
    made: type = getattr(family, "makes", family)
    return made


def joined_by(families: Iterable[type[Family]]) -> type[BlockFeatures | ExactBlocks]:
    """Return the class that joins features of blocks: what all their families name as ``joins``, or ``BlockFeatures``.

    Values of a kernel with every row are added up over the blocks; other features stand side by side.
    """
    joins = {getattr(family, "joins", BlockFeatures) for family in families}
    return joins.pop() if len(joins) == 1 else BlockFeatures


def make_features(settings: FeatureSettings, seed: int) -> Features:
    """Return unfitted features: from the catalogue, or a clone of given features."""
    if isinstance(settings.features, str):
        return family_of(settings).of(settings, seed)
    made = clone(settings.features)
    open = made.get_params(deep=False)
    if open.get("random_state", seed) is None:
        made.set_params(random_state=seed)
    # The rows may have been scaled to magnitudes near 1, and the kernel with them.
    return made.set_params(kernel=settings.exact) if "kernel" in open else made


def settings_of(features: Features) -> FeatureSettings:
    """Return the settings that would have produced given features, fitted or not."""
    kernel = getattr(features, "kernel_", getattr(features, "kernel", "linear"))
    known = {
        name: getattr(features, name)
        for name in ("gamma", "n_components", "n_terms", "map", "sampling", "form", "landmarks")
        if hasattr(features, name)
    }
    settings = replace(FeatureSettings(kernel, features=features), **known)
    return replace(settings, map=features) if isinstance(features, AdditiveMap) else settings


def _family_of_object(features: object) -> type[Family]:
    for family in (family for families in FAMILIES.values() for family in families):
        if isinstance(features, made_by(family)):
            return family
    if isinstance(features, type):
        raise InputError(
            Message(
                "{features} is the class {}: give an object, such as {}(), or a word.",
                features.__name__,
                features.__name__,
            )
        )
    missing = [
        name for name in ("features_into", "footprint", "fitting_bytes") if not hasattr(features, name)
    ]
    if missing:
        raise InputError(
            Message(
                "{features} must be one of {}, or an object such as FourierFeatures(); {!r} has no {}.",
                ", ".join(["auto", *FAMILIES]),
                features,
                " and no ".join(missing),
            )
        )
    return cast(type[Family], type(features))
