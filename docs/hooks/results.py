"""Put the results of benchmarks/results on the site: the pictures, and the tables of accuracies from the kept lines."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

TOP = Path(__file__).resolve().parents[2]
RESULTS = TOP / "benchmarks" / "results"
FIELDS = "<!-- fields: {} -->"
NOT_YET = "No figures are stored yet. Run `python -m benchmarks.accuracy.{}` to measure them."


def on_files(files: Any, config: Any) -> Any:
    """Add the pictures to the files of the site."""
    for picture in sorted(RESULTS.glob("*.png")):
        files.append(File.generated(config, f"benchmarks/results/{picture.name}", abs_src_path=str(picture)))
    return files


def module(name: str) -> Any:
    """Return a module of ``benchmarks.accuracy``, which is not installed."""
    sys.path.insert(0, str(TOP))
    try:
        return importlib.import_module(f"benchmarks.accuracy.{name}")
    finally:
        sys.path.remove(str(TOP))


def by_rows() -> str:
    """Return score and seconds by data set and number of rows, in Markdown."""
    lines = module("by_rows").kept_or_none()
    return module("by_rows").table(lines) if lines else NOT_YET.format("by_rows")


def against_others() -> str:
    """Return the tables of all data sets, in Markdown."""
    path = RESULTS / "against_others.jsonl"
    if not path.exists():
        return NOT_YET.format("against_others --keep")
    others = module("against_others")
    lines = others.kept_lines(path)
    by_set = {shown: [line for line in lines if line["set"] == name] for name, shown in others.NAMES.items()}
    return "\n\n".join(one_set(name, fits, [*others.METHODS], others.MEASURES) for name, fits in by_set.items() if fits)


def one_set(name: str, lines: list[dict[str, Any]], order: list[str], measures: dict[str, str]) -> str:
    """Return the table of the methods on one data set, best first."""
    rows = []
    for method in dict.fromkeys([*order, *(line["method"] for line in lines)]):
        fits = [line for line in lines if line["method"] == method]
        if fits:
            mean = {k: sum(line[k] for line in fits) / len(fits) for k in ("score", "fit_seconds", "mib")}
            scores = [line["score"] for line in fits]
            spread = f" ({min(scores):.4f} to {max(scores):.4f})" if len(scores) > 1 else ""
            rows.append((mean["score"], method, spread, mean["fit_seconds"], mean["mib"], len(fits)))
    head = f"## {name}\n\n{lines[0]['rows']} training rows; the score is {measures[lines[0]['scoring']]}.\n\n"
    body = "| method | score | seconds of the fit | MiB beyond the data | seeds |\n|---|---|---|---|---|\n"
    for score, method, spread, seconds, mib, n in sorted(rows, reverse=True):
        shown = f"**{method}**" if method == "chimap" else method
        body += f"| {shown} | {score:.4f}{spread} | {seconds:.1f} | {mib:.0f} | {n} |\n"
    return head + body


def fields(page: str) -> str:
    """Return the table of the tables that the guide ``page`` is about, in Markdown."""
    path = RESULTS / "fields.jsonl"
    if not path.exists():
        return NOT_YET.format("fields")
    sys.path.insert(0, str(TOP))
    try:
        from benchmarks.accuracy.fields import PAGES, means
    finally:
        sys.path.remove(str(TOP))
    lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    return means([line for line in lines if line["field"] in PAGES[page]])


def perturbed() -> str:
    """Return the scores on perturbed rows of microbes, in Markdown; nothing where none were measured."""
    lines = module("perturbed").kept_lines()
    return module("perturbed").described(lines) if lines else ""


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the placeholders by the tables."""
    for make in (against_others, by_rows, perturbed):
        place = f"<!-- {make.__name__} -->"
        if place in markdown:
            markdown = markdown.replace(place, make())
    for page in ("microbes", "cells", "molecules", "text"):
        if (place := FIELDS.format(page)) in markdown:
            markdown = markdown.replace(place, fields(page))
    return markdown
