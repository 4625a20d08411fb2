"""The outcome of each plan, and the files of a construction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, get_args

import pandas as pd

from cradle_extras.construction.plan import Plan
from cradle_extras.construction.posts import Posts
from cradle_extras.construction.validators.checks import Finding, rejecting
from cradle_extras.construction.validators.draft import Draft, read_draft
from cradle_lib.corpus import Corpus
from cradle_lib.corpus.release import build_corpus, write_release
from cradle_lib.errors import CorpusError
from cradle_lib.files import write_text
from cradle_lib.labels import format_mask

RECORD: Final = "record.json"
Status = Literal["accepted", "rejected", "failed"]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one plan.

    Attributes:
        plan: The plan.
        draft: The dialogue, if it is accepted.
        attempts: The text and the findings of each attempt, first to last.
        failed: The reason, if the writer gave no text to check.
    """

    plan: Plan
    draft: Draft | None
    attempts: Sequence[tuple[str, Sequence[Finding]]] = ()
    failed: str | None = None

    @property
    def status(self) -> Status:
        """Accepted, rejected by a validator, or failed: the writer gave no text to check."""
        if self.draft is not None:
            return "accepted"
        return "failed" if self.failed is not None else "rejected"

    @property
    def reason(self) -> str:
        """The reason for which it is not accepted; empty if it is."""
        if self.failed is not None:
            return self.failed
        last = self.attempts[-1][1] if self.draft is None and self.attempts else ()
        return "; ".join(dict.fromkeys(finding.validator for finding in rejecting(last)))


@dataclass(frozen=True)
class Construction:
    """The result of a construction: accepted dialogues, and the outcome of every plan.

    Attributes:
        name: Name of the corpus.
        posts: The posts that it was made from.
        outcomes: One for each plan, in order.
        record: Origin of the dialogues: writer, model, prompts, seed and fingerprints.
    """

    name: str
    posts: Posts
    outcomes: tuple[Outcome, ...]
    record: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        """States the counts of outcomes; contains no text of a dialogue."""
        counts = ", ".join(f"{n:,} {status}" for status, n in self.counts.items())
        return f"<Construction {self.name}: {len(self.outcomes):,} plans, {counts}>"

    @cached_property
    def counts(self) -> dict[Status, int]:
        """The numbers of accepted, rejected and failed plans."""
        found = [outcome.status for outcome in self.outcomes]
        return {status: found.count(status) for status in get_args(Status)}

    @property
    def corpus(self) -> Corpus:
        """The accepted dialogues; without gold labels, if people are to label them.

        Raises:
            CorpusError: If there is none.
        """
        made = [
            (outcome.plan, (turn, text, "" if outcome.plan.kind == "annotated" else labels))
            for outcome in self.outcomes
            if outcome.draft is not None
            for turn, text, labels in outcome.draft.rows()
        ]
        if not made:
            raise CorpusError(
                f"no dialogue of {self.name} was accepted",
                hint="Its `findings` have the reasons. Try another writer.",
            )
        about: dict[str, list[str]] = {
            "dialogue_id": [plan.dialogue for plan, _ in made],
            "scenario": [plan.scenario for plan, _ in made],
            "timing": [plan.timing for plan, _ in made],
        }
        return build_corpus((row for _, row in made), self.name, about=about)

    def to_frame(self) -> pd.DataFrame:
        """Gives the outcome of each plan.

        Returns:
            One row for each plan: ``dialogue``, ``timing``, ``planned`` (labels), ``status``
            (str), ``attempts`` (int), ``reason`` (str).
        """
        rows = [
            {
                "dialogue": outcome.plan.dialogue,
                "timing": outcome.plan.timing,
                "planned": format_mask(outcome.plan.mask),
                "status": outcome.status,
                "attempts": len(outcome.attempts),
                "reason": outcome.reason,
            }
            for outcome in self.outcomes
        ]
        return pd.DataFrame(rows)

    def findings(self) -> pd.DataFrame:
        """Gives the findings of the validators in every attempt.

        Returns:
            One row for each finding: ``dialogue`` (str), ``attempt`` (int, from 1), ``validator``,
            ``severity``, ``words`` (str).
        """
        rows = [
            (o.plan.dialogue, number, f.validator, f.severity, f.words)
            for o in self.outcomes
            for number, (_, found) in enumerate(o.attempts, start=1)
            for f in found
        ]
        return pd.DataFrame(rows, columns=["dialogue", "attempt", "validator", "severity", "words"])

    def attempt_frame(self, dialogue: str) -> pd.DataFrame:
        """Gives the lines of each attempt at a dialogue.

        Args:
            dialogue: Its id.

        Returns:
            One row for each line: ``attempt``, ``turn`` (int, from 1; lines that continue a turn
            have its number), ``speaker``, ``text``, ``labels`` (str).
        """
        outcome = next(o for o in self.outcomes if o.plan.dialogue == dialogue)
        drafts = [read_draft(text) for text, _ in outcome.attempts]
        rows = [
            (number, turn, line.speaker, line.text, format_mask(line.mask))
            for number, draft in enumerate(drafts, start=1)
            for turn, line in zip(draft.turns, draft.lines, strict=True)
        ]
        return pd.DataFrame(rows, columns=["attempt", "turn", "speaker", "text", "labels"])

    def save(self, folder: Path) -> None:
        """Writes corpus and record to a folder.

        A corpus without dialogues is not written.
        """
        path = folder / "corpus.parquet"
        if self.counts["accepted"]:
            write_release(self.corpus, path)
        else:
            path.unlink(missing_ok=True)
        content: dict[str, Any] = {"corpus": self.name} | self.record | dict(self.counts)
        write_text(folder / RECORD, json.dumps(content, indent=2) + "\n")
