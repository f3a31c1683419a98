"""How far are the features of each kind from the exact kernel, at which cost, and how near to the least possible error?

python -m benchmarks.accuracy.kernel_errors                        # three sets, chi2 and exp-chi2; two minutes
python -m benchmarks.accuracy.kernel_errors --kernels jensen-shannon,gaussian --sets newsgroups20_counts

``kernel_errors`` tries all that the catalogues have for a kernel, and compares the dot products of their features with the
kernel, and with the smallest error that as many features can have.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigvalsh

from benchmarks.measure import counts, mnist
from chimap import _arrays
from chimap._errors import InputError
from chimap._memory import format_bytes, parse_memory, whole_mebibytes
from chimap._messages import Message, message_of
from chimap._progress import Progress
from chimap._threads import threads
from chimap._types import JSON, Rows
from chimap._validation import DataError, MemoryBudgetError, check_choice, check_histograms, check_positive
from chimap.data import Source
from chimap.data.source import choose_rows
from chimap.features.additive import CATALOGUE as MAPS
from chimap.features.additive import AdditiveMap
from chimap.features.base import Features
from chimap.features.fourier import FourierFeatures, SkewedFourierFeatures
from chimap.features.fourier.sampling import BY_QUANTILE
from chimap.features.fourier.sampling import CATALOGUE as SAMPLINGS
from chimap.features.landmarks.landmark_features import LandmarkFeatures
from chimap.features.landmarks.nystroem import NystroemFeatures
from chimap.features.minmax import MinMaxFeatures
from chimap.kernels import AdditiveKernel, Exponential, Kernel, MinMax, as_kernel
from chimap.readers import open_source

TERMS = (1, 2, 3, 5)
COMPONENTS = (256, 1024, 4096)
INNER_TERMS = (2,)  # terms of the map below random features, which have a far larger error
_USUAL = ("optimal", INNER_TERMS[0])
_SAMPLING = "orthogonal"
_MOST_ROWS, _MOST_MEASURED_ON, _FEWEST_ROWS = 5000, 2000, 10  # to fit features on, to measure on, of either
_REPEATS = 5  # timed transforms
_TIMED_ROWS = 1024
# What features may raise for unsuitable rows; anything else is a programming error and is not caught.
_REFUSALS = (ValueError, NotImplementedError, ArithmeticError, np.linalg.LinAlgError, MemoryError)

_WORK = 4e9  # bins compared for the exact Gram matrix: some seconds
_MOST_GRAM_ROWS = 2000  # rows of the matrix, whose eigenvalues take some seconds
_VALUES = 1000  # single values that maps are compared on
_COLUMNS = 2048  # features that are dense float64 at the same time


@dataclass(frozen=True)
class FeatureError:
    """The error of one family of features at one size.

    Parameters
    ----------
    family : str
        Name of the features, such as "OptimalMap".
    size : int
        Their size, in ``unit``.
    unit : {"terms", "features"}
        Terms per bin, or features in total.
    n_features : int
        Number of features in total.
    error_mean : float
        Mean error of the kernel over pairs of rows; see ``KernelError``.
    error_worst : float
        Largest error of the kernel over pairs of rows.
    error_relative : float
        Frobenius norm of the error of the kernel matrix, relative to that of the matrix.
    value_error : float or None
        Relative error over pairs of single values; None for features that are not a map of single values.
    map_seconds : float
        Time to compute the features of a row, after warm-up.
    row_bytes : float
        Bytes of a row of features in its smallest storage form.
    """

    family: str
    size: int
    unit: str
    n_features: int
    error_mean: float
    error_worst: float
    error_relative: float
    value_error: float | None
    map_seconds: float
    row_bytes: float

    @property
    def name(self) -> str:
        """Family and size, such as 'OptimalMap, 2 terms'."""
        unit = self.unit.removesuffix("s") if self.size == 1 else self.unit
        return f"{self.family}, {self.size:,} {unit}"


@dataclass(frozen=True)
class Refused:
    """Features that could not be fitted to the rows.

    Parameters
    ----------
    family : str
        Name of the features.
    size : int
        Their size.
    reason : str
        The message of the error.
    """

    family: str
    size: int
    reason: str


@dataclass(frozen=True)
class KernelErrors:
    """Errors of all features of a kernel on the same rows.

    Parameters
    ----------
    kernel : str
        Name of the kernel.
    gamma : float or None
        Its gamma; None for a kernel that has none fitted.
    measured : tuple of FeatureError
        The features that were measured.
    refused : tuple of Refused
        The features that could not be fitted.
    bounds : mapping of int to float
        Smallest possible relative error at each size.
    bound_of : {"values", "gram"}
        What the bounds apply to: pairs of single values (by terms), or the kernel matrix (by features).
    n_gram_rows : int
        Number of rows of the kernel matrix.
    """

    kernel: str
    gamma: float | None
    measured: tuple[FeatureError, ...]
    refused: tuple[Refused, ...]
    bounds: Mapping[int, float]
    bound_of: str
    n_gram_rows: int

    @property
    def ranked(self) -> tuple[FeatureError, ...]:
        """The measured features, most accurate first."""
        return tuple(sorted(self.measured, key=lambda m: (m.error_relative, m.name)))

    def as_dict(self) -> JSON:
        """Return the errors as JSON types."""
        facts = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return facts | {
            "measured": [dataclasses.asdict(m) | {"name": m.name} for m in self.ranked],
            "refused": [dataclasses.asdict(refusal) for refusal in self.refused],
            "bounds": [{"size": size, "error": error} for size, error in self.bounds.items()],
        }


_FLOOR = 1e-16  # smaller errors are rounding


def kernel_errors(
    source: Source,
    *,
    kernel: str | Kernel,
    gamma: float | str = "mean",
    maps: Sequence[str] | None = None,
    n_terms: Sequence[int] | None = None,
    n_components: Sequence[int] = COMPONENTS,
    memory: str | int = "1GiB",
    precision: str = "float32",
    n_jobs: int | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> KernelErrors:
    """Measure the maps and features of a kernel against the kernel itself, on rows with or without labels.

    Parameters
    ----------
    source : Source
        The rows.
    kernel : str or Kernel
        The kernel, as in ``HistogramClassifier``.
    gamma : float or str, default="mean"
        Gamma of an exponential kernel, as in ``HistogramClassifier``.
    maps : sequence of str or None, default=None
        Names of maps to try. None tries every map that takes an additive kernel, and the optimal map below random
        features.
    n_terms : sequence of int or None, default=None
        Terms of the maps; None for 1, 2, 3, 5, or 2 below random features.
    n_components : sequence of int, default=(256, 1024, 4096)
        Numbers of random features and landmarks.
    memory : str or int, default="1GiB"
        Memory budget, such as "500MB", or bytes.
    precision : {"auto", "float32", "float64"}, default="float32"
        Precision of the features.
    n_jobs : int or None, default=None
        Number of threads; None or -1 for all cores.
    random_state : int, default=0
        Seed.
    progress : Progress or None, default=None
        Informed of each stage and step.

    Returns
    -------
    KernelErrors
        The errors. Features that refuse the rows are listed with their reason in ``refused``.

    Raises
    ------
    DataError
        If rows are invalid or too few, or if all features refuse them.
    MemoryBudgetError
        If the rows do not fit in the memory.
    ValueError
        If a parameter is invalid.

    Examples
    --------
    >>> from chimap import open_source
    >>> source = open_source(np.random.default_rng(0).dirichlet(np.ones(8), 200))
    >>> errors = kernel_errors(source, kernel="chi2", maps=["optimal", "direct"], n_terms=[2])
    >>> len(errors.measured)
    2
    """
    check_choice(precision, "precision", ("auto", "float32", "float64"))
    dtype = np.dtype("float64" if precision == "float64" else "float32")
    resolved, budget = as_kernel(kernel, gamma), parse_memory(memory)
    trial = {"maps": maps, "n_terms": n_terms, "n_components": n_components, "random_state": random_state}
    candidates_for(resolved, **trial)  # refuses parameters before rows are read
    with threads(n_jobs), progress or Progress() as shown:
        shown.stage("reading", None)
        train, test = _rows(source, random_state, dtype, budget, resolved.is_signed)
        fitted = resolved.fitted(train, random_state)
        candidates = candidates_for(fitted, **trial)
        bench = _ErrorBench(train, test, fitted, random_state)
        shown.stage("features", sum(len(c.sizes) for c in candidates), "candidates")
        for candidate in candidates:
            for size in candidate.sizes:
                bench.measure(candidate, size)
                shown.advance()
    if not bench.measured:
        first = bench.refused[0]
        raise DataError(Message("no features take these rows; {}, {}: {}", first.family, first.size, first.reason))
    is_additive = isinstance(fitted, AdditiveKernel)
    return KernelErrors(
        fitted.name,
        float(fitted.gamma) if isinstance(fitted, Exponential) else None,
        tuple(bench.measured),
        tuple(bench.refused),
        bench.bounds(candidates),
        "values" if is_additive else "gram",
        bench.gram.gram.shape[0],
    )


def _rows(source: Source, seed: int, dtype: np.dtype, budget: int, signed: bool) -> tuple[Rows, Rows]:
    """Return rows to fit features on, and other rows to measure on."""
    n = min(source.n_rows, _MOST_ROWS + _MOST_MEASURED_ON)
    needed = int(3 * source.row_bytes * n)
    if needed > budget / 2:
        raise MemoryBudgetError(
            Message(
                "{memory=!s} is too small: the rows to measure on need {}, and as much must stay for features. Give "
                "{memory=}.",
                format_bytes(budget),
                format_bytes(needed),
                whole_mebibytes(2 * needed),
            )
        )
    if n < 2 * _FEWEST_ROWS:
        raise DataError(f"{source.name}: {n} rows, but kernel errors need at least {2 * _FEWEST_ROWS}.")
    places = choose_rows(source.n_rows, n, seed)
    rows = _arrays.as_rows(source.take(places), dtype)
    check_histograms(rows, name=source.name, first_row=places, signed=signed)
    order = np.random.default_rng(seed).permutation(n)
    others = min(_MOST_MEASURED_ON, n // 3)
    return (_arrays.take_rows(rows, np.sort(part)) for part in (order[others:], order[:others]))


class _ErrorBench:
    """The rows, the exact kernel on them, and what has been measured so far."""

    def __init__(self, train: Rows, test: Rows, kernel: Kernel, seed: int):
        self._train, self._test = train, test
        self.gram = GramOracle(kernel, test)
        self._values = ValueOracle(kernel, test, seed) if isinstance(kernel, AdditiveKernel) else None
        self.measured: list[FeatureError] = []
        self.refused: list[Refused] = []

    def bounds(self, candidates: list[FeatureCandidate]) -> dict[int, float]:
        """Return the least relative error by size.

        Sizes are terms of an additive kernel, and else features in all, to which doublings are added.
        """
        unit = "terms" if self._values is not None else "features"
        sizes = {size for c in candidates if c.unit == unit for size in c.sizes}
        if self._values is not None:
            return {size: self._values.bound(size) for size in sorted(sizes)}
        doubled, n_rows = min(sizes, default=1), self.gram.gram.shape[0]
        while doubled < n_rows:
            sizes.add(doubled)
            doubled *= 2
        return {size: self.gram.bound(size) for size in sorted(sizes)}

    def measure(self, candidate: FeatureCandidate, size: int) -> None:
        """Fit, time, and compare with the exact kernel; if the features refuse the rows, record why."""
        try:
            if candidate.takes_rows and size > self._train.shape[0]:
                raise InputError(f"{size} landmarks are more than the {self._train.shape[0]} rows.")
            self.measured.append(self._measured(candidate, size, candidate.make(size).fit(self._train)))
        except _REFUSALS as error:
            self.refused.append(Refused(candidate.label, size, message_of(error) or type(error).__name__))

    def _measured(self, candidate: FeatureCandidate, size: int, features: Features) -> FeatureError:
        """Return the time and the errors of fitted features."""
        map_seconds = seconds_a_row(features, _arrays.take_rows(self._test, slice(_TIMED_ROWS)))
        Z = features.transform(_arrays.as_rows(self.gram.rows, self._test.dtype))
        error, value_error = self.gram.error(Z), None
        if self._values is not None and isinstance(features, AdditiveMap):
            value_error = self._values.error(features, self._test.shape[1])
        return FeatureError(
            candidate.label,
            size,
            candidate.unit,
            Z.shape[1],
            error.mean,
            error.worst,
            error.relative,
            value_error,
            map_seconds,
            self._row_bytes(features, Z),
        )

    def _row_bytes(self, features: Features, Z: Rows) -> float:
        """Return the bytes of a row as it is stored: dense, sparse, or in the codes of a map with ``encode``."""
        sizes = [float(Z.shape[1] * Z.dtype.itemsize)]
        if _arrays.is_sparse(Z):
            sizes.append(_bytes_of(Z) / Z.shape[0])
        if hasattr(features, "encode"):
            codes = features.encode(self.gram.rows)
            sizes.append(_bytes_of(codes) / codes.shape[0])
        return min(sizes)


def _bytes_of(Z: Rows) -> int:
    """Return the bytes of the arrays of dense or CSR features."""
    return Z.data.nbytes + Z.indices.nbytes + Z.indptr.nbytes if _arrays.is_sparse(Z) else Z.nbytes


def seconds_a_row(features: Features, rows: Rows) -> float:
    """Return the median seconds per row of five transforms of the same rows.

    An extra transform comes first and is not counted: it compiles loops and makes tables.
    """
    features.transform(rows)
    times = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        features.transform(rows)
        times.append(time.perf_counter() - began)
    return float(np.median(times)) / rows.shape[0]


# --- the features of a kernel


@dataclass(frozen=True)
class FeatureCandidate:
    """A family of features whose size trades accuracy for cost.

    Parameters
    ----------
    label : str
        Name for tables and legends.
    make : callable
        ``make(size)`` returns an unfitted transformer.
    sizes : tuple of int
        Sizes to try.
    unit : {"terms", "features"}
        What a size counts: terms of each bin, or features in all.
    takes_rows : bool, default=False
        Whether a size takes as many rows, as landmarks do.
    """

    label: str
    make: Callable[[int], Features]
    sizes: tuple[int, ...]
    unit: str
    takes_rows: bool = False


def candidates_for(
    kernel: Kernel,
    *,
    maps: Sequence[str] | None = None,
    n_terms: Sequence[int] | None = None,
    n_components: Sequence[int] = COMPONENTS,
    random_state: int = 0,
) -> list[FeatureCandidate]:
    """Return the candidates for a kernel; the parameters are those of ``kernel_errors``.

    They are additive maps over ``n_terms``, random features of an exponential kernel over ``n_components``, and
    landmarks over ``n_components`` where the package has them. For an exponential kernel, maps=None uses the optimal
    map below the random features, whose frequencies are drawn in every way of the catalogue of samplings. Raises
    ValueError if a map is unknown or does not take the kernel, or a size is not positive.
    """
    additive = kernel.inner or kernel
    terms = n_terms if n_terms is not None else INNER_TERMS if isinstance(kernel, Exponential) else TERMS
    for name, sizes in (("n_terms", terms), ("n_components", n_components)):
        if not sizes:
            raise InputError(f"{name} must hold at least one number; got none.")
        for size in sizes:
            check_positive(size, f"each of {name}", integer=True)
    terms, components = tuple(sorted(set(terms))), tuple(sorted(set(n_components)))
    if not isinstance(additive, AdditiveKernel):
        if maps is not None:
            raise InputError(f"maps need an additive kernel or an exponential form of one; got {kernel.name!r}.")
        return _without_map(kernel, components, random_state) + _landmarks(kernel, components, random_state)
    chosen = _chosen_maps(additive, maps)
    if isinstance(kernel, Exponential):
        names = ["optimal"] if maps is None else chosen
        candidates = _fourier(kernel, names, terms, components, random_state)
    else:
        candidates = [_sized(MAPS[name], additive, terms, components, random_state) for name in chosen]
    return candidates + (_landmarks(kernel, components, random_state) if maps is None else [])


def _chosen_maps(kernel: AdditiveKernel, names: Sequence[str] | None) -> list[str]:
    """Return names of maps, in the order of the catalogue or as given."""
    suitable = [name for name, make in MAPS.items() if make.takes(kernel)]
    if names is None:
        return suitable
    for name in names:
        if name not in MAPS:
            raise InputError(f"maps must be among {', '.join(MAPS)}; got {name!r}.")
        if name not in suitable:
            raise InputError(
                f"maps: {name!r} does not approximate {kernel.name!r}. Maps that do: {', '.join(suitable)}."
            )
    return list(dict.fromkeys(names))


def _sized(
    make: Callable[..., Features],
    kernel: Kernel,
    terms: tuple[int, ...],
    components: tuple[int, ...],
    seed: int,
    label: str = "",
    **settings: object,
) -> FeatureCandidate:
    """Return features of a kernel: of so many terms a bin if they have terms, and else of so many features in all.

    They get the seed if they take one.
    """
    taken = inspect.signature(make).parameters
    seeded = {"random_state": seed} if "random_state" in taken else {}
    size_name = "n_components" if "n_components" in taken else "n_terms"
    return FeatureCandidate(
        label or make.__name__,
        lambda size: make(kernel=kernel, **{size_name: size}, **seeded, **settings),
        terms if size_name == "n_terms" else components,
        "terms" if size_name == "n_terms" else "features",
    )


def _fourier(
    kernel: Exponential, names: list[str], terms: tuple[int, ...], components: tuple[int, ...], seed: int
) -> list[FeatureCandidate]:
    """Return the first map with every sampling, and other maps and terms with the orthogonal one."""
    ways = [(sampling, names[0], terms[0]) for sampling in SAMPLINGS]
    ways += [(_SAMPLING, name, n) for name in names for n in terms if (name, n) != (names[0], terms[0])]
    candidates = []
    for sampling, name, n in ways:
        label = f"FourierFeatures, {sampling}"
        if (name, n) != _USUAL:
            label += f", {MAPS[name].__name__} with {n} term{'s' if n > 1 else ''}"
        inner = _sized(MAPS[name], kernel.kernel, terms, components, seed).make(n)
        settings: JSON = {"map": inner, "n_terms": n, "sampling": sampling}
        candidates.append(_sized(FourierFeatures, kernel, (), components, seed, label, **settings))
    return candidates


def _without_map(kernel: Kernel, components: tuple[int, ...], seed: int) -> list[FeatureCandidate]:
    """Return random features of a Gaussian or skewed kernel, with every sampling they take, or the Dirichlet map."""
    own = kernel.own_map
    if own is not None:
        return [FeatureCandidate(own.__name__, lambda size: own(kernel), (1,), "terms")]
    if SkewedFourierFeatures.takes(kernel):
        make: Callable[..., Features] = SkewedFourierFeatures
        samplings = tuple(BY_QUANTILE)
    elif FourierFeatures.takes(kernel):
        make, samplings = FourierFeatures, tuple(SAMPLINGS)
    else:
        return []
    return [
        _sized(make, kernel, (), components, seed, f"{make.__name__}, {sampling}", sampling=sampling)
        for sampling in samplings
    ]


def _landmarks(kernel: Kernel, components: tuple[int, ...], seed: int) -> list[FeatureCandidate]:
    """Return landmarks by products of mapped rows where possible, those of any kernel, and bits for min-max."""
    families: list[Callable[..., Features]] = [NystroemFeatures]
    if LandmarkFeatures.takes(kernel):
        families.insert(0, LandmarkFeatures)
    candidates = [replace(_sized(make, kernel, (), components, seed), takes_rows=True) for make in families]
    if isinstance(kernel, MinMax):
        bits = lambda size: MinMaxFeatures(n_components=size, random_state=seed)  # noqa: E731
        candidates.insert(0, FeatureCandidate("MinMaxFeatures", bits, components, "features"))
    return candidates


# --- errors, and the smallest possible ones


class KernelError(NamedTuple):
    """Errors of features Psi against a kernel K.

    ``mean`` and ``worst`` are of |Psi(x).Psi(y) - K(x, y)| over pairs of different rows, in units of the mean of K(x,
    x). ``relative`` is the Frobenius norm of the error of the Gram matrix over that of the matrix.
    """

    mean: float
    worst: float
    relative: float


class GramOracle:
    """The exact Gram matrix of held-out rows, in float64, with its eigenvalues.

    Of all sets of n features, none has a smaller error in the Frobenius norm than the root of the sum of the squares of
    all eigenvalues but the n largest (Eckart and Young). For n >= rows that is zero.
    """

    def __init__(self, kernel: Kernel, rows: Rows):
        m = rows.shape[0]
        entries = max(1.0, rows.nnz / m if _arrays.is_sparse(rows) else float(rows.shape[1]))
        self.rows = _arrays.take_rows(rows, slice(min(m, _MOST_GRAM_ROWS, max(100, int(np.sqrt(_WORK / entries))))))
        self.gram = kernel(_arrays.as_rows(self.rows, np.float64))
        self._scale = float(np.diagonal(self.gram).mean()) or 1.0
        self._norm = float(np.linalg.norm(self.gram)) or 1.0
        self._tails = _tails(eigvalsh(self.gram))

    def error(self, Z: Rows) -> KernelError:
        """Return the error of features ``Z`` of ``rows``, dense or CSR."""
        difference = -self.gram
        # In dense blocks: a product of two sparse matrices that are not very sparse takes ten times as long.
        for first in range(0, Z.shape[1], _COLUMNS):
            block = _arrays.to_dense(Z[:, first : first + _COLUMNS]).astype(np.float64)
            difference += block @ block.T
        np.abs(difference, out=difference)
        relative = float(np.linalg.norm(difference)) / self._norm
        np.fill_diagonal(difference, 0)
        n_pairs = difference.size - difference.shape[0]
        return KernelError(
            float(difference.sum()) / n_pairs / self._scale, float(difference.max()) / self._scale, relative
        )

    def bound(self, n_features: int) -> float:
        """Return the smallest ``relative`` error that ``n_features`` features in all can have."""
        return float(self._tails[min(n_features, self._tails.size - 1)])


class ValueOracle:
    """The exact kernel of single values: non-zero entries drawn from all bins of held-out rows.

    A map that is the same in every bin is a map of these values. Of all maps with n terms, none has a smaller relative
    error in the Frobenius norm over pairs of values than the eigenvalues of the matrix of values give.
    """

    def __init__(self, kernel: AdditiveKernel, rows: Rows, seed: int = 0):
        values = np.abs(_arrays.nonzero_values(rows)).astype(np.float64)
        if values.size > _VALUES:
            values = np.random.default_rng(seed).choice(values, _VALUES, replace=False)
        self.values = values if values.size else np.ones(1)
        self.gram = kernel(self.values[:, None])
        self._tails = _tails(eigvalsh(self.gram))
        self._norm = float(np.linalg.norm(self.gram))

    def error(self, psi: AdditiveMap, n_bins: int) -> float | None:
        """Return the relative error of a fitted map; None if it differs between bins and is not a map of values."""
        first, last = (self._features(psi, n_bins, bin) for bin in (0, n_bins - 1))
        if not np.allclose(first, last, rtol=1e-9, atol=0):
            return None
        return float(np.linalg.norm(first @ first.T - self.gram)) / self._norm

    def bound(self, n_terms: int) -> float:
        """Return the smallest relative error that ``n_terms`` terms can have."""
        return float(self._tails[min(n_terms, self._tails.size - 1)])

    def _features(self, psi: AdditiveMap, n_bins: int, bin: int) -> np.ndarray:
        """Return Psi of the values as entries of one bin, (values, terms)."""
        m = self.values.size
        places = np.full(m, bin, np.int32)
        rows = sp.csr_matrix((self.values, places, np.arange(m + 1, dtype=np.int32)), shape=(m, n_bins))
        return _arrays.to_dense(psi.transform(rows)[:, bin::n_bins])


def _tails(eigenvalues: np.ndarray) -> np.ndarray:
    """Return the root of the share of the squares beyond the n largest, n = 0 .. rows; summed from the smallest on."""
    squares = np.sort(np.square(eigenvalues))
    sums = np.concatenate([[0.0], np.cumsum(squares)])
    return np.sqrt(sums / (sums[-1] or 1.0))[::-1]


SETS = {
    "mnist": lambda: mnist(normalize=True)[0],
    "hmp_otu_counts": lambda: counts("hmp_otu_counts.npz"),
    "newsgroups20_counts": lambda: counts("newsgroups20_counts.npz"),
}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--sets", default=",".join(SETS))
    asked.add_argument("--kernels", default="chi2,exp-chi2")
    asked.add_argument("--components", default="256,1024")
    given = asked.parse_args()
    sizes = [int(size) for size in given.components.split(",")]
    for name in given.sets.split(","):
        source = open_source(SETS[name]())
        for kernel in given.kernels.split(","):
            errors = kernel_errors(source, kernel=kernel, n_components=sizes)
            of = "single values" if errors.bound_of == "values" else f"a matrix of {errors.n_gram_rows} rows"
            print(f"\n{name}, {errors.kernel}; relative error, its mean over pairs, least error of {of}, time a row")
            for found in errors.ranked:
                error = found.value_error if errors.bound_of == "values" else found.error_relative
                least = errors.bounds.get(found.size if errors.bound_of == "values" else found.n_features)
                print(
                    f"  {found.name:52} {'-' if error is None else f'{error:.2e}':>9} {found.error_mean:.2e} "
                    f"{'-' if least is None else f'{least:.2e}':>9} {1e6 * found.map_seconds:8.1f} us"
                )
            for refused in errors.refused:
                print(f"  {refused.family}, {refused.size}: {refused.reason}")


if __name__ == "__main__":
    main()
