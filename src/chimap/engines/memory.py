"""The size of chunks that a memory budget allows."""

from __future__ import annotations

from dataclasses import dataclass

from chimap._memory import LIBRARY_BYTES, format_bytes, room_in, whole_mebibytes
from chimap._messages import Message
from chimap._validation import MemoryBudgetError
from chimap.backends.host import PIECE_ROWS
from chimap.data.source import TAKEN_BYTES
from chimap.moments import BatchProduct, Symmetric
from chimap.moments.symmetric import MOST_ROWS
from chimap.selection.folds import working_bytes

CHUNK_UNIT = 1024  # chunks are multiples of this number of rows
FIRST_ROWS = 1024  # rows of the sample whose mean features are the shift of the moments
_KEPT_ENTRY, _NODE = 12, 16  # bytes of an entry of float64 CSR, and of LIBLINEAR's copy of it
LIBLINEAR_ENTRY_BYTES = _KEPT_ENTRY + _NODE
_SPARE = 0.25  # memory for checks and the selection of folds, as a share of a chunk
# Left besides the plan for rows that held-out outputs are computed for: a 32nd of the budget, and the fewest of them.
VALIDATION_SHARE, FEWEST_VALIDATION_ROWS = 32, 64


@dataclass(frozen=True)
class Job:
    """The sizes that determine the memory of a fit.

    Parameters
    ----------
    n_features, n_targets, n_folds : int
        D, t and K.
    n_mapped, n_frequencies : int
        Features before the random projection, 0 without a projection; and frequencies of the projection.
    row_bytes, mapped_row_bytes : float
        Bytes of a row as the source gives it, and as it is mapped.
    itemsize : int
        Bytes of a number in the precision of the features.
    held_bytes, reads_ahead : float, bool
        Bytes that reading holds besides the chunks, and whether it reads a chunk ahead (``from_files`` of the source).
    n_kept, kept_itemsize, n_vectors : int
        For losses minimised by passes: rows whose features stay in memory, bytes of a number of these, and the number
        of vectors of the size of the weights.
    solver_bytes : int
        Memory of a solver besides a full matrix and its vectors.
    n_waiting : int
        Moments of parts that wait in memory to be merged (``Engine``).
    n_rows : int
        Rows of the source, 0 if unknown.
    n_copies : int
        Copies of the rows that are made before they are mapped (converted, normalised).
    n_sampled, fitting_bytes : int
        Rows on which the features are fitted, and the memory of fitting besides them.
    seeks : bool
        Whether the source reads single rows without reading those before.
    n_scored : int
        Rows that stay in memory, and whose features are scored when alpha is selected.
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
    n_scored: int = 0

    @property
    def model_bytes(self) -> int:
        """Bytes of the frequencies, and of the workspace for drawing orthogonal ones."""
        block = min(self.n_frequencies, self.n_mapped, 2048)
        return self.itemsize * self.n_mapped * (self.n_frequencies + 3 * block)

    @property
    def frequency_bytes(self) -> int:
        """Bytes of the frequencies."""
        return self.itemsize * self.n_mapped * self.n_frequencies

    @property
    def moments_bytes(self) -> int:
        """Bytes of the moments: half a matrix for each fold, with sums and cross moments."""
        vectors = 8 * (self.n_features * (self.n_targets + 2) + 3 * self.n_targets)
        return self.n_folds * (Symmetric.nbytes(self.n_features) + vectors)

    @property
    def sample_bytes(self) -> int:
        """Peak bytes of reading the sample, converting and normalising it, and fitting the features on it."""
        n, row, mapped = self.n_sampled, self.row_bytes, self.mapped_row_bytes
        reading = n * row
        if not self.seeks:  # such a source reads all rows, and joins the wanted ones at the end
            reading += n * row + min(TAKEN_BYTES, self.n_rows * row)
        copying = n * (mapped + max(row, mapped)) if self.n_copies else 0
        fitting = n * mapped + max(self.fitting_bytes, self.model_bytes)
        return int(self.held_bytes + max(reading, copying, fitting))

    @property
    def start_bytes(self) -> int:
        """Bytes of the features of the first rows of the sample."""
        rows = min(FIRST_ROWS, self.n_sampled)
        numbers = rows * (self.n_features + self.n_mapped)
        return int(rows * self.mapped_row_bytes) + self.itemsize * numbers + self.frequency_bytes

    @property
    def solve_bytes(self) -> int:
        """Bytes of the folds, their sum, a full matrix for its factor, and the selection of alpha."""
        whole = self.moments_bytes // self.n_folds if self.n_folds > 1 else 0
        fewest = self.n_rows - self.n_rows // self.n_folds if self.n_rows else None
        choosing = working_bytes(self.n_features, self.n_targets, self.n_folds, fewest)
        return (
            self.moments_bytes
            + whole
            + 8 * self.n_features**2
            + choosing
            + self.frequency_bytes
            + self.solver_bytes
            + int(self.n_scored * (self.mapped_row_bytes + 2 * self.itemsize * self.n_features))
        )

    def pass_bytes(self, chunk_rows: int) -> int:
        """Return the bytes for reading, mapping and accumulating with chunks of ``chunk_rows``."""
        chunk_rows = min(chunk_rows, self.n_rows or chunk_rows)
        piece = min(PIECE_ROWS, -(-chunk_rows // self.n_folds))
        square = BatchProduct.nbytes(self.n_features, self.itemsize)
        features = self.itemsize * piece * (self.n_features + self.n_mapped)
        # Sums of rows by target and their difference; and targets, scores and slopes if a loss is minimised by passes.
        targets = 3 * self.itemsize * self.n_features * self.n_targets
        targets += 24 * chunk_rows * (self.n_targets if self.n_vectors else 1)
        rows = self._rows_bytes(chunk_rows, piece)
        moments = (1 + self.n_waiting) * self.moments_bytes + int(self.n_scored * self.mapped_row_bytes)
        return int(moments + square + features + targets + rows + self.frequency_bytes)

    def _rows_bytes(self, chunk_rows: int, piece: int) -> float:
        """Return the bytes of the current chunk and its copies, the chunk read ahead, a piece, and held_bytes."""
        ahead = min(chunk_rows, self.n_rows - chunk_rows) if self.n_rows else chunk_rows
        read = self.row_bytes * ((1 + _SPARE) * chunk_rows + self.reads_ahead * ahead)
        return read + self.mapped_row_bytes * (self.n_copies * chunk_rows + 2 * piece) + self.held_bytes

    @property
    def kept_bytes(self) -> int:
        """Bytes of the features and targets that stay in memory."""
        return self.n_kept * (self.kept_itemsize * self.n_features + 8 * self.n_targets)

    def peak_bytes(self, chunk_rows: int) -> int:
        """Return the largest memory of the stages, including what is kept through all of them."""
        passing = self.pass_bytes(chunk_rows)
        # A search has weights, gradients and their history besides the moments and the factor that whitens them, and
        # computes features again, or reads kept ones.
        searching = self.solve_bytes + 8 * self.n_vectors * self.n_features * self.n_targets
        searching += passing - self.moments_bytes if self.n_vectors and not self.n_kept else 0
        held = int(self.held_bytes)
        # Before the pass nothing is kept, and the sample is released when the pass begins.
        before = max(self.sample_bytes, self.start_bytes)
        return max(before, self.kept_bytes + max(searching + held, passing))

    @property
    def need(self) -> Message:
        """The start of the error message, which says what takes the memory."""
        return Message("{} features with {} fold(s) need", self.n_features, self.n_folds)

    @property
    def remedy(self) -> Message:
        """The end of the error message, which says what would take less memory."""
        return Message(
            "fewer {n_components} (or {n_terms}), an exponential kernel in place of an additive one on many "
            "bins, a fixed {alpha} instead of cross-validation, or (HistogramClassifier) {loss='hinge'}, which "
            "keeps the features of the rows instead of a matrix of them squared"
        )


@dataclass(frozen=True)
class KeepingJob(Job):
    """The sizes of a fit that keeps the features of all rows and computes no moments.

    Parameters
    ----------
    n_stored : int
        Numbers that the features of all rows hold: n D, or the entries of CSR.
    is_sparse : bool
        Whether the kept features are CSR.
    is_copied : bool
        Whether LIBLINEAR makes a copy.
    leaves_folds : bool
        Whether folds besides the first are left out, which takes a copy of the other rows.
    """

    n_stored: int = 0
    is_sparse: bool = False
    is_copied: bool = True
    leaves_folds: bool = False

    @classmethod
    def of(cls, job: Job, n_stored: int, is_sparse: bool, is_copied: bool, leaves_folds: bool = False) -> KeepingJob:
        """Extend the sizes of a job."""
        return cls(**vars(job), n_stored=n_stored, is_sparse=is_sparse, is_copied=is_copied, leaves_folds=leaves_folds)

    @property
    def kept_bytes(self) -> int:
        """Bytes of the features in float64, with the column of each entry of CSR, and of a number for each target.

        Stacking takes them twice for a moment, which is less than LIBLINEAR adds.
        """
        return self.n_stored * self._entry_bytes * (1 if self.is_copied else 2) + 4 * self.n_rows * self.n_targets

    def peak_bytes(self, chunk_rows: int) -> int:
        chunk_rows = min(chunk_rows, self.n_rows or chunk_rows)
        piece = min(PIECE_ROWS, chunk_rows)
        # The features as they are mapped, and the float64 copies that are kept.
        share = piece / max(1, self.n_rows)
        features = share * self.n_stored * (self.itemsize + 4 * self.is_sparse + self._entry_bytes)
        passing = features + self.itemsize * piece * self.n_mapped + self._rows_bytes(chunk_rows, piece)
        weights = 8 * self.n_vectors * self.n_features * self.n_targets
        # LIBLINEAR's copy has a node for each entry, and two more for each row. Conjugate gradients have targets,
        # outputs and weighted outputs of all rows in float64.
        beside = _NODE * (self.n_stored + 2 * self.n_rows) if self.is_copied else 3 * 8 * self.n_rows * self.n_targets
        fitting = beside + weights + self.held_bytes + self.leaves_folds * self.n_stored * self._entry_bytes
        return max(self.sample_bytes, self.kept_bytes + self.frequency_bytes + int(max(passing, fitting)))

    @property
    def need(self) -> Message:
        what = Message("{loss='hinge'}") if self.is_copied else "ridge of wide rows"
        copy = ", with LIBLINEAR's copy," if self.is_copied else ""
        return Message(
            "{} keeps the features of all {:,} rows in memory; their {:,} numbers{} need",
            what,
            self.n_rows,
            self.n_stored,
            copy,
        )

    @property
    def remedy(self) -> Message:
        return Message(
            "fewer rows, fewer {n_terms} (or {n_components}), or {loss='squared_hinge'}, which reads them "
            "again and again but needs a matrix of the features squared"
        )

    @property
    def _entry_bytes(self) -> int:
        return _KEPT_ENTRY if self.is_sparse else 8


def chunk_rows_within(job: Job, budget: int) -> int:
    """Return the rows of a chunk, a multiple of 1024, with which the fit stays within ``budget`` bytes.

    The budget includes libraries. Raises MemoryBudgetError, with the smallest budget that would do, if not even the
    smallest chunk fits.
    """
    beside = int(FEWEST_VALIDATION_ROWS * job.mapped_row_bytes)
    smallest = job.peak_bytes(CHUNK_UNIT) + beside
    room = room_in(budget) - budget // VALIDATION_SHARE
    if smallest > room:
        whole = VALIDATION_SHARE / (VALIDATION_SHARE - 1)
        libraries = LIBRARY_BYTES if whole * smallest > LIBRARY_BYTES else 0
        needed = whole * (smallest + libraries)
        counted = ", libraries included" if libraries else ""
        raise MemoryBudgetError(
            Message(
                "{memory=!s} is too small: {} {}{}. Give {memory=}, or {}.",
                format_bytes(budget),
                job.need,
                format_bytes(needed),
                counted,
                whole_mebibytes(needed),
                job.remedy,
            )
        )
    units = max(1, job.n_folds * MOST_ROWS // CHUNK_UNIT)
    while units > 1 and job.peak_bytes(units * CHUNK_UNIT) + beside > room:
        units -= 1
    return units * CHUNK_UNIT
