"""Groups of columns that share a width of the kernel."""

from __future__ import annotations

import numpy as np

from chimap._errors import InputError
from chimap._types import ArrayLike, Blocks
from chimap._validation import check_blocks, check_choice


def partition(blocks: Blocks | None, n_columns: int) -> tuple[list[str], list[np.ndarray]]:
    """Return names and index arrays of blocks that hold each column exactly once; None is one block of all columns.

    Raises ValueError for blocks that overlap or leave columns out.
    """
    if blocks is None:
        return ["all"], [np.arange(n_columns)]
    names, blocks_of = check_blocks(blocks, n_columns)
    times = np.bincount(np.concatenate(blocks_of), minlength=n_columns)
    if np.any(times > 1):
        column = int(np.flatnonzero(times > 1)[0])
        sharing = [name for name, columns in zip(names, blocks_of, strict=True) if column in columns]
        raise InputError(
            f"blocks overlap: column {column} is in {' and in '.join(map(repr, sharing))}. Each column belongs to one "
            "width."
        )
    if np.any(times == 0):
        column = int(np.flatnonzero(times == 0)[0])
        raise InputError(
            f"blocks miss {np.count_nonzero(times == 0)} of the {n_columns} columns, column {column} first. Put them "
            "into a block, or drop them from the rows."
        )
    return names, blocks_of


def width_groups(
    widths: str | ArrayLike, block_names: list[str], blocks: list[np.ndarray], n_columns: int
) -> tuple[list[str], np.ndarray]:
    """Return the names of the widths (r,) and the width of each column (n_columns,); see ``WidthFeatures``."""
    if not isinstance(widths, str):
        groups = np.asarray(widths)
        if groups.shape != (n_columns,) or groups.dtype.kind not in "iu":
            raise InputError(
                f"widths as an array must be whole numbers, one for each of the {n_columns} columns; got shape "
                f"{groups.shape} of {groups.dtype}."
            )
        sizes = np.bincount(groups) if groups.min() >= 0 else np.zeros(1, int)
        if np.any(sizes == 0):
            raise InputError(
                f"widths: group {int(np.flatnonzero(sizes == 0)[0])} has no column; number the groups from 0 on "
                "without gaps."
            )
        return [f"group {j}" for j in range(sizes.size)], groups.astype(np.int64)
    check_choice(widths, "widths", ("block", "bin", "one"))
    if widths == "one":
        return ["all"], np.zeros(n_columns, dtype=np.int64)
    if widths == "bin":
        return [f"bin {i}" for i in range(n_columns)], np.arange(n_columns)
    groups = np.empty(n_columns, dtype=np.int64)
    for j, columns in enumerate(blocks):
        groups[columns] = j
    return block_names, groups
