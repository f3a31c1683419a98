"""What maps refuse, and what they say."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import ChebyshevMap, DirectMap, Exponential, HomogeneousMap, OptimalMap, chi2
from chimap.features.additive import CATALOGUE

from ...histograms import histograms

every_map = pytest.mark.parametrize("make", CATALOGUE.values(), ids=CATALOGUE)


@pytest.mark.parametrize(
    ("psi", "message"),
    [
        (HomogeneousMap(n_terms=4), "n_terms of HomogeneousMap must be odd .* got 4: use 3 or 5"),
        (HomogeneousMap(window="hann"), "window must be one of 'least-squares', 'rectangular', 'uniform'; got 'hann'"),
        (HomogeneousMap(period=-1.0), "period must be a positive number; got -1.0"),
        (DirectMap("intersection"), "DirectMap approximates chi2; got 'intersection'. Maps of .*OptimalMap"),
        (DirectMap(nodes="best"), "nodes must be one of 'greedy', 'minimax'; got 'best'"),
        (DirectMap(n_terms=2, nodes=[0.1]), "2 positive numbers"),
        (DirectMap(n_terms=2, nodes=[0.1, -1]), "2 positive numbers"),
        (DirectMap(n_terms=1, nodes=[np.inf]), "1 positive numbers"),
        (ChebyshevMap("hellinger"), "ChebyshevMap approximates chi2; got 'hellinger'"),
        (ChebyshevMap(scale=0), "scale .* must be a positive number; got 0"),
        (OptimalMap("chi"), "kernel must be one of chi2"),
    ],
    ids=str,
)
def test_settings(psi, message):
    with pytest.raises(ValueError, match=message):
        psi.fit(histograms())


@every_map
@pytest.mark.parametrize("kernel", ["exp-chi2", Exponential(chi2, 1.0)])
def test_exponential_kernels_are_for_random_features(make, kernel):
    with pytest.raises(ValueError, match=r"maps additive kernels; got 'exp-chi2'.*FourierFeatures"):
        make(kernel).fit(histograms())


@every_map
@pytest.mark.parametrize("n_terms", [0, -1, 2.5, None, True, "3"])
def test_number_of_terms(make, n_terms):
    if n_terms is None and make().n_terms is None:
        pytest.skip("None lets this map choose")
    with pytest.raises(ValueError, match="n_terms must be a positive whole number"):
        make(n_terms=n_terms).fit(histograms())
