"""A process with libraries and loops loaded, which forks a child for each command that it reads.

``terminal.start`` starts it. Messages of JSON come in, a command with its folder and environment, and with each of them
the files that it shall write to. A process between the two waits for the command, so that several may run.
"""

# ruff: noqa: E402

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import signal
import socket
import sys

from chimap.cli import machine, main

machine.prepare_blas()  # before numpy is loaded

import numpy as np
import scipy.sparse as sp

from chimap import HistogramClassifier, reports
from chimap._threads import one_thread


def warm() -> None:
    """Use what most commands use: to load a loop from numba's cache takes longer than most fits."""
    X, y = np.random.default_rng(0).poisson(1.0, (200, 16)).astype(np.float32), np.arange(200) % 2
    with one_thread():  # a process that forks should have no threads
        for rows in (X, sp.csr_matrix(X)):
            for kernel, features in (("exp-chi2", "exact"), ("exp-chi2", "landmarks"), ("chi2", "additive")):
                model = HistogramClassifier(kernel, features=features, n_components=16, random_state=0)
                answers = model.fit(rows, y).predict(rows)
        metrics = reports.classification_metrics(y, answers)
        reports.Evaluation("", "", data={}, metrics=metrics).to_html()
        with contextlib.redirect_stdout(io.StringIO()):
            main.main(["fit", "--help"])


def run(request: dict, out: int, err: int) -> None:
    """The command, in a child; it ends there."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    if request["largest_file"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["largest_file"],) * 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which tests started in the background ignore
    sys.argv[1:] = request["command"]
    code = 99
    try:
        main.run()
    except SystemExit as ended:
        code = ended.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def watch(request: dict, out: int, err: int, told: int) -> None:
    """Fork the command; tell its number, and, once it has ended, its exit code."""
    child = os.fork()
    if child == 0:
        os.close(told)
        run(request, out, err)
    os.write(told, str(child).encode())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.write(told, str(code).encode())
    os._exit(0)


def serve(connection: socket.socket) -> None:
    """Until the other end is closed."""
    while True:
        length, files, _, _ = socket.recv_fds(connection, 8, 3)
        if not length:
            return
        message = connection.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL)
        if os.fork() == 0:
            connection.close()
            watch(json.loads(message), *files)
        for file in files:
            os.close(file)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


if __name__ == "__main__":
    warm()
    serve(socket.socket(fileno=int(sys.argv[1])))
