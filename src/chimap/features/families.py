"""The catalogue of feature families, and the choice of one for a kernel."""

from __future__ import annotations

from chimap._errors import InputError
from chimap._messages import Message
from chimap._validation import check_choice
from chimap.features.additive.dirichlet import DirichletMap
from chimap.features.additive.identity import IdentityMap
from chimap.features.additive.optimal import OptimalMap
from chimap.features.additive.stationary import StationaryMap
from chimap.features.base import Features
from chimap.features.exact import ExactFeatures
from chimap.features.fourier import FourierFeatures, SkewedFourierFeatures
from chimap.features.landmarks import LandmarkFeatures, NystroemFeatures
from chimap.kernels import Kernel

FAMILIES: dict[str, tuple[type[Features], ...]] = {
    "additive": (OptimalMap, DirichletMap, IdentityMap, StationaryMap),
    "fourier": (FourierFeatures, SkewedFourierFeatures),
    "landmarks": (LandmarkFeatures, NystroemFeatures),
    "exact": (ExactFeatures,),
}
"""The classes of features by the value of the parameter ``features``; the first that takes the kernel makes them."""

AUTOMATIC: tuple[type[Features], ...] = (
    *FAMILIES["additive"],
    LandmarkFeatures,
    *FAMILIES["fourier"],
    NystroemFeatures,
)
"""features="auto" takes the first of these that serves the kernel, if there are too many rows for the exact machine."""


def check_features(features: object) -> None:
    """Raise ValueError for a string that is not in the catalogue, and for an object that is no features."""
    if isinstance(features, str):
        check_choice(features, "features", ("auto", *FAMILIES))
    elif isinstance(features, type):
        raise InputError(
            Message(
                "{features} is the class {}: give an object, such as {}(), or a word.",
                features.__name__,
                features.__name__,
            )
        )
    elif not isinstance(features, Features):
        raise InputError(
            Message(
                "{features} must be one of {}, or an object such as FourierFeatures(); {!r} has no features_into and "
                "no footprint.",
                ", ".join(["auto", *FAMILIES]),
                features,
            )
        )


def class_of(word: str, kernel: Kernel, sampling: str = "auto", form: str = "pair") -> type[Features]:
    """Return the class of the features of a kernel: "auto" chooses one, Fourier features where waves are asked for.

    Raises ValueError, naming families that serve the kernel, if the requested one does not.
    """
    able = {
        name: next(made for made in family if made.takes(kernel))
        for name, family in FAMILIES.items()
        if any(made.takes(kernel) for made in family)
    }
    if word == "auto":
        chosen = next(made for made in AUTOMATIC if made.takes(kernel))
        if chosen not in FAMILIES["landmarks"] or (sampling == "auto" and form == "pair"):
            return chosen
        if "fourier" not in able:
            raise InputError(
                Message("{!r} has no random features: {sampling} must be 'auto'; got {!r}.", kernel.name, sampling)
            )
        return able["fourier"]
    if word not in able:
        raise InputError(
            Message(
                "{features=} does not serve the kernel {!r}: use 'auto' or {}.",
                word,
                kernel.name,
                " or ".join(map(repr, able)),
            )
        )
    return able[word]
