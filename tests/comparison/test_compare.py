"""The comparison as a whole: what is tried, what is found, what is refused."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import OptimalMap, chi2
from chimap._validation import DataError, MemoryBudgetError
from chimap.comparison import candidates_for, compare, measure
from chimap.comparison.learning import Targets
from chimap.comparison.references import exact_machine
from chimap.comparison.rows import Rows
from chimap.data import ArraySource, split_source
from chimap.features import additive as maps
from chimap.features.fourier.projection import Hadamard
from chimap.features.fourier.sampling import CATALOGUE as SAMPLINGS
from chimap.kernels import Exponential, Linear, as_kernel
from tests.histograms import classes

X, y = classes(400, 16)
SMALL = {"n_rows": 200, "n_test_rows": 100, "exact_rows": 80, "n_components": [32, 64]}


@pytest.fixture(scope="module")
def additive():
    return compare(ArraySource(X, y), kernel="chi2", **SMALL)


@pytest.fixture(scope="module")
def exponential():
    return compare(ArraySource(sp.csr_matrix(X), y), kernel="exp-chi2", **SMALL)


def test_every_map_that_takes_the_kernel_is_tried():
    for kernel in ("chi2", "intersection", "jensen_shannon", "hellinger"):
        additive = maps.base.as_additive(kernel, "")
        able = {make.__name__ for make in maps.CATALOGUE.values() if make.takes(additive)}
        tried = {c.label for c in candidates_for(additive)}
        assert able <= tried
    tried = {c.label for c in candidates_for(Exponential(chi2, 1.0))}
    assert {f"FourierFeatures, {name}" for name in SAMPLINGS} <= tried


@pytest.mark.parametrize("kernel", ["gaussian", "skewed-chi2"])
def test_kernels_without_a_map_get_random_features(kernel):
    found = compare(ArraySource(X, y), kernel=kernel, **SMALL)
    assert {m.size for m in found.measured} == {32, 64}
    assert any("iid" in m.family for m in found.measured)
    with pytest.raises(ValueError, match="maps are of additive kernels"):
        candidates_for(as_kernel(kernel, 1.0), maps=["optimal"])


def test_a_map_added_to_the_catalogue_is_tried(monkeypatch):
    class SquareRoots(OptimalMap):
        """Random and not of any terms a bin, to have both ways of making."""

        def __init__(self, kernel="chi2", n_components=8, random_state=None):
            super().__init__(kernel, 1)
            self.n_components, self.random_state = n_components, random_state

    monkeypatch.setitem(maps.CATALOGUE, "roots", SquareRoots)
    found = compare(ArraySource(X, y), kernel="chi2", maps=["roots"], random_state=5, **SMALL)
    assert [(m.family, m.unit, m.size) for m in found.measured] == [
        ("SquareRoots", "features", 32),
        ("SquareRoots", "features", 64),
    ]
    assert candidates_for(chi2, maps=["roots"], random_state=5)[0].make(9).random_state == 5


def test_structured_frequencies_are_never_made_a_matrix(monkeypatch):
    def refused(projection):
        raise AssertionError("thousands of bins would make it gigabytes")

    monkeypatch.setattr(Hadamard, "matrix", property(refused))
    found = compare(ArraySource(X, y), kernel="exp-chi2", **SMALL)
    assert any("structured" in m.family for m in found.measured)


def test_what_is_measured(additive):
    by_name = {m.name: m for m in additive.measured}
    best = by_name["OptimalMap, 3 terms"]
    assert best.n_features == 48
    assert best.dense_bytes == 48 * 4
    assert best.sparse_bytes is None
    assert best.map_seconds > 0
    assert best.fit_options == {"kernel": "chi2", "map": "optimal", "terms": 3}
    assert 0.5 < best.score.value <= 1
    errors = [by_name[f"OptimalMap, {n} term{'s' * (n > 1)}"].error_relative for n in (1, 2, 3, 5)]
    assert errors == sorted(errors, reverse=True)
    assert list(additive.bounds) == [1, 2, 3, 5]
    of_values = [m for m in additive.measured if m.value_error is not None]
    assert {"OptimalMap", "DirectMap", "HomogeneousMap"} <= {m.family for m in of_values}
    for m in of_values:  # to the rounding of float32
        assert m.value_error >= additive.bounds[m.size] * (1 - 1e-6)
    exact, linear = (r.name for r in additive.references)
    assert re.fullmatch(r"exact chi2 SVM, C = (0\.1|1|10|100|1000)", exact)
    assert linear == "linear ridge on the raw rows"
    assert additive.references[0].n_rows == 80
    assert 0.2 < additive.baseline < 0.6


def test_the_rows_are_those_of_the_split_that_fit_makes(additive):
    train, test = split_source(ArraySource(X, y), 0.3, 0)
    assert additive.data["rows to measure on"] == min(100, test.n_rows)
    assert additive.data["rows to learn from"] == min(200, train.n_rows)


def test_sizes_that_a_map_refuses_are_listed(additive):
    [refused] = additive.left_out
    assert (refused.family, refused.size) == ("HomogeneousMap", 2)
    assert "must be odd" in refused.reason


def test_exponential_kernels_and_sparse_rows(exponential):
    assert exponential.kernel == "exp-chi2"
    assert exponential.gamma > 0
    assert {m.n_features for m in exponential.measured} == {32, 64}
    assert exponential.bound_of == "gram"
    assert list(exponential.bounds) == [32, 64]
    for m in exponential.measured:
        assert m.error_relative > exponential.bounds[m.size] > 0
        assert m.value_error is None
    means = {size: [m.error_relative for m in exponential.measured if m.size == size] for size in (32, 64)}
    assert np.mean(means[64]) < np.mean(means[32])


def test_sparse_features_and_their_bytes():
    rows = sp.random(200, 50, 0.1, format="csr", random_state=0, dtype=np.float32)
    found = compare(ArraySource(rows), kernel="chi2", maps=["optimal"], n_terms=[2], **SMALL)
    [m] = found.measured
    assert m.sparse_bytes == pytest.approx(
        2 * 5 * 8 + 4, rel=0.2
    )  # 5 entries a row, of 4 bytes and their column
    assert m.least_bytes == m.sparse_bytes < m.dense_bytes == 400


def test_without_labels_errors_alone():
    found = compare(ArraySource(X), kernel="chi2", **SMALL)
    assert found.task is None
    assert found.references == ()
    assert all(m.score is None for m in found.measured)
    assert found.recommendation.chosen.error_relative < 0.01


def test_numbers_for_labels():
    target = np.sqrt(X[:, 0]) + X[:, 3]
    found = compare(ArraySource(X, target), kernel="chi2", task="regress", maps=["optimal"], **SMALL)
    assert found.metric == "R²"
    assert found.recommendation.chosen.score.value > 0.9
    assert found.baseline == pytest.approx(0, abs=0.05)
    assert found.references[0].score.value > 0.8


def test_same_seed_same_numbers(additive):
    again = compare(ArraySource(X, y), kernel="chi2", **SMALL)
    for one, other in zip(additive.measured, again.measured, strict=True):
        assert one.name == other.name
        assert one.error_relative == other.error_relative
        assert one.score == other.score


def test_a_fault_of_the_program_is_not_left_out(monkeypatch):
    def broken(*arguments):
        raise TypeError("ours")

    monkeypatch.setattr(measure, "seconds_a_row", broken)
    with pytest.raises(TypeError, match="ours"):
        compare(ArraySource(X, y), kernel="chi2", **SMALL)


def test_features_too_large_for_the_memory_are_measured_but_not_trained():
    found = compare(
        ArraySource(X, y),
        kernel="exp-chi2",
        memory="12MiB",
        n_rows=200,
        exact_rows=0,
        n_components=[32, 8192],
    )
    by_size = {m.size: m for m in found.measured if m.family.endswith("orthogonal")}
    assert by_size[32].score is not None
    assert by_size[8192].score is None
    assert "too small" in by_size[8192].not_learned
    assert found.recommendation.chosen.size == 32


def test_json_is_plain(additive, exponential):
    for found in (additive, exponential):
        text = json.dumps(found.as_dict(), allow_nan=False)
        back = json.loads(text)
        assert back["recommendation"]["sentence"] == found.recommendation.sentence
        assert len(back["measured"]) == len(found.measured)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"kernel": "rbf"}, ValueError, "kernel must be one of"),
        ({"maps": ["fastest"]}, ValueError, "maps must be among optimal, .*'fastest'"),
        (
            {"kernel": "intersection", "maps": ["direct"]},
            ValueError,
            "'direct' does not approximate 'intersection'",
        ),
        ({"n_terms": [0]}, ValueError, "each of n_terms must be a positive whole number"),
        ({"n_components": []}, ValueError, "n_components must hold at least one"),
        ({"n_rows": 0}, ValueError, "n_rows must be"),
        ({"exact_rows": -1}, ValueError, "exact_rows must be 0 or more"),
        ({"task": "rank"}, ValueError, "task must be one of"),
        ({"memory": 1000}, MemoryBudgetError, "the rows to compare on need"),
        (
            {"kernel": "chi2", "maps": ["homogeneous"], "n_terms": [2]},
            DataError,
            "no candidate takes.*must be odd",
        ),
    ],
)
def test_bad_parameters(given, error, message):
    with pytest.raises(error, match=message):
        compare(ArraySource(X, y), **given)


def test_bad_rows():
    bad = X.copy()
    bad[:, 3] = -1
    with pytest.raises(DataError, match=r"row \d+, column 3"):
        compare(ArraySource(bad, y), kernel="chi2", **SMALL)
    with pytest.raises(DataError, match="one class only"):
        compare(ArraySource(X, np.ones(400)), kernel="chi2", **SMALL)
    with pytest.raises(DataError, match="needs 10 of them"):
        compare(ArraySource(X[:20], y[:20]), kernel="chi2")


@pytest.mark.parametrize("task", ["classify", "regress"])
def test_the_exact_machine_stands_rows_far_from_zero(task):
    rng = np.random.default_rng(0)
    rows = (rng.random((300, 6)) + 100).astype(np.float32)
    value = rows.astype(float) @ np.linspace(-1, 1, 6)
    labels = np.where(value > np.median(value), "high", "low") if task == "classify" else value
    targets = Targets.of(labels, task)
    data = Rows(rows[:200], rows[200:], labels[:200], labels[200:])
    for kernel in (Linear(), chi2):
        found = exact_machine(kernel, data, targets, 200, 0, 2**30)
        assert found.score.value > 0.95
        assert re.search(r" = [\d.e-]+$", found.name)
