"""Writes one dialogue with a language model: a first attempt, then repairs of what validators find.

A dialogue has the interface of a detection session: its first question asks for the dialogue, each
further one for a repair. Journals, resuming, retries and outcomes therefore work as in detection.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import pandas as pd

from cradle_extras.construction.assemble import Outcome as Result
from cradle_extras.construction.plan import KINDS, Kind, Plan
from cradle_extras.construction.posts import Post
from cradle_extras.construction.scenarios import SCENARIOS
from cradle_extras.construction.validators.checks import Finding, check_draft, rejecting
from cradle_extras.construction.validators.draft import Draft, read_draft
from cradle_extras.construction.validators.rules import Case
from cradle_lib.detection import Answer, Outcome, Prediction, Prompt
from cradle_lib.detection.protocol.neutralise import neutralise
from cradle_lib.labels import labels_of
from cradle_lib.prompts import Template, load_template
from cradle_lib.prompts.template import text_hash

# Maximum UTF-8 bytes of an attempt, and of the validators' findings, that a repair quotes.
QUOTED: Final = 6_000
_WORDS: Final = 2_000
#: Name of the finding about an answer that ended at the token limit.
CUT: Final = "end is missing"
_FINAL: Final = frozenset({Outcome.REFUSED, Outcome.FAILED})


def write_template(kind: Kind) -> Template:
    """Loads the prompt that asks for a dialogue of a kind."""
    return load_template(f"write-{kind}", frozenset({"scenario", "labels", "phase", "post"}))


def repair_template() -> Template:
    """Loads the prompt that asks for a repair."""
    return load_template("repair", frozenset({"request", "attempt", "problems"}))


def writing_prompts() -> pd.DataFrame:
    """Gives the full prompts for writing and repairing dialogues.

    Returns:
        One row for each line: ``prompt`` (name of the template), ``part`` (heading), ``line``
        (str). Words in braces are slots.
    """
    rows = []
    for template in (*map(write_template, KINDS), repair_template()):
        part = ""
        for line in filter(None, template.text.splitlines()):
            if line.startswith("# "):
                part = line.removeprefix("# ")
            else:
                rows.append((template.name, part, line))
    return pd.DataFrame(rows, columns=["prompt", "part", "line"])


def prompts_hash(kind: Kind) -> str:
    """Hashes both prompts of a kind and the scenarios' definitions: sixteen hexadecimal digits."""
    definitions = "\n".join(scenario.definition for scenario in SCENARIOS.values())
    return text_hash("\x1f".join((write_template(kind).text, repair_template().text, definitions)))


def request(plan: Plan, post: Post) -> str:
    """Gives the prompt for a plan's first attempt."""
    title = f"{neutralise(post.title)}\n" if post.title else ""
    return write_template(plan.kind).fill(
        scenario=SCENARIOS[plan.scenario].definition,
        labels="; ".join(labels_of(plan.mask)) or "no crisis",
        phase=plan.timing,
        post=f"{title}{neutralise(post.text)}",
    )


class Writing:
    """The session of one dialogue: asks until a draft is valid or the attempts are used up.

    Predictions of earlier starts (``stored``) that answer the same prompts are ``taken``.
    ``prompt`` is the next question; ``None`` when the dialogue is accepted or given up.
    """

    def __init__(
        self, plan: Plan, post: Post, attempts: int, stored: Iterable[Prediction] = ()
    ) -> None:
        self.plan, self.post = plan, post
        self.taken: list[Prediction] = []
        self.draft: Draft | None = None
        self._attempts: list[tuple[str, list[Finding]]] = []
        self._failed: str | None = None
        self._most = attempts
        self._request = request(plan, post)
        self.prompt: Prompt | None = self._ask(self._request)
        known = {prediction.key: prediction for prediction in stored}
        while self.remaining and self.prompt.key in known:
            found = known[self.prompt.key]
            self.taken.append(found)
            self.judge(found)

    @property
    def remaining(self) -> int:
        """1 until the dialogue is accepted or given up, then 0."""
        return int(self.prompt is not None)

    @property
    def result(self) -> Result:
        """The outcome of the plan so far."""
        failed = self._failed or ("not finished" if self.remaining else None)
        return Result(self.plan, self.draft, tuple(self._attempts), failed)

    def answer(self, answer: Answer) -> Prediction:
        """Checks an attempt, and asks for a repair if necessary and if attempts are left.

        Raises:
            RuntimeError: If the dialogue is finished.
        """
        asked = self.prompt
        if asked is None:
            raise RuntimeError(f"dialogue {self.plan.dialogue} is finished: nothing was asked")
        made = Prediction.of(asked, answer)
        problems = self.judge(made)
        if made.outcome in _FINAL:
            return made
        # A dialogue is not parsed as labels.
        outcome = Outcome.UNPARSED if problems else Outcome.OK
        reason = "; ".join(dict.fromkeys(f.validator for f in problems)) or None
        return replace(made, outcome=outcome, reason=reason, mask=0)

    def judge(self, made: Prediction) -> list[Finding]:
        """Checks an attempt, sets the next question, and gives the findings that reject it."""
        self.prompt = None
        if made.outcome in _FINAL:
            self._failed = f"{made.outcome}: {made.reason or 'no reason given'}"
            return []
        text = made.answer
        draft = read_draft(text)
        findings = check_draft(Case(draft, self.plan.kind, self.plan, self.post))
        if made.ending == "cut":
            words = "The end is missing: the token limit was reached. Write shorter lines."
            findings.insert(0, Finding(CUT, "reject", words))
        self._attempts.append((text, findings))
        problems = rejecting(findings)
        if not problems:
            self.draft = draft
        elif len(self._attempts) < self._most:
            words = "\n".join(f"- {finding.words}" for finding in problems)
            repair = repair_template().fill(
                request=self._request,
                attempt=_cut(text.strip() or "(nothing)", QUOTED),
                problems=_cut(words, _WORDS),
            )
            self.prompt = self._ask(repair)
        return problems

    def _ask(self, text: str) -> Prompt:
        return Prompt(
            dialogue=self.plan.dialogue,
            turn=len(self._attempts),
            text=text,
            static=write_template(self.plan.kind).static,
            current=self.post.text,
            tagged=0,
        )


def longest_requests(
    pairs: Iterable[tuple[Plan, Post]], attempts: int
) -> dict[tuple[str, int], int]:
    """Gives the maximum UTF-8 bytes of each prompt, by dialogue and attempt (from 0)."""
    repair = len(repair_template().text.encode()) + QUOTED + _WORDS
    return {
        (plan.dialogue, attempt): len(request(plan, post).encode()) + repair * (attempt > 0)
        for plan, post in pairs
        for attempt in range(attempts)
    }


def _cut(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")
