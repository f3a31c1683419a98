"""What computes makes no difference: the loops of this machine and torch, as on a device, fit one model."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from chimap.solvers.kernel_matrix import has_exact_machine

from ..torch_backend import compute_by_torch
from .estimators import ESTIMATORS, outputs
from .sources import FROM_SOURCES, LABELS, ROWS, TARGETS, cases, keeps_every_row, passes_again, rounding_of

ON_DEVICES = {name: model for name, model in (ESTIMATORS | FROM_SOURCES).items() if "device" in model.get_params()}


@pytest.fixture
def by_torch(monkeypatch):
    compute_by_torch(monkeypatch, piece_rows=500)
    return monkeypatch


def refusal_of(model):
    """What a fit on a device says of settings that the host must serve, as a pattern; None if it takes them."""
    if keeps_every_row(model):
        if not has_exact_machine(model.loss):
            return "features='exact' solves .* does not support loss="
        has_values = model.kernel != "minmax"  # the others of the catalogue have a map, whose products a device takes
        return None if has_values else "kernel 'minmax' has no map, and its values are computed on this machine only"
    return r"supports loss='square' only; got loss='\w+'\. Use device='cpu'" if passes_again(model) else None


def fitted(name):
    model = clone(ON_DEVICES[name])
    return model.fit(ROWS, LABELS if is_classifier(model) else TARGETS)


@pytest.mark.parametrize(
    "name", cases({name: model for name, model in ON_DEVICES.items() if refusal_of(model) is None})
)
def test_torch_fits_the_model_of_the_host(name, by_torch):
    there = fitted(name)
    outputs_there = outputs(there, ROWS)
    by_torch.undo()
    here = fitted(name)
    assert there.alpha_ == pytest.approx(here.alpha_, rel=1e-3)
    rounding = rounding_of(here)
    np.testing.assert_allclose(outputs_there, outputs(here, ROWS), rtol=rounding, atol=rounding)
    if name in FROM_SOURCES and not keeps_every_row(here):  # the others add up sums here, and decompose them there
        assert "device" in there.stage_seconds_
        assert "device" not in here.stage_seconds_


@pytest.mark.parametrize("name", [name for name, model in ON_DEVICES.items() if refusal_of(model)])
def test_what_needs_the_host_is_refused_on_a_device(name, by_torch):
    with pytest.raises(ValueError, match=refusal_of(ON_DEVICES[name])):
        fitted(name)
