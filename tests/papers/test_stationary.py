"""Maps of stationary kernels against their definition, and what every map keeps to."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import AutomaticFeatures, HistogramClassifier, HistogramRegressor, StationaryKernel, StationaryMap, load
from chimap._validation import DataError
from chimap.features.additive.homogeneous import WINDOWS
from chimap.kernels import STATIONARY, as_kernel
from chimap.papers.stationary import Differences, stationary_by_name, stationary_student

from ..golden import RELATIVE, golden
from ..histograms import relative_error

NAMES = [*STATIONARY, "additive-student(3.0)"]
kernels = pytest.mark.parametrize("kernel", [stationary_by_name(name) for name in NAMES], ids=NAMES)
windows = pytest.mark.parametrize("window", WINDOWS)


def signed(n=60, d=8, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def test_signatures_and_spectra():
    for row in golden("stationary")["signatures"]:
        assert stationary_by_name(row["kernel"]).signature(row["l"]) == pytest.approx(row["value"], rel=1e-13)
    for row in golden("stationary")["spectra"]:
        kernel = stationary_by_name(row["kernel"])
        assert kernel.spectrum(row["w"]) == pytest.approx(row["kappa"], rel=1e-9)
        assert kernel.spectrum(-row["w"]) == kernel.spectrum(row["w"])


@pytest.mark.parametrize("dtype", RELATIVE)
@pytest.mark.parametrize("window", ["uniform", "rectangular"])
def test_features(window, dtype):
    for row in golden("stationary")["values"]:
        kernel = stationary_by_name(row["kernel"]).with_width(row["width"])
        psi = StationaryMap(kernel, row["n"], window, row["period"])
        found = psi.fit_transform(np.array([[row["x"]]], dtype))[0]
        assert found.dtype == dtype
        np.testing.assert_allclose(found, row[window], rtol=1e-8, atol=max(1e-9, RELATIVE[dtype]))


@kernels
def test_the_kernel_by_hand(kernel):
    X, Y = signed(7), signed(5, seed=1)
    wide = kernel.with_width(1.7)
    expected = np.array([[kernel.signature((x - y) / 1.7).sum() for y in Y] for x in X])
    for kind in (np.asarray, sp.csr_matrix):
        np.testing.assert_allclose(wide(kind(X), kind(Y)), expected, rtol=1e-12)
        np.testing.assert_allclose(wide.distance(kind(X), kind(Y)), 16 - 2 * expected, atol=1e-12)
        np.testing.assert_array_equal(wide.diagonal(kind(X)), np.full(7, 8.0))
    np.testing.assert_allclose(kernel.rescaled(4.0)(4 * X), kernel(X), rtol=1e-12)
    assert np.linalg.eigvalsh(wide(X)).min() > -1e-12
    assert as_kernel(kernel.name) == kernel if "(" not in kernel.name else True


@windows
@kernels
def test_error_falls_with_the_terms(kernel, window):
    X = signed()
    exact, errors = kernel(X), []
    for n_terms in (1, 3, 7, 15):
        Z = StationaryMap(kernel, n_terms, window).fit_transform(X)
        errors.append(relative_error(Z @ Z.T, exact))
    # the uniform window repeats the signature, whose tails are heavy; Laplace's has a kink
    assert all(better < worse for worse, better in pairwise(errors))
    assert errors[-1] < (0.01 if window == "least-squares" and "laplace" not in kernel.name else 0.08)


@kernels
def test_least_squares_are_closest(kernel):
    X = signed(200)
    errors = {}
    for window in WINDOWS:
        Z = StationaryMap(kernel, 5, window).fit_transform(X)
        errors[window] = relative_error(Z @ Z.T, kernel(X))
    assert errors["least-squares"] <= 1.02 * min(errors.values())


@kernels
def test_shifts_do_not_change_the_kernel_of_the_features(kernel):
    X = signed()
    psi = StationaryMap(kernel, 7).fit(X)
    Z, far = psi.transform(X), psi.transform(X + 1e6)
    np.testing.assert_allclose(far @ far.T, Z @ Z.T, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kinds_of_rows(dtype):
    X = (signed() * (signed(seed=3) > 0)).astype(dtype)
    psi = StationaryMap(n_terms=5).fit(X)
    Z = psi.transform(X)
    assert Z.dtype == dtype
    assert Z.shape == (60, 40)
    np.testing.assert_array_equal(psi.transform(sp.csr_matrix(X)), Z)
    np.testing.assert_allclose(psi.array_features(X), Z, atol=RELATIVE[dtype])
    out, shift = np.empty_like(Z), Z.mean(axis=0)
    psi.features_into(X, out, shift)
    np.testing.assert_array_equal(out, Z - shift)
    alone = X.copy()
    alone[:, 3] += 1
    changed = np.flatnonzero(np.abs(psi.transform(alone) - Z).max(axis=0))
    assert set(changed) <= set(range(3, 40, 8))


def test_a_spectrum_of_ones_own(tmp_path):
    triangle = StationaryKernel("triangle", lambda l: np.maximum(1 - np.abs(l), 0))  # noqa: E741
    X = signed()
    Z = StationaryMap(triangle, 15).fit_transform(X)
    assert relative_error(Z @ Z.T, triangle(X)) < 0.05
    with pytest.raises(ValueError, match="the spectrum of 'triangle' is not given"):
        StationaryMap(triangle, 5, "uniform").fit(X)
    model = HistogramRegressor(triangle, features=AutomaticFeatures(n_terms=9), random_state=0).fit(X, X[:, 0])
    with pytest.raises(DataError, match="a StationaryKernel is not part of a model file"):
        model.save(tmp_path / "a.model")


@pytest.mark.slow
@pytest.mark.parametrize("name", STATIONARY)
def test_the_spectrum_alone_gives_the_kernel(name):
    kernel = STATIONARY[name]
    made = StationaryKernel.of_spectrum("mine", lambda w: 7 * kernel.spectrum(w), width=2.0)
    differences = np.r_[-3.0, 0.0, np.geomspace(1e-4, 60, 20)]
    np.testing.assert_allclose(made.signature(differences), kernel.signature(differences), atol=1e-9)
    np.testing.assert_allclose(made.spectrum([-1.3, 0.2]), kernel.spectrum([1.3, 0.2]), rtol=1e-9)
    np.testing.assert_allclose(made(signed(3)), kernel.with_width(2.0)(signed(3)), atol=1e-8)


@pytest.mark.slow
def test_a_band_of_frequencies():
    """No signature that falls: cos(3 l), damped; both windows and the closest spectrum."""
    band = StationaryKernel.of_spectrum("band", lambda w: np.exp(-2 * (w - 3) ** 2) + np.exp(-2 * (w + 3) ** 2))
    l = np.linspace(0, 8, 50)  # noqa: E741
    np.testing.assert_allclose(band.signature(l), np.cos(3 * l) * np.exp(-(l**2) / 8), atol=1e-8)
    X = signed(12)
    for window in WINDOWS:
        Z = StationaryMap(band, 25, window).fit_transform(X)
        assert relative_error(Z @ Z.T, band(X)) < 0.02


@pytest.mark.parametrize(
    ("spectrum", "message"),
    [
        (lambda w: np.cos(w), "nowhere negative; it is -.* at frequency"),
        (lambda w: 1 / w, "finite and nowhere negative; it is inf at frequency 0"),
        (lambda w: 0 * w, "finite, positive integral; it is 0"),
        (lambda w: 1.0, r"a number for each frequency: it gave shape \(\) for"),
    ],
)
def test_what_is_no_spectrum(spectrum, message):
    with pytest.raises(ValueError, match=message):
        StationaryKernel.of_spectrum("mine", spectrum)


def test_explanations_measure_importance_by_gradients():
    X = signed(300)
    model = HistogramRegressor("additive-gaussian", features=AutomaticFeatures(n_terms=9), random_state=0).fit(
        X, np.cos(X[:, 2]) + X[:, 5]
    )
    importance = model.importance(X)
    assert set(importance.bins[:2].tolist()) == {2, 5}


@pytest.mark.parametrize("kernel", ["additive-laplace", stationary_student(3.0).with_width(2.0)])
def test_estimators_take_them(kernel, tmp_path):
    X = signed(400)
    y = np.sum(np.abs(X[:, :3]), axis=1) > 2.2  # of both signs alike: no linear machine finds it
    model = HistogramClassifier(kernel, features=AutomaticFeatures(n_terms=7), random_state=0).fit(X[:300], y[:300])
    assert isinstance(model.features_, StationaryMap)
    assert model.score(X[300:], y[300:]) > 0.85
    model.save(tmp_path / "a.model")
    again = load(tmp_path / "a.model")
    assert again.kernel_ == model.kernel_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_terms": 4}, "must be odd .* got 4: use 3 or 5"),
        ({"window": "hann"}, "window must be one of"),
        ({"period": 0}, "period must be a positive number"),
        ({"kernel": "chi2"}, "StationaryMap maps stationary kernels.* got 'chi2'"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        StationaryMap(**settings).fit(signed())
    with pytest.raises(ValueError, match="width"):
        stationary_student(2.0).with_width(0)


@pytest.mark.parametrize("X", [np.zeros((4, 3)), np.full((5, 2), 0.5), np.ones((1, 1))])
def test_rows_that_say_little(X):
    Z = StationaryMap(n_terms=3).fit_transform(X)
    assert np.isfinite(Z).all()
    np.testing.assert_allclose(Z @ Z.T, X.shape[1], rtol=1e-6)


@kernels
def test_widths_are_the_unit_of_the_rows(kernel):
    X = signed()
    narrow, wide = (StationaryMap(kernel.with_width(w), 5).fit(w * X) for w in (1.0, 4.0))
    assert wide.period_ == narrow.period_
    np.testing.assert_allclose(wide.transform(4 * X), narrow.transform(X), atol=1e-12)


@pytest.mark.parametrize("n_bins", [1, 3, 50])
def test_the_equations_weigh_what_adds_up_over_the_bins(n_bins):
    """Mean square of the mean of errors e over independent bins: E e^2 / bins + (1 - 1 / bins) (E e)^2."""
    kernel, amounts = stationary_by_name("additive-gaussian"), np.array([0.4, 0.5])
    points = np.sort(np.random.default_rng(0).gamma(1.0, size=40))
    exact = kernel.signature(points)
    design, target = Differences(points, exact, n_bins).equations(5.0, 1)
    e = amounts[0] + amounts[1] * np.cos(2 * np.pi * points / 5.0) - exact
    expected = ((e**2).mean() / n_bins + (1 - 1 / n_bins) * e.mean() ** 2) / np.square(exact).mean()
    assert np.square(design @ amounts - target).sum() == pytest.approx(expected, rel=1e-12)


def test_a_number_of_terms_that_is_set_after_the_fit_waits_for_the_next():
    X = signed()
    psi = StationaryMap(n_terms=5).fit(X)
    before = psi.transform(X)
    np.testing.assert_array_equal(psi.set_params(n_terms=9).transform(X), before)
    assert psi.fit(X).transform(X).shape == (X.shape[0], 9 * X.shape[1])
