"""Results of ``make bench`` as a data frame."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cradle_lib import paths

if TYPE_CHECKING:
    import pandas as pd

_NUMBERS: Final = ("ratio", "target", "turns_per_second", "peak_mb", "same_answers")


def benchmark_results(what: str = "inference", folder: Path | None = None) -> pd.DataFrame:
    """Reads the results of ``make bench``.

    Args:
        what: ``inference`` (ways to ask one model on this machine), ``capacity`` (what a whole
            split takes), ``ablation`` (what each mechanism of the wave engine is worth),
            ``services`` (how fast questions go out), ``training`` (one sequence per dialogue
            against one per turn) or ``construction`` (planning and validating dialogues).
        folder: Folder of the results; by default that of the project.

    Returns:
        One row for each comparison, none if nothing was measured.

        - ``name`` (str): what the measured way is compared with.
        - ``ratio`` (float): how many times as fast it is, unless the name says otherwise;
          ``target`` (float): what it has to be; ``reached`` (boolean): whether it is.
        - ``turns_per_second`` (float), ``peak_mb`` (float): pace and memory, in million bytes.
        - ``same_answers`` (float): share of answers that are equal, 0 to 1.
        - ``note`` (str): what was measured.
        - ``group`` (str): what kind of comparison it is, where there are several in a file.

        What a row does not say is missing. ``attrs["machine"]`` and ``attrs["caveat"]`` describe
        the measurement in a sentence each; they may be empty.
    """
    import pandas as pd

    path = (folder or paths.BENCH_RESULTS) / f"{what}.json"
    found = json.loads(path.read_bytes()) if path.exists() else {"rows": []}
    frame = pd.DataFrame(found["rows"], columns=["name", *_NUMBERS, "note", "group"])
    frame = frame.astype(dict.fromkeys(_NUMBERS, float))
    known = frame["ratio"].notna() & frame["target"].notna()
    reached = (frame["ratio"] >= frame["target"]).astype("boolean").where(known)
    frame.insert(3, "reached", reached)
    machine = found.get("machine", {}).items()
    frame.attrs["machine"] = ", ".join(f"{k.replace('_', ' ')} {value}" for k, value in machine)
    frame.attrs["caveat"] = found.get("caveat", "")
    return frame
