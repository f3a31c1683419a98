"""The candidates of the race of kernel="auto": settings of an estimator that suit the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from chimap import _arrays
from chimap._types import Parameters, Rows
from chimap.data import Source
from chimap.engines.memory import LIBLINEAR_ENTRY_BYTES
from chimap.features.base import FeatureSettings
from chimap.features.exact.family import MOST_ROWS
from chimap.features.families import family_of
from chimap.fit.automatic import MOST_SUMMED
from chimap.fit.exact import exact_bytes
from chimap.selection.race_trials import Candidate
from chimap.solvers.exact_machines import bytes_beside

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

HISTOGRAM_KERNELS = ("chi2", "jensen_shannon", "hellinger", "intersection")
MOST_CLASSES = 50  # LIBLINEAR fits classes one after the other: more would take minutes
MOST_MARGIN_ROWS = 8000  # margins on a kernel matrix of so many rows take less than a minute
LIBLINEAR_BELOW = 0.1  # share of filled bins; on sparser rows its passes are cheap, and margins beat squares
FEWEST, ROWS_A_CANDIDATE = 3, 40
_ORDER = (
    "exp-chi2", "gaussian", "chi2", "exp-hellinger", "hellinger", "linear",
    "exp-jensen_shannon", "exp-intersection", "jensen_shannon", "intersection",
)  # fmt: skip
_SAME_SUMS = 1e-3  # relative spread of the row sums below which dividing by them changes nothing
_HIGH = 1.5  # on entries up to this, log1p is nearly linear


@dataclass(frozen=True)
class Look:
    """Properties of a sample of rows on which settings depend.

    is_signed: whether bins may be negative. density: share of bins that are not 0. has_sums: whether row sums differ.
    has_counts: whether entries are large enough for log1p to bend them. n_classes: number of classes, or of tasks plus
    one; 0 for regression.
    """

    is_signed: bool
    density: float
    has_sums: bool
    has_counts: bool
    n_classes: int

    @classmethod
    def at(cls, rows: Rows, n_classes: int) -> Look:
        """Return the properties of rows (n, bins), dense or CSR."""
        values = _arrays.stored_values(rows)
        filled = np.count_nonzero(values)
        sums = np.asarray(rows.sum(axis=1), dtype=np.float64).ravel()
        return cls(
            is_signed=bool(values.min(initial=0) < 0),
            density=filled / max(1, rows.shape[0] * rows.shape[1]),
            has_sums=bool(sums.std() > _SAME_SUMS * abs(sums.mean())),
            has_counts=bool(values.max(initial=0) > _HIGH),
            n_classes=n_classes,
        )

    @property
    def takes_margins(self) -> bool:
        """Whether LIBLINEAR is worth its passes."""
        return 0 < self.n_classes <= MOST_CLASSES and self.density < LIBLINEAR_BELOW


def candidates(look: Look, n_rows: int) -> list[Candidate]:
    """Return the candidates, simpler ones first: of equal scores the first wins.

    Few rows cannot tell many candidates apart, and the luckiest of many would win. So the number of candidates is
    limited by the number of rows (``ROWS_A_CANDIDATE``): the baselines and the most different kernels enter before
    those that are close to others.
    """
    entered = [
        *_baselines(look),
        *_linear_margins(look),
        *_additive(look),
        *_exponential(look),
        *_exact_margins(look),
    ]
    most = max(FEWEST, n_rows // ROWS_A_CANDIDATE)
    kept = sorted(entered, key=_rank)[:most]
    return [
        replace(candidate, shares=_shared(candidate), family=_family(candidate))
        for candidate in entered
        if candidate in kept
    ]


def _shared(candidate: Candidate) -> str:
    """Return the additive kernel, normalisation and features, whose maps and products candidates share."""
    settings = candidate.settings
    base = "linear" if settings["kernel"] == "gaussian" else settings["kernel"].removeprefix("exp-")
    return f"{base} {settings['normalize']} {settings['features']}"


def _family(candidate: Candidate) -> str:
    """Return the family: margins, or additive or exponential kernels with one normalisation.

    Linear machines by ridge have no family.
    """
    settings = candidate.settings
    if settings["loss"] != "square":
        return "margins" if settings["features"] == "additive" else "exact margins"
    if settings["kernel"] in ("linear", "gaussian"):
        return "" if settings["kernel"] == "linear" else candidate.name
    form = "exponential" if settings["kernel"].startswith("exp-") else "additive"
    return f"{form} {settings['normalize']}"


def within(entered: list[Candidate]) -> list[Candidate]:
    """Return only the kernels and normalisations of candidates: features, loss and gamma are the user's."""
    unique: dict[tuple[object, object], Candidate] = {}
    for candidate in entered:
        kernel, normalize = candidate.settings["kernel"], candidate.settings["normalize"]
        settings = {"kernel": kernel, "normalize": normalize}
        name = f"{kernel}, {normalize or 'raw'} rows"
        unique.setdefault((kernel, normalize), Candidate(name, settings, candidate.is_baseline))
    return list(unique.values())


def within_room(
    entered: list[Candidate], density: float, source: Source, room: int, in_race: int
) -> list[Candidate]:
    """Return the candidates that fit into memory.

    Margins keep the features of all rows, with LIBLINEAR's copy, or a kernel matrix and linear systems of its rows,
    which landmarks do not replace. in_race: bytes that the trials take.
    """

    def fits(candidate: Candidate) -> bool:
        settings = candidate.settings
        if settings["loss"] == "square":
            return True
        if settings["features"] == "exact":
            beside = bytes_beside(settings["loss"], source.n_rows)
            needed = exact_bytes(source.n_rows, 2 * source.row_bytes, np.dtype(np.float32))
            return source.n_rows <= MOST_MARGIN_ROWS and beside + max(needed, in_race) <= room
        mapped = FeatureSettings(settings["kernel"], features=settings["features"])
        n_features = family_of(mapped).footprint(mapped, source.n_features).features
        return density * source.n_rows * n_features * LIBLINEAR_ENTRY_BYTES <= room

    return [candidate for candidate in entered if fits(candidate)]


def _rank(candidate: Candidate) -> tuple[bool, int, bool]:
    """Return the sort key: baselines first, then kernels in the order of ``_ORDER``, normalised rows first."""
    settings = candidate.settings
    return not candidate.is_baseline, _ORDER.index(settings["kernel"]), settings["normalize"] is None


def _baselines(look: Look) -> list[Candidate]:
    """Return linear ridge on the rows as they are and on their square roots: its strength is the cheapest to find."""
    baselines = [
        Candidate("linear ridge, raw rows", {"kernel": "linear", "normalize": None, **_squares()}, True)
    ]
    if not look.is_signed:
        roots = {"kernel": "linear", "normalize": "sqrt", **_squares()}  # the Hellinger kernel without a map
        baselines.append(Candidate("linear ridge, square roots", roots, True))
    return baselines


def _linear_margins(look: Look) -> list[Candidate]:
    """Return the same by LIBLINEAR, square roots first: they are better for sparse counts."""
    if not look.takes_margins:
        return []
    raw = Candidate("linear SVM, raw rows", {"kernel": "linear", "normalize": None, **_margins()})
    roots = Candidate("linear SVM, square roots", {"kernel": "linear", "normalize": "sqrt", **_margins()})
    return [raw] if look.is_signed else [roots, raw]


def _additive(look: Look) -> list[Candidate]:
    """Return additive kernels by ridge, and by margins too if rows are sparse; linear ridge on logarithms of counts."""
    additive = []
    if look.has_counts and not look.is_signed:
        additive.append(
            Candidate("linear, log1p rows", {"kernel": "linear", "normalize": "log1p", **_squares()})
        )
    if look.is_signed:
        return additive
    for normalize in _normalisations(look):
        for kernel in HISTOGRAM_KERNELS:
            if kernel == "hellinger" and normalize is None:
                continue  # this is the linear machine on square roots
            settings = {"kernel": kernel, "normalize": normalize}
            additive.append(Candidate(_name(kernel, normalize), {**settings, **_squares()}))
            # For raw rows, the baseline on square roots covers margins already.
            if look.takes_margins and kernel in ("chi2", "hellinger") and (normalize or not look.has_sums):
                additive.append(Candidate(f"{_name(kernel, normalize)}, SVM", {**settings, **_margins()}))
    return additive


def _exponential(look: Look) -> list[Candidate]:
    """Return exponential kernels, whose fits choose gamma; the Gaussian one also on logarithms of counts."""
    exponential = [
        Candidate("gaussian, raw rows", {"kernel": "gaussian", "normalize": None, **_squares(gamma="auto")})
    ]
    if look.is_signed:
        return exponential
    if look.has_counts:
        log = {"kernel": "gaussian", "normalize": "log1p", **_squares(gamma="auto")}
        exponential.append(Candidate("gaussian, log1p rows", log))
    for normalize in _normalisations(look):
        for kernel in HISTOGRAM_KERNELS:
            settings = {"kernel": f"exp-{kernel}", "normalize": normalize, **_squares(gamma="auto")}
            exponential.append(Candidate(_name(f"exp-{kernel}", normalize), settings))
    return exponential


def _exact_margins(look: Look) -> list[Candidate]:
    """Return margins on kernel matrices, for more classes than LIBLINEAR takes.

    Each class is then a small share of the rows, and ridge wastes effort on keeping the others at -1. The strongest
    come first, because a family is judged by its first candidate.
    """
    if look.n_classes <= MOST_CLASSES:
        return []
    kernels: list[tuple[str, str | None]] = [("gaussian", None), ("linear", None)]
    if not look.is_signed:
        normalize = _normalisations(look)[-1]
        kernels = [("exp-chi2", normalize), ("chi2", normalize), ("linear", "sqrt"), *kernels]
        if look.has_counts:
            kernels.insert(1, ("gaussian", "log1p"))
    return [
        Candidate(
            f"{_name(kernel, normalize)}, SVM",
            {"kernel": kernel, "normalize": normalize, "features": "exact", "loss": "squared_hinge"}
            | ({"gamma": "auto"} if kernel not in ("linear", "chi2") else {}),
        )
        for kernel, normalize in kernels
    ]


def _normalisations(look: Look) -> list[str | None]:
    return [None, "l1"] if look.has_sums else [None]


def _name(kernel: str, normalize: str | None) -> str:
    return f"{kernel}, {normalize or 'raw'} rows"


def _squares(**more: object) -> Parameters:
    return {"features": "exact", "loss": "square", **more}


def _margins() -> Parameters:
    return {"features": "additive", "loss": "hinge"}


def settings_for(
    winner: Candidate, learned: Parameters, n_rows: int, n_bins: int, fits: bool, is_sparse: bool = False
) -> Parameters:
    """Return the settings of the winner for all rows.

    Exact machines of additive kernels become ridge on the map where rows are many, and others landmarks where memory
    holds neither their matrix nor blocks of it. learned: what its last trial chose. fits: whether it does.
    is_sparse: whether rows are sparse; they may then have any number of mapped bins.
    """
    settings = dict(winner.settings)
    if settings.get("features") == "landmarks":
        settings.pop("n_components", None)  # chosen again to suit all rows
    if settings.get("features") != "exact" or (fits and (n_rows <= MOST_ROWS or "gamma" in settings)):
        return settings
    if "gamma" in settings:
        return {**settings, "features": "landmarks", "gamma": learned.get("gamma", "mean")}
    return {**settings, "features": "additive", "n_terms": 2 if is_sparse or 2 * n_bins <= MOST_SUMMED else 1}


def is_free(model: BaseEstimator, or_named: bool = False) -> bool:
    """Return whether features, loss and gamma are left open, and all settings are supported by exact machines.

    or_named: gamma may be given if the kernel is named.
    """
    defaults = {
        "features": "auto",
        "gamma": "mean",
        "loss": "square",
        "map": None,
        "blocks": None,
        "n_principal": None,
        "device": "cpu",
    }
    parameters = model.get_params(deep=False)
    if or_named and not _same(parameters["kernel"], "auto"):
        del defaults["gamma"]
    return model.precision != "bfloat16" and all(
        _same(parameters[name], value) for name, value in defaults.items()
    )


def _same(value: object, usual: object) -> bool:
    return value is usual or (isinstance(value, str) and value == usual)
