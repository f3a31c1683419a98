"""Loops over groups of weights: their norms, residuals of the optimality conditions, and sweeps."""

import numba as nb
import numpy as np

from chimap._loops._compile import EXACT


@nb.njit(**EXACT)
def group_norms(W, order, starts, norms):
    """Write norms[g, k] = |w_g|_2 of W (D, t) for each column k, or over all columns if norms has a single one."""
    norms[:] = 0.0
    for g in range(norms.shape[0]):
        for i in order[starts[g] : starts[g + 1]]:
            for t in range(W.shape[1]):
                norms[g, min(t, norms.shape[1] - 1)] += W[i, t] * W[i, t]
    for g in range(norms.shape[0]):
        for k in range(norms.shape[1]):
            norms[g, k] = np.sqrt(norms[g, k])


@nb.njit(**EXACT)
def group_residuals(W, gradient, order, starts, levels, norms, residuals):
    """Write |gradient_g / level + w_g / |w_g||, or max(0, |gradient_g / level| - 1) where w_g is zero.

    ``norms`` and ``residuals`` are (groups, t) or (groups, 1), as in ``group_norms``.
    """
    residuals[:] = 0.0
    for g in range(residuals.shape[0]):
        for i in order[starts[g] : starts[g + 1]]:
            for t in range(W.shape[1]):
                k = min(t, residuals.shape[1] - 1)
                norm = norms[g, k]
                off = gradient[i, t] / levels[g] + (W[i, t] / norm if norm > 0 else 0.0)
                residuals[g, k] += off * off
        for k in range(residuals.shape[1]):
            length = np.sqrt(residuals[g, k])
            residuals[g, k] = length if norms[g, k] > 0 else max(length - 1, 0.0)


@nb.njit(**EXACT)
def group_lengths(values, squares, level, guess, tolerance, most, lengths):
    """Write lengths[t] = r with sum_i squares[i, t] / (values[i] r + level)^2 = 1, or 0 where the sum at 0 is below 1.

    Newton's method on one over the root of the sum, from guess (t,) on, until a step is below tolerance times r, or for
    ``most`` steps. That function is concave and nearly linear, so that the iterates approach the root from the left
    whatever the start (More and Sorensen). ``values`` are (m,), ``squares`` (m, t).
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


@nb.njit(**EXACT)
def best_of_group(values, inner, pull, level, shared, tolerance, most):
    """Overwrite pull with argmin w'diag(values)w/2 - c'w + level |w|, where c = pull + values inner, column by column.

    ``inner`` (m, t) are the current weights. If ``shared``, |w| is one length over all columns together, else one
    per column. The length r solves sum_i c_i^2 / (values_i r + level)^2 = 1, whose left side decreases in r.
    """
    size, n_targets = pull.shape
    n_lengths = 1 if shared else n_targets
    squares, guess, lengths = np.zeros((size, n_lengths)), np.zeros(n_lengths), np.empty(n_lengths)
    for i in range(size):
        for t in range(n_targets):
            k = 0 if shared else t
            guess[k] += inner[i, t] * inner[i, t]
            pull[i, t] += values[i] * inner[i, t]  # undo the group's own share in H W
            squares[i, k] += pull[i, t] * pull[i, t]
    for k in range(n_lengths):
        guess[k] = np.sqrt(guess[k])
    group_lengths(values, squares, level, guess, tolerance, most, lengths)
    for i in range(size):
        for t in range(n_targets):
            length = lengths[0 if shared else t]
            pull[i, t] *= length / (values[i] * length + level)


@nb.njit(**EXACT)
def sweep_groups(H, V, W, starts, active, values, vectors, offsets, levels, shared, times, tolerance, most):
    """Minimise tr(W'HW)/2 - tr(W'V) + sum_g levels[g] |w_g| over each active group in turn, ``times`` times, in place.

    H is (D, D), V and W are (D, t). The columns of a group are consecutive, from starts[g] (groups + 1,) on. ``values``
    (D,) and, from offsets[g] on, ``vectors`` (D_g, D_g) flat are the eigenvalues and eigenvectors of each group's block
    of H. A group has one length over all targets if ``shared``, else one per target. ``tolerance`` and ``most`` are
    those of ``group_lengths``.
    """
    for _ in range(times):
        for j in active:
            first, last, o = starts[j], starts[j + 1], offsets[j]
            turn = vectors[o : offsets[j + 1]].reshape(last - first, last - first)
            inner = np.dot(turn.T, W[first:last])  # the weights of the group, in its eigenvectors
            rest = np.dot(H[first:last], W)
            for i in range(last - first):  # differences and assignments of whole arrays take seconds to compile
                for t in range(W.shape[1]):
                    rest[i, t] = V[first + i, t] - rest[i, t]
            pull = np.dot(turn.T, rest)
            best_of_group(values[first:last], inner, pull, levels[j], shared, tolerance, most)
            solved = np.dot(turn, pull)
            for i in range(last - first):
                for t in range(W.shape[1]):
                    W[first + i, t] = solved[i, t]
