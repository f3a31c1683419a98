"""Run the benchmarks and write their figures as JSON, a Markdown table and a plot, compared with the last kept run.

python -m benchmarks.run                          # all of them
python -m benchmarks.run --only pass_bound,memory # only these
python -m benchmarks.run --quick                  # those that take about a minute
python -m benchmarks.run --keep                   # also keep the figures in results.json for later comparisons
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
KEPT = HERE / "results" / "results.json"
QUICK = ("start_up", "map_speed", "exact_kernels", "memory", "dirichlet", "structured")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def benchmarks():
    """Return the benchmark modules by name."""
    return {
        p.stem: f"benchmarks.{p.parent.name}.{p.stem}"
        for p in sorted(HERE.glob("*/*.py"))
        if not p.stem.startswith("_")
    }


def machine():
    """Return what the figures depend on: the machine and the versions of the libraries."""
    import numpy

    flags = Path("/proc/cpuinfo")
    model = platform.processor()
    if flags.is_file():
        lines = flags.read_text(errors="replace").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
    }


def measured(name):
    """Run one benchmark file; return its figures (everything that ``measure.report`` wrote) and how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines.jsonl"
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", benchmarks()[name]],
            cwd=HERE.parent,
            env={**os.environ, "BENCHMARK_LINES": str(lines)},
            check=False,
        )
        found = [json.loads(line) for line in lines.read_text().splitlines()] if lines.is_file() else []
    return {"seconds": round(time.perf_counter() - began, 1), "exit": done.returncode, "figures": found}


def figure(entry):
    """Return the number of a figure: the value of a spread, or the first number of a text; None if it has none."""
    if "value" in entry:
        return entry["value"]
    first = NUMBER.search(entry["shown"])
    return float(first[0]) if first else None


def before(kept, name, question):
    """Return the number that the kept run has for a question."""
    entries = kept.get("benchmarks", {}).get(name, {}).get("figures", [])
    return next((figure(e) for e in entries if e["question"] == question), None)


def change(now, last):
    """Return the change against the kept run, such as '+4 %', or '' if there is none."""
    return "" if not last or now is None else f"{100 * (now / last - 1):+.0f} %"


def table(results, kept):
    """Return the figures as a Markdown table."""
    about = results["machine"]
    lines = [
        f"{about['processor']}, {about['cores']} cores, numpy {about['numpy']}, Python {about['python']}, {about['date']}.",
        "",
        f"Change: against the run kept on {kept['machine']['date']} ({kept['machine']['processor']})." if kept else "",
        "",
        "| benchmark | question | measured | wanted | change |",
        "|---|---|---|---|---|",
    ]
    for name, result in results["benchmarks"].items():
        for e in result["figures"]:
            last = change(figure(e), before(kept, name, e["question"]))
            lines.append(f"| {name} | {e['question']} | {e['shown']} | {e['target']} | {last} |")
        if result["exit"]:
            lines.append(f"| {name} | did not end well | exit {result['exit']} | | |")
    return "\n".join(lines) + "\n"


def plot(results, kept, path):
    """Plot ratios with the range of their quartiles and their targets; ratios of the kept run are open marks."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [
        (name, e, before(kept, name, e["question"]))
        for name, result in results["benchmarks"].items()
        for e in result["figures"]
        if "low" in e and e["value"] > 0
    ]
    if not rows:
        return False
    figure_, axes = plt.subplots(figsize=(10, 1.4 + 0.28 * len(rows)), layout="constrained")
    marks = {}
    for i, (name, e, last) in enumerate(rows):
        axes.plot([e["low"], e["high"]], [i, i], color="#4477aa", linewidth=2)
        marks["measured, with quartiles"] = axes.plot(e["value"], i, "o", color="#4477aa", markersize=5)
        if wanted := NUMBER.search(e["target"]):
            marks["wanted"] = axes.plot(float(wanted[0]), i, "|", color="#cc6633", markersize=12, mew=2)
        if last:
            ring = {"markerfacecolor": "none", "markeredgecolor": "#888888", "markersize": 8}
            marks["the kept run"] = axes.plot(last, i, "o", **ring)
        if i and rows[i - 1][0] != name:
            axes.axhline(i - 0.5, color="#dddddd", linewidth=1, zorder=0)
    axes.axvline(1, color="#bbbbbb", linewidth=1, zorder=0)
    labels = [f"{name}: {e['question']}" for name, e, _ in rows]
    axes.set_yticks(range(len(rows)), [label[:95] for label in labels], fontsize=8)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("ratio, as each line says of what to what")
    axes.spines[["top", "right"]].set_visible(False)
    handles = [found[0] for found in marks.values()]
    figure_.legend(handles, marks.keys(), loc="outside upper center", ncols=3, frameon=False)
    figure_.savefig(path, dpi=110)
    plt.close(figure_)
    return True


def write(results, kept, folder):
    """Write the figures to a folder and return the names of the files."""
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "table.md").write_text(table(results, kept))
    drawn = plot(results, kept, folder / "plot.png")
    return "results.json, table.md" + (", plot.png" if drawn else "")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAMES", help="names of files, separated by commas; see --list")
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--list", action="store_true", help="list the files and exit")
    parser.add_argument(
        "--output", type=Path, default=HERE / "out", help="folder for results.json, table.md and plot.png"
    )
    parser.add_argument("--keep", action="store_true", help=f"write {KEPT.name} in results: what is committed")
    return parser.parse_args()


def main():
    given, known = arguments(), benchmarks()
    if given.list:
        print("\n".join(known))
        return 0
    wanted = given.only.split(",") if given.only else [n for n in known if not given.quick or n in QUICK]
    if unknown := [name for name in wanted if name not in known]:
        sys.exit(f"--only: no benchmark {', '.join(unknown)}; there are {', '.join(known)}.")
    kept = json.loads(KEPT.read_text()) if KEPT.is_file() else {}
    results = {"machine": machine(), "benchmarks": {}}
    given.output.mkdir(parents=True, exist_ok=True)
    for name in wanted:
        print(f"--- {name}", flush=True)
        results["benchmarks"][name] = measured(name)
        # after each benchmark, so that an interrupted run keeps its results
        written = write(results, kept, given.output)
    print(f"\n{table(results, kept)}\nin {given.output}: {written}")
    if given.keep:
        merged = {"machine": results["machine"], "benchmarks": {**kept.get("benchmarks", {}), **results["benchmarks"]}}
        KEPT.write_text(json.dumps(merged, indent=1) + "\n")
    return max((r["exit"] != 0 for r in results["benchmarks"].values()), default=0)


if __name__ == "__main__":
    sys.exit(main())
