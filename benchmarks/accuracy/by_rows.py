"""Do more rows bring more accuracy? Score and seconds of the default settings as the rows grow, and of others.

Official splits, all test rows; 1, 3, 10, 30, 100 thousand training rows where the set has more, and all. LightGBM goes
on until a tenth of the rows, held out, has gained nothing for fifty rounds. Each fit runs in a process of its own.
Seconds are those of the processor, on all threads together: other work on the machine adds little to them. For
threads that wait for each other, as those of LightGBM do, run it on one core (``taskset -c 0``). Each cell is kept as a
line of ``results/by_rows.jsonl`` when it is done, and a later run goes on with the cells that are missing. A line that
says so was measured on another machine; its seconds are by the clock.

python -m benchmarks.accuracy.by_rows                                  # hours for all cells
python -m benchmarks.accuracy.by_rows --sets mnist,hiv --methods chimap,lightgbm --rows 1000,3000 --for 300
python -m benchmarks.accuracy.by_rows --methods chimap --again         # measure cells that are kept once more
python -m benchmarks.accuracy.by_rows --draw                           # no fits: docs/assets/by_rows.png and the table
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.against_others import MEASURES, NAMES, TOP, in_a_process, kept_lines, panels

RESULTS = TOP / "benchmarks" / "results" / "by_rows.jsonl"
PICTURE = TOP / "docs" / "assets" / "by_rows.png"
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
ROWS = {  # of the training part
    "mnist": 60_000,
    "fashion_mnist": 60_000,
    "cifar words": 50_000,
    "hiv": 33_524,
    "moses logP": 700_000,
    "newsgroups": 11_314,
}
# Method of against_others, label, marker and colour. The linear machine of a set is the one that scores better there.
SHOWN = {
    "chimap": ("chimap, no settings", "o", "tab:red"),
    "8000 landmarks": ("chimap, 8000 landmarks", "D", "tab:orange"),
    "lightgbm": ("LightGBM until it stops", "^", "tab:green"),
    "linear-svm sqrt": ("linear machine", "s", "tab:blue"),
}
LINEAR = {"moses logP": "linear-svm raw"}  # ridge: the logarithm of a ratio of counts is nearly linear in them
LIMIT = 3600.0  # seconds of a fit
_LINE = 9  # points from a text to the next below it
TEST_ROWS = {"mnist": 10_000, "fashion_mnist": 10_000, "cifar words": 10_000, "hiv": 8_382, "newsgroups": 7_532}
POSITIVES = {"hiv": 215}  # of the test rows of a set that is scored by ROC AUC

Line = dict[str, Any]


def sizes_of(name: str) -> list[int]:
    """Return the numbers of rows at which a set is measured, the last of which is all."""
    return [*(n for n in SIZES if n < ROWS[name]), ROWS[name]]


def methods_of(name: str) -> list[str]:
    """Return the methods that are compared on a set, in the order of ``SHOWN``."""
    return [LINEAR.get(name, method) if method.startswith("linear") else method for method in SHOWN]


def key(line: Line) -> tuple[str, str, int]:
    return line["set"], line["method"], line["rows"]


def cells(sets: list[str], methods: list[str], rows: list[int]) -> Iterator[tuple[str, str, int]]:
    """Yield set, method and rows of each cell; the methods of a cell follow one another, on the same machine."""
    for name in sets:
        for n in sizes_of(name):
            if not rows or n in rows or (n == ROWS[name] and 0 in rows):
                for shown, method in zip(SHOWN, methods_of(name), strict=True):
                    if shown in methods:
                        yield name, method, n


def keep(lines: list[Line]) -> None:
    """Write the lines, a line for each cell, in the order of the table."""
    order = list(cells(list(ROWS), list(SHOWN), []))
    lines = sorted(lines, key=lambda line: order.index(key(line)))
    RESULTS.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def table(lines: list[Line]) -> str:
    """Return score and processor seconds by set and rows, in Markdown, with the best score of each line in bold."""
    found = {key(line): line for line in lines}
    text = f"| data set | rows | {' | '.join(label for label, *_ in SHOWN.values())} |\n"
    text += "|---|--:" + "|---" * len(SHOWN) + "|\n"
    for name in ROWS:
        for n in sizes_of(name):
            row = [found.get((name, method, n)) for method in methods_of(name)]
            if any(row):
                best = max(line["score"] for line in row if line)
                text += f"| {NAMES[name]} | {n:,} | {' | '.join(_cell(line, best) for line in row)} |\n"
    return text


def _cell(line: Line | None, best: float) -> str:
    if line is None:
        return "-"
    score = f"**{line['score']:.4f}**" if line["score"] == best else f"{line['score']:.4f}"
    seconds, how = seconds_of(line), "by the clock " if "elsewhere" in line else ""
    return f"{score}, {how}{seconds:.{0 if seconds >= 10 else 1}f} s"


def seconds_of(line: Line) -> float:
    """Return the processor seconds of a fit; those by the clock where it was measured elsewhere."""
    return float(line["fit_seconds"] if "elsewhere" in line else line["processor_seconds"])


def falls(lines: list[Line]) -> list[str]:
    """Return where the default with more rows scores less than with fewer by more than a standard error."""
    found = []
    for name in ROWS:
        by_rows = sorted(
            (line["rows"], line["score"]) for line in lines if line["set"] == name and line["method"] == "chimap"
        )
        best = 0.0
        for n, score in by_rows:
            if score < best - standard_error(name, best):
                found.append(f"{name}, {n:,} rows: {score}, but {best} with fewer")
            best = max(best, score)
    return found


def standard_error(name: str, score: float) -> float:
    """Return the standard error of a score on the test rows: of a share, or of an AUC by Hanley and McNeil (1982).

    0 for R^2 on 50,000 molecules, where it is below .001.
    """
    n = TEST_ROWS.get(name)
    if n is None:
        return 0.0
    if name not in POSITIVES:
        return float(np.sqrt(score * (1 - score) / n))
    positives = POSITIVES[name]
    q1, q2 = score / (2 - score), 2 * score**2 / (1 + score)
    variance = score * (1 - score) + (positives - 1) * (q1 - score**2) + (n - positives - 1) * (q2 - score**2)
    return float(np.sqrt(variance / (positives * (n - positives))))


def draw(lines: list[Line], output: Path) -> None:
    """Draw score against rows, a panel for each set; the last point of a method shows its processor seconds."""
    by_method = defaultdict(list)
    for line in lines:
        by_method[line["set"], line["method"]].append(line)
    names = [name for name in ROWS if any(line["set"] == name for line in lines)]
    with panels(names, 3, (3.9, 2.9), output) as axes:
        for name, ax in axes.items():
            ends = []
            for (label, marker, colour), method in zip(SHOWN.values(), methods_of(name), strict=True):
                points = sorted((line["rows"], line["score"], seconds_of(line)) for line in by_method[name, method])
                if points:
                    n, scores, seconds = np.array(points).T
                    ax.plot(n, scores, color=colour, marker=marker, label=label, linewidth=1.5)
                    ends.append((scores[-1], n[-1], f" {seconds[-1]:.0f} s", colour))
            ax.set(title=NAMES[name], xscale="log", ylabel=MEASURES[scoring_of(lines, name)], xlabel="training rows")
            ax.margins(x=0.18, y=0.08)
            _annotate(ax, ends)


def _annotate(ax: Any, ends: list[tuple[float, float, str, str]]) -> None:
    """Write a text at the end (score, rows) of each line, and below the text above it."""
    ax.get_ylim()  # the limits of what has been drawn
    above = np.inf
    for score, n, text, colour in sorted(ends, reverse=True):
        end = ax.transData.transform((n, score))[1] * 72 / ax.figure.dpi
        above = min(end, above - _LINE)
        ax.annotate(
            text,
            (n, score),
            color=colour,
            fontsize=8,
            xytext=(5, above - end),
            textcoords="offset points",
            va="center",
            annotation_clip=False,
        )


def scoring_of(lines: list[Line], name: str) -> str:
    return str(next(line["scoring"] for line in lines if line["set"] == name))


def measure(todo: list[tuple[str, str, int]], seconds: float) -> None:
    """Measure cells one after the other, and keep each; none begins after so many seconds."""
    ends_at = time.monotonic() + seconds
    for name, method, n in todo:
        if time.monotonic() > ends_at:
            return
        line = in_a_process([name, method, str(n), "0"], LIMIT)
        if line is None:
            continue
        assert key(line) == (name, method, n), f"{name} has {line['rows']} rows, not {n}"
        print(json.dumps(line), flush=True)
        keep([*(kept for kept in kept_or_none() if key(kept) != key(line)), line])


def kept_or_none() -> list[Line]:
    return kept_lines(RESULTS) if RESULTS.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(ROWS))
    parser.add_argument("--methods", default=",".join(SHOWN))
    parser.add_argument("--rows", default="", help='numbers such as "1000,3000,all"; all of them if not given')
    parser.add_argument("--for", type=float, default=np.inf, dest="seconds", help="begin no fit after so many seconds")
    parser.add_argument("--again", action="store_true", help="measure cells that are kept once more")
    parser.add_argument("--draw", action="store_true", help="only draw the picture and print the table")
    options = parser.parse_args()
    sets, methods = options.sets.split(","), options.methods.split(",")
    for given, known in ((sets, ROWS), (methods, SHOWN)):
        if unknown := [name for name in given if name not in known]:
            parser.error(f"{unknown[0]!r} is none of {', '.join(known)}")
    rows = [0 if n == "all" else int(n) for n in options.rows.split(",") if n]
    if not options.draw:
        kept = set() if options.again else {key(line) for line in kept_or_none()}
        measure([cell for cell in cells(sets, methods, rows) if cell not in kept], options.seconds)
    lines = kept_or_none()
    print(table(lines))
    print("\n".join(falls(lines)) or "More rows never score less by more than a standard error.")
    draw(lines, PICTURE)


if __name__ == "__main__":
    main()
