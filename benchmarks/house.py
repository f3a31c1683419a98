"""How large the house is: counts of one or two copies of the repository, beside each other, as a table.

python -m benchmarks.house .                    # this tree
python -m benchmarks.house ../before ../after   # two trees, and the change
python -m benchmarks.house . --no-fits          # without the fits whose files and functions are counted
python -m benchmarks.house . --since HEAD~20    # the size alone, and how it changed since that commit

Counts of source are made from syntax. Counts of settings and of what a first fit enters are made in processes of their
own that import the tree's package: every Python function of the package that is called counts once, bodies of modules and
classes do not.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

MAPS = (
    "AdditiveKPCA",
    "AnchorMap",
    "ChebyshevMap",
    "CompressedMap",
    "DirectMap",
    "HomogeneousMap",
    "OptimalMap",
    "StaircaseMap",
)
NOT_CODE = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
)


class Tree:
    """The package of a copy of the repository, read once."""

    def __init__(self, top: Path):
        self.package = top / "src" / "chimap"
        self.files = sorted(self.package.rglob("*.py"))
        self.texts = {file: file.read_text() for file in self.files}
        self.syntax = {file: ast.parse(text) for file, text in self.texts.items()}
        self.nodes = {file: list(ast.walk(tree)) for file, tree in self.syntax.items()}

    def all(self, *kinds: type) -> Iterator[tuple[Path, Any]]:
        return ((file, node) for file, nodes in self.nodes.items() for node in nodes if isinstance(node, kinds))

    def lines_with(self, pattern: str) -> int:
        found = re.compile(pattern)
        return sum(bool(found.search(line)) for text in self.texts.values() for line in text.splitlines())

    def calls_of(self, *names: str) -> int:
        return sum(isinstance(node.func, ast.Name) and node.func.id in names for _, node in self.all(ast.Call))

    def code_lines(self) -> int:
        """Lines that hold code: no comments, no docstrings, no empty lines."""
        count = 0
        for file, text in self.texts.items():
            with file.open("rb") as opened:
                tokens = [t for t in tokenize.tokenize(opened.readline) if t.type not in NOT_CODE]
            held = {line for t in tokens for line in range(t.start[0], t.end[0] + 1)}
            for node in self.nodes[file]:
                if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
                    first = node.body[0]
                    if (
                        isinstance(first, ast.Expr)
                        and isinstance(first.value, ast.Constant)
                        and isinstance(first.value.value, str)
                    ):
                        held -= set(range(first.lineno, first.end_lineno + 1))
            count += len(held & set(range(1, len(text.splitlines()) + 1)))
        return count

    def second_halves(self) -> int:
        """Files that one file imports, which stands in the same folder."""
        names = {
            ".".join(("chimap", *file.relative_to(self.package).with_suffix("").parts)): file for file in self.files
        }
        importers = defaultdict(set)
        for file, node in self.all(ast.ImportFrom):
            for alias in node.names:
                for target in (node.module, f"{node.module}.{alias.name}"):
                    if target in names:
                        importers[names[target]].add(file)
        only = ((file, *by) for file, by in importers.items() if len(by) == 1 and file.name != "__init__.py")
        return sum(file.parent == by.parent and by.name != "__init__.py" for file, by in only)

    def closure(self, start: str) -> str:
        """Files and lines that a module needs: what it imports, at its top or in a function, and what that imports."""
        names = {".".join(("chimap", *f.relative_to(self.package).with_suffix("").parts)): f for f in self.files}
        names = {name.removesuffix(".__init__"): file for name, file in names.items()}
        seen, waiting = {"chimap"}, [start]
        while waiting:
            module = waiting.pop()
            if module in seen or module not in names:
                continue
            seen.add(module)
            typing = {
                part
                for node in self.nodes[names[module]]
                if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
                for part in ast.walk(node)
            }
            for node in self.nodes[names[module]]:
                if isinstance(node, ast.ImportFrom) and node.module and node not in typing:
                    waiting += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                elif isinstance(node, ast.Import) and node not in typing:
                    waiting += [alias.name for alias in node.names]
        return f"{len(seen)}, {sum(len(self.texts[names[module]].splitlines()) for module in seen)}"

    def exported(self) -> tuple[int, int]:
        """Names in ``__all__`` of the package, and in those of all its folders."""
        counts = {}
        for file, text in self.texts.items():
            listed = re.search(r"^__all__ = (\[.*?\])", text, re.MULTILINE | re.DOTALL)
            if listed and file.name == "__init__.py":
                counts[file] = len(ast.literal_eval(listed[1]))
        return counts.get(self.package / "__init__.py", 0), sum(counts.values())

    def privates(self) -> tuple[int, int]:
        """Reads of an attribute with an underscore of something other than oneself, and the files that have them."""
        found = Counter()
        for file, node in self.all(ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            own = own or (isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "super")
            if re.match(r"_[^_]", node.attr) and not own:
                found[file] += 1
        return sum(found.values()), len(found)

    @cached_property
    def members(self) -> dict[str, set[str]]:
        """What each class has, with what it inherits from others of the package."""
        own, bases = defaultdict(set), {}
        for _, node in self.all(ast.ClassDef):
            bases[node.name] = [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases]
            for part in node.body:
                if isinstance(part, (ast.FunctionDef, ast.ClassDef)):
                    own[node.name].add(part.name)
                elif isinstance(part, (ast.Assign, ast.AnnAssign)):
                    targets = part.targets if isinstance(part, ast.Assign) else [part.target]
                    own[node.name] |= {target.id for target in targets if isinstance(target, ast.Name)}
            for inner in ast.walk(node):
                if (
                    isinstance(inner, ast.Attribute)
                    and isinstance(inner.ctx, ast.Store)
                    and isinstance(inner.value, ast.Name)
                ):
                    own[node.name].add(inner.attr)

        def having(name: str, seen: frozenset[str] = frozenset()) -> set[str]:
            above = (having(base, seen | {name}) for base in bases.get(name, []) if base in bases and base not in seen)
            return set(own[name]).union(*above)

        return {name: having(name) for name in bases}

    def protocols(self) -> tuple[int, int]:
        """Protocols, and those that one class of the package implements: by inheritance, or by having their members."""
        names = {
            node.name for _, node in self.all(ast.ClassDef) if any("Protocol" in ast.unparse(b) for b in node.bases)
        }
        bases = {
            node.name: {ast.unparse(b).partition("[")[0] for b in node.bases} for _, node in self.all(ast.ClassDef)
        }
        lonely = 0
        for protocol in names:
            wanted = {name for name in self.members[protocol] if not name.startswith("__")}
            others = self.members.keys() - names
            by = {c for c in others if protocol in bases[c] or (wanted and wanted <= self.members[c])}
            lonely += len(by) == 1
        return len(names), lonely

    def files_naming_a_map(self) -> str:
        """The fewest and most files that name one map, which is what a new one would have to touch."""
        counts = [sum(bool(re.search(rf"\b{name}\b", text)) for text in self.texts.values()) for name in MAPS]
        return f"{min(counts)} to {max(counts)}"

    def compared_with(self, value: str) -> int:
        sides = (side for _, node in self.all(ast.Compare) for side in (node.left, *node.comparators))
        parts = (
            part
            for side in sides
            for part in (side.elts if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else [side])
        )
        return sum(isinstance(part, ast.Constant) and part.value == value for part in parts)


def size(tree: Tree) -> dict[str, object]:
    return {
        "files": len(tree.files),
        "lines": sum(len(text.splitlines()) for text in tree.texts.values()),
        "functions": len(list(tree.all(ast.FunctionDef, ast.AsyncFunctionDef))),
        "files and lines that estimators.histogram needs": tree.closure("chimap.estimators.histogram"),
        "files and lines that models.model needs": tree.closure("chimap.models.model"),
    }


def of_source(tree: Tree) -> dict[str, object]:
    imports = list(tree.all(ast.Import, ast.ImportFrom))
    (public, exported), (privates, private_files), (protocols, lonely) = (
        tree.exported(),
        tree.privates(),
        tree.protocols(),
    )
    methods = sum(
        isinstance(node.func, ast.Attribute) and node.func.attr == "get_params" for _, node in tree.all(ast.Call)
    )
    return size(tree) | {
        "lines of code": tree.code_lines(),
        "classes": len(list(tree.all(ast.ClassDef))),
        "lines of imports": sum(node.end_lineno - node.lineno + 1 for _, node in imports),
        "files imported by one file alone, of their own folder": tree.second_halves(),
        "public names": public,
        "names in all __init__": exported,
        "lines with Parameters": tree.lines_with(r"\bParameters\b"),
        "reads of others' privates": privates,
        "files with such reads": private_files,
        "protocols": protocols,
        "protocols with one implementer": lonely,
        "signatures with model: BaseEstimator": tree.lines_with(r"\bmodel: BaseEstimator\b"),
        "getattr and hasattr": tree.calls_of("getattr", "hasattr"),
        "isinstance": tree.calls_of("isinstance"),
        "fmt: skip": tree.lines_with(r"# fmt: (skip|off)"),
        "places that read get_params": methods,
        'places that compare with "auto"': tree.compared_with("auto"),
        "files that name a map, fewest to most": tree.files_naming_a_map(),
    }


OF_CLASSES = """
import inspect, json, chimap
found = {}
for name in ("HistogramClassifier", "MultipleKernelLearner"):
    kind = getattr(chimap, name)
    found[f"parameters of {name}"] = len(inspect.signature(kind.__init__).parameters) - 1
    found[f"own classes in {name}'s MRO"] = sum(c.__module__.startswith("chimap") for c in kind.__mro__)
print("FOUND" + json.dumps(found))
"""

FIRST_FIT = """
import json, sys, threading
from pathlib import Path
import chimap
package, entered = str(Path(chimap.__file__).parent), set()
def called(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_flags & 1 and code.co_filename.startswith(package) and "<" not in code.co_name:
        entered.add((code.co_filename, code.co_qualname))
import numpy as np
from sklearn.datasets import load_digits
X, y = load_digits(return_X_y=True)
X, y = X[:80], y[:80]
def fit(**settings):
    chimap.HistogramClassifier(random_state=0, **settings).fit(X, y)
def shell():
    lines = [",".join([f"c{y_}", *(str(int(x)) for x in row)]) for row, y_ in zip(X, y)]
    Path("rows.csv").write_text("\\n".join([",".join(["kind", *(f"b{i}" for i in range(64))]), *lines]) + "\\n")
    sys.argv = ["chimap", "fit", "rows.csv", "--labels", "kind", "--test-fraction", "0.2", "--kernel", "exp-chi2", "--features", "landmarks", "--output", "rows.model"]
    from chimap.cli.main import run
    try:
        run()
    except SystemExit as end:
        assert not end.code, end.code
ways = {
    "landmarks": lambda: fit(kernel="exp-chi2", features="landmarks"),
    "exact": lambda: fit(kernel="exp-chi2", features="exact"),
    "race": fit,
    "shell": shell,
}
threading.setprofile(called)
sys.setprofile(called)
ways[WAY]()
sys.setprofile(None)
print("FOUND" + json.dumps([len({file for file, _ in entered}), len(entered)]))
"""


def in_a_process(top: Path, code: str) -> Any:
    """What a program printed after FOUND that imports the package of a tree."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(top.resolve() / "src")}
        done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{top}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.rpartition("FOUND")[2].splitlines()[0])


def of_fits(top: Path) -> dict[str, object]:
    found = {}
    for way in ("landmarks", "exact", "race", "shell"):
        code = FIRST_FIT.replace("WAY", repr(way))
        in_a_process(top, code)  # compiles the loops, whose compiler is not what is counted
        files, functions = in_a_process(top, code)
        found[f"files and functions that a first fit of 80 rows enters, {way}"] = f"{files}, {functions}"
    return found


def change(before: object, after: object) -> str:
    both = isinstance(before, int) and isinstance(after, int) and before
    return f"{100 * (after / before - 1):+.0f} %" if both else ""


def table(counts: dict[str, dict[str, object]]) -> str:
    first, *others = counts.values()
    heads = [*counts, *(["change"] if others else [])]
    lines = [f"| | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for question, value in first.items():
        cells = [str(value), *(str(other[question]) for other in others)]
        cells += [change(value, others[0][question])] if others else []
        lines.append(f"| {question} | {' | '.join(cells)} |")
    return "\n".join(lines)


def since(top: Path, commit: str) -> str:
    """The sizes of the package at a commit and now, and the lines of every folder that were added and removed."""
    git = ["git", "-C", str(top)]
    with tempfile.TemporaryDirectory() as before:
        stored = subprocess.run([*git, "archive", commit, "src"], check=True, capture_output=True).stdout
        subprocess.run(["tar", "x", "-C", before], input=stored, check=True)
        sizes = table({"before": size(Tree(Path(before))), "after": size(Tree(top))})
    changed = [*git, "diff", "--numstat", "--find-renames", commit, "--", "src", "tests", "docs", "benchmarks"]
    folders: dict[str, list[int]] = {}
    for line in subprocess.run(changed, check=True, capture_output=True, text=True).stdout.splitlines():
        added, removed, path = line.split("\t")
        if added != "-":
            top_folder = path.removeprefix("{").partition("/")[0]  # {old => new}/ where a whole folder moved
            folder = folders.setdefault(top_folder, [0, 0])
            folder[0] += int(added)
            folder[1] += int(removed)
    lines = [f"{folder}: +{added} -{removed}" for folder, (added, removed) in sorted(folders.items())]
    return "\n".join([sizes, "", "lines of files: " + ", ".join(lines)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="+", type=Path, help="one or two copies of the repository")
    parser.add_argument("--no-fits", action="store_true", help="count in the source alone")
    parser.add_argument("--since", metavar="COMMIT", help="the size of one tree, and what it was at that commit")
    given = parser.parse_args()
    if given.since is not None:
        print(since(given.trees[0], given.since))
        return
    if len(given.trees) > 2:
        parser.error(f"two trees at most, {len(given.trees)} came.")
    counts = {}
    for name, top in zip(("before", "after") if len(given.trees) == 2 else ("this tree",), given.trees, strict=True):
        counts[name] = of_source(Tree(top)) | in_a_process(top, OF_CLASSES)
        counts[name] |= {} if given.no_fits else of_fits(top)
    print(table(counts))


if __name__ == "__main__":
    main()
