"""Loops over pixels and grid points of images."""

import numba as nb
import numpy as np

from chimap._loops._compile import EXACT, INLINED, SUMS


@nb.njit(**EXACT)
def share_orientations(length, angle, out):
    """Add the length of each pixel's gradient to the two orientations next to its angle (0 to 2 pi), linearly.

    ``out`` (H, W, orientations) starts at zero.
    """
    n = out.shape[2]
    to_bins = np.float32(n / (2 * np.pi))
    for r in range(length.shape[0]):
        for c in range(length.shape[1]):
            place = angle[r, c] * to_bins
            low = int(place)
            share = place - np.float32(low)
            out[r, c, low % n] += (np.float32(1) - share) * length[r, c]
            out[r, c, (low + 1) % n] += share * length[r, c]


@nb.njit(**SUMS)
def sift_vectors(bins, x, y, size, weights, plane, out, sums):
    """Write 4 x 4 bins of all orientations at each point, divided by their length, cut at 0.2, and divided again.

    ``bins`` (H, W, orientations) are already filtered; ``x`` and ``y`` give the first bin of each column and row of
    points. The vectors go to out[:, plane], the sums of the bins before any division to sums[:, plane].
    """
    side, orientations = weights.shape[0], bins.shape[2]
    floor = np.float32(1e-10)
    for i in range(y.shape[0]):
        for j in range(x.shape[0]):
            o = out[i * x.shape[0] + j, plane]
            total = np.float32(0)
            squares = np.float32(0)
            at = 0
            for by in range(side):
                row = bins[y[i] + by * size]
                for bx in range(side):
                    b = row[x[j] + bx * size]
                    w = weights[by] * weights[bx]
                    for t in range(orientations):
                        value = w * b[t]
                        o[at + t] = value
                        total += value
                        squares += value * value
                    at += orientations
            sums[i * x.shape[0] + j, plane] = total
            cut = np.float32(0.2) * np.sqrt(squares) + floor
            squares = np.float32(0)
            for t in range(o.shape[0]):
                value = min(o[t], cut)
                o[t] = value
                squares += value * value
            scale = np.float32(1) / (np.sqrt(squares) + floor)
            for t in range(o.shape[0]):
                o[t] *= scale


@nb.njit(**EXACT)
def largest(scores, words, values):
    """Write the k largest scores of each row and their places, largest first; k is the width of ``words``."""
    k = words.shape[1]
    for r in range(scores.shape[0]):
        row, word, value = scores[r], words[r], values[r]
        for q in range(k):
            value[q] = -np.inf
            word[q] = 0
        for i in range(row.shape[0]):
            s = row[i]
            if s > value[k - 1]:
                q = k - 1
                while q > 0 and value[q - 1] < s:
                    value[q] = value[q - 1]
                    word[q] = word[q - 1]
                    q -= 1
                value[q] = s
                word[q] = i


@nb.njit(**EXACT)
def scan_windows(words, places, table, first, scores):
    """Add the sums over words of table[word, count], (words, most + 1, t), to scores (rows, columns, t) of windows.

    Counts are of the points in some rectangles of the layers of words (layers, H, W), where -1 is no point. ``places``
    (rectangles, 6) holds layer, top, left, height, width and stride of each at window (0, 0); those of window (first +
    i, j) lie stride (first + i) rows lower and stride j columns to the right. From one window to the next, the points
    of a column leave and those of another enter, stride times: two look-ups for each point that moves, whatever the
    size of the window.
    """
    n_outputs = scores.shape[2]
    counts = np.zeros(table.shape[0], np.int32)
    nothing = np.zeros(n_outputs)
    for w in range(table.shape[0]):
        for t in range(n_outputs):
            nothing[t] += table[w, 0, t]
    score = np.empty(n_outputs)
    for i in range(scores.shape[0]):
        counts[:] = 0
        score[:] = nothing
        for p in range(places.shape[0]):
            layer, top, left, height, width, stride = places[p]
            start = stride * (first + i) + top
            for x in range(left, left + width):
                for y in range(start, start + height):
                    w = words[layer, y, x]
                    if w >= 0:
                        for t in range(n_outputs):
                            score[t] += table[w, counts[w] + 1, t] - table[w, counts[w], t]
                        counts[w] += 1
        for j in range(scores.shape[1]):
            for t in range(n_outputs):
                scores[i, j, t] += score[t]
            if j + 1 == scores.shape[1]:
                break
            for p in range(places.shape[0]):
                layer, top, left, height, width, stride = places[p]
                start = stride * (first + i) + top
                for y in range(start, start + height):
                    for x in range(left + stride * j, left + stride * (j + 1)):
                        old, new = words[layer, y, x], words[layer, y, x + width]
                        if old == new:
                            continue
                        if old >= 0:
                            for t in range(n_outputs):
                                score[t] += table[old, counts[old] - 1, t] - table[old, counts[old], t]
                            counts[old] -= 1
                        if new >= 0:
                            for t in range(n_outputs):
                                score[t] += table[new, counts[new] + 1, t] - table[new, counts[new], t]
                            counts[new] += 1


@nb.njit(**EXACT)
def cell_shares(sums, y, x, out):
    """Write the weight of each word in each cell of windows, divided by the weight of the last cell, to ``out``.

    ``sums`` (rows, columns, words) float64 are those of the weights above and to the left of corners; ``y`` (cells, 2)
    and ``x`` (windows, cells, 2) are indices of the corners at the two ends of a cell. ``out`` (windows, (cells - 1) *
    words) leaves the last cell out. Negative differences, which can only be rounding, become 0.
    """
    n_cells, n_words = y.shape[0] - 1, sums.shape[2]
    for i in range(x.shape[0]):
        total = 0.0
        for w in range(n_words):
            total += _within(sums, y[n_cells], x[i, n_cells], w)
        if total <= 0.0:
            total = 1.0  # the cells are empty too
        for c in range(n_cells):
            for w in range(n_words):
                out[i, c * n_words + w] = _within(sums, y[c], x[i, c], w) / total


@nb.njit(**INLINED)
def _within(sums, y, x, w):
    below = sums[y[1], x[1], w] - sums[y[1], x[0], w]
    return max(below - (sums[y[0], x[1], w] - sums[y[0], x[0], w]), 0.0)


@nb.njit(**EXACT)
def hog_cells(image, cell, first, orientation, cleared, out):
    """Write histograms of orientations of square cells, as if their outermost pixels were those of an image.

    image is (H, W, 3) uint8; out (rows, columns, k, orientations) float32, rows of cells from ``first`` on, starts at
    zero. A gradient is the difference of the neighbours, 0 across the border of the image. The colour with the longest
    gradient counts, by its length, for the two orientations (of half a turn) next to its own, which ``orientation``
    (511, 511) float32 holds for differences in y and x from -255 to 255. cleared (k, 2) names, for each of the k
    histograms of a cell, the row and the column whose gradient across is 0 as well: 0 none, 1 first, 2 last.
    """
    height, width = image.shape[0], image.shape[1]
    n = out.shape[3]
    low = np.zeros(3, np.int64)  # of the gradient, without its component in y, without that in x
    share = np.zeros(3, np.float32)
    length = np.zeros(3, np.float32)
    # of pixels inside, first and last in y, the same in x, and by the component that is left out
    sums = np.zeros((3, 3, 3, n), np.float32)
    low[2] = n // 2
    share[2] = np.float32(0.5 * (n % 2))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            sums[:] = 0
            for r in range(cell):
                y = (first + i) * cell + r
                at_y = 1 if r == 0 else 2 if r == cell - 1 else 0
                above, below = (y - 1, y + 1) if 0 < y < height - 1 else (y, y)
                for c in range(cell):
                    x = j * cell + c
                    at_x = 1 if c == 0 else 2 if c == cell - 1 else 0
                    left, right = (x - 1, x + 1) if 0 < x < width - 1 else (x, x)
                    best_x = best_y = most_x = most_y = np.int64(0)
                    for plane in range(3):
                        dx = np.int64(image[y, right, plane]) - np.int64(image[y, left, plane])
                        dy = np.int64(image[below, x, plane]) - np.int64(image[above, x, plane])
                        if dx * dx + dy * dy > best_x * best_x + best_y * best_y:
                            best_x, best_y = dx, dy
                        most_x, most_y = max(most_x, abs(dx)), max(most_y, abs(dy))
                    place = orientation[best_y + 255, best_x + 255]
                    low[0] = int(place)
                    share[0] = place - np.float32(low[0])
                    length[0] = np.sqrt(np.float32(best_x * best_x + best_y * best_y))
                    length[1] = np.float32(most_x)
                    length[2] = np.float32(most_y)
                    for v in range(3):
                        if v == 0 or (v == 1 and at_y > 0) or (v == 2 and at_x > 0):
                            high = 0 if low[v] + 1 == n else low[v] + 1
                            sums[at_y, at_x, v, low[v]] += (np.float32(1) - share[v]) * length[v]
                            sums[at_y, at_x, v, high] += share[v] * length[v]
            for k in range(cleared.shape[0]):
                for at_y in range(3):
                    for at_x in range(3):
                        no_y = at_y > 0 and cleared[k, 0] == at_y
                        no_x = at_x > 0 and cleared[k, 1] == at_x
                        if no_y and no_x:
                            continue
                        v = 1 if no_y else 2 if no_x else 0
                        for q in range(n):
                            out[i, j, k, q] += sums[at_y, at_x, v, q]


@nb.njit(**EXACT)
def add_at_places(sums, places, first, stride, out):
    """Add contributions of blocks at places of windows to ``out`` (rows, columns), the scores of the windows.

    ``sums`` (rows, columns, places) are those of all columns of blocks of an image, and of its rows from ``first`` on.
    ``places`` (places, 2) are the row and column of a block in a window. Windows are ``stride`` blocks apart.
    """
    for i in range(sums.shape[0]):
        for p in range(places.shape[0]):
            below = first + i - places[p, 0]  # the first block of its window
            row = below // stride
            if below < 0 or below % stride > 0 or row >= out.shape[0]:
                continue
            for column in range(out.shape[1]):
                out[row, column] += sums[i, places[p, 1] + column * stride, p]
