"""Every loss: derivative, convexity, curvature, and no overflow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_pinball_loss, mean_poisson_deviance

from chimap._validation import DataError
from chimap.losses import CATALOGUE, EpsilonInsensitive, Poisson, Quantile, SmoothHinge, Square, check_loss

from ..golden import RELATIVE, golden

LOSSES = {name: cls() for name, cls in CATALOGUE.items()} | {
    "smooth_hinge, narrow": SmoothHinge(width=0.2),
    "epsilon_insensitive, wide": EpsilonInsensitive(epsilon=1.5, sharpness=4.0),
    "epsilon_insensitive, no epsilon": EpsilonInsensitive(epsilon=0.0, sharpness=2.0),
    "epsilon_insensitive, inside": EpsilonInsensitive(epsilon=0.3, sharpness=3.0),
    "quantile, high": Quantile(0.9, width=0.3),
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
every_bounded_loss = pytest.mark.parametrize(
    "loss", [loss for loss in LOSSES.values() if loss.domain != "count"], ids=lambda loss: loss.name
)
every_dtype = pytest.mark.parametrize("dtype", RELATIVE)

SCORES = np.concatenate([np.linspace(-6, 6, 481), [-300.0, -40.0, 40.0, 300.0]])


def targets(loss):
    return {
        "sign": np.array([-1.0, 1.0]),
        "real": np.array([-2.5, -1.0, 0.0, 0.3, 1.0]),
        "count": np.array([0.0, 0.3, 1.0, 7.0]),
    }[loss.domain]


def grid(loss):
    """Targets (m, 1) and scores (1, n) that broadcast."""
    return targets(loss)[:, None], SCORES[None, :]


@every_loss
def test_gradient_is_the_derivative(loss):
    y, s = grid(loss)
    h = 1e-5
    difference = (loss.value(y, s + h) - loss.value(y, s - h)) / (2 * h)
    # at a kink of the gradient the central difference is off by h/2 times its jump
    np.testing.assert_allclose(loss.gradient(y, s), difference, rtol=1e-6, atol=h * loss.curvature + 1e-8)


@every_bounded_loss
def test_curvature_bounds_the_gradient_and_is_reached(loss):
    y, s = targets(loss)[:, None], np.linspace(-6, 6, 40001)[None, :]
    slopes = np.diff(loss.gradient(y, s), axis=1) / np.diff(s)
    assert slopes.min() >= -1e-9
    assert slopes.max() <= loss.curvature * (1 + 1e-9)
    assert slopes.max() >= loss.curvature * (1 - 1e-3)


@every_loss
@given(a=st.floats(-50, 50), b=st.floats(-50, 50), share=st.floats(0, 1))
def test_convex_along_lines(loss, a, b, share):
    y = targets(loss)
    between = loss.value(y, share * a + (1 - share) * b)
    chord = share * loss.value(y, a) + (1 - share) * loss.value(y, b)
    assert np.all(between <= chord + 1e-10 * (1 + chord))


@every_loss
@given(a=st.floats(-1e3, 1e3), b=st.floats(-1e3, 1e3))
def test_never_below_its_tangent_nor_above_its_parabola(loss, a, b):
    y = targets(loss)
    tangent = loss.value(y, a) + loss.gradient(y, a) * (b - a)
    slack = 1e-9 * (1 + np.abs(tangent) + loss.value(y, b))
    assert np.all(loss.value(y, b) >= tangent - slack)
    assert np.all(loss.value(y, b) <= tangent + loss.curvature / 2 * (b - a) ** 2 + slack)


@every_loss
@every_dtype
def test_dtype_is_kept_and_nothing_overflows(loss, dtype):
    y = targets(loss).astype(dtype)[:, None]
    s = np.array([-1e4, -1e3, -90, -1, 0, 1, 90, 1e3, 1e4], dtype=dtype)[None, :]
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        value, gradient = loss.value(y, s), loss.gradient(y, s)
    assert value.dtype == gradient.dtype == dtype
    assert np.all(np.isfinite(value))
    assert np.all(np.isfinite(gradient))
    assert np.all(value >= 0)


@every_loss
def test_float32_is_float64_rounded(loss):
    y, s = (a.astype(np.float32) for a in grid(loss))
    for function in (loss.value, loss.gradient):
        exact = function(y.astype(float), s.astype(float))
        np.testing.assert_allclose(function(y, s), exact, rtol=2e-5, atol=1e-6 * min(1, loss.curvature))


@every_loss
def test_bad_targets_are_named(loss):
    loss.check_targets(targets(loss))
    bad = 0.5 if loss.domain == "sign" else np.nan
    with pytest.raises(DataError, match=r"target 1 is .* loss takes"):
        loss.check_targets(np.array([1.0, bad]))


@every_dtype
def test_golden_values(dtype):
    rows = golden("losses")["igll"]
    for row in rows:
        loss = EpsilonInsensitive(row["epsilon"], row["gamma"])
        r = np.array([row["residual"]], dtype=dtype)
        zero = np.zeros(1, dtype=dtype)
        np.testing.assert_allclose(loss.value(zero, r), row["value"], rtol=RELATIVE[dtype])
        np.testing.assert_allclose(loss.gradient(zero, r), row["derivative"], rtol=RELATIVE[dtype])


def test_small_residuals_do_not_cancel():
    loss = EpsilonInsensitive(0.5, 20.0)
    r = np.array([1e-9])
    # near zero the loss is curvature(0) r^2 / 2 with curvature g / (1 + cosh(g epsilon))
    np.testing.assert_allclose(loss.value(0.0, r), 10 / (1 + np.cosh(10.0)) * r**2, rtol=1e-12)
    np.testing.assert_allclose(loss.gradient(0.0, r), 20 / (1 + np.cosh(10.0)) * r, rtol=1e-12)


def test_sharp_loss_is_the_epsilon_insensitive_one():
    r = np.linspace(-3, 3, 101)
    np.testing.assert_allclose(EpsilonInsensitive(0.4, 1e6).value(0.0, r), np.maximum(np.abs(r) - 0.4, 0), atol=2e-6)


def test_logistic_far_out():
    loss = LOSSES["logistic"]
    np.testing.assert_allclose(loss.value(1.0, np.array([-1e4, 40.0])), [1e4, np.exp(-40.0)], rtol=1e-15)


def test_names_and_parameters_are_checked():
    assert check_loss("square", CATALOGUE) == Square()
    assert check_loss(SmoothHinge(0.5), CATALOGUE).width == 0.5
    with pytest.raises(ValueError, match="loss must be one of 'square'"):
        check_loss("cubic", CATALOGUE)
    for make in (lambda: SmoothHinge(0.0), lambda: EpsilonInsensitive(-0.1), lambda: EpsilonInsensitive(0.1, 0)):
        with pytest.raises(ValueError, match="must be a positive number"):
            make()


def test_names_in_the_catalogue_are_those_of_the_losses():
    assert list(CATALOGUE) == [loss.name for loss in CATALOGUE.values()]


def test_poisson_is_half_of_the_deviance_and_its_gradient_the_difference():
    loss, y, s = Poisson(), np.array([0.0, 1.0, 7.0, 2.5]), np.array([-0.5, 0.2, 3.0, 0.9])
    for row in range(4):
        deviance = mean_poisson_deviance(y[row : row + 1], np.exp(s[row : row + 1]))
        assert 2 * float(loss.value(y[row], s[row])) == pytest.approx(deviance, rel=1e-12)
        assert float(loss.deviance(y[row], np.exp(s[row]))) == pytest.approx(deviance, rel=1e-12)
    np.testing.assert_allclose(loss.gradient(y, s), np.exp(s) - y, rtol=1e-12)


def test_a_narrow_quantile_loss_is_the_pinball_loss():
    r = np.linspace(-3, 3, 101)
    for level in (0.1, 0.5, 0.9):
        pinball = np.maximum(level * r, (level - 1) * r)
        np.testing.assert_allclose(Quantile(level, 1e-6).value(r, np.zeros(101)), pinball, atol=1e-6)
        assert Quantile(level).deviance(r, np.zeros(101)).mean() == pytest.approx(
            mean_pinball_loss(r, np.zeros(101), alpha=level), rel=1e-12
        )


def test_several_quantiles_are_columns_each_of_its_own():
    y, s = np.array([[0.3, 0.3, 0.3]]), np.array([[0.1, 0.4, 0.9]])
    together = Quantile((0.1, 0.5, 0.9), 0.2)
    for name in ("value", "gradient", "bend"):
        alone = [getattr(Quantile(q, 0.2), name)(y[:, [k]], s[:, [k]])[0, 0] for k, q in enumerate((0.1, 0.5, 0.9))]
        np.testing.assert_allclose(getattr(together, name)(y, s)[0], alone, rtol=1e-12)
    twice = together.gradient(np.tile(y, (1, 2)), np.tile(s, (1, 2)))
    np.testing.assert_array_equal(twice[:, :3], twice[:, 3:])


@pytest.mark.parametrize("loss", [Quantile(0.7, 0.1), Quantile(0.5, 1.0)], ids=str)
def test_a_parabola_with_the_bend_touches_a_quantile_loss_and_lies_above_it(loss):
    y = np.linspace(-2, 2, 9)[:, None]
    s, other = np.linspace(-3, 3, 13)[None, :, None], np.linspace(-3, 3, 61)
    y = y[:, :, None]
    parabola = loss.value(y, s) + loss.gradient(y, s) * (other - s) + loss.bend(y, s) / 2 * (other - s) ** 2
    assert (parabola >= loss.value(y, other) - 1e-12).all()


@pytest.mark.parametrize("quantile", [0.0, 1.0, -0.2, "high", [0.5, 0.1], [], [0.1, 0.1], True])
def test_quantiles_are_checked(quantile):
    with pytest.raises(ValueError, match="quantile must be a number between 0 and 1, or several that ascend; got"):
        Quantile(quantile)
