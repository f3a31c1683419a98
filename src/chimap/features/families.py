"""The catalogue of feature families, the choice of one for a kernel, and features as an estimator is given them."""

from __future__ import annotations

from collections.abc import Sequence

from sklearn.base import BaseEstimator, clone

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import MatrixLike, Parameters
from chimap._validation import AUTO, check_choice, is_auto
from chimap.features.additive.base import AdditiveMap
from chimap.features.additive.identity import IdentityMap
from chimap.features.additive.optimal import OptimalMap
from chimap.features.base import Features
from chimap.features.exact import ExactFeatures
from chimap.features.fourier import FourierFeatures, SkewedFourierFeatures
from chimap.features.landmarks import LandmarkFeatures, NystroemFeatures
from chimap.kernels import Kernel
from chimap.model_files import register, register_addresses

register_addresses({"MinMaxFeatures": "chimap.features.minmax:MinMaxFeatures"})  # which no family has

FAMILIES: dict[str, tuple[type[Features], ...]] = {
    "additive": (OptimalMap, IdentityMap),
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
        check_choice(features, "features", (AUTO, *FAMILIES))
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
                ", ".join([AUTO, *FAMILIES]),
                features,
            )
        )


def class_of(word: str, kernel: Kernel, sampling: str = "auto", form: str = "pair") -> type[Features]:
    """Return the class of the features of a kernel: "auto" chooses one, Fourier features where waves are asked for.

    Raises ValueError, naming families that serve the kernel, if the requested one does not.
    """
    asks_for_waves = not is_auto(sampling) or form != "pair"
    own_map = kernel.own_map
    if own_map is not None and word in (AUTO, "additive") and not asks_for_waves:
        return own_map
    if is_auto(word):
        chosen = _first_of(AUTOMATIC, kernel)
        if chosen is not None and not (asks_for_waves and chosen in FAMILIES["landmarks"]):
            return chosen
        waves = _first_of(FAMILIES["fourier"], kernel)
        if waves is None:
            raise InputError(
                Message("{!r} has no random features: {sampling} must be 'auto'; got {!r}.", kernel.name, sampling)
            )
        return waves
    chosen = _first_of(FAMILIES[word], kernel)
    if chosen is None:
        able = [] if own_map is None else ["additive"]
        able += [name for name, family in FAMILIES.items() if _first_of(family, kernel) is not None]
        raise InputError(
            Message(
                "{features=} does not serve the kernel {!r}: use 'auto' or {}.",
                word,
                kernel.name,
                " or ".join(map(repr, able)),
            )
        )
    return chosen


def _first_of(classes: Sequence[type[Features]], kernel: Kernel) -> type[Features] | None:
    """Return the first class that takes the kernel."""
    return next((made for made in classes if made.takes(kernel)), None)


def has_number(features: Features) -> bool:
    """Whether the number of features is a setting: of landmarks or random features."""
    return "n_components" in features.settings


OPEN: Parameters = {
    "n_terms": "auto",
    "map": None,
    "sampling": "auto",
    "form": "pair",
    "landmarks": "kmeans",
    "n_principal": None,
}
"""The settings of features, where an estimator is given a word for them or leaves them open."""


class AutomaticFeatures(BaseEstimator):
    """The features that suit the kernel and the rows, with settings for whichever these are.

    An estimator chooses them as it does for a word (``features="auto"``, "landmarks", ...), and each kind takes those
    of the settings that it has.

    Parameters
    ----------
    family : str, default="auto"
        "auto", or the word for a family: "additive", "exact", "landmarks" or "fourier".
    map : additive map or None, default=None
        An unfitted map to use in place of ``OptimalMap(n_terms=n_terms)``.
    n_terms : int or "auto", default="auto"
        Features per bin of the additive map. "auto" is 2, and 1 below landmarks and in blocks of
        ``features="exact"``.
    sampling : str, default="auto"
        How the frequencies of Fourier features are drawn, see ``FourierFeatures``; with a value other than "auto" an
        exponential kernel has these features.
    form : str, default="pair"
        The form of the Fourier features; see ``FourierFeatures``.
    landmarks : str or array of rows, default="kmeans"
        How the landmarks of exponential kernels are chosen, see ``LandmarkFeatures``, or the landmarks as rows.

    Examples
    --------
    >>> from chimap import HistogramClassifier
    >>> model = HistogramClassifier("exp-chi2", features=AutomaticFeatures(n_terms=3))
    """

    def __init__(
        self,
        family: str = "auto",
        *,
        map: AdditiveMap | None = None,
        n_terms: int | str = "auto",
        sampling: str = "auto",
        form: str = "pair",
        landmarks: str | MatrixLike = "kmeans",
    ):
        self.family = family
        self.map = map
        self.n_terms = n_terms
        self.sampling = sampling
        self.form = form
        self.landmarks = landmarks

    def prescription(self) -> Parameters:
        """See ``Features.prescription``."""
        settings = self.get_params(deep=False)
        return {"features": settings.pop("family")} | settings

    def of_kernel(self, kernel: Kernel, n_components: int | str = "auto") -> Features:
        """Return unfitted features of a kernel, with those of the settings that are not left open.

        Parameters
        ----------
        kernel : Kernel
            The exact kernel.
        n_components : int or "auto", default="auto"
            The number of landmarks or of random features.

        Raises
        ------
        ValueError
            If the family does not serve the kernel; the message names families that do.
        """
        settings: Parameters = {"n_components": n_components} | self.prescription()
        made = class_of(settings.pop("features"), kernel, self.sampling, self.form)
        return made.of(kernel, **{name: value for name, value in settings.items() if not _is_usual(name, value)})


class PrincipalFeatures(BaseEstimator):
    """The leading principal components of other features, of each block of columns its own.

        [U_1'(z_1 - mean_1), .., U_r'(z_r - mean_r)] for r blocks

    They are computed from the moments of the features in a second pass over the rows. The fitted model has the features
    beneath, with the weights of the components turned into weights of the features.

    Parameters
    ----------
    n_components : int or sequence of int
        Number of components of each block; of several, folds choose the best.
    features : str or object, default="auto"
        The features beneath, as an estimator takes them.

    References
    ----------
    Li, Lebanon and Sminchisescu, A linear approximation to the chi2 kernel with geometric convergence, Algorithm 5.

    Examples
    --------
    >>> from chimap import HistogramClassifier, OptimalMap
    >>> model = HistogramClassifier("chi2", features=PrincipalFeatures(32, OptimalMap(n_terms=3)))
    """

    def __init__(self, n_components: int | Sequence[int], features: str | Features | AutomaticFeatures = "auto"):
        self.n_components = n_components
        self.features = features

    def prescription(self) -> Parameters:
        """See ``Features.prescription``."""
        return _prescription_of(self.features) | {"n_principal": self.n_components}


Prescribed = str | Features | AutomaticFeatures | PrincipalFeatures
"""What an estimator takes as ``features``."""


def with_features_unpacked(given: Parameters, n_terms: int | str = "auto") -> Parameters:
    """Return the parameters of an estimator with the settings that its ``features`` hold, in place of the object.

    What the estimator has for kernel and gamma comes first; where it leaves them open, the features have theirs.
    ``n_terms`` are the terms of features that say nothing of them.
    """
    asked = OPEN | _prescription_of(given["features"])
    if is_auto(asked["n_terms"]):
        asked["n_terms"] = n_terms
    kernel, gamma, n_components = (asked.pop(name, None) for name in ("kernel", "gamma", "n_components"))
    taken = given | asked
    if kernel is not None and is_auto(given["kernel"]):
        taken["kernel"] = kernel
    if gamma is not None and given["gamma"] == "mean":
        taken["gamma"] = gamma
    if n_components is not None:
        taken["n_components"] = n_components
    if isinstance(taken["features"], Features):
        taken["features"] = _completed(taken["features"], given)
    return taken


def features_with(settings: Parameters) -> Prescribed:
    """Return what an estimator takes as ``features`` for these settings: a word if it says all."""
    others = {name: settings[name] for name in OPEN if name in settings and not _is_usual(name, settings[name])}
    n_principal = others.pop("n_principal", None)
    features: Prescribed = settings["features"]
    if others and isinstance(features, str):
        features = AutomaticFeatures(features, **others)
    return features if n_principal is None else PrincipalFeatures(n_principal, features)


def _completed(features: Features, given: Parameters) -> Features:
    """Return features that are taken as they are, with the kernel and size of an estimator that names these."""
    own, named = features.settings, {}
    if "kernel" in own and isinstance(given["kernel"], str | Kernel) and not is_auto(given["kernel"]):
        named["kernel"] = given["kernel"]
    if own.get("n_components", 0) is None and not isinstance(given["n_components"], str):
        named["n_components"] = given["n_components"]
    return clone(features).set_params(**named) if named else features


def _prescription_of(features: Prescribed) -> Parameters:
    if isinstance(features, Features | AutomaticFeatures | PrincipalFeatures):
        return features.prescription()
    return {"features": features}


def _is_usual(name: str, value: object) -> bool:
    usual = OPEN.get(name, "auto")
    return value is usual or (isinstance(value, str) and value == usual)


register(AutomaticFeatures, PrincipalFeatures)
