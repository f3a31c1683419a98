"""A process with libraries and loops loaded, which forks a child for each command that it reads.

``terminal.run_many`` starts it. Lines of JSON come in, a command with its folder and environment; its exit code, stdout
and stderr go out.
"""

# ruff: noqa: E402

from __future__ import annotations

import json
import os
import sys
import tempfile

from chimap.cli.main import main
from chimap.cli.support import blas

blas.prepare_blas()  # before numpy is loaded

import numpy as np
import scipy.sparse as sp

from chimap import HistogramClassifier, report
from chimap._threads import one_thread


def warm() -> None:
    """Use what most commands use: to load a loop from numba's cache takes longer than most fits."""
    X, y = np.random.default_rng(0).poisson(1.0, (200, 16)).astype(np.float32), np.arange(200) % 2
    with one_thread():  # a process that forks should have no threads
        for rows in (X, sp.csr_matrix(X)):
            for kernel, features in (("exp-chi2", "exact"), ("exp-chi2", "landmarks"), ("chi2", "additive")):
                model = HistogramClassifier(kernel, features=features, n_components=16, random_state=0)
                answers = model.fit(rows, y).predict(rows)
        metrics = report.classification_metrics(y, answers)
        report.render_report(report.Evaluation("", "", data={}, metrics=metrics))


def run(request: dict, out: int, err: int) -> None:
    """The command, in a child; it ends there."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    code = 99
    try:
        blas.prepare_blas()
        code = main(request["command"])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    warm()
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            child = os.fork()
            if child == 0:
                run(json.loads(line), out.fileno(), err.fileno())
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            out.seek(0)
            err.seek(0)
            print(json.dumps([code, out.read(), err.read()]), flush=True)
