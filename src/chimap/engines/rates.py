"""How fast two ordinary cores compute: the one set of measured rates by which machines are planned and trials counted.

Operations per second unless it is said otherwise. Large matrices are computed faster than the small ones of a trial;
rates of trials also cover what an estimate leaves out.
"""

from __future__ import annotations

from typing import NamedTuple


class Rates(NamedTuple):
    """Rates of two cores."""

    # of fits to all rows
    products: float = 3.5e11  # of rows with rows
    factors: float = 3e11  # of Cholesky factors
    sums: float = 2e11  # of sums of features
    exponential_seconds: float = 1.5e-10  # of an exponential with its sum
    # of pairs of sparse rows that the min-max kernel compares
    small_entries: float = 6.6e9  # entries of a row of small whole numbers, whose levels are bits
    shared_entries: float = 5.5e8  # entries that two rows of other numbers share
    # of trials: kernel machines that share products
    trial_products: float = 1e11
    trial_factors: float = 5e10
    pairs: float = 3e8  # pairs of rare entries, per second
    trial_exponentials: float = 2e8  # per second
    visits: float = 6e8  # entries that LIBLINEAR visits, per second
    entries: float = 1e9  # of pairs of rows that a kernel without a map compares, per second
    # of trials: fits of their own, with landmarks or frequencies that are chosen, traces, refinement
    kernels: float = 5e10
    features: float = 2.2e10


RATES = Rates()
