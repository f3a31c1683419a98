"""Lengths of the weights of a group under its norm."""

import numba as nb
import numpy as np

from chimap._loops._compile import EXACT


@nb.njit(**EXACT)
def group_lengths(values, squares, level, guess, tolerance, most, lengths):
    """lengths[t] = r with sum_i squares[i, t] / (values[i] r + level)^2 = 1, or 0 where the sum at 0 is below 1.

    Newton's method on one over the root of the sum, from guess (t,) on, until a step is below tolerance times r, or
    ``most`` steps. values (m,), squares (m, t).
    """
    for t in range(squares.shape[1]):
        total = 0.0
        for i in range(squares.shape[0]):
            total += squares[i, t]
        r = 0.0
        if total > level * level:
            r = guess[t]
            for _ in range(most):
                left = slope = 0.0
                for i in range(squares.shape[0]):
                    term = values[i] * r + level
                    share = squares[i, t] / (term * term)
                    left += share
                    slope += share * (values[i] / term)
                move = left * (np.sqrt(left) - 1) / slope
                r = max(r + move, 0.0)
                if abs(move) <= tolerance * r:
                    break
        lengths[t] = r
