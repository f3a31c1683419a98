"""Rows and factors that are held elsewhere, against those of one process; workers of Dask are in ``engines``."""

import weakref
from dataclasses import dataclass, field

import cloudpickle
import numpy as np
import pytest

from chimap._validation import DataError
from chimap.features.exact import ExactBlocks, ExactFeatures
from chimap.solvers.block_kernel import FactorRows, HeldFactor, HeldKernel, block_kernel
from chimap.solvers.blocks import BlockRidge, factor_places
from chimap.solvers.exact import DualRidge

N, ALPHA = 240, 0.3
RNG = np.random.default_rng(0)
X = RNG.dirichlet(np.ones(12), N)
Y = np.column_stack([np.sin(6 * X[:, 0]) + X[:, 1], X[:, 2] > X[:, 3]]).astype(float)
WEIGHTS = RNG.uniform(0.5, 3, N)
BLOCKS = [slice(0, 60), slice(60, 105), slice(105, 150), slice(150, 195), slice(195, N)]


def sent(value):
    return cloudpickle.loads(cloudpickle.dumps(value))


@dataclass
class PieceOfHolder:
    """A value that is sent to a holder, and that nothing else can change."""

    held: "Holders"
    value: object
    holder: int

    def call(self, function, *arguments):
        self.held.calls.append(function.__name__)
        result = sent(function)(self.value, *sent(arguments))
        self.held.largest = max(self.held.largest, np.asarray(result, dtype=object).size)
        return sent(result)

    def made(self, function, *arguments):
        self.held.calls.append("made")
        self.held.makers.append(self.holder)
        self.held.alive.append(sum(piece() is not None for piece in self.held.made))
        piece = PieceOfHolder(self.held, sent(function)(self.value, *sent(arguments)), self.holder)
        self.held.made.append(weakref.ref(piece))
        return piece


@dataclass
class Holders:
    """Three holders with five threads, within this process."""

    n_holders: int = 3
    n_threads: int = 5
    calls: list[str] = field(default_factory=list)
    makers: list[int] = field(default_factory=list)
    made: list[weakref.ref] = field(default_factory=list)
    alive: list[int] = field(default_factory=list)
    largest: int = 0

    def put(self, makers, first=0):
        return [PieceOfHolder(self, sent(make()), (first + k) % self.n_holders) for k, make in enumerate(makers)]

    def summed(self, function, pieces, shared, each):
        return sum(piece.call(function, shared.value, own) for piece, own in zip(pieces, each, strict=True))


def fitted(kernel="exp-chi2"):
    return ExactFeatures(kernel, n_terms=3, random_state=0).fit(X)


def machine(features, held=None, weights=None, alpha=ALPHA, core=0, dtype="float64"):
    places = [factor_places(block, core) for block in BLOCKS]
    ahead = [FactorRows(own, None if weights is None else weights[own]) for own in places]
    kernel = block_kernel(features, 60 + core, np.dtype(dtype), held=held, ahead=ahead, n_core=core)
    return BlockRidge(kernel, Y, weights, alpha, Y.mean(axis=0), core, is_lifted=features.is_centred)


def swept(ridge, sweeps=1):
    return np.vstack([ridge.learn(block) for _ in range(sweeps) for block in BLOCKS])


@pytest.mark.parametrize("kernel", ["exp-chi2", "minmax", "chi2"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("core", [0, 30])
@pytest.mark.parametrize("sweeps", [1, 2])
def test_holders_fit_the_machine_of_one_process(kernel, weights, core, sweeps):
    held = Holders()
    here, there = (machine(fitted(kernel), place, weights, core=core) for place in (None, held))
    np.testing.assert_allclose(swept(there, sweeps), swept(here, sweeps), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(there.weights, here.weights, rtol=1e-8, atol=1e-8)
    assert there.lengths == pytest.approx(here.lengths, rel=1e-8)
    assert there.lift == here.lift
    np.testing.assert_allclose(there.left_out(20), here.left_out(20), rtol=1e-8)
    groups = [np.arange(0, 7), np.arange(7, 45)]
    np.testing.assert_allclose(there.left_out_together(groups), here.left_out_together(groups), rtol=1e-8)
    np.testing.assert_allclose(there.variances(groups), here.variances(groups), rtol=1e-8)
    assert held.largest <= 60 * 2 * Y.shape[1]  # numbers for rows come back, and no matrix


def test_holders_follow_a_gamma_that_changes():
    both = fitted(), fitted()
    here, there = machine(both[0], core=30), machine(both[1], Holders(), core=30)
    for octaves in (1, -1):  # a contender, and what the sweep goes on from
        for features in both:
            features.set_octaves(octaves)
        contenders = [ridge.anew(2 * ALPHA, N) for ridge in (here, there)]
        for block in BLOCKS[:3]:
            own, others = (ridge.learn(block) for ridge in contenders)
            np.testing.assert_allclose(others, own, rtol=1e-9, atol=1e-9)


def test_blocks_of_columns_are_held():
    columns = [slice(0, 6), slice(4, 12)]
    features = ExactBlocks([ExactFeatures("chi2", n_terms=2), ExactFeatures("hellinger")], columns).fit(X)
    here, there = (machine(features, place, core=30) for place in (None, Holders()))
    np.testing.assert_allclose(swept(there), swept(here), rtol=1e-9, atol=1e-9)
    assert there.lift == pytest.approx(here.lift, rel=1e-12)


def test_as_many_blocks_as_there_are_holders_are_factorised_together():
    held = Holders()
    ridge = machine(fitted(), held, core=30)
    begun = []
    for block in BLOCKS:
        ridge.learn(block)
        begun.append(held.calls.count("made"))
    assert begun == [3, 3, 3, 5, 5]
    assert held.makers == [0, 1, 2, 0, 1]


def test_factors_of_a_round_have_holders_of_their_own_after_a_larger_strength_and_with_new_holders():
    held = Holders(n_holders=2)
    places = [FactorRows(factor_places(block, 0), None) for block in BLOCKS]
    kernel = HeldKernel(fitted(), held, np.dtype("float64"), places)
    for rows, alpha in ((places[0], ALPHA), (places[0], 10 * ALPHA), (places[1], ALPHA), (places[0], ALPHA)):
        kernel.factor(rows, alpha, 0.0)
    held.n_holders = 3
    kernel.factor(places[2], ALPHA, 0.0)
    assert held.makers == [0, 1] * 4 + [0, 1, 2]


def test_a_machine_that_goes_on_from_the_middle_begins_there():
    held = Holders()
    whole, resumed = (machine(fitted(), place, core=30) for place in (None, held))
    for block in BLOCKS[:3]:
        whole.learn(block)
    resumed.weights[:], resumed.core_residuals, resumed.n_seen = whole.weights, whole.core_residuals, whole.n_seen
    resumed.lengths, resumed.step = [*whole.lengths], whole.step
    for block in BLOCKS[3:]:
        np.testing.assert_allclose(resumed.learn(block), whole.learn(block), rtol=1e-9, atol=1e-9)
    assert held.calls.count("made") == 2


def test_a_block_that_is_singular_to_rounding_is_solved_with_a_larger_strength(monkeypatch):
    rows = np.repeat(X[:60], 4, axis=0).astype(np.float32)
    features = ExactFeatures("exp-chi2").fit(rows)
    strengths = {DualRidge: [], HeldFactor: []}
    for kind, own in strengths.items():
        factorise = kind.factorise
        monkeypatch.setattr(
            kind, "factorise", lambda self, alpha, f=factorise, own=own: own.append(alpha) or f(self, alpha)
        )
    swept(machine(features, alpha=1e-9, dtype="float32"))
    here = strengths[DualRidge].copy()
    there = machine(features, Holders(), alpha=1e-9, dtype="float32")
    swept(there)
    assert strengths[HeldFactor] == here
    assert max(here) > 1e-9
    assert np.isfinite(there.weights).all()


def test_rows_that_end_with_a_block_are_more_than_the_block():
    ridge, held = (machine(fitted(), place, core=30) for place in (None, Holders()))
    for each in (ridge, held):
        for block in BLOCKS[:3]:
            each.learn(block)
    for places in (slice(0, 150), slice(20, 150), slice(60, 150), slice(140, 150)):
        np.testing.assert_allclose(held.outputs(places), ridge.outputs(places), rtol=1e-9)


def test_a_block_that_no_strength_solves_is_refused():
    rows = np.repeat(X[:1], N, axis=0).astype(np.float32) * 1e-3
    ridge = machine(ExactFeatures("gaussian", gamma=1.0).fit(rows), Holders(), alpha=1e-30, dtype="float32")
    with pytest.raises(DataError, match=r"alpha=1e-30 is too small: the kernel matrix of rows 0 to 60 is singular"):
        ridge.learn(BLOCKS[0])


def test_factors_are_let_go_before_the_next_are_begun():
    held = Holders()
    kernel = HeldKernel(fitted(), held, np.dtype("float64"))
    for block in BLOCKS[:3]:
        factor = kernel.among(factor_places(block, 0), None)
        factor.factorise(ALPHA)
        factor.factorise(10 * ALPHA)
        del factor
    assert held.alive == [0] * 6


@pytest.mark.parametrize("kernel", ["exp-chi2", "chi2"])
@pytest.mark.parametrize("core", [0, 30])
def test_holders_know_what_a_step_adds_to_rows_that_are_watched(kernel, core):
    watched = slice(210, N)
    for_watched = []
    for held in (None, Holders()):
        ridge = machine(fitted(kernel), held, core=core)
        ridge.learn(BLOCKS[0])
        total = ridge.outputs(watched) - ridge.intercept
        for block in BLOCKS[1:3]:
            ridge.learn(block)
            total += ridge.change_of_outputs(watched)
        for_watched.append(total)
        np.testing.assert_allclose(total, ridge.outputs(watched) - ridge.intercept, atol=1e-9)
    np.testing.assert_allclose(*for_watched, atol=1e-9)
