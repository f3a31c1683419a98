"""One formula for every kind of array: numpy's, torch's and whatever follows the array API agree with the loops."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import (
    DirichletMap,
    Exponential,
    FourierFeatures,
    LandmarkFeatures,
    NystroemFeatures,
    OptimalMap,
    SignStableProjection,
    SkewedFourierFeatures,
    StationaryMap,
    chi2,
)
from chimap._validation import DataError

from ..histograms import DTYPES, histograms
from .cases import every_map, terms_of

X = histograms(40, 12)
TIGHT = {np.float32: 2e-6, np.float64: 1e-12}
FEATURES = {
    "pair": FourierFeatures(n_components=64, random_state=0),
    "odd": FourierFeatures("exp-intersection", n_components=33, random_state=0),
    "offset": FourierFeatures(n_components=64, form="offset", random_state=0),
    "structured": FourierFeatures(n_components=64, sampling="structured", random_state=0),
    "gaussian": FourierFeatures("gaussian", n_components=64, random_state=0),
    "skewed": SkewedFourierFeatures(n_components=64, random_state=0),
    "landmarks by products": LandmarkFeatures(n_components=20, random_state=0),
    "signed landmarks by products": LandmarkFeatures(Exponential(chi2.signed()), 20, random_state=0),
}
every_features = pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="arrays of torch are tested where torch is installed")


def close(found, expected, dtype):
    np.testing.assert_allclose(found, expected, rtol=0, atol=TIGHT[dtype] * (1 + np.abs(expected).max()))


@every_map
@pytest.mark.parametrize("dtype", DTYPES)
def test_formula_and_loop_agree(make, kernel, dtype):
    rows = X.astype(dtype)
    rows[:, 0] = 0
    for variant in (kernel, kernel.with_gamma(0.5), kernel.signed()):
        psi = make(variant, n_terms=terms_of(make)[1]).fit(rows)
        signed = rows * np.where(np.arange(12) % 2, -1, 1).astype(dtype) if variant.is_signed else rows
        found = psi.array_features(signed)
        assert found.dtype == dtype
        close(found, psi.transform(signed), dtype)


@every_map
def test_tensors_come_back_as_tensors(make, kernel, torch):
    psi = make(kernel, n_terms=terms_of(make)[1]).fit(X)
    found = psi.transform(torch.from_numpy(X))
    assert isinstance(found, torch.Tensor)
    assert found.dtype == torch.float64
    close(found.numpy(), psi.transform(X), np.float64)


@every_features
@pytest.mark.parametrize("dtype", DTYPES)
def test_random_features(features, dtype, torch):
    rows = X.astype(dtype)
    features.fit(rows)
    expected = features.transform(rows)
    close(features.on_device(rows)(rows), expected, dtype)
    found = features.transform(torch.from_numpy(rows))
    assert isinstance(found, torch.Tensor)
    assert found.dtype == getattr(torch, np.dtype(dtype).name)
    close(found.numpy(), expected, dtype)


@every_features
def test_random_features_of_large_means(features, torch):
    """Signed magnitudes about a mean: what is subtracted on the host is subtracted on a device."""
    rows = 1e3 + X
    features.fit(rows)
    close(features.transform(torch.from_numpy(rows)).numpy(), features.transform(rows), np.float64)


OTHERS = {
    "dirichlet": DirichletMap(),
    "stationary": StationaryMap("additive-student", n_terms=5),
    "signs": SignStableProjection(n_components=60, random_state=0),
    "landmarks": NystroemFeatures("exp-chi2", n_components=20, random_state=0),
    "signed landmarks": NystroemFeatures(chi2.signed(), n_components=20, random_state=0),
}


@pytest.mark.parametrize("features", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_other_features(features, dtype, torch):
    rows = X.astype(dtype)
    features.fit(rows)
    rows[3] = 0
    found = features.transform(torch.from_numpy(rows))
    assert isinstance(found, torch.Tensor)
    assert found.dtype == getattr(torch, np.dtype(dtype).name)
    close(found.numpy(), features.transform(rows), dtype)
    close(features.array_features(rows), features.transform(rows), dtype)


def test_bits(torch):
    signs = SignStableProjection(n_components=61, output="bits", random_state=0).fit(X)
    found = signs.transform(torch.from_numpy(X))
    assert found.dtype == torch.uint8
    np.testing.assert_array_equal(found.numpy(), signs.transform(X))


@pytest.mark.parametrize("features", [DirichletMap(), SignStableProjection(n_components=8)], ids=["map", "signs"])
def test_sums_beyond_the_numbers(features, torch):
    features.fit(X)
    with pytest.raises(DataError, match="row 1: its bins sum to more"):
        features.transform(torch.full((3, 12), 1e308, dtype=torch.float64).tril())


def test_integers_and_fitting(torch):
    counts = torch.from_numpy(np.arange(24).reshape(4, 6))
    psi = OptimalMap().fit(counts)
    found = psi.transform(counts)
    assert found.dtype == torch.float64
    close(found.numpy(), psi.transform(counts.numpy()), np.float64)


def test_bad_tensors_are_named(torch):
    psi = OptimalMap().fit(X)
    bad = torch.from_numpy(X.copy())
    bad[3, 5] = -1
    with pytest.raises(DataError, match="row 3, column 5: -1"):
        psi.transform(bad)
    bad[3, 5] = float("nan")
    with pytest.raises(DataError, match="row 3, column 5: NaN"):
        psi.transform(bad)
    with pytest.raises(DataError, match="expecting 12 features"):
        psi.transform(bad[:, :4])
    with pytest.raises(ValueError, match="two axes"):
        psi.transform(bad[0])
    with pytest.raises(DataError, match="not above"):
        SkewedFourierFeatures(n_components=8, random_state=0).fit(X).transform(bad.nan_to_num() - 9)
