"""What benchmarks compare with is right: the solvers that they write themselves, and the cells that they keep."""

from __future__ import annotations

import importlib
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from chimap.features.exact import ExactFeatures

TOP = Path(__file__).parents[1]


@pytest.fixture
def benchmark_of(monkeypatch):
    monkeypatch.syspath_prepend(str(TOP))
    for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_THREAD_TIMEOUT"):  # benchmarks set them where they are not set
        monkeypatch.setenv(variable, "")
    return lambda name: importlib.import_module(f"benchmarks.{name}")


@pytest.mark.parametrize(
    ("solver", "sweeps", "distance"),
    [("three blocks", 100, 1e-2), ("core", 30, 1e-3), ("eigenpro", 60, 1e-2), ("conjugate gradients", 5, 1e-3)],
)
def test_solvers_of_the_same_problem_reach_its_solution(benchmark_of, monkeypatch, solver, sweeps, distance):
    blocks = benchmark_of("speed.blocks")
    monkeypatch.setattr(blocks, "ALPHA", 1.0)
    rng = np.random.default_rng(0)
    X = rng.dirichlet(np.full(20, 0.5), size=420).astype(np.float32)
    Y = rng.standard_normal((420, 2))
    features = ExactFeatures("exp-chi2", n_terms=1).fit(X)
    K = features.transform(X)
    solvers = {
        "three blocks": lambda: blocks.by_blocks(features, Y, 140, 0),
        "core": lambda: blocks.by_blocks(features, Y, 140, 40),
        "eigenpro": lambda: blocks.by_eigenpro(K, Y, 1.0),
        "conjugate gradients": lambda: blocks.by_conjugate_gradients(K, Y, 100),
    }
    exact = np.linalg.solve(K.astype(np.float64) + blocks.ALPHA * np.eye(420), Y)
    found = list(islice(((values, a.copy()) for values, a in solvers[solver]()), sweeps))
    errors = [np.linalg.norm(K @ (a - exact)) / np.linalg.norm(K @ exact) for _, a in found]
    assert errors[-1] < distance
    assert errors[0] > 10 * errors[-1]
    assert np.allclose(np.diff([values for values, _ in found]), 1)  # each computes all kernel values once


def test_kept_cells_by_rows_are_cells_of_the_table(benchmark_of):
    by_rows = benchmark_of("accuracy.by_rows")
    lines = by_rows.kept_or_none()
    keys = [by_rows.key(line) for line in lines]
    assert len(set(keys)) == len(keys)
    assert set(keys) <= set(by_rows.cells(list(by_rows.ROWS), list(by_rows.SHOWN), []))
    table = by_rows.table(lines)
    assert all(f"{line['score']:.4f}" in table for line in lines)
    assert table.count("**") == 2 * sum(" s |" in row for row in table.splitlines())  # one best score in each line


def test_more_rows_never_score_less_by_more_than_a_standard_error(benchmark_of):
    by_rows = benchmark_of("accuracy.by_rows")
    lines = by_rows.kept_or_none()
    assert {line["set"] for line in lines if line["method"] == "chimap"} == set(by_rows.ROWS)
    assert by_rows.falls(lines) == []
    wrong = [
        {"set": "mnist", "method": "chimap", "rows": n, "score": score}
        for n, score in ((1000, 0.94), (3000, 0.936), (10_000, 0.938))
    ]
    assert by_rows.falls(wrong) == ["mnist, 3,000 rows: 0.936, but 0.94 with fewer"]
    assert by_rows.standard_error("mnist", 0.94) == pytest.approx(0.00237, abs=1e-5)
    assert by_rows.standard_error("hiv", 0.7) == pytest.approx(0.02, abs=5e-4)


def test_cells_of_all_rows_are_chosen_by_name(benchmark_of):
    by_rows = benchmark_of("accuracy.by_rows")
    assert list(by_rows.cells(["moses logP"], ["linear-svm sqrt", "chimap"], [1000, 0])) == [
        ("moses logP", "chimap", 1000),
        ("moses logP", "linear-svm raw", 1000),
        ("moses logP", "chimap", 700_000),
        ("moses logP", "linear-svm raw", 700_000),
    ]
