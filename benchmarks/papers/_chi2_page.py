"""Write the page of chi2_tables.py: the paper's two tables with our figures beside them, and its two figures."""

from collections.abc import Iterator

import numpy as np

Cells = dict[str, dict[str, float]]

DIMENSIONS = (3000, 5000, 7000)
TERMS = (1, 2, 3, 5, 9)
LANDMARKS = (250, 500, 1000, 2000)
METHODS = ("Chi2-Skewed", "Chebyshev", "VZ", "Direct", "Optimal")
ROWS = (
    "Chi2",
    "Chi2-Skewed",
    "Chebyshev",
    "VZ",
    "Direct",
    "Optimal",
    "PCA-Chebyshev",
    "PCA-VZ",
    "PCA-Direct",
    "PCA-Optimal",
    "Nystroem",
)
SETS = {
    "caltech": "Caltech-101, 600 visual words; 3060 training and 1355 test images of 102 classes",
    "cifar10": "CIFAR-10, 500 visual words; 2500 training and 1000 test images of 10 classes",
}

# mean and standard deviation in %, over 50 seeds; None: unreadable in the scan
PAPER = {
    "Table 1 (VOC 2010 segments, 300 SIFT words)": {
        "Chi2": ((41.91, 0), (42.32, 0), (42.12, 0)),
        "Chi2-Skewed": ((39.82, 0.73), (40.79, 0.55), (40.90, 0.82)),
        "Chebyshev": ((42.03, 0.80), (42.61, 0.65), (42.61, 0.64)),
        "VZ": ((42.29, 0.74), (42.82, 0.63), (43.00, 0.57)),
        "Direct": ((42.09, 0.79), (42.88, 0.63), (43.21, 0.63)),
        "PCA-Chebyshev": ((42.80, 0.74), (43.25, 0.55), (43.42, 0.42)),
        "PCA-Direct": ((43.16, 0.55), (43.31, 0.53), (43.53, 0.71)),
        "Exact exp-chi2": ((44.19, 0),) * 3,
    },
    "Table 2 (the same, HOG of 1700 bins)": {
        "Chi2": ((29.15, 0), (30.50, 0), (31.22, 0)),
        "Chi2-Skewed": ((30.08, 0.74), (30.37, 0.63), (30.51, 0.35)),
        "Chebyshev": ((30.86, 0.78), (31.53, 0.66), (31.90, 0.70)),
        "VZ": ((31.32, 0.90), (32.07, 0.83), (32.36, 0.62)),
        "Direct": ((31.71, 0.92), (32.72, 0.73), (32.94, 0.66)),
        "PCA-Chebyshev": ((32.59, 0.77), (33.11, 0.57), (33.22, 0.54)),
        "PCA-VZ": ((32.94, 0.67), (33.41, 0.54), (33.45, 0.59)),
        "PCA-Direct": ((32.92, 0.66), (33.68, 0.57), (33.63, 0.67)),
        "Exact exp-chi2": ((34.34, 0),) * 3,
    },
}


def page(known: Cells, beta: float) -> str:
    """Return the whole page, in Markdown, from the cells that have been computed."""
    lines = [
        f"Accuracy of exp(-beta (1 - K)), beta = {beta}, from random features; mean and deviation over seeds, %. Five "
        "terms per bin. Mean accuracy per class, by LIBSVM.",
        "",
    ]
    for name, (table, paper) in zip(SETS, PAPER.items(), strict=True):
        if f"{name}/exact" in known:
            lines += [*_table(known, name, table, paper), "", *_errors(known, name), *_by_terms(known, name), ""]
    return "\n".join(lines)


def _table(known: Cells, name: str, table: str, paper: dict[str, tuple]) -> Iterator[str]:
    exact = known[f"{name}/exact"]
    yield f"## {SETS[name]}; C = {exact['C']:g}"
    yield ""
    yield f"The paper's numbers are those of its {table}: other data, so compare the order and the gaps."
    yield ""
    heads = [f"{d}" for d in DIMENSIONS]
    yield f"| | seeds | {' | '.join(heads)} | {' | '.join('paper, ' + h for h in heads)} |"
    yield "|---|---|" + "---|" * (2 * len(heads))
    for row in ROWS:
        found = list(_values(known, name, row))
        ours = [_spread(v) for v in found]
        theirs = [_pair(p) for p in paper.get(row, (None,) * len(heads))]
        yield f"| {row} | {len(found[0])} | {' | '.join(ours + theirs)} |"
    for row in ("Exact chi2", "Exact exp-chi2"):
        theirs = [_pair(p) for p in paper.get(row, (None,) * len(heads))]
        yield f"| {row} | | {' | '.join([f'{100 * exact[row]:.2f}'] * len(heads) + theirs)} |"
    yield from _landmarks(known, name)


def _landmarks(known: Cells, name: str) -> Iterator[str]:
    """The same accuracy from landmarks, which need a tenth of the dimensions."""
    cells = [cell for key, cell in known.items() if key.startswith(f"{name}/Landmarks/")]
    if not cells:
        return
    yield ""
    yield f"The same from k-means landmarks in mapped space, one term per bin, by their number; {len(cells)} seeds."
    yield ""
    yield f"| | {' | '.join(map(str, LANDMARKS))} |"
    yield "|---|" + "---|" * len(LANDMARKS)
    yield f"| Landmarks | {' | '.join(_spread([cell[str(m)] for cell in cells]) for m in LANDMARKS)} |"


def _values(known: Cells, name: str, row: str) -> Iterator[list[float]]:
    """Return the accuracies of a row over the computed seeds, for each number of dimensions."""
    for d in DIMENSIONS:
        if row == "Chi2":
            yield [known[f"{name}/exact"][f"{row} {d}"]]
        else:
            method = row.removeprefix("PCA-")
            yield [cell[f"{row} {d}"] for key, cell in known.items() if key.startswith(f"{name}/{method}/")]


def _errors(known: Cells, name: str) -> Iterator[str]:
    questions = {
        "bins": "Figure 1: error of k among values of bins (relative, Frobenius), by terms per bin.",
        "rows": "The same of the kernel matrix of rows, where errors of opposite sign cancel over the bins.",
    }
    for what, title in questions.items():
        yield title
        yield ""
        yield from _by_n(lambda method, n, what=what: _number(known[f"{name}/errors"].get(f"{what} {method} {n}")))
        yield ""


def _by_terms(known: Cells, name: str) -> Iterator[str]:
    yield f"Figure 2: accuracy at {DIMENSIONS[-1]} dimensions by terms per bin, %."
    yield ""

    def cell(method: str, n: int) -> str:
        found = [c for key, c in known.items() if key.startswith(f"{name}/terms/{method}/")]
        return _spread([c[str(n)] for c in found if str(n) in c])

    yield from _by_n(cell)


def _by_n(cell) -> Iterator[str]:
    yield f"| terms | {' | '.join(map(str, TERMS))} |"
    yield "|---|" + "---|" * len(TERMS)
    for method in METHODS[1:]:
        yield f"| {method} | {' | '.join(cell(method, n) for n in TERMS)} |"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"


def _spread(values: list[float]) -> str:
    if not values:
        return ""
    mean = f"{100 * np.mean(values):.2f}"
    return f"{mean} ± {100 * np.std(values, ddof=1):.2f}" if len(values) > 1 else mean


def _pair(value: tuple[float, float] | None) -> str:
    return "" if value is None else f"{value[0]:.2f}" + (f" ± {value[1]:.2f}" if value[1] else "")
