"""How long does the choice of the strength take, compared with the pass over the rows?

MNIST, exp-chi2, with landmarks and with the same number of random features. The choice uses no rows except the 2000
whose score makes the final choice, so its time depends only on the number of features. The pass is timed on
``--rows`` rows, and its time is scaled to ``--of`` rows. The stages are those of one fit in one process, after a
small fit that compiles.

    python -m benchmarks.speed.choice 2000 4096 --rows 20000            # of 60 000 rows
    python -m benchmarks.speed.choice 8192 --rows 10000 --of 10000
"""

import argparse

from benchmarks.measure import mnist, report
from chimap import HistogramClassifier

PASS = ("read", "check", "features", "moments")
WANTED = {60_000: "<= 0.25", 10_000: "<= 1.0"}


def stages(features, D, X, y):
    """Return the seconds of the stages of a fit with gcv, and how many strengths were tried."""
    model = HistogramClassifier(
        "exp-chi2", features=features, n_components=D, selection="gcv", memory="4GiB", random_state=0
    )
    model.fit(X, y)
    return model.stage_seconds_, model.selection_.settings["alpha"].size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("D", nargs="*", type=int, default=[2000, 4096])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--of", type=int, default=60_000)
    parser.add_argument("--features", nargs="+", default=["landmarks"])
    options = parser.parse_args()
    X, y, _, _ = mnist(normalize=True)
    for features in options.features:
        stages(features, 600, X[:2000], y[:2000])
        for D in options.D:
            took, n_scored = stages(features, D, X[: options.rows], y[: options.rows])
            passing = sum(took.get(stage, 0.0) for stage in PASS) * options.of / options.rows
            share = took["choose alpha"] / passing
            report(f"{features}, {options.of} x {D}: choice / pass", round(share, 2), WANTED.get(options.of, ""))
            shown = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in took.items())
            print(f"  {n_scored} strengths; seconds of {options.rows} rows: {shown}", flush=True)


if __name__ == "__main__":
    main()
