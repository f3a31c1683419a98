"""How far are the features of each kind from the exact kernel, at which cost, and how near to the least possible error?

python -m benchmarks.accuracy.kernel_errors                        # three sets, chi2 and exp-chi2; two minutes
python -m benchmarks.accuracy.kernel_errors --kernels jensen-shannon,gaussian --sets newsgroups20_counts
"""

import argparse

from benchmarks.measure import counts, mnist
from chimap.features.kernel_errors import kernel_errors
from chimap.readers import open_source

SETS = {
    "mnist": lambda: mnist(normalize=True)[0],
    "hmp_otu_counts": lambda: counts("hmp_otu_counts.npz"),
    "newsgroups20_counts": lambda: counts("newsgroups20_counts.npz"),
}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--sets", default=",".join(SETS))
    asked.add_argument("--kernels", default="chi2,exp-chi2")
    asked.add_argument("--components", default="256,1024")
    given = asked.parse_args()
    sizes = [int(size) for size in given.components.split(",")]
    for name in given.sets.split(","):
        source = open_source(SETS[name]())
        for kernel in given.kernels.split(","):
            errors = kernel_errors(source, kernel=kernel, n_components=sizes)
            of = "single values" if errors.bound_of == "values" else f"a matrix of {errors.n_gram_rows} rows"
            print(f"\n{name}, {errors.kernel}; relative error, its mean over pairs, least error of {of}, time a row")
            for found in errors.ranked:
                error = found.value_error if errors.bound_of == "values" else found.error_relative
                least = errors.bounds.get(found.size if errors.bound_of == "values" else found.n_features)
                print(
                    f"  {found.name:52} {'-' if error is None else f'{error:.2e}':>9} {found.error_mean:.2e} "
                    f"{'-' if least is None else f'{least:.2e}':>9} {1e6 * found.map_seconds:8.1f} us"
                )
            for refused in errors.refused:
                print(f"  {refused.family}, {refused.size}: {refused.reason}")


if __name__ == "__main__":
    main()
