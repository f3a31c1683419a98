"""The Dask engine on a real cluster of processes: the same model, whoever dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import HistogramClassifier, PrincipalFeatures, _threads, open_source
from chimap._pieces import PiecesHere, held_by
from chimap._progress import Progress
from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.data.synthetic import write_histograms
from chimap.engines.dask import DaskEngine, _groups_of_parts
from chimap.engines.dask_pieces import PiecesOnWorkers
from chimap.engines.dask_tasks import added, merged
from chimap.engines.dask_workers import Workers
from chimap.engines.local import LocalEngine
from chimap.features.landmarks.choosing import kmeans
from chimap.fit.checkpoint import Checkpoint
from chimap.fit.fit import fit
from chimap.kernels import Gaussian
from chimap.readers import SvmlightSource
from chimap.recipe import Recipe
from tests.at_block import AtBlock, press_ctrl_c

pytestmark = pytest.mark.slow

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
workers = pytest.importorskip("tests.dask_workers").workers

N_ROWS = 45_000
SETTINGS = {"n_components": 128, "memory": "8MiB", "random_state": 0}


@pytest.fixture(scope="module")
def of_two():
    with workers(2) as client:
        yield client


@pytest.fixture(scope="module")
def of_one():
    with workers(1) as client:
        yield client


@pytest.fixture
def client(of_two):
    """Two workers; the cluster has started another for one that has died in an earlier test."""
    of_two.wait_for_workers(2, timeout=60)
    return of_two


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("dask") / "rows.npy"
    labels = write_histograms(path, N_ROWS, 32)
    return open_source(path, labels)


@pytest.fixture(scope="module")
def fewer_rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("dask") / "fewer.npy"
    return open_source(path, write_histograms(path, 15_000, 32))


@pytest.fixture(scope="module")
def found(of_two, rows):
    return HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit_source(rows, engine=of_two)


def test_parts_grow_with_the_rows(monkeypatch):
    class Many:
        stored_rows = 1

        def __init__(self, n_rows):
            self.n_rows = n_rows

    few = _groups_of_parts(Many(10_000), 1024, 0)
    assert few == [[(start, min(start + 1024, 10_000)) for start in range(0, 10_000, 1024)]]
    # workers that share 64 parts or more end together, of chunks that are merged in fours where there are enough
    for n_chunks, part_chunks in ((127, 1), (128, 2), (255, 3), (256, 4), (10_000, 4)):
        parts = [part for group in _groups_of_parts(Many(1024 * n_chunks), 1024, 0) for part in group]
        assert {stop - start for start, stop in parts[:-1]} == {1024 * part_chunks}
        assert (parts[0][0], parts[-1][1]) == (0, 1024 * n_chunks)
    many = _groups_of_parts(Many(10**10), 10_240, 0)
    assert len(many) <= 64
    assert 2**15 < sum(map(len, many)) <= 2**16
    assert many[0][0] == (0, 10_240 * 15)
    stored = Many(100_000)
    stored.stored_rows = 30_000
    assert _groups_of_parts(stored, 1024, 0)[0][0] == (0, 30_720)
    # from a border between groups on they are the same parts
    monkeypatch.setattr("chimap.engines.dask._GROUP", 3)
    whole = _groups_of_parts(Many(100_000), 1024, 0)
    assert _groups_of_parts(Many(100_000), 1024, whole[2][0][0]) == whole[2:]


def test_as_on_one_machine(found, rows):
    alone = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit_source(rows)
    assert found.alpha_ == pytest.approx(alone.alpha_, rel=1e-6)
    sample = rows.take(np.arange(500))
    np.testing.assert_allclose(found.decision_function(sample), alone.decision_function(sample), atol=1e-4)
    assert found.n_rows_ == N_ROWS


def test_rows_with_weights(client, rows):
    """Weights go with the place of a row, whichever worker reads it; rows of weight 0 are not read."""
    weights, some = np.random.default_rng(0).integers(0, 3, 12_000), np.arange(12_000)
    few = ArraySource(rows.take(some), rows.labels()[some])
    settings = {"memory": "8MiB", "alpha": 1.0, "random_state": 0}
    alone = HistogramClassifier("chi2", **settings).fit_source(few, sample_weight=weights)
    spread = HistogramClassifier("chi2", **settings).fit_source(few, sample_weight=weights, engine=client)
    np.testing.assert_allclose(spread.feature_coef_, alone.feature_coef_, atol=1e-4 * np.abs(alone.feature_coef_).max())
    assert spread.n_rows_ == np.count_nonzero(weights)


def test_the_same_to_the_bit_however_often(client, found, rows):
    again = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit_source(rows, engine=client)
    np.testing.assert_array_equal(again._coef, found._coef)


def test_principal_components(client, rows):
    settings = SETTINGS | {"features": PrincipalFeatures(30), "blocks": [slice(0, 16), slice(16, 32)], "alpha": 0.1}
    alone = HistogramClassifier(**{"kernel": "exp-chi2"} | settings).fit_source(rows)
    spread = HistogramClassifier(**{"kernel": "exp-chi2"} | settings).fit_source(rows, engine=client)
    sample = rows.take(np.arange(200))
    np.testing.assert_allclose(spread.decision_function(sample), alone.decision_function(sample), atol=1e-3)


@pytest.mark.parametrize(
    "settings",
    [{"alpha": 1.0}, pytest.param({"features": PrincipalFeatures(30)}, marks=pytest.mark.slow)],
    ids=["one", "chosen"],
)
def test_passes_of_other_losses_run_on_the_workers(client, rows, settings, monkeypatch):
    settings = SETTINGS | {"loss": "logistic", "n_components": 48} | settings
    alone = HistogramClassifier(**{"kernel": "exp-chi2"} | settings).fit_source(rows)
    with monkeypatch.context() as patch:
        patch.setattr("chimap.engines.local.LocalEngine.run", None)
        patch.setattr("chimap.losses.LossAt.add", None)  # of this process; the workers have their own
        spread = HistogramClassifier(**{"kernel": "exp-chi2"} | settings).fit_source(rows, engine=client)
    assert spread.n_passes_ > 3
    assert spread.alpha_ == pytest.approx(alone.alpha_, rel=1e-3)
    sample = rows.take(np.arange(200))
    np.testing.assert_allclose(spread.decision_function(sample), alone.decision_function(sample), atol=0.02)


def test_the_hinge_needs_one_process(client, rows):
    with pytest.raises(ValueError, match=r"memory of one process: use engine='local', or loss='squared_hinge'"):
        HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS, loss="hinge").fit_source(rows, engine=client)


def test_workers_let_go_of_what_is_merged(client, rows, monkeypatch):
    monkeypatch.setattr("chimap.engines.dask._GROUP", 4)
    held = []

    def parts_held(most):
        """Moments of parts on the workers, once they are no more than ``most``, or in the end."""
        end = time.monotonic() + 20
        while True:
            count = sum(key.startswith("_added") for keys in client.has_what().values() for key in keys)
            if count <= most or time.monotonic() > end:
                return count
            time.sleep(0.02)

    class Watched(Checkpoint):
        def reached(self, *standing):
            held.append(parts_held(5))

    HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit_source(
        rows, engine=client, checkpoint=Watched("unused")
    )
    assert len(held) > 1
    assert max(held) <= 5  # of the group that is ahead, and a merge that is going on
    assert parts_held(0) == 0


def test_arrays_and_frames(client, found, rows):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y = rows.take(np.arange(N_ROWS)), rows.labels()
    ours = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit(
        da.from_array(X, chunks=(7000, 32)), da.from_array(y, chunks=9000)
    )
    frame = pd.DataFrame(X, columns=[f"bin{i}" for i in range(32)]).assign(species=y)
    source = open_source(dd.from_pandas(frame, npartitions=12), "species")
    again = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit_source(source, engine=client)
    in_memory = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit_source(open_source(X, y), engine=client)
    persisted = da.from_array(X, chunks=(7000, 32)).persist()
    held = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit(persisted, y)
    assert open_source(persisted, y).stored_rows == 7000
    for model in (ours, again, in_memory, held):  # whose chunks are a little larger: nothing is read ahead
        np.testing.assert_allclose(model._coef, found._coef, rtol=1e-3, atol=1e-5)


class Deadly(DaskEngine):
    """Kills a worker as soon as a part has been added up."""

    killed = False

    def _watch(self, parts, starts, untold, progress):
        if self.killed:
            return super()._watch(parts, starts, untold, progress)
        pids, parts_now = list(self.workers.client.run(os.getpid).values()), list(parts)

        def kill():
            while not any(part.done() for part in parts_now):
                time.sleep(0.005)
            os.kill(pids[0], signal.SIGKILL)
            self.killed = True

        threading.Thread(target=kill).start()
        super()._watch(parts, starts, untold, progress)


class Counted(Progress):
    """Counts the rows of each stage."""

    def __init__(self):
        self.rows = {}

    def stage(self, name, total, unit="rows"):
        self.now, self.rows[name] = name, 0

    def advance(self, amount=1):
        self.rows[self.now] += amount


@pytest.mark.slow
def test_a_worker_that_dies_in_the_middle(client, found, rows):
    model, engine = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS), Deadly(client)
    found_again = fit(Recipe.of(model), rows, engine)
    assert engine.killed
    np.testing.assert_array_equal(found_again.coef, found._coef)


@pytest.mark.slow
@pytest.mark.parametrize(("where", "most_kept"), [("memory", None), ("file", 1000)])
def test_the_only_worker_dies_with_all_that_was_sent(client, of_one, rows, where, most_kept, monkeypatch):
    """Rows in memory, and settings that the scheduler does not keep, are sent again."""
    if most_kept:
        for module in ("dask", "dask_workers"):
            monkeypatch.setattr(f"chimap.engines.{module}.MOST_KEPT", most_kept)
    monkeypatch.setattr("chimap.engines.dask._GROUP", 4)
    source = rows if where == "file" else open_source(rows.take(np.arange(N_ROWS)), rows.labels())
    settings = {"kernel": "exp-chi2"} | SETTINGS | {"memory": "64MiB" if where == "memory" else "8MiB"}
    whole = HistogramClassifier(**settings).fit_source(source, engine=client)
    of_one.wait_for_workers(1, timeout=60)
    model, engine, progress = HistogramClassifier(**settings), Deadly(of_one), Counted()
    found_again = fit(Recipe.of(model), source, engine, progress)
    assert engine.killed
    assert progress.rows["learning"] == N_ROWS
    np.testing.assert_array_equal(found_again.coef, whole._coef)


@contextmanager
def scheduler_and_worker(folder):
    """Processes of a scheduler and a worker, and the scheduler's address."""
    said = folder / "scheduler.json"
    scheduler = ["distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", said]
    worker = ["distributed.cli.dask_worker", "--nthreads", "1", "--no-dashboard", "--scheduler-file", said]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    processes = [subprocess.Popen([sys.executable, "-m", *map(str, one)], **quiet) for one in (scheduler, worker)]
    try:
        end = time.monotonic() + 60
        while not said.exists() and time.monotonic() < end:
            time.sleep(0.05)
        yield processes[0], json.loads(said.read_text())["address"]
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_scheduler_that_dies_is_named_and_its_checkpoint_serves(client, fewer_rows, tmp_path, monkeypatch):
    monkeypatch.setattr("chimap.engines.dask._GROUP", 1)
    monkeypatch.setattr("chimap.engines.dask_workers._RECONNECT_SECONDS", 0.5)
    settings = {"kernel": "exp-chi2"} | SETTINGS
    with scheduler_and_worker(tmp_path) as (process, address):

        class Deadly(Checkpoint):
            def reached(self, *standing):
                super().reached(*standing)
                process.kill()
                process.wait()

        with pytest.raises(DataError, match=rf"the Dask scheduler at {address} was lost in the middle of the fit"):
            HistogramClassifier(**settings).fit_source(
                fewer_rows, engine=address, checkpoint=Deadly(tmp_path / "c", 1e-9)
            )
    whole = HistogramClassifier(**settings).fit_source(fewer_rows, engine=client)
    again = HistogramClassifier(**settings).fit_source(fewer_rows, engine=client, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(again._coef, whole._coef)


def test_neighbours_are_offered_to_one_worker_in_order(client, rows, monkeypatch):
    """Merges of neighbours then need no transfer, and few moments wait; an idle worker may take them nevertheless."""
    monkeypatch.setattr("chimap.engines.dask._GROUP", 1000)
    offers: list[tuple[int, str]] = []
    priorities: dict[int, int] = {}
    of_merges = []

    class Recorded(Workers):
        def submit(self, task, priority, *arguments, offered_to=""):
            if task is added:
                offers.append((arguments[2], offered_to))
                priorities[arguments[2]] = priority
            elif task is merged:
                of_merges.append(priority)
            return super().submit(task, priority, *arguments, offered_to=offered_to)

    engine = DaskEngine(client)
    engine.workers = Recorded(client)
    fit(Recipe.of(HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS)), rows, engine)
    workers = [worker for _, worker in sorted(offers)]
    first, second = sorted(client.nthreads())
    assert len(workers) > 4
    of_parts = [priority for _, priority in sorted(priorities.items())]
    assert of_parts == sorted(set(of_parts), reverse=True)  # equal ones would run in any order
    assert min(of_merges) > max(of_parts)
    half = -(-len(workers) // 2)
    assert workers == [first] * half + [second] * (len(workers) - half)


def test_workers_that_die_of_every_part_are_named(client, rows):
    class Fatal(DaskEngine):
        def _submit_part(self, template, source, start, *more):
            if start == 0:
                return super()._submit_part(template, source, start, *more)
            return self.workers.submit(_killed_worker, 0)

    model = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS)
    with pytest.raises(DataError, match=r"died one after the other as they added up rows from \d+ on"):
        fit(Recipe.of(model), rows, Fatal(client))


def _killed_worker():
    """What Dask raises for a task that ends its workers."""
    raise distributed.KilledWorker("part", SimpleNamespace(address="a worker"), 3)


SAMPLE = np.random.default_rng(1).dirichlet(np.full(12, 0.3), 900).astype(np.float32)
SAMPLE[SAMPLE < 0.01] = 0


@pytest.fixture
def small_pieces(monkeypatch):
    """Let k-means work on pieces of 100 rows."""
    monkeypatch.setattr("chimap.features.landmarks.choosing.PIECE_ROWS", 100)


def clustered(rows):
    return kmeans(Gaussian(0.5), rows, 40, np.random.default_rng(0))


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_workers_find_the_landmarks_of_one_process(client, kind):
    here = clustered(kind(SAMPLE))
    with held_by(DaskEngine(client).pieces):
        np.testing.assert_array_equal(clustered(kind(SAMPLE)), here)


def test_a_scheduler_that_is_lost_between_rounds_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("chimap.engines.dask_workers._RECONNECT_SECONDS", 0.5)
    with scheduler_and_worker(tmp_path) as (process, address), distributed.Client(address) as client:
        pieces = DaskEngine(client).pieces(SAMPLE, 250)
        pieces.map(np.less, 0.1)
        process.kill()
        process.wait()
        with pytest.raises(DataError, match=rf"the Dask scheduler at {address} was lost in the middle"):
            pieces.map(np.less, 0.2)


@pytest.mark.usefixtures("small_pieces")
def test_landmarks_of_a_fit_are_clustered_on_workers(client, rows, monkeypatch):
    rounds = []
    submit = PiecesOnWorkers.map
    monkeypatch.setattr(PiecesOnWorkers, "map", lambda *task: rounds.append(task) or submit(*task))
    settings = SETTINGS | {"n_components": 64, "features": "landmarks"}
    on_workers = HistogramClassifier("exp-chi2", **settings).fit_source(rows, engine=client)
    alone = HistogramClassifier("exp-chi2", **settings).fit_source(rows)
    assert len(rounds) == 3
    np.testing.assert_array_equal(on_workers.features_.landmarks_, alone.features_.landmarks_)


def rows_below(piece, limit):
    return int((piece[:, 0] < limit).sum())


def test_pieces_of_a_worker_that_dies_are_sent_again(client):
    pieces = DaskEngine(client).pieces(SAMPLE, 250)
    counts = pieces.map(rows_below, 0.1)
    assert len(counts) == 4
    assert sum(counts) == rows_below(SAMPLE, 0.1)
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    assert pieces.map(rows_below, 0.2) == list(PiecesHere(SAMPLE, 250).map(rows_below, 0.2))


BLOCKS = {"kernel": "exp-chi2", "features": "exact", "memory": "5MiB", "alpha": 0.1, "random_state": 0}


def learned(engine, progress=None):
    """A machine in blocks of sparse rows."""
    rows = np.random.default_rng(0).dirichlet(np.full(12, 0.3), 6000).astype(np.float32)
    source = ArraySource(sp.csr_matrix(np.where(rows < 0.01, 0, rows)), np.argmax(rows[:, :3], axis=1))
    return HistogramClassifier(**BLOCKS).fit_source(source, progress, engine=engine)


def killing(client, number):
    """Kills a worker after a block that was the first of two whose factors are held."""
    return AtBlock(2, lambda: os.kill([*client.run(os.getpid).values()][number], signal.SIGKILL))


@pytest.fixture(scope="module")
def blocks_alone():
    return learned(LocalEngine())


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_factors_of_a_worker_that_dies_are_computed_again(client, blocks_alone, number):
    progress = killing(client, number)
    found = learned(DaskEngine(client), progress)
    assert progress.left < 0
    np.testing.assert_allclose(found._coef, blocks_alone._coef, atol=2e-3 * np.abs(blocks_alone._coef).max())


def test_an_interrupted_sweep_leaves_out_rows_by_the_factor_of_its_latest_block(client):
    """After the first of two blocks whose factors are held."""
    found, alone = (learned(engine, AtBlock(2, press_ctrl_c)) for engine in (DaskEngine(client), LocalEngine()))
    assert found.n_rows_ == alone.n_rows_ < 6000
    np.testing.assert_allclose(found._coef, alone._coef, atol=2e-3 * np.abs(alone._coef).max())
    assert np.isfinite(found.held_out_).any()
    np.testing.assert_allclose(found.held_out_, alone.held_out_, atol=2e-3)


def test_a_worker_of_several_threads_factorises_with_all_of_them(blocks_alone):
    with workers(1, threads=3) as client:
        held = DaskEngine(client).hold()
        assert (held.n_holders, held.n_threads) == (1, 3)
        [piece] = held.put([lambda: 0])
        assert piece.call(lambda _: _threads.count()) == 3
        assert held.summed(lambda *_: np.array([_threads.count()]), [piece] * 4, piece, [0] * 4) == 4
        found = learned(DaskEngine(client))
    np.testing.assert_allclose(found._coef, blocks_alone._coef, atol=2e-3 * np.abs(blocks_alone._coef).max())


def test_large_arguments_go_to_the_holder_and_the_results_come_back(client):
    held = DaskEngine(client).hold()
    numbers = np.arange(3e6)  # 24 MB, of which Dask warns in the graph of a task
    pieces = held.put([lambda k=k: k for k in range(3)], first=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pieces[2].made(np.add, numbers).call(np.sum) == numbers.sum() + 2 * numbers.size
        total = held.summed(lambda piece, shared, own: piece + shared * own, pieces, pieces[2], [numbers] * 3)
    np.testing.assert_array_equal(total, 3 + 6 * numbers)


def test_the_only_worker_dies_with_rows_and_factors(of_one, blocks_alone):
    of_one.wait_for_workers(1, timeout=60)
    progress = killing(of_one, 0)
    found = learned(DaskEngine(of_one), progress)
    assert progress.left < 0
    np.testing.assert_allclose(found._coef, blocks_alone._coef, atol=2e-3 * np.abs(blocks_alone._coef).max())


def test_each_worker_holds_one_factor_and_lets_go_of_it(client, blocks_alone):
    held = []

    class Watching(Progress):
        def advance(self, amount=1):
            held.append(sorted(client.run(n_factors).values()))

    def n_factors(dask_worker):
        return sum(type(value).__name__ == "DualRidge" for value in dask_worker.data.values())

    found = learned(DaskEngine(client), Watching())
    np.testing.assert_array_equal(learned(DaskEngine(client))._coef, found._coef)  # sums do not depend on chance
    assert max(map(max, held)) == 1
    assert [1, 1] in held
    end = time.monotonic() + 20
    while any(client.run(n_factors).values()) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(client.run(n_factors).values())


def test_rows_that_no_worker_takes_are_refused():
    named = r"no Dask worker is connected to the scheduler at tcp://\S+, or one takes no rows"
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", silence_logs=50) as cluster,
        distributed.Client(cluster, timeout=1) as client,
        pytest.raises(DataError, match=named),
    ):
        learned(DaskEngine(client))


def test_workers_that_die_of_every_piece_are_named(client):
    pieces = DaskEngine(client).pieces(SAMPLE, 500)
    with pytest.raises(DataError, match="died one after the other as they chose landmarks"):
        pieces.map(lambda piece, shared: _killed_worker(), None)


def test_goes_on_from_a_checkpoint(client, found, rows, tmp_path, monkeypatch):
    monkeypatch.setattr("chimap.engines.dask._GROUP", 2)

    class Stopped(Exception):
        pass

    class Watched(Checkpoint):
        def reached(self, *standing):
            super().reached(*standing)
            raise Stopped

    whole = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit_source(rows, engine=client)
    with pytest.raises(Stopped):
        HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit_source(
            rows, engine=client, checkpoint=Watched(tmp_path / "c", 1e-9)
        )
    again = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit_source(
        rows, engine=client, checkpoint=tmp_path / "c"
    )
    np.testing.assert_array_equal(again._coef, whole._coef)


def test_bad_rows_are_named(client, tmp_path):
    X = np.random.default_rng(0).random((30_000, 8), dtype=np.float32)
    X[25_000, 3] = np.nan
    np.save(tmp_path / "bad.npy", X)
    source = open_source(tmp_path / "bad.npy", np.arange(30_000) % 2)
    with pytest.raises(DataError, match=r"bad\.npy, row 25000, column 3: NaN"):
        HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit_source(source, engine=client)


def test_text_cannot_be_read_in_parts(client, tmp_path):
    (tmp_path / "rows.svm").write_text("".join(f"{i % 2} 1:{i} 2:1\n" for i in range(200)))
    with pytest.raises(DataError, match=r"rows\.svm can be read from its beginning only"):
        HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit_source(
            SvmlightSource(tmp_path / "rows.svm"), engine=client
        )


def test_no_scheduler(rows, monkeypatch):
    monkeypatch.setattr("chimap.engines.dask_cluster._CONNECT_SECONDS", 0.5)
    with pytest.raises(DataError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9 "):
        HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit_source(rows, engine="tcp://127.0.0.1:9")
    with pytest.raises(ValueError, match="engine must be 'local', 'dask', the address"):
        HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit_source(rows, engine="spark")
