"""ONNX graphs under onnxruntime against predict: every map, kernel and kind of features."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import chimap
from chimap import (
    AnchorMap,
    AutomaticFeatures,
    CompressedMap,
    DirectMap,
    FourierFeatures,
    FourierKernelLearner,
    HistogramClassifier,
    HistogramRegressor,
    LookupClassifier,
    MultipleKernelLearner,
    MultipleKernelRegressor,
    PrincipalFeatures,
    StaircaseMap,
    export_model,
)
from chimap._onnx import Graph, Value
from chimap.export.files import made_rows
from chimap.export.onnx import onnx_model
from chimap.export.parts import parts_of
from chimap.features.additive import CATALOGUE as MAPS
from chimap.kernels import CATALOGUE as KERNELS
from chimap.kernels import STATIONARY, ArccosKernel, Exponential, PQKernel, SkewedChi2
from chimap.normalizations import CATALOGUE as NORMALIZATIONS
from chimap.selection.calibration import Calibration, TaskCalibration

from ..histograms import classes, signed_histograms

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

X, Y = classes(100, 8)
SIGNED = signed_histograms(100, 8)
CLOSE = {"float32": 2e-5, "float64": 1e-12}


def fitted(rows=X, y=Y, make=HistogramClassifier, **settings):
    kernel = settings.pop("kernel", "chi2")
    settings.setdefault("alpha", 1.0)
    settings.setdefault("random_state", 0)
    settings.setdefault("n_components", 40)
    return make(kernel, **settings).fit(rows, y)


def agree(model, folder, rows=X):
    """The comparison that is made on writing, and one on other rows than those."""
    done = export_model(model, folder / "a.onnx", overwrite=True)
    close = CLOSE[getattr(model, "precision", "float64")]
    compared = done.comparison
    assert compared.difference <= close * compared.size
    assert compared.differing == 0
    found = outputs_of(folder / "a.onnx", rows, model)
    np.testing.assert_array_equal(found.get("label", model.predict(rows)), model.predict(rows))
    if "probabilities" in found:
        near = 100 * close + 2e-9  # in a tie, by rounding, either class may be the one that leads by 1e-9
        assert compared.probabilities <= near
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows), atol=near)
    return found


def outputs_of(path, rows, model):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    dtype = getattr(model, "precision", "float64")
    return dict(zip(names, session.run(None, {"X": rows.astype(dtype)}), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", MAPS)
def test_every_additive_map(name, precision, tmp_path):
    make = MAPS[name]
    for kernel in KERNELS.values():
        if not make.takes(kernel):
            continue
        for variant, rows in ((kernel, X), (kernel.with_gamma(0.5).signed(), SIGNED)):
            agree(
                fitted(rows, kernel=variant, features=AutomaticFeatures(map=make(n_terms=3)), precision=precision),
                tmp_path,
                rows,
            )


@pytest.mark.parametrize(
    "psi",
    [
        DirectMap(n_terms=3, per_bin=True),
        CompressedMap(n_terms=2, per_bin=True),
        CompressedMap(n_terms=2, base=DirectMap(n_terms=6, nodes="minimax")),
        AnchorMap(n_anchors=9, anchors="kmeans"),
        AnchorMap(n_anchors=9, n_neighbors=2),
        AnchorMap(n_anchors=9, n_neighbors=3, anchors="kmeans"),
        AnchorMap(n_anchors=9, n_neighbors=3, weights="uniform"),
        AnchorMap(n_anchors=9, n_neighbors=2, weights="uniform", anchors="kmeans"),
    ],
    ids=repr,
)
def test_forms_of_maps(psi, tmp_path):
    agree(fitted(features=AutomaticFeatures(map=psi)), tmp_path)


@pytest.mark.parametrize("steps", ["linear", "constant"])
def test_staircase(steps, tmp_path):
    agree(fitted(kernel="intersection", features=StaircaseMap(n_terms=5, steps=steps)), tmp_path)


@pytest.mark.parametrize("form", ["pair", "offset"])
@pytest.mark.parametrize("sampling", ["orthogonal", "structured", "iid", "qmc"])
def test_random_features(sampling, form, tmp_path):
    agree(fitted(kernel="exp-chi2", features=FourierFeatures(sampling=sampling, form=form), n_components=41), tmp_path)


@pytest.mark.parametrize(
    "kernel",
    [*(f"exp-{name}" for name in KERNELS), "gaussian", "skewed-chi2", "skewed-intersection", "dirichlet", *STATIONARY],
)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_every_kernel_with_features_of_its_own(kernel, precision, tmp_path):
    agree(fitted(kernel=kernel, precision=precision), tmp_path)


@pytest.mark.parametrize("kernel", ["gaussian", "skewed-chi2", "skewed-intersection"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_rows_of_large_mean(kernel, precision, tmp_path):
    rows = (1e3 + X).astype(np.float32)
    agree(fitted(rows, kernel=kernel, precision=precision), tmp_path, rows)


LANDMARKS = [
    *KERNELS.values(),
    *(Exponential(kernel, 1.5) for kernel in KERNELS.values()),
    "gaussian",
    "linear",
    "skewed-chi2",
    "skewed-intersection",
    "dirichlet",
    "minmax",
    "pq",
    "jensen_shannon+pq",
    "chi2*intersection",
    KERNELS["chi2"].with_gamma(0.5),
    0.5 * KERNELS["chi2"] + PQKernel(),
    SkewedChi2(c=0.1, sigma=0.8),
]


@pytest.mark.parametrize("kernel", LANDMARKS, ids=lambda kernel: getattr(kernel, "name", kernel))
def test_landmarks(kernel, tmp_path):
    agree(fitted(kernel=kernel, features="landmarks", n_components=20, precision="float64"), tmp_path)


def test_landmarks_of_signed_rows(tmp_path):
    for kernel in (KERNELS["chi2"].signed(), Exponential(KERNELS["chi2"].signed(), 2.0)):
        agree(fitted(SIGNED, kernel=kernel, features="landmarks", precision="float64"), tmp_path, SIGNED)


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_every_normalisation(normalize, tmp_path):
    agree(fitted(3 * X, normalize=normalize), tmp_path, 5 * X)
    blocks = {"first": slice(0, 5), "second": [7, 5, 6]}
    agree(fitted(3 * X, kernel="chi2", blocks=blocks, normalize=normalize, precision="float64"), tmp_path, 5 * X)
    if NORMALIZATIONS[normalize].takes_signs:
        agree(fitted(SIGNED, kernel="gaussian", normalize=normalize), tmp_path, 5 * SIGNED)


@pytest.mark.parametrize("kernel", ["exp-chi2", "gaussian", "chi2+pq", "minmax"])
def test_exact_machines(kernel, tmp_path):
    agree(fitted(kernel=kernel, features="exact", alpha=0.1), tmp_path)
    agree(fitted(kernel=kernel, features="exact", alpha=0.1, precision="float64"), tmp_path)


def test_exact_machines_of_blocks(tmp_path):
    blocks = {"first": slice(0, 5), "second": [7, 5, 6]}
    for kernel in ("exp-chi2", ["gaussian", "chi2"], "chi2"):
        agree(fitted(kernel=kernel, blocks=blocks, features="exact", alpha=0.1, precision="float64"), tmp_path)


def test_settings_that_the_race_chose_are_exported(tmp_path):
    model = fitted(3 * X, normalize="sqrt")
    model.set_params(normalize=None)
    chosen = replace(model.fitted.recipe, normalize=None).with_raced(normalize="sqrt")
    model.model_ = replace(model.fitted, recipe=chosen)
    agree(model, tmp_path, 5 * X)


@pytest.mark.parametrize("kernel", ["chi2", "exp-chi2"])
def test_normalised_rows_and_blocks(kernel, tmp_path):
    agree(fitted(3 * X, kernel=kernel, normalize="l1"), tmp_path, 5 * X)
    blocks = {"a": slice(0, 4), "b": [7, 6, 1], "c": slice(3, 6)}
    for normalize in (None, "l1"):
        model = fitted(3 * X, kernel=["chi2", kernel, "hellinger"], blocks=blocks, normalize=normalize)
        agree(model, tmp_path, 5 * X)
    agree(fitted(kernel=kernel, features=PrincipalFeatures(6)), tmp_path)


@pytest.mark.parametrize(
    "labels", [np.array(["one", "two", "three"]), np.array([-3, 7, 11]), np.array([1.0, 2.0, 5.0])], ids=str
)
@pytest.mark.parametrize("count", [2, 3])
def test_labels_and_scores(labels, count, tmp_path):
    rows, y = X[count > Y], labels[Y[count > Y]]
    model = fitted(rows, y)
    found = agree(model, tmp_path, rows)
    expected = model.decision_function(rows)
    if count == 2:
        expected = np.stack([-expected, expected], axis=1)
    np.testing.assert_allclose(found["scores"], expected, atol=1e-5)
    assert found["scores"].shape == (len(rows), count)


def test_thresholds(tmp_path):
    model = fitted(y=Y > 0, threshold=20.0)
    assert abs(model.threshold_) > 1e-3
    agree(model, tmp_path)
    done = export_model(model, tmp_path / "tables.npz")
    assert done.comparison.differing == 0
    with np.load(tmp_path / "tables.npz") as tables:
        assert tables["threshold"] == model.threshold_


def test_truth_values_as_labels(tmp_path):
    found = agree(fitted(y=Y == 1), tmp_path)
    assert found["label"].dtype == bool


@pytest.mark.parametrize("kernel", ["chi2", "exp-chi2"])
def test_regression(kernel, tmp_path):
    model = fitted(y=X[:, 0] + np.sqrt(X[:, 1]), make=HistogramRegressor, kernel=kernel)
    found = agree(model, tmp_path)
    np.testing.assert_allclose(found["prediction"], model.predict(X), atol=1e-5)


def test_other_losses_and_other_models(tmp_path):
    agree(fitted(loss="logistic"), tmp_path)
    agree(LookupClassifier(AnchorMap(n_anchors=9)).fit(X, Y), tmp_path)
    compiled = fitted().compile()
    done = export_model(compiled, tmp_path / "b.onnx")
    assert done.comparison.difference <= compiled.tables_.worst_error
    loaded = fitted()
    loaded.save(tmp_path / "a.model")
    agree(chimap.load(tmp_path / "a.model"), tmp_path)


def test_learned_kernels(tmp_path):
    blocks = {"a": slice(0, 4), "b": [7, 6, 5, 4]}
    common = {"blocks": blocks, "normalize": "l1", "alpha": 1.0, "random_state": 0, "n_components": 40}
    learner = FourierKernelLearner(max_iter=2, **common)
    agree(learner.fit(3 * X, Y), tmp_path, 5 * X)
    # in double precision: whitening forty landmarks of four bins magnifies the rounding of single precision
    common["precision"] = "float64"
    multiple = MultipleKernelLearner(["exp-chi2", "chi2"], **common | {"alpha": 0.01})
    agree(multiple.fit(3 * X, Y), tmp_path, 5 * X)
    agree(MultipleKernelRegressor(**common).fit(X, X[:, 0]), tmp_path)


@pytest.mark.parametrize("features", ["exact", "landmarks"])
def test_empty_rows_are_alike(features, tmp_path):
    rows = 100 * X
    rows[:3] = 0
    found = agree(fitted(rows, kernel="minmax", features=features), tmp_path, rows)
    assert np.isfinite(found["scores"]).all()


def test_a_graph_that_float32_does_not_hold_computes_in_float64(tmp_path):
    assert not export_model(fitted(), tmp_path / "a.onnx").comparison.is_widened
    rows = np.rint(np.random.default_rng(0).lognormal(7.0, 2.0, (100, 40)))
    model = fitted(rows, kernel="jensen_shannon+pq", features="exact", normalize="log-cpm", alpha=1e-6)
    done = export_model(model, tmp_path / "b.onnx")
    assert done.comparison.is_widened
    assert done.comparison.is_near


def test_extreme_values(tmp_path):
    """Powers of two, where a logarithm's floor may go either way; subnormal numbers; far beyond the range."""
    model = fitted(features=AutomaticFeatures(n_terms=3))
    rows = np.zeros((300, 8), np.float32)
    rows[:, 0] = np.exp2(np.arange(-149, 151).clip(-149, 100).astype(np.float32))
    rows[:, 1] = np.nextafter(rows[:, 0], np.float32(0))
    rows[:, 2] = np.nextafter(rows[:, 0], np.float32(1e38))
    export_model(model, tmp_path / "a.onnx")
    found = outputs_of(tmp_path / "a.onnx", rows, model)
    np.testing.assert_allclose(found["scores"], model.decision_function(rows), atol=1e-5)


def test_notes_and_names(tmp_path):
    model = fitted(kernel="exp-chi2")
    export_model(model, tmp_path / "a.onnx", check=False)
    read = onnx.load(tmp_path / "a.onnx")
    onnx.checker.check_model(read, full_check=True)
    notes = {note.key: note.value for note in read.metadata_props}
    assert notes["kernel"] == "exp-chi2"
    assert float(notes["gamma"]) == model.kernel_.gamma
    assert [v.name for v in read.graph.input] == ["X"]
    assert [v.name for v in read.graph.output] == ["label", "probabilities", "scores"]
    assert read.graph.input[0].type.tensor_type.shape.dim[1].dim_value == 8


def test_what_has_no_graph(tmp_path):
    model = fitted(kernel=ArccosKernel(KERNELS["chi2"]), features="landmarks", n_components=10)
    with pytest.raises(ValueError, match=r"'arccos-chi2' of the landmarks cannot be written as ONNX.*weights"):
        export_model(model, tmp_path / "a.onnx")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="export the LookupClassifier that it was made from"):
        export_model(LookupClassifier(AnchorMap(n_anchors=9)).fit(X, Y).compile(), tmp_path / "a.onnx")


def matrix_of_labels():
    """Labels of three tasks, a fifth of them missing."""
    rng = np.random.default_rng(0)
    labels = (X[:, :3] > np.median(X[:, :3], axis=0)).astype(float)
    labels[rng.random(labels.shape) < 0.2] = np.nan
    labels[np.isnan(labels).all(axis=1), 0] = 1
    return labels


@pytest.mark.parametrize("features", ["additive", "landmarks", "exact"])
def test_tasks_have_an_output_each(features, tmp_path):
    kernel = "chi2" if features == "additive" else "exp-chi2"
    labels = matrix_of_labels()
    found = agree(fitted(y=labels, kernel=kernel, features=features), tmp_path)
    assert found["label"].dtype == np.int64
    assert found["label"].shape == found["scores"].shape == (100, 3)
    numbers = fitted(y=X[:, :3] ** 2, make=HistogramRegressor, kernel=kernel, features=features)
    assert agree(numbers, tmp_path)["prediction"] == pytest.approx(numbers.predict(X), abs=1e-4)
    notes = {p.key: p.value for p in onnx.load(tmp_path / "a.onnx").metadata_props}
    assert json.loads(notes["tasks"]) == ["task_0", "task_1", "task_2"]


@pytest.mark.parametrize("normalize", [None, "l1"])
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(
    "winner",
    [
        {"features": "exact", "kernel": "exp-chi2"},
        {"features": "landmarks", "kernel": "exp-chi2"},
        {"features": "additive", "kernel": "chi2"},
        {"features": "fourier", "kernel": "exp-chi2"},
        {"loss": "logistic", "kernel": "hellinger"},
    ],
    ids=lambda winner: winner.get("features", "logistic"),
)
def test_text_labels_and_calibrated_probabilities_of_what_races_choose(winner, count, normalize, tmp_path):
    rows, y = 5 * X[count > Y], np.array(["gut", "mouth", "skin"])[Y[count > Y]]
    model = fitted(rows, y, normalize=normalize, n_components=30, **winner)
    found = agree(model, tmp_path, rows)
    assert found["label"].tolist() == model.predict(rows).tolist()
    assert found["probabilities"].dtype == np.float64
    np.testing.assert_array_equal(model.classes_[found["probabilities"].argmax(axis=1)], found["label"])
    outputs = [o.name for o in onnxruntime.InferenceSession(str(tmp_path / "a.onnx")).get_outputs()]
    assert outputs == ["label", "probabilities", "scores"]


def test_the_label_is_the_most_probable_class_however_near_others_are():
    """Offsets and sigmoids that favour other classes than the largest output, and outputs that nearly tie."""
    rng = np.random.default_rng(0)
    outputs = rng.standard_normal((400, 5))
    outputs[:100] = np.round(outputs[:100])  # ties
    outputs[100:200, 1] = outputs[100:200].max(axis=1) + 1e-12
    for calibration in (
        Calibration(1.5, np.array([2.0, -1.0, 0.0, 1.0, -2.0])),
        Calibration(0.5, np.arange(5.0), np.array([[3.0, 1, 2, 1, 1], [0.5, 0, -1, 1, 0]]), 1.7),
        Calibration(2.0, np.array([-1.0])),
        TaskCalibration(np.array([0.5, 1, 2, 3, 4]), np.arange(5.0) - 2),
    ):
        f = outputs[:, : 1 if np.size(calibration.offsets) == 1 else 5]
        g = Graph()
        p = calibration.onnx(Value(g, "f", np.float64))
        graph = g.model(
            [g.info("f", np.float64, ["n", f.shape[1]])], [g.info(p.name, np.float64, ["n", max(2, f.shape[1])])], {}
        )
        found = onnxruntime.InferenceSession(graph.SerializeToString()).run(None, {"f": f})[0]
        np.testing.assert_allclose(found, calibration(f), rtol=2e-9)
        if isinstance(calibration, Calibration) and f.shape[1] > 1:
            chosen = f.argmax(axis=1)
            np.testing.assert_array_equal(found.max(axis=1), found[np.arange(400), chosen])


@pytest.mark.parametrize("input_type", ["float32", "float64", "int64"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_rows_of_each_type(precision, input_type, tmp_path):
    counts = np.rint(200 * X).astype(np.int64)
    model = fitted(counts, kernel="exp-chi2", normalize="l1", precision=precision)
    compared = export_model(model, tmp_path / "a.onnx", input_type=input_type).comparison
    assert compared.differing == 0
    session = onnxruntime.InferenceSession(str(tmp_path / "a.onnx"))
    label, p = session.run(["label", "probabilities"], {"X": counts.astype(input_type)})
    np.testing.assert_array_equal(label, model.predict(counts))
    is_double = precision == "float64" or input_type == "float64"
    exact = fitted(counts, kernel="exp-chi2", normalize="l1", precision="float64").predict_proba(counts)
    np.testing.assert_allclose(p, model.predict_proba(counts), atol=1e-10 if precision == "float64" else 1e-4)
    assert is_double or np.abs(p - exact).max() < 1e-3


def test_types_that_rows_cannot_have(tmp_path):
    with pytest.raises(ValueError, match="input_type must be one of 'float32', 'float64', 'int64', None; got 'text'"):
        export_model(fitted(), tmp_path / "a.onnx", input_type="text")
    with pytest.raises(ValueError, match="input_type='int64' is for ONNX graphs, and tables would be written"):
        export_model(fitted(), tmp_path / "a.csv", input_type="int64")
    assert not list(tmp_path.iterdir())


def test_rows_whose_sum_is_beyond_single_precision():
    model = fitted(rows=1000 * X.astype(np.float32), normalize="l1", kernel="exp-chi2", n_components=16)
    huge = (X / X.max() * 3e38).astype(np.float32)
    session = onnxruntime.InferenceSession(onnx_model(parts_of(model)).SerializeToString())
    scores = session.run(["scores"], {"X": huge})[0]
    np.testing.assert_allclose(scores, model.decision_function(huge), atol=1e-5)


@pytest.mark.parametrize("normalize", [None, *NORMALIZATIONS])
def test_checked_rows_have_the_magnitudes_of_the_fit_once_prepared(normalize):
    rows, weights = 1000 * X, np.linspace(0.5, 1.5, 8)
    model = fitted(rows=rows, normalize=normalize, kernel="exp-chi2", n_components=16, bin_weights=weights)
    made, prepare = made_rows(parts_of(model)), model.fitted.preparation
    if normalize in (None, "log1p", "sqrt"):  # else shares alone matter, or presence
        assert 0.3 < made.max() / rows.max() < 1.5
    largest = np.asarray(prepare(made, 0, "made").max(axis=0)) / np.asarray(prepare(rows, 0, "X").max(axis=0))
    assert (largest > 0.3).all()
    assert (largest < 3).all()


@pytest.mark.parametrize(
    "settings",
    [{"loss": "poisson"}, {"loss": "quantile", "quantile": 0.8}, {"loss": "quantile", "quantile": [0.1, 0.5, 0.9]}],
    ids=["poisson", "quantile", "quantiles"],
)
@pytest.mark.parametrize("kernel", ["chi2", "exp-chi2"])
def test_counts_and_quantiles(settings, kernel, tmp_path):
    y = np.random.default_rng(0).poisson(4 + 3 * X[:, 0] / X[:, 0].mean()).astype(float)
    model = fitted(y=y, make=HistogramRegressor, kernel=kernel, precision="float64", **settings)
    found = agree(model, tmp_path)["prediction"]
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-6, atol=1e-6)
    assert (np.diff(found, axis=-1) >= 0).all() or found.ndim == 1
