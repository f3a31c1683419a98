"""``chimap export``, and ``info``, ``predict`` and ``evaluate`` of compiled models, from a shell."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

import chimap

from .terminal import run_many

pytestmark = pytest.mark.slow


def test_every_format(folder, tmp_path):
    pytest.importorskip("onnxruntime")
    done, tables, weights, json = run_many(
        [
            ["export", "digits.model", "--output", tmp_path / "digits.onnx"],
            ["export", "names.model", "-o", tmp_path / "names.csv"],
            ["export", "names.model", "-o", tmp_path / "names.npz", "--format", "weights"],
            ["export", "ink.model", "-o", tmp_path / "ink.onnx", "--json"],
        ],
        folder,
    )
    assert done.code == 0, done.err
    difference = float(
        re.search(r"compared with the model on 256 synthetic rows: scores differ by at most (\S+)", done.out)[1]
    )
    assert difference < 1e-4
    assert tables.code == weights.code == json.code == 0, tables.err + weights.err + json.err
    assert re.search(
        r"on 256 synthetic rows: scores differ by at most \S+ .*\nwithin the tables, no score .* by more than \S+",
        tables.out,
    )
    assert (tmp_path / "names.csv").read_text().startswith("bin,knot,eight,five,four")
    with np.load(tmp_path / "names.npz") as z:
        np.testing.assert_array_equal(z["coef"], chimap.load(folder / "names.model").feature_coef_)
    assert json.json["format"] == "onnx"
    assert json.json["compared"]["difference"] < 1e-3 * json.json["compared"]["size"]


def test_a_page_has_the_name_of_its_model(folder, tmp_path):
    shutil.copy(folder / "names.model", tmp_path / "names.model")
    done, again = run_many(
        [["export", "names.model", "--format", "page"], ["export", "names.model", "--format", "page"]], tmp_path
    )
    assert done.code == 0, done.err
    assert done.out.startswith("Wrote page to names.html")
    assert "within the tables, no score differs from the score of the model by more than" in done.out
    assert (tmp_path / "names.html").read_text().startswith("<!DOCTYPE html>")
    assert again.code != 0
    assert "names.html exists; choose another name, or add --overwrite" in again.err


def test_onnx_on_the_rows_of_a_file(folder, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    done = run_many([["export", "names.model", "-o", tmp_path / "names.onnx", "--no-check"]], folder)[0]
    assert done.code == 0, done.err
    assert "compared" not in done.out
    rows = np.load(folder / "rows.npy").astype(np.float32)
    session = onnxruntime.InferenceSession(str(tmp_path / "names.onnx"), providers=["CPUExecutionProvider"])
    labels = session.run(["label"], {"X": rows})[0]
    np.testing.assert_array_equal(labels, chimap.load(folder / "names.model").predict(rows))


def test_counts_of_whole_numbers(folder, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    command = ["export", "digits.model", "-o", tmp_path / "digits.onnx", "--input-type", "int64", "--json"]
    done = run_many([command], folder)[0]
    assert done.code == 0, done.err
    assert done.json["compared"]["probabilities"] < 1e-3
    rows = np.random.default_rng(0).integers(0, 17, (5, 64))
    session = onnxruntime.InferenceSession(str(tmp_path / "digits.onnx"))
    p = session.run(["probabilities"], {"X": rows})[0]
    np.testing.assert_allclose(p, chimap.load(folder / "digits.model").predict_proba(rows), atol=1e-4)


CASES = {
    "type of rows": (
        ["names.model", "-o", "a.csv", "--input-type", "int64"],
        "--input-type int64 is for ONNX graphs, and tables",
    ),
    "ending": (["digits.model", "-o", "a.txt"], r"a\.txt: the file ending selects the format"),
    "no tables": (["digits.model", "-o", "a.csv"], r"compares whole rows by LandmarkFeatures.*as ONNX"),
    "exists": (["digits.model", "-o", "few.csv"], r"--output few\.csv exists; .*--overwrite"),
    "no model": (["no.model", "-o", "a.onnx"], r"no\.model: no such file"),
    "no folder": (["digits.model", "-o", "no/a.onnx"], r"the folder no does not exist"),
    "format": (["digits.model", "-o", "a.onnx", "--format", "pickle"], r"'pickle' is not one of"),
    "tolerance": (["names.model", "-o", "a.csv", "--tolerance", "0"], r"--tolerance must be a positive number"),
    "the model itself": (["digits.model", "-o", "digits.model", "--overwrite"], r"--output digits\.model is the input"),
    "not a model": (["digits.npz", "-o", "a.onnx"], r"digits\.npz is not a chimap file"),
    "no output": (["digits.model"], "--output names the file to write, or --format says what: give one of them"),
}


def test_bad_input(folder):
    (folder / "few.csv").write_text("mine")
    before = sorted(folder.iterdir())
    for (_, message), result in zip(
        CASES.values(), run_many([["export", *arguments] for arguments, _ in CASES.values()], folder), strict=True
    ):
        assert result.code == 2, result
        assert len(result.err.splitlines()) == 1, result.err
        assert re.search(message, result.err), result.err
    assert sorted(folder.iterdir()) == before


def test_compiled_models_are_told_of_and_predict(folder, tmp_path):
    model = chimap.load(folder / "names.model")
    compiled = model.compile()
    compiled.save(tmp_path / "fast.model")
    told, json, predicted, evaluated = run_many(
        [
            ["info", tmp_path / "fast.model"],
            ["info", tmp_path / "fast.model", "--json"],
            ["predict", tmp_path / "fast.model", "rows.npy", "-o", tmp_path / "a.npy"],
            ["evaluate", tmp_path / "fast.model", "sparse.npz", "--labels", "names.csv", "--json"],
        ],
        folder,
    )
    assert told.code == json.code == predicted.code == evaluated.code == 0, told.err + predicted.err + evaluated.err
    assert "CompiledClassifier" in told.out
    assert re.search(r"tables +\d+ straight pieces per bin, .*scores are off by at most ", " ".join(told.out.split()))
    assert json.json["tables"]["a_bin"] == compiled.tables_.n_pieces
    assert json.json["tables"]["worst_error"] == pytest.approx(compiled.tables_.worst_error)
    assert (np.load(tmp_path / "a.npy") == model.predict(np.load(folder / "rows.npy"))).mean() > 0.99
    assert evaluated.json["metrics"]["accuracy"] > 0.9
