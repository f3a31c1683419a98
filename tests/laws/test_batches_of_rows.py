"""The answer for a row does not depend on the rows beside it, for every kernel, normalisation and machine."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import HistogramClassifier
from chimap.kernels import names
from chimap.normalizations import CATALOGUE as NORMALIZATIONS

RNG = np.random.default_rng(0)
Y = np.arange(60) % 3
PROFILES = RNG.lognormal(0.0, 1.0, (3, 12))[np.arange(90) % 3]
ROWS = RNG.poisson(RNG.lognormal(5.0, 1.0, (90, 1)) * PROFILES * RNG.lognormal(0.0, 0.5, (90, 12))).astype(float)
ROWS[RNG.random((90, 12)) < 0.2] = 0
MACHINES = {
    "exact": {"features": "exact"},
    "blocks": {"features": "exact", "blocks": [slice(0, 6), slice(6, 12)]},
    "landmarks": {"features": "landmarks", "n_components": 24},
    "as it comes": {},
}
KERNELS = [*names(), "jensen_shannon+pq", "chi2*minmax", "intersection+exp-chi2"]


@pytest.mark.covering(1)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("normalize", [None, *NORMALIZATIONS])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_row_has_one_answer(kernel, normalize, machine):
    model = HistogramClassifier(kernel, normalize=normalize, random_state=0, **MACHINES[machine])
    model.fit(ROWS[:60], Y)
    rows = ROWS[60:]
    outputs = model.decision_function(rows)
    near = 1e-3 * outputs.std()
    alone = np.concatenate([model.decision_function(rows[[i]]) for i in range(12)])
    np.testing.assert_allclose(alone, outputs[:12], atol=near)
    np.testing.assert_allclose(model.decision_function(rows[::-1])[::-1], outputs, atol=near)
    np.testing.assert_allclose(model.predict_proba(rows[:3]), model.predict_proba(rows)[:3], atol=2e-3)
    explained = model.explain(rows[:2])
    np.testing.assert_allclose(explained.base + explained.contributions.sum(axis=1), outputs[:2], atol=near)


@pytest.mark.parametrize("machine", ["exact", "blocks"])
def test_values_in_the_hundreds_are_computed_in_float64(machine):
    rows = np.tile(ROWS, (1, 5)) * np.random.default_rng(1).lognormal(0.0, 1.0, (90, 60))
    settings = MACHINES[machine] | ({"blocks": [slice(0, 30), slice(30, 60)]} if machine == "blocks" else {})
    model = HistogramClassifier("jensen_shannon+pq", normalize="log-cpm", alpha=1e-5, random_state=0, **settings)
    model.fit(rows[:60], Y)
    outputs = model.decision_function(rows[60:])
    alone = np.concatenate([model.decision_function(rows[[i]]) for i in range(60, 72)])
    np.testing.assert_allclose(alone, outputs[:12], atol=3e-6 * outputs.std())
