"""Features beside their kernel: what is tried, what is measured, what is refused."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.accuracy.kernel_errors import candidates_for, kernel_errors

from chimap import OptimalMap, chi2
from chimap._validation import DataError, MemoryBudgetError
from chimap.data import ArraySource
from chimap.features import additive as maps
from chimap.features.fourier.projection import Hadamard
from chimap.features.fourier.sampling import CATALOGUE as SAMPLINGS
from chimap.kernels import Exponential, MinMax, as_kernel
from tests.histograms import classes

X, y = classes(200, 16)
SMALL = {"n_components": [32, 64]}


@pytest.fixture(scope="module")
def additive():
    return kernel_errors(ArraySource(X), kernel="chi2", **SMALL)


@pytest.fixture(scope="module")
def exponential():
    return kernel_errors(ArraySource(sp.csr_matrix(X)), kernel="exp-chi2", **SMALL)


def test_every_map_that_takes_the_kernel_is_tried():
    for kernel in ("chi2", "intersection", "jensen_shannon", "hellinger"):
        additive = maps.base.as_additive(kernel, "")
        able = {make.__name__ for make in maps.CATALOGUE.values() if make.takes(additive)}
        tried = {c.label for c in candidates_for(additive)}
        assert able <= tried
    tried = {c.label for c in candidates_for(Exponential(chi2, 1.0))}
    assert {f"FourierFeatures, {name}" for name in SAMPLINGS} <= tried
    assert {"LandmarkFeatures", "NystroemFeatures"} <= tried
    assert {c.label for c in candidates_for(MinMax())} == {"MinMaxFeatures", "NystroemFeatures"}


@pytest.mark.parametrize("kernel", ["gaussian", "skewed-chi2", "minmax"])
def test_kernels_without_a_map_get_other_features(kernel):
    found = kernel_errors(ArraySource(X), kernel=kernel, **SMALL)
    assert {m.size for m in found.measured} == {32, 64}
    if kernel != "minmax":
        assert any("iid" in m.family for m in found.measured)
    with pytest.raises(ValueError, match="maps need an additive kernel"):
        candidates_for(as_kernel(kernel, 1.0), maps=["optimal"])


def test_a_map_added_to_the_catalogue_is_tried(monkeypatch):
    class SquareRoots(OptimalMap):
        """Random and not of any terms per bin, to have both ways of making."""

        def __init__(self, kernel="chi2", n_components=8, random_state=None):
            super().__init__(kernel, 1)
            self.n_components, self.random_state = n_components, random_state

    monkeypatch.setitem(maps.CATALOGUE, "roots", SquareRoots)
    found = kernel_errors(ArraySource(X), kernel="chi2", maps=["roots"], random_state=5, **SMALL)
    assert [(m.family, m.unit, m.size) for m in found.measured] == [
        ("SquareRoots", "features", 32),
        ("SquareRoots", "features", 64),
    ]
    assert candidates_for(chi2, maps=["roots"], random_state=5)[0].make(9).random_state == 5


def test_structured_frequencies_are_never_made_a_matrix(monkeypatch):
    def refused(projection):
        raise AssertionError("thousands of bins would make it gigabytes")

    monkeypatch.setattr(Hadamard, "matrix", property(refused))
    found = kernel_errors(ArraySource(X), kernel="exp-chi2", **SMALL)
    assert any("structured" in m.family for m in found.measured)


def test_what_is_measured(additive):
    by_name = {m.name: m for m in additive.measured}
    best = by_name["OptimalMap, 3 terms"]
    assert best.n_features == 48
    assert best.row_bytes == 48 * 4
    assert best.map_seconds > 0
    errors = [by_name[f"OptimalMap, {n} term{'s' * (n > 1)}"].error_relative for n in (1, 2, 3, 5)]
    assert errors == sorted(errors, reverse=True)
    assert list(additive.bounds) == [1, 2, 3, 5]
    of_values = [m for m in additive.measured if m.value_error is not None]
    assert {"OptimalMap", "DirectMap", "HomogeneousMap"} <= {m.family for m in of_values}
    for m in of_values:  # to the rounding of float32
        assert m.value_error >= additive.bounds[m.size] * (1 - 1e-6)
    assert [m.error_relative for m in additive.ranked] == sorted(m.error_relative for m in additive.measured)


def test_sizes_that_a_map_refuses_are_listed(additive):
    [refused] = additive.refused
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
    [m] = kernel_errors(ArraySource(rows), kernel="chi2", maps=["optimal"], n_terms=[2], **SMALL).measured
    assert m.row_bytes == pytest.approx(2 * 5 * 8 + 4, rel=0.2)  # 5 entries a row, of 4 bytes and their column


def test_a_fault_of_the_program_is_not_left_out(monkeypatch):
    def broken(*arguments):
        raise TypeError("ours")

    monkeypatch.setattr(sys.modules[kernel_errors.__module__], "seconds_a_row", broken)
    with pytest.raises(TypeError, match="ours"):
        kernel_errors(ArraySource(X), kernel="chi2", **SMALL)


def test_json_is_plain(additive, exponential):
    for found in (additive, exponential):
        back = json.loads(json.dumps(found.as_dict(), allow_nan=False))
        assert len(back["measured"]) == len(found.measured)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"kernel": "rbf"}, ValueError, "kernel must be one of"),
        ({"kernel": "chi2", "maps": ["fastest"]}, ValueError, "maps must be among optimal, .*'fastest'"),
        ({"kernel": "intersection", "maps": ["direct"]}, ValueError, "'direct' does not approximate 'intersection'"),
        ({"kernel": "chi2", "n_terms": [0]}, ValueError, "each of n_terms must be a positive whole number"),
        ({"kernel": "chi2", "n_components": []}, ValueError, "n_components must hold at least one"),
        ({"kernel": "chi2", "memory": 1000}, MemoryBudgetError, "the rows to measure on need"),
        ({"kernel": "chi2", "maps": ["homogeneous"], "n_terms": [2]}, DataError, "no features take.*must be odd"),
    ],
)
def test_bad_parameters(given, error, message):
    with pytest.raises(error, match=message):
        kernel_errors(ArraySource(X), **given)


def test_bad_rows():
    bad = X.copy()
    bad[:, 3] = -1
    with pytest.raises(DataError, match=r"row \d+, column 3"):
        kernel_errors(ArraySource(bad), kernel="chi2", **SMALL)
    with pytest.raises(DataError, match="need at least 20"):
        kernel_errors(ArraySource(X[:19]), kernel="chi2")
