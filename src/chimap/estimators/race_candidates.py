"""The candidates of the race of kernel="auto": settings of an estimator that suit the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from chimap import _arrays
from chimap._types import Parameters, Rows
from chimap.backends import on_host
from chimap.data import Source
from chimap.engines.memory import LIBLINEAR_ENTRY_BYTES
from chimap.features.base import FeatureSettings
from chimap.features.exact import has_map
from chimap.features.exact.family import MOST_ROWS
from chimap.features.families import family_of
from chimap.fit.automatic import MOST_SUMMED
from chimap.race.trials import Candidate
from chimap.solvers.kernel_matrix import bytes_beside, exact_bytes

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

HISTOGRAM_KERNELS = ("chi2", "jensen_shannon", "hellinger", "intersection")
MOST_CLASSES = 50  # LIBLINEAR fits classes one after the other: more would take minutes
MOST_MARGIN_ROWS = 8000  # margins on a kernel matrix of so many rows take less than a minute
LIBLINEAR_BELOW = 0.1  # share of filled bins; on sparser rows its passes are cheap, and margins beat squares
FEWEST, ROWS_A_CANDIDATE = 3, 40
_ORDER = (
    "exp-chi2", "gaussian", "minmax", "chi2", "exp-hellinger", "hellinger", "linear",
    "exp-jensen_shannon", "exp-intersection", "jensen_shannon", "intersection",
)  # fmt: skip
_SAME_SUMS = 1e-3  # relative spread of the row sums below which dividing by them changes nothing
_HIGH = 1.5  # on entries up to this, log1p is nearly linear
_TOTALS = (1.0, 100.0)  # sums of rows of shares; bins that were left out may be missing from them
_MISSING, _ROUNDED = 0.5, 1.01  # share of the total that may be missing, and how far rounding may exceed it
_TAIL = 20  # times the median of filled entries: a 99th percentile beyond it spans more than an order of magnitude
_FILLED = 0.9  # on rows with a larger share of filled bins, presence says little
_MOST_FILLED = (
    300  # filled bins of a row of many: the min-max kernel compares them pair by pair, without products
)
_LOGS_OF_SHARES = ("log-cpm", "log-cp10k")

PREFERRED_AMOUNTS: tuple[tuple[str, str | None], ...] = (
    ("minmax", "log-cpm"), ("minmax", "log-cp10k"), ("minmax", "presence"), ("exp-hellinger", "log-cpm"),
    ("exp-hellinger", "log-cp10k"), ("gaussian", "presence"), ("linear", "presence"), ("linear", "log-cpm"),
    ("minmax", "log1p"), ("exp-hellinger", "log1p"), ("gaussian", "log1p"), ("exp-chi2", None), ("exp-chi2", "l1"),
)  # fmt: skip
PREFERRED_CELLS: tuple[tuple[str, str | None], ...] = (
    ("exp-hellinger", "log-cp10k"), ("minmax", "log-cp10k"), ("exp-hellinger", "log-cpm"), ("minmax", "log-cpm"),
    ("linear", "log-cp10k"), ("linear", "log-cpm"), ("exp-hellinger", "log1p"), ("gaussian", "log1p"),
    ("exp-hellinger", "l1"), ("exp-chi2", "l1"), ("exp-chi2", None),
)  # fmt: skip
PREFERRED: tuple[tuple[str, str | None], ...] = (
    ("exp-chi2", None), ("minmax", None), ("gaussian", "log1p"), ("minmax", "log1p"), ("exp-chi2", "l1"),
    ("exp-hellinger", None), ("exp-hellinger", "log1p"), ("gaussian", None),
)  # fmt: skip
"""Machines in the order in which few rows prefer them. Amounts with a long tail are those of species, mostly of two
classes, for which the first list is, or of genes in cells of many types, for which the second is; the third is for all
other tables. Measured on half of the tables of ``benchmarks/accuracy/fields.py``: on tables of
some dozen rows the best of twenty machines is mostly the luckiest, and the first of these lists beats it by two points.
"""


@dataclass(frozen=True)
class Look:
    """Properties of a sample of rows on which settings depend.

    is_signed: whether bins may be negative. density: share of bins that are not 0. has_sums: whether row sums differ.
    has_counts: whether entries are large enough for log1p to bend them. n_classes: number of classes, or of tasks plus
    one; 0 for regression. is_counted: whether all entries are whole numbers. has_shares: whether rows sum to 1 or to
    100, or to less where bins were left out. has_tail: whether filled entries span more than an order of magnitude.
    n_bins: number of bins. is_wide: whether bins outnumber rows. is_few: whether rows are few, so that a machine takes
    next to no time.
    """

    is_signed: bool
    density: float
    has_sums: bool
    has_counts: bool
    n_classes: int
    is_counted: bool = False
    has_shares: bool = False
    has_tail: bool = False
    n_bins: int = 0
    is_wide: bool = False
    is_few: bool = False

    @classmethod
    def at(cls, rows: Rows, n_classes: int, is_few: bool = False) -> Look:
        """Return the properties of rows (n, bins), dense or CSR."""
        values = _arrays.stored_values(rows)
        filled = values[values != 0]
        sums = np.asarray(rows.sum(axis=1), dtype=np.float64).ravel()
        middle, high = np.percentile(filled, [50, 99]) if filled.size else (1.0, 1.0)
        return cls(
            is_signed=bool(values.min(initial=0) < 0),
            density=filled.size / max(1, rows.shape[0] * rows.shape[1]),
            has_sums=bool(sums.std() > _SAME_SUMS * abs(sums.mean())),
            has_counts=bool(values.max(initial=0) > _HIGH),
            n_classes=n_classes,
            is_counted=bool((filled == np.round(filled)).all()),
            has_shares=any(
                bool(np.median(sums) > _MISSING * total and sums.max(initial=0) < _ROUNDED * total)
                for total in _TOTALS
            ),
            has_tail=bool(high > _TAIL * middle),
            n_bins=rows.shape[1],
            is_wide=rows.shape[1] > rows.shape[0],
            is_few=is_few,
        )

    @property
    def takes_margins(self) -> bool:
        """Whether LIBLINEAR is worth its passes."""
        return 0 < self.n_classes <= MOST_CLASSES and self.density < LIBLINEAR_BELOW

    @property
    def _has_amounts(self) -> bool:
        """Whether rows are counts whose totals mean nothing, or shares."""
        return not self.is_signed and (
            self.has_shares or (self.is_counted and self.has_counts and self.has_sums)
        )

    @property
    def has_log_shares(self) -> bool:
        """Whether logarithms of shares may tell more than shares: those of species and genes, which span decades.

        Of many rows, only those whose entries have a long tail are worth the time; counts of words and of
        substructures have none.
        """
        return self._has_amounts and (self.is_few or self.has_tail)

    @property
    def has_presence(self) -> bool:
        """Whether it may matter more which bins are filled than by how much."""
        return (
            self._has_amounts and self.density < _FILLED and (self.is_few or (self.has_tail and self.is_wide))
        )

    @property
    def has_words(self) -> bool:
        """Whether rows may be counts of words: sparse whole numbers, some of them above 1."""
        return not self.is_signed and self.is_counted and self.has_counts and self.density < LIBLINEAR_BELOW

    @property
    def compares_pairs(self) -> bool:
        """Whether the min-max kernel is worth its time, as it compares rows pair by pair and bin by bin."""
        return not self.is_signed and (
            self.is_few or (self.is_counted and self.density * self.n_bins < _MOST_FILLED)
        )


def candidates(look: Look, most: int | None = None) -> list[Candidate]:
    """Return the candidates, simpler ones first: of equal scores the first wins.

    Of few rows, those come first that win most often on tables of the kind: see ``PREFERRED``.

    Where rounds on few rows could not tell many candidates apart, ``most`` limits their number: the baselines and the
    most different kernels enter before those that are close to others.
    """
    entered = [
        *_baselines(look),
        *_linear_margins(look),
        *_additive(look),
        *_exponential(look),
        *_shares_of_rows(look),
        *_exact_margins(look),
    ]
    kept = entered if most is None else sorted(entered, key=_rank)[:most]
    if look.is_few:
        entered = sorted(entered, key=lambda candidate: _preference(candidate, look))
    return [
        replace(candidate, shares=_shared(candidate), family=_family(candidate))
        for candidate in entered
        if candidate in kept
    ]


def most_candidates(n_rows: int) -> int:
    """Return how many candidates rounds on parts of ``n_rows`` rows can tell apart: the luckiest of more would win."""
    return max(FEWEST, n_rows // ROWS_A_CANDIDATE)


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
    if settings["kernel"] in ("linear", "gaussian", "minmax"):
        return "" if settings["kernel"] == "linear" else candidate.name
    form = "exponential" if settings["kernel"].startswith("exp-") else "additive"
    return f"{form} {settings['normalize']}"


def on_normalizations(
    entered: list[Candidate], normalizations: Sequence[str | None], look: Look
) -> list[Candidate]:
    """Return the candidates on these normalisations: those that enter anyway, and the most different kernels."""
    kept = [c for c in entered if c.settings["normalize"] in normalizations]
    names = {(c.settings["kernel"], c.settings["normalize"]) for c in kept}
    kernels = (
        ("linear", "gaussian") if look.is_signed else ("linear", "gaussian", "exp-chi2", "exp-hellinger")
    )
    for normalize in normalizations:
        for kernel in kernels:
            if (kernel, normalize) not in names:
                settings: Parameters = {"kernel": kernel, "normalize": normalize, **_squares()}
                settings |= {} if kernel == "linear" else {"gamma": "auto"}
                kept.append(Candidate(_name(kernel, normalize), settings, kernel == "linear"))
    return [replace(each, shares=_shared(each), family=_family(each)) for each in kept]


def within(entered: list[Candidate]) -> list[Candidate]:
    """Return only the kernels and normalisations of candidates: features, loss and gamma are the user's."""
    unique: dict[tuple[object, object], Candidate] = {}
    for candidate in entered:
        kernel, normalize = candidate.settings["kernel"], candidate.settings["normalize"]
        if kernel == "minmax":
            continue  # it has only some of the features that the user may ask for
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


def on_device(entered: list[Candidate], device: str) -> list[Candidate]:
    """Return the candidates that can be fitted with a device: LIBLINEAR's margins are for the host alone."""
    return [candidate for candidate in entered if on_host(device) or candidate.settings["loss"] != "hinge"]


def _preference(candidate: Candidate, look: Look) -> int:
    """Return the place of a candidate of few rows in the list for the kind of table; others follow those listed."""
    order = PREFERRED
    if look.has_log_shares and look.has_tail:
        order = PREFERRED_CELLS if look.n_classes > 2 else PREFERRED_AMOUNTS
    machine = candidate.settings["kernel"], candidate.settings["normalize"]
    return order.index(machine) if machine in order else len(order)


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
    """Return the same by LIBLINEAR, square roots first: they are better for sparse counts; and tf-idf for words.

    Few rows are compared by left-out rows, which LIBLINEAR does not have in closed form.
    """
    if not look.takes_margins or look.is_few:
        return []
    raw = Candidate("linear SVM, raw rows", {"kernel": "linear", "normalize": None, **_margins()})
    roots = Candidate("linear SVM, square roots", {"kernel": "linear", "normalize": "sqrt", **_margins()})
    words = [Candidate("linear SVM, tf-idf rows", {"kernel": "linear", "normalize": "tf-idf", **_margins()})]
    return [raw] if look.is_signed else [roots, raw, *(words if look.has_words else [])]


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
            if (
                look.takes_margins
                and not look.is_few
                and kernel in ("chi2", "hellinger")
                and (normalize or not look.has_sums)
            ):
                additive.append(Candidate(f"{_name(kernel, normalize)}, SVM", {**settings, **_margins()}))
    return additive


def _exponential(look: Look) -> list[Candidate]:
    """Return exponential kernels, whose fits choose gamma; the Gaussian one also on logarithms of counts."""
    exponential = [
        Candidate("gaussian, raw rows", {"kernel": "gaussian", "normalize": None, **_squares(gamma="auto")})
    ]
    if look.is_signed:
        return exponential
    for transformed, is_there in (("log1p", look.has_counts), ("tf-idf", look.has_words)):
        if is_there:
            settings = {"kernel": "gaussian", "normalize": transformed, **_squares(gamma="auto")}
            exponential.append(Candidate(_name("gaussian", transformed), settings))
    for normalize in _normalisations(look):
        for kernel in HISTOGRAM_KERNELS:
            settings = {"kernel": f"exp-{kernel}", "normalize": normalize, **_squares(gamma="auto")}
            exponential.append(Candidate(_name(f"exp-{kernel}", normalize), settings))
    return exponential


def _shares_of_rows(look: Look) -> list[Candidate]:
    """Return what the fields of species, genes and molecules compare rows by.

    These are logarithms of shares, and of counts, which differ by orders of magnitude; which bins are filled; and the
    min-max kernel, the generalised Tanimoto similarity of counts of substructures, on each of them.
    """
    logs = [n for n in _LOGS_OF_SHARES if look.has_log_shares]
    presence = ["presence"] if look.has_presence else []
    counts = ["log1p"] if look.has_counts and not look.is_signed and (look.is_few or look.has_tail) else []
    words = ["tf-idf"] if look.has_words and look.is_few else []
    shares = [
        Candidate(_name("linear", normalize), {"kernel": "linear", "normalize": normalize, **_squares()})
        for normalize in [*logs, *presence, *words]
    ]
    exponential = [
        *(("exp-hellinger", normalize) for normalize in [*logs, *counts]),
        *(("exp-chi2", normalize) for normalize in counts),
        *(("gaussian", normalize) for normalize in presence),
    ]
    shares += [
        Candidate(
            _name(kernel, normalize), {"kernel": kernel, "normalize": normalize, **_squares(gamma="auto")}
        )
        for kernel, normalize in exponential
    ]
    if not look.compares_pairs:
        return shares
    raw = [None] if look.is_few or not look.is_wide else []
    return shares + [
        Candidate(_name("minmax", normalize), {"kernel": "minmax", "normalize": normalize, **_squares()})
        for normalize in [*logs, *presence, *(counts if look.is_few else []), *raw]
    ]


def _exact_margins(look: Look) -> list[Candidate]:
    """Return margins on kernel matrices, for more classes than LIBLINEAR takes.

    Each class is then a small share of the rows, and ridge wastes effort on keeping the others at -1. The strongest
    come first, because a family is judged by its first candidate.
    """
    if look.n_classes <= MOST_CLASSES or look.is_few:
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
    if not has_map(FeatureSettings(settings["kernel"]).exact):
        return {**settings, "features": "landmarks"}
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
    }
    parameters = model.get_params(deep=False)
    if or_named and not _same(parameters["kernel"], "auto"):
        del defaults["gamma"]
    return model.precision != "bfloat16" and all(
        _same(parameters[name], value) for name, value in defaults.items()
    )


def _same(value: object, usual: object) -> bool:
    return value is usual or (isinstance(value, str) and value == usual)
