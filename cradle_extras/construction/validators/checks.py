"""The list of validators.

A validator checks one dialogue and describes each fault in a sentence, which a repair prompt gives
to the writer. ``reject`` keeps a dialogue out of the corpus; ``flag`` is only counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from cradle_extras.construction.plan import KINDS, Kind
from cradle_extras.construction.validators import content, rules
from cradle_extras.construction.validators.rules import Case

Severity = Literal["reject", "flag"]


@dataclass(frozen=True, slots=True)
class Validator:
    """One check.

    Attributes:
        name: Its name.
        section: Section of the paper with the rule.
        severity: ``reject`` or ``flag``.
        check: Function that gives a sentence for each fault.
        kinds: Kinds of dialogue that it applies to.
        needs: Data required for the check: a ``plan``, a ``post``, or a plan without a post
            (``alone``).
    """

    name: str
    section: str
    severity: Severity
    check: Callable[[Case], Iterator[str]]
    kinds: tuple[Kind, ...] = KINDS
    needs: Literal["", "plan", "post", "alone"] = ""

    def applies(self, case: Case) -> bool:
        """Whether the check applies to a dialogue."""
        planned, posted = case.plan is not None, case.post is not None
        present = {"": True, "plan": planned, "post": posted, "alone": planned and not posted}
        return case.kind in self.kinds and present[self.needs]


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of a dialogue; ``words`` describes it to people and to the writer."""

    validator: str
    severity: Severity
    words: str


_TRAINING: Final[tuple[Kind, ...]] = ("training",)

VALIDATORS: Final[tuple[Validator, ...]] = (
    Validator("no dialogue lines", "3.1", "reject", rules.nothing_written),
    Validator("text outside the dialogue", "Fig. 11, A", "reject", rules.text_around),
    Validator("other speakers", "Fig. 11, A", "reject", rules.other_speakers),
    Validator("turns without words", "Fig. 11, A", "reject", rules.empty_turns),
    Validator("too few turns", "App. A.1; Fig. 11, A", "reject", rules.too_few_turns),
    Validator("too many turns", "4.2", "flag", rules.too_many_turns),
    Validator("turns do not alternate", "Fig. 11, A", "reject", rules.not_alternating),
    Validator("tag syntax", "Fig. 11, C", "reject", rules.tag_syntax),
    Validator("unknown labels", "Fig. 11, C", "reject", rules.unknown_labels),
    Validator("tags before annotation", "3.2", "reject", rules.tags_in_text, ("annotated",)),
    Validator("tags on other lines", "Fig. 11, C", "reject", rules.misplaced_tags, _TRAINING),
    Validator("confirm without a crisis", "Fig. 12", "reject", rules.no_crisis, _TRAINING, "plan"),
    Validator(
        "confirms differ from plan", "Fig. 11, C", "reject", rules.other_confirms, _TRAINING, "plan"
    ),
    Validator("confirms on several turns", "Fig. 12", "reject", rules.scattered, _TRAINING),
    Validator("confirm in another phase", "Fig. 11, C", "reject", rules.window, _TRAINING, "plan"),
    Validator("several alerts, or a late one", "Fig. 12", "reject", rules.alerts, _TRAINING),
    Validator("alert without a crisis", "4.2", "flag", rules.lone_alert, _TRAINING, "plan"),
    Validator("crisis not in the post", "Fig. 11, B", "reject", content.new_crisis, needs="post"),
    Validator(
        "crisis words beyond the plan", "Fig. 11, B", "flag", content.unplanned, needs="alone"
    ),
    Validator("text copied from the post", "3.1", "reject", content.copied, needs="post"),
    Validator("repeated lines", "4.2", "reject", content.repeated),
    Validator("identifying detail", "Ethics", "reject", content.identifying),
    Validator("forbidden detail", "Ethics", "reject", content.forbidden),
)


def check_draft(case: Case) -> list[Finding]:
    """Gives the faults of a dialogue, in the order of the validators.

    For a draft without dialogue lines, only the first validator's findings are given.
    """
    found: list[Finding] = []
    for validator in VALIDATORS:
        if validator.applies(case):
            found += (
                Finding(validator.name, validator.severity, words)
                for words in validator.check(case)
            )
        if found and not case.draft.lines:
            break
    return found


def rejecting(findings: Iterable[Finding]) -> list[Finding]:
    """Selects the findings for which a dialogue is rejected."""
    return [finding for finding in findings if finding.severity == "reject"]
