"""The commands of the page *Label your own*, and annotators."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping

from cradle_lib import paths
from cradle_lib.labels import mask_of

PAGE = paths.NOTEBOOKS / "label-your-own.ipynb"
#: Labels that all annotators agree on, as masks by turn.
SEEN: Mapping[int, int] = {1: mask_of(["alert_ongoing"]), 3: mask_of(["confirm_DV_ongoing"])}


def lines() -> list[str]:
    """Returns the command lines of the page, with continuation lines joined."""
    cells = json.loads(PAGE.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells)
    blocks = re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]


def cradle_commands() -> list[str]:
    """Returns the ``cradle`` commands of the page."""
    return [line for line in lines() if line.startswith(".venv/bin/cradle ")]


def server_command() -> tuple[dict[str, str], list[str]]:
    """Returns the environment and the arguments with which the page starts Label Studio."""
    (exported,) = (line for line in lines() if line.startswith("export "))
    (started,) = (line for line in lines() if line.startswith(".cache/label-studio/bin/label-st"))
    settings = (pair.partition("=") for pair in shlex.split(exported)[1:])
    return {name: value for name, _, value in settings}, shlex.split(started)[1:]


def votes(project: str, dialogue: str) -> dict[int, int]:
    """Returns a person's labels: all agree on a third of the dialogues, nobody on another third."""
    odd = int(dialogue.rpartition("-")[2].removeprefix("d")) % 3
    if project.startswith("round") and project[-1] in "BD" and odd:
        return {3: SEEN[3]} if odd == 1 else {1: SEEN[3], 3: SEEN[1]}
    if project.startswith("adjudicator") and odd == 2:
        return {}
    return dict(SEEN)
