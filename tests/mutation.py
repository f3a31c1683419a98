"""Mutations of the source that no test notices.

    python tests/mutation.py src/chimap/moments src/chimap/solvers --mutants 10

Each mutant changes one operator, comparison or constant, or drops one term, of a copy of the package. The tests run
once with coverage, so that each mutant meets only those that run its line, the fastest first. Mutants that no test
notices are printed: they survive. One process, one thread.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import coverage
import pytest

ROOT = Path(__file__).resolve().parents[1]
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
EQUIVALENT = ROOT / "tests" / "equivalent_mutants.txt"
BYTES = 8 * 2**30  # a mutant that asks for more fails


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes that may stand in the place of this one."""
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
        if isinstance(node.op, ast.Add | ast.Sub):
            yield node.left
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
        yield ast.Compare(node.left, [OPERATORS[type(node.ops[0])](), *node.ops[1:]], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(OPERATORS[type(node.op)](), node.values)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield ast.Constant(node.value + 1)
        if isinstance(node.value, float):
            yield ast.Constant(node.value * 1.0001 or 0.0001)


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Fields of nodes that hold an expression, outside of annotations and of the text of messages."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns") or isinstance(tree, ast.JoinedStr | ast.Raise):
            continue
        for i, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                yield tree, name, i
                yield from places(child)


@dataclass(frozen=True)
class Mutant:
    """One change of a file."""

    lines: range
    change: str
    source: str


def mutants(source: str, count: int, seed: int) -> list[Mutant]:
    """Up to ``count`` mutants of a file, drawn by the seed."""
    sites = []
    for at, (parent, name, i) in enumerate(places(ast.parse(source))):
        node = getattr(parent, name) if i is None else getattr(parent, name)[i]
        sites += [(at, k) for k, _ in enumerate(changes(node))]
    drawn = []
    for at, k in sorted(random.Random(seed).sample(sites, min(count, len(sites)))):
        tree = ast.parse(source)
        parent, name, i = list(places(tree))[at]
        old = getattr(parent, name) if i is None else getattr(parent, name)[i]
        was, new = ast.unparse(old), copy.deepcopy(list(changes(old))[k])
        if i is None:
            setattr(parent, name, new)
        else:
            getattr(parent, name)[i] = new
        text = ast.unparse(ast.fix_missing_locations(tree))
        lines = range(old.lineno, (old.end_lineno or old.lineno) + 1)
        drawn.append(Mutant(lines, f"{was}  ->  {ast.unparse(new)}", text))
    return drawn


# what computes, and what is fast enough to be asked of every mutant
TESTS = (
    "kernels",
    "features",
    "moments",
    "solvers",
    "tables",
    "selection",
    "fit",
    "laws",
    "estimators/test_hinge.py",
    "kernel_learning",
    "estimators/test_histogram.py",
    "estimators/test_lookup.py",
    "estimators/test_moments_models.py",
    "estimators/test_online.py",
    "estimators/test_uncertainty.py",
)


@dataclass(eq=False)
class Recorded:
    """Plugin of pytest that notes the seconds of each test and the lines that it runs."""

    data: Path
    source: Path
    seconds: dict[str, float] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def pytest_sessionstart(self):
        self.tracer = coverage.Coverage(str(self.data), source=[str(self.source)], config_file=False)
        self.tracer.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self.tracer.switch_context(item.nodeid)
        start = time.perf_counter()
        result = yield
        self.seconds[item.nodeid] = time.perf_counter() - start
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        """Lines of a fixture that several tests share are run by all tests of its file."""
        if fixturedef.scope == "function":
            return (yield)
        self.tracer.switch_context(request.node.nodeid.split("::")[0])
        result = yield
        self.tracer.switch_context(request._pyfuncitem.nodeid)
        return result

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self):
        self.tracer.stop()
        self.tracer.save()
        passed = {name: seconds for name, seconds in self.seconds.items() if name not in self.failed}
        self.data.with_suffix(".json").write_text(json.dumps([passed, sorted(self.failed)]))


@dataclass(eq=False)
class ChosenSolution:
    """Plugin of pytest that runs these tests alone, in this order."""

    order: dict[str, int]

    def pytest_collection_modifyitems(self, items):
        items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda i: self.order[i.nodeid])


def tests_pass(work: Path, arguments: list[str], plugin: object, *, limit: int) -> bool:
    """Whether tests pass in a child, which starts with the libraries loaded and with nothing of chimap."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    os.chdir(work)
    sys.path.insert(0, str(work / "src"))
    sys.dont_write_bytecode = True
    output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
    signal.alarm(limit)  # its default action ends the child, in compiled loops as well: a mutant that hangs is noticed
    code = 1
    with contextlib.suppress(BaseException):
        code = int(pytest.main(["-q", "-n0", "-p", "no:cacheprovider", *arguments], plugins=[plugin]))
    os._exit(code)


@dataclass(frozen=True)
class Tests:
    """Tests, their seconds, and which of them run each line of each file."""

    seconds: dict[str, float]
    runs: dict[str, dict[int, set[str]]]  # by path in the copy and by line

    @classmethod
    def record(cls, work: Path, folders: list[str]) -> Tests:
        """Run the tests of the folders once."""
        data = work / "recorded"
        if not tests_pass(work, folders, Recorded(data, work / "src"), limit=3600):
            print((work / "output").read_text()[-3000:])
        seconds, failed = json.loads(data.with_suffix(".json").read_text())
        if failed:
            print(f"left out, for they fail without a mutant: {', '.join(failed)}")
        known = coverage.CoverageData(str(data))
        known.read()
        runs = {}
        for path in known.measured_files():
            runs[path] = defaultdict(set)
            for line, names in known.contexts_by_lineno(path).items():
                runs[path][line] = set(names) - {""}
        return cls(seconds, runs)

    def of(self, path: Path, lines: range, budget: float) -> list[str]:
        """Tests that run these lines, or any of the file where they run on import, within the budget of seconds.

        Of each test function the fastest set of parameters comes first, then the next of each.
        """
        by_line = self.runs.get(str(path), {})
        names = set().union(*(by_line.get(line, ()) for line in lines)) or set().union(*by_line.values())
        functions = defaultdict(list)
        for name in sorted(self.seconds, key=lambda name: (self.seconds[name], name)):
            if name in names or name.split("::")[0] in names:
                functions[name.split("[")[0]].append(name)
        ranks = {name: i for group in functions.values() for i, name in enumerate(group)}
        chosen, total = [], 0.0
        for name in sorted(ranks, key=lambda name: (ranks[name], self.seconds[name])):
            if not chosen or total + self.seconds[name] <= budget:
                total += self.seconds[name]
                chosen.append(name)
        return chosen


def survives(work: Path, path: Path, mutant: Mutant, tests: Tests, budget: float) -> bool:
    """Whether no test that runs the line of a mutant of this file, in the copy, fails."""
    names = tests.of(path, mutant.lines, budget)
    if not names:
        return True
    original = path.read_text()
    path.write_text(mutant.source)
    # compiled loops of the mutant are kept apart: they take in what other files of ``_loops`` say
    with tempfile.TemporaryDirectory() as cache:
        if "_loops" in path.parts:
            os.environ["NUMBA_CACHE_DIR"] = cache
        try:
            plugin = ChosenSolution({name: i for i, name in enumerate(names)})
            files = list(dict.fromkeys(name.split("::")[0] for name in names))
            limit = 60 + 5 * int(sum(tests.seconds[name] for name in names))
            return tests_pass(work, ["-x", *files], plugin, limit=limit)
        finally:
            os.environ.pop("NUMBA_CACHE_DIR", None)
            path.write_text(original)


def judged() -> set[tuple[str, str, str]]:
    """(file, line of code, change) of mutants that change no answer."""
    lines = [line for line in EQUIVALENT.read_text().splitlines() if not line.startswith("#")]
    return {tuple(line.rsplit("  ## ", 1)[0].split("  |  ")) for line in lines}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, help="files or folders of src/chimap")
    parser.add_argument("--mutants", type=int, default=10, help="of each file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=30, help="of tests for each mutant")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="files or folders of tests/")
    arguments = parser.parse_args()
    given = [path.resolve() for path in arguments.paths]
    files = sorted(f for path in given for f in (path.rglob("*.py") if path.is_dir() else [path]))
    folders = [f"tests/{name}" for name in arguments.tests]
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for library in ("numpy", "scipy.stats", "sklearn.linear_model", "sklearn.pipeline", "numba", "hypothesis"):
        importlib.import_module(library)
    tried, survived, equivalent = 0, 0, judged()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder).resolve() / "copy"
        left_out = shutil.ignore_patterns(".git", ".venv", "site", ".mypy_cache", ".ruff_cache")
        shutil.copytree(ROOT, work, ignore=left_out)
        tests = Tests.record(work, folders)
        print(f"{len(tests.seconds)} tests, {sum(tests.seconds.values()):.0f} s", flush=True)
        for name in (path.relative_to(ROOT) for path in files):
            path = work / name
            drawn = mutants(path.read_text(), arguments.mutants, arguments.seed)
            code = path.read_text().splitlines()
            drawn = [m for m in drawn if (str(name), code[m.lines[0] - 1].strip(), m.change) not in equivalent]
            left = [mutant for mutant in drawn if survives(work, path, mutant, tests, arguments.seconds)]
            for mutant in left:
                print(f"{name}:{mutant.lines[0]}: {mutant.change}")
            tried, survived = tried + len(drawn), survived + len(left)
            print(f"{name}: {len(left)} of {len(drawn)}; so far {survived} of {tried}", flush=True)
    print(f"{survived} of {tried} mutants survived ({survived / max(tried, 1):.1%})")
    return int(survived > 0.1 * tried)


if __name__ == "__main__":
    sys.exit(main())
