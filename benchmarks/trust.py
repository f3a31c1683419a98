"""The tables, the output and the pictures of the guide "Can I trust this score?", from the shared data.

- stool.csv: species of 697 stool samples of four studies, as the DeepMicro repository has them; ill with cirrhosis,
  colorectal cancer or type 2 diabetes, or well.
- mouth.csv, new-mouths.csv: counts of three sites of the mouth of two thirds and of one third of 192 people (Human
  Microbiome Project).
- cells.h5ad, new-cells.h5ad: counts of two thirds and of one third of 700 blood cells (PBMC 68k).

The commands are those of the guide, in their order. Their pages have the pictures, whose colours follow the reader's.

python -m benchmarks.trust FOLDER                        # writes the tables there, and prints what the commands print
python -m benchmarks.trust FOLDER --figures docs/assets  # and writes the pictures of the guide
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measure import csr_of, data_file

TOP = Path(__file__).resolve().parents[1]
STUDIES = {
    "Quin_gut_liver_cirrhosis": "Qin 2014",
    "Zeller_fecal_colorectal_cancer": "Zeller 2014",
    "t2dmeta_long": "Qin 2012 long",
    "t2dmeta_short": "Qin 2012 short",
}
SITES = ("Subgingival_plaque", "Supragingival_plaque", "Tongue_dorsum")
LEAST_SAMPLES = 20  # that have a taxon of the mouth
PICTURES = {  # the page of a command, and which of its figures
    "trust_audit": ("audit.html", 0),
    "trust_groups": ("audit.html", 1),
    "trust_depth": ("depth.html", 0),
    "trust_bins": ("disease.html", 1),
    "trust_map": ("map.html", 0),
    "trust_cells_audit": ("cells-audit.html", 0),
    "trust_cells_depth": ("cells-depth.html", 0),
    "trust_cells_map": ("cells-map.html", 0),
}
TABLES = ("stool.csv", "mouth.", "new-mouths.csv", "cells.", "new-cells.h5ad")  # whose commands are run


def write_tables(folder: Path) -> None:
    """Write the tables of the guide."""
    parts = []
    for name in ("cirrhosis", "colorectal", "t2d"):
        with np.load(data_file(f"domains/deepmicro_{name}.npz")) as z:
            bins = [word.decode().removeprefix("s__").replace("_", " ") for word in z["bins"]]
            part = pd.DataFrame(csr_of(z).toarray(), columns=bins)
            part.insert(0, "disease", np.where(z["y"] == 1, "ill", "well"))
            part.insert(0, "study", [STUDIES[study.decode()] for study in z["study"]])
            part.insert(0, "sample", [f"{name} {subject.decode()}" for subject in z["subject"]])
        parts.append(part)
    pd.concat(parts).fillna(0).to_csv(folder / "stool.csv", index=False)

    with np.load(data_file("hmp_otu_counts.npz")) as z:
        site = z["site_names"].astype(str)[z["y_site"]]
        kept = np.isin(site, SITES)
        X = csr_of(z)[kept]
        common = np.asarray((X > 0).sum(axis=0)).ravel() >= LEAST_SAMPLES
        taxa = [f"OTU {word.decode()}" for word in z["otu_id"][common]]
        mouths = pd.DataFrame(X[:, common].toarray().astype(int), columns=taxa)
        subject, site = z["subject"][kept], [word.lower().replace("_", " ") for word in site[kept]]
    is_new = subject % 3 == 0
    mouths[is_new].to_csv(folder / "new-mouths.csv", index=False)
    mouths.assign(subject=subject, site=site)[~is_new].to_csv(folder / "mouth.csv", index=False)

    import anndata

    with np.load(data_file("domains/cell_pbmc68k.npz")) as z:
        X, kind = csr_of(z), z["class_names"].astype(str)[z["y"]]
        genes = pd.DataFrame(index=z["bins"].astype(str))
    names = pd.DataFrame({"cell_type": kind}, index=[f"cell {i}" for i in range(kind.size)])
    is_new = np.random.default_rng(0).permutation(kind.size) % 3 == 0
    for file, some in (("cells.h5ad", ~is_new), ("new-cells.h5ad", is_new)):
        anndata.AnnData(X[some], obs=names[some], var=genes).write_h5ad(folder / file)


def commands() -> list[str]:
    """Return the commands of the guide that read these tables."""
    text = (TOP / "docs" / "guides" / "trust.md").read_text(encoding="utf-8")
    lines = "".join(re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)).splitlines()
    return [line for line in lines if any(f" {table}" in line for table in TABLES)]


def picture(page: str, which: int) -> str:
    """Return a figure of a page as a file of its own, with the colours that the page has in the light and the dark."""
    css = re.search(r"@media screen and (\(prefers-color-scheme: dark\)) \{\s*:root \{(.*?)\}", page, re.DOTALL)
    figure = re.findall(r"<svg.*?</svg>", page, re.DOTALL)[which]
    figure = re.sub(r"\d+\.\d{2,}", lambda number: f"{float(number[0]):.1f}", figure)
    style = f"<style>@media {css[1]} {{:root {{{css[2].strip()}}}}}</style>"
    return re.sub(r"(<svg[^>]*>)", rf"\1{style}", figure, count=1) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--figures", type=Path)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    write_tables(asked.folder)
    for command in commands():
        print(f"$ {command}", flush=True)
        arguments = [sys.executable, "-m", *shlex.split(command), *(["--overwrite"] if "--report" in command else [])]
        subprocess.run(arguments, cwd=asked.folder, check=True)
    if asked.figures is not None:
        for name, (page, which) in PICTURES.items():
            drawn = picture((asked.folder / page).read_text(encoding="utf-8"), which)
            (asked.figures / f"{name}.svg").write_text(drawn, encoding="utf-8")
