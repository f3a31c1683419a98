"""Damaged files of every format: whatever is done to one, opening and reading it ends in rows or in a DataError that
names the file. The seeds are fixed; ``-m slow`` tries thousands.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest

N_QUICK, N_SLOW = 14, 250  # files a format

# Runs in a process of its own: a crash of a library must fail a test and not end the suite.
_TRY = textwrap.dedent(
    """
    import faulthandler, json, pathlib, resource, sys, traceback, warnings
    import numpy as np

    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (12 * 2**30,) * 2)
    warnings.simplefilter("ignore")
    from chimap import open_source
    from chimap._validation import DataError
    from chimap.readers.named_counts import NamedCounts
    from tests.readers.mutations import mutated

    folder, log = pathlib.Path(sys.argv[1]), open(sys.argv[2], "w")
    for name, n_files in json.loads(sys.argv[3]).items():
        whole = (folder / name).read_bytes()
        for seed in range(n_files):
            path = folder / f"bad{seed}-{name}"
            path.write_bytes(mutated(whole, seed, name))
            print(json.dumps([path.name, seed, "begun", ""]), file=log, flush=True)
            try:
                reading = NamedCounts("counts") if name.endswith(".jsonl") else None
                source = open_source(path, reading=reading)
                rows = sum(chunk.X.shape[0] for chunk in source.chunks(16))
                assert rows == source.n_rows
                end, said = "rows", ""
            except DataError as error:
                end, said = "refused" if path.name.split("::")[0] in str(error) else "unnamed", str(error)
            except BaseException:
                end, said = "fault", traceback.format_exc()
            print(json.dumps([path.name, seed, end, said]), file=log, flush=True)
            path.unlink()
    """
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A small whole file of each format."""
    from .mutations import whole_files

    folder = tmp_path_factory.mktemp("fuzz")
    return folder, whole_files(folder)


def faults_of(folder, formats, n_files, root, seconds):
    log = folder / "log.jsonl"
    counts = json.dumps(dict.fromkeys(formats, n_files))
    done = subprocess.run(
        [sys.executable, "-c", _TRY, str(folder), str(log), counts],
        capture_output=True,
        text=True,
        timeout=seconds,
        cwd=root,
        check=False,
    )
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    ends: dict[str, int] = {}
    for _, _, end, _ in lines:
        ends[end] = ends.get(end, 0) + 1
    bad = [(name, seed, end, said[-600:]) for name, seed, end, said in lines if end in ("fault", "unnamed")]
    if done.returncode:
        bad.append((*lines[-1][:2], f"process ended by {done.returncode}", done.stderr[-1500:]))
    return bad, ends


@pytest.mark.slow
def test_damaged_files_are_read_or_refused_by_name(files, request):
    folder, formats = files
    bad, ends = faults_of(folder, formats, N_QUICK, request.config.rootpath, 200)
    assert not bad, "\n\n".join(" ".join(map(str, each)) for each in bad)
    assert ends["refused"] > ends["begun"] / 4  # or the mutations do nothing
    assert ends["rows"] > 5


@pytest.mark.thorough
def test_thousands_of_damaged_files(files, request):
    folder, formats = files
    bad, _ = faults_of(folder, formats, N_SLOW, request.config.rootpath, 3000)
    assert not bad, "\n\n".join(" ".join(map(str, each)) for each in bad)


def test_mutations_are_the_same_each_time():
    from .mutations import mutated

    whole = bytes(range(256)) * 4
    for seed in range(20):
        assert mutated(whole, seed, "rows.npy") == mutated(whole, seed, "rows.npy")
    assert len({mutated(whole, seed, "rows.npy") for seed in range(20)}) > 15
    assert np.array_equal(np.frombuffer(whole, np.uint8)[:256], np.arange(256))
