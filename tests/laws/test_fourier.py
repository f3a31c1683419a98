"""Random features tend to the exact kernel, whatever the form, the sampling and the kernel."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import FourierFeatures
from chimap.features.fourier.sampling import CATALOGUE as SAMPLING
from chimap.kernels import CATALOGUE as KERNELS

from ..histograms import histograms, relative_error

# so many terms that the error of the map is below that of the features; the intersection's falls slowly
TERMS = {"intersection": 24}


def errors(n_components, seeds, kernel="chi2", gamma=2.0, n_terms=5, **settings):
    X = histograms(25, 10)
    found = []
    for seed in range(seeds):
        features = FourierFeatures(f"exp-{kernel}", n_components, gamma, n_terms=n_terms, random_state=seed, **settings)
        Z = features.fit_transform(X)
        found.append(relative_error(Z @ Z.T, features.kernel_(X)))
    return np.sqrt(np.mean(np.square(found)))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("form", ["pair", "offset"])
@pytest.mark.parametrize("sampling", SAMPLING)
def test_error_falls_with_the_root_of_the_components(kernel, form, sampling):
    settings = {"kernel": kernel, "form": form, "sampling": sampling, "n_terms": TERMS.get(kernel, 5)}
    few, many = errors(64, 4, **settings), errors(4096, 2, **settings)
    assert few < 0.8
    assert many < few / 5
    assert many < 0.08


@pytest.mark.parametrize("form", ["pair", "offset"])
def test_orthogonal_frequencies_are_better_on_average(form):
    iid, orthogonal = (errors(64, 30, gamma=0.5, form=form, sampling=s) for s in ("iid", "orthogonal"))
    assert orthogonal < (0.85 if form == "pair" else 0.98) * iid


def test_pairs_are_better_on_average_where_the_kernel_is_near_one():
    pair, offset = (errors(64, 20, form=form, gamma=0.1) for form in ("pair", "offset"))
    assert pair < 0.7 * offset
