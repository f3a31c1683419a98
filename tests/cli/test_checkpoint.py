"""Fits that are killed in the middle, and go on."""

from __future__ import annotations

import random
import signal
import time

import numpy as np
import pytest

from chimap import load
from chimap.data.synthetic import write_histograms

from .terminal import run_here, run_many, start

N_ROWS = 240_000


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kill")
    write_histograms(folder / "rows.npy", N_ROWS, 64)
    return folder


def command(output):
    return [
        "fit",
        "rows.npy",
        "--labels",
        "rows_labels.npy",
        "--components",
        "512",
        "--memory",
        "16MiB",
        "--jobs",
        "1",
        "--checkpoint",
        f"{output}.checkpoint",
        "--checkpoint-every",
        "0.01",
        "--output",
        output,
    ]


def written(folder, name, times):
    """A fit that has been seen to write its checkpoint so many times, or has ended; and how many were seen."""
    process, path = start(*command(name), cwd=folder), folder / f"{name}.checkpoint"
    seen, last = 0, None
    while process.is_running() and seen < times:
        try:
            now = path.stat().st_mtime_ns
        except FileNotFoundError:
            now = last
        seen, last = seen + (now != last), now
        time.sleep(0.001)
    return process, seen


def killed_and_resumed(folder, name, times, seconds):
    """Kill a fit ``seconds`` after it wrote its checkpoint so many times, and run it again until it ends."""
    process, _ = written(folder, name, times)
    time.sleep(seconds)
    process.send(signal.SIGKILL)
    was_killed = process.result().code == -signal.SIGKILL
    [again] = run_many([[*command(name), "--overwrite"]], folder)
    assert again.code == 0, again.err
    assert not (folder / f"{name}.checkpoint").exists()
    return was_killed, load(folder / name)


def check_kills(folder, times):
    whole, n_written = written(folder, "whole.model", float("inf"))
    assert whole.result().code == 0, whole.result()
    assert n_written > 3
    expected = load(folder / "whole.model")
    draw, killed, tries = random.Random(0), 0, 0
    while killed < times:
        # A busy machine shows this process fewer checkpoints than were written: a fit may end before its turn to be
        # killed comes. It is checked as well, and another one is tried.
        tries += 1
        assert tries <= 4 * times, f"{killed} of {tries - 1} fits could be killed"
        # somewhere between two checkpoints, in the first half of them
        at, delay = draw.randint(1, n_written // 2), draw.uniform(0, 0.05)
        was_killed, found = killed_and_resumed(folder, f"{tries}.model", at, delay)
        np.testing.assert_array_equal(found._coef, expected._coef)
        np.testing.assert_array_equal(found._intercept, expected._intercept)
        killed += was_killed


@pytest.mark.slow
def test_three_kills(data):
    check_kills(data, 3)


@pytest.mark.thorough
def test_twenty_kills(data):
    check_kills(data, 20)


@pytest.mark.slow
def test_another_fit_is_refused(data):
    process, _ = written(data, "other.model", 1)
    process.send(signal.SIGKILL)
    process.result()
    [refused] = run_many([[*command("other.model"), "--components", "256", "--overwrite"]], data)
    assert refused.code == 2
    assert "checkpoint of another fit: --components was 512 and is 256" in refused.err


@pytest.mark.slow  # which imports Dask
def test_a_scheduler_that_does_not_answer_is_named(data, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("chimap.engines.dask_cluster._CONNECT_SECONDS", 0.5)
    command = ["fit", "rows.npy", "--labels", "rows_labels.npy", "--output", "far.model"]
    refused = run_here(*command, "--engine", "dask", "--scheduler", "tcp://127.0.0.1:9", cwd=data)
    assert refused.code == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in " ".join(refused.err.split())
    assert not (data / "far.model").exists()
