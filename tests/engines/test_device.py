"""bfloat16 and the pass on a device, by torch's CPU build: the moments are those of the map, whoever adds them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import (
    PCA,
    AutomaticFeatures,
    HistogramClassifier,
    HistogramRegressor,
    Moments,
    MomentsRidge,
    PrincipalFeatures,
    _loops,
    load,
)
from chimap.backends import BACKENDS, DeviceKind, backend_of, check_device
from chimap.backends.host import HOST
from chimap.data import ArraySource
from chimap.features.rounded import RoundedFeatures

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


def neighbours_in_bfloat16(values):
    """(below, above) of float32 numbers: those of 8 significant bits."""
    step = np.exp2(np.floor(np.log2(np.abs(values.astype(float)))) - 7)
    return np.floor(values / step) * step, np.ceil(values / step) * step


def test_rounding_to_the_nearest():
    values = np.random.default_rng(0).standard_normal((50, 33)).astype(np.float32)
    found = values.copy()
    _loops.round_to_bfloat16(found)
    below, above = neighbours_in_bfloat16(values)
    nearest = np.where(values - below < above - values, below, above)
    np.testing.assert_array_equal(found, nearest)
    again = found.copy()
    _loops.round_to_bfloat16(again)
    np.testing.assert_array_equal(again, found)
    ties = np.array([[1 + 2.0**-8, 1 + 3 * 2.0**-8, 0.0, -0.0, -1 - 2.0**-8]], np.float32)
    _loops.round_to_bfloat16(ties)
    assert ties.tolist() == [[1.0, 1 + 2.0**-6, 0.0, -0.0, -1.0]]


def test_rounding_is_torchs():
    torch = pytest.importorskip("torch", reason="torch's own rounding is the reference")
    values = np.random.default_rng(1).standard_normal((100, 100)).astype(np.float32) ** 5
    expected = torch.from_numpy(values).bfloat16().float().numpy()
    _loops.round_to_bfloat16(values)
    np.testing.assert_array_equal(values, expected)


def moments_of(model, rows, targets):
    """Moments of the features that the model predicts with, by float64 products."""
    features = RoundedFeatures(model.features_, model.shift_)
    Z = np.empty((rows.shape[0], SETTINGS["n_components"]), np.float32)
    features.features_into(rows, Z, model.shift_)
    return Moments(Z.shape[1], targets.shape[1]).update(Z.astype(np.float64) + model.shift_, targets)


def test_map_and_moments_agree_in_bfloat16():
    model = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS, precision="bfloat16", alpha=1e-3).fit(X, y)
    targets = np.where(y[:, None] == model.classes_, 1.0, -1.0)
    moments = moments_of(model, X, targets)
    A = moments.covariance() * moments.count + 1e-3 * np.eye(96)
    # the normal equations of the rounded features hold, as they would not for features that are not rounded
    left = A @ model.coef_.T - moments.cross_scatter()
    assert np.abs(left).max() < 1e-5 * np.abs(moments.cross_scatter()).max()
    plain = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS, alpha=1e-3).fit(X, y)
    assert np.abs(A @ plain.coef_.T - moments.cross_scatter()).max() > 20 * np.abs(left).max()
    assert abs(model.score(X, y) - plain.score(X, y)) < 0.005


def test_a_file_and_a_part_keep_the_rounding(tmp_path):
    model = HistogramRegressor(**{"kernel": "exp-chi2"} | SETTINGS, features="fourier", precision="bfloat16").fit(
        X, X[:, 0]
    )
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(X[:100]), model.predict(X[:100]))
    grown = HistogramRegressor(**{"kernel": "exp-chi2"} | SETTINGS, features="fourier", precision="bfloat16")
    for part in np.array_split(np.arange(len(X)), 3):
        grown.partial_fit(X[part], X[part, 0])
    assert grown.score(X, X[:, 0]) > model.score(X, X[:, 0]) - 0.05


def test_what_cannot_be():
    with pytest.raises(ValueError, match="n_principal needs features that are not rounded"):
        HistogramClassifier(
            **{"kernel": "exp-chi2"} | SETTINGS, precision="bfloat16", features=PrincipalFeatures(5)
        ).fit(X, y)
    for wrong in ("gpu", 0, "cpu:0", "cuda:", "cuda1"):
        with pytest.raises(ValueError, match="device must be 'cpu', 'cuda' or 'cuda:1'"):
            HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS, device=wrong).fit(X, y)
    with pytest.raises(ValueError, match="precision must be"):
        HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS, precision="float16").fit(X, y)


def test_what_takes_features_as_they_are():
    model = HistogramClassifier("chi2", precision="bfloat16", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"compile\(\) takes unrounded features, but precision='bfloat16'"):
        model.compile()


@pytest.fixture
def torch_cpu(monkeypatch):
    """The path of devices, on torch's CPU."""
    return compute_by_torch(monkeypatch)


KINDS = {
    "float32": {"precision": "float32"},
    "float64": {"precision": "float64"},
    "bfloat16": {"precision": "bfloat16"},
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
    assert there.alpha_ == pytest.approx(here.alpha_, rel=1e-3 if settings.get("precision") == "bfloat16" else 1e-6)
    outputs = here.decision_function(rows)
    # rounding of a feature that lies between two bfloat16 numbers may go either way after another order of sums
    atol = {"bfloat16": 0.03, "float64": 1e-8}.get(settings.get("precision"), 2e-3)
    np.testing.assert_allclose(outputs_there, outputs, rtol=0, atol=atol)
    assert np.mean(there.predict(rows[:500]) == here.predict(rows[:500])) > 0.99


@pytest.mark.parametrize("precision", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("n_principal", [None, 5])
def test_rows_with_weights(precision, n_principal, torch_cpu, monkeypatch):
    if precision == "bfloat16" and n_principal is not None:
        pytest.skip("components take features as they are")
    weights = np.random.default_rng(0).integers(0, 4, 300)
    settings = {"alpha": 0.3, "precision": precision, "features": PrincipalFeatures(n_principal), "random_state": 0}
    there = HistogramClassifier("chi2", **settings).fit(X[:300], y[:300], weights)
    found = there.coef_
    monkeypatch.undo()
    here = HistogramClassifier("chi2", **settings).fit(X[:300], y[:300], weights)
    atol = {"float64": 1e-9, "float32": 1e-3, "bfloat16": 1e-3}[precision]
    np.testing.assert_allclose(found, here.coef_, atol=atol * np.abs(here.coef_).max())
    plain = HistogramClassifier("chi2", **settings).fit(X[:300], y[:300])
    assert np.abs(here.coef_ - plain.coef_).max() > 10 * atol


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
    settings = {"n_components": [5, 20], "selection": 3, "random_state": 0}
    here = MomentsRidge(**settings).fit(Z, Z[:, 0])
    with pytest.raises(ValueError, match="device must be"):
        MomentsRidge(**settings, device="cpu:0").fit(Z, Z[:, 0])
    monkeypatch.setattr("chimap.estimators.from_moments.check_device", lambda name: None)
    asked = []
    monkeypatch.setattr("chimap.backends.torch.has_room", lambda nbytes, device: not asked.append((nbytes, device)))
    there = MomentsRidge(**settings, device="cpu:0").fit(Z, Z[:, 0])
    assert asked == [(5 * 8 * 30**2, torch_device())] * 4  # a fold each, and all rows
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(there.selection_.scores, here.selection_.scores, rtol=1e-9)
