"""Run the examples of the gallery in a separate process and add their pages to the site."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

TOP = Path(__file__).resolve().parents[2]
PAGES = TOP / "build" / "gallery"
INTRODUCTION = """# Gallery

Each page is a script of `examples/gallery` with its output and its plots. The scripts ran when this site was built.
Three of them, on explanations, on text and on reports, are also notebooks in `examples/notebooks`.

"""


def on_files(files: Any, config: Any) -> Any:
    """Run the scripts that have changed, then add their pages, their pictures and an index page."""
    paths = os.pathsep.join(filter(None, [str(TOP / "src"), os.environ.get("PYTHONPATH", "")]))
    subprocess.run(
        [sys.executable, str(TOP / "examples" / "render.py"), str(PAGES)],
        check=True,
        env=os.environ | {"PYTHONPATH": paths},
    )
    scripts = sorted((TOP / "examples" / "gallery").glob("*.py"))
    index = INTRODUCTION + '<div class="gallery" markdown>\n\n'
    for script in scripts:
        page = PAGES / f"{script.stem}.md"
        title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        index += f"[![]({script.stem}-1.png) {title}]({script.stem}.md)\n\n"
        files.append(File.generated(config, f"gallery/{page.name}", abs_src_path=str(page)))
        for picture in sorted(PAGES.glob(f"{script.stem}-*.png")):
            files.append(File.generated(config, f"gallery/{picture.name}", abs_src_path=str(picture)))
    files.append(File.generated(config, "gallery/index.md", content=index + "</div>\n"))
    return files


def on_config(config: Any) -> Any:
    """Add the pages of the gallery to the navigation, ordered by name."""
    stems = [script.stem for script in sorted((TOP / "examples" / "gallery").glob("*.py"))]
    for entry in config.nav:
        if "Gallery" in entry:
            entry["Gallery"] = ["gallery/index.md", *(f"gallery/{stem}.md" for stem in stems)]
    return config
