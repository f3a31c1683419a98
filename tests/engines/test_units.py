"""precision="auto": bfloat16 where units multiply it, and a model that says which it was."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from chimap import HistogramClassifier, HistogramRegressor, MultipleKernelLearner, PrincipalFeatures, _onednn, load
from chimap._onednn import has_bfloat16_units, processor_flags
from chimap.backends import automatic_precision
from chimap.cli import describe
from chimap.moments.symmetric import BatchProduct, BFloat16Product, product_of

from ..histograms import classes

X, y = classes(600, 12)
X = X.astype(np.float32)
LANDMARKS = {"kernel": "exp-chi2", "features": "landmarks", "n_components": 32, "random_state": 0}


@pytest.fixture
def machine(monkeypatch):
    """Says what the processor can do, whether oneDNN is there, and what the device is capable of."""

    def be(*flags, onednn=True, capability=(0, 0)):
        monkeypatch.setattr(_onednn, "processor_flags", lambda: frozenset(flags))
        monkeypatch.setattr(_onednn, "multiplies", lambda: onednn)
        cuda = SimpleNamespace(get_device_capability=lambda device: capability)
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))

    return be


@pytest.mark.parametrize(
    ("flags", "onednn", "is_there"),
    [
        (["avx2", "amx_bf16", "amx_tile"], True, True),
        (["amx_bf16"], False, False),  # nothing else has the units multiply
        (["avx512f", "avx512_bf16"], True, True),
        (["avx512f", "amx_tile", "amx_int8"], True, False),
        ([], True, False),
    ],
)
def test_units_of_processors(flags, onednn, is_there, machine):
    machine(*flags, onednn=onednn, capability=(9, 0))
    assert has_bfloat16_units() is is_there
    assert automatic_precision("cpu") == ("bfloat16" if is_there else "float32")
    product = product_of(4, np.dtype(np.float32), rounded=True)
    assert type(product) is (BFloat16Product if is_there else BatchProduct)
    assert type(product_of(4, np.dtype(np.float32), rounded=False)) is BatchProduct


@pytest.mark.skipif(not _onednn.multiplies(), reason="oneDNN multiplies bfloat16")
@pytest.mark.parametrize(
    "settings",
    [
        {"alpha": 0.1},
        {"alpha": 0.1, "selection": 5},
        {"alpha": 0.1, "n_jobs": 1},
        {"loss": "logistic", "alpha": 1.0},  # keeps features, which the product must not overwrite
    ],
)
def test_a_fit_on_units_is_the_fit_without(settings, monkeypatch):
    used = []
    add = BFloat16Product.add
    monkeypatch.setattr(BFloat16Product, "add", lambda *rows: used.append(rows) or add(*rows))
    models = {}
    for has_units in (True, False):
        monkeypatch.setattr("chimap._onednn.has_bfloat16_units", lambda has=has_units: has)
        model = HistogramClassifier(**LANDMARKS | {"n_components": 400}, precision="bfloat16", **settings)
        models[has_units] = model.fit(X, y)
        assert bool(used) is True
    there, here = models[True].decision_function(X), models[False].decision_function(X)
    np.testing.assert_allclose(there, here, rtol=0, atol=2e-3 if "loss" in settings else 1e-4)


def test_rows_with_weights_are_not_bfloat16(monkeypatch):
    monkeypatch.setattr("chimap._onednn.has_bfloat16_units", lambda: True)
    monkeypatch.setattr(BFloat16Product, "add", None)
    model = HistogramClassifier(**LANDMARKS, precision="bfloat16", alpha=0.1)
    assert model.fit(X, y, sample_weight=np.linspace(0.5, 2, len(X))).score(X, y) > 0.5


@pytest.mark.parametrize(("capability", "found"), [((7, 5), "float32"), ((8, 0), "bfloat16"), ((9, 0), "bfloat16")])
def test_units_of_devices(capability, found, machine):
    machine("amx_bf16", capability=capability)
    assert automatic_precision("cuda:1") == found


def test_flags_are_those_of_the_first_processor(tmp_path, monkeypatch):
    path = tmp_path / "cpuinfo"
    path.write_text("processor\t: 0\nflags\t\t: fpu amx_bf16 sse\n\nprocessor\t: 1\nflags\t\t: fpu\n")
    read = processor_flags.__wrapped__  # each time; the flags of this processor are kept
    monkeypatch.setattr(_onednn, "_CPUINFO", path)
    assert read() == {"fpu", "amx_bf16", "sse"}
    path.write_text("Features : fp asimd\n")
    assert read() == set()
    monkeypatch.setattr(_onednn, "_CPUINFO", tmp_path / "none")
    assert read() == set()


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_auto_is_what_suits_the_machine_of_the_fit(precision, tmp_path, monkeypatch):
    monkeypatch.setattr("chimap.machines.resolve.automatic_precision", lambda device: precision)
    model = HistogramClassifier(**LANDMARKS, precision="auto").fit(X, y)
    assert (model.precision, model.precision_) == ("auto", precision)
    expected = HistogramClassifier(**LANDMARKS, precision=precision).fit(X, y)
    assert expected.precision_ == precision
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    model.save(tmp_path / "m")
    facts, lines = describe.model(tmp_path / "m")
    assert facts["precision"] == precision
    assert f"in {precision}:" in lines["features"]
    # on a machine that would choose otherwise
    monkeypatch.setattr("chimap.machines.resolve.automatic_precision", lambda device: "none")
    again = load(tmp_path / "m")
    assert again.precision_ == precision
    np.testing.assert_array_equal(again.decision_function(X), expected.decision_function(X))


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "exp-chi2"},  # every row is kept
        {"kernel": "chi2", "features": PrincipalFeatures(5)},
    ],
)
def test_auto_is_float32_where_features_are_taken_as_they_are(settings, tmp_path, monkeypatch):
    monkeypatch.setattr("chimap.machines.resolve.automatic_precision", lambda device: "bfloat16")
    model = HistogramClassifier(**settings, precision="auto", random_state=0).fit(X, y)
    assert model.precision_ == "float32"
    model.save(tmp_path / "m")
    assert describe.model(tmp_path / "m")[0]["precision"] == "float32"
    expected = HistogramClassifier(**settings, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))


def test_auto_in_batches_and_for_several_kernels(monkeypatch):
    monkeypatch.setattr("chimap.machines.resolve.automatic_precision", lambda device: "bfloat16")
    grown = HistogramRegressor(**LANDMARKS, precision="auto")
    grown.partial_fit(X[:300], X[:300, 0]).partial_fit(X[300:], X[300:, 0])
    assert grown.precision_ == "bfloat16"
    assert grown.score(X, X[:, 0]) > 0.5
    several = MultipleKernelLearner(precision="auto", n_components=16, random_state=0).fit(X, y)
    assert several.precision_ in ("float32", "bfloat16")
    assert several.score(X, y) > 0.5
