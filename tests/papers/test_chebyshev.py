from __future__ import annotations

import numpy as np

from chimap import ChebyshevMap, chi2

from ..histograms import histograms, relative_error


def test_scale_is_that_of_the_data():
    X = histograms()
    for scale in (1.0, 1e-6, 1e8):
        psi = ChebyshevMap(n_terms=6).fit(scale * X)
        assert psi.scale_ == (scale * X).max()
        # k(cx, cy) = c k(x, y), and so for its approximation
        np.testing.assert_allclose(
            psi.transform(scale * X), np.sqrt(scale) * ChebyshevMap(n_terms=6).fit_transform(X), rtol=1e-10
        )


def test_error_falls_as_one_over_the_terms():
    X = histograms(40)
    sizes = np.array([8, 16, 32, 64, 128])
    errors = []
    for n in sizes:
        Z = ChebyshevMap(n_terms=n).fit_transform(X)
        errors.append(relative_error(Z @ Z.T, chi2(X)))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope < -1
