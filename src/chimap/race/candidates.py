"""The candidates of a race: recipes that suit the rows, and what the winner becomes on all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from chimap import _arrays
from chimap._types import Parameters, Rows
from chimap._validation import AUTO
from chimap.backends import on_host
from chimap.data import Source
from chimap.engines.memory import LIBLINEAR_ENTRY_BYTES
from chimap.features.families import FAMILIES, AutomaticFeatures
from chimap.kernels import AdditiveKernel, Exponential, Gaussian, Kernel, Linear, as_kernel
from chimap.losses import Loss
from chimap.machines.base import named_settings
from chimap.race.trials import Candidate
from chimap.recipe import Recipe
from chimap.recipe.recipe import checked_normalizations
from chimap.solvers.kernel_matrix import bytes_beside, exact_bytes, is_iterated

HISTOGRAM_KERNELS = ("chi2", "jensen_shannon", "hellinger", "intersection")
MOST_CLASSES = 50  # LIBLINEAR fits classes one after the other: more would take minutes
MOST_MARGIN_ROWS = 8000  # margins on a kernel matrix of so many rows take less than a minute
LIBLINEAR_BELOW = 0.1  # share of filled bins; on sparser rows its passes are cheap, and margins beat squares
FEWEST, ROWS_A_CANDIDATE = 3, 40
_ORDER = (
    "exp-chi2",
    "gaussian",
    "minmax",
    "chi2",
    "exp-hellinger",
    "hellinger",
    "linear",
    "exp-jensen_shannon",
    "exp-intersection",
    "jensen_shannon",
    "intersection",
)
_SAME_SUMS = 1e-3  # relative spread of the row sums below which dividing by them changes nothing
_HIGH = 1.5  # on entries up to this, log1p is nearly linear
_MISSING, _ROUNDED = 0.5, 1.01  # share of the total that any rows may miss, and how far rounding may exceed it
_TAIL = 20  # times the median of filled entries: a 99th percentile beyond it spans more than an order of magnitude
_FILLED = 0.9  # on rows with a larger share of filled bins, presence says little
_MOST_FILLED = 300  # filled bins of a row of many: the min-max kernel compares them pair by pair, without products
_LOGS_OF_SHARES = ("log-cpm", "log-cp10k")

REFUSED = {"features", "gamma", "map", "blocks", "n_principal"}
"""Settings that trials which share products do not support; see ``named_settings``."""

PREFERRED_AMOUNTS: tuple[tuple[str, str | None], ...] = (
    ("minmax", "log-cpm"),
    ("minmax", "log-cp10k"),
    ("minmax", "presence"),
    ("exp-hellinger", "log-cpm"),
    ("exp-hellinger", "log-cp10k"),
    ("gaussian", "presence"),
    ("linear", "presence"),
    ("linear", "log-cpm"),
    ("minmax", "log1p"),
    ("exp-hellinger", "log1p"),
    ("gaussian", "log1p"),
    ("exp-chi2", None),
    ("exp-chi2", "l1"),
)
PREFERRED: tuple[tuple[str, str | None], ...] = (
    ("exp-chi2", None),
    ("minmax", None),
    ("gaussian", "log1p"),
    ("minmax", "log1p"),
    ("exp-chi2", "l1"),
    ("exp-hellinger", None),
    ("exp-hellinger", "log1p"),
    ("gaussian", None),
)
"""Machines in the order in which few rows of two classes, or of targets, prefer them: amounts with a long tail, such as
those of species, by the first list, all other tables by the second. Measured on half of the tables of
``benchmarks/accuracy/fields.py``: on tables of some dozen rows the best of twenty machines is mostly the luckiest, and
the first of these lists beats it by two points. Of many classes the best is better than any order.
"""


@dataclass(frozen=True)
class Look:
    """Properties of a sample of rows on which settings depend.

    is_signed: whether bins may be negative. density: share of bins that are not 0. has_sums: whether row sums differ.
    has_counts: whether entries are large enough for log1p to bend them. n_classes: number of classes, or of tasks plus
    one; 0 for regression. is_counted: whether all entries are whole numbers. has_shares: whether rows are shares or
    percentages, see ``are_shares``. has_tail: whether filled entries span more than an order of magnitude.
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
        density, has_tail = filled.size / max(1, rows.shape[0] * rows.shape[1]), bool(high > _TAIL * middle)
        return cls(
            is_signed=bool(values.min(initial=0) < 0),
            density=density,
            has_sums=bool(sums.std() > _SAME_SUMS * abs(sums.mean())),
            has_counts=bool(values.max(initial=0) > _HIGH),
            n_classes=n_classes,
            is_counted=bool((filled == np.round(filled)).all()),
            has_shares=are_shares(values, sums, density < _FILLED, has_tail),
            has_tail=has_tail,
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
        return not self.is_signed and (self.has_shares or (self.is_counted and self.has_counts and self.has_sums))

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
        return self._has_amounts and self.density < _FILLED and (self.is_few or (self.has_tail and self.is_wide))

    @property
    def has_words(self) -> bool:
        """Whether rows may be counts of words: sparse whole numbers, some of them above 1."""
        return not self.is_signed and self.is_counted and self.has_counts and self.density < LIBLINEAR_BELOW

    @property
    def compares_pairs(self) -> bool:
        """Whether the min-max kernel is worth its time, as it compares rows pair by pair and bin by bin."""
        return not self.is_signed and (self.is_few or (self.is_counted and self.density * self.n_bins < _MOST_FILLED))


def are_shares(values: np.ndarray, sums: np.ndarray, has_zeros: bool, has_tail: bool) -> bool:
    """Return whether the entries of rows, with these sums, are shares of 1 or of 100, of which bins may be left out.

    Rows may have lost any part of their total, as those of one clade or of a panel of species. What remains has zeros,
    and, of percentages, a long tail and entries above 1: spectra, weights of words and scaled features have not.

    >>> clade = np.array([[0.004, 0.0], [0.0, 0.1]])
    >>> are_shares(clade, clade.sum(axis=1), True, False), are_shares(5 * clade, np.array([0.02, 1.2]), True, True)
    (True, False)
    """
    highest, usual = sums.max(initial=0), np.median(sums)
    is_part = {1.0: has_zeros, 100.0: has_zeros and has_tail and values.max(initial=0) > _ROUNDED}
    return any(
        bool(highest < _ROUNDED * total and (may_be_part or usual > _MISSING * total))
        for total, may_be_part in is_part.items()
    )


@dataclass(frozen=True)
class KernelSpec:
    """A machine that may enter a race: a kernel on normalised rows, and what its weights minimise.

    Parameters
    ----------
    kernel : str
        Name of the kernel.
    normalize : str or None
        What is done to the rows first.
    method : {"ridge", "margins", "exact margins"}, default="ridge"
        Squares on the kernel matrix, LIBLINEAR's margins on explicit features, or margins on the kernel matrix.
    title : str, default=""
        Name for tables; empty for that of the kernel and the rows.
    is_baseline : bool, default=False
        See ``Candidate``.
    """

    kernel: str
    normalize: str | None
    method: Literal["ridge", "margins", "exact margins"] = "ridge"
    title: str = ""
    is_baseline: bool = False

    @property
    def name(self) -> str:
        """Name for tables."""
        return self.title or _name(self.kernel, self.normalize) + ("" if self.method == "ridge" else ", SVM")

    @property
    def features(self) -> str:
        """Features of the machine."""
        return "additive" if self.method == "margins" else "exact"

    @property
    def has_gamma(self) -> bool:
        """Whether the machine chooses the width of its kernel."""
        return self.kernel.startswith(("exp-", "gaussian"))

    @property
    def shares(self) -> str:
        """The additive kernel, normalisation and features, whose maps and products candidates share."""
        base = "linear" if self.kernel == "gaussian" else self.kernel.removeprefix("exp-")
        return f"{base} {self.normalize} {self.features}"

    @property
    def family(self) -> str:
        """Margins, or additive or exponential kernels with one normalisation; linear ridge has no family."""
        if self.method != "ridge":
            return self.method
        if self.kernel in ("linear", "gaussian", "minmax"):
            return "" if self.kernel == "linear" else self.name
        form = "exponential" if self.kernel.startswith("exp-") else "additive"
        return f"{form} {self.normalize}"

    def candidate(self, asked: Recipe, has_family: bool = True) -> Candidate:
        """Return the candidate of a race for this recipe; without a family it runs whatever its like score."""
        loss = {"ridge": _ridge_loss(asked), "margins": "hinge", "exact margins": "squared_hinge"}[self.method]
        recipe = asked.with_raced(kernel=self.kernel, normalize=self.normalize, features=self.features, loss=loss)
        if self.has_gamma:
            recipe = recipe.with_raced(gamma=AUTO)
        return Candidate(self.name, recipe, self.is_baseline, self.shares, self.family if has_family else "")

    def candidate_within(self, asked: Recipe) -> Candidate:
        """Return the candidate with this kernel and normalisation; features, loss and gamma are those of the recipe."""
        recipe = asked.with_raced(kernel=self.kernel, normalize=self.normalize)
        return Candidate(_name(self.kernel, self.normalize), recipe, self.is_baseline)


def entries(look: Look, most: int | None = None) -> list[KernelSpec]:
    """Return the machines that suit the rows, simpler ones first: of equal scores the first wins.

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
        entered = sorted(entered, key=lambda spec: _preference(spec, look))
    return [spec for spec in entered if spec in kept]


def most_candidates(n_rows: int) -> int:
    """Return how many candidates rounds on parts of ``n_rows`` rows can tell apart: the luckiest of more would win."""
    return max(FEWEST, n_rows // ROWS_A_CANDIDATE)


def on_normalizations(
    entered: Sequence[KernelSpec], normalizations: Sequence[str | None], look: Look
) -> list[KernelSpec]:
    """Return the machines on these normalisations: those that enter anyway, and the most different kernels."""
    kept = [spec for spec in entered if spec.normalize in normalizations]
    names = {(spec.kernel, spec.normalize) for spec in kept}
    kernels = ("linear", "gaussian") if look.is_signed else ("linear", "gaussian", "exp-chi2", "exp-hellinger")
    return kept + [
        KernelSpec(kernel, normalize, is_baseline=kernel == "linear")
        for normalize in normalizations
        for kernel in kernels
        if (kernel, normalize) not in names
    ]


def within(entered: Sequence[KernelSpec], asked: Recipe) -> list[Candidate]:
    """Return the kernels and normalisations as candidates of a recipe that has features, loss or gamma of its own.

    The min-max kernel is not among them: it has only some of the features that a recipe may ask for.
    """
    unique: dict[tuple[str, str | None], KernelSpec] = {}
    for spec in entered:
        if spec.kernel != "minmax":
            unique.setdefault((spec.kernel, spec.normalize), spec)
    return [spec.candidate_within(asked) for spec in unique.values()]


def within_room(
    entered: Sequence[KernelSpec], density: float, source: Source, room: int, in_race: int
) -> list[KernelSpec]:
    """Return the machines that fit into memory.

    Margins keep the features of all rows, with LIBLINEAR's copy, or a kernel matrix and linear systems of its rows,
    which landmarks do not replace. in_race: bytes that the trials take.
    """

    def fits(spec: KernelSpec) -> bool:
        if spec.method == "ridge":
            return True
        if spec.method == "exact margins":
            beside = bytes_beside("squared_hinge", source.n_rows)
            needed = exact_bytes(source.n_rows, 2 * source.row_bytes, np.dtype(np.float32))
            return source.n_rows <= MOST_MARGIN_ROWS and beside + max(needed, in_race) <= room
        features = AutomaticFeatures(spec.features).of_kernel(as_kernel(spec.kernel))
        n_features = features.footprint(source.n_features).features
        return density * source.n_rows * n_features * LIBLINEAR_ENTRY_BYTES <= room

    return [spec for spec in entered if fits(spec)]


def on_device(entered: Sequence[KernelSpec], device: str) -> list[KernelSpec]:
    """Return the machines that can be fitted with a device: LIBLINEAR's margins are for the host alone."""
    return [spec for spec in entered if on_host(device) or spec.method != "margins"]


def _preference(spec: KernelSpec, look: Look) -> int:
    """Return the place of a machine of few rows in the list for the kind of table; others follow those listed."""
    order = PREFERRED_AMOUNTS if look.has_log_shares and look.has_tail else PREFERRED
    machine = spec.kernel, spec.normalize
    return order.index(machine) if machine in order else len(order)


def _rank(spec: KernelSpec) -> tuple[bool, int, bool]:
    """Return the sort key: baselines first, then kernels in the order of ``_ORDER``, normalised rows first."""
    return not spec.is_baseline, _ORDER.index(spec.kernel), spec.normalize is None


def _baselines(look: Look) -> list[KernelSpec]:
    """Return linear ridge on the rows as they are and on their square roots: its strength is the cheapest to find."""
    baselines = [KernelSpec("linear", None, title="linear ridge, raw rows", is_baseline=True)]
    if not look.is_signed:  # the Hellinger kernel without a map
        baselines.append(KernelSpec("linear", "sqrt", title="linear ridge, square roots", is_baseline=True))
    return baselines


def _linear_margins(look: Look) -> list[KernelSpec]:
    """Return the same by LIBLINEAR, square roots first: they are better for sparse counts; and tf-idf for words.

    Few rows are compared by left-out rows, which LIBLINEAR does not have in closed form.
    """
    if not look.takes_margins or look.is_few:
        return []
    raw = KernelSpec("linear", None, "margins", "linear SVM, raw rows")
    roots = KernelSpec("linear", "sqrt", "margins", "linear SVM, square roots")
    words = [KernelSpec("linear", "tf-idf", "margins", "linear SVM, tf-idf rows")] if look.has_words else []
    return [raw] if look.is_signed else [roots, raw, *words]


def _additive(look: Look) -> list[KernelSpec]:
    """Return additive kernels by ridge, and by margins too if rows are sparse; linear ridge on logarithms of counts."""
    if look.is_signed:
        return []
    additive = [KernelSpec("linear", "log1p")] if look.has_counts else []
    for normalize in _normalizations(look):
        for kernel in HISTOGRAM_KERNELS:
            if kernel == "hellinger" and normalize is None:
                continue  # this is the linear machine on square roots
            additive.append(KernelSpec(kernel, normalize))
            # For raw rows, the baseline on square roots covers margins already.
            if (
                look.takes_margins
                and not look.is_few
                and kernel in ("chi2", "hellinger")
                and (normalize or not look.has_sums)
            ):
                additive.append(KernelSpec(kernel, normalize, "margins"))
    return additive


def _exponential(look: Look) -> list[KernelSpec]:
    """Return exponential kernels; the Gaussian one also on logarithms of counts."""
    raw = KernelSpec("gaussian", None)
    if look.is_signed:
        return [raw]
    logs = [KernelSpec("gaussian", "log1p")] if look.has_counts else []
    words = [KernelSpec("gaussian", "tf-idf")] if look.has_words else []
    return [raw, *logs, *words] + [
        KernelSpec(f"exp-{kernel}", normalize) for normalize in _normalizations(look) for kernel in HISTOGRAM_KERNELS
    ]


def _shares_of_rows(look: Look) -> list[KernelSpec]:
    """Return what the fields of species, genes and molecules compare rows by.

    These are logarithms of shares, and of counts, which differ by orders of magnitude; which bins are filled; and the
    min-max kernel, the generalised Tanimoto similarity of counts of substructures, on each of them.
    """
    logs = [n for n in _LOGS_OF_SHARES if look.has_log_shares]
    presence = ["presence"] if look.has_presence else []
    counts = ["log1p"] if look.has_counts and not look.is_signed and (look.is_few or look.has_tail) else []
    words = ["tf-idf"] if look.has_words and look.is_few else []
    shares = [KernelSpec("linear", normalize) for normalize in [*logs, *presence, *words]]
    shares += [KernelSpec("exp-hellinger", normalize) for normalize in [*logs, *counts]]
    shares += [KernelSpec("exp-chi2", normalize) for normalize in counts]
    shares += [KernelSpec("gaussian", normalize) for normalize in presence]
    if look.compares_pairs:
        raw = [None] if look.is_few or not look.is_wide else []
        shares += [
            KernelSpec("minmax", normalize) for normalize in [*logs, *presence, *(counts if look.is_few else []), *raw]
        ]
    return shares


def _exact_margins(look: Look) -> list[KernelSpec]:
    """Return margins on kernel matrices, for more classes than LIBLINEAR takes.

    Each class is then a small share of the rows, and ridge wastes effort on keeping the others at -1. The strongest
    come first, because a family is judged by its first candidate.
    """
    if look.n_classes <= MOST_CLASSES or look.is_few:
        return []
    kernels: list[tuple[str, str | None]] = [("gaussian", None), ("linear", None)]
    if not look.is_signed:
        normalize = _normalizations(look)[-1]
        kernels = [("exp-chi2", normalize), ("chi2", normalize), ("linear", "sqrt"), *kernels]
        if look.has_counts:
            kernels.insert(1, ("gaussian", "log1p"))
    return [KernelSpec(kernel, normalize, "exact margins") for kernel, normalize in kernels]


def _normalizations(look: Look) -> list[str | None]:
    return [None, "l1"] if look.has_sums else [None]


def _name(kernel: str, normalize: str | None) -> str:
    return f"{kernel}, {normalize or 'raw'} rows"


# --- kernels that the user named


def named_candidate(asked: Recipe, normalize: str | None, takes: Callable[[Recipe], bool] | None) -> Candidate:
    """Return the candidate with the kernel of a recipe: an exact machine, or the recipe as it is.

    takes: whether there are machines of a recipe that share their products, and can do what is asked of them; None if
    there are none.
    """
    kernel = asked.kernel
    recipe = asked.with_raced(kernel=kernel, gamma=asked.gamma, normalize=normalize)
    name = kernel.name if isinstance(kernel, Kernel) else str(kernel)
    if not isinstance(asked.normalize, str | None):
        name += f", {normalize or 'raw'} rows"
    exact = recipe.with_raced(features="exact", loss=_ridge_loss(asked))
    is_exact = takes is not None and not isinstance(kernel, list | tuple) and takes(exact)
    return Candidate(name, exact if is_exact else recipe)


def candidates_of_kernel(
    asked: Recipe,
    kernel: str,
    gamma: float | str | None,
    look: Look,
    normalize: str | Sequence[str | None] | None = None,
) -> list[Candidate]:
    """Return the exact machine of a kernel for every normalisation that suits the rows, and the linear machines.

    ``gamma`` is a number, or "auto" for each fit to choose. ``normalize``, if given, are the only normalisations.
    """
    resolved = as_kernel(kernel, 1.0)
    normalizations = _normalizations_of(resolved, look)
    if normalize is not None:
        normalizations = [None if each is None else each.name for each in checked_normalizations(normalize)]
    exact = asked.with_raced(kernel=kernel, features="exact", loss=_ridge_loss(asked))
    if isinstance(resolved, Exponential | Gaussian):
        exact = exact.with_raced(gamma=gamma)
    return [
        *(spec.candidate(asked) for spec in entries(look) if spec.is_baseline),
        *(
            Candidate(_name(kernel, normalization), exact.with_raced(normalize=normalization))
            for normalization in normalizations
        ),
    ]


def _normalizations_of(kernel: Kernel, look: Look) -> list[str | None]:
    """Return the normalisations that suit a kernel and the rows."""
    if look.is_signed:
        return [None]
    if isinstance(kernel, Linear | Gaussian):
        return [None, "log1p"] if look.has_counts else [None]
    return _normalizations(look)


def features_of_kernel(
    asked: Recipe, winner: Candidate, learned: Parameters, look: Look, sizes: Sequence[int], n_rows: int
) -> list[Candidate]:
    """Return the other features of the kernel of an exact machine, at the gamma that the machine chose.

    ``sizes`` are the numbers of landmarks and random features to try. ``n_rows`` is the number of rows to learn from,
    which bounds the landmarks.
    """
    exact = winner.recipe
    kernel, recipe = (replace(exact, gamma=1.0).exact_kernel, exact.without_raced("features", "loss", of=asked))
    if "gamma" in winner.settings:
        recipe = recipe.with_raced(gamma=learned.get("gamma", recipe.gamma))
    recipes: list[Recipe] = []
    if isinstance(kernel, AdditiveKernel) and any(f.takes(kernel) for f in FAMILIES["additive"]):
        losses = [_ridge_loss(asked), *(["hinge"] if look.takes_margins else [])]
        recipes += [recipe.with_raced(features="additive", loss=loss) for loss in losses]
    for features in ("landmarks", "fourier"):
        has_features = any(family.takes(kernel) for family in FAMILIES[features])
        if has_features and not isinstance(kernel, AdditiveKernel | Linear):
            recipes += [
                recipe.with_raced(features=features, loss=_ridge_loss(asked), n_components=n)
                for n in sizes
                if features == "fourier" or n <= n_rows
            ]
    return [variant_of(winner, recipe) for recipe in recipes]


def variant_of(winner: Candidate, recipe: Recipe) -> Candidate:
    """Return a candidate of the same kernel and normalisation with other settings, which are part of its name."""
    is_sized = "n_components" in recipe.raced_settings
    size = f" {recipe.n_components:,}" if is_sized else ""
    way = "SVM" if recipe.loss in ("hinge", "squared_hinge") else f"{recipe.features}{size}"
    return Candidate(f"{winner.name}, {way}", recipe, winner.is_baseline)


def is_free(recipe: Recipe, or_named: bool = False) -> bool:
    """Return whether trials can share products: features, loss and gamma are left open, and nothing is refused.

    or_named: gamma may be given if the kernel is named.
    """
    named = named_settings(recipe).keys() & REFUSED
    if or_named and not recipe.leaves_open("kernel"):
        named -= {"gamma"}
    return not named and (_is_word(recipe.loss, "square") or is_iterated(recipe.loss))


def _ridge_loss(recipe: Recipe) -> str | Loss:
    """Return the loss of machines by ridge: squares, or the loss that is asked for if ridge is iterated for it."""
    return recipe.loss if is_iterated(recipe.loss) else "square"


def _is_word(value: object, word: str) -> bool:
    return isinstance(value, str) and value == word
