"""Results of ``make bench`` as a data frame."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from cradle_lib import paths
from cradle_lib.arguments import checked

if TYPE_CHECKING:
    import pandas as pd

What = Literal["inference", "capacity", "ablation", "services", "training", "construction"]
_NUMBERS: Final = ("ratio", "target", "turns_per_second", "peak_mb", "same_answers")


@checked
def benchmark_results(what: What = "inference", folder: str | Path | None = None) -> pd.DataFrame:
    """Reads the results of ``make bench``.

    Args:
        what: ``inference`` (engines on this machine), ``capacity`` (time and memory of a whole
            split), ``ablation`` (gain by each mechanism of the wave engine), ``services`` (speed of
            calls), ``training`` (one sequence per dialogue compared with one per turn) or
            ``construction`` (planning and validating dialogues).
        folder: Folder of the results; by default the project's.

    Returns:
        One row for each comparison, none if nothing was measured.

        - ``name`` (str): the alternative that the project's code is compared with.
        - ``ratio`` (float): speed relative to the alternative, unless the name says otherwise;
          ``target`` (float): the aim; ``reached`` (boolean): whether the ratio reaches it.
        - ``turns_per_second`` (float); ``peak_mb`` (float): peak memory, in million bytes.
        - ``same_answers`` (float): share of answers that are equal, 0 to 1.
        - ``note`` (str): what was measured.
        - ``group`` (str): the kind of comparison, if a file has several.

        Values that were not measured are missing. ``attrs["machine"]`` and ``attrs["caveat"]``
        describe the measurement in a sentence each; they may be empty.
    """
    import pandas as pd

    path = Path(folder or paths.BENCH_RESULTS) / f"{what}.json"
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
