"""Small files under the names that the pages of docs/ use."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from ..histograms import classes

PLANTS = ("grass", "sedge", "moss", "sand", "clay", "depth")
SMILES = ("CCO", "CCCC", "CCN", "CC(=O)O", "c1ccccc1", "c1ccccc1O", "c1ccncc1", "Cc1ccccc1")
FEW_WORDS = ["--words", "20"]  # of photos, whose usual vocabulary takes seconds to learn
WORDS = {"1": "bad slow broken", "5": "good fast solid"}


def write_arrays(folder: Path) -> None:
    X, y = classes(120, 500)
    X = X.astype(np.float32)
    np.savez(folder / "data.npz", X=X, y=y)
    np.save(folder / "rows.npy", X[:, :40])
    np.save(folder / "labels.npy", y)
    scans, digits = load_digits(return_X_y=True)
    np.savez(folder / "digits.npz", X=scans[:300], y=digits[:300])
    head = ",".join(f"pixel_{j}" for j in range(64))
    np.savetxt(folder / "new.csv", scans[300:320], "%d", ",", header=head, comments="")


def write_tables(folder: Path) -> None:
    X, y = classes(120, len(PLANTS))
    counts = np.round(100 * X).astype(int)
    head = ",".join(PLANTS)
    rows = [",".join(map(str, row)) for row in counts]
    sites = ["bog" if k else "meadow" for k in y == y[0]]

    def write(name: str, *lines: str) -> None:
        (folder / name).write_text("\n".join(lines) + "\n")

    write("plots.csv", f"{head},site", *map(",".join, zip(rows, sites, strict=True)))
    together = [f"field{i // 6}" for i in range(len(sites))]
    parts = ["test" if i % 24 < 6 else "train" for i in range(len(sites))]
    marked = zip(rows, sites, together, parts, strict=True)
    write("visits.csv", f"{head},site,field,part", *map(",".join, marked))
    days = [f"2024-{3 + i // 30:02}-{1 + i % 30:02}" for i in range(len(sites))]
    write("seasons.csv", f"{head},site,field,date", *map(",".join, zip(rows, sites, together, days, strict=True)))
    rare = ["yes" if i % 8 < 2 and site == "bog" else "no" for i, site in enumerate(sites)]
    times = map(str, np.arange(len(sites)) % 3)
    write("hits.csv", f"{head},active,times", *map(",".join, zip(rows, rare, times, strict=True)))
    cases = ["case" if site == "bog" else "control" for site in sites]
    write("samples.csv", f"{head},status", *map(",".join, zip(rows, cases, strict=True)))
    write("new-plots.csv", head, *rows[:20])
    write("withdrawn.txt", "3", "17")
    stages = np.array(["low", "medium", "high"])[np.searchsorted(np.quantile(counts[:, 0], [0.4, 0.7]), counts[:, 0])]
    write("stages.csv", f"{head},stage", *map(",".join, zip(rows, stages, strict=True)))
    some = np.delete(np.arange(len(PLANTS)), counts[:, :-1].sum(axis=0).argmin())
    fewer = (",".join(map(str, row[some])) for row in counts[:20])
    write("fewer-plots.csv", ",".join(PLANTS[j] for j in some), *fewer)
    write("counts.csv", f"plot,{head}", *(f"p{i},{row}" for i, row in enumerate(rows)))
    write("metadata.csv", "plot,site", *(f"p{i},{site}" for i, site in reversed(list(enumerate(sites)))))
    tests = [
        ",".join(
            "" if (i + j) % 4 == 0 else str(int(count > np.median(counts[:, j]))) for j, count in enumerate(row[:3])
        )
        for i, row in enumerate(counts)
    ]
    doses = [f"{np.sqrt(row[0] + 1):.3f}" for row in counts]
    plain_rows = [row.rsplit(",", 1)[0] for row in rows]
    write(
        "assays.csv", "a,b,c,d,e,task_0,task_1,task_2,dose", *map(",".join, zip(plain_rows, tests, doses, strict=True))
    )
    spectra = [";".join(f"{value:.3f}".replace(".", ",") for value in row) for row in X]
    waves = ";".join(str(400 + 2 * j) for j in range(X.shape[1]))
    write("spectra.csv", "sep=;", f"{waves};kind", *(f"{row};{site}" for row, site in zip(spectra, sites, strict=True)))
    bams = "\t".join(f"mapped/p{i}.bam" for i in range(len(sites)))
    genes = [f"ENSG{j:011d}\tchr1\t{j}\t{j + 9}\t+\t10\t" for j in range(len(PLANTS))]
    columns = ["\t".join(map(str, counts[:, j])) for j in range(len(PLANTS))]
    write(
        "counts.txt",
        '# Program:featureCounts v2.0.1; Command:"featureCounts" "-a" "genes.gtf" "-o" "counts.txt"',
        f"Geneid\tChr\tStart\tEnd\tStrand\tLength\t{bams}",
        *(gene + column for gene, column in zip(genes, columns, strict=True)),
    )
    write("samples.tsv", "sample\ttissue", *(f"p{i}\t{site}" for i, site in enumerate(sites)))
    draw = np.random.default_rng(0).choice
    plain = [a + b for a in "bdfgklmn" for b in ("ar", "el", "os", "um")]
    texts = [(" ".join([WORDS[s], *draw(plain, 12)]), s) for _ in range(60) for s in WORDS]
    write("reviews.csv", "review,stars,film", *(f"{text},{stars},f{i // 8}" for i, (text, stars) in enumerate(texts)))
    write("new-reviews.csv", "review", *(text for text, _ in texts[:8]))
    write("docstrings.csv", "text,part", *(f"{text},part {stars}" for text, stars in texts))
    molecules = [(smiles, str(int("1" in smiles))) for smiles in SMILES * 10]
    write("molecules.csv", "smiles,ring", *map(",".join, molecules))
    write("new-molecules.csv", "smiles", *SMILES)
    answers = ((smiles, "no" if "c1" in smiles else "yes") for smiles, _ in molecules)
    write("bbbp.csv", "id,smiles,penetrates", *(f"m{i},{s},{a}" for i, (s, a) in enumerate(answers)))


def write_parquet(folder: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = classes(240, 12)
    columns = {f"bin {i}": X[:, i] for i in range(12)} | {"species": [f"species {k}" for k in y]}
    parquet.write_table(pa.table(columns), folder / "huge.parquet")


def write_biology(folder: Path) -> None:
    anndata, pd = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    X, y = classes(100, 30)
    counts = np.round(200 * X).astype(np.float32)
    kinds = np.array([f"type {k}" for k in y])
    genes = pd.DataFrame(index=[f"gene {j}" for j in range(30)])
    donors = np.array([f"donor {i % 8}" for i in range(100)])
    cells = pd.DataFrame({"cell_type": kinds, "donor": donors}, index=[f"cell {i}" for i in range(100)])
    table = anndata.AnnData(counts, obs=cells, var=genes)
    table.write_h5ad(folder / "cells.h5ad")
    table[:20, ::-1].copy().write_h5ad(folder / "new-cells.h5ad")
    entries = [[j, i, float(counts[i, j])] for i, j in zip(*counts.nonzero(), strict=True)]
    biom = {
        "id": None,
        "format": "Biological Observation Matrix 1.0.0",
        "format_url": "http://biom-format.org",
        "type": "OTU table",
        "generated_by": "test",
        "date": "2026-01-01T00:00:00",
        "matrix_type": "sparse",
        "matrix_element_type": "float",
        "shape": [30, 100],
        "data": [[int(j), int(i), v] for j, i, v in entries],
        "rows": [{"id": f"otu {j}", "metadata": None} for j in range(30)],
        "columns": [{"id": f"sample {i}", "metadata": None} for i in range(100)],
    }
    (folder / "table.biom").write_text(json.dumps(biom))
    sites = [f"sample {i}\t{kind}" for i, kind in enumerate(kinds)]
    (folder / "metadata.tsv").write_text("\n".join(["sample\tbody_site", *sites[::-1]]) + "\n")
    people = [
        f"sample {i}\t{('well', 'ill')[kind % 2]}\t{20 + i % 50}\t{('f', 'm')[i % 2]}\t{i % 3}"
        for i, kind in enumerate(y)
    ]
    branches = {f"{kind}\t{('lymphoid', 'myeloid')[i % 2]}" for i, kind in enumerate(sorted({*kinds}))}
    (folder / "tree.tsv").write_text("\n".join([*sorted(branches), "lymphoid\timmune", "myeloid\timmune"]) + "\n")
    (folder / "meta.tsv").write_text("\n".join(["sample\tdisease\tage\tsex\tbatch", *people]) + "\n")
    write_artifact(folder, counts, kinds)
    clades = [f"k__Bacteria|p__Phylum_{j % 3}|s__Species_{j}" for j in range(30)]
    facts = [
        ["dataset_name", *["Zeller_fecal_colorectal_cancer"] * 100],
        ["sampleID", *(f"CCIS{i:03}" for i in range(100))],
        ["subjectID", *(f"fr-{i // 2}" for i in range(100))],
        ["disease", *np.array(["n", "cancer", "small_adenoma"])[y % 3]],
        ["age", *(str(20 + i % 50) for i in range(100))],
        ["gender", *(("female", "male")[i % 2] for i in range(100))],
        ["bmi", *(str(20 + i % 7) for i in range(100))],
    ]
    shares = 100 * counts / counts.sum(axis=1, keepdims=True)
    lines = [*facts, *([clade, *(f"{share:.5f}" for share in shares[:, j])] for j, clade in enumerate(clades))]
    stool = pd.DataFrame(shares, columns=[f"s__Species_{j}" for j in range(30)])
    stool = stool.assign(disease=np.where(y % 2, "ill", "well"), study=[f"study_{i % 4}" for i in range(100)])
    stool.to_csv(folder / "stool.csv", index=False)
    mouth = pd.DataFrame(counts.astype(int), columns=[f"OTU {j}" for j in range(30)])
    mouth[80:].to_csv(folder / "new-mouths.csv", index=False)
    mouth[:80].assign(subject=np.arange(80) // 2, site=kinds[:80]).to_csv(folder / "mouth.csv", index=False)
    (folder / "abundance.txt").write_text("".join("\t".join(line) + "\n" for line in lines))


def write_artifact(folder: Path, counts: np.ndarray, kinds: np.ndarray) -> None:
    """Write a table as QIIME 2 does: BIOM 2.1 in an archive, and metadata with a line of types."""
    biom, h5py = pytest.importorskip("biom"), pytest.importorskip("h5py")
    samples = [f"sample {i}" for i in range(len(counts))]
    table = biom.Table(counts.T, [f"otu {j}" for j in range(counts.shape[1])], samples)
    with h5py.File(folder / "feature-table.biom", "w") as file:
        table.to_hdf5(file, "test")
    name = "1f3b1a2c-0c6e-4b0e-9f0e-2d9a4c6b7e11"
    with zipfile.ZipFile(folder / "table.qza", "w") as archive:
        archive.write(folder / "feature-table.biom", f"{name}/data/feature-table.biom")
        facts = f"uuid: {name}\ntype: FeatureTable[Frequency]\nformat: BIOMV210DirFmt\n"
        archive.writestr(f"{name}/metadata.yaml", facts)
        archive.writestr(f"{name}/VERSION", "QIIME 2\narchive: 5\nframework: 2024.10.1\n")
    lines = [f"{sample}\t{kinds[i]}\tsubject {i // 2}" for i, sample in enumerate(samples)]
    head = ["sample-id\tbody-site\tsubject", "#q2:types\tcategorical\tcategorical"]
    (folder / "sample-metadata.tsv").write_text("\n".join([*head, *lines]) + "\n")


def write_photos(folder: Path) -> None:
    images = pytest.importorskip("PIL.Image")
    pytest.importorskip("cv2")
    rng = np.random.default_rng(0)
    for name, n_images in (("photos", 12), ("new-photos", 2), ("train", 5), ("test", 2)):
        for label, period in (("stripes", 4), ("dots", 9)):
            (folder / name / label).mkdir(parents=True)
            for i in range(n_images):
                waves = np.sin(np.arange(64) * 2 * np.pi / (period + i % 2))
                picture = waves[None, :] * (1 if label == "stripes" else waves[:, None])
                values = 127 + 90 * picture + rng.normal(0, 8, (64, 64))
                path = folder / name / label / f"{i}.png"
                images.fromarray(values.clip(0, 255).astype(np.uint8)).save(path)


def write_all(folder: Path) -> None:
    for write in (write_arrays, write_tables, write_parquet, write_biology, write_photos):
        write(folder)
