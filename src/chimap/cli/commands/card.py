"""``chimap card``: write the model card of a model file."""

from __future__ import annotations

from pathlib import Path

from chimap.cli import messages, outputs, show


def card(model: Path, *, output: Path | None = None, overwrite: bool = False, json: bool = False) -> None:
    """Write the card of MODEL: its data, scores and limits.

    All of it is what the model file holds. The header lets hubs such as that of Hugging Face list the model.

    Parameters
    ----------
    output : CARD, common
        File to write, or - to print the card; by default beside MODEL, with the ending .md.

    \b
    Examples:
      chimap card my.model
      chimap card my.model --output README.md --overwrite
      chimap card my.model --output -
    """
    from chimap import load
    from chimap._files import replacing
    from chimap.reports.card import card as card_of

    path = model.with_suffix(".md") if output is None else output
    prints = str(path) == "-"
    if not prints:
        outputs.check_outputs({"--output": path}, (model,), overwrite)
    text = card_of(load(model, kind="model").fitted, model.stem)
    if not prints:
        with replacing(path) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
        messages.written.append(str(path))
    if json:
        show.as_json({"command": "card", "model": str(model), "card": None if prints else str(path), "text": text})
    elif prints:
        print(text)
    else:
        print(f"Wrote the card of {model} to {path}")
