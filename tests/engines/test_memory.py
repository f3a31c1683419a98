"""What a plan says is what happens: peaks of arrays, as tracemalloc sees them."""

import re
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import (
    AdditiveKPCA,
    AnchorMap,
    AutomaticFeatures,
    CompressedMap,
    DirectMap,
    HistogramClassifier,
    MultipleKernelLearner,
    OptimalMap,
    open_source,
)
from chimap._memory import LIBRARY_BYTES, budget_for, parse_memory, room_in
from chimap._validation import MemoryBudgetError
from chimap.engines import Job, chunk_rows_within
from chimap.engines.memory import FEWEST_VALIDATION_ROWS, LIBLINEAR_ENTRY_BYTES, VALIDATION_SHARE, KeepingJob
from chimap.machines.jobs import largest_job
from chimap.machines.method import Method
from chimap.machines.rows import PreparedRows
from chimap.moments import DealtFolds, FoldMoments, Moments, OneVersusAll
from chimap.moments.kept import KeptFeatures
from chimap.race.candidates import kernels_worth_trying, within_room
from chimap.race.specs import Room
from chimap.race.traits import SampleTraits
from chimap.recipe import Recipe
from chimap.recipe.codecs import ClassCodec
from chimap.selection.folds import choose_alpha, iterates, working_bytes
from chimap.solvers.base import Evidence
from chimap.solvers.exact_margins import margin_bytes
from chimap.solvers.held_out import leverages
from chimap.solvers.kernel_matrix import exact_bytes
from chimap.solvers.ridge import Factor
from chimap.solvers.wide_ridge import WideRidgeProblem, WideRidgeSolver

pytestmark = pytest.mark.slow  # every array is traced

rng = np.random.default_rng(0)
ROWS = rng.random((6000, 500), dtype=np.float32)
LABELS = np.arange(6000) % 2
SPARSE = sp.random_array((6000, 2000), density=0.1, format="csr", dtype=np.float32, rng=0)


def peak_of(function, first=None):
    """Bytes at the peak beside what was there before."""
    (first or function)()  # compiles, fills caches
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


FOURIER = {"chi2": "auto", "dirichlet": "auto"}  # kernels without random features


@pytest.mark.parametrize(
    ("X", "settings"),
    [
        (ROWS, {}),
        (ROWS, {"normalize": "l1"}),
        (ROWS, {"precision": "float64", "normalize": "l1"}),
        (ROWS.astype(float), {}),
        (SPARSE, {}),
        (ROWS, {"kernel": "chi2"}),
        (ROWS, {"kernel": "gaussian"}),
        (ROWS, {"kernel": "skewed-chi2"}),
        (ROWS, {"kernel": "dirichlet"}),
        (ROWS, {"features": "landmarks", "n_components": 512}),
        (ROWS, {"features": AutomaticFeatures("fourier", map=CompressedMap(n_terms=2, per_bin=True))}),
        (ROWS, {"features": AutomaticFeatures("fourier", map=DirectMap(n_terms=2, per_bin=True))}),
        (
            ROWS[:, :150],
            {"features": AutomaticFeatures("fourier", map=AnchorMap(n_terms=2, n_anchors=8, anchors="kmeans"))},
        ),
        (ROWS[:, :200], {"features": AutomaticFeatures("fourier", map=AdditiveKPCA(n_terms=2))}),
        (SPARSE[:, :500], {"features": AutomaticFeatures("fourier", map=AdditiveKPCA(n_terms=2))}),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else f"{type(value).__name__}, {value.dtype}",
)
def test_the_sample_and_what_is_fitted_on_it(X, settings):
    common = {"features": FOURIER.get(settings.get("kernel"), "fourier"), "n_components": 64, "alpha": 1.0}
    model = HistogramClassifier(**{"kernel": "exp-chi2", "random_state": 0, **common, **settings})
    source = open_source(X, LABELS)
    recipe = Recipe.of(model)
    method = Method.of(recipe)
    codec = ClassCodec.of(LABELS)
    job = largest_job(method, source, codec.n_targets)
    rows = PreparedRows(source, method.preparation(source), codec, DealtFolds(1, recipe.seed), recipe.seed)

    peak = peak_of(lambda: method.features(rows.sample()), first=lambda: method.features(rows.sample()[:600]))
    # beside the plan: the dense block that distances of sparse rows are taken to
    assert job.sample_bytes / 1.4 < peak < 1.1 * job.sample_bytes


def test_a_budget_below_the_sample_names_one_that_would_do():
    def fit(memory):
        return HistogramClassifier("exp-chi2", n_components=16, alpha=1.0, random_state=0, memory=memory).fit(
            ROWS, LABELS
        )

    with pytest.raises(MemoryBudgetError, match=r"Give memory='[0-9]+MiB'") as error:
        fit("12MiB")
    named = re.search("Give memory='([0-9]+MiB)'", str(error.value))[1]
    assert peak_of(lambda: fit(named)) < parse_memory(named)
    with pytest.raises(MemoryBudgetError):
        fit(int(0.9 * parse_memory(named)))


@pytest.mark.parametrize(("D", "t", "n_folds"), [(512, 256, 5), (512, 256, 2), (1024, 10, 5), (1024, 10, 2)])
def test_the_choice_of_a_alpha(D, t, n_folds):
    moments = FoldMoments(n_folds, D, t, np.zeros(D), np.zeros(t), np.dtype(np.float32))
    Z, y = rng.standard_normal((3000, D), dtype=np.float32), rng.integers(0, t, 3000)
    for k, fold in enumerate(moments.folds):
        fold.update(Z[k::n_folds], OneVersusAll(y[k::n_folds], t))
    whole, factor = moments.whole(), Factor(D)
    fewest = whole.count - max(fold.count for fold in moments.folds)
    scores = []
    peak = peak_of(lambda: scores.append(choose_alpha(moments, whole, [1.0, 3.0, 10.0, 30.0], factor=factor)))
    assert iterates(D, t, fewest) == bool(scores[0].iterations.any()) == (t == 10)
    planned = working_bytes(D, t, n_folds, fewest)
    assert planned / 1.6 < peak < 1.05 * planned


def test_many_classes_take_no_vectors_of_an_iteration():
    def solving(n_targets):
        return Job(5000, n_targets, 5, 0, 0, 4000.0, 4000.0, 4, n_rows=100_000).solve_bytes

    vectors = 8 * 5000 * 1000  # of moments, of the sum of the folds, and of the choice
    assert solving(1000) - solving(60) < (5 + 1 + 4) * vectors + 8 * 11 * 3 * 1000
    assert iterates(5000, 50, 80_000)
    assert not iterates(5000, 60, 80_000)
    assert not iterates(5000, 50, 4000)


def test_a_hundred_thousand_classes_need_no_matrix_of_all_pairs_of_them():
    n_classes, rng = 100_000, np.random.default_rng(0)
    X = rng.random((n_classes, 3), dtype=np.float32)
    model = HistogramClassifier("chi2", features=OptimalMap(n_terms=1), alpha=1e-3, memory="64MiB", random_state=0)
    peak = peak_of(lambda: model.fit(X, np.arange(n_classes)))
    assert peak < 64 * 2**20
    largest = np.argsort(-X[:, 0])[:3]
    assert model.decision_function(X[largest]).shape == (3, n_classes)


@pytest.mark.parametrize("features", ["landmarks", "fourier"])
@pytest.mark.parametrize(("bins", "density"), [(2000, 0.01), (500, 1.0)])
def test_a_fit_stays_within_what_is_planned_for_the_smallest_chunk(features, bins, density):
    rows = sp.random(4000, bins, density, format="csr", dtype=np.float32, random_state=0)
    rows = rows if density < 1 else rows.toarray()
    y = np.arange(4000) % 3

    def fit(memory):
        return HistogramClassifier("exp-chi2", features=features, n_components=200, memory=memory, random_state=0).fit(
            rows, y
        )

    with pytest.raises(MemoryBudgetError) as refused:
        fit("2MiB")
    named = re.search("Give memory='([0-9]+MiB)'", str(refused.value))[1]
    few = 4 * 2**20  # what a choice takes of few features, whatever their number
    assert peak_of(lambda: fit(named)) < 1.05 * parse_memory(named) + few


def test_a_budget_counts_the_libraries():
    job = Job(5000, 10, 1, 0, 0, 4000.0, 4000.0, 4, n_rows=100_000)
    smallest = job.peak_bytes(1024)
    assert smallest > LIBRARY_BYTES
    with pytest.raises(MemoryBudgetError, match="libraries included") as refused:
        chunk_rows_within(job, smallest + LIBRARY_BYTES - 1)
    named = parse_memory(re.search("Give memory='([0-9]+MiB)'", str(refused.value))[1])
    assert smallest + LIBRARY_BYTES < named < 1.1 * (smallest + LIBRARY_BYTES)
    assert job.peak_bytes(chunk_rows_within(job, named)) <= room_in(named)
    for needed in (2**20, LIBRARY_BYTES, LIBRARY_BYTES + 1, 2**31):
        assert room_in(budget_for(needed)) == needed


def test_a_race_leaves_out_margins_that_do_not_fit_the_memory():
    source = open_source(SPARSE, LABELS)
    entered = kernels_worth_trying(SampleTraits(False, 0.05, True, True, 2), 6000)
    names = {one.name for one in entered if one.way.name == "margins"}
    assert "linear SVM, raw rows" in names
    needed = int(0.05 * 6000 * 2000 * LIBLINEAR_ENTRY_BYTES)
    left = {one.name for one in within_room(entered, Room(source, 0.05, needed, 0))}
    assert {"linear SVM, raw rows", "linear SVM, square roots"} <= left
    assert "chi2, l1 rows, SVM" in names - left  # of more features per bin
    without = within_room(entered, Room(source, 0.05, needed - 1, 0))
    assert [one for one in entered if one.way.name != "margins"] == without


@pytest.mark.parametrize("in_race", [0, 2**30])
def test_a_race_leaves_out_margins_of_kernels_that_do_not_fit_the_memory(in_race, monkeypatch):
    source = open_source(SPARSE, LABELS)
    entered = kernels_worth_trying(SampleTraits(False, 0.05, True, True, 60), 6000)
    least = margin_bytes(source.n_rows)
    needed = least + max(exact_bytes(source.n_rows, 2 * source.row_bytes, np.dtype("f4")), in_race)
    assert within_room(entered, Room(source, 0.05, needed, in_race)) == entered
    without = within_room(entered, Room(source, 0.05, needed - 1, in_race))
    assert [one for one in entered if one.way.name == "ridge"] == without != entered
    monkeypatch.setattr("chimap.race.specs.MOST_MARGIN_ROWS", source.n_rows - 1)
    assert within_room(entered, Room(source, 0.05, needed, in_race)) == without


def test_wide_ridge_of_many_classes_stays_within_what_is_planned():
    """Matrices of all rows and targets, more than the features where there are hundreds of classes."""
    n, d, t = 1500, 300, 400
    rng = np.random.default_rng(0)
    Z = sp.random(n, d, density=0.02, random_state=rng, format="csr")
    kept = KeptFeatures(DealtFolds(1, 0))
    kept.put(Z, OneVersusAll(rng.integers(0, t, n), t), 0)
    problem = WideRidgeProblem(Evidence(kept=kept))
    tracemalloc.start()
    problem.solve(10.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    plain = Job(d, t, 1, 0, 0, 100.0, 100.0, 4, n_rows=n, n_vectors=WideRidgeSolver.n_vectors)
    job = KeepingJob.of(plain, Z.nnz, True, is_copied=False)
    assert 0.4 * job.peak_bytes(1024) < peak < job.peak_bytes(1024)


def test_rows_are_left_out_some_at_a_time():
    """Leverages of thousands of rows would be matrices of float64 beside the factor."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(3000, 100)).astype(np.float32)
    moments = Moments(100, 1).update(Z, Z[:, 0])
    shifted = Z - moments.shift.astype(np.float32)
    factor = Factor(100)
    tracemalloc.start()
    h = leverages(moments, 2.0, shifted, factor)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < Z.nbytes
    centred = (Z - Z.mean(axis=0)).astype(np.float64)
    expected = np.einsum("ij,jk,ik->i", centred, np.linalg.inv(centred.T @ centred + 2 * np.eye(100)), centred)
    assert np.allclose(h, expected + 1 / 3000, rtol=1e-4)


@dataclass(frozen=True)
class Needing(Job):
    """A job of a given size."""

    needed_bytes: int = 0

    def peak_bytes(self, chunk_rows):
        return self.needed_bytes


@pytest.mark.parametrize("row_bytes", [4.0, 160_000.0])
def test_a_named_budget_does_and_is_the_least(row_bytes):
    for needed in np.arange(1.0, 600.0, 0.7) * 2**20:
        job = Needing(64, 2, 1, 0, 0, row_bytes, row_bytes, 4, needed_bytes=int(needed))
        with pytest.raises(MemoryBudgetError) as refused:
            chunk_rows_within(job, 2**20)
        named = parse_memory(re.search("Give memory='([0-9]+MiB)'", str(refused.value))[1])
        assert ("libraries included" in str(refused.value)) == (named > LIBRARY_BYTES)
        chunk_rows_within(job, named)
        left = room_in(named) - job.needed_bytes
        assert left >= named // VALIDATION_SHARE + FEWEST_VALIDATION_ROWS * row_bytes
        with pytest.raises(MemoryBudgetError):
            chunk_rows_within(job, named - 2**21)


def test_rows_for_held_out_outputs_fit_beside_the_sample():
    X, y = rng.random((150, 40_000), dtype=np.float32), np.arange(150) % 3

    def fit(memory):
        return HistogramClassifier(
            "exp-chi2", features="landmarks", n_components=32, alpha=1.0, memory=memory, random_state=0
        ).fit(X, y)

    with pytest.raises(MemoryBudgetError) as refused:
        fit("2MiB")
    named = re.search("Give memory='([0-9]+MiB)'", str(refused.value))[1]
    assert peak_of(lambda: fit(named)) < parse_memory(named)


@pytest.mark.parametrize("joint", [False, True])
def test_learned_kernels_of_wide_rows_stay_within_a_named_budget(joint):
    X, y = rng.dirichlet(np.full(2000, 0.3), 3000).astype(np.float32), np.arange(3000) % 3

    def fit(memory):
        return MultipleKernelLearner(
            "exp-chi2",
            blocks={"a": slice(0, 1000), "b": slice(1000, 2000)},
            features="fourier",
            joint=joint,
            n_components=400,
            n_tune_components=64,
            n_tune_rows=500,
            max_iter=1,
            alpha=[0.1],
            memory=memory,
            random_state=0,
        ).fit(X, y)

    named = "2MiB"
    for _ in range(4):  # a later stage may name more
        try:
            fit(named)
            break
        except MemoryBudgetError as refused:
            named = re.search("Give memory='([0-9]+MiB)'", str(refused))[1]
    few = 4 * 2**20  # what a choice takes of few features
    assert peak_of(lambda: fit(named)) < 1.05 * parse_memory(named) + few


def test_the_sample_is_not_copied_for_rows_beside_it():
    model = HistogramClassifier("exp-chi2", features="fourier", n_components=64, alpha=1.0, random_state=0)
    method, source = Method.of(Recipe.of(model)), open_source(ROWS, LABELS)
    rows = PreparedRows(source, method.preparation(source), ClassCodec.of(LABELS), DealtFolds(1, 0), 0)
    places = rows.validation_places(200)
    sample, others = rows.sample_and(places)
    np.testing.assert_array_equal(others, ROWS[places])
    np.testing.assert_array_equal(sample, rows.sample())
    assert peak_of(lambda: rows.sample_and(places)) < 1.1 * (sample.nbytes + others.nbytes)
