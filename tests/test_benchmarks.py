"""What benchmarks compare with is right: the solvers that they write themselves, and the cells that they keep."""

from __future__ import annotations

import ast
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


# --- benchmarks that cannot flatter

ACCURACY = [TOP / "benchmarks" / "sets.py", *sorted((TOP / "benchmarks" / "accuracy").glob("*.py"))]
BOOSTING = ("LGBM", "CatBoost", "HistGradientBoosting", "XGB")
ENDS_BY_ITSELF = ("early_stopping", "early_stopping_rounds")
ROUNDS = {"n_estimators", "iterations", "max_iter", "num_boost_round"}
NO_CAP = 50_000  # rounds that no fit reaches


def first_rows_of_tests(code: str) -> list[str]:
    """Return the expressions that take the first rows of a test part, whose order may say how hard they are."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.upper is not None:
            of = ast.unparse(node.value)
            is_test = "test" in of.lower() or "~train" in of or of in ("Xt", "yt")
            is_drawn = "permutation(" in of or "tests" in of  # rows at random, or some of the splits
            if is_test and not is_drawn and node.slice.lower is None:
                found.append(ast.unparse(node))
    return found


def capped_boosting(code: str) -> list[str]:
    """Return the functions that fit boosting which does not end by itself, or whose rounds a number caps."""
    found = []
    for function in ast.walk(ast.parse(code)):
        if not isinstance(function, ast.FunctionDef) or not any(name in ast.unparse(function) for name in BOOSTING):
            continue
        nodes = list(ast.walk(function))
        caps = [
            keyword.value.value
            for node in nodes
            if isinstance(node, ast.Call)
            for keyword in node.keywords
            if keyword.arg in ROUNDS and isinstance(keyword.value, ast.Constant) and keyword.value.value < NO_CAP
        ]
        named = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        named |= {node.id for node in nodes if isinstance(node, ast.Name)}
        named |= {keyword.arg for node in nodes if isinstance(node, ast.Call) for keyword in node.keywords}
        if caps or not named & set(ENDS_BY_ITSELF):
            found.append(function.name)
    return found


@pytest.mark.parametrize("file", ACCURACY, ids=lambda file: file.stem)
def test_all_test_rows_are_scored_and_boosting_ends_by_itself(file):
    code = file.read_text(encoding="utf-8")
    assert first_rows_of_tests(code) == []
    assert capped_boosting(code) == []


def test_flattery_is_found():
    assert first_rows_of_tests("X, Xt = X[train], X[~train][:10_000]") == ["X[~train][:10000]"]
    assert first_rows_of_tests("score(model, data.X_test[:500])\nX[:500]\ndata.X_test[rows]") == ["data.X_test[:500]"]
    fit = "def fit(X, y):\n    return LGBMClassifier({}).fit(X, y, callbacks=[{}])"
    assert capped_boosting(fit.format("n_estimators=2000", "lgb.early_stopping(20)")) == ["fit"]
    assert capped_boosting(fit.format("n_estimators=MOST", "")) == ["fit"]
    assert capped_boosting(fit.format("n_estimators=MOST", "lgb.early_stopping(20)")) == []


def test_perturbed_rows_keep_the_protected_taxa_and_their_sums(benchmark_of):
    perturbed, fields = benchmark_of("accuracy.perturbed"), benchmark_of("accuracy.fields")
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.poisson(2.0, (60, 40)) * (rng.random((60, 40)) < 0.6) * np.linspace(1, 9, 40).astype(int)
    X[:, 3] = 5 + 9 * y  # the taxon that tells the classes apart
    test = np.arange(60) >= 40
    for name in ("mlrepo_made", "deepmicro_made"):
        table = fields.Table(name, "microbes", perturbed.sp.csr_matrix(X), y, None, test[None], "roc_auc")
        rows = {way: perturbed.perturbed(table, 0, way).X.toarray() for way in perturbed.WAYS}
        for way, changed in rows.items():
            np.testing.assert_array_equal(changed[~test], X[~test])
            zeros, before = (changed[test] == 0).sum(), (X[test] == 0).sum()
            assert {
                "as they are": zeros == before,
                "sharper shares": zeros == before,
                "fewer zeros": zeros < before,
            }.get(way, zeros > before)
            if name.startswith("deepmicro") or way == "sharper shares":
                np.testing.assert_allclose(changed[test].sum(axis=1), X[test].sum(axis=1), rtol=1e-5)
            else:
                np.testing.assert_array_equal(changed[test][:, 3], X[test][:, 3])
        gone = np.flatnonzero((rows["dropped taxa"][test] == 0).all(axis=0))
        assert gone.size == 4
        assert gone.min() > 20  # those with the most mass


def test_molecules_of_others_are_read_where_they_are_given(benchmark_of, tmp_path):
    ace = benchmark_of("accuracy.moleculeace")
    with pytest.raises(SystemExit, match=r"skipped: .* --data"):
        ace.files_of(None, "")
    (tmp_path / "CHEMBL1_Ki.csv").write_text(
        "smiles,exp_mean [nM],y,cliff_mol,split\nCCO,1.0,-0.5,1,train\nCCN,2.0,0.25,0,test\n", encoding="utf-8"
    )
    target = ace.Target.read(tmp_path / "CHEMBL1_Ki.csv")
    assert (target.name, target.smiles, target.y.tolist()) == ("CHEMBL1_Ki", ["CCO", "CCN"], [-0.5, 0.25])
    assert (target.is_cliff.tolist(), target.is_test.tolist()) == ([True, False], [False, True])
    (tmp_path / "CHEMBL2_Ki.csv").write_text("smiles,y\nCCO,1\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="has no column cliff_mol, split"):
        ace.Target.read(tmp_path / "CHEMBL2_Ki.csv")
