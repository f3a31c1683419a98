"""Where the chunks of a fit run makes no difference: this process and workers of Dask fit one model."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from chimap.features.exact import ExactFeatures

from ..chunks import short_chunks  # noqa: F401, a fixture
from .estimators import ESTIMATORS, outputs, tolerance_of
from .sources import (
    FROM_SOURCES,
    LABELS,
    ROWS,
    TARGETS,
    cases,
    keeps_every_row,
    learns_by_blocks,
    made,
    rounding_of,
    source_for,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("short_chunks")]  # workers are processes

MOST_ROWS_HERE = 64  # of a product in this process, which shows whether float32 holds the weights

workers = pytest.importorskip("tests.dask_workers", reason="workers are those of dask.distributed").workers
da = pytest.importorskip("dask.array", reason="arrays of Dask are needed")


@pytest.fixture(scope="module")
def client():
    with workers(2) as client:
        yield client


def refusal_of(model):
    """What a fit on workers says of settings that one process must serve, as a pattern; None if it takes them."""
    if keeps_every_row(model):
        is_solved = model.loss in ("square", "squared_hinge", "poisson", "quantile")
        return None if is_solved else r"features='exact' solves loss='square', loss='squared_hinge'"
    hinge = r"loss='hinge' keeps the features of all rows in the memory of one process: use engine='local'"
    return hinge if model.loss == "hinge" else None


def assert_one_model(model, alone):
    rounding = rounding_of(alone)
    assert model.alpha_ == pytest.approx(alone.alpha_, rel=1e-3)
    assert model.n_rows_ == alone.n_rows_ == len(ROWS)
    np.testing.assert_allclose(outputs(model, ROWS), outputs(alone, ROWS), rtol=rounding, atol=rounding)


@pytest.mark.parametrize(
    "name", cases({name: model for name, model in FROM_SOURCES.items() if refusal_of(model) is None})
)
def test_workers_fit_the_model_of_one_process(name, client, monkeypatch):
    alone = made(name)
    alone.fit_source(source_for(alone))
    monkeypatch.setattr("chimap.engines.local.LocalEngine.run", None)  # no chunk is added in this process
    assert_one_model(made(name).fit_source(source_for(alone), engine=client), alone)


@pytest.mark.parametrize("name", [name for name, model in FROM_SOURCES.items() if refusal_of(model)])
def test_what_needs_one_process_is_refused_on_workers(name, client):
    model = made(name)
    with pytest.raises(ValueError, match=refusal_of(model)):
        model.fit_source(source_for(model), engine=client)
    assert not hasattr(model, "n_rows_")


def dask_collections(y):
    """Rows and labels whose chunks have other borders."""
    return da.from_array(ROWS, chunks=(300, 8)), da.from_array(y, chunks=500)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_collections_of_dask_are_arrays(name, client):
    """Of estimators that are not fitted from sources, too: they read all chunks."""
    y = LABELS if is_classifier(ESTIMATORS[name]) else TARGETS
    alone, model = (clone(ESTIMATORS[name]) for _ in range(2))
    outputs_alone = outputs(alone.fit(ROWS, y), ROWS)
    rounding = 10 * tolerance_of(alone)
    model.fit(*dask_collections(y))
    np.testing.assert_allclose(outputs(model, ROWS), outputs_alone, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("name", [name for name, model in FROM_SOURCES.items() if learns_by_blocks(model)])
def test_workers_multiply_and_factorise_the_blocks_of_an_exact_machine(name, client, monkeypatch):
    whole = clone(FROM_SOURCES[name]).fit_source(source_for(made(name)))
    add_outputs = ExactFeatures.add_outputs

    def of_few_rows(self, rows, columns, weights, out):
        assert len(out) <= MOST_ROWS_HERE
        add_outputs(self, rows, columns, weights, out)

    monkeypatch.setattr(ExactFeatures, "add_outputs", of_few_rows)  # no product of a block in this process
    monkeypatch.setattr("chimap.solvers.block_kernel.KernelHere", None)  # and no factor of a block after the first
    there = clone(FROM_SOURCES[name]).fit_source(source_for(made(name)), engine=client)
    assert there.block_rows_.tolist() == whole.block_rows_.tolist()
    assert there.block_rows_.size > 2
    assert_one_model(there, whole)
    tolerance = rounding_of(whole)
    np.testing.assert_allclose(there.held_out_, whole.held_out_, rtol=tolerance, atol=tolerance)
