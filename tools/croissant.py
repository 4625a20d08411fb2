"""Updates the checksums in the surrogate's metadata: ``python -m tools.croissant``.

``croissant.json`` describes the surrogate in Croissant, a metadata format for data sets.
"""

from __future__ import annotations

import json
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.corpus.load import SUMS
from cradle_lib.files import write_text

FILE: Final = paths.SURROGATE / "croissant.json"


def describe() -> dict[str, Any]:
    """Returns the metadata with the checksums of the present files."""
    lines = (paths.SURROGATE / SUMS).read_text(encoding="ascii").splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    description: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    for file in description["distribution"]:
        file["sha256"] = sums[file["name"]]
    return description


if __name__ == "__main__":
    write_text(FILE, json.dumps(describe(), indent=1) + "\n")
