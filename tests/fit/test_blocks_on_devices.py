"""Fits of machines in blocks on a device: what they choose, hold out, predict and refuse, against those of the host."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

import chimap
from chimap import AutomaticFeatures, HistogramClassifier, HistogramRegressor
from chimap._validation import MemoryBudgetError
from chimap.solvers.block_problem import BlockSolver

from ..torch_backend import compute_by_torch

X, y = load_digits(return_X_y=True)
X = X.astype(np.float32)
LEARNED = 1500
REALS = np.column_stack([np.sqrt(X[:, 20]), X[:, 30] - X[:, 40]])
COLUMNS = {"upper": slice(0, 32), "lower": slice(32, 64)}
# holds blocks of 500 rows, and no matrix of all
EXACT = {"features": "exact", "memory": "5MiB", "n_jobs": 1, "random_state": 0}
WEIGHTS = np.random.default_rng(0).uniform(0.5, 3, LEARNED)
GROUPS = np.random.default_rng(1).integers(0, 500, LEARNED)
FITS = {
    "exponential": (HistogramClassifier("exp-chi2", **EXACT), {}),
    "gaussian": (HistogramClassifier("gaussian", **EXACT), {}),
    "products": (HistogramClassifier("chi2", **EXACT | {"features": AutomaticFeatures("exact", n_terms=3)}), {}),
    "blocks of columns": (HistogramClassifier("exp-chi2", blocks=COLUMNS, **EXACT), {}),
    "kernels of blocks": (HistogramClassifier(["exp-chi2", "gaussian"], blocks=COLUMNS, **EXACT), {}),
    "weights": (HistogramClassifier("exp-chi2", **EXACT), {"sample_weight": WEIGHTS}),
    "groups": (HistogramClassifier("exp-chi2", **EXACT), {"groups": GROUPS}),
    "gamma": (HistogramClassifier("exp-chi2", gamma="auto", **EXACT), {}),
    "targets": (HistogramRegressor("exp-chi2", **EXACT), {}),
    "float64": (HistogramClassifier("exp-chi2", precision="float64", **EXACT | {"memory": "10MiB"}), {}),
    "auto": (HistogramClassifier("exp-chi2", **EXACT | {"features": "auto"}), {}),
}
TINY = 2.0**-80  # rows that are scaled before they are mapped


def copied(model):
    return type(model)(**model.get_params(deep=False))


def fitted(name, rows=X):
    model, more = FITS[name]
    targets = REALS if isinstance(model, HistogramRegressor) else y
    return copied(model).fit(rows[:LEARNED], targets[:LEARNED], **more)


@pytest.fixture
def by_torch(monkeypatch):
    compute_by_torch(monkeypatch)
    return monkeypatch


def outputs_of(model, rows):
    return model.predict(rows) if isinstance(model, HistogramRegressor) else model.decision_function(rows)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        *((name, X) for name in FITS),
        *((name, sp.csr_matrix(X)) for name in ("exponential", "products")),
        ("exponential", X * TINY),
    ],
    ids=[*FITS, "sparse", "sparse products", "tiny"],
)
def test_a_device_chooses_holds_out_and_predicts_as_the_host(name, rows, by_torch):
    there = fitted(name, rows)
    found = outputs_of(there, rows[LEARNED:])
    by_torch.undo()
    here = fitted(name, rows)
    assert here._taken["solver"] == BlockSolver.name == there._taken["solver"]
    assert there.alpha_ == here.alpha_
    assert there.describe() == here.describe()
    np.testing.assert_array_equal(there.row_numbers_, here.row_numbers_)
    expected = outputs_of(here, rows[LEARNED:])
    atol = 1e-9 if here.precision_ == "float64" else 1e-3
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol * (1 + np.abs(expected).max()))
    np.testing.assert_allclose(
        there.held_out_, here.held_out_, rtol=0, atol=atol * (1 + np.nanmax(np.abs(here.held_out_)))
    )
    np.testing.assert_allclose(there.learning_curve_.scores, here.learning_curve_.scores, atol=0.01)
    # the machine itself is the same, wherever it predicts
    np.testing.assert_allclose(
        outputs_of(there, rows[LEARNED:]), expected, rtol=0, atol=atol * (1 + np.abs(expected).max())
    )


def test_the_race_of_a_device_is_that_of_the_host(by_torch, monkeypatch):
    def raced():
        model = HistogramClassifier(memory="5MiB", n_jobs=1, random_state=0)
        return model.fit(X[:LEARNED], y[:LEARNED])

    there = raced()
    found = there.predict(X[LEARNED:])
    by_torch.undo()
    here = raced()
    assert there._taken["solver"] == here._taken["solver"] == BlockSolver.name
    assert there.chosen_ == here.chosen_
    # rounding may let two that score alike change places
    raced_there, raced_here = ({t.candidate.name for t in model.race_.trials} for model in (there, here))
    assert raced_there == raced_here
    assert (found == here.predict(X[LEARNED:])).mean() > 0.99


@pytest.fixture
def made(by_torch):
    """The kernels that were brought to the device, with the calls of each."""
    from chimap.backends import torch as torch_backend

    class Watched(torch_backend.TorchKernel):
        def __init__(self, features, device):
            super().__init__(features, device)
            self.calls = []
            kernels.append(self)

        def add_outputs(self, *arguments):
            self.calls.append("add_outputs")
            super().add_outputs(*arguments)

        def among(self, *arguments):
            self.calls.append("among")
            return super().among(*arguments)

        def outputs(self, *arguments):
            self.calls.append("outputs")
            return super().outputs(*arguments)

    kernels = []
    by_torch.setattr("chimap.backends.torch.TorchKernel", Watched)
    return kernels


def test_blocks_are_computed_there_and_rows_stay_there_for_later_predictions(made, tmp_path):
    model = fitted("exponential")
    [kernel] = made
    steps = "".join({"add_outputs": "+", "among": "="}[call] for call in kernel.calls)
    # a sweep: the values of a block, and outputs by the rows before it
    assert re.fullmatch(r"(=\+){3,}", steps)
    first = model.decision_function(X[:5])
    np.testing.assert_array_equal(model.decision_function(X[:5]), first)
    assert [kernel.calls for kernel in made[1:]] == [["outputs"] * 2]
    again = pickle.loads(pickle.dumps(model))
    model.save(tmp_path / "a.model")
    for other in (again, chimap.load(tmp_path / "a.model")):
        np.testing.assert_allclose(other.decision_function(X[:5]), first, atol=1e-5)
    assert len(made) == 4
    model.fit(X[300:LEARNED], y[300:LEARNED])
    assert np.abs(model.decision_function(X[:5]) - first).max() > 1e-3


@pytest.mark.parametrize("settings", [{}, {"loss": "squared_hinge"}], ids=["squares", "margins"])
def test_a_matrix_of_all_rows_is_solved_here_and_predicts_there(settings, made):
    model = HistogramClassifier("exp-chi2", features="exact", **settings).fit(X[:300], y[:300])
    assert not made
    there = model.decision_function(X[LEARNED:])
    assert [kernel.calls for kernel in made] == [["outputs"]]
    values = model.features_.transform(X[LEARNED:])
    np.testing.assert_allclose(there, values @ model.feature_coef_.T + model.intercept_, atol=1e-3)


def test_a_kernel_without_a_map_is_refused_or_has_landmarks(by_torch):
    message = r"features='exact' on device='cpu': kernel 'minmax' has no map.*Use device='cpu', or features='landmarks'"
    for kernel, columns in (("minmax", None), (["exp-chi2", "minmax"], COLUMNS)):
        with pytest.raises(ValueError, match=message):
            HistogramClassifier(kernel, blocks=columns, **EXACT).fit(X[:LEARNED], y[:LEARNED])
    mixed = HistogramClassifier(["exp-chi2", "minmax"], blocks=COLUMNS, random_state=0)
    assert "features" not in mixed.fit(X[:300], y[:300])._taken
    by_torch.undo()
    assert copied(mixed).fit(X[:300], y[:300])._taken["features"] == "exact"


def with_room(monkeypatch, n_bytes):
    monkeypatch.setattr("chimap.backends.torch.has_room", lambda needed, device: needed <= n_bytes)


def test_a_device_with_less_room_has_smaller_blocks(by_torch):
    from chimap.backends.torch import kernel_bytes

    model = HistogramClassifier("exp-chi2", **EXACT | {"memory": "9MiB"})
    for held, block_rows in ((1000, 1000), (900, 500)):
        with_room(by_torch, kernel_bytes(LEARNED, 64, held, 4))
        model.fit(X[:LEARNED], y[:LEARNED])
        assert np.isnan(model.held_out_).all(axis=1).sum() == block_rows
    assert kernel_bytes(LEARNED, 64, 500, 4) > 4 * (LEARNED * 66 + 3 * 500**2)  # rows, values, factor, workspace


def test_a_device_has_larger_blocks_than_the_first(by_torch):
    from chimap.backends.torch import kernel_bytes

    by_torch.setattr("chimap.machines.block_plan._FEWEST_FACTORS", 2)
    model = fitted("exponential")
    assert model.block_rows_.tolist() == [500, 500, 500]  # factors of 750 rows, of which 200 are the core
    found = model.decision_function(X[LEARNED:])
    with_room(by_torch, kernel_bytes(LEARNED, 64, 740, 4))
    smaller = fitted("exponential")
    assert smaller.block_rows_.tolist() == [500, 250, 250, 250, 250]
    assert (found.argmax(axis=1) == smaller.decision_function(X[LEARNED:]).argmax(axis=1)).mean() > 0.98


def test_a_device_without_room_is_refused_with_what_has_it(by_torch):
    model = fitted("exponential")
    with_room(by_torch, 10_000)
    with pytest.raises(MemoryBudgetError, match=r"no room for the 1,500 rows of this model. Predict with device='cpu'"):
        model.predict(X[:5])
    message = r"device='cpu' has no room for 1,500 dense mapped rows and a block .*Use device='cpu', or features="
    with pytest.raises(MemoryBudgetError, match=message):
        fitted("exponential")
    model, _ = FITS["auto"]
    assert "solver" not in copied(model).fit(X[:LEARNED], y[:LEARNED])._taken


def test_a_device_learns_from_more_rows_in_the_same_time(by_torch):
    by_torch.setattr("chimap.machines.block_plan.USUAL_SECONDS", 7e-4)
    there = fitted("exponential")
    by_torch.undo()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("chimap.machines.block_plan.USUAL_SECONDS", 7e-4)
        here = fitted("exponential")
    assert here.n_rows_ < there.n_rows_ == LEARNED
