"""The tables of mothur: shared files at one or several distances, and count tables in both formats."""

import numpy as np
import pytest

from chimap import HistogramClassifier, open_source
from chimap._validation import DataError

from .test_transposed import rows_of, write

pytest.importorskip("pyarrow")

# mothur, wiki "Shared file" (mothur.org/wiki/shared_file); lines end in a tab where versions before 1.44 write them.
SHARED = [
    "label\tGroup\tnumOtus\tOtu0001\tOtu0002\tOtu0003",
    "0.03\tF3D0\t3\t370\t499\t306",
    "0.03\tF3D1\t3\t220\t29\t0",
    "0.03\tF3D141\t3\t0\t346\t194",
]
AT_0_05 = ["0.05\tF3D0\t3\t371\t498\t306", "0.05\tF3D1\t3\t221\t28\t0", "0.05\tF3D141\t3\t1\t345\t194"]
COUNTS = [[370, 499, 306], [220, 29, 0], [0, 346, 194]]

# mothur, wiki "Count File", sparse format, which current versions write by default.
COMPRESSED = [
    "#Compressed Format: groupIndex,abundance. For example 1,6 would mean the read has an abundance of 6.",
    "#1,F003D000\t2,F003D002\t3,F003D004\t",
    "Representative_Sequence\ttotal\tF003D000\tF003D002\tF003D004\t",
    "GQY1XT001CFHYQ\t467\t1,325\t2,40\t3,102\t",
    "GQY1XT001EI480\t10\t1,8\t3,2\t",
    "GQY1XT001CNUHI\t19\t2,19\t",
]


@pytest.mark.parametrize("end", ["", "\t"])
def test_a_shared_file(tmp_path, end):
    source = open_source(write(tmp_path, [line + end for line in SHARED], "final.opti_mcc.shared"))
    assert source.column_names == ("Otu0001", "Otu0002", "Otu0003")
    assert source.row_ids.tolist() == ["F3D0", "F3D1", "F3D141"]
    assert source.labels() is None
    np.testing.assert_array_equal(rows_of(source), COUNTS)


def test_several_distances(tmp_path):
    path = write(tmp_path, SHARED + AT_0_05, "final.shared")
    with pytest.raises(DataError, match=r"several distances, 0\.03, 0\.05\. Name one: '.*final\.shared::0\.05'"):
        open_source(path)
    with pytest.raises(DataError, match=r"no OTUs at distance '0\.1'; there are 0\.03, 0\.05"):
        open_source(f"{path}::0.1")
    source = open_source(f"{path}::0.05")
    assert source.row_ids.tolist() == ["F3D0", "F3D1", "F3D141"]
    np.testing.assert_array_equal(rows_of(source), [[371, 498, 306], [221, 28, 0], [1, 345, 194]])
    assert source.n_left_out == 0
    assert open_source(f"{path}::0.05", ["a", "b", "a"]).labels().tolist() == ["a", "b", "a"]
    np.testing.assert_array_equal(rows_of(open_source(f"{write(tmp_path, SHARED, 'one.shared')}::0.03")), COUNTS)


def test_metadata_joined_by_group(tmp_path):
    design = write(
        tmp_path, ["group\ttime\tmouse", "F3D1\tearly\tF3", "F3D0\tearly\tF3", "F3D141\tlate\tF4"], "time.design"
    )
    for address in (write(tmp_path, SHARED, "one.shared"), f"{write(tmp_path, SHARED + AT_0_05, 'two.shared')}::0.03"):
        source = open_source(address, f"{design}::time", aside="mouse")
        assert source.labels().tolist() == ["early", "early", "late"]
        assert source.column(f"{design}::mouse").tolist() == ["F3", "F3", "F4"]


def test_a_model_of_one_distance_reads_another(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{d}\tg{i}\t3\t" + "\t".join(map(str, rng.poisson(4.0, 3))) for d in ("0.03", "0.05") for i in range(20)]
    path = write(tmp_path, [SHARED[0], *lines], "final.shared")
    model = HistogramClassifier("chi2").fit_source(open_source(f"{path}::0.03", np.arange(20) % 2))
    assert model.predict_source(open_source(f"{path}::0.05", like=model)).shape == (20, 1)


def test_a_compressed_count_table(tmp_path):
    source = open_source(write(tmp_path, COMPRESSED, "stability.count_table"))
    assert source.row_ids.tolist() == ["F003D000", "F003D002", "F003D004"]
    assert source.column_names == ("GQY1XT001CFHYQ", "GQY1XT001EI480", "GQY1XT001CNUHI")
    np.testing.assert_array_equal(rows_of(source), [[325, 8, 0], [40, 0, 19], [102, 2, 0]])


@pytest.mark.parametrize(("field", "fault"), [("4,2", "'4,2'"), ("2", "'2'"), ("1,x", "'1,x'")])
def test_a_compressed_entry_at_fault(tmp_path, field, fault):
    lines = [*COMPRESSED[:4], f"GQY1XT001EI480\t10\t{field}\t"]
    with pytest.raises(DataError, match=rf"line 5, field 3: {fault}, expected group,abundance"):
        open_source(write(tmp_path, lines, "stability.count_table"))


def test_a_member_of_another_table(tmp_path):
    with pytest.raises(DataError, match=r"rows\.tsv: .*leave '::0\.03' out"):
        open_source(f"{write(tmp_path, ['a', '1'], 'rows.tsv')}::0.03")
