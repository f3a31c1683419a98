"""Bad input: one line that says where, what was expected, what came, what to do; exit code 2; nothing left behind."""

from __future__ import annotations

import ctypes
import gzip
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import chimap
from chimap._errors import DataError, InputError, MemoryBudgetError, MissingPackageError, ParameterError
from chimap.cli import messages
from chimap.cli.main import _explain

from .conftest import SMALL
from .terminal import run, run_many

OUT = ["-o", "out.model"]
CHI2 = ["--kernel", "chi2"]  # which takes no negative bins

# name: (arguments, what the line says)
CASES: dict[str, tuple[list[str], str]] = {
    "no command": (["fitt", "digits.npz"], r"No such command 'fitt'.*'fit'.*chimap --help"),
    "no output": (["fit", "digits.npz"], r"Missing option '--output'.*chimap fit --help"),
    "no data": (["fit", *OUT], r"Missing argument 'DATA'"),
    "no such file": (["fit", "nothing.npz", *OUT], r"No such file: nothing\.npz"),
    "no such model": (["predict", "no.model", "digits.npz", "-o", "a.csv"], r"no\.model: no such file"),
    "unknown ending": (["fit", "names.pdf", *OUT], r"names\.pdf: unknown kind of file.*\.npz"),
    "a folder": (["fit", ".", *OUT], r"a folder without parts; expected files that end in .*or images in a folder for"),
    "no bins of molecules": (
        ["fit", "names.csv", "--smiles", "zero", "--morgan-size", "0", *OUT],
        r"--morgan-size must be a positive whole number; got 0",
    ),
    "no radius of molecules": (
        ["fit", "names.csv", "--smiles", "zero", "--morgan-radius", "-1", *OUT],
        r"--morgan-radius must be a whole number, 0 or more; got -1",
    ),
    "no archive": (["fit", "zip://rows.npy", *OUT], r"zip://rows\.npy is in an archive, but the archive is not named"),
    "cannot be reached": (["fit", "ftp://127.0.0.1:9/a.npy", *OUT], r"ftp://127\.0\.0\.1:9/a\.npy: cannot be reached"),
    "empty file": (["fit", "empty.npz", *OUT], r"empty\.npz is empty \(0 bytes\)"),
    "empty rows": (["fit", "no-rows.npy", *OUT], r"no-rows\.npy: empty, shape \(0, 4\)"),
    "npz cut off": (["fit", "cut.npz", *OUT], r"cut\.npz: not an \.npz archive, or cut off.*Copy it again"),
    "npy cut off": (["fit", "cut.npy", *OUT], r"cut\.npy: cut off: its header promises shape \(1797, 64\)"),
    "gzip cut off": (["fit", "cut.svm.gz", *OUT], r"cut\.svm\.gz, after line \d+: cannot be decompressed"),
    "objects": (["fit", "objects.npz", *OUT], r"objects\.npz::X: .*never unpickled"),
    "text in a number": (["fit", "text.svm", *OUT], r"text\.svm, line 2: value 'x' of column 2, expected a number"),
    "negative": (["fit", "negative.npz", *CHI2, *OUT], r"negative\.npz, row 1500, column 7: -3\. .*--kernel gaussian"),
    "nan": (["fit", "nan.npz", *OUT], r"nan\.npz, row 1600, column 5: NaN.*remove the row"),
    "infinity": (["fit", "infinity.npz", *OUT], r"infinity\.npz, row 2, column 0: infinity"),
    "too large": (["fit", "large.npz", *OUT], r"large\.npz, row 3: a bin is too large.*--precision float64"),
    "class held out": (
        ["fit", "rare.npz", "--test-fraction", "0.9", *OUT],
        r"all rows of 1 class, such as 77, are held out.*--seed",
    ),
    "sparse negative": (["fit", "sparse-negative.npz", *CHI2, *OUT], r"sparse-negative\.npz, row 1, column 2: -1"),
    # the row is that of the file, not of the part that is held out or trained on
    "nan in a part": (["fit", "nan.npz", *OUT, "--test-fraction", "0.5"], r"nan\.npz, row 1600, column 5: NaN"),
    "nan to predict": (["predict", "digits.model", "nan.npz", "-o", "a.csv"], r"nan\.npz, row 1600, column 5: NaN"),
    "nan to evaluate": (["evaluate", "digits.model", "nan.npz"], r"nan\.npz, row 1600, column 5: NaN"),
    "wrong width": (["predict", "digits.model", "narrow.npy", "-o", "a.csv"], r"narrow\.npy: 10 bins per row.*on 64"),
    "labels missing": (["fit", "rows.npy", *OUT], r"rows\.npy has no labels\. Name them with --labels"),
    "labels missing to evaluate": (["evaluate", "digits.model", "unlabelled.npz"], r"unlabelled\.npz has no labels"),
    "labels not there": (["fit", "rows.npy", "--labels", "no.csv", *OUT], r"No such file: no\.csv"),
    "labels too few": (["fit", "rows.npy", "--labels", "few.txt", *OUT], r"few\.txt: 3 labels for 1797 rows"),
    "label not finite": (["fit", "label-inf.npz", *OUT], r"label-inf\.npz::y, row 9: inf"),
    "one class": (["fit", "one-class.npz", *OUT], r"one class only.*at least two"),
    "unknown label": (["evaluate", "parity.model", "digits.npz"], r"digits\.npz, row 2: label 2 is not among the 2"),
    "text for numbers": (["evaluate", "ink.model", "rows.npy", "--labels", "names.csv"], r"row 0: label 'zero'"),
    "regress on text": (
        ["fit", "rows.npy", "--labels", "names.csv", "--task", "regress", *OUT],
        r"row 0: label 'zero', but a regression needs numbers",
    ),
    "classify fractions": (["fit", "ink.npz", "--task", "classify", *OUT], r"--task classify needs whole numbers"),
    "memory too small": (
        ["fit", "digits.npz", "--memory", "1MiB", *OUT, *SMALL],
        r"--memory 1\.0 MiB is too small.* Give --memory \d+MiB, or fewer --components",
    ),
    "memory not a size": (["fit", "digits.npz", "--memory", "much", *OUT], r"--memory must be .*'512MiB'.*got 'much'"),
    "a weight of 0": (
        ["fit", "digits.npz", "--kernel", "0*minmax", *OUT],
        r"a weight above 0, such as 2\*minmax; got '0",
    ),
    "unknown kernel": (["fit", "digits.npz", "--kernel", "rbf", *OUT], r"--kernel must be auto or .*chi2, .*got 'rbf'"),
    "features": (
        ["fit", "digits.npz", "--features", "nonsense", *OUT],
        r"error: --features must be one of auto, additive, .*exact; got 'nonsense'",
    ),
    "gamma": (["fit", "digits.npz", "--gamma", "-1", *OUT], r"--gamma must be 'mean' or a positive number.*got '-1'"),
    "alpha": (["fit", "digits.npz", "--alpha", "0", *OUT], r"--alpha must be 'auto' or a positive number"),
    "components": (["fit", "digits.npz", "--components", "3.5", *OUT], r"--components must be auto or .*got '3\.5'"),
    "folds": (["fit", "digits.npz", "--folds", "1", *OUT], r"--folds must be a whole number of at least 2; got 1"),
    "fraction": (["fit", "digits.npz", "--test-fraction", "1", *OUT], r"--test-fraction must be .*below 1; got 1"),
    "task": (["fit", "digits.npz", "--task", "rank", *OUT], r"--task'?: 'rank' is not one of"),
    "engine": (["fit", "digits.npz", "--engine", "moon", *OUT], r"--engine'?: 'moon' is not"),
    "hinge on workers": (
        ["fit", "digits.npz", "--loss", "hinge", "--engine", "dask", *OUT],
        r"--loss hinge keeps .* use --engine local, or --loss squared_hinge",
    ),
    "no checkpoint of hinge": (
        ["fit", "digits.npz", "--loss", "hinge", "--checkpoint", "a.checkpoint", *OUT],
        r"--loss hinge keeps .* cannot write a checkpoint",
    ),
    "unlabelled for nothing": (["fit", "digits.npz", "--unlabelled", "rows.npy", *OUT, *SMALL], r"give --principal"),
    "output exists": (["fit", "digits.npz", "-o", "digits.model"], r"--output digits\.model exists.*add --overwrite"),
    "output is the input": (
        ["fit", "digits.npz", "-o", "digits.npz", "--overwrite"],
        r"--output digits\.npz is the input digits\.npz itself",
    ),
    "output is the address of the input": (
        ["fit", "file://digits.npz", "-o", "digits.npz", "--overwrite"],
        r"--output digits\.npz is the input file://digits\.npz itself",
    ),
    "output is the archive of the input": (
        ["fit", "zip://digits.npz::digits.npz", "-o", "digits.npz", "--overwrite"],
        r"--output digits\.npz is the input zip://digits\.npz::digits\.npz itself",
    ),
    "output folder missing": (["fit", "digits.npz", "-o", "no/a.model"], r"the folder no does not exist; create it"),
    "output below a file": (["fit", "digits.npz", "-o", "rows.npy/a.model"], r"rows\.npy is a file, not a folder"),
    "output is a folder": (["fit", "digits.npz", "-o", "."], r"--output \. is a folder; name a file in it"),
    "predictions exist": (["predict", "digits.model", "rows.npy", "-o", "few.txt"], r"--output few\.txt exists"),
    "predictions ending": (["predict", "digits.model", "rows.npy", "-o", "a.pdf"], r"a\.pdf: .* \.csv, \.npy, \.npz"),
    "scores in npy": (["predict", "digits.model", "rows.npy", "-o", "a.npy", "--scores"], r"\.npy holds one array"),
    "scores of numbers": (["predict", "ink.model", "rows.npy", "-o", "a.csv", "--scores"], r"model is a regression"),
    "json and stdout": (["predict", "digits.model", "rows.npy", "-o", "-", "--json"], r"both write to stdout"),
    "report exists": (["evaluate", "digits.model", "digits.npz", "-o", "few.txt"], r"--output few\.txt exists"),
    "not a model": (["predict", "digits.npz", "digits.npz", "-o", "a.csv"], r"digits\.npz is not a chimap file"),
    "model cut off": (["evaluate", "cut.model", "digits.npz"], r"cut\.model is not a chimap file, or it is cut off"),
    "model cut off, info": (["info", "cut.model"], r"cut\.model"),
    "plan without data": (["info", "--memory", "1GiB"], r"--memory plans a fit on a data file"),
    "plan too small": (["info", "digits.npz", "--memory", "1MiB"], r"--memory 1\.0 MiB is too small"),
    "demo below a file": (["demo", "-o", "rows.npy/demo"], r"rows\.npy is a file, not a folder"),
    "demo in a taken folder": (["demo", "-o", "taken"], r"taken holds digits\.npz, not written by 'chimap demo'"),
}


def write_bad_files(folder: Path) -> None:
    X, y = np.load(folder / "rows.npy"), np.load(folder / "digits.npz")["y"]
    for name, row, column, value in (
        ("negative", 1500, 7, -3),
        ("nan", 1600, 5, np.nan),
        ("infinity", 2, 0, np.inf),
        ("large", 3, 1, 1e39),
    ):
        bad = X.astype(float)
        bad[row, column] = value
        np.savez(folder / f"{name}.npz", X=bad, y=y)
    np.savez(folder / "one-class.npz", X=X, y=np.ones(len(X), int))
    np.savez(folder / "rare.npz", X=X, y=np.where(np.arange(len(X)) == 10, 77, y))
    np.savez(folder / "label-inf.npz", X=X, y=np.where(np.arange(len(X)) == 9, np.inf, y))
    np.savez(folder / "objects.npz", X=X.astype(object), y=y)
    sparse = sp.csr_matrix(np.array([[1.0, 0, 0], [0, 2, -1]] * 4))
    np.savez(
        folder / "sparse-negative.npz",
        data=sparse.data,
        indices=sparse.indices,
        indptr=sparse.indptr,
        shape=sparse.shape,
        y=[0, 1] * 4,
    )
    np.save(folder / "narrow.npy", X[:, :10])
    np.save(folder / "no-rows.npy", np.ones((0, 4)))
    (folder / "few.txt").write_text("1\n2\n3\n")
    (folder / "empty.npz").touch()
    (folder / "names.pdf").write_text("text")
    (folder / "text.svm").write_text("1 1:2 2:1\n0 1:1 2:x\n")
    text = (folder / "first.svm").read_bytes()
    (folder / "cut.svm.gz").write_bytes(gzip.compress(text)[:-1000])
    for name in ("digits.npz", "rows.npy", "digits.model"):
        content = (folder / name).read_bytes()
        (folder / f"cut.{name.partition('.')[2]}").write_bytes(content[: len(content) // 2])
    (folder / "taken").mkdir()
    (folder / "taken" / "digits.npz").write_text("mine")


@pytest.fixture(scope="module")
def results(folder):
    """Every case, run once in the folder that must not change."""
    write_bad_files(folder)
    before = contents(folder)
    found = dict(zip(CASES, run_many([arguments for arguments, _ in CASES.values()], folder), strict=True))
    assert contents(folder) == before, "an error left a file behind, or changed one"
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("name", CASES)
def test_one_clear_line(results, name):
    result = results[name]
    assert result.code == 2, result
    assert result.out == "" or "--json" in CASES[name][0]
    lines = result.err.splitlines()
    assert len(lines) == 1, result.err
    assert lines[0].startswith("chimap: error: ")
    assert re.search(CASES[name][1], lines[0]), lines[0]


@pytest.mark.slow
def test_the_same_from_a_fresh_interpreter(folder):
    commands = [CASES[name][0] for name in ("negative", "output exists")]
    assert [run(*command, cwd=folder) for command in commands] == run_many(commands, folder)


def test_without_a_command_help_is_shown(folder):
    result = run(cwd=folder)
    assert result.code == 2
    assert "Usage: chimap" in result.err
    assert "demo" in result.err


def test_errors_are_json_with_json(folder):
    result, usage = run_many([["fit", "rows.npy", "-o", "a.model", "--json"], ["fit", "rows.npy", "--json"]], folder)
    assert result.code == 2
    assert result.json["exit_code"] == 2
    assert result.json["error"].startswith("rows.npy has no labels")
    assert result.err.startswith("chimap: error: rows.npy has no labels")
    assert "Missing option '--output'" in usage.json["error"]


def test_a_fault_of_the_program_is_told_apart(capsys):
    from chimap.cli import messages

    with pytest.raises(ValueError, match="broadcast") as caught:
        np.ones(3) + np.ones(4)
    assert messages.explain(caught.value) == 1
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "Please report it" in said


@pytest.mark.parametrize(
    ("error", "is_of_input"),
    [
        (DataError("no rows"), True),
        (ParameterError("n_terms", 0, "a positive whole number"), True),
        (MemoryBudgetError("too small"), True),
        (InputError("--output and --json"), True),
        (MissingPackageError("pip install"), True),
        (FileNotFoundError("rows.npz"), True),
        (ValueError("zip() argument 2 is longer than argument 1"), False),
        (TypeError("unsupported operand"), False),
        (KeyError("alpha"), False),
        (ImportError("cannot import name"), False),
    ],
)
def test_only_exceptions_of_the_package_blame_the_input(error, is_of_input):
    assert messages.is_fault_of_input(error) == is_of_input


# Checks of one part of the package by another: what fails them is a bug.
BETWEEN_PARTS = ("_blas.py", "_threads.py", "solvers/blocks.py", "_loops/_compile.py")


def test_checks_of_input_raise_exceptions_of_the_package():
    """A ``raise ValueError`` would be reported as a bug of chimap."""
    home = Path(chimap.__file__).parent
    for path in home.rglob("*.py"):
        if path.relative_to(home).as_posix().endswith(BETWEEN_PARTS):
            continue
        raised = re.findall(r"raise (ValueError|ImportError)\(", path.read_text(encoding="utf-8"))
        assert not raised, f"{path}: raise InputError or MissingPackageError of chimap._errors instead"


@pytest.mark.parametrize(("raised", "code"), [(KeyboardInterrupt(), 130), (SystemExit(143), 143)])
def test_signals_that_arrive_while_an_argument_of_a_c_function_is_made(raised, code):
    class Argument:
        @classmethod
        def from_param(cls, value):
            raise value

    function = ctypes.CFUNCTYPE(None, ctypes.py_object)(lambda value: None)
    function.argtypes = [Argument]
    with pytest.raises(ctypes.ArgumentError) as made:
        function(raised)
    assert _explain(made.value) == code
    assert _explain(ctypes.ArgumentError("argument 1: TypeError: wrong type")) == 1
