"""The pass on a device, by torch's CPU build: the moments are those of the map, whoever adds them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import PCA, AutomaticFeatures, HistogramClassifier, HistogramRegressor, Moments, PrincipalFeatures, ridge
from chimap.backends import BACKENDS, DeviceKind, backend_of, check_device
from chimap.backends.host import HOST
from chimap.data import ArraySource

from ..histograms import classes
from ..torch_backend import compute_by_torch, compute_cpu_0_by_torch, torch_device

X, y = classes(3000, 24)
X = X.astype(np.float32)
SETTINGS = {"n_components": 96, "random_state": 0}


@pytest.fixture(autouse=True)
def _torch_by_its_own_name_of_the_cpu(monkeypatch):
    compute_cpu_0_by_torch(monkeypatch)


def test_a_kind_of_device_is_a_line(monkeypatch):
    def check(device):
        if device != "abacus:1":
            raise ValueError(f"{device} is not there")

    monkeypatch.setitem(BACKENDS, "abacus", DeviceKind(lambda device: HOST, check))
    check_device("abacus:1")
    assert backend_of("abacus:1") is HOST
    with pytest.raises(ValueError, match="abacus:2 is not there"):
        check_device("abacus:2")


def test_what_cannot_be():
    for wrong in ("gpu", 0, "cpu:0", "cuda:", "cuda1"):
        with pytest.raises(ValueError, match="device must be 'cpu', 'cuda' or 'cuda:1'"):
            HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS, device=wrong).fit(X, y)
    with pytest.raises(ValueError, match="precision must be"):
        HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS, precision="float16").fit(X, y)


@pytest.fixture
def torch_cpu(monkeypatch):
    """The path of devices, on torch's CPU."""
    return compute_by_torch(monkeypatch)


KINDS = {
    "float32": {"precision": "float32"},
    "float64": {"precision": "float64"},
    "offset": {"features": AutomaticFeatures(form="offset")},
    "additive": {"kernel": "jensen_shannon"},
    "landmarks": {"features": "landmarks"},
    "given strength": {"alpha": 0.1},
    "intersection": {"kernel": "exp-intersection", "normalize": "l1"},
    "blocks": {"blocks": [slice(0, 10), [11, 23, 12, 5]], "kernel": ["exp-chi2", "chi2"]},
    "components": {"features": PrincipalFeatures(20)},
    "components of blocks": {"features": PrincipalFeatures(15), "blocks": [slice(0, 10), [11, 23, 12, 5]]},
    "components of landmarks": {"features": PrincipalFeatures(20, "landmarks")},
}


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_a_device_fits_the_same_model(settings, kind, torch_cpu, monkeypatch):
    rows = kind(X)
    there = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS | settings).fit(rows, y)
    outputs_there = there.decision_function(rows)
    assert "device" in there.stage_seconds_
    monkeypatch.undo()
    here = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS | settings).fit(rows, y)
    assert "device" not in here.stage_seconds_
    assert there.alpha_ == pytest.approx(here.alpha_, rel=1e-6)
    outputs = here.decision_function(rows)
    atol = 1e-8 if settings.get("precision") == "float64" else 2e-3
    np.testing.assert_allclose(outputs_there, outputs, rtol=0, atol=atol)
    assert np.mean(there.predict(rows[:500]) == here.predict(rows[:500])) > 0.99


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("n_principal", [None, 5])
def test_rows_with_weights(precision, n_principal, torch_cpu, monkeypatch):
    weights = np.random.default_rng(0).integers(0, 4, 300)
    settings = {"alpha": 0.3, "precision": precision, "features": PrincipalFeatures(n_principal), "random_state": 0}
    there = HistogramClassifier("chi2", **settings).fit(X[:300], y[:300], weights)
    found = there.feature_coef_
    monkeypatch.undo()
    here = HistogramClassifier("chi2", **settings).fit(X[:300], y[:300], weights)
    atol = {"float64": 1e-9, "float32": 1e-3}[precision]
    np.testing.assert_allclose(found, here.feature_coef_, atol=atol * np.abs(here.feature_coef_).max())
    plain = HistogramClassifier("chi2", **settings).fit(X[:300], y[:300])
    assert np.abs(here.feature_coef_ - plain.feature_coef_).max() > 10 * atol


def test_partial_fits_on_a_device(torch_cpu):
    model = HistogramRegressor(**{"kernel": "exp-chi2"} | SETTINGS)
    for part in np.array_split(np.arange(len(X)), 2):
        model.partial_fit(X[part], X[part, 0])
    assert model._batches.count == len(X)
    assert model.score(X, X[:, 0]) > 0.6


def test_a_device_says_what_it_does_not_do(torch_cpu, tmp_path):
    with pytest.raises(ValueError, match="supports loss='square'"):
        HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS, device="cuda", loss="logistic").fit(X, y)
    with pytest.raises(ValueError, match="no checkpoint"):
        HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit_source(
            ArraySource(X, y), checkpoint=tmp_path / "c"
        )


def test_a_wrong_device_is_named_before_what_it_cannot_do(tmp_path):
    with pytest.raises(ValueError, match="device must be 'cpu', 'cuda' or 'cuda:1'; got 'gpu'"):
        HistogramClassifier("exp-chi2", device="gpu").fit_source(ArraySource(X, y), checkpoint=tmp_path / "c")


def test_without_a_cuda_device():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one here")
    with pytest.raises(ValueError, match=r"finds 0 CUDA device\(s\) here"):
        HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS, device="cuda").fit(X, y)


def test_eigenpairs_of_a_device():
    pytest.importorskip("torch", reason="torch solves the eigenproblem")
    Z = np.random.default_rng(0).standard_normal((400, 30)) * np.linspace(1, 3, 30)
    targets = Z[:, :1] - Z[:, 3:4]
    moments = Moments(30, 1).update(Z, targets)
    for kept in (4, 30):
        here, there = (PCA.of(moments, kept), PCA.of(moments, kept, device="cpu:0"))
        np.testing.assert_allclose(there.scatters, here.scatters, rtol=1e-12)
        np.testing.assert_allclose(there.components, here.components, rtol=0, atol=1e-10)
        assert there.total == here.total
    calls = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("chimap.backends.torch.has_room", lambda nbytes, device: calls.append(nbytes))
        fallen_back = PCA.of(moments, 4, device="cpu:0")
    assert calls == [5 * 8 * 30**2]
    np.testing.assert_array_equal(fallen_back.components, PCA.of(moments, 4).components)


def test_components_on_a_device(monkeypatch):
    pytest.importorskip("torch", reason="torch solves the eigenproblem")
    Z = np.random.default_rng(0).standard_normal((400, 30))
    folds = [Moments(30, 1).update(Z[k::3], Z[k::3, 0]) for k in range(3)]
    here = ridge(folds, n_components=[5, 20])
    with pytest.raises(ValueError, match="device must be"):
        ridge(folds, n_components=[5, 20], device="cpu:0")
    monkeypatch.setattr("chimap.selection.sums.check_device", lambda name: None)
    asked = []
    monkeypatch.setattr("chimap.backends.torch.has_room", lambda nbytes, device: not asked.append((nbytes, device)))
    there = ridge(folds, n_components=[5, 20], device="cpu:0")
    assert asked == [(5 * 8 * 30**2, torch_device())] * 4  # a fold each, and all rows
    np.testing.assert_allclose(there.coef, here.coef, rtol=0, atol=1e-10)
    np.testing.assert_allclose(there.selection.scores, here.selection.scores, rtol=1e-9)
