"""Molecules: fingerprints against RDKit's own, salts, molecules that RDKit refuses, and its version."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from chimap import HistogramClassifier, load
from chimap._validation import DataError
from chimap.readers import open_source
from chimap.readers.molecules import (
    FINGERPRINTS,
    REFERENCE,
    AtomPairCounts,
    MorganCounts,
    MorganKeys,
    TorsionCounts,
    fingerprint,
)

chem = pytest.importorskip("rdkit.Chem")
generators = pytest.importorskip("rdkit.Chem.rdFingerprintGenerator")

SMILES = ["CCO", "c1ccccc1O", "CC(=O)O.[Na+]", "CCCN", "CC(=O)Nc1ccc(O)cc1", REFERENCE]
SMALL = {
    "morgan": (MorganCounts(radius=1, size=256), generators.GetMorganGenerator(radius=1, fpSize=256)),
    "atom-pairs": (AtomPairCounts(size=256), generators.GetAtomPairGenerator(fpSize=256)),
    "torsions": (TorsionCounts(size=256), generators.GetTopologicalTorsionGenerator(fpSize=256)),
}


def counts_of(source):
    return next(source.chunks(99)).X.toarray()


@pytest.mark.parametrize("name", SMALL)
def test_hashed_fingerprints_are_those_of_rdkit(name):
    reading, generator = SMALL[name]
    source = reading.source(SMILES)
    expected = [generator.GetCountFingerprintAsNumPy(chem.MolFromSmiles(smiles)) for smiles in SMILES]
    np.testing.assert_array_equal(counts_of(source), expected)
    assert len({*source.column_names}) == 256
    assert source.column_names[-1] == f"{reading.prefix}_255"


def test_keys_are_the_neighbourhoods_of_rdkit_without_hashing():
    source = MorganKeys(radius=1).source(SMILES)
    generator = generators.GetMorganGenerator(radius=1)
    found = [generator.GetSparseCountFingerprint(chem.MolFromSmiles(smiles)).GetNonzeroElements() for smiles in SMILES]
    keys = sorted({key for counts in found for key in counts})
    common = [key for key in keys if sum(key in counts for counts in found) >= 2]
    assert source.column_names == tuple(f"morgan_{key}" for key in common)
    np.testing.assert_array_equal(counts_of(source), [[counts.get(key, 0) for key in common] for counts in found])
    assert max(common) > 2**31  # numbers that int32 does not hold
    again = source.reading.source(["CCO", "[Xe]"])  # nothing is learned anew
    assert again.column_names == source.column_names
    np.testing.assert_array_equal(counts_of(again), [counts_of(source)[0], np.zeros(len(common))])
    every = replace(MorganKeys(radius=1), min_count=1).source(SMILES)
    assert every.column_names == tuple(f"morgan_{key}" for key in keys)


def test_keys_that_no_two_molecules_share():
    with pytest.raises(DataError, match="no substructure is in 2 molecules or more"):
        MorganKeys().source(["CCO", "[Xe]"])


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_atoms_of_each_occurrence(name):
    """Every occurrence has its atoms, and together they are as many as the count of the bin."""
    reading = fingerprint(name, column="smiles", radius=2, size=512)
    source = reading.source(SMILES)
    counts = counts_of(source)
    sizes = {
        "blocks": range(1, 99),
        "morgan": range(1, 99),
        "morgan-keys": range(1, 99),
        "atom-pairs": (2,),
        "torsions": (4,),
    }[name]
    for row, smiles in enumerate(SMILES):
        molecule, atoms = source.reading.atoms_of_bins(smiles)
        found = {place: len(each) for place, each in atoms.items()}
        assert found == {int(place): int(counts[row, place]) for place in np.flatnonzero(counts[row])}
        for occurrence in (occurrence for each in atoms.values() for occurrence in each):
            assert len(occurrence) in sizes
            assert max(occurrence) < molecule.GetNumAtoms()


def test_neighbourhoods_are_within_their_radius():
    _, atoms = MorganCounts(radius=1, size=2048).atoms_of_bins("CCO")
    assert sorted(occurrence for each in atoms.values() for occurrence in each) == [
        (0,),
        (0, 1),
        (0, 1, 2),
        (1,),
        (1, 2),
        (2,),
    ]


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_the_largest_fragment_of_a_salt(name):
    reading = replace(fingerprint(name, column="smiles", radius=2, size=512), salts="largest")
    whole = ["CCCCCCCN", "CCCCCCO", "CC(=O)OCCCC", "CCCCN"]
    source = reading.source(whole)
    salts = ["CCCCCCCN.CCCCO", "Cl.CCCCCCO", "O.CC(=O)OCCCC", "CCCCN.Cl.[Na+]"]
    np.testing.assert_array_equal(counts_of(source.reading.source(salts)), counts_of(source))
    kept = replace(source.reading, salts="keep").source(salts)
    assert (counts_of(kept) > counts_of(source)).any()
    with pytest.raises(ValueError, match="salts must be"):
        replace(reading, salts="none")


BAD = ["CCO", "C1CC", "CN(C)(C)(C)C", "", None, 7, "CCN", "c1ccccc1", "CCC"]
REASONS = {
    1: "'C1CC': not SMILES",
    2: "'CN(C)(C)(C)C': Explicit valence for atom # 1 N, 5, is greater than permitted",
    3: "no SMILES",
    4: "no SMILES",
    5: "it is 7, expected SMILES",
}


def test_molecules_that_rdkit_refuses_have_a_reason_and_no_counts():
    source = MorganCounts().source(BAD)
    assert source.unread == REASONS
    assert np.flatnonzero(counts_of(source).any(axis=1)).tolist() == [0, 6, 7, 8]
    assert counts_of(source)[8].sum() == counts_of(MorganCounts().source(["CCC"])).sum()


def test_molecules_that_rdkit_refuses_are_left_out_of_fits_and_told():
    more = [*BAD, "CCCC", "CCCCC"]
    source = open_source(more, list("abababababa"), reading=MorganCounts())
    assert source.labels().tolist() == list("aababa")
    assert source.places_in_file().tolist() == [0, 6, 7, 8, 9, 10]
    (note,) = source.notes
    assert note.startswith("list: 5 of 11 records cannot be read: record 1 ('C1CC': not SMILES), record 2 (")
    assert note.endswith("record 3 (no SMILES), .... They are left out.")


def test_molecules_without_labels_keep_their_rows_and_are_told():
    source = open_source(BAD, reading=MorganCounts())
    assert source.n_rows == 9
    assert source.notes[0].endswith("record 3 (no SMILES), .... Their rows are empty.")
    assert open_source(BAD, reading=MorganCounts(), with_labels=False).notes == ()  # a prediction says it


def test_settings_that_cannot_be():
    for wrong in (MorganCounts, MorganKeys):
        with pytest.raises(ValueError, match="radius must be a positive whole number"):
            wrong(radius=-1)
    for wrong in (MorganCounts, AtomPairCounts, TorsionCounts):
        with pytest.raises(ValueError, match="size must be a positive whole number"):
            wrong(size=0)
    with pytest.raises(ValueError, match="min_count must be a positive whole number"):
        MorganKeys(min_count=0)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    ring = rng.random(60) < 0.5
    smiles = ["C" * int(n) + ("c1ccccc1" if r else "O") for n, r in zip(rng.integers(1, 9, 60), ring, strict=True)]
    source = open_source(smiles, np.where(ring, "ring", "chain"), reading=MorganCounts("SMILES", size=64))
    return HistogramClassifier("minmax", random_state=0).fit_source(source)


def test_the_version_of_rdkit_is_kept(model, tmp_path):
    model.save(tmp_path / "m.model")
    reading = load(tmp_path / "m.model").reading_
    assert reading == model.reading_
    assert reading.rdkit == pytest.importorskip("rdkit.rdBase").rdkitVersion
    generator = generators.GetMorganGenerator(radius=2, fpSize=64)
    counts = generator.GetCountFingerprint(chem.MolFromSmiles(REFERENCE)).GetNonzeroElements()
    assert dict(zip(reading.reference[::2], reading.reference[1::2], strict=True)) == counts
    assert reading.source(["CCO"]).notes == ()


def test_another_version_of_rdkit_is_told(model):
    older = replace(model.reading_, rdkit="2019.03.1")
    (note,) = older.source(["CCO"]).notes
    assert "RDKit 2019.03.1 did at the fit. Both count a reference molecule alike" in note
    changed = (*older.reference[:-1], older.reference[-1] + 1)
    (note,) = replace(older, reference=changed).source(["CCO"]).notes
    assert "counts a reference molecule otherwise than RDKit 2019.03.1 did" in note
    assert "(2 differing counts)" in note
    assert "rdkit==2019.03.1" in note


def test_models_of_before_have_no_version(model):
    """Files hold the settings that there were: column, radius and size."""
    source = MorganCounts("smiles", 2, 64).source(["CCO"])
    assert source.notes == ()
    np.testing.assert_array_equal(counts_of(source), counts_of(model.reading_.source(["CCO"])))


def test_readings_travel_to_other_processes(model):
    source = pickle.loads(pickle.dumps(model.reading_)).source(["CCO", "CCc1ccccc1"])
    assert model.predict(source).tolist() == ["chain", "ring"]


@pytest.mark.parametrize("heading", ["smiles", "SMILES", "Smiles"])
def test_the_heading_of_new_molecules_may_have_another_case(model, heading, tmp_path):
    (tmp_path / "new.csv").write_text(f"id,{heading}\nx,CCO\ny,xx\nz,CCc1ccccc1\n")
    source = open_source(tmp_path / "new.csv", like=model)
    assert source.unread == {1: "'xx': not SMILES"}
    with pytest.warns(match=r"new\.csv: 1 of 3 records cannot be read: 'y' \('xx': not SMILES\)"):
        assert model.predict(source).tolist() == ["chain", None, "ring"]


def test_scaffolds_are_rings_and_what_links_them():
    smiles = np.array(["CC(=O)Nc1ccc(O)cc1", "Cc1ccccc1CCc1ccncc1", "CCO", "C[C@H]1CCCO1.Cl", "O=C1CCCO1"])
    expected = ["c1ccccc1", "c1ccc(CCc2ccncc2)cc1", "no ring", "C1CCOC1", "O=C1CCCO1"]
    for kind in FINGERPRINTS.values():
        assert kind.splits == ("scaffold",)
        assert kind().groups("scaffold", smiles).tolist() == expected
    with pytest.raises(ValueError, match="split must be"):
        MorganCounts().groups("random", smiles)


@pytest.mark.parametrize("name", FINGERPRINTS)
@pytest.mark.parametrize("salts", ["keep", "largest"])
def test_what_the_atoms_add_is_what_the_bins_of_the_molecule_add(name, salts):
    reading = replace(fingerprint(name, column="smiles", radius=2, size=512), salts=salts)
    source = reading.source(SMILES)
    contributions = np.random.default_rng(0).normal(size=source.n_features)
    for counts, smiles in zip(counts_of(source), SMILES, strict=True):
        molecule, weights = source.reading.atom_weights(smiles, contributions)
        assert weights.size == molecule.GetNumAtoms()
        assert weights.sum() == pytest.approx(contributions[counts > 0].sum())


def test_an_atom_has_the_share_of_its_neighbourhoods():
    reading = MorganCounts(radius=1, size=2048)
    counts = counts_of(reading.source(["CCO"]))[0]
    chosen = np.zeros(2048)
    carbon = generators.GetMorganGenerator(radius=0, fpSize=2048).GetCountFingerprint(chem.MolFromSmiles("CO"))
    hydroxyl = next(place for place in carbon.GetNonzeroElements() if counts[place] == 1)
    chosen[hydroxyl] = 3.0
    _, weights = reading.atom_weights("CCO", chosen)
    assert sorted(weights.tolist()) == [0.0, 0.0, 3.0]


def test_a_drawing_has_the_colours_of_what_its_atoms_add():
    reading = MorganCounts(radius=0, size=2048)
    place = {int(np.flatnonzero(counts_of(reading.source([one])))[0]): sign for one, sign in (("O", 1), ("N", -1))}
    contributions = np.zeros(2048)
    for bin_place, sign in place.items():
        contributions[bin_place] = sign
    assert reading.painted("xx", contributions, ("#0000ff", "#ff0000")) is None
    svg = reading.painted("O.N.C", contributions, ("#0000ff", "#ff0000"))
    assert svg.startswith("<?xml")
    assert svg.count("fill:#3F3FFF") == svg.count("fill:#FF3F3F") == 1
    assert reading.painted("O.N.C", contributions, ("#0000ff", "#ff0000")) == svg
    plain = reading.painted("O.N.C", np.zeros(2048), ("#0000ff", "#ff0000"))
    assert "3F3F" not in plain
