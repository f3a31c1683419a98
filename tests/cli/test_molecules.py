"""Molecules from the command line: those that RDKit refuses, fingerprints and salts."""

import base64
import csv
import re

import pytest

from chimap import load
from chimap.cli.commands.compare import fit_command
from chimap.cli.data_rows import choose_rows, structures_of
from chimap.cli.flag_values import blocks_of
from chimap.cli.options import CountedColumn, TableOptions
from chimap.data.table import named_blocks
from chimap.readers import open_source

from .terminal import run_many_here

pytest.importorskip("rdkit")

CHAINS, RINGS = ["C" * n + "O" for n in range(1, 31)], ["C" * n + "c1ccccc1" for n in range(1, 31)]
ROWS = [(f"m{i}", smiles, "ring" if "c1" in smiles else "chain") for i, smiles in enumerate(CHAINS + RINGS)]
BAD = {3: "C1CC", 8: "CN(C)(C)(C)C", 40: ""}


def write(path, heading, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([heading, *rows])


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("molecules")
    rows = [(name, BAD.get(i, smiles), kind) for i, (name, smiles, kind) in enumerate(ROWS)]
    write(folder / "rows.csv", ("name", "Smiles", "kind"), rows)
    write(folder / "new.csv", ("name", "SMILES"), [("a", "CCO"), ("b", "C1CC"), ("c", "CCCc1ccccc1.Cl")])
    rings = ["C1CC1", "C1CCC1", "C1CCCC1", "c1ccccc1", "c1ccncc1", "c1ccoc1"]
    heads = [("C" * n + ring, ring) for ring in rings for n in range(1, 9)] + [("C" * n + "O", "") for n in range(1, 9)]
    rows = [(f"m{i}", smiles, len(smiles) % 2) for i, (smiles, _) in enumerate(heads)]
    write(folder / "scaffolds.csv", ("name", "smiles", "kind"), rows)
    write(folder / "numbers.csv", ("a", "b", "y"), [(i * i, i % 3, i % 2) for i in range(1, 9)])
    scaffold = ["fit", "scaffolds.csv", "--smiles", "smiles", "--labels", "kind", "--kernel", "minmax"]
    scaffold += ["--split", "scaffold"]
    fit = ["fit", "rows.csv", "--smiles", "smiles", "--labels", "kind", "--kernel", "minmax"]
    commands = {
        "fit": [*fit, "-o", "rows.model", "--test-fraction", "0.2", "--save-config", "rows.toml"],
        "keys": [*fit, "-o", "keys.model", "--fingerprint", "morgan-keys", "--morgan-radius", "1"],
        "few keys": [*fit, "-o", "no.model", "--fingerprint", "morgan-keys", "--min-count", "1000"],
        "pairs": [*fit, "-o", "pairs.model", "--fingerprint", "atom-pairs", "--salts", "largest"],
        "unknown": [*fit, "-o", "no.model", "--fingerprint", "ecfp"],
        "predict": ["predict", "rows.model", "new.csv", "--probabilities", "-o", "answers.csv"],
        "evaluate": ["evaluate", "rows.model", "rows.csv"],
        "info": ["info", "rows.model"],
        "explain": ["explain", "rows.model", "rows.csv", "--rows", "m1,m50", "-o", "why.html"],
        "scaffold": [*scaffold, "--test-fraction", "0.3", "-o", "scaffold.model", "--report", "scaffold.html"],
        "held out": ["evaluate", "scaffold.model", "scaffolds.csv", "--splits", "2", "--split", "scaffold", "--json"],
        "compare": ["compare", *scaffold[1:6], *scaffold[8:]],
        "both": [*scaffold, "--groups", "name", "-o", "no.model"],
        "no part": [*scaffold, "-o", "no.model", "--report", "no.html"],
        "radius": [*fit, "-o", "no.model", "--fingerprint", "atom-pairs", "--morgan-radius", "3"],
        "size": [*fit, "-o", "no.model", "--fingerprint", "morgan-keys", "--morgan-size", "512"],
        "salts": ["fit", "numbers.csv", "--salts", "largest", "-o", "no.model"],
        "no molecules": ["fit", "numbers.csv", "--split", "scaffold", "-o", "no.model"],
    }
    listed = list(commands.values())
    found = run_many_here(listed[:5], folder) + run_many_here(listed[5:], folder)
    return folder, dict(zip(commands, found, strict=True))


def test_molecules_that_cannot_be_read_are_left_out_of_the_fit(results):
    _, found = results
    assert found["fit"].code == 0, found["fit"].err
    note = "3 of 60 records cannot be read: 'm3' ('C1CC': not SMILES), 'm8' ('CN(C)(C)(C)C': Explicit valence"
    assert note in found["fit"].err
    assert "'m40' (no SMILES). They are left out." in found["fit"].err
    assert "left out     3 not readable" in found["fit"].out


def test_and_have_blank_predictions_with_a_reason(results):
    folder, found = results
    assert found["predict"].code == 0, found["predict"].err
    assert "1 of 3 records cannot be read: 'b' ('C1CC': not SMILES). They have no prediction." in found["predict"].err
    assert "Wrote 3 predictions, 1 of them blank, to answers.csv" in found["predict"].out
    heading, *rows = csv.reader((folder / "answers.csv").open())
    assert heading == ["id", "prediction", "chain", "ring", "reason"]
    assert [row[:2] for row in rows] == [["a", "chain"], ["b", ""], ["c", "ring"]]
    assert [row[-1] for row in rows] == ["", "'C1CC': not SMILES", ""]
    assert rows[1][2:4] == ["", ""]


def test_the_description_of_a_model_names_the_version_of_rdkit(results):
    _, found = results
    version = pytest.importorskip("rdkit").__version__
    assert f"MoleculeBlocks of the column 'Smiles', by RDKit {version}" in " ".join(found["info"].out.split())


def test_and_are_left_out_of_the_evaluation(results):
    _, found = results
    assert found["evaluate"].code == 0, found["evaluate"].err
    assert "They are left out." in found["evaluate"].err


def test_fingerprints_have_names(results):
    folder, found = results
    for name in ("keys", "pairs"):
        assert found[name].code == 0, found[name].err
    assert found["unknown"].code == 2
    assert "'blocks', 'morgan', 'morgan-keys', 'atom-pairs', 'torsions'" in " ".join(found["unknown"].err.split())
    assert load(folder / "pairs.model").feature_names_in_[0] == "pair_0"
    assert load(folder / "pairs.model").reading_.salts == "largest"
    assert load(folder / "keys.model").reading_.radius == 1
    assert "no substructure is in 1000 molecules or more." in " ".join(found["few keys"].err.split())
    assert "For rarer substructures, lower --min-count." in " ".join(found["few keys"].err.split())
    assert load(folder / "keys.model").n_features_in_ < 64


def test_whole_scaffolds_are_held_out(results):
    folder, found = results
    for name in ("scaffold", "held out", "compare"):
        assert found[name].code == 0, found[name].err
    model = load(folder / "scaffold.model")
    source = open_source(folder / "scaffolds.csv", "kind", like=model)
    chosen = choose_rows(model.fitted, source, all_rows=False)
    seen, unseen = chosen.training, chosen.source
    scaffolds = structures_of(source, "scaffold")
    assert model.training_["split"]["split"] == "scaffold"
    assert {*scaffolds[seen.places]}.isdisjoint(scaffolds[unseen.places])
    assert seen.n_rows + unseen.n_rows == source.n_rows == 56
    assert f"rows of {len({*scaffolds[unseen.places]})} groups" in found["scaffold"].out
    assert (folder / "scaffold.html").exists()


def test_scaffolds_stay_together_in_splits_and_races(results):
    _, found = results
    evaluated = found["held out"].json
    assert "held out when the model was fitted" in evaluated["data"]["which rows"]
    assert evaluated["splits"]["n_test"] % 8 == 0  # each scaffold has eight molecules
    assert "held out, by 7 groups" in " ".join(found["compare"].out.split())
    assert "--smiles smiles" in " ".join(found["compare"].out.split())
    assert "--split scaffold" in " ".join(found["compare"].out.split())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("radius", "--morgan-radius is not used by --fingerprint atom-pairs: name another one"),
        ("size", "--morgan-size is not used by --fingerprint morgan-keys: name another one"),
        ("salts", "--salts is for molecules: name the column of their SMILES with --smiles"),
    ],
)
def test_flags_that_no_molecule_uses(results, name, message):
    _, found = results
    assert found[name].code == 2
    assert message in " ".join(found[name].err.split())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("both", "--split scaffold groups the rows, and so does --groups: leave one of them out"),
        ("no part", "--report needs held-out rows: add --test-fraction 0.2"),
        ("no molecules", "To split molecules by scaffold, name the column of their SMILES with --smiles"),
    ],
)
def test_scaffolds_that_cannot_be(results, name, message):
    _, found = results
    assert found[name].code == 2
    assert message in " ".join(found[name].err.split())


def test_explanations_are_painted_on_atoms(results):
    folder, found = results
    assert found["explain"].code == 0, found["explain"].err
    page = (folder / "why.html").read_text()
    drawings = re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", page)
    assert len(drawings) == 2 * (1 + 3)  # all bins of a row, and those of each block
    assert all(base64.b64decode(drawing).startswith(b"<?xml") for drawing in drawings)
    assert "Contributions of the atoms of row m50" in page
    assert "together, to the" in page
    sums = re.search(r"of each block: morgan, ([^;]+); pair, ([^;]+); torsion, ([^;]+)\.<", page)
    together = re.search(r"What the atoms add, (\S+) together", page)
    numbers = [float(number.replace("−", "-")) for number in (*sums.groups(), together[1])]
    assert sum(numbers[:3]) == pytest.approx(numbers[3], abs=0.01)


def test_the_command_of_a_comparison_names_the_blocks():
    columns = TableOptions(), CountedColumn(smiles="smiles")
    settings = {"kernel": "minmax", "blocks": {"morgan": slice(0, 3), "pair": slice(3, 5)}}
    command = fit_command(settings, "rows.csv", "kind", columns, {})
    assert "--kernel minmax --blocks 'morgan=morgan::*,pair=pair::*' " in command
    names = ["morgan::1", "morgan::7", "morgan::9", "pair::1", "pair::2"]
    assert named_blocks(blocks_of("morgan=morgan::*,pair=pair::*"), names) == {"morgan": [0, 1, 2], "pair": [3, 4]}
    assert "--blocks" not in fit_command({"kernel": "minmax"}, "rows.csv", "kind", columns, {})
