"""Pages of the site: every command on them runs, every public name is on one, every page has an example."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import shlex
from pathlib import Path

import pytest

import chimap

from ..cli.terminal import run_many
from .files import FEW_WORDS, write_all

TOP = Path(__file__).parents[2]
DOCS = TOP / "docs"
PAGES = {page.relative_to(DOCS).as_posix(): page.read_text(encoding="utf-8") for page in sorted(DOCS.rglob("*.md"))}
ELSEWHERE = (
    "--scheduler tcp:",
    "--device cuda",
    "--engine dask",
    "chimap compare",
)  # what a test does not have, or what others run
PACKAGES = ("data", "export", "images", "kernels", "losses", "penalties", "reports", "sc", "mlflow")
IN_FILES = re.compile(r"^::: (chimap\.(?:data\.s|explain|selection|solvers)\S*\.\w+)$", re.MULTILINE)
WITHOUT_EXAMPLE = ("chimap.reports.",)  # values that pages are made of, which the commands fill in
INCLUDED = {"changelog.md", "contributing.md"}  # texts of the project, not pages of the site's own


def commands(page: str) -> list[list[str]]:
    """The arguments of every command of chimap on the page."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGES[page], re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", "").splitlines() if line.strip()]
    assert all(line.startswith("chimap ") for line in lines), f"{page}: a line of another program"
    return [shlex.split(line, comments=True)[1:] for line in lines if not any(e in line for e in ELSEWHERE)]


def test_fences_name_a_language_that_is_tested():
    # 'text' is what programs print, and commands of other programs
    for page, text in PAGES.items():
        assert set(re.findall(r"^```(\S*)$", text, re.MULTILINE)) <= {"", "sh", "python", "text", "r"}, page


@pytest.mark.parametrize("page", [page for page in PAGES if page not in INCLUDED])
def test_code_is_at_most_88_columns_wide(page):
    """So that it is read without scrolling beside the navigation."""
    blocks = re.findall(r"^```(?:sh|python)\n(.*?)^```$", PAGES[page], re.MULTILINE | re.DOTALL)
    assert [line for block in blocks for line in block.splitlines() if len(line) > 88] == []


RACED = {"start.md"}  # where no kernel is given; a fit of the other pages shows something else, whatever the kernel


BEGINNINGS = {  # the commands that make the models that pages begin with
    "guides/export.md": "fit data.npz --kernel chi2 --output my.model",
    "guides/answers.md": "fit digits.npz --kernel minmax --output digits.model",
    "guides/trust.md": "fit plots.csv --labels site --kernel exp-chi2 --output plots.model",
    "guides/molecules.md": "fit bbbp.csv --smiles smiles --labels penetrates --kernel minmax --output bbbp.model",
}


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)])
def test_commands(page, tmp_path):
    write_all(tmp_path)
    called = commands(page)
    if page in BEGINNINGS:
        called = [BEGINNINGS[page].split(), *called]
    made: set[str] = set()
    steps = []
    for arguments in called:
        if arguments[0] == "fit" and "--kernel" not in arguments and page not in RACED:
            arguments = [*arguments, "--kernel", "exp-chi2"]
        if arguments[:2] == ["fit", "photos/"]:
            arguments = [*arguments, *FEW_WORDS]
        output = arguments[arguments.index("--output") + 1] if "--output" in arguments else None
        steps.append([*arguments, "--overwrite"] if output in made else arguments)
        made.add(output or "")
    for arguments, result in zip(steps, run_many(steps, tmp_path), strict=True):
        assert result.code == 0, (arguments, result.err)


@pytest.mark.parametrize("page", [page for page in PAGES if page not in INCLUDED])
def test_every_page_has_an_example(page):
    text = PAGES[page]
    assert ">>> " in text or ":::" in text


def test_the_home_is_the_first_screen_of_the_readme(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "hooks"))
    home = importlib.import_module("home")
    shown = home.on_page_markdown(PAGES["index.md"])
    assert home.PLACE not in shown
    assert "## Is it for you?" in shown
    assert "## Install" not in shown
    linked = re.findall(r"\]\(([\w/]+\.\w+)\)", shown)
    assert "assets/by_rows.png" in linked
    made = [path for path in linked if not path.startswith("gallery/")]  # by another hook
    assert [path for path in made if not (DOCS / path).exists()] == []


FOLDERS = (TOP, TOP / "src" / "chimap", TOP / "benchmarks")  # that texts name files from
TEXTS = sorted([*TOP.glob("*.md"), *DOCS.rglob("*.md"), TOP / "benchmarks" / "README.md"])


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.relative_to(TOP).as_posix())
def test_files_that_are_named_are_there(text):
    named = re.findall(
        r"`((?:[\w.-]+/)+[\w-]+\.(?:py|md|jsonl?|txt))`|`((?:src|tests|benchmarks)/[\w./]*)`",
        text.read_text(encoding="utf-8"),
    )
    missing = [path for pair in named for path in pair if path and not any((at / path).exists() for at in FOLDERS)]
    assert missing == []


def public_names() -> dict[str, object]:
    """All that can be called, by address: of chimap, what its public packages add, and what is listed of files."""
    found = {f"chimap.{name}": getattr(chimap, name) for name in chimap.__all__}
    for package in PACKAGES:
        module = importlib.import_module(f"chimap.{package}")
        found |= {
            f"chimap.{package}.{name}": getattr(module, name) for name in module.__all__ if name not in chimap.__all__
        }
    listed = [address for page in PAGES.values() for address in IN_FILES.findall(page)]
    found |= {address: pkgutil.resolve_name(address) for address in listed}
    return {address: thing for address, thing in found.items() if callable(thing)}


NAMES = public_names()


@pytest.mark.parametrize("address", NAMES)
def test_every_public_name_is_on_one_page_of_the_reference(address):
    line = re.compile(rf"^::: {re.escape(address)}$", re.MULTILINE)
    pages = [page for page, text in PAGES.items() if line.search(text)]
    assert len(pages) == 1, f"{address} must be on one page of docs/reference; it is on {pages}."
    assert pages[0].startswith("reference/")


@pytest.mark.parametrize("address", [address for address in NAMES if not address.startswith(WITHOUT_EXAMPLE)])
def test_every_public_name_has_a_runnable_example(address):
    thing = NAMES[address]
    if getattr(thing, "_is_protocol", False) or (isinstance(thing, type) and issubclass(thing, Exception)):
        return  # there is nothing to call
    described = thing if inspect.getdoc(thing) else type(thing)
    assert ">>> " in (inspect.getdoc(described) or ""), f"the docstring of {address} has no example"


def test_no_name_is_on_a_page_that_is_not_there():
    for page, text in PAGES.items():
        for path in re.findall(r"^::: (\S+)$", text, re.MULTILINE):
            module, _, name = path.rpartition(".")
            assert hasattr(__import__(module, fromlist=[name]), name), (page, path)
