"""Tables and weights read back by their definitions, and what a path and a format may be."""

from __future__ import annotations

import csv
import json
import sys

import numpy as np
import pandas as pd
import pytest
import safetensors

from chimap import (
    AnchorMap,
    AutomaticFeatures,
    HistogramClassifier,
    HistogramRegressor,
    LookupClassifier,
    OnlineIntersectionClassifier,
    export_model,
)
from chimap.export.files import FileCheck
from chimap.export.parts import parts_of
from chimap.export.tables import bin_tables
from chimap.normalizations import CATALOGUE as NORMALIZATIONS

from ..histograms import classes, signed_histograms

X, Y = classes(200, 12)


def chi2_model(**settings):
    settings.setdefault("alpha", 1.0)
    return HistogramClassifier(settings.pop("kernel", "chi2"), **settings).fit(X, Y)


def interpolated(rows, knots, values, intercept):
    """The documented reading: a straight line between knots, summed over bins."""
    out = np.tile(np.asarray(intercept, float), (len(rows), 1))
    for i, (own, heights) in enumerate(zip(knots, values, strict=True)):
        out += np.stack([np.interp(rows[:, i], own, column) for column in np.transpose(heights)], axis=1)
    return out


def test_npz_tables(tmp_path):
    model = chi2_model()
    done = export_model(model, tmp_path / "a.npz")
    assert done.format == "tables"
    with np.load(tmp_path / "a.npz") as z:
        assert str(z["kind"]) == "linear"
        assert z["outputs"].tolist() == ["0", "1", "2"]
        found = interpolated(X, z["knots"], z["values"], z["intercept"])
        assert 0 < done.error <= z["errors"].sum()
    assert np.abs(found - model.decision_function(X)).max() <= done.error


def test_json_tables(tmp_path):
    model = chi2_model(kernel="jensen_shannon")
    done = export_model(model, tmp_path / "a.json", tolerance=1e-2)
    read = json.loads((tmp_path / "a.json").read_text())
    assert len(read["bins"]) == 12
    found = interpolated(X, [b["knots"] for b in read["bins"]], [b["values"] for b in read["bins"]], read["intercept"])
    assert np.abs(found - model.decision_function(X)).max() <= done.error
    assert read["normalize"] is None
    assert not read["signed"]


def test_csv_tables(tmp_path):
    y = np.array(["no", "yes"])[(Y > 0).astype(int)]
    model = HistogramClassifier("chi2", alpha=1.0).fit(X, y)
    done = export_model(model, tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        heading, first, *lines = csv.reader(file)
    assert heading == ["bin", "knot", "yes"]
    assert first[:2] == ["", ""]
    table = np.array(lines, float)
    by_bin = [table[table[:, 0] == i] for i in range(12)]
    found = interpolated(X, [t[:, 1] for t in by_bin], [t[:, 2:] for t in by_bin], [float(first[2])])
    assert np.abs(found[:, 0] - model.decision_function(X)).max() <= done.error


@pytest.mark.parametrize("anchors", ["uniform", "kmeans"])
@pytest.mark.parametrize("neighbours", [1, 3])
def test_steps_of_anchors(anchors, neighbours):
    psi = AnchorMap(n_anchors=9, anchors=anchors, n_neighbors=neighbours, weights="uniform")
    for rows, kernel in ((X, "chi2"), (signed_histograms(200, 12), psi.fit(X).kernel_.signed())):
        model = HistogramClassifier(kernel, features=AutomaticFeatures(map=psi), alpha=1.0, precision="float64").fit(
            rows, Y
        )
        tables = bin_tables(parts_of(model), 1e-3)
        assert tables.kind == "steps"
        np.testing.assert_allclose(tables.scores(rows), model.decision_function(rows), atol=1e-10)
    lookup = LookupClassifier(psi).fit(X, Y)
    np.testing.assert_allclose(bin_tables(parts_of(lookup), 1e-3).scores(X), lookup.decision_function(X), atol=1e-10)


def test_tables_of_normalised_signed_and_single_outputs():
    scale_free = ("l1", "log-cpm", "log-cp10k")
    for model, rows in (
        *((chi2_model(normalize=name), 7 * X if name in scale_free else X) for name in NORMALIZATIONS),
        (HistogramRegressor("hellinger", alpha=1.0).fit(X, X[:, 0]), X),
    ):
        tables = bin_tables(parts_of(model), 1e-3)
        expected = np.asarray(model._outputs(rows))
        assert np.abs(tables.scores(rows) - expected).max() <= tables.bound
    rows = signed_histograms(200, 12)
    model = HistogramClassifier(model.kernel_.signed(), alpha=1.0).fit(rows, Y)
    tables = bin_tables(parts_of(model), 1e-3)
    assert tables.is_signed
    assert np.abs(tables.scores(rows) - model.decision_function(rows)).max() <= tables.bound


def test_weights(tmp_path):
    model = chi2_model(kernel="exp-chi2", n_components=20, random_state=0)
    assert export_model(model, tmp_path / "a.npz").format == "weights"
    export_model(model, tmp_path / "a.safetensors")
    with np.load(tmp_path / "a.npz") as z:
        np.testing.assert_array_equal(z["coef"], model.feature_coef_)
        np.testing.assert_array_equal(z["classes"], [0, 1, 2])
    with safetensors.safe_open(tmp_path / "a.safetensors", framework="numpy") as file:
        np.testing.assert_array_equal(file.get_tensor("coef"), model.feature_coef_)
        np.testing.assert_array_equal(file.get_tensor("intercept"), model.intercept_)
        assert json.loads(file.metadata()["classes"]) == [0, 1, 2]
        assert file.metadata()["kernel"] == "exp-chi2"
    scores = model.features_.transform(X) @ model.feature_coef_.T + model.intercept_
    np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("kind", [object, "category", "string", str])
def test_weights_hold_classes_of_text(kind, tmp_path):
    labels = pd.Series(np.array(["ü", "b", "long"])[Y]).astype(kind)
    model = HistogramClassifier("chi2", alpha=1.0).fit(X, labels)
    export_model(model, tmp_path / "a.npz", "weights")
    with np.load(tmp_path / "a.npz") as file:
        assert file["classes"].tolist() == ["b", "long", "ü"]


def test_a_file_that_answers_nan_is_not_written(tmp_path, monkeypatch):
    model = chi2_model()
    expected = export_model(model, tmp_path / "a.json").path.read_bytes()
    monkeypatch.setattr("chimap.export.tables.BinTables.scores", lambda self, X: np.full((X.shape[0], 3), np.nan))
    with pytest.raises(ValueError, match="the file would answer nan where the model answers"):
        export_model(model, tmp_path / "a.json", overwrite=True)
    assert (tmp_path / "a.json").read_bytes() == expected
    assert not FileCheck(256, np.nan, 1.0, 0).is_near
    assert not FileCheck(256, 0.0, 1.0, 0, probabilities=np.nan).is_near


@pytest.mark.parametrize(
    ("name", "format", "message"),
    [
        ("a.txt", None, r"a\.txt: the file ending selects the format, and must be one of onnx: \.onnx; tables: \.npz"),
        ("a.csv", "onnx", r"a\.csv: format 'onnx' is written to \.onnx files"),
        ("a.onnx", "weights", r"format 'weights' is written to \.safetensors or \.npz files"),
        ("a.npz", "pickle", "format must be one of 'onnx', 'tables', 'weights', 'page'; got 'pickle'"),
    ],
)
def test_paths_and_formats(name, format, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        export_model(chi2_model(), tmp_path / name, format)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_exported(tmp_path):
    with pytest.raises(
        ValueError,
        match=r"^tables cannot hold this model: .* exp-chi2, compares whole rows by LandmarkFeatures.*as ONNX",
    ):
        export_model(chi2_model(kernel="exp-chi2", n_components=8), tmp_path / "a.csv")
    with pytest.raises(ValueError, match="got OnlineIntersectionClassifier"):
        export_model(OnlineIntersectionClassifier().fit(X, Y), tmp_path / "a.npz")
    with pytest.raises(ValueError, match="tables cannot hold this model: it normalises each of its blocks by the"):
        export_model(chi2_model(blocks=[slice(0, 6), slice(6, 12)], normalize="l1"), tmp_path / "a.json")
    with pytest.raises(ValueError, match=r"these tables have normalised rows: write \.npz or \.json"):
        export_model(chi2_model(normalize="l1"), tmp_path / "a.csv")
    assert not list(tmp_path.iterdir())
    with pytest.raises(Exception, match="not fitted"):
        export_model(HistogramClassifier("exp-chi2"), tmp_path / "a.onnx")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        export_model(chi2_model(), tmp_path / "nowhere" / "a.csv")
    (tmp_path / "a.csv").write_text("mine")
    with pytest.raises(FileExistsError, match="exists"):
        export_model(chi2_model(), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "mine"
    export_model(chi2_model(), tmp_path / "a.csv", overwrite=True)


def test_without_onnx(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r'pip install "chimap\[onnx\]"'):
        export_model(chi2_model(), tmp_path / "a.onnx")
    assert not list(tmp_path.iterdir())


def test_without_onnxruntime_nothing_is_compared(tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert export_model(chi2_model(), tmp_path / "a.onnx").comparison is None


def test_rows_are_made_without_signs_where_the_normalisation_takes_none(tmp_path):
    pytest.importorskip("onnxruntime")
    counts = np.random.default_rng(0).poisson(4.0, (200, 12))
    model = HistogramClassifier("gaussian", normalize="tf-idf", alpha=1e-3).fit(counts, Y)
    assert export_model(model, tmp_path / "a.onnx").comparison.differing == 0


def test_made_rows_raise_no_doubts_of_units(tmp_path, recwarn):
    counts = np.random.default_rng(0).poisson(4.0, (200, 12))
    export_model(HistogramClassifier("chi2", alpha=1.0).fit(counts, Y), tmp_path / "a.npz")
    assert not recwarn.list


def test_the_bound_of_tables_is_near_the_worst_row():
    """A row that takes, in each bin, the value where one output is furthest off reaches a third of the bound."""
    from chimap.tables import BinFunctions

    rng = np.random.default_rng(0)
    X, y = rng.dirichlet(np.full(12, 0.4), 200), rng.integers(0, 3, 200)
    model = HistogramClassifier("chi2", random_state=0).fit(X, y)
    parts = parts_of(model)
    tables = bin_tables(parts, 1e-2)
    functions = BinFunctions(parts.features, parts.coef)
    places = np.linspace(0.02, 0.98, 25)
    worst = 0.0
    for output in range(3):
        for sign in (1, -1):
            row = np.zeros(12)
            for i, knots in enumerate(tables.knots):
                x = np.concatenate([(1 - s) * knots[:-1] + s * knots[1:] for s in places])
                x = x[x >= functions.smallest]
                gap = (
                    np.interp(x, knots, tables.values[i, :, output])
                    - functions(x[:, None], np.array([i]))[:, 0, output]
                )
                row[i] = x[(sign * gap).argmax()] if (sign * gap).max() > 0 else 0
            found = tables.scores(row[None])[0] - parts.intercept - functions(row[None], np.arange(12)).sum(axis=1)[0]
            worst = max(worst, np.abs(found).max())
    assert worst <= tables.bound <= 3 * worst
    assert tables.bound < 0.7 * tables.errors.sum()


def test_tasks_are_named_in_tables_and_weights(tmp_path):
    labels = pd.DataFrame((X[:, :2] > np.median(X[:, :2], axis=0)).astype(float), columns=["liver", "heart"])
    labels.iloc[:20, 1] = np.nan
    model = HistogramClassifier("chi2", alpha=1.0).fit(X, labels)
    done = export_model(model, tmp_path / "a.json")
    read = json.loads((tmp_path / "a.json").read_text())
    assert read["outputs"] == ["liver", "heart"]
    found = interpolated(X, [b["knots"] for b in read["bins"]], [b["values"] for b in read["bins"]], read["intercept"])
    assert np.abs(found - model.decision_function(X)).max() <= done.error
    assert done.comparison.differing <= 2
    assert done.comparison.difference <= done.error
    export_model(model, tmp_path / "w.npz", "weights")
    with np.load(tmp_path / "w.npz") as file:
        assert file["tasks"].tolist() == ["liver", "heart"]
        scores = model.features_.transform(X) @ file["coef"].T + file["intercept"]
        assert np.array_equal(file["classes"][(scores > 0).astype(int)], model.predict(X))
    export_model(model, tmp_path / "w.safetensors")
    with safetensors.safe_open(tmp_path / "w.safetensors", "numpy") as file:
        assert json.loads(file.metadata()["tasks"]) == ["liver", "heart"]
