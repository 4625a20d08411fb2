"""Rules of form: lines, speakers, tags.

References:
    CRADLE-Dialogue (arXiv 2606.10380), Sec 4.2, Appendix A.1, and Appendix D.1 with the training
    prompt, Figures 11 (parts A to C) and 12.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cradle_extras.construction.plan import TURNS, WINDOWS, Kind, Plan
from cradle_extras.construction.posts import Post
from cradle_extras.construction.validators.draft import TAG, Draft, Line
from cradle_lib.labels import ALERT_MASK, CONFIRM_MASK, format_mask, union


@dataclass(frozen=True, slots=True)
class Case:
    """A draft, with the plan and the post that it is compared with, if known."""

    draft: Draft
    kind: Kind
    plan: Plan | None
    post: Post | None

    def turns(self, wanted: Callable[[Line], object]) -> list[int]:
        """Gives the number (from 1) of the turn of each row that meets a condition."""
        numbered = zip(self.draft.turns, self.draft.lines, strict=True)
        return [number for number, line in numbered if wanted(line)]

    @property
    def alerts(self) -> list[int]:
        """Turns with an alert."""
        return self.turns(lambda line: line.mask & ALERT_MASK)

    @property
    def confirms(self) -> list[int]:
        """Turns with a confirm."""
        return self.turns(lambda line: line.mask & CONFIRM_MASK)

    @property
    def confirmed(self) -> int:
        """All confirms of the dialogue."""
        return union(line.mask for line in self.draft.lines) & CONFIRM_MASK


def nothing_written(case: Case) -> Iterator[str]:
    """The text has no line of a dialogue."""
    if not case.draft.lines:
        yield "Nothing was written that begins with 'User:' or 'Listener:'."


def text_around(case: Case) -> Iterator[str]:
    """The text contains prose, a title or a Markdown fence outside the dialogue."""
    if places := case.draft.prose:
        yield (
            f"{len(places)} lines are no line of the dialogue, the first after turn {places[0]}. "
            "Write nothing but the dialogue: no title, no comment, no code fence."
        )


def other_speakers(case: Case) -> Iterator[str]:
    """Somebody other than the User and the Listener speaks."""
    if places := case.draft.others:
        yield (
            f"{len(places)} lines begin with another name, the first after turn {places[0]}. "
            "The speakers are called 'User:' and 'Listener:'."
        )


def too_few_turns(case: Case) -> Iterator[str]:
    """The dialogue is shorter than its kind requires."""
    low, high = TURNS[case.kind]
    turns = len(case.draft.utterances)
    if turns < low:
        wanted = f"exactly {low}" if low == high else f"{low} to {high}"
        yield f"There are {turns} turns. Write {wanted}."


def too_many_turns(case: Case) -> Iterator[str]:
    """The dialogue is longer than its kind allows: the first pattern that the paper flags."""
    # Lengths in the paper count rows.
    if len(case.draft.lines) > TURNS[case.kind][1]:
        yield f"There are {len(case.draft.lines)} lines, more than {TURNS[case.kind][1]}."


def empty_turns(case: Case) -> Iterator[str]:
    """Nothing is said on a turn."""
    # Letters, digits and emoji.
    said = case.turns(lambda line: re.search(r"[^\W_]|[\u2300-\U0010ffff]", line.text))
    if empty := {*case.draft.turns} - {*said}:
        yield f"Turn {min(empty)} has no words. Write what is said there."


def not_alternating(case: Case) -> Iterator[str]:
    """A speaker has two utterances in a row, or the Listener opens a training dialogue."""
    said = case.draft.utterances
    if case.kind == "training" and said[0] != "User":
        yield "Turn 1 is the Listener's. The User begins."
    twice = next((n for n in range(1, len(said)) if said[n] == said[n - 1]), None)
    if twice is not None:
        yield f"The {said[twice]} speaks twice in a row, at utterance {twice + 1}. Take turns."


def tag_syntax(case: Case) -> Iterator[str]:
    """A tag or a label is not at the end of its line, or has another spelling."""
    if bad := case.turns(lambda line: TAG.search(line.text)):
        yield (
            f"Turn {bad[0]}: a tag or a label is not written as it should be. A tag ends the line, "
            "as ' TAG: label' or ' TAG: label; label'."
        )


def unknown_labels(case: Case) -> Iterator[str]:
    """A tag contains an unknown label."""
    if bad := case.turns(lambda line: line.unknown):
        label = next(line.unknown[0] for line in case.draft.lines if line.unknown)
        yield f"Turn {bad[0]}: there is no label {label[:40]!r}."


def tags_in_text(case: Case) -> Iterator[str]:
    """A dialogue for human annotation contains tags of its writer."""
    # Without a post the dialogue is from a corpus, where the labels are those of annotators.
    if case.post is not None and (tagged := case.turns(lambda line: line.mask)):
        yield f"Turn {tagged[0]} has a tag. Write no tags."


def misplaced_tags(case: Case) -> Iterator[str]:
    """A line of the Listener has a tag, or a line that continues a turn."""
    if bad := case.turns(lambda line: line.mask and (line.continues or line.speaker != "User")):
        yield f"Turn {bad[0]}: a tag is on a line that does not begin with 'User:'. Move it there."


def no_crisis(case: Case) -> Iterator[str]:
    """A crisis is confirmed although the post has none."""
    if case.plan is not None and not case.plan.mask and case.confirmed:
        yield f"{format_mask(case.confirmed)} is tagged, and there is no crisis. Tag no confirm."


def other_confirms(case: Case) -> Iterator[str]:
    """The confirms are not exactly those of the post."""
    plan = case.plan
    if plan is not None and plan.mask and case.confirmed != plan.mask:
        yield (
            f"The confirm tags are {format_mask(case.confirmed)}. They must be "
            f"{format_mask(plan.mask)}, all of them and no other."
        )


def scattered(case: Case) -> Iterator[str]:
    """More than one turn has a confirm."""
    turns = case.confirms
    if len(turns) > 1:
        yield f"Turns {', '.join(map(str, turns))} have confirm tags. Put all on one turn, once."


def window(case: Case) -> Iterator[str]:
    """The first confirm is outside the window of its phase."""
    turns = case.confirms
    if case.plan is not None and turns:
        allowed = WINDOWS[case.kind][case.plan.timing]
        if turns[0] not in allowed:
            yield (
                f"The confirm tag stands on turn {turns[0]}. The phase {case.plan.timing} allows "
                f"turn {', '.join(map(str, allowed))}."
            )


def alerts(case: Case) -> Iterator[str]:
    """There is more than one alert, or the alert is not before the confirm."""
    turns, confirms = case.alerts, case.confirms
    if len(turns) > 1:
        yield f"Turns {', '.join(map(str, turns))} have alert tags. Write at most one."
    elif turns and confirms and turns[0] >= confirms[0]:
        yield f"The alert tag on turn {turns[0]} must stand before the confirm tag."


def lone_alert(case: Case) -> Iterator[str]:
    """There is an alert, but the post has no crisis: the second pattern that the paper flags."""
    if case.plan is not None and not case.plan.mask and case.alerts:
        yield "There is an alert tag, and the post has no crisis."
