"""Every map and every random feature of a kernel, measured against the exact one on the same rows."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from chimap import _arrays
from chimap._memory import parse_memory
from chimap._threads import threads
from chimap._types import Rows
from chimap._validation import DataError, MemoryBudgetError, check_choice, check_histograms, format_bytes
from chimap.comparison.feature_candidates import COMPONENTS, Candidate, candidates_for
from chimap.comparison.kernel_error import GramOracle, ValueOracle
from chimap.data import Source
from chimap.data.source import choose_rows
from chimap.engines import Progress
from chimap.features.additive import AdditiveMap
from chimap.features.base import FittedFeatures
from chimap.kernels import AdditiveKernel, Exponential, Gaussian, Kernel, as_kernel
from chimap.report.kernel_errors import FeatureError, KernelErrors, Refused

_ROWS, _OTHERS, _LEAST = 5000, 2000, 10  # to fit features on, to measure on
_REPEATS = 5
_TIMED_ROWS = 1024
# What features may raise for the rows at hand; anything else is a fault of the program and is not caught.
_REFUSALS = (ValueError, NotImplementedError, ArithmeticError, np.linalg.LinAlgError, MemoryError)


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

    kernel, gamma: as in ``HistogramClassifier``. maps, n_terms, n_components: what to try, see ``candidates_for``.

    Features that refuse the rows are listed with their reason in ``refused``. Raises DataError for bad rows, too few
    rows and where all refuse, MemoryBudgetError where the rows do not fit, ValueError for parameters.

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
    candidates_for(resolved, **trial)  # type: ignore[arg-type]  # refuses parameters before rows are read
    with threads(n_jobs), progress or Progress() as shown:
        shown.stage("reading", None)
        train, test = _rows(source, random_state, dtype, budget, resolved.is_signed)
        fitted = resolved.fitted(train, random_state)
        candidates = candidates_for(fitted, **trial)  # type: ignore[arg-type]
        bench = _Bench(train, test, fitted, random_state)
        shown.stage("features", sum(len(c.sizes) for c in candidates), "candidates")
        for candidate in candidates:
            for size in candidate.sizes:
                bench.measure(candidate, size)
                shown.advance()
    if not bench.measured:
        first = bench.refused[0]
        raise DataError(f"no features take these rows; {first.family}, {first.size}: {first.reason}")
    is_additive = isinstance(fitted, AdditiveKernel)
    return KernelErrors(
        fitted.name,
        float(fitted.gamma) if isinstance(fitted, Exponential | Gaussian) else None,
        tuple(bench.measured),
        tuple(bench.refused),
        bench.bounds(candidates),
        "values" if is_additive else "gram",
        bench.gram.gram.shape[0],
    )


def _rows(source: Source, seed: int, dtype: np.dtype, budget: int, signed: bool) -> tuple[Rows, Rows]:
    """Rows to fit features on, and others."""
    n = min(source.n_rows, _ROWS + _OTHERS)
    needed = int(3 * source.row_bytes * n)
    if needed > budget / 2:
        raise MemoryBudgetError(
            f"memory={format_bytes(budget)} is too small: the rows to measure on need {format_bytes(needed)}, and as "
            f"much must stay for features. Give memory='{-(-2 * needed // 2**20)}MiB'."
        )
    if n < 2 * _LEAST:
        raise DataError(f"{source.name}: {n} rows, and kernel errors need {2 * _LEAST} of them at least.")
    places = choose_rows(source.n_rows, n, seed)
    rows = _arrays.as_rows(source.take(places), dtype)
    check_histograms(rows, name=source.name, first_row=places, signed=signed)
    order = np.random.default_rng(seed).permutation(n)
    others = min(_OTHERS, n // 3)
    return (_arrays.take_rows(rows, np.sort(part)) for part in (order[others:], order[:others]))  # type: ignore[return-value]


class _Bench:
    """The rows, the exact kernel on them, and what has been measured so far."""

    def __init__(self, train: Rows, test: Rows, kernel: Kernel, seed: int):
        self._train, self._test = train, test
        self.gram = GramOracle(kernel, test)
        self._values = ValueOracle(kernel, test, seed) if isinstance(kernel, AdditiveKernel) else None
        self.measured: list[FeatureError] = []
        self.refused: list[Refused] = []

    def bounds(self, candidates: list[Candidate]) -> dict[int, float]:
        """The least relative error by size: of terms for an additive kernel, else of features in all, where the sizes
        between are filled in by doubling."""
        unit = "terms" if self._values is not None else "features"
        sizes = {size for c in candidates if c.unit == unit for size in c.sizes}
        if self._values is not None:
            return {size: self._values.bound(size) for size in sorted(sizes)}
        doubled, n_rows = min(sizes, default=1), self.gram.gram.shape[0]
        while doubled < n_rows:
            sizes.add(doubled)
            doubled *= 2
        return {size: self.gram.bound(size) for size in sorted(sizes)}

    def measure(self, candidate: Candidate, size: int) -> None:
        """Fit, time, compare with the exact kernel; or note why not."""
        try:
            if candidate.takes_rows and size > self._train.shape[0]:
                raise ValueError(f"{size} landmarks are more than the {self._train.shape[0]} rows.")
            self.measured.append(self._measured(candidate, size, candidate.make(size).fit(self._train)))
        except _REFUSALS as error:
            self.refused.append(Refused(candidate.label, size, str(error) or type(error).__name__))

    def _measured(self, candidate: Candidate, size: int, features: FittedFeatures) -> FeatureError:
        map_seconds = seconds_a_row(features, _arrays.take_rows(self._test, slice(_TIMED_ROWS)))
        Z = features.transform(_arrays.as_rows(self.gram.rows, self._test.dtype))
        error, value_error = self.gram.error(Z), None
        if self._values is not None and isinstance(features, AdditiveMap):
            value_error = self._values.error(features, self._test.shape[1])
        return FeatureError(
            candidate.label, size, candidate.unit, Z.shape[1], error.mean, error.worst, error.relative, value_error,
            map_seconds, self._row_bytes(features, Z),
        )  # fmt: skip

    def _row_bytes(self, features: FittedFeatures, Z: Rows) -> float:
        """Of a row as it is stored: dense, sparse, or in codes of a map that gives codes (``encode``)."""
        sizes = [float(Z.shape[1] * Z.dtype.itemsize)]
        if _arrays.is_sparse(Z):
            sizes.append(_bytes_of(Z) / Z.shape[0])
        if hasattr(features, "encode"):
            codes = features.encode(self.gram.rows)
            sizes.append(_bytes_of(codes) / codes.shape[0])
        return min(sizes)


def _bytes_of(Z: Rows) -> int:
    """Of the arrays of dense or CSR features."""
    return Z.data.nbytes + Z.indices.nbytes + Z.indptr.nbytes if _arrays.is_sparse(Z) else Z.nbytes


def seconds_a_row(features: FittedFeatures, rows: Rows) -> float:
    """Median seconds a row of five transforms of the same rows, after one that is not counted: loops are compiled and
    tables made by then."""
    features.transform(rows)
    times = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        features.transform(rows)
        times.append(time.perf_counter() - began)
    return float(np.median(times)) / rows.shape[0]
