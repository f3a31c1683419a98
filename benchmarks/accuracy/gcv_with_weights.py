"""Which strength does generalised cross-validation choose where rows have weights? Five rules, six sets.

Ridge of features z with weights w has squared errors RSS = sum w r^2 of the rows it learned from, which are to stand for
those of rows left out. With leverages h, and df their sum, the rules take as the squared error of a row of weight 1

    n = rows           RSS / sum w / (1 - df / n)^2
    n = effective      the same with n = (sum w)^2 / sum w^2
    n of roots         the same with n = (sum sqrt w)^2 / sum w, which lies between the two
    by weight          RSS / sum w (1 - h)^2,   h = w s / (1 + w s),   and s such that sum h = df
    leave one out      sum w (r / (1 - h))^2 / sum w, which a fit takes of up to 2000 rows

Printed are, over the sets: the squared error of weighted test rows over that of the best strength; and, after the
accuracy of rows left out has chosen between that strength and two decades below, as a fit does, the accuracy of test
rows in points below that of the best strength.

python -m benchmarks.accuracy.gcv_with_weights [--rows 2000] [--landmarks 500] [--seeds 2]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from scipy.optimize import brentq
from sklearn.preprocessing import normalize

from benchmarks.sets import SETS
from chimap import LandmarkFeatures

CHOSEN = ("mnist", "fashion_mnist", "caltech words", "cifar words", "newsgroups", "hmp")
RULES = ("n = rows", "n = effective", "n of roots", "by weight", "leave one out")


def weightings(place: np.ndarray, test_place: np.ndarray, rng: np.random.Generator) -> dict[str, tuple]:
    """Return weights of the rows and of the test rows: a class, precisions, and few rows that matter."""
    plain = np.ones(test_place.size)
    heavy = [np.where(one == 0, 20.0, 1.0) for one in (place, test_place)]
    few = np.where(rng.random(place.size) < 0.2, 1.0, 0.01)
    return {
        "class 0: 20": tuple(heavy),
        "log-normal": (rng.lognormal(0, 1.5, place.size), plain),
        "a fifth": (few, plain),
    }


def chosen(Z: np.ndarray, Y: np.ndarray, w: np.ndarray, alphas: np.ndarray) -> tuple[dict[str, int], list[tuple]]:
    """Return the place of the strength of each rule, and the weights, intercepts and left-out accuracy of all."""
    total, n = w.sum(), w.size
    means, targets = w @ Z / total, w @ Y / total
    centred, away = Z - means, Y - targets
    e, U = np.linalg.eigh((w[:, None] * centred).T @ centred)
    e, projected = np.maximum(e, 0), centred @ U
    right = projected.T @ (w[:, None] * away)
    scores: dict[str, list[float]] = {rule: [] for rule in RULES}
    machines = []
    for alpha in alphas:
        coef = right / (e + alpha)[:, None]
        h = w * (1 / total + np.square(projected) @ (1 / (e + alpha)))
        df, squares = h.sum(), np.square(away - projected @ coef).sum(axis=1)
        rss = w @ squares
        s = brentq(lambda s, df=df: (w * s / (1 + w * s)).sum() - df, 0, 1e9 * df / w.min())
        counted = n, total**2 / np.square(w).sum(), np.sqrt(w).sum() ** 2 / total
        for rule, count in zip(RULES, counted, strict=False):
            scores[rule].append(rss / total / max(1 - df / count, 1e-9) ** 2)
        scores["by weight"].append(rss / (w / (1 + w * s) ** 2).sum())
        scores["leave one out"].append(w @ (squares / np.maximum(1 - h, 1e-9) ** 2) / total)
        left_out = Y - (away - projected @ coef) / np.maximum(1 - h, 1e-9)[:, None]
        right_one = (left_out.argmax(axis=1) == Y.argmax(axis=1)) @ w
        machines.append((U @ coef, targets - means @ U @ coef, right_one))
    return {rule: int(np.argmin(values)) for rule, values in scores.items()}, machines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, default in {"rows": 2000, "landmarks": 500, "seeds": 2}.items():
        parser.add_argument(f"--{option}", type=int, default=default)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, list]] = {}
    for name in CHOSEN:
        whole = SETS[name]()
        for seed in range(options.seeds):
            rng, data = np.random.default_rng(seed), whole.some(options.rows, seed)
            X, Xt = (normalize(rows.astype(np.float64), "l1") for rows in (data.X, data.X_test))
            classes, place = np.unique(data.y, return_inverse=True)
            test_place = np.searchsorted(classes, data.y_test)
            features = LandmarkFeatures("exp-chi2", n_components=options.landmarks, random_state=seed).fit(X)
            Z, Zt = (np.asarray(features.transform(rows), np.float64) for rows in (X, Xt))
            signs = 2.0 * np.eye(classes.size) - 1
            for kind, (w, wt) in weightings(place, test_place, rng).items():
                alphas = w.mean() * len(Z) * 10 ** np.arange(-9, 1, 0.5)
                places, machines = chosen(Z, signs[place], w, alphas)
                outputs = [Zt @ coef + intercept for coef, intercept, _ in machines]
                errors = np.array([wt @ np.square(f - signs[test_place]).sum(axis=1) for f in outputs])
                right = np.array([wt @ (f.argmax(axis=1) == test_place) / wt.sum() for f in outputs])
                of_kind = found.setdefault(kind, {})
                for rule, at in places.items():
                    near = range(at, max(-1, at - 5), -1)
                    final = max(near, key=lambda place: machines[place][2])
                    values = (
                        errors[at] / errors.min(),
                        100 * (right.max() - right[final]),
                        alphas[at] / alphas[errors.argmin()],
                    )
                    of_kind.setdefault(rule, []).append(values)
                    print(
                        f"{name:14}{seed} {kind:12}{rule:14}{values[0]:8.3f}{values[1]:7.2f}{values[2]:10.2g}",
                        flush=True,
                    )
    print(f"\n{'weights':14}{'rule':16}{'error / least':>14}{'most':>8}{'points':>8}{'most':>8}")
    for kind, rules in found.items():
        for rule, values in rules.items():
            error, points, _ = np.array(values).T
            print(f"{kind:14}{rule:16}{error.mean():14.3f}{error.max():8.3f}{points.mean():8.2f}{points.max():8.2f}")


if __name__ == "__main__":
    main()
