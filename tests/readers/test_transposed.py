"""Text tables of samples as columns, as programs write them: orientation, metadata on top, ranks, and what is wrong."""

from pathlib import Path

import numpy as np
import pytest

import chimap
from chimap import HistogramClassifier, open_source
from chimap._validation import DataError
from chimap.data.clades import rank_of
from chimap.readers import CsvSource, text_tables, transposed
from chimap.readers.transposed import TransposedSource

pytest.importorskip("pyarrow")

GENUS = "k__Bacteria|p__Firmicutes|c__Bacilli|o__Lactobacillales|f__Lactobacillaceae|g__Lactobacillus"
CLADES = ["k__Bacteria", "k__Bacteria|p__Firmicutes", GENUS, f"{GENUS}|s__Lactobacillus_gasseri"]

# The layout of MetAML's tables (Pasolli et al., "Machine Learning Meta-analysis of Large Metagenomic Datasets", 2016,
# github.com/segatalab/metaml, data/abundance_*.txt): no heading, metadata, then the output of MetaPhlAn.
METAML = [
    ["dataset_name", *["Zeller_fecal_colorectal_cancer"] * 6],
    ["sampleID", "CCIS1-0", "CCIS2-0", "CCIS3-0", "CCIS4-0", "CCIS5-0", "CCIS6-0"],
    ["subjectID", "fr-1", "fr-1", "fr-2", "fr-2", "fr-3", "fr-4"],
    ["disease", "n", "cancer", "n", "cancer", "n", "cancer"],
    ["age", "72", "53", "na", "61", "66", "58"],
    ["bmi", "25", "32", "22", "25", "24", "31"],
    [CLADES[0], "100.0", "98.5", "100.0", "99.9", "97.25", "100.0"],
    [CLADES[1], "60.0", "0", "0.00277", "12.5", "40", "1e-05"],
    [CLADES[2], "10.0", "0", "0", "2.5", "4", "0"],
    [CLADES[3], "10.0", "0", "0", "2.5", "4", "0"],
]
VALUES = np.array([line[1:] for line in METAML[6:]], dtype=float).T

# MetaPhlAn 3 and 4, utils/merge_metaphlan_tables.py (github.com/biobakery/MetaPhlAn).
METAPHLAN_3 = [
    "#mpa_v30_CHOCOPhlAn_201901",
    "clade_name\tNCBI_tax_id\tS1_profile\tS2_profile\tS3_profile",
    "k__Bacteria\t2\t99.5\t100.0\t12.5",
    "k__Bacteria|p__Firmicutes\t2|1239\t60.5\t0.0\t12.5",
    "UNKNOWN\t-1\t0.5\t0.0\t87.5",
]
METAPHLAN_4 = [
    "#mpa_vJan21_CHOCOPhlAnSGB_202103",
    "clade_name\tS1\tS2\tS3",
    "UNCLASSIFIED\t10.0\t20.0\t30.0",
    "k__Bacteria\t90.0\t80.0\t70.0",
    "k__Bacteria|p__Firmicutes\t60.5\t0.0\t12.5",
]

# featureCounts of Subread 2.0 (manual, section 6.2.9, "Program output").
FEATURECOUNTS = [
    '# Program:featureCounts v2.0.1; Command:"featureCounts" "-a" "genes.gtf" "-o" "counts.txt" "A.bam" "B.bam" ',
    "Geneid\tChr\tStart\tEnd\tStrand\tLength\tmapped/A.bam\tmapped/B.sorted.bam\tmapped/CAligned.sortedByCoord.out.bam",
    "ENSG00000223972\tchr1;chr1\t11869;12613\t12227;12721\t+;+\t468\t0\t3\t5",
    "ENSG00000227232\tchr1\t14404\t14501\t-\t98\t21\t0\t7",
]

# mothur, wiki "Count File", full format (mothur.org/wiki/count_file).
COUNT_TABLE = [
    "Representative_Sequence\ttotal\tF003D000\tF003D002\tF003D004",
    "GQY1XT001CFHYQ\t467\t325\t40\t102",
    "GQY1XT001C44N8\t3677\t323\t0\t3354",
]


def write(folder, lines, name="abundance.txt"):
    lines = ["\t".join(line) if isinstance(line, list) else line for line in lines]
    (folder / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return folder / name


def rows_of(source):
    blocks = [chunk.X for chunk in source.chunks(2)]
    return np.concatenate([block.toarray() if hasattr(block, "toarray") else block for block in blocks])


def test_a_table_of_metaml(tmp_path):
    source = open_source(write(tmp_path, METAML), labels="disease", aside="subjectID")
    np.testing.assert_array_equal(rows_of(source), VALUES)
    assert source.column_names == tuple(CLADES)
    assert source.row_ids.tolist() == METAML[1][1:]
    assert source.labels().tolist() == METAML[3][1:]
    assert source.column("subjectID").tolist() == METAML[2][1:]
    assert source.column("bmi").tolist() == [25, 32, 22, 25, 24, 31]
    assert {"dataset_name", "age", "bmi"} < {*source.metadata}
    assert any(
        "samples are columns: 6 samples, and 4 lines of bins, below 5 of metadata" in note for note in source.notes
    )
    assert any("'sampleID' is text without repeats and names the samples" in note for note in source.notes)


@pytest.mark.parametrize("named", [{}, {"labels": "disease"}, {"id": "sampleID"}, {"aside": "subjectID"}])
def test_text_above_numbers_or_a_word_of_the_caller_tells_the_orientation(tmp_path, named):
    source = open_source(write(tmp_path, METAML), **named)
    np.testing.assert_array_equal(rows_of(source), VALUES)
    assert source.row_ids.tolist() == METAML[1][1:]


def test_the_same_table_either_way_is_the_same(tmp_path):
    across = open_source(write(tmp_path, METAML), labels="disease", exclude="age,bmi")
    lines = list(map(list, zip(*METAML, strict=True)))
    upright = open_source(write(tmp_path, lines, "upright.tsv"), labels="disease", id="sampleID", columns="k__*")
    assert isinstance(across, TransposedSource)
    assert isinstance(upright, CsvSource)
    np.testing.assert_array_equal(rows_of(across), rows_of(upright))
    assert across.column_names == upright.column_names
    assert across.labels().tolist() == upright.labels().tolist()
    assert across.row_ids.tolist() == upright.row_ids.tolist()


@pytest.mark.parametrize(
    ("lines", "ids", "names", "rows"),
    [
        (
            METAPHLAN_3,
            ["S1_profile", "S2_profile", "S3_profile"],
            ("k__Bacteria", "k__Bacteria|p__Firmicutes", "UNKNOWN"),
            [[99.5, 60.5, 0.5], [100, 0, 0], [12.5, 12.5, 87.5]],
        ),
        (
            METAPHLAN_4,
            ["S1", "S2", "S3"],
            ("UNCLASSIFIED", "k__Bacteria", "k__Bacteria|p__Firmicutes"),
            [[10, 90, 60.5], [20, 80, 0], [30, 70, 12.5]],
        ),
        (FEATURECOUNTS, ["A", "B", "C"], ("ENSG00000223972", "ENSG00000227232"), [[0, 21], [3, 0], [5, 7]]),
        (
            COUNT_TABLE,
            ["F003D000", "F003D002", "F003D004"],
            ("GQY1XT001CFHYQ", "GQY1XT001C44N8"),
            [[325, 323], [40, 0], [102, 3354]],
        ),
    ],
)
def test_tables_of_programs(tmp_path, lines, ids, names, rows):
    source = open_source(write(tmp_path, lines))
    assert source.row_ids.tolist() == ids
    assert source.column_names == names
    np.testing.assert_array_equal(rows_of(source), rows)
    aside = [name for name in ("NCBI_tax_id", "Chr", "Length", "total") if name in "".join(lines)]
    assert all(any(name in note for note in source.notes) for name in aside)


@pytest.mark.parametrize("program", ["HTSeq", "STAR"])
def test_counters_are_left_out_and_no_labels(tmp_path, program):
    counters = {"HTSeq": ["__no_feature", "__alignment_not_unique"], "STAR": ["N_unmapped", "N_noFeature"]}[program]
    lines = [
        "gene\ta\tb\tc",
        *(f"{name}\t9\t8\t7" for name in counters),
        "ENSG00000000003\t1\t2\t3",
        "ENSG00000000005\t0\t0\t1",
    ]
    path = write(tmp_path, lines, "counts.tsv")
    source = open_source(path, transpose=True)
    assert source.column_names == ("ENSG00000000003", "ENSG00000000005")
    shown = ", ".join(map(repr, counters))
    assert any(f"counts of reads of no gene are left out: {shown}." in note for note in source.notes)
    with pytest.raises(DataError, match=rf"counts\.tsv, line 2: '{counters[0]}' counts reads .* it is no label"):
        open_source(path, labels=counters[0])


def test_metadata_are_read_once(tmp_path, monkeypatch):
    source = open_source(write(tmp_path, METAML), labels="disease")
    monkeypatch.setattr(text_tables, "TextTable", None)
    assert source.column("subjectID").tolist() == METAML[2][1:]
    ages = source.column_with_gaps("age")
    assert ages.mask.tolist() == [False, False, True, False, False, False]
    assert ages.compressed().tolist() == [72, 53, 61, 66, 58]
    with pytest.raises(DataError, match="row 2: 'na' among numbers such as '72'"):
        source.column("age")


def test_columns_of_text_are_no_samples(tmp_path):
    path = write(
        tmp_path, ["gene_id\tgene_name\ta\tb", "g1\tTSPAN6\t1\t2", "g2\t7SK\t3\t4", "g3\t\t5\t6"], "counts.tsv"
    )
    source = open_source(path, transpose=True)
    assert source.row_ids.tolist() == ["a", "b"]
    np.testing.assert_array_equal(rows_of(source), [[1, 3, 5], [2, 4, 6]])
    assert any("no samples are left out: gene_name" in note for note in source.notes)


def test_orientation_is_told_by_the_names_of_a_model(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.poisson(3.0, (40, 5)), np.arange(40) % 2
    genes = [f"g{j}" for j in range(5)]
    samples = [f"s{i}" for i in range(40)]
    upright = [["id", *genes, "kind"], *([samples[i], *map(str, X[i]), f"k{y[i]}"] for i in range(40))]
    across = [["gene", *samples], *([genes[j], *map(str, X[:, j])] for j in (3, 1, 0, 4, 2))]
    model = HistogramClassifier("chi2").fit_source(open_source(write(tmp_path, upright, "fit.tsv"), labels="kind"))
    expected = model.predict_source(open_source(tmp_path / "fit.tsv", like=model))
    source = open_source(write(tmp_path, across, "new.tsv"), like=model)
    assert source.column_names == tuple(genes)
    assert source.row_ids.tolist() == samples
    np.testing.assert_allclose(model.predict_source(source), expected)
    assert isinstance(open_source(tmp_path / "new.tsv"), CsvSource)  # all numbers: lines are rows, unless told


def test_transpose_can_be_said_and_refused(tmp_path):
    path = write(tmp_path, ["gene\ta\tb\tc", "x\t1\t2\t3", "z\t4\t5\t6"], "rows.tsv")
    assert open_source(path).column_names == ("a", "b", "c")
    assert open_source(path, transpose=True).column_names == ("x", "z")
    assert open_source(path, transpose=False).row_ids.tolist() == ["x", "z"]
    with pytest.raises(DataError, match="two columns are called 'Zeller"):
        open_source(write(tmp_path, METAML), transpose=False)


def test_a_word_that_is_a_line_and_a_column(tmp_path):
    path = write(tmp_path, ["name\ta\tkind\tb", "kind\tp\tq\tp", "x\t1\t2\t3"], "rows.tsv")
    with pytest.raises(DataError, match=r"'kind' names a line and a column.*transpose=True.*transpose=False"):
        open_source(path, labels="kind")
    assert open_source(path, labels="kind", transpose=True).labels().tolist() == ["p", "q", "p"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[7].pop(), r"line 8: 6 fields, expected 7"),
        (lambda lines: lines[8].__setitem__(4, "x"), r"line 9 \('k__.*\), field 5 .*: 'x', expected a number"),
        (lambda lines: lines[8].__setitem__(4, "1_0"), r"line 9 .*, field 5 .*: '1_0', expected a number"),
        (lambda lines: lines[8].__setitem__(4, ""), r"line 9 .*, field 5 .*: '', expected a number"),
        (
            lambda lines: lines[9].__setitem__(0, CLADES[2]),
            rf"line 10: '{GENUS.replace('|', '.')}' is the name of line 9 too",
        ),
    ],
)
def test_lines_at_fault(tmp_path, change, message):
    lines = [list(line) for line in METAML]
    change(lines)
    with pytest.raises(DataError, match=rf"abundance\.txt, {message}"):
        list(open_source(write(tmp_path, lines), labels="disease").chunks(10))


def test_metadata_that_no_line_holds(tmp_path):
    path = write(tmp_path, METAML)
    expected = r"no column and no file 'diseased': did you mean 'disease'\? Columns are dataset_name, sampleID"
    with pytest.raises(DataError, match=expected):
        open_source(path, labels="diseased")
    with pytest.raises(DataError, match=r"no column 'patient' \(id\)"):
        open_source(path, id="patient")
    with pytest.raises(DataError, match=r"the id fr-1 comes twice"):
        open_source(path, id="subjectID")
    with pytest.raises(DataError, match=r"line 'age', row 2: 'na' among numbers such as '72'"):
        open_source(path, labels="age")
    assert open_source(path, labels="age", missing="na").n_left_out == 1


def test_samples_of_one_name(tmp_path):
    with pytest.raises(DataError, match=r"first line: 'a' comes twice, at 0 and 2.*Rename one of the samples"):
        open_source(write(tmp_path, ["gene\ta\tb\ta", "x\t1\t2\t3"], "rows.tsv"), transpose=True)


@pytest.mark.parametrize("rank", ["s__", "s", "species", "S__"])
def test_one_rank_of_many(tmp_path, rank):
    source = open_source(write(tmp_path, METAML), labels="disease", rank=rank)
    assert source.column_names == (CLADES[3],)
    upright = write(tmp_path, list(map(list, zip(*METAML, strict=True))), "upright.tsv")
    assert open_source(upright, id="sampleID", rank=rank).column_names == (CLADES[3],)


def test_a_rank_that_is_absent(tmp_path):
    with pytest.raises(DataError, match=r"no clade of rank='o__'; there are 1 k__, 1 p__, 1 g__ and 1 s__"):
        open_source(write(tmp_path, METAML), rank="o__")
    rows = write(tmp_path, ["a\tb", "1\t2"], "rows.tsv")
    with pytest.raises(DataError, match=r"no clade of rank='s__'; no column is named like k__Bacteria\|s__"):
        open_source(rows, rank="s__")


def test_mixed_ranks_are_told_at_the_fit(tmp_path):
    rng = np.random.default_rng(0)
    names = [CLADES[2], *(f"{GENUS}|s__Lactobacillus_{j}" for j in range(9))]
    lines = [["id", *(f"s{i}" for i in range(30))], ["kind", *["a", "b"] * 15]]
    lines += [[name, *map(str, rng.poisson(4.0, 30))] for name in names]
    source = open_source(write(tmp_path, lines), labels="kind")
    with pytest.warns(chimap.data.DataWarning, match=r"clades of several ranks.*rank='s__': there are 9 s__ and 1 g__"):
        HistogramClassifier("chi2").fit_source(source)


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("d__Bacteria; p__Firmicutes; s__", "s__"),
        ("D_0__Bacteria;D_1__Firmicutes", "D_1__"),
        ("k__Bacteria|x", None),
        ("UniRef90_A0A|g__Bacteroides.s__Bacteroides_dorei", None),
        ("disease", None),
        ("t__SGB1877", "t__"),
    ],
)
def test_ranks_of_names(name, rank):
    assert rank_of(name) == rank


def test_many_lines_are_sorted_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(transposed, "_ENTRIES_AT_ONCE", 50)
    X = np.random.default_rng(0).poisson(0.4, (30, 200))
    lines = [["gene", *(f"c{i}" for i in range(30))]] + [[f"g{j}", *map(str, X[:, j])] for j in range(200)]
    source = open_source(write(tmp_path, lines, "cells.tsv"), transpose=True)
    assert source.is_sparse
    np.testing.assert_array_equal(rows_of(source), X)
    np.testing.assert_array_equal(source.take(np.array([3, 17])).toarray(), X[[3, 17]])


REAL = Path(__file__).parents[3] / "shared/data/domains/raw/abundance_Colorectal.txt"


@pytest.mark.skipif(not REAL.exists(), reason=f"{REAL} is not on this machine")
def test_the_colorectal_table():
    source = open_source(REAL, labels="disease", aside="subjectID", missing="small_adenoma", rank="s__")
    assert (source.n_rows, source.n_features, source.n_left_out) == (95, 493, 26)
    assert {*source.labels().tolist()} == {"n", "cancer"}
    assert source.column("subjectID")[:2].tolist() == ["fr-726", "fr-060"]
    assert np.all(np.abs(next(source.chunks(95)).X.sum(axis=1) - 99) < 5)


def test_decimal_commas(tmp_path):
    lines = [";".join(line) for line in METAML[1:]]
    path = write(tmp_path, [line.replace(".", ",") if line.startswith("k__") else line for line in lines], "a.csv")
    source = open_source(path, labels="disease")
    np.testing.assert_array_equal(rows_of(source), VALUES)
    assert source.row_ids.tolist() == METAML[1][1:]
    path.write_text(path.read_text("utf-8").replace("97,25", "97.25"), "utf-8")
    with pytest.raises(DataError, match=r"line 6 \('k__Bacteria'\), field 6 .*: '97\.25', expected a number"):
        open_source(path, labels="disease")


def test_orientation_is_told_by_the_ids_of_joined_labels(tmp_path):
    path = write(tmp_path, ["gene\ta\tb\tc", "x\t1\t2\t3", "z\t4\t5\t6"], "counts.csv")
    metadata = write(tmp_path, ["sample\tkind", "c\tp", "a\tq", "b\tp"], "metadata.tsv")
    source = open_source(path, f"{metadata}::kind", aside=f"{metadata}::kind")
    assert source.row_ids.tolist() == ["a", "b", "c"]
    assert source.labels().tolist() == ["q", "p", "p"]
    assert source.column(f"{metadata}::kind").tolist() == ["q", "p", "p"]
    np.testing.assert_array_equal(rows_of(source), [[1, 4], [2, 5], [3, 6]])
    others = write(tmp_path, ["sample\tkind", "k\tp"], "others.tsv")
    with pytest.raises(DataError, match=r"none of its \d ids, such as .*, is an id of counts\.csv, such as 'x'"):
        open_source(path, f"{others}::kind")
    with pytest.raises(DataError, match=r"3, such as 'a', are names of its 3 columns.*with transpose, or without"):
        open_source(path, f"{metadata}::kind", transpose=False)


def test_lines_by_position_and_numbers_that_are_bins_when_named(tmp_path):
    path = write(tmp_path, METAML)
    assert open_source(path, id=1).row_ids.tolist() == METAML[1][1:]
    source = open_source(path, labels="disease", columns=["bmi", "k__*"])
    assert source.column_names == ("bmi", *CLADES)
    with pytest.raises(DataError, match=r"no column and no file '3'; columns are dataset_name"):
        open_source(path, labels=3)


@pytest.mark.parametrize(
    "ids", ["A,B,C", "A.bam,B.sorted.bam,CAligned.sortedByCoord.out.bam", "mapped/A.bam,B.sorted,C"]
)
def test_labels_are_joined_by_sample_or_by_file_of_reads(tmp_path, ids):
    (tmp_path / "meta.csv").write_text("id,site\n" + "".join(f"{name},{i}\n" for i, name in enumerate(ids.split(","))))
    source = open_source(write(tmp_path, FEATURECOUNTS), f"{tmp_path}/meta.csv::site")
    assert source.labels().tolist() == [0, 1, 2]


def test_a_count_table_without_groups_has_no_samples(tmp_path, recwarn):
    with pytest.raises(DataError, match="no line of numbers below its heading"):
        open_source(write(tmp_path, ["Representative_Sequence\ttotal", "M1\t467"]))
    assert not recwarn.list
