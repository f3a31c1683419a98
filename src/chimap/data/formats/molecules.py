"""Molecules, written as SMILES, as counts of Morgan fingerprints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from chimap import _sparse as sp
from chimap._validation import DataError, check_positive
from chimap.data.formats.fields import Fields, Reading
from chimap.data.io.files import needed


@dataclass(frozen=True)
class MorganCounts(Reading):
    """How often each circular environment of atoms occurs in a molecule, hashed into ``size`` bins by RDKit.

    Parameters
    ----------
    column : str, default="smiles"
        Name of the column of SMILES.
    radius : int, default=2
        Radius of an environment in bonds; 2 is called ECFP4.
    size : int, default=2048
        Number of bins.

    Raises
    ------
    ImportError
        Without RDKit.
    DataError
        For a SMILES that cannot be read, naming its record.

    References
    ----------
    Rogers and Hahn, "Extended-Connectivity Fingerprints", J. Chem. Inf. Model. 50 (2010).

    Examples
    --------
    >>> source = MorganCounts(size=64).source(["CCO", "c1ccccc1"])
    >>> source.n_rows, source.n_features, source.column_names[0]
    (2, 64, 'morgan_0')
    """

    column: str = "smiles"
    radius: int = 2
    size: int = 2048

    def __post_init__(self) -> None:
        check_positive(self.size, "size", integer=True)
        if self.radius != 0:
            check_positive(self.radius, "radius", integer=True)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the bins, ``morgan_0`` and on."""
        return tuple(f"morgan_{place}" for place in range(self.size))

    def learned(self, fields: Iterator[Fields], where: str) -> MorganCounts:
        """Return the reading unchanged: there is nothing to learn."""
        return self

    def rows(self, fields: Fields, first: int, where: str) -> sp.csr_matrix:
        """Return the counts of each molecule."""
        chem = needed("rdkit.Chem", "columns of SMILES", "chem")
        generators = needed("rdkit.Chem.rdFingerprintGenerator", "columns of SMILES", "chem")
        generator = generators.GetMorganGenerator(radius=self.radius, fpSize=self.size)
        bins, counts, borders = [], [], [0]
        with needed("rdkit.rdBase", "columns of SMILES", "chem").BlockLogs():
            for row, smiles in enumerate(fields):
                molecule = (
                    chem.MolFromSmiles(smiles.strip()) if isinstance(smiles, str) and smiles.strip() else None
                )
                if molecule is None:
                    raise DataError(
                        f"{where}, record {first + row}: {self.column!r} is {smiles!r}, which RDKit does not read as a "
                        "molecule. Mend it, or leave the record out."
                    )
                fingerprint = sorted(generator.GetCountFingerprint(molecule).GetNonzeroElements().items())
                bins += [place for place, _ in fingerprint]
                counts += [count for _, count in fingerprint]
                borders.append(len(bins))
        csr = (np.array(counts, np.float32), np.array(bins, np.int32), np.array(borders, np.int32))
        return sp.csr_matrix(csr, shape=(len(fields), self.size))
