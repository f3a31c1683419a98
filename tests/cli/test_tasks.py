"""Models of several tasks, sets and intervals, and columns of text on the command line."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pandas as pd
import pytest

from chimap import HistogramRegressor, load
from chimap._validation import DataError
from chimap.readers import open_source

from .terminal import run_many

pytestmark = pytest.mark.slow

N = 160


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of compounds with labels of three tasks, in several formats, and models of it."""
    folder, rng = tmp_path_factory.mktemp("tasks"), np.random.default_rng(0)
    X = rng.dirichlet(np.ones(5), size=N)
    labels = pd.DataFrame((X[:, :3] > 0.2).astype(float), columns=["task_liver", "task_heart", "task_skin"])
    labels = labels.mask(rng.random(labels.shape) < 0.25)
    labels["task_skin"] = labels["task_skin"].fillna(0.0)
    labels.iloc[:8, 2] = np.nan
    labels.iloc[:8, 0] = 1.0
    labels.iloc[3] = np.nan
    table = pd.DataFrame(X, columns=list("abcde")).join(labels)
    table["dose"], table["potency"] = np.sqrt(X[:, 0]), X[:, 1] ** 2
    table.insert(0, "name", [f"c{i}" for i in range(N)])
    kind = np.where(X[:, 0] > X[:, 1], "acid", "base")
    table.to_csv(folder / "tox.csv", index=False)
    table.drop(columns="name").to_parquet(folder / "tox.parquet")
    table[["name", *"abcde"]].assign(kind=kind).to_csv(folder / "kinds.csv", index=False)
    pd.DataFrame(X, columns=list("abcde")).assign(kind=kind).to_parquet(folder / "kinds.parquet")
    np.savez(folder / "tox.npz", X=X, Y=labels.to_numpy(), z=np.column_stack([X[:, 0], X[:, 1]]))
    fit = ["--kernel", "exp-chi2", "--columns", "a:e"]
    results = run_many(
        [
            ["fit", "tox.csv", "--labels", "task_*", "-o", "tox.model", *fit, "--test-fraction", "0.3", "--json"],
            [
                "fit",
                "tox.parquet",
                "--labels",
                "dose,potency",
                "-o",
                "doses.model",
                *fit,
                "--test-fraction",
                "0.3",
                "--verbose",
            ],
            ["fit", "tox.csv", "--labels", "dose", "-o", "dose.model", *fit],
            ["fit", "kinds.csv", "--labels", "kind", "-o", "kind.model", *fit],
            ["fit", "tox.npz", "--labels", "::Y", "-o", "matrix.model", "--kernel", "chi2"],
        ],
        folder,
    )
    assert [result.code for result in results] == [0] * 5, [result.err for result in results]
    assert results[0].json["held_out"]["means"]["ROC AUC"] > 0.9
    assert "task         2 regressions (2 columns of numbers)" in results[1].out
    assert "mean R²" in results[1].out
    return folder


def test_classes_of_tasks_are_balanced(folder):
    fit = ["fit", "tox.csv", "--labels", "task_*", "--kernel", "exp-chi2", "--columns", "a:e"]
    results = run_many(
        [
            [*fit, "-o", "balanced.model", "--class-weight", "balanced", "--verbose"],
            [*fit, "-o", "given.model", "--class-weight", "1=3", "--json"],
            ["info", "balanced.model"],
            [*fit, "-o", "unknown.model", "--class-weight", "active=3"],
        ],
        folder,
    )
    assert [result.code for result in results] == [0, 0, 0, 2], [result.err for result in results]
    assert "task 'task_liver': --class-weight names 'active', which is none of the classes 0, 1" in results[3].err
    weights = load(folder / "balanced.model").class_weight_
    y = pd.read_csv(folder / "tox.csv")[["task_liver", "task_heart", "task_skin"]].drop(index=3)
    for task, name in enumerate(y):
        share = y[name].mean()
        assert np.allclose(weights[task], [0.5 / (1 - share), 0.5 / share])
    said = f"{weights[0, 1]:.3g} to {weights[0, 0]:.3g} (task_liver)"
    assert said in " ".join(results[0].out.split())
    assert said in " ".join(results[2].out.split())
    assert results[1].json["class_weight"] == [[1, 3]] * 3


def test_columns_of_a_table_are_tasks(folder):
    for name in ("tox.csv", "tox.parquet"):
        source = open_source(folder / name, "task_*", columns="a:e")
        assert source.task_names == ("task_liver", "task_heart", "task_skin")
        assert source.column_names == tuple("abcde")
        assert (source.n_rows, source.n_left_out) == (N - 1, 1)
        expected = pd.read_csv(folder / "tox.csv")[list(source.task_names)].drop(index=3)
        assert np.array_equal(source.labels(), expected, equal_nan=True)
        chunks = list(source.chunks(50))
        assert np.array_equal(np.concatenate([chunk.y for chunk in chunks]), source.labels(), equal_nan=True)
    marked = open_source(folder / "tox.csv", "task_liver,task_skin", columns="a:e", missing=0)
    assert np.nanmin(marked.labels()) == 1
    frame = pd.read_csv(folder / "tox.csv").drop(columns="name")
    assert open_source(frame, ["dose", "task_skin"]).task_names == ("dose", "task_skin")
    model = HistogramRegressor("chi2", alpha=1.0).fit(frame[[*"abcde", "dose", "potency"]], ["dose", "potency"])
    assert model.task_names_.tolist() == ["dose", "potency"]
    assert model.feature_names_in_.tolist() == list("abcde")


def test_columns_that_are_not_there_are_named(folder):
    with pytest.raises(DataError, match=r"no column 'tax_\*' \(labels\); there are 'a', 'b'"):
        open_source(folder / "tox.csv", "tax_*")
    with pytest.raises(DataError, match=r"column 'kind', row 0, task 0: '(acid|base)'"):
        open_source(folder / "kinds.csv", "kind,a")


def test_predictions_have_a_column_a_task(folder):
    written, numbers, arrays = run_many(
        [
            ["predict", "tox.model", "tox.csv", "--labels", "task_*", "--probabilities", "--sets", "-o", "tox-out.csv"],
            ["predict", "doses.model", "tox.parquet", "--intervals", "--coverage", "0.8", "-o", "doses-out.csv"],
            ["predict", "tox.model", "tox.csv", "--sets", "--class-conditional-sets", "--scores", "-o", "tox-out.npz"],
        ],
        folder,
    )
    assert (written.code, numbers.code, arrays.code) == (0, 0, 0), written.err + numbers.err + arrays.err
    rows, model = (pd.read_csv(folder / "tox-out.csv", dtype={"set_task_heart": str}), load(folder / "tox.model"))
    tasks = ["task_liver", "task_heart", "task_skin"]
    assert rows.columns.tolist() == ["id", *tasks, *(f"probabilities_{t}" for t in tasks), *(f"set_{t}" for t in tasks)]
    X = pd.read_csv(folder / "tox.csv")[list("abcde")]
    assert np.array_equal(rows[tasks], model.predict(X))
    assert np.allclose(rows[[f"probabilities_{t}" for t in tasks]], model.predict_proba(X), atol=1e-5)
    sets = model.predict_set(X, alpha=0.1)
    said = ["|".join(np.array(["0", "1"])[own]) for own in sets[:, 1]]
    assert rows["set_task_heart"].fillna("").tolist() == said
    doses = pd.read_csv(folder / "doses-out.csv")
    ends = load(folder / "doses.model").predict_set(X, alpha=0.2)
    assert doses.columns.tolist() == ["dose", "potency", "low_dose", "high_dose", "low_potency", "high_potency"]
    assert np.allclose(doses[["low_potency", "high_potency"]], ends[:, 1], atol=1e-5)
    kept = np.load(folder / "tox-out.npz")
    assert np.array_equal(kept["sets"], sets)
    assert np.array_equal(kept["class_conditional_sets"], model.predict_set(X, class_conditional=True))
    assert np.array_equal(kept["predictions"], model.predict(X))
    assert np.allclose(kept["scores"], model.decision_function(X), atol=1e-5)


def test_models_of_one_task_have_sets_and_intervals(folder):
    results = run_many(
        [
            ["predict", "kind.model", "kinds.csv", "--labels", "kind", "--sets", "--class-conditional-sets", "-o", "-"],
            ["predict", "dose.model", "tox.csv", "--intervals", "--coverage", "0.95", "-o", "-"],
            ["predict", "dose.model", "tox.csv", "--sets", "-o", "-"],
            ["predict", "kind.model", "kinds.csv", "--intervals", "-o", "-"],
            ["predict", "kind.model", "kinds.csv", "--sets", "--coverage", "1.5", "-o", "-"],
            ["predict", "kind.model", "kinds.csv", "--class-conditional-sets", "-o", "a.npy"],
        ],
        folder,
    )
    lines = results[0].out.splitlines()
    assert lines[0] == "id,prediction,set,class_conditional_set"
    assert {entry for line in lines[1:] for entry in line.split(",")[2:]} <= {"", "acid", "base", "acid|base"}
    assert results[1].out.startswith("id,prediction,low,high\n")
    for result, said in zip(
        results[2:],
        [
            "--sets: the model is a regression, which has none",
            "--intervals: the model is a classifier, which has none",
            "--coverage must be above 0 and below 1, such as 0.9; got 1.5",
            ".npy holds one array, so it cannot take --class-conditional-sets",
        ],
        strict=True,
    ):
        assert result.code != 0
        assert said in result.err


def test_tasks_are_evaluated_each_on_its_rows(folder):
    told, plain, drawn, repeated, numbers, refused, wrong = run_many(
        [
            ["evaluate", "tox.model", "tox.csv", "--labels", "task_*", "--json"],
            ["evaluate", "tox.model", "tox.csv", "--labels", "task_*"],
            ["evaluate", "doses.model", "tox.parquet", "--labels", "dose,potency", "--output", "report.html"],
            ["evaluate", "tox.model", "tox.csv", "--labels", "task_*", "--splits", "2", "--json"],
            ["evaluate", "dose.model", "tox.csv", "--labels", "dose", "--splits", "2", "-o", "dose.html"],
            ["evaluate", "tox.model", "tox.csv", "--labels", "task_*", "--splits", "2", "--per-class", "5"],
            ["evaluate", "tox.model", "tox.csv", "--labels", "task_skin"],
        ],
        folder,
    )
    metrics = told.json["metrics"]
    assert [task["name"] for task in metrics["tasks"]] == ["task_liver", "task_heart", "task_skin"]
    assert metrics["means"]["ROC AUC"] == pytest.approx(np.mean([task["ROC AUC"] for task in metrics["tasks"]]))
    assert "held out when the model was fitted" in told.json["data"]["which rows"]
    table = {line.split()[0]: line.split()[1:] for line in plain.out.splitlines() if "task_" in line}
    heart = metrics["tasks"][1]
    assert table["task_heart"] == [
        f"{heart['ROC AUC']:#.4g}",
        f"{heart['average precision']:#.4g}",
        f"{heart['balanced accuracy']:#.4g}",
        str(heart["rows"]),
    ]
    page = (folder / "report.html").read_text()
    for said in ("report.html", "potency"):
        assert said in drawn.out
    for said in ("Mean R² over 2 targets", "dose</th>", "potency</th>", "Mean MAE", "Most important bins"):
        assert said in page
    splits = repeated.json["splits"]
    assert (splits["n_splits"], splits["n_train"] + splits["n_test"]) == (2, N - 1)
    assert splits["ROC AUC"]["mean"] == pytest.approx(np.mean(splits["ROC AUC"]["splits"]))
    assert 0.8 < splits["ROC AUC"]["mean"] < 1
    assert re.search(r"splits +R² 0\.9\d+ ± 0\.\d+\n +RMSE 0\.0\d+ ± ", numbers.out)
    assert "Repeated splits" in (folder / "dose.html").read_text()
    assert "the model predicts several tasks: leave --per-class out" in refused.err
    assert "labels of 1 task(s), but the model has 3" in wrong.err


def test_rows_are_explained_by_the_task_that_is_answered_worst(folder):
    labels, doses = ["--labels", "task_*"], ["--labels", "dose,potency"]
    pd.read_parquet(folder / "tox.parquet")[list("abcde")].to_parquet(folder / "bins.parquet")
    told, measured, found, plain = run_many(
        [
            ["explain", "tox.model", "tox.csv", *labels, "--json", "-o", "tox.html"],
            ["explain", "doses.model", "tox.parquet", *doses, "--json"],
            ["explain", "doses.model", "tox.parquet", "--json"],
            ["explain", "doses.model", "bins.parquet", "--json"],
        ],
        folder,
    )
    for result in (told, measured, found, plain):
        assert result.code == 0, result.err
    model, source = load(folder / "tox.model"), open_source(folder / "tox.csv", "task_*", columns="a:e")
    scores = model.decision_function(source.take(np.arange(source.n_rows)))
    signs = 2 * source.labels() - 1
    first = told.json["rows"][0]
    name, task = first["row"].split(", ")
    place, k = source.row_ids.tolist().index(name), model.task_names_.tolist().index(task)
    assert first["score"] == pytest.approx(abs(scores[place, k]), rel=1e-4)
    assert scores[place, k] * signs[place, k] == pytest.approx(np.nanmin(scores[place] * signs[place]))
    assert (first["predicted"], first["truth"]) == (int(scores[place, k] > 0), int(source.labels()[place, k]))
    table = pd.read_parquet(folder / "tox.parquet")
    in_spreads = []
    for row in measured.json["rows"]:
        task = row["row"].split(", ")[1]
        in_spreads.append(abs(row["predicted"] - row["truth"]) / table[task].std(ddof=0))
    assert in_spreads[0] > 0
    assert in_spreads == pytest.approx(sorted(in_spreads, reverse=True), rel=0.2)  # spreads of rows held out
    assert found.json["rows"] == measured.json["rows"]  # by the labels of the fit
    assert all(row["truth"] is None for row in plain.json["rows"])


def test_info_tells_of_tasks_and_of_text(folder):
    data, model, words, parquet, matrix = run_many(
        [
            ["info", "tox.csv", "--labels", "task_*"],
            ["info", "tox.model"],
            ["info", "kinds.csv"],
            ["info", "kinds.parquet", "--json"],
            ["info", "matrix.model"],
        ],
        folder,
    )
    assert "3 tasks of two classes" in data.out
    assert "tasks 3: task_liver, task_heart, task_skin" in " ".join(model.out.split())
    assert not [line for line in model.out.splitlines() if line.split()[:1] == ["classes"]]
    assert words.code == 0, words.err
    assert "kind, not used as bins; to fit, name labels with --labels kind" in words.out
    assert parquet.json["text_columns"] == ["kind"]
    assert parquet.json["bins"] == 5
    assert "tasks 3: 0, 1, 2" in " ".join(matrix.out.split())


def test_without_labels_the_column_of_the_fit_is_taken(folder):
    shutil.copy(folder / "kinds.csv", folder / "more-kinds.csv")
    pd.read_csv(folder / "kinds.csv").drop(columns="kind").to_csv(folder / "unknown.csv", index=False)
    given, found, other, written = run_many(
        [
            ["evaluate", "kind.model", "more-kinds.csv", "--labels", "kind", "--json"],
            ["evaluate", "kind.model", "more-kinds.csv", "--json"],
            ["evaluate", "kind.model", "unknown.csv"],
            ["predict", "kind.model", "unknown.csv", "-o", "unknown-out.csv"],
        ],
        folder,
    )
    assert found.json["metrics"] == given.json["metrics"]
    assert "more-kinds.csv: using the column 'kind' as labels, as when the model was fitted." in found.err
    assert "the column 'kind'" not in given.err
    assert other.code != 0
    assert "unknown.csv has no labels. Name them; the model was fitted with --labels kind." in other.err
    assert written.code == 0, written.err


def test_without_labels_the_columns_of_all_tasks_are_taken(folder):
    given, found = run_many(
        [
            ["evaluate", "tox.model", "tox.csv", "--labels", "task_*", "--json"],
            ["evaluate", "tox.model", "tox.csv", "--json"],
        ],
        folder,
    )
    assert found.code == 0, found.err
    assert found.json["metrics"] == given.json["metrics"]
    assert "tox.csv: using the columns 'task_*' as labels, as when the model was fitted." in found.err
    assert "1 of 160 rows have no label in any task and are left out" in found.err


@pytest.mark.parametrize("labels", [[], ["--labels", "task_*"]])
def test_rows_without_labels_are_predicted_and_not_said_to_be_left_out(folder, labels):
    output = f"all{len(labels)}.csv"
    (result,) = run_many([["predict", "tox.model", "tox.csv", *labels, "-o", output]], folder)
    assert result.code == 0, result.err
    assert len(pd.read_csv(folder / output)) == N
    assert "left out" not in result.err
