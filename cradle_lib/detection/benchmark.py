"""Results of ``make bench`` as a data frame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from cradle_lib import paths
from cradle_lib.errors import BookError

if TYPE_CHECKING:
    import pandas as pd

_NUMBERS: Final = ("ratio", "target", "turns_per_second", "peak_mb", "same_answers")


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str
    ratio: float | None = None
    target: float | None = None
    turns_per_second: float | None = None
    peak_mb: float | None = None
    same_answers: float | None = None
    note: str | None = None
    group: str | None = None


class _Results(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    rows: tuple[_Row, ...]
    machine: dict[str, str | int | float | bool | None] = {}
    caveat: str = ""


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

    Raises:
        BookError: If the file can't be read as results.
    """
    import pandas as pd

    path = (folder or paths.BENCH_RESULTS) / f"{what}.json"
    try:
        found = _Results.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        found = _Results(rows=())
    except (ValidationError, OSError) as error:
        problem = " ".join(str(error).split())[:160]
        raise BookError(problem, path=path, hint="Make it again: `make bench`.") from None
    frame = pd.DataFrame([row.model_dump() for row in found.rows], columns=[*_Row.model_fields])
    frame = frame.astype(dict.fromkeys(_NUMBERS, float))
    known = frame["ratio"].notna() & frame["target"].notna()
    reached = (frame["ratio"] >= frame["target"]).astype("boolean").where(known)
    frame.insert(3, "reached", reached)
    machine = (f"{name.replace('_', ' ')} {value}" for name, value in found.machine.items())
    frame.attrs["machine"] = ", ".join(machine)
    frame.attrs["caveat"] = found.caveat
    return frame
