"""Reads the plans of the written dialogues: ``data/surrogate/dialogues/plans.jsonl``.

The plans were drawn once. They are data now: tests compare their counts with the published ones.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from cradle_lib import paths, strict_json
from cradle_lib.errors import CorpusError

DIALOGUES: Final = paths.SURROGATE / "dialogues"
PLANS: Final = DIALOGUES / "plans.jsonl"
SPLITS: Final = ("test", "dev", "train")


@dataclass(frozen=True, slots=True)
class DialoguePlan:
    """The plan of one written dialogue.

    Attributes:
        id: Split and number, such as ``test-0007``.
        split: ``test``, ``dev`` or ``train``.
        dialogue: Number in the split, from 0.
        scenario: ``S1`` to ``S7``.
        timing: ``early``, ``mid`` or ``late``.
        rows: For each row the speaker (``U``, ``L``, or ``-`` for a row that continues the row
            above) and its labels.
        hash: Checksum of scenario, timing and rows; the text file repeats it.
    """

    id: str
    split: str
    dialogue: int
    scenario: str
    timing: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    hash: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels, first to last."""
        return tuple(label for _, labels in self.rows for label in labels)

    def checksum(self) -> str:
        """Computes :attr:`hash`."""
        content = json.dumps([self.scenario, self.timing, self.rows])
        return hashlib.sha256(content.encode()).hexdigest()[:10]


@cache
def read_plans(path: Path = PLANS) -> dict[str, DialoguePlan]:
    """Reads the plans, by id.

    Raises:
        CorpusError: If a line is not a plan, or does not have its checksum.
    """
    plans = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        try:
            fields = strict_json.loads(line)
            rows = tuple((speaker, tuple(labels)) for speaker, labels in fields.pop("rows"))
            plan = DialoguePlan(rows=rows, **fields)
        except (ValueError, TypeError, KeyError, AttributeError):
            plan = None
        if plan is None or plan.hash != plan.checksum():
            raise CorpusError(
                "the line is not a plan with its checksum",
                path=paths.shown(path),
                row=number,
                hint="Restore the file from the repository.",
            )
        plans[plan.id] = plan
    return plans
