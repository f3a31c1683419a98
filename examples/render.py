"""Run the examples of examples/gallery and write a page for each with its text, its code, its output and its plots.

python examples/render.py FOLDER            # all of them
python examples/render.py FOLDER --only digits,cells

An example is a script. Its docstring opens the page; the first line is the title. A line ``# %%`` starts a cell, and
the comments right below it are the text before the cell. The pages of scripts that have not changed are kept.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import io
import os
import re
import sys
import tempfile
import time
import warnings
from itertools import pairwise
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PLAIN = re.compile(r"[^\w ,.:=-]")  # characters that could end an alternative text
GALLERY = Path(__file__).resolve().parent / "gallery"
STYLE = Path(__file__).resolve().parents[1] / "docs" / "assets" / "transparent.mplstyle"


def cells_of(code: str) -> list[tuple[str, str]]:
    """Return text and code of each cell after the docstring; blank lines before the code keep its line numbers."""
    lines = code.splitlines()
    start = ast.parse(code).body[0].end_lineno
    marks = [i for i, line in enumerate(lines) if line.startswith("# %%")] or [start]
    bounds = [start, *marks, len(lines)] if marks[0] > start else [*marks, len(lines)]
    cells = []
    for first, last in pairwise(bounds):
        i = first + lines[first].startswith("# %%") if first < len(lines) else first
        text = []
        while i < last and lines[i].startswith("#"):
            text.append(lines[i].removeprefix("#").strip())
            i += 1
        source = "\n".join(lines[i:last]).strip("\n")
        if source or text:
            cells.append((" ".join(text), "\n" * i + source))
    return cells


def run(script: Path, folder: Path) -> str:
    """Run one example, write its pictures into the folder, and return its page."""
    code = script.read_text(encoding="utf-8")
    title, _, text = (ast.get_docstring(ast.parse(code)) or script.stem).partition("\n")
    page = [f"# {title.rstrip('.')}", text.strip()]
    names = {"__name__": "__main__", "__file__": str(script)}
    began, n_pictures, home = time.perf_counter(), 0, Path.cwd()
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        try:
            for words, source in cells_of(code):
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile(source, str(script), "exec"), names)
                page += [words, f"```python\n{source.strip()}\n```"]
                if printed.getvalue().strip():
                    page.append(f"```text\n{printed.getvalue().rstrip()}\n```")
                for number in plt.get_fignums():
                    n_pictures += 1
                    name = f"{script.stem}-{n_pictures}.png"
                    figure = plt.figure(number)
                    alt = figure.get_suptitle() or next((a.get_title() for a in figure.axes if a.get_title()), title)
                    figure.savefig(folder / name, dpi=110, bbox_inches="tight")
                    page.append(f"[![{PLAIN.sub(' ', alt)}]({name})]({name})")
                plt.close("all")
        finally:
            os.chdir(home)
    if not n_pictures:
        raise SystemExit(f"{script.name} draws no picture.")
    page.append(f"*{time.perf_counter() - began:.0f} s. The script: `examples/gallery/{script.name}`.*")
    return "\n\n".join(filter(None, page)) + "\n"


def render(folder: Path, only: set[str] | None = None) -> list[tuple[str, str, str]]:
    """Write the pages of all examples, and return the name, title and first picture of each."""
    folder.mkdir(parents=True, exist_ok=True)
    plt.style.use(STYLE)
    done = []
    for script in sorted(GALLERY.glob("*.py")):
        if only and script.stem not in only:
            continue
        page, stamp = folder / f"{script.stem}.md", folder / f"{script.stem}.sha256"
        digest = hashlib.sha256(script.read_bytes()).hexdigest()
        if not (page.exists() and stamp.exists() and stamp.read_text() == digest):
            began = time.perf_counter()
            page.write_text(run(script, folder), encoding="utf-8")
            stamp.write_text(digest)
            print(f"{script.name}: {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
        title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        done.append((script.stem, title, f"{script.stem}-1.png"))
    return done


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", type=lambda text: set(text.split(",")))
    arguments = parser.parse_args()
    warnings.simplefilter("error", DeprecationWarning)
    render(arguments.folder.resolve(), arguments.only)


if __name__ == "__main__":
    main()
