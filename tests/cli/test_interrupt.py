"""Ctrl-C in the middle: exit code 130, nothing left."""

from __future__ import annotations

import os
import signal
import time

import psutil
import pytest

from chimap.data.synthetic import write_histograms

from .terminal import start

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="no SIGINT to another process there")]


@pytest.fixture(scope="module")
def long_fit(tmp_path_factory):
    """A folder, and the arguments of a fit there that takes a minute or more."""
    folder = tmp_path_factory.mktemp("interrupt")
    write_histograms(folder / "rows.npy", 100_000, 96, seed=0, labels_path=folder / "labels.npy")
    return folder, [
        "fit",
        "rows.npy",
        "--labels",
        "labels.npy",
        "-o",
        "my.model",
        "--components",
        "8192",
        "--alpha",
        "1",
        "--memory",
        "4GiB",
        "--jobs",
        "1",
    ]


@pytest.mark.parametrize(
    ("sent", "code", "message"),
    [(signal.SIGINT, 130, "chimap: interrupted; nothing was written"), (signal.SIGTERM, 143, "")],
)
def test_a_running_fit(long_fit, sent, code, message):
    folder, arguments = long_fit
    process = start(*arguments, cwd=folder)
    try:
        while process.is_running() and sum(psutil.Process(process.pid).cpu_times()[:2]) < 1.5:
            time.sleep(0.05)  # into the pass, however busy the machine
        assert process.is_running(), process.result()
        process.send(sent)
        found, out, err = process.result()
    finally:
        process.send(signal.SIGKILL)
    assert found == code, err
    assert out == ""
    assert message in err
    assert "Traceback" not in err
    assert sorted(p.name for p in folder.iterdir()) == ["labels.npy", "rows.npy"]
