"""Every map and random feature of a kernel, measured against the exact kernel on the same rows."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._memory import format_bytes, parse_memory, whole_mebibytes
from chimap._messages import Message, message_of
from chimap._threads import threads
from chimap._types import Rows
from chimap._validation import DataError, MemoryBudgetError, check_choice, check_histograms
from chimap.comparison.feature_candidates import COMPONENTS, FeatureCandidate, candidates_for
from chimap.comparison.kernel_error import GramOracle, ValueOracle
from chimap.data import Source
from chimap.data.source import choose_rows
from chimap.engines import Progress
from chimap.features.additive import AdditiveMap
from chimap.features.base import Features
from chimap.kernels import AdditiveKernel, Exponential, Gaussian, Kernel, as_kernel
from chimap.report.kernel_errors import FeatureError, KernelErrors, Refused

_ROWS, _OTHERS, _LEAST = 5000, 2000, 10  # most rows to fit features on, most to measure on, fewest of either
_REPEATS = 5  # timed transforms
_TIMED_ROWS = 1024
# What features may raise for unsuitable rows; anything else is a programming error and is not caught.
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
    candidates_for(resolved, **trial)  # type: ignore[arg-type]  # refuses parameters before rows are read
    with threads(n_jobs), progress or Progress() as shown:
        shown.stage("reading", None)
        train, test = _rows(source, random_state, dtype, budget, resolved.is_signed)
        fitted = resolved.fitted(train, random_state)
        candidates = candidates_for(fitted, **trial)  # type: ignore[arg-type]
        bench = _ErrorBench(train, test, fitted, random_state)
        shown.stage("features", sum(len(c.sizes) for c in candidates), "candidates")
        for candidate in candidates:
            for size in candidate.sizes:
                bench.measure(candidate, size)
                shown.advance()
    if not bench.measured:
        first = bench.refused[0]
        raise DataError(
            Message("no features take these rows; {}, {}: {}", first.family, first.size, first.reason)
        )
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
    """Return rows to fit features on, and other rows to measure on."""
    n = min(source.n_rows, _ROWS + _OTHERS)
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
    if n < 2 * _LEAST:
        raise DataError(f"{source.name}: {n} rows, but kernel errors need at least {2 * _LEAST}.")
    places = choose_rows(source.n_rows, n, seed)
    rows = _arrays.as_rows(source.take(places), dtype)
    check_histograms(rows, name=source.name, first_row=places, signed=signed)
    order = np.random.default_rng(seed).permutation(n)
    others = min(_OTHERS, n // 3)
    return (_arrays.take_rows(rows, np.sort(part)) for part in (order[others:], order[:others]))  # type: ignore[return-value]


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
            candidate.label, size, candidate.unit, Z.shape[1], error.mean, error.worst, error.relative, value_error,
            map_seconds, self._row_bytes(features, Z),
        )  # fmt: skip

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
