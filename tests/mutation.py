"""Mutations of the source that no test notices.

    python tests/mutation.py src/chimap/moments src/chimap/solvers --mutants 10

Each mutant changes one operator, comparison or constant, or drops one term, of a copy of the package; the tests that
mirror the file (tests/<folder> and its laws) run on the copy. Those that pass with a mutant are printed: they survive.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
SECONDS = 300  # a mutant that takes longer than this hangs, and is noticed by that


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
            yield ast.Constant(node.value * 1.0001)


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Fields of nodes that hold an expression, outside of annotations and of the text of messages."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns") or isinstance(tree, ast.JoinedStr | ast.Raise):
            continue
        for i, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                yield tree, name, i
                yield from places(child)


def mutants(source: str, count: int, seed: int) -> list[tuple[int, str, str]]:
    """Up to ``count`` of (line, what became what, source), drawn by the seed."""
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
        drawn.append((getattr(old, "lineno", 0), f"{was}  ->  {ast.unparse(new)}", text))
    return drawn


LAWS = {
    "additive": ("maps", "transformers"),
    "fourier": ("fourier", "transformers"),
    "kernels": ("kernels",),
    "moments": ("moments",),
    "tables": ("tables",),
    "losses": ("losses", "objectives"),
    "penalties": ("penalties", "objectives"),
}


def tests_of(path: Path) -> list[str]:
    """The tests that mirror a file of the package: its namesake, which ends most mutants, its folder, its laws."""
    folder = path.relative_to(ROOT / "src" / "chimap").parent
    mirrors = [ROOT / "tests" / folder / f"test_{path.stem}.py", ROOT / "tests" / folder]
    mirrors += [ROOT / "tests" / "laws" / f"test_{law}.py" for law in LAWS.get(folder.name, ())]
    if folder.name == "_loops":  # each serves the folder of its name; kernels, maps and sums are of all
        mirrors = [ROOT / "tests" / name for name in ("kernels", "features", "tables", "moments", "laws")]
    return [str(mirror.relative_to(ROOT)) for mirror in mirrors if mirror.exists()]


def survives(work: Path, path: Path, text: str) -> bool:
    copied = work / path.relative_to(ROOT)
    original = copied.read_text()
    copied.write_text(text)
    # compiled loops of the mutant are its own: they take in what other files of ``_loops`` say
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPATH": str(work / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        if "_loops" in path.parts:
            environment["NUMBA_CACHE_DIR"] = cache
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-n0",
            "-p",
            "no:cacheprovider",
            *tests_of(path),
        ]
        try:
            done = subprocess.run(command, cwd=work, env=environment, capture_output=True, timeout=SECONDS)
            return done.returncode == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            copied.write_text(original)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", type=Path, help="files or folders of src/chimap")
    parser.add_argument("--mutants", type=int, default=10, help="of each file")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    given = [path.resolve() for path in arguments.paths]
    files = sorted(f for path in given for f in (path.rglob("*.py") if path.is_dir() else [path]))
    tried = survived = 0
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "copy"
        left_out = shutil.ignore_patterns(".git", ".venv", "site", ".mypy_cache", ".ruff_cache")
        shutil.copytree(ROOT, work, ignore=left_out)
        for path in files:
            if not survives(work, path, path.read_text()):
                raise SystemExit(f"{path}: {' '.join(tests_of(path))} fail without a mutant")
            for line, change, text in mutants(path.read_text(), arguments.mutants, arguments.seed):
                tried += 1
                if survives(work, path, text):
                    survived += 1
                    print(f"{path.relative_to(ROOT)}:{line}: {change}", flush=True)
    print(f"{survived} of {tried} mutants survived ({survived / max(tried, 1):.0%})")
    return int(survived > 0.1 * tried)


if __name__ == "__main__":
    sys.exit(main())
