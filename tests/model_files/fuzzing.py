"""Edits of files: of their bytes, and of the JSON that describes what is in them, with or without a new seal."""

from __future__ import annotations

import copy
import hashlib
import json
import random
from typing import Any

ODD: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    10**30,
    1e308,
    -0.0,
    0.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    "../x",
    "chi2",
    "\x00",
    "é" * 50,
    [],
    {},
    [[]],
    {"array": "nothing"},
    {"object": "Popen", "state": {}},
    {"list": 3},
    {"object": "HistogramClassifier", "state": {}},
    {"texts": [1, None]},
    {"slice": [1, 2, 3]},
    {"dict": []},
    {"kernel": "chi2", "gamma": -1, "is_signed": False},
    {"kernel": "no", "gamma": 1, "is_signed": 0},
]


def parts_of(content: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a safetensors file, and its numbers."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def file_of(header: dict[str, Any], numbers: bytes) -> bytes:
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    return len(head).to_bytes(8, "little") + head + numbers


def sealed(header: dict[str, Any], meta: Any, numbers: bytes, *, seal: bool) -> bytes:
    """The file with other metadata; ``seal`` makes the digests fit, as an attacker would."""
    header = copy.deepcopy(header)
    if seal and isinstance(meta, dict) and isinstance(meta.get("arrays"), dict):
        for name, entry in header.items():
            if name != "__metadata__" and isinstance(meta["arrays"].get(name), dict):
                first, last = entry["data_offsets"]
                meta["arrays"][name]["digest"] = hashlib.sha256(numbers[first:last]).hexdigest()
    text = json.dumps(meta)
    header["__metadata__"]["chimap"] = text
    if seal:
        header["__metadata__"]["digest"] = hashlib.sha256(text.encode()).hexdigest()
    return file_of(header, numbers)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values within a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(inner for key, entry in items for inner in places(entry, (*path, key)))]


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def edited(meta: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """One edit somewhere: a value replaced, removed, renamed, doubled, deepened, or taken from elsewhere."""
    meta = copy.deepcopy(meta)
    every = places(meta)
    path = draw.choice(every[1:])
    holder, key = at(meta, path[:-1]), path[-1]
    how = draw.choice(["odd", "odd", "remove", "rename", "other", "deep", "number"])
    if how == "odd":
        holder[key] = copy.deepcopy(draw.choice(ODD))
    elif how == "remove":
        del holder[key]
    elif how == "rename" and isinstance(holder, dict):
        holder[f"{key}_"] = holder.pop(key)
    elif how == "other":
        holder[key] = copy.deepcopy(at(meta, draw.choice(every)))
    elif how == "deep":
        for _ in range(draw.choice([5, 400])):
            holder[key] = {"list": [holder[key]]}
    elif isinstance(holder[key], int | float):
        holder[key] += draw.choice([1, -1, 7, -100])
    return meta


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Bytes that a disk or a cut-off copy may leave."""
    how = draw.choice(["cut", "flip", "zeros", "insert", "length"])
    place = draw.randrange(len(content))
    if how == "cut":
        return content[:place]
    if how == "flip":
        return content[:place] + bytes([content[place] ^ (1 << draw.randrange(8))]) + content[place + 1 :]
    if how == "zeros":
        return content[:place] + bytes(min(64, len(content) - place)) + content[place + 64 :]
    if how == "insert":
        return content[:place] + draw.randbytes(draw.randrange(1, 40)) + content[place:]
    return draw.choice([0, 1, 2**20, 2**40, 2**63]).to_bytes(8, "little") + content[8:]
