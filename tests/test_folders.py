"""The folders are in the order of CONTRIBUTING.md: each imports only what stands above it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import chimap

PACKAGE = Path(chimap.__file__).parent
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
MOST_ANY = 180  # uses of Any in the package


@cache
def nodes(file: Path) -> list[ast.AST]:
    """All of its syntax, which most tests here look through."""
    return list(ast.walk(ast.parse(file.read_text())))


@pytest.fixture(scope="module", autouse=True)
def _forget_nodes():
    yield
    nodes.cache_clear()


def folders() -> tuple[list[str], list[str]]:
    """Names in the table of CONTRIBUTING.md: those that are in order, and those below the line."""
    table = CONTRIBUTING.read_text().partition("| folder |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    line = next(i for i, cell in enumerate(cells) if "below the line" in cell)
    above, below = (" ".join(part) for part in (cells[:line], cells[line + 1 :]))
    return re.findall(r"`(\w+)", above), re.findall(r"`(\w+)", below)


def imported(file: Path) -> set[str]:
    """Folders and files of the package that a file imports, at its top or later."""
    names = []
    for node in nodes(file):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "chimap":
            path = node.module.split(".")[1:]
            names += path[:1] or [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name.split(".")[1] for alias in node.names if alias.name.startswith("chimap.")]
    return {name for name in names if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()}


def test_each_imports_only_what_stands_above_it():
    order, below = folders()
    allowed = {name: {*order[: place + 1], *below} for place, name in enumerate(order)}
    for name, above in {**allowed, **{name: set(below) for name in below}}.items():
        home = PACKAGE / name
        for file in sorted(home.rglob("*.py")) if home.is_dir() else [home.with_suffix(".py")]:
            wrong = imported(file) - above
            assert not wrong, f"{file.relative_to(PACKAGE)} imports {', '.join(sorted(wrong))}"


def test_the_table_names_every_folder_and_file():
    order, below = folders()
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert there - {"__init__", "__main__"} == {*order, *below}


def modules() -> dict[str, Path]:
    """Every module of the package but its ``__init__``, which imports lazily what is asked of it."""
    found = {}
    for file in PACKAGE.rglob("*.py"):
        name = ".".join(("chimap", *file.relative_to(PACKAGE).with_suffix("").parts))
        found[name.removesuffix(".__init__")] = file
    del found["chimap"]
    return found


def test_no_module_imports_itself_by_way_of_others():
    files = modules()
    waiting = {}
    for name, file in files.items():
        waiting[name] = set()
        for node in nodes(file):
            if isinstance(node, ast.ImportFrom) and node.module:
                targets = [f"{node.module}.{alias.name}" for alias in node.names]
                waiting[name] |= {target if target in files else node.module for target in targets}
        waiting[name] = (waiting[name] & files.keys()) - {name}
    while ready := [name for name, needed in waiting.items() if not needed & waiting.keys()]:
        for name in ready:
            del waiting[name]
    circle = {name: sorted(needed & waiting.keys()) for name, needed in waiting.items()}
    assert not circle, f"modules in circles, or above one: {circle}"


def test_no_module_of_the_package_is_imported_by_a_name_that_is_written_out():
    """Such an import is an arrow that no list of imports shows."""
    for name, file in modules().items():
        for node in nodes(file):
            arguments = node.args if isinstance(node, ast.Call) else []
            written = [str(arg.value) for arg in arguments if isinstance(arg, ast.Constant)]
            if any(word.startswith("chimap") for word in written):
                assert "import" not in ast.unparse(node.func), f"{name}: {written}"


def test_signatures_say_what_they_take():
    """``Any`` switches the type checker off; a few places need it, and there shall not be more of them."""
    uses = {}
    for name, file in modules().items():
        uses[name] = sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes(file))
    most = sorted(uses, key=lambda name: uses[name])[-5:]
    assert sum(uses.values()) <= MOST_ANY, (
        f"Any stands in {sum(uses.values())} places, {MOST_ANY} at most; most in {', '.join(most)}. Say what is taken: "
        "Rows, MatrixLike, ArrayLike, JSON and others of chimap._types, a class or protocol of the package, object "
        "for what is only passed on, or a class of another library imported under TYPE_CHECKING."
    )


def test_a_class_has_a_name_of_its_own():
    homes: dict[str, list[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in nodes(file):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name.lstrip("_"), []).append(str(file.relative_to(PACKAGE)))
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}
