"""Brings the checksums in the surrogate's description up to date: ``python -m tools.croissant``.

``croissant.json`` describes the surrogate in Croissant, the metadata of data sets.
"""

from __future__ import annotations

import json
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.corpus.load import SUMS
from cradle_lib.files import write_text

FILE: Final = paths.SURROGATE / "croissant.json"


def describe() -> dict[str, Any]:
    """Gives the description, with the checksums that the files have now."""
    lines = (paths.SURROGATE / SUMS).read_text(encoding="ascii").splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    description: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    for file in description["distribution"]:
        file["sha256"] = sums[file["name"]]
    return description


if __name__ == "__main__":
    write_text(FILE, json.dumps(describe(), indent=1) + "\n")
