"""From a memory budget to the size of chunks."""

from __future__ import annotations

from dataclasses import dataclass

from chimap._memory import budget_for, room_in
from chimap._validation import MemoryBudgetError, format_bytes
from chimap.backends.host import PIECE_ROWS
from chimap.data.source import TAKEN_BYTES
from chimap.moments import Product, Symmetric
from chimap.moments.product import MOST_ROWS
from chimap.selection.folds import working_bytes

CHUNK_UNIT = 1024  # rows; chunks are multiples of it
FIRST_ROWS = 1024  # of the sample, whose mean feature the moments are about
_KEPT_ENTRY, _NODE = 12, 16  # bytes of an entry of float64 CSR, and of LIBLINEAR's copy of it
LIBLINEAR_ENTRY_BYTES = _KEPT_ENTRY + _NODE
_SPARE = 0.25  # of a chunk: what checks and the choice of folds take beside it


@dataclass(frozen=True)
class Job:
    """The sizes that the memory of a fit depends on.

    n_features D, n_targets t, n_folds K, n_mapped (features before the random projection, 0 without one),
    n_frequencies; row_bytes of a row as the source gives it, mapped_row_bytes as it is mapped, n_copies that are made
    on the way (converted, normalised); itemsize of the precision; held_bytes, which reading keeps beside the
    chunks, and whether it reads a chunk ahead (``from_files`` of the source). For losses that are minimised by passes:
    n_kept rows whose features stay in memory, at kept_itemsize bytes a number, and n_vectors of the size of the
    weights. solver_bytes: what a solver takes beside a full matrix and its vectors. n_waiting: moments of parts that
    wait in memory to be merged (``Engine``). n_rows of the source, 0 where it is not known. n_sampled rows, which the
    features are fitted on; fitting_bytes: what that takes beside them; seeks: whether the source reads single rows
    without those before. n_tried rows that stay, whose features are scored when the strength is chosen.
    """

    n_features: int
    n_targets: int
    n_folds: int
    n_mapped: int
    n_frequencies: int
    row_bytes: float
    mapped_row_bytes: float
    itemsize: int
    held_bytes: float = 0.0
    reads_ahead: bool = False
    n_kept: int = 0
    kept_itemsize: int = 0
    n_vectors: int = 0
    solver_bytes: int = 0
    n_waiting: int = 0
    n_rows: int = 0
    n_copies: int = 1
    n_sampled: int = 0
    fitting_bytes: int = 0
    seeks: bool = True
    n_tried: int = 0

    @property
    def model_bytes(self) -> int:
        """Frequencies, and what drawing orthogonal ones takes for a moment."""
        block = min(self.n_frequencies, self.n_mapped, 2048)
        return self.itemsize * self.n_mapped * (self.n_frequencies + 3 * block)

    @property
    def moments_bytes(self) -> int:
        """Half a matrix a fold, with sums and cross moments."""
        vectors = 8 * (self.n_features * (self.n_targets + 2) + 3 * self.n_targets)
        return self.n_folds * (Symmetric.nbytes(self.n_features) + vectors)

    @property
    def sample_bytes(self) -> int:
        """The sample as it is read, as it is converted and normalised, and with what is fitted on it."""
        n, row, mapped = self.n_sampled, self.row_bytes, self.mapped_row_bytes
        reading = n * row + self.held_bytes
        if not self.seeks:  # reads all rows, and puts those that are wanted together at the end
            reading += n * row + min(TAKEN_BYTES, self.n_rows * row)
        copying = n * (mapped + max(row, mapped)) if self.n_copies else 0
        return int(max(reading, copying, n * mapped + max(self.fitting_bytes, self.model_bytes)))

    @property
    def start_bytes(self) -> int:
        """Features of the first rows of the sample."""
        rows = min(FIRST_ROWS, self.n_sampled)
        numbers = rows * (self.n_features + self.n_mapped) + self.n_mapped * self.n_frequencies
        return int(rows * self.mapped_row_bytes) + self.itemsize * numbers

    @property
    def solve_bytes(self) -> int:
        """Folds, their sum, one full matrix for its factor, and what the choice of the strength takes."""
        whole = self.moments_bytes // self.n_folds if self.n_folds > 1 else 0
        fewest = self.n_rows - self.n_rows // self.n_folds if self.n_rows else None
        choosing = working_bytes(self.n_features, self.n_targets, self.n_folds, fewest)
        frequencies = self.itemsize * self.n_mapped * self.n_frequencies
        return (
            self.moments_bytes
            + whole
            + 8 * self.n_features**2
            + choosing
            + frequencies
            + self.solver_bytes
            + int(self.n_tried * (self.mapped_row_bytes + 2 * self.itemsize * self.n_features))
        )

    def pass_bytes(self, chunk_rows: int) -> int:
        """Reading, mapping and accumulating with chunks of so many rows."""
        chunk_rows = min(chunk_rows, self.n_rows or chunk_rows)
        piece = min(PIECE_ROWS, -(-chunk_rows // self.n_folds))
        square = Product.nbytes(self.n_features, self.itemsize)
        features = self.itemsize * piece * (self.n_features + self.n_mapped)
        # sums of rows by target and their difference; a matrix of targets, scores and slopes where there are passes
        targets = 3 * self.itemsize * self.n_features * self.n_targets
        targets += 24 * chunk_rows * (self.n_targets if self.n_vectors else 1)
        rows = self._rows_bytes(chunk_rows, piece)
        frequencies = self.itemsize * self.n_mapped * self.n_frequencies
        moments = (1 + self.n_waiting) * self.moments_bytes + int(self.n_tried * self.mapped_row_bytes)
        return int(moments + square + features + targets + rows + frequencies)

    def _rows_bytes(self, chunk_rows: int, piece: int) -> float:
        """The chunk that is worked on and the one that is read meanwhile; its copies; the rows of a piece, and what
        reading keeps."""
        ahead = min(chunk_rows, self.n_rows - chunk_rows) if self.n_rows else chunk_rows
        read = self.row_bytes * ((1 + _SPARE) * chunk_rows + self.reads_ahead * ahead)
        return read + self.mapped_row_bytes * (self.n_copies * chunk_rows + 2 * piece) + self.held_bytes

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
        # nothing is kept before the pass, and the sample is let go then
        before = max(self.sample_bytes, self.start_bytes)
        return max(before, self.kept_bytes + max(searching + held, passing))

    @property
    def need(self) -> str:
        """What takes the memory, for an error."""
        return f"{self.n_features} features with {self.n_folds} fold(s) need"

    @property
    def remedy(self) -> str:
        """What takes less."""
        return (
            "fewer n_components (or n_terms), an exponential kernel in place of an additive one on many bins, a "
            "fixed strength instead of cross-validation, or (HistogramClassifier) loss='hinge', which keeps the "
            "features of the rows instead of a matrix of them squared"
        )


@dataclass(frozen=True)
class KeepingJob(Job):
    """The sizes of a fit that keeps the features of all rows and takes no moments.

    n_stored: numbers that the features of all rows hold: n D, or the entries of CSR (is_sparse). is_copied: whether
    LIBLINEAR makes a copy of its own.
    """

    n_stored: int = 0
    is_sparse: bool = False
    is_copied: bool = True

    @classmethod
    def of(cls, job: Job, n_stored: int, is_sparse: bool, is_copied: bool) -> KeepingJob:
        """The sizes of a job, and these."""
        return cls(**vars(job), n_stored=n_stored, is_sparse=is_sparse, is_copied=is_copied)

    @property
    def kept_bytes(self) -> int:
        """float64 with the column of each entry of CSR, and a number a target. Stacking takes them twice for a moment,
        which is less than what LIBLINEAR adds."""
        return (
            self.n_stored * self._entry_bytes * (1 if self.is_copied else 2)
            + 4 * self.n_rows * self.n_targets
        )

    @property
    def liblinear_bytes(self) -> int:
        """Its own copy, a node an entry and two more a row."""
        return _NODE * (self.n_stored + 2 * self.n_rows)

    @property
    def residual_bytes(self) -> int:
        """Targets of all rows, their outputs and these weighed, as conjugate gradients take them: float64."""
        return 3 * 8 * self.n_rows * self.n_targets

    def peak_bytes(self, chunk_rows: int) -> int:
        """See ``Job``."""
        chunk_rows = min(chunk_rows, self.n_rows or chunk_rows)
        piece = min(PIECE_ROWS, chunk_rows)
        # as they are mapped, and the float64 copies of those that are kept
        share = piece / max(1, self.n_rows)
        features = share * self.n_stored * (self.itemsize + 4 * self.is_sparse + self._entry_bytes)
        passing = features + self.itemsize * piece * self.n_mapped + self._rows_bytes(chunk_rows, piece)
        weights = 8 * self.n_vectors * self.n_features * self.n_targets
        beside = self.liblinear_bytes if self.is_copied else self.residual_bytes
        fitting = beside + weights + self.held_bytes
        frequencies = self.itemsize * self.n_mapped * self.n_frequencies
        return max(self.sample_bytes, self.kept_bytes + frequencies + int(max(passing, fitting)))

    @property
    def need(self) -> str:
        """See ``Job``."""
        what, copy = (
            ("loss='hinge'", ", with LIBLINEAR's copy,") if self.is_copied else ("ridge of wide rows", "")
        )
        return (
            f"{what} keeps the features of all {self.n_rows:,} rows in memory; their {self.n_stored:,} numbers{copy} "
            "need"
        )

    @property
    def remedy(self) -> str:
        """See ``Job``."""
        return (
            "fewer rows, fewer n_terms (or n_components), or loss='squared_hinge', which reads "
            "them again and again but needs a matrix of the features squared"
        )

    @property
    def _entry_bytes(self) -> int:
        return _KEPT_ENTRY if self.is_sparse else 8


def chunk_rows_within(job: Job, budget: int) -> int:
    """Rows a chunk, a multiple of 1024, such that the whole fit, libraries included, stays within ``budget`` bytes.

    Raises MemoryBudgetError, with the smallest budget that would do, if not even the smallest chunk fits.
    """
    smallest = job.peak_bytes(CHUNK_UNIT)
    room = room_in(budget)
    if smallest > room:
        needed = budget_for(1.02 * smallest)
        counted = ", libraries included" if needed > 1.02 * smallest else ""
        raise MemoryBudgetError(
            f"memory={format_bytes(budget)} is too small: {job.need} {format_bytes(needed)}{counted}. Give "
            f"memory='{-(-needed // 2**20)}MiB', or {job.remedy}."
        )
    units = max(1, job.n_folds * MOST_ROWS // CHUNK_UNIT)
    while units > 1 and job.peak_bytes(units * CHUNK_UNIT) > room:
        units -= 1
    return units * CHUNK_UNIT
