"""What the commands do on good input: small real data in every format."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import chimap

from .conftest import NAMES, SMALL
from .terminal import run, run_many, start

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["fit", "--help"], ["compare", "--help"]])
def test_help_needs_no_numpy(arguments):
    script = (
        "import sys; from chimap.cli.main import main; code = main(sys.argv[1:]); "
        "assert not {'numpy', 'numba', 'sklearn', 'matplotlib'} & set(sys.modules); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("chimap 0." if arguments == ["--version"] else "Usage: chimap")


def test_from_file_to_report(folder, tmp_path):
    """The whole of the simple case, the first two commands in fresh interpreters."""
    model, page, answers = (tmp_path / name for name in ("my.model", "report.html", "predictions.csv"))
    flags = ["--test-fraction", "0.3", "--verbose", *SMALL]
    fitted = run("fit", "digits.npz", "--output", model, *flags, cwd=folder)
    assert fitted.code == 0, fitted.err
    assert fitted.err == ""
    for fact in (
        "on 539 rows kept apart; guessing",
        "plus 539 held out",
        "10 classes",
        "exp-chi2, gamma",
        "generalised cross-validation: R²",
        "peak memory",
    ):
        assert fact in fitted.out
    command = next(line for line in fitted.out.splitlines() if line.startswith("next "))
    evaluated = run(*command.split()[2:-1], page, cwd=folder)
    assert evaluated.code == 0, evaluated.err
    assert "held out when the model was fitted" in evaluated.out
    assert page.read_text().lower().startswith("<!doctype html>")
    [predicted] = run_many([["predict", model, "digits.npz", "--output", answers]], folder)
    assert predicted.code == 0, predicted.err
    assert len(answers.read_text().splitlines()) == 1798


def test_held_out_score_is_that_of_fit(folder, tmp_path):
    model = tmp_path / "my.model"
    fitted, again = run_many(
        [
            ["fit", "digits.npz", "-o", model, "--test-fraction", "0.3", "--json", *SMALL],
            ["evaluate", model, "digits.npz", "--json"],
        ],
        folder,
    )
    found, held_out = fitted.json, fitted.json["held_out"]
    assert found["rows"] + found["rows_held_out"] == 1797
    assert held_out["rows"] == found["rows_held_out"]
    assert held_out["accuracy"] > 0.9
    assert found["cross_validated_r2"] > 0.5
    assert again.json["metrics"]["accuracy"] == held_out["accuracy"]
    assert again.err == ""


def test_rows_seen_in_training_are_warned_of(folder):
    split, whole, other = run_many(
        [
            ["evaluate", "digits.model", "digits.npz", "--all-rows", "--json"],
            ["evaluate", "names.model", "sparse.npz", "--labels", "names.csv", "--json"],
            ["evaluate", "digits.model", "parts.npz::x_test", "--labels", "::y_test", "--json"],
        ],
        folder,
    )
    assert "chimap: warning: the model was trained on most of these rows" in split.err
    assert split.json["metrics"]["rows"] == 1797
    assert "chimap: warning: the model was trained on these rows" in whole.err
    assert other.err == ""
    assert other.json["data"]["which rows"] == "all 597 rows; the model was trained on digits.npz"


def test_a_renamed_file_is_known_again(folder, tmp_path):
    (tmp_path / "other name.npz").write_bytes((folder / "digits.npz").read_bytes())
    found = run_many([["evaluate", "digits.model", tmp_path / "other name.npz", "--json"]], folder)[0]
    assert "held out" in found.json["data"]["which rows"]


def test_predictions_are_those_of_the_model(folder, tmp_path):
    outputs = [tmp_path / "a.csv", tmp_path / "a.npy", tmp_path / "a.npz", "-"]
    results = run_many([["predict", "names.model", "rows.npy", "--output", output] for output in outputs], folder)
    assert [result.code for result in results] == [0] * 4
    expected = chimap.load(folder / "names.model").predict(np.load(folder / "rows.npy"))
    for found in (
        outputs[0].read_text().splitlines()[1:],
        np.load(outputs[1]),
        np.load(outputs[2])["predictions"],
        results[3].out.splitlines()[1:],
    ):
        np.testing.assert_array_equal(np.array(found), expected)


def test_a_column_of_labels_is_no_bin(folder, tmp_path):
    X = np.load(folder / "rows.npy")[:20]
    lines = [",".join([*map(str, row), "unknown"]) for row in X]
    heading = ",".join([*(f"b{i}" for i in range(64)), "digit"])
    (tmp_path / "new.csv").write_text("\n".join([heading, *lines]))
    address = f"file://{tmp_path}/new.csv"
    named, left = run_many(
        [
            ["predict", "names.model", address, "--labels", "digit", "-o", "-"],
            ["predict", "names.model", address, "-o", tmp_path / "p.csv"],
        ],
        folder,
    )
    np.testing.assert_array_equal(named.out.splitlines()[1:], chimap.load(folder / "names.model").predict(X))
    assert (left.code, (tmp_path / "p.csv").exists()) == (2, False)
    assert "new.csv: 65 bins per row, but HistogramClassifier was fitted on 64" in left.err


def test_only_columns_that_training_did_not_have_are_told_of(folder, tmp_path):
    X = np.load(folder / "rows.npy")[:200, 20:40] + 1
    names = [f"b{i}" for i in range(20)]
    table = pd.DataFrame(X, columns=names).assign(kind=NAMES[np.arange(200) % 2], depth=1, place="x")
    table.insert(0, "scan", [f"s{i}" for i in range(200)])
    table.to_csv(tmp_path / "old.csv", index=False)
    table.assign(camera=2).to_csv(tmp_path / "new.csv", index=False)
    fit = ["fit", "old.csv", "--labels", "kind", "--exclude", "place,dep*", "-o", "a.model", *SMALL]
    fitted, same, more, explained = run_many(
        [
            fit,
            ["predict", "a.model", "old.csv", "-o", "p.csv"],
            ["predict", "a.model", "new.csv", "-o", "q.csv"],
            ["explain", "a.model", "new.csv", "--output", "e.html"],
        ],
        tmp_path,
    )
    assert (fitted.code, same.code, more.code, explained.code) == (0, 0, 0, 0), more.err + explained.err
    assert "ignored" not in same.err
    for told in (more.err, explained.err):
        assert told.count("ignored") == 1
        assert "new.csv: column 'camera' ignored" in told


def test_scores_of_classes(folder, tmp_path):
    table, arrays, two = run_many(
        [
            ["predict", "names.model", "rows.npy", "--scores", "-o", "-"],
            ["predict", "names.model", "rows.npy", "--scores", "-o", tmp_path / "answers.npz", "--json"],
            ["predict", "parity.model", "second.svm", "--scores", "-o", "-"],
        ],
        folder,
    )
    records = list(csv.reader(io.StringIO(table.out)))
    model = chimap.load(folder / "names.model")
    assert records[0] == ["prediction", *model.classes_]
    expected = model.decision_function(np.load(folder / "rows.npy"))
    found = np.array([record[1:] for record in records[1:]], float)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert arrays.json["rows"] == 1797
    saved = np.load(tmp_path / "answers.npz")
    np.testing.assert_allclose(saved["scores"], expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(saved["classes"][saved["scores"].argmax(axis=1)], saved["predictions"])
    for label, *scores in list(csv.reader(io.StringIO(two.out)))[1:]:
        assert int(label) == np.argmax(np.array(scores, float))


def test_svmlight_text_is_read_as_in_training(folder):
    """The text for prediction lacks the last columns, which no row uses."""
    result = run_many([["evaluate", "parity.model", "second.svm", "--json"]], folder)[0]
    assert result.json["metrics"]["accuracy"] > 0.85
    assert result.json["data"]["bins"] == chimap.load(folder / "parity.model").n_features_in_


def test_regression(folder, tmp_path):
    page = tmp_path / "page.html"
    evaluated, shown, predicted = run_many(
        [
            ["evaluate", "ink.model", "ink.npz", "--json", "--output", page],
            ["evaluate", "ink.model", "ink.npz"],
            ["predict", "ink.model", "ink.npz", "-o", "-"],
        ],
        folder,
    )
    assert evaluated.json["metrics"]["task"] == "regression"
    assert evaluated.json["metrics"]["r2"] > 0.8
    assert "RMSE" in shown.out
    assert page.stat().st_size > 10_000
    assert len([float(line) for line in predicted.out.splitlines()[1:]]) == 1797


def test_the_task_is_found_and_said(folder, tmp_path):
    np.savez(tmp_path / "ages.npz", X=np.load(folder / "rows.npy"), y=np.arange(1797) % 600)
    ages, forced, whole = run_many(
        [
            ["info", tmp_path / "ages.npz", "--json"],
            ["fit", "digits.npz", "--task", "regress", "-o", tmp_path / "a.model", "--json", *SMALL],
            ["info", "digits.npz", "--json"],
        ],
        folder,
    )
    assert ages.json["labels"]["task"] == "regress"
    assert "--task classify" in ages.json["labels"]["reason"]
    assert (forced.json["task"], forced.json["classes"]) == ("regress", None)
    assert whole.json["labels"]["task"] == "classify"


def test_info_of_models(folder):
    exponential, additive, shown = run_many(
        [["info", "digits.model", "--json"], ["info", "names.model", "--json"], ["info", "digits.model"]], folder
    )
    model = chimap.load(folder / "digits.model")
    found = exponential.json
    assert (found["kernel"], found["features"], found["bins"]) == ("exp-chi2", 128, 64)
    assert found["gamma"] == model.kernel_.gamma
    assert found["alpha"] == model.alpha_
    assert found["classes"] == list(range(10))
    assert found["training"]["file"] == "digits.npz"
    assert (additive.json["kernel"], additive.json["gamma"], additive.json["features"]) == ("intersection", None, 192)
    assert "30 % held out" in shown.out


def test_info_of_data(folder):
    sparse, dense = run_many(
        [
            ["info", "sparse.npz", "--json"],
            ["info", "digits.npz", "--memory", "512MiB", "--components", "512", "--json"],
        ],
        folder,
    )
    X = np.load(folder / "rows.npy")
    for found in (sparse.json, dense.json):
        assert (found["rows"], found["bins"], found["least"], found["most"]) == (*X.shape, 0, 16)
        assert found["density"] == pytest.approx((X > 0).mean())
        assert found["negative"] == found["not_finite"] == 0
    assert sparse.json["labels"] is None
    assert sum(dense.json["labels"]["counts"].values()) == 1797
    assert dense.json["plan"]["peak_bytes"] <= 512 * 2**20


def test_info_of_bad_data_counts_what_is_wrong(folder, tmp_path):
    X = np.load(folder / "rows.npy")[:50].astype(float)
    X[3, 4], X[7, 1], X[8, 2] = -1, np.nan, np.inf
    np.save(tmp_path / "bad.npy", X)
    found = run_many([["info", tmp_path / "bad.npy"]], folder)[0]
    assert "1 value: only linear and gaussian machines take them" in found.out
    assert "2 NaN or infinite: 'chimap fit' will refuse them" in found.out


def test_info_of_rows_of_uneven_sums_names_the_flag(folder, tmp_path):
    X = np.ones((30, 4), dtype=np.float32)
    X[0] = 0  # an empty row is not a small one
    np.save(tmp_path / "even.npy", X)
    np.save(tmp_path / "uneven.npy", X * np.arange(30)[:, None])
    np.save(tmp_path / "empty.npy", 0 * X)
    even, uneven, empty = run_many([["info", tmp_path / f"{name}.npy"] for name in ("even", "uneven", "empty")], folder)
    assert "rows sum to 4 to 4\n" in even.out
    assert "rows sum to 4 to 116; --normalize" in uneven.out
    assert "rows sum to 0 to 0\n" in empty.out


def test_info_of_the_installation(folder):
    found = run_many([["info", "--json"]], folder)[0].json
    assert found["version"] == chimap.__version__
    assert found["packages"]["numpy"] == np.__version__
    assert found["cores"] >= 1
    assert found["openblas_coretype"] == found["recommended_coretype"] or found["openblas_coretype"]


def test_same_seed_same_result(folder, tmp_path):
    first, second, other = run_many(
        [
            [
                "fit",
                "digits.npz",
                "-o",
                tmp_path / f"{i}.model",
                "--kernel",
                "exp-chi2",
                "--components",
                "64",
                "--json",
                "--seed",
                seed,
            ]
            for i, seed in enumerate((5, 5, 6))
        ],
        folder,
    )
    assert first.json["alpha"] == second.json["alpha"] != other.json["alpha"]


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals there")
def test_progress_on_a_terminal(folder, tmp_path):
    ours, theirs = os.openpty()
    command = ["fit", "digits.npz", "-o", tmp_path / "my.model", "--json", *SMALL]
    process = start(*command, cwd=folder, stderr=theirs)
    os.close(theirs)
    shown = b""
    while chunk := _read(ours):
        shown += chunk
    os.close(ours)
    assert "rows" in process.result().json
    assert b"fitting 1,797 rows" in shown
    assert b"learning" not in shown


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux says so where the other end is closed
        return b""


@pytest.mark.slow
def test_demo_twice(tmp_path):
    command = ["demo", "--output", tmp_path / "demo"]
    for result in (run(*command, "--json", cwd=tmp_path), *run_many([[*command, "--json"]], tmp_path)):
        assert result.code == 0, result.err
    found = result.json
    linear, exact = found["reference_accuracy"].values()
    assert linear + 0.02 < found["metrics"]["accuracy"]
    assert found["metrics"]["accuracy"] > exact - 0.02
    files = ["digits.html", "digits.model", "digits.npz", "new-plots.csv", "plots.csv"]
    assert sorted(p.name for p in (tmp_path / "demo").iterdir()) == files
    labelled, new = (pd.read_csv(tmp_path / "demo" / name) for name in ("plots.csv", "new-plots.csv"))
    assert [*labelled] == [*new, "site"]
    assert (len(labelled), len(new)) == (500, 20)
    (tmp_path / "demo" / "digits.npz").write_text("mine")
    [kept] = run_many([command], tmp_path)
    assert kept.code == 2
    assert "not written by 'chimap demo'" in kept.err


def test_other_losses_are_fitted_told_of_and_evaluated(folder, tmp_path):
    model = tmp_path / "my.model"
    flags = ["--loss", "squared_hinge", "--test-fraction", "0.3"]
    told, found, info, evaluated = run_many(
        [
            ["fit", "digits.npz", "-o", model, "--verbose", *flags, *SMALL],
            ["fit", "digits.npz", "-o", tmp_path / "b.model", "--json", *flags, *SMALL],
            ["info", model],
            ["evaluate", model, "digits.npz", "--json"],
        ],
        cwd=folder,
    )
    assert told.code == info.code == evaluated.code == 0, told.err + info.err + evaluated.err
    assert "squared_hinge, " in told.out
    assert "compared on rows held out: loss" in told.out
    assert json.loads(found.out)["loss"] == "squared_hinge"
    assert "squared_hinge" in info.out


def test_hinge_of_many_columns_is_fitted_in_little_memory(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 600)
    rows = sp.random(600, 5000, 0.01, format="csr", random_state=0)
    rows += sp.random(4, 5000, 0.01, format="csr", random_state=1)[labels]
    sp.save_npz(tmp_path / "rows.npz", rows)
    np.save(tmp_path / "labels.npy", labels)
    given = ["--labels", "labels.npy"]
    flags = ["--verbose", "--kernel", "chi2", "--terms", "3", "--loss", "hinge"]
    fitted, evaluated, ridge, small = run_many(
        [
            ["fit", "rows.npz", *given, *flags, "--memory", "256MiB", "--test-fraction", "0.3", "-o", "my.model"],
            ["evaluate", "my.model", "rows.npz", *given, "--json"],
            ["fit", "rows.npz", *given, *flags[:-2], "--memory", "256MiB", "-o", "ridge.model"],
            ["fit", "rows.npz", *given, *flags, "--memory", "2MiB", "-o", "small.model"],
        ],
        cwd=tmp_path,
    )
    assert fitted.code == evaluated.code == 0, fitted.err + evaluated.err
    assert "hinge, by LIBLINEAR" in fitted.out
    assert "15,000: OptimalMap, 3 terms per bin" in fitted.out
    assert json.loads(evaluated.out)["metrics"]["accuracy"] > 0.95
    # sums would be a matrix of 15 000 features squared: the features of all rows are kept instead
    assert ridge.code == 0, ridge.err
    assert "15,000: OptimalMap, 3 terms per bin" in ridge.out
    assert small.code == 2
    assert "keeps the features of all 600 rows in memory" in small.err


def test_losses_of_the_other_task_are_refused(folder, tmp_path):
    wrong, unknown = run_many(
        [
            [
                "fit",
                "digits.npz",
                "--task",
                "classify",
                "-o",
                tmp_path / "a.model",
                "--loss",
                "epsilon_insensitive",
                *SMALL,
            ],
            ["fit", "digits.npz", "-o", tmp_path / "a.model", "--loss", "cubic", *SMALL],
        ],
        cwd=folder,
    )
    assert wrong.code == unknown.code == 2
    assert "--loss to classify must be one of square, logistic, squared_hinge" in wrong.err
    assert "--loss must be one of square" in unknown.err
