"""Make executed notebooks of some examples of the gallery, and keep them beside this script.

python examples/notebooks.py            # write examples/notebooks again
python examples/notebooks.py FOLDER     # write them there

A notebook has the text and the cells of its script, and is run in a new kernel, which needs nbclient and ipykernel.
"""

from __future__ import annotations

import argparse
import ast
import tempfile
from pathlib import Path
from typing import Any

from render import GALLERY, cells_of

KEPT = Path(__file__).resolve().parent / "notebooks"
NOTEBOOKS = {"explanations": "09_explain", "text": "07_text"}  # and the scripts that they are made of


def cells(script: Path) -> list[tuple[str, str]]:
    """Kind ("markdown" or "code") and text of each cell of a script."""
    code = script.read_text(encoding="utf-8")
    title, _, text = (ast.get_docstring(ast.parse(code)) or script.stem).partition("\n")
    made = [("markdown", f"# {title.rstrip('.')}\n\n{text.strip()}")]
    for words, source in cells_of(code):
        made += [("markdown", words)] if words else []
        made += [("code", source.strip())] if source.strip() else []
    return made


def executed(script: Path) -> Any:
    """The notebook of a script after a run in an empty folder."""
    import nbformat
    from nbclient import NotebookClient

    kinds = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    book = nbformat.v4.new_notebook(
        cells=[kinds[kind](text, id=f"cell-{i}") for i, (kind, text) in enumerate(cells(script))]
    )
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            book, timeout=300, record_timing=False, resources={"metadata": {"path": folder}}
        )
        client.execute()
    for cell in book.cells:  # values of last lines hold addresses; what is to be read is printed
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.output_type != "execute_result"]
    return book


def main() -> None:
    """The command line."""
    import nbformat

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=KEPT)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, script in NOTEBOOKS.items():
        nbformat.write(executed(GALLERY / f"{script}.py"), folder / f"{name}.ipynb")


if __name__ == "__main__":
    main()
