"""From a memory budget to the size of chunks."""

from __future__ import annotations

from dataclasses import dataclass

from chimap._validation import MemoryBudgetError, format_bytes
from chimap.moments import Product, Symmetric
from chimap.moments.product import MOST_ROWS

CHUNK_UNIT = 1024  # rows; chunks are multiples of it
PIECE_ROWS = 2048  # of one fold, whose features are in memory together: enough for products at full rate
_SPARE = 0.25  # of a chunk: what checks and the choice of folds take beside it


@dataclass(frozen=True)
class Job:
    """The sizes that the memory of a fit depends on.

    n_features D, n_targets t, n_folds K, n_mapped (features before the random projection, 0 without one),
    n_frequencies, row_bytes of the source, itemsize of the precision; held_bytes, which reading keeps beside the
    chunks, and whether it reads a chunk ahead (``from_files`` of the source). For losses that are minimised by passes:
    n_kept rows whose features stay in memory, at kept_itemsize bytes a number, and n_vectors of the size of the
    weights. solver_bytes: what a solver takes beside a full matrix and its vectors. n_waiting: moments of parts that
    wait in memory to be merged (``Engine``). n_rows of the source, 0 where it is not known. copies_rows: whether the
    rows of a chunk are converted or normalised before they are mapped.
    """

    n_features: int
    n_targets: int
    n_folds: int
    n_mapped: int
    n_frequencies: int
    row_bytes: float
    itemsize: int
    held_bytes: float = 0.0
    reads_ahead: bool = False
    n_kept: int = 0
    kept_itemsize: int = 0
    n_vectors: int = 0
    solver_bytes: int = 0
    n_waiting: int = 0
    n_rows: int = 0
    copies_rows: bool = True

    @property
    def model_bytes(self) -> int:
        """Frequencies, and what drawing orthogonal ones takes for a moment."""
        block = min(self.n_frequencies, self.n_mapped, 2048)
        return self.itemsize * self.n_mapped * (self.n_frequencies + 3 * block)

    @property
    def moments_bytes(self) -> int:
        """Half a matrix a fold, with sums and cross moments."""
        return self.n_folds * (Symmetric.nbytes(self.n_features) + 8 * self.n_features * (self.n_targets + 2))

    @property
    def solve_bytes(self) -> int:
        """Folds, their sum, one full matrix for its factor, the vectors of conjugate gradients."""
        whole = Symmetric.nbytes(self.n_features) if self.n_folds > 1 else 0
        vectors = 12 * 8 * self.n_features * self.n_targets * self.n_folds
        frequencies = self.itemsize * self.n_mapped * self.n_frequencies
        return self.moments_bytes + whole + 8 * self.n_features**2 + vectors + frequencies + self.solver_bytes

    def pass_bytes(self, chunk_rows: int) -> int:
        """Reading, mapping and accumulating with chunks of so many rows."""
        chunk_rows = min(chunk_rows, self.n_rows or chunk_rows)
        piece = min(PIECE_ROWS, -(-chunk_rows // self.n_folds))
        square = Product.nbytes(self.n_features, self.itemsize)
        features = self.itemsize * piece * (self.n_features + self.n_mapped)
        # sums of rows by target and their difference; a matrix of targets, scores and slopes where there are passes
        targets = 3 * self.itemsize * self.n_features * self.n_targets
        targets += 24 * chunk_rows * (self.n_targets if self.n_vectors else 1)
        # the chunk that is worked on and the one that is read meanwhile; a copy where rows are converted or normalised
        ahead = min(chunk_rows, self.n_rows - chunk_rows) if self.n_rows else chunk_rows
        held_rows = (1 + _SPARE + self.copies_rows) * chunk_rows + self.reads_ahead * ahead + 2 * piece
        rows = self.row_bytes * held_rows + self.held_bytes
        frequencies = self.itemsize * self.n_mapped * self.n_frequencies
        moments = (1 + self.n_waiting) * self.moments_bytes
        return int(moments + square + features + targets + rows + frequencies)

    @property
    def kept_bytes(self) -> int:
        """Features and targets that stay in memory."""
        return self.n_kept * (self.kept_itemsize * self.n_features + 8 * self.n_targets)

    @property
    def search_bytes(self) -> int:
        """Weights, gradients and their history beside the moments, and the factor that whitens them."""
        return self.solve_bytes + 8 * self.n_vectors * self.n_features * self.n_targets

    def peak_bytes(self, chunk_rows: int) -> int:
        """The largest of the stages, with what is kept through all of them."""
        passing = self.pass_bytes(chunk_rows)
        # a search computes features again beside its vectors, or reads those that are kept
        searching = self.search_bytes + (
            passing - self.moments_bytes if self.n_vectors and not self.n_kept else 0
        )
        held = int(self.held_bytes)
        return self.kept_bytes + max(self.model_bytes + held, searching + held, passing)


def chunk_rows_within(job: Job, budget: int) -> int:
    """Rows a chunk, a multiple of 1024, such that the whole fit stays within ``budget`` bytes.

    Raises MemoryBudgetError, with the smallest budget that would do, if not even the smallest chunk fits.
    """
    smallest = job.peak_bytes(CHUNK_UNIT)
    if smallest > budget:
        raise MemoryBudgetError(
            f"memory={format_bytes(budget)} is too small: {job.n_features} features with {job.n_folds} fold(s) "
            f"need {format_bytes(1.02 * smallest)}. Give memory='{-(-int(1.02 * smallest) // 2**20)}MiB', or "
            "fewer n_components (or n_terms), an exponential kernel in place of an additive one on many bins, or "
            "a fixed strength instead of cross-validation."
        )
    units = max(1, job.n_folds * MOST_ROWS // CHUNK_UNIT)
    while units > 1 and job.peak_bytes(units * CHUNK_UNIT) > budget:
        units -= 1
    return units * CHUNK_UNIT
