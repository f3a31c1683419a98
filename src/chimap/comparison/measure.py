"""The comparison: every candidate at every size, on the same rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._threads import threads
from chimap._validation import DataError, MemoryBudgetError, check_choice, check_positive, parse_memory
from chimap.comparison.candidates import COMPONENTS, Candidate, candidates_for
from chimap.comparison.kernel_error import GramOracle, ValueOracle
from chimap.comparison.learning import N_FOLDS, RawRows, Targets, learn, stored_bytes
from chimap.comparison.references import exact_machine, linear_model
from chimap.comparison.rows import Rows, draw_rows
from chimap.data import Source
from chimap.engines import Job, Progress, Stopwatch
from chimap.features.additive import AdditiveMap
from chimap.features.families import family_of, settings_of
from chimap.features.fourier.base import RandomFeatures
from chimap.fit.design import sample_rows
from chimap.kernels import AdditiveKernel, Exponential, Kernel, as_kernel
from chimap.report import majority_baseline, mean_baseline
from chimap.report.comparison import Comparison, LeftOut, Measured, Reference

_REPEATS = 5
_TIMED_ROWS = 1024
_SMALLEST_CHUNK = 1024
# What a candidate may raise for the data at hand; anything else is a fault of the program and is not caught.
_REFUSALS = (ValueError, NotImplementedError, ArithmeticError, np.linalg.LinAlgError, MemoryError)


def compare(
    source: Source,
    *,
    kernel: str | Kernel = "exp-chi2",
    gamma: float | str = "mean",
    maps: Sequence[str] | None = None,
    n_terms: Sequence[int] | None = None,
    n_components: Sequence[int] = COMPONENTS,
    task: str = "classify",
    n_rows: int = 5000,
    n_test_rows: int = 2000,
    exact_rows: int = 2000,
    test_fraction: float = 0.3,
    memory: str | int = "1GiB",
    precision: str = "float32",
    n_jobs: int | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Try the maps and random features of a kernel on rows of a source, and say which to take.

    source: rows with labels (or numbers, with ``task="regress"``), or without: then only the kernel error and the time
        of the map are measured.
    kernel, gamma: as in ``HistogramClassifier``.
    maps, n_terms, n_components: what to try, see ``candidates_for``.
    n_rows, n_test_rows: at most so many rows to learn from, and to measure on, drawn at random from the two parts of
        the split of which ``test_fraction`` goes to the second.
    exact_rows: at most so many rows for the exact kernel machine; 0 leaves it out.
    memory: of the comparison; a candidate that ``chimap fit`` could not train within it is marked.

    A candidate that refuses the data is listed with its reason in ``left_out``. Raises DataError for bad rows or labels
    and where every candidate refuses, MemoryBudgetError where the rows alone do not fit, ValueError for parameters.
    """
    check_choice(task, "task", ("classify", "regress"))
    check_choice(precision, "precision", ("float32", "float64"))
    check_positive(n_rows, "n_rows", integer=True)
    check_positive(n_test_rows, "n_test_rows", integer=True)
    if not exact_rows >= 0:
        raise ValueError(f"exact_rows must be 0 or more; got {exact_rows!r}.")
    budget, clock = parse_memory(memory), Stopwatch()
    resolved = as_kernel(kernel, gamma)
    trial = {"maps": maps, "n_terms": n_terms, "n_components": n_components, "random_state": random_state}
    candidates_for(resolved, **trial)  # type: ignore[arg-type]  # refuses parameters before rows are read
    with threads(n_jobs), progress or Progress() as shown:
        with clock("read"):
            shown.stage("reading", None)
            rows = draw_rows(
                source, test_fraction, n_rows, n_test_rows, random_state, np.dtype(precision), budget
            )
        fitted = resolved.fitted(rows.train, random_state)
        candidates = candidates_for(fitted, **trial)  # type: ignore[arg-type]
        bench = _Bench(rows, fitted, task, random_state, budget, clock)
        n_others = 2 * bench.is_labelled
        shown.stage("comparing", sum(len(c.sizes) for c in candidates) + n_others, "candidates")
        references = bench.references(exact_rows, shown.advance)
        for candidate in candidates:
            for size in candidate.sizes:
                bench.measure(candidate, size)
                shown.advance()
    if not bench.measured:
        first = bench.left_out[0]
        raise DataError(f"no candidate takes these data; {first.family}, {first.size}: {first.reason}")
    gamma_ = fitted.gamma if isinstance(fitted, Exponential) else None
    return Comparison(
        kernel=fitted.name,
        gamma=None if gamma_ is None else float(gamma_),
        task=task if bench.is_labelled else None,
        measured=tuple(bench.measured),
        left_out=tuple(bench.left_out),
        references=tuple(references),
        baseline=bench.baseline(),
        bounds=bench.bounds(candidates),
        bound_of="values" if isinstance(fitted, AdditiveKernel) else "gram",
        n_gram_rows=bench.gram_oracle.gram.shape[0],
        memory=budget,
        data={
            "file": source.name,
            "rows in it": source.n_rows,
            "rows to learn from": rows.train.shape[0],
            "rows to measure on": rows.test.shape[0],
            "bins": source.n_features,
        },
        settings={
            "maps": None if maps is None else list(maps),
            "n_terms": None if n_terms is None else list(n_terms),
            "n_components": list(n_components),
            "test_fraction": test_fraction,
            "n_rows": n_rows,
            "n_test_rows": n_test_rows,
            "exact_rows": exact_rows,
            "memory": budget,
            "precision": precision,
            "random_state": random_state,
        },
        stages=clock.seconds,
    )


class _Bench:
    """The rows, the exact kernel on them, and what has been found so far."""

    def __init__(self, rows: Rows, kernel: Kernel, task: str, seed: int, memory: int, clock: Stopwatch):
        self._rows, self._kernel, self._seed, self._memory, self._clock = rows, kernel, seed, memory, clock
        self.is_labelled = rows.y_train is not None
        self._targets = Targets.of(rows.y_train, task) if rows.y_train is not None else None
        with clock("exact kernel"):
            self.gram_oracle = GramOracle(kernel, rows.test)
            self._values = (
                ValueOracle(kernel, rows.test, seed) if isinstance(kernel, AdditiveKernel) else None
            )
        with clock("warm up"):
            self._warm_up()
        self.measured: list[Measured] = []
        self.left_out: list[LeftOut] = []

    def _warm_up(self) -> None:
        """Run once on next to nothing what is timed later, so that no time is that of a compiler."""
        few = _arrays.take_rows(self._rows.train, slice(64))
        self._kernel(few)
        if self._targets is not None and self._rows.y_train is not None:
            Y = self._targets.encode(self._rows.y_train[: few.shape[0]])
            learn(RawRows(), _arrays.as_rows(few[:, :8]), Y, few[:, :8], self._seed, self._memory)

    def bounds(self, candidates: list[Candidate]) -> dict[int, float]:
        """The least relative error by size: of terms for an additive kernel, else of features in all, where the sizes
        between are filled in by doubling."""
        unit = "terms" if self._values is not None else "features"
        sizes = {size for c in candidates if c.unit == unit for size in c.sizes}
        if self._values is not None:
            return {size: self._values.bound(size) for size in sorted(sizes)}
        doubled, n_rows = min(sizes), self.gram_oracle.gram.shape[0]
        while doubled < n_rows:
            sizes.add(doubled)
            doubled *= 2
        return {size: self.gram_oracle.bound(size) for size in sorted(sizes)}

    def references(self, exact_rows: int, advance: Callable[[], None]) -> list[Reference]:
        """The exact machine and the linear model, as far as there are labels and memory."""
        if self._targets is None:
            return []
        found = []
        with self._clock("exact machine"):
            exact = exact_machine(
                self._kernel, self._rows, self._targets, exact_rows, self._seed, self._memory
            )
        advance()
        with self._clock("linear model"):
            try:
                found = [linear_model(self._rows, self._targets, self._seed, self._memory)]
            except MemoryBudgetError as error:
                self.left_out.append(
                    LeftOut("linear ridge on the raw rows", self._rows.train.shape[1], str(error))
                )
        advance()
        return found if exact is None else [exact, *found]

    def baseline(self) -> float | None:
        """The score of the commonest class, or of the mean: what needs no features."""
        rows = self._rows
        if self._targets is None or rows.y_train is None or rows.y_test is None:
            return None
        if self._targets.classes is not None:
            return majority_baseline(rows.y_train, rows.y_test).value
        rmse = mean_baseline(rows.y_train, rows.y_test).value
        return float(1 - rmse**2 / np.var(rows.y_test, dtype=np.float64))

    def measure(self, candidate: Candidate, size: int) -> None:
        """Fit, time, compare with the exact kernel, train; or note why not."""
        try:
            if candidate.takes_rows and size > self._rows.train.shape[0]:
                raise ValueError(f"{size} landmarks are more than the {self._rows.train.shape[0]} rows.")
            with self._clock("fit the maps"):
                features = candidate.make(size).fit(self._rows.train)
            self.measured.append(self._measured(candidate, size, features))
        except _REFUSALS as error:
            self.left_out.append(LeftOut(candidate.label, size, str(error) or type(error).__name__))

    def _measured(self, candidate: Candidate, size: int, features: Any) -> Measured:
        rows = self._rows
        with self._clock("time the maps"):
            map_seconds = seconds_a_row(features, _arrays.take_rows(rows.test, slice(_TIMED_ROWS)))
        with self._clock("kernel error"):
            Z = features.transform(_arrays.as_rows(self.gram_oracle.rows, rows.test.dtype))
            error = self.gram_oracle.error(Z)
            value_error = None
            if self._values is not None and isinstance(features, AdditiveMap):
                value_error = self._values.error(features, rows.test.shape[1])
        score, seconds, solved, reason = None, None, None, None
        if self._targets is not None:
            with self._clock("learning"):
                try:
                    score, seconds, solved = self._learn(features)
                except MemoryBudgetError as refusal:
                    reason = str(refusal)
        return Measured(
            family=candidate.label,
            size=size,
            unit=candidate.unit,
            n_features=Z.shape[1],
            error_mean=error.mean,
            error_worst=error.worst,
            error_relative=error.relative,
            value_error=value_error,
            map_seconds=map_seconds,
            dense_bytes=Z.shape[1] * Z.dtype.itemsize,
            sparse_bytes=stored_bytes(Z) / Z.shape[0] if _arrays.is_sparse(Z) else None,
            code_bytes=self._code_bytes(features),
            score=score,
            learn_seconds=seconds,
            solved=solved,
            not_learned=reason,
            fit_bytes=self._fit_bytes(features, Z.shape[1]),
            fit_options=None if candidate.fit_options is None else candidate.fit_options(size),
        )

    def _learn(self, features: Any) -> tuple[Any, float, str]:
        rows, targets = self._rows, self._targets
        assert targets is not None
        assert rows.y_train is not None
        assert rows.y_test is not None
        found = learn(features, rows.train, targets.encode(rows.y_train), rows.test, self._seed, self._memory)
        return targets.score(rows.y_test, targets.decode(found.outputs)), found.seconds, found.solved

    def _code_bytes(self, features: Any) -> float | None:
        """Bytes a row of the codes of a map that gives codes (``encode``)."""
        if not hasattr(features, "encode"):
            return None
        codes = features.encode(self.gram_oracle.rows)
        return stored_bytes(codes) / codes.shape[0]

    def _fit_bytes(self, features: Any, n_features: int) -> int:
        """What ``chimap fit`` with these features takes at its peak, whatever the number of rows."""
        n_mapped, n_frequencies = _projected(features)
        train = self._rows.train
        n_targets = 1 if self._targets is None else self._targets.count
        row_bytes = stored_bytes(train) / train.shape[0]
        itemsize, n_sampled = train.dtype.itemsize, sample_rows(train.shape[1])
        settings = settings_of(features)
        family = family_of(settings)
        least = family.footprint(settings, train.shape[1]).sample_rows
        job = Job(
            n_features, n_targets, N_FOLDS, n_mapped, n_frequencies, row_bytes, row_bytes, itemsize,
            n_sampled=max(n_sampled, least),
            fitting_bytes=family.fitting_bytes(settings, n_sampled, row_bytes, itemsize),
        )  # fmt: skip
        return job.peak_bytes(_SMALLEST_CHUNK)


def _projected(features: Any) -> tuple[int, int]:
    """(inputs, frequencies) of the projection of fitted features; zeros without one.

    Structured frequencies are no matrix, and would be gigabytes as one.
    """
    if isinstance(features, RandomFeatures):
        return features.projection_.n_inputs, features.projection_.n_frequencies
    n_inputs, n_frequencies = getattr(features, "frequencies_", np.empty((0, 0))).shape
    return n_inputs, n_frequencies


def seconds_a_row(features: Any, rows: Any) -> float:
    """Median seconds a row of five transforms of the same rows, after one that is not counted: loops are compiled and
    tables made by then."""
    features.transform(rows)
    times = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        features.transform(rows)
        times.append(time.perf_counter() - began)
    return float(np.median(times)) / rows.shape[0]
