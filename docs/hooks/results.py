"""Figures of benchmarks/results on the site: pictures, and the table of accuracies from the kept lines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

TOP = Path(__file__).resolve().parents[2]
RESULTS = TOP / "benchmarks" / "results"
PLACE = "<!-- against_others -->"
NOT_YET = "No figures are kept yet: `python -m benchmarks.accuracy.against_others --keep` measures them."


def on_files(files: Any, config: Any) -> Any:
    """Add the pictures."""
    for picture in sorted(RESULTS.glob("*.png")):
        files.append(File.generated(config, f"benchmarks/results/{picture.name}", abs_src_path=str(picture)))
    return files


def against_others() -> str:
    """The table, set by set."""
    path = RESULTS / "against_others.jsonl"
    if not path.exists():
        return NOT_YET
    sys.path.insert(0, str(TOP))
    try:
        from benchmarks.accuracy.against_others import METHODS
        from benchmarks.accuracy.plot_against_others import MEASURES, NAMES, kept_lines
    finally:
        sys.path.remove(str(TOP))
    lines = kept_lines(path)
    by_set = {NAMES[name]: [line for line in lines if line["set"] == name] for name in NAMES}
    return "\n\n".join(one_set(name, of, list(METHODS), MEASURES) for name, of in by_set.items() if of)


def one_set(name: str, lines: list[dict[str, Any]], order: list[str], measures: dict[str, str]) -> str:
    """Methods of one data set, the best first."""
    rows = []
    for method in dict.fromkeys([*order, *(line["method"] for line in lines)]):
        of = [line for line in lines if line["method"] == method]
        if of:
            mean = {k: sum(line[k] for line in of) / len(of) for k in ("score", "fit_seconds", "mib")}
            scores = [line["score"] for line in of]
            spread = f" ({min(scores):.4f} to {max(scores):.4f})" if len(scores) > 1 else ""
            rows.append((mean["score"], method, spread, mean["fit_seconds"], mean["mib"], len(of)))
    head = f"## {name}\n\n{lines[0]['rows']} training rows, scored by {measures[lines[0]['scoring']]}.\n\n"
    body = "| method | score | seconds of the fit | MiB beyond the data | seeds |\n|---|---|---|---|---|\n"
    for score, method, spread, seconds, mib, n in sorted(rows, reverse=True):
        shown = f"**{method}**" if method == "chimap" else method
        body += f"| {shown} | {score:.4f}{spread} | {seconds:.1f} | {mib:.0f} | {n} |\n"
    return head + body


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill in the table."""
    return markdown.replace(PLACE, against_others()) if PLACE in markdown else markdown
