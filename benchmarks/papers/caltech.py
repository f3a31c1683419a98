"""Caltech-101 from images to a report: does the chi2 map reach the exact kernel, and how far is it above linear?

15 training images per class, 5 random splits, and all other images to test on (30 at most: the file holds 45 per
class). Dense SIFT, 600 words learned from the training images of each split, and a pyramid of 1x1, 2x2 and 4x4 cells,
each level summing to 1. The machine is a one-versus-rest SVM on kernels of mean diagonal 1. The C of each is chosen
on the first split among 1, 10 and 100, by holding out 5 of the 15 training images per class. All classes count alike
(mean recognition rate).

--table adds the methods of Tables 3 and 4 of the paper on the Dirichlet kernel: mAP (11-point, one class against the
rest) and training times, on the same histograms and splits. --keep FOLDER then keeps histograms and rows as they are
computed, so that a later run does not compute them again. --splits N takes fewer splits, --only METHOD .. only these
methods. --report FILE names the page. --shared takes the histograms of caltech101_45_bow.npz, whose words are learned
once, from the images of another split (30 images per class, 600 words, no labels): five splits then take minutes.
"""

import argparse
import itertools
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import balanced_accuracy_score

from benchmarks.measure import counts, data_file, report
from benchmarks.papers._caltech_methods import Method, Split, main_methods, table_methods
from chimap import open_images
from chimap._files import replacing
from chimap.data.split import PerClassSplits
from chimap.images import SIFT, ImageHistograms
from chimap.reports import Evaluation, classification_metrics, examples, majority_baseline, ranking_metrics

# mAP and seconds of training: Tables 3 and 4 of A probability distribution kernel based on whitening transformation
PAPER = {
    "linear": (0.4232, 15.30),
    "JS + PQ": (0.5286, 1710.23),
    "SIKMA": (0.5807, 27.83),
    "MKL": (0.584, 2449.74),
    "homogeneous map": (0.6306, 320.64),
    "DPWT": (0.6576, 50.54),
}
N_TRAIN, N_HELD = 15, 5


class Found(NamedTuple):
    """The results of a method on one split."""

    alpha: float
    rate: float
    mean_ap: float
    fit_seconds: float
    predict_seconds: float
    scores: np.ndarray


def main() -> None:
    arguments = _arguments()
    began = time.perf_counter()
    stages: dict[str, float] = defaultdict(float)
    images = open_images(data_file("caltech101_45.tar"))
    stages["open"] = time.perf_counter() - began
    assert images.labels is not None
    methods = main_methods() | (table_methods() if arguments.table else {})
    if arguments.only:
        methods = {name: methods[name] for name in arguments.only}
    shared = shared_histograms(images) if arguments.shared else None
    found: dict[str, list[Found]] = defaultdict(list)
    splits = PerClassSplits(N_TRAIN, n_splits=arguments.splits, random_state=0).split(images.labels, images.labels)
    for number, (train, test) in enumerate(splits):
        file = arguments.keep and arguments.keep / f"split {number} histograms.npz"
        if shared is None:
            split = histograms(images, train, test, stages, file)
        else:
            (X, levels), y = shared, images.labels
            split = Split(X[train], y[train], X[test], y[test], images.take(test), levels)
        for name, method in methods.items():
            file = arguments.keep and arguments.keep / f"split {number} {name}.npz"
            result = stored(file)
            if result is None:
                alpha = found[name][0].alpha if found[name] else None
                result = work(name, method, split, alpha, stages)
                store(file, **result._asdict())
            found[name].append(result)
            stages[name] += result.fit_seconds + result.predict_seconds
            print(
                f"split {number}  {name:<18} rate {100 * result.rate:5.2f}  mAP {result.mean_ap:.4f}  "
                f"train {result.fit_seconds:6.1f} s  predict {result.predict_seconds:6.1f} s",
                flush=True,
            )
    shown = "chi2 map" if "chi2 map" in found else next(iter(found))
    page = write_page(images, split, found[shown][-1], stages, arguments)
    stages["this run"] = time.perf_counter() - began
    show(found, stages, page)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--only", nargs="+", metavar="METHOD")
    parser.add_argument("--shared", action="store_true")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--report", type=Path, default=Path("caltech.html"))
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    return parser.parse_args()


def histograms(images, train: np.ndarray, test: np.ndarray, stages: dict[str, float], file: Path | None) -> Split:
    """Learn words from the training images and return the rows of all images; read them from the file if it exists."""
    if file is not None and file.exists():
        with np.load(file) as rows:
            borders = rows["borders"].tolist()
            parts = rows["data"], rows["indices"], rows["indptr"]
            X = sp.csr_array(parts, shape=(len(images), borders[-1])).toarray()
    else:
        describe = ImageHistograms(SIFT(step=4, sizes=(4, 6, 8)), n_words=600, random_state=0)
        began = time.perf_counter()
        describe.fit(images.take(train))
        stages["words"] += time.perf_counter() - began
        began = time.perf_counter()
        X = describe.transform(images)
        stages["images to histograms"] += time.perf_counter() - began
        borders = [0, *(level.stop for level in describe.levels_.values())]
        rows = sp.csr_array(X)
        store(file, borders=borders, data=rows.data, indices=rows.indices, indptr=rows.indptr)
    levels = [slice(a, b) for a, b in itertools.pairwise(borders)]
    return Split(X[train], images.labels[train], X[test], images.labels[test], images.take(test), levels)


def shared_histograms(images) -> tuple[np.ndarray, list[slice]]:
    """Return the levels of 1x1, 2x2 and 4x4 cells of the shared words, and their columns.

    Each level sums to 1. The rows are in the order of the images.
    """
    path = data_file("caltech101_45_bow.npz")
    with np.load(path) as z:
        place = {name.decode() if isinstance(name, bytes) else str(name): i for i, name in enumerate(z["file"])}
    rows = counts(path.name)[[place[name] for name in images.names]].toarray().astype(np.float32)  # summing to 1
    two = rows.reshape(-1, 2, 2, 2, 2, 600).sum(axis=(2, 4))  # of row, row in it, column, column in it, word
    levels = [two.sum(axis=(1, 2)), two.reshape(len(two), -1), rows]
    ends = np.cumsum([0, *(level.shape[1] for level in levels)])
    return np.concatenate(levels, axis=1), [slice(a, b) for a, b in itertools.pairwise(ends)]


def stored(file: Path | None) -> Found | None:
    """Return what a file keeps, or None if there is no file."""
    if file is None or not file.exists():
        return None
    with np.load(file) as arrays:
        numbers = {key: float(arrays[key]) for key in Found._fields if key != "scores"}
        return Found(**numbers, scores=arrays["scores"])


def store(file: Path | None, **arrays) -> None:
    """Write arrays to a file, whole or not at all; do nothing if no file is named."""
    if file is None:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as beside, beside.open("wb") as out:
        np.savez(out, **arrays)


def work(name: str, method: Method, split: Split, alpha: float | None, stages: dict[str, float]) -> Found:
    """Run the method on a split, at the strength of the first split or at one that is chosen on this split."""
    kernel_seconds = method.prepare(split) if method.prepare else (0.0, 0.0)
    if alpha is None:
        alpha = choose(name, method, split, stages)
    return measure(name, split, method.machine(alpha, split), alpha, kernel_seconds)


def choose(name: str, method: Method, split: Split, stages: dict[str, float]) -> float:
    """Return the strength with the best rate on 5 held-out training images per class.

    Ties go to the strongest penalty.
    """
    if len(method.choices) == 1:
        return method.choices[0]
    began = time.perf_counter()
    part = PerClassSplits(N_TRAIN - N_HELD, n_splits=1, random_state=1).split(split.y, split.y)
    kept, held = next(iter(part))
    rates = []
    for alpha in method.choices:
        if name in split.values:
            gram = split.values[name][0]
            X, new = gram[np.ix_(kept, kept)], gram[np.ix_(held, kept)]
        else:
            X, new = split.X[kept], split.X[held]
        machine = method.machine(alpha, split).fit(X, split.y[kept])
        rates.append(balanced_accuracy_score(split.y[held], machine.predict(new)))
    stages["choice of C"] += time.perf_counter() - began
    return method.choices[int(np.argmax(np.round(rates, 4)))]


def measure(name: str, split: Split, machine, alpha: float, kernel_seconds: tuple[float, float]) -> Found:
    X, new = split.values.get(name, (split.X, split.new))
    began = time.perf_counter()
    machine.fit(X, split.y)
    fitted = time.perf_counter()
    scores = machine.decision_function(new)
    done = time.perf_counter()
    classes = machine.classes_
    rate = balanced_accuracy_score(split.y_new, classes[scores.argmax(axis=1)])
    ranked = ranking_metrics(split.y_new, scores, classes, "11-point")
    times = kernel_seconds[0] + fitted - began, kernel_seconds[1] + done - fitted
    return Found(alpha, rate, ranked.mean_average_precision, *times, scores)


def write_page(images, split: Split, found: Found, stages: dict[str, float], arguments: argparse.Namespace) -> Path:
    """Write the page of the chi2 map on the last split."""
    began = time.perf_counter()
    classes = np.unique(split.y)
    answers = classes[found.scores.argmax(axis=1)]
    metrics = classification_metrics(split.y_new, answers, classes=classes)
    ranking = ranking_metrics(split.y_new, found.scores, metrics.classes)
    evaluation = Evaluation(
        title="Caltech-101, 15 training images per class",
        model_name="SVC on the features of OptimalMap",
        data={"file": images.name, "images": len(images), "trained on": len(split.y), "bins": split.X.shape[1]},
        metrics=metrics,
        baseline=majority_baseline(split.y, split.y_new),
        stages=dict(stages),
        settings={"map": "OptimalMap, 3 terms", "kernel": "chi2", "descriptors": "SIFT, step 4", "words": 600},
        ranking=ranking,
        examples=examples(metrics, ranking, split.y_new, answers, found.scores, split.images.read),
    )
    path = evaluation.save(arguments.report, overwrite=True)
    stages["report"] = time.perf_counter() - began
    return path


def show(found: dict[str, list[Found]], stages: dict[str, float], page: Path) -> None:
    print(
        f"\n{'method':<22}{'rate %':>8} {'+-':>5} {'mAP':>8} {'+-':>7} {'train s':>9} {'predict s':>10}   "
        f"{'alpha':>9}   paper: mAP, s"
    )
    for name, results in found.items():
        rates, aps = (np.array([getattr(r, key) for r in results]) for key in ("rate", "mean_ap"))
        spread = [a.std(ddof=1) if len(a) > 1 else 0.0 for a in (rates, aps)]
        fit, predict = (np.median([getattr(r, key) for r in results]) for key in ("fit_seconds", "predict_seconds"))
        paper = "{:.4f} {:8.1f}".format(*PAPER[name]) if name in PAPER else ""
        print(
            f"{name:<22}{100 * rates.mean():8.2f} {100 * spread[0]:5.2f} {aps.mean():8.4f} {spread[1]:7.4f} {fit:9.2f} "
            f"{predict:10.2f}   {results[0].alpha:9g}   {paper}"
        )
    print("\nseconds of each stage, all splits together")
    for name, seconds in stages.items():
        print(f"  {name:<24}{seconds:8.1f}")
    rate = {name: 100 * np.mean([r.rate for r in results]) for name, results in found.items()}
    print()
    if not set(main_methods()) <= set(rate):
        return
    report("chi2 map above linear, points of mean class rate", f"{rate['chi2 map'] - rate['linear']:.2f}", "5 or more")
    report("chi2 map below the exact chi2 SVM, points", f"{rate['chi2 exact'] - rate['chi2 map']:.2f}", "1 or less")
    report("images to report, seconds", f"{stages['this run']:.0f}", "600, without --table")
    if stages["images to histograms"]:
        n = 4415 * len(next(iter(found.values())))
        report("images/s to histograms", f"{n / stages['images to histograms']:.0f}", "12, at 300 x 300")
    print(f"page: {page}")


if __name__ == "__main__":
    main()
