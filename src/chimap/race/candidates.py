"""The candidates of a race: recipes that suit the rows, and what the winner becomes on all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chimap._validation import check_blocks
from chimap.backends import on_host
from chimap.kernels import Kernel
from chimap.machines.base import named_settings
from chimap.machines.holding_out import can_score_one_part
from chimap.models.race_result import Candidate
from chimap.normalizations import CATALOGUE
from chimap.race.specs import EXACT_MARGINS, MARGINS, KernelSpec, Room, ridge_loss
from chimap.race.traits import MOST_CLASSES, SampleTraits
from chimap.recipe import Recipe
from chimap.solvers.kernel_matrix import is_iterated

HISTOGRAM_KERNELS = ("chi2", "jensen_shannon", "hellinger", "intersection")
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
WEIGHTED_WORDS = ("tf-idf", "tf-idf-ratio")
_LOGS_OF_SHARES = ("log-cpm", "log-cp10k")

REFUSED = {"features", "gamma", "map", "blocks", "n_principal"}
"""Settings that trials which share products do not support; see ``named_settings``."""

PREFERRED_AMOUNTS: tuple[tuple[str, str | None], ...] = (
    ("minmax", "log-z"),
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


def kernels_worth_trying(traits: SampleTraits, most: int | None = None) -> list[KernelSpec]:
    """Return the machines that suit the rows, simpler ones first: of equal scores the first wins.

    Of few rows, those come first that win most often on tables of the kind: see ``PREFERRED``.

    Where rounds on few rows could not rank many candidates, ``most`` limits their number: the baselines and the
    most different kernels enter before those that are close to others.
    """
    entered = [spec for entrants in ENTRANTS for spec in entrants(traits)]
    kept = entered if most is None else sorted(entered, key=_rank)[:most]
    if traits.is_few:
        entered = sorted(entered, key=lambda spec: _preference(spec, traits))
    return [spec for spec in entered if spec in kept]


def most_candidates(n_rows: int) -> int:
    """Return how many candidates rounds on parts of ``n_rows`` rows can rank: the luckiest of more would win."""
    return max(FEWEST, n_rows // ROWS_A_CANDIDATE)


def on_normalizations(
    entered: Sequence[KernelSpec], normalizations: Sequence[str | None], traits: SampleTraits
) -> list[KernelSpec]:
    """Return the machines on these normalisations: those that enter anyway, and the most different kernels."""
    kept = [spec for spec in entered if spec.normalize in normalizations]
    names = {(spec.kernel, spec.normalize) for spec in kept}
    kernels = ("linear", "gaussian") if traits.is_signed else ("linear", "gaussian", "exp-chi2", "exp-hellinger")
    return kept + [
        KernelSpec(kernel, normalize, is_baseline=kernel == "linear")
        for normalize in normalizations
        for kernel in kernels
        if (kernel, normalize) not in names
    ]


def within(entered: Sequence[KernelSpec], asked: Recipe) -> list[Candidate]:
    """Return the kernels and normalisations as candidates of a recipe that has features, loss or gamma of its own.

    The min-max kernel has only some of the features that a recipe may ask for. It is among them where the recipe asks
    for blocks alone, of which each has one.
    """
    takes_minmax = asked.blocks is not None and asked.leaves_open("features")
    unique: dict[tuple[str, str | None], KernelSpec] = {}
    for spec in entered:
        if spec.kernel != "minmax" or (takes_minmax and spec.blocks is not None):
            unique.setdefault((spec.kernel, spec.normalize), spec)
    return [spec.candidate_within(asked) for spec in unique.values()]


def within_room(entered: Sequence[KernelSpec], room: Room) -> list[KernelSpec]:
    """Return the machines that fit into memory."""
    return [spec for spec in entered if spec.way.fits(spec.kernel, room)]


def with_known_labels(entered: Sequence[KernelSpec], asked: Recipe, has_covariates: bool) -> list[KernelSpec]:
    """Return the machines, without those whose normalisation knows labels of rows that the recipe would score."""
    if not has_covariates and can_score_one_part(asked.selection):
        return list(entered)
    return [spec for spec in entered if spec.normalize is None or not CATALOGUE[spec.normalize].needs_labels]


def on_device(entered: Sequence[KernelSpec], device: str) -> list[KernelSpec]:
    """Return the machines that can be fitted with a device."""
    return [spec for spec in entered if on_host(device) or spec.way.runs_on_devices]


def _preference(spec: KernelSpec, traits: SampleTraits) -> int:
    """Return the place of a machine of few rows in the list for the kind of table; others follow those listed.

    Blocks that the table declares come first.
    """
    if spec.blocks is not None:
        return -1
    order = PREFERRED_AMOUNTS if traits.has_log_shares and traits.has_tail else PREFERRED
    machine = spec.kernel, spec.normalize
    return order.index(machine) if machine in order else len(order)


def _rank(spec: KernelSpec) -> tuple[bool, int, bool]:
    """Return the sort key: baselines first, then kernels in the order of ``_ORDER``, normalised rows first."""
    return not spec.is_baseline, _ORDER.index(spec.kernel), spec.normalize is None


def _baselines(traits: SampleTraits) -> list[KernelSpec]:
    """Return linear ridge on rows as they are, on square roots, and on words: its strength is the cheapest to find."""
    baselines = [KernelSpec("linear", None, title="linear ridge, raw rows", is_baseline=True)]
    if not traits.is_signed:  # the Hellinger kernel without a map
        baselines.append(KernelSpec("linear", "sqrt", title="linear ridge, square roots", is_baseline=True))
    if not traits.is_few:
        baselines += [
            KernelSpec("linear", normalize, title=f"linear ridge, {normalize} rows", is_baseline=True)
            for normalize in _words(traits)
        ]
    return baselines


def _linear_margins(traits: SampleTraits) -> list[KernelSpec]:
    """Return the same by LIBLINEAR, square roots first: they are better for sparse counts, and tf-idf still for words.

    Few rows are compared by left-out rows, which LIBLINEAR does not have in closed form.
    """
    if not traits.takes_margins or traits.is_few:
        return []
    raw = KernelSpec("linear", None, MARGINS, "linear SVM, raw rows")
    roots = KernelSpec("linear", "sqrt", MARGINS, "linear SVM, square roots")
    words = [KernelSpec("linear", normalize, MARGINS, f"linear SVM, {normalize} rows") for normalize in _words(traits)]
    return [raw] if traits.is_signed else [*words, roots, raw]


def _additive(traits: SampleTraits) -> list[KernelSpec]:
    """Return additive kernels by ridge, and by margins too if rows are sparse; linear ridge on logarithms of counts."""
    if traits.is_signed:
        return []
    additive = [KernelSpec("linear", "log1p")] if traits.has_counts else []
    for normalize in _normalizations(traits):
        for kernel in HISTOGRAM_KERNELS:
            if kernel == "hellinger" and normalize is None:
                continue  # this is the linear machine on square roots
            additive.append(KernelSpec(kernel, normalize))
            # For raw rows, the baseline on square roots covers margins already.
            if (
                traits.takes_margins
                and not traits.is_few
                and kernel in ("chi2", "hellinger")
                and (normalize or not traits.has_sums)
            ):
                additive.append(KernelSpec(kernel, normalize, MARGINS))
    return additive


def _exponential(traits: SampleTraits) -> list[KernelSpec]:
    """Return exponential kernels; the Gaussian one also on logarithms of counts."""
    raw = KernelSpec("gaussian", None)
    if traits.is_signed:
        return [raw]
    logs = [KernelSpec("gaussian", "log1p")] if traits.has_counts else []
    words = [KernelSpec("gaussian", normalize) for normalize in _words(traits)]
    return [raw, *logs, *words] + [
        KernelSpec(f"exp-{kernel}", normalize) for normalize in _normalizations(traits) for kernel in HISTOGRAM_KERNELS
    ]


def _shares_of_rows(traits: SampleTraits) -> list[KernelSpec]:
    """Return what the fields of species, genes and molecules compare rows by.

    These are logarithms of shares, and of counts, which differ by orders of magnitude; which bins are filled; and the
    min-max kernel, the generalised Tanimoto similarity of counts of substructures, on each of them.
    """
    logs = [n for n in _LOGS_OF_SHARES if traits.has_log_shares]
    presence = ["presence"] if traits.has_presence else []
    counts = ["log1p"] if traits.has_counts and not traits.is_signed and (traits.is_few or traits.has_tail) else []
    words = ["tf-idf"] if traits.has_words and traits.is_few else []
    shares = [KernelSpec("linear", normalize) for normalize in [*logs, *presence, *words]]
    shares += [KernelSpec("exp-hellinger", normalize) for normalize in [*logs, *counts]]
    shares += [KernelSpec("exp-chi2", normalize) for normalize in counts]
    shares += [KernelSpec("gaussian", normalize) for normalize in presence]
    if traits.compares_pairs:
        raw = [None] if traits.is_few or not traits.is_wide else []
        scores = ["log-z"] if traits.is_few and traits.has_tail and logs else []
        shares += [
            KernelSpec("minmax", normalize)
            for normalize in [*scores, *logs, *presence, *(counts if traits.is_few else []), *raw]
        ]
    return shares


def _by_block(traits: SampleTraits) -> list[KernelSpec]:
    """Return the min-max kernel of each of several descriptors, summed.

    One min-max kernel of all of them is that of the largest. Of few rows, the same without each block follows, and each
    block alone: left-out rows tell by more than two errors where others add noise, as torsions do to solubilities, and
    pairs and torsions to toxicity in trials. Weights between those gain nothing.
    """
    if traits.blocks is None or traits.is_signed or traits.ranks is not None:
        return []
    names, columns = check_blocks(traits.blocks, traits.n_bins)
    parts = {name: own.tolist() for name, own in zip(names, columns, strict=True)}
    fewer = names if traits.is_few and len(names) > 2 else []
    kept = {f"without {left}": {name: parts[name] for name in names if name != left} for left in fewer}
    kept |= {f"{name} alone": {name: parts[name]} for name in fewer}
    return [KernelSpec("minmax", None, blocks=traits.blocks)] + [
        KernelSpec("minmax", None, title=f"minmax, raw rows, {which}", blocks=blocks) for which, blocks in kept.items()
    ]


def _by_rank(traits: SampleTraits) -> list[KernelSpec]:
    """Return sums of min-max kernels, one for each rank of clades: the mean of the lowest two, then others.

    Ranks hold the same counts, and high ones alone tell little, so that left-out rows have to say which of them count:
    the lowest alone, more of them, all, each alone, and all but one.
    """
    if traits.ranks is None or traits.is_signed or not traits.compares_pairs:
        return []
    lowest = [*traits.ranks][::-1]
    more = [lowest[:n] for n in range(3, len(lowest) + 1)]
    sets = [lowest[:2], lowest[:1], *(more if traits.is_few else more[-1:])]
    if traits.is_few:
        sets += [[rank] for rank in lowest[1:]] + [[rank for rank in lowest if rank != left] for left in lowest]
    logs = ("log-z" if traits.is_few and traits.has_tail else "log-cpm") if traits.has_log_shares else None
    specs = [
        KernelSpec(
            "minmax",
            logs,
            title=f"minmax, {logs or 'raw'} rows, {' + '.join(ranks)}",
            blocks={rank: traits.ranks[rank].tolist() for rank in ranks},
        )
        for ranks in sets
        if ranks
    ]
    return [*{spec.name: spec for spec in specs}.values()]


def _exact_margins(traits: SampleTraits) -> list[KernelSpec]:
    """Return margins on kernel matrices, for more classes than LIBLINEAR takes.

    Each class is then a small share of the rows, and ridge wastes effort on keeping the others at -1. The strongest
    come first, because a family is judged by its first candidate.
    """
    if traits.n_classes <= MOST_CLASSES or traits.is_few:
        return []
    kernels: list[tuple[str, str | None]] = [("gaussian", None), ("linear", None)]
    if not traits.is_signed:
        normalize = _normalizations(traits)[-1]
        kernels = [("exp-chi2", normalize), ("chi2", normalize), ("linear", "sqrt"), *kernels]
        if traits.has_counts:
            kernels.insert(1, ("gaussian", "log1p"))
    return [KernelSpec(kernel, normalize, EXACT_MARGINS) for kernel, normalize in kernels]


ENTRANTS: tuple[Callable[[SampleTraits], list[KernelSpec]], ...] = (
    _baselines,
    _linear_margins,
    _additive,
    _exponential,
    _shares_of_rows,
    _by_block,
    _by_rank,
    _exact_margins,
)
"""What may enter a race, each a function of the traits of a sample, in the order of the table of candidates."""


def _normalizations(traits: SampleTraits) -> list[str | None]:
    return [None, "l1"] if traits.has_sums else [None]


def _words(traits: SampleTraits) -> tuple[str, ...]:
    """Return what counts of words are weighted by: of few documents not by labels, of which they tell too little."""
    if not traits.has_words:
        return ()
    return WEIGHTED_WORDS[:1] if traits.is_few else WEIGHTED_WORDS


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
    exact = recipe.with_raced(features="exact", loss=ridge_loss(asked))
    is_exact = takes is not None and not isinstance(kernel, list | tuple) and takes(exact)
    return Candidate(name, exact if is_exact else recipe)


def is_free(recipe: Recipe, or_named: bool = False) -> bool:
    """Return whether trials can share products: features, loss and gamma are left open, and nothing is refused.

    or_named: gamma may be given if the kernel is named.
    """
    named = named_settings(recipe).keys() & REFUSED
    if or_named and not recipe.leaves_open("kernel"):
        named -= {"gamma"}
    return not named and ((isinstance(recipe.loss, str) and recipe.loss == "square") or is_iterated(recipe.loss))
