"""Molecules as three blocks of counts: keys that molecules share, and the kernel of each block by its definition."""

from collections import Counter

import numpy as np
import pytest

from chimap import HistogramRegressor, load
from chimap._validation import DataError
from chimap.data.table import declared_blocks
from chimap.readers import MoleculeBlocks, molecules, open_source

chem = pytest.importorskip("rdkit.Chem")
generators = pytest.importorskip("rdkit.Chem.rdFingerprintGenerator")

TAILS = ["O", "N", "Cl", "C(=O)O", "c1ccccc1", "S"]
SMILES = ["C" * n + tail for n in range(1, 6) for tail in TAILS] + ["C"]  # methane has neither pairs nor torsions
NEW = ["CCOC", "[Xe]", "C", "CCCCCCl", "OCCCCCCCC(F)(F)F"]
KINDS = {
    "morgan": generators.GetMorganGenerator(radius=3),
    "pair": generators.GetAtomPairGenerator(),
    "torsion": generators.GetTopologicalTorsionGenerator(),
}


def counted(smiles, kind):
    return KINDS[kind].GetSparseCountFingerprint(chem.MolFromSmiles(smiles)).GetNonzeroElements()


def shared_keys(kind):
    molecules_with = Counter(key for smiles in SMILES for key in counted(smiles, kind))
    return sorted(key for key, count in molecules_with.items() if count >= 2)


def minmax(x, y):
    """Return sum min / sum max of counts by key, of the shared keys alone; 1 for two rows without any."""
    least, most = (sum(pick(x.get(key, 0), y.get(key, 0)) for key in {*x, *y}) for pick in (min, max))
    return least / most if most else 1.0


def summed_kernel(smiles, others):
    total = np.zeros((len(smiles), len(others)))
    for kind in KINDS:
        keys = {*shared_keys(kind)}
        rows = [
            [{key: c for key, c in counted(s, kind).items() if key in keys} for s in side] for side in (smiles, others)
        ]
        total += [[minmax(x, y) for y in rows[1]] for x in rows[0]]
    return total


@pytest.fixture(scope="module")
def source():
    return open_source(SMILES, np.arange(len(SMILES), dtype=float), reading=MoleculeBlocks())


def test_each_key_of_two_molecules_has_a_column(source):
    names = [f"{kind}::{key}" for kind in KINDS for key in shared_keys(kind)]
    assert list(source.column_names) == names
    expected = [[counted(s, name.split("::")[0]).get(int(name.split("::")[1]), 0) for name in names] for s in SMILES]
    np.testing.assert_array_equal(next(source.chunks(99)).X.toarray(), expected)
    assert [*declared_blocks(names)] == [*KINDS]


def test_the_kernel_is_that_of_each_block_and_new_keys_are_not_counted(source, tmp_path):
    blocks = declared_blocks(source.column_names)
    model = HistogramRegressor("minmax", features="exact", blocks=blocks, alpha=0.1, precision="float64")
    model.fit_source(source)
    new = source.reading.source(NEW)
    assert not next(new.chunks(9)).X.toarray()[1].any()  # xenon has no key of the fit
    K, y = summed_kernel(SMILES, SMILES), np.arange(len(SMILES), dtype=float)
    n = len(SMILES)
    system = np.block([[K + 0.1 * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    *weights, intercept = np.linalg.solve(system, [*y, 0.0])
    expected = summed_kernel(NEW, SMILES) @ weights + intercept
    np.testing.assert_allclose(model.predict(next(new.chunks(9)).X), expected, rtol=1e-8)
    model.save(tmp_path / "blocks.model")
    again = load(tmp_path / "blocks.model")
    assert again.reading_ == source.reading
    np.testing.assert_array_equal(again.predict(next(new.chunks(9)).X), model.predict(next(new.chunks(9)).X))


def test_no_key_that_two_molecules_have():
    with pytest.raises(DataError, match="no substructure is in 2 molecules or more"):
        MoleculeBlocks().source(["CCO", "[Xe]"])
    assert MoleculeBlocks(radius=0, min_count=1).source(["CCO"]).n_features == 6  # three atoms and pairs


def test_keys_of_many_molecules_are_learned_from_some_at_random(monkeypatch):
    monkeypatch.setattr(molecules, "MOST_LEARNED", 6)
    some = [molecules._sample(smiles for smiles in SMILES) for _ in range(2)]
    assert some[0] == some[1]
    assert len({*some[0]}) == 6
    assert {*some[0]} <= {*SMILES}
    assert some[0] != SMILES[:6]
    assert {*MoleculeBlocks().source(SMILES).reading.keys} < {*MoleculeBlocks(min_count=1).source(some[0]).reading.keys}


def test_what_atoms_add_is_that_of_all_blocks(source):
    contributions = np.random.default_rng(0).normal(size=source.n_features)
    counts = next(source.reading.source(["CCCCO"]).chunks(1)).X.toarray()[0]
    _, weights = source.reading.atom_weights("CCCCO", contributions)
    assert weights.sum() == pytest.approx(contributions[counts > 0].sum())
