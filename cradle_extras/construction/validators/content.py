"""Rules of content: only crises of the post, no copied text, no names, no harmful detail.

The detector of crisis types is the keyword baseline with its lexicon, which is fast and easy to
inspect. It has false positives, and misses other wordings, so an accepted dialogue may still
contain a crisis that is not in the post.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from cradle_extras.construction.validators.duplicates import words_of
from cradle_extras.construction.validators.rules import Case
from cradle_lib.detection.baselines.keyword import Keyword
from cradle_lib.labels import CONFIRM_MASK, crisis_type, labels_of

#: Replaces a forbidden detail in shipped answers, and counts as one.
LEFT_OUT: Final = "[left out]"
FORBIDDEN: Final = Path(__file__).with_name("forbidden.txt")
NOT_NAMES: Final = Path(__file__).with_name("not_names.txt")
# Length of the word sequences that are compared with the post, and the largest share of the user's
# sequences that may occur in it.
RUN: Final = 6
MOST_COPIED: Final = 0.5
# Lines with fewer words may be repeated, because they are greetings and thanks.
SENTENCE: Final = 5

_IDENTIFYING: Final = {
    "an e-mail address": re.compile(r"[\w.+-]+@\w[\w-]*\.\w+"),
    "a web address": re.compile(
        r"https?://|www\.\w|\w(?:\.| dot )(?:com|org|net)\b", re.IGNORECASE
    ),
    "a user name": re.compile(r"(?<![\w@])(?:@\w{2,}|/?u/\w{2,})"),
    "a long number": re.compile(
        r"\+?\d(?:[\s().-]?\d){5,}"
        r"|(?:\b(?:zero|oh|one|two|three|four|five|six|seven|eight|nine|double)\b[\s,-]*){7,}",
        re.IGNORECASE,
    ),
    "a postcode": re.compile(r"\b[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}\b"),
    "a street address": re.compile(
        r"\b\d{1,5} (?:[A-Z]\w+ ){1,3}(?:Street|St|Road|Rd|Avenue|Ave|Lane|Drive|Square|Way)\b"
    ),
}


def _entries(path: Path) -> list[str]:
    """Reads a word list: one entry per line, without blank lines and comments."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


# A capitalized word within a sentence or after a title, if it is not on the list and not the name
# of a pet.
_NAME: Final = re.compile(
    r"(?:(?<=[a-zß-öø-ÿ,;] )|(?<=\b[DM][rs]\. )|(?<=Mrs\. ))(?<!dog called )(?<!cat called )"
    r"(?<!mine's called )"
    rf"(?!(?:{'|'.join(_entries(NOT_NAMES))})\b)[A-ZÀ-ÖØ-Þ](?:['\u2019][A-Z])?[a-zß-öø-ÿ]+"
)


@cache
def detector() -> Keyword:
    """Loads the detector of crisis types."""
    return Keyword()


def new_crisis(case: Case) -> Iterator[str]:
    """The user mentions a crisis type that the post does not have."""
    if case.post is not None:
        known = _types(case.post.mask) | _found(f"{case.post.title}. {case.post.text}")
        yield from _new(case, known, "in the post")


def unplanned(case: Case) -> Iterator[str]:
    """Without a post: the user mentions a crisis type that is not planned."""
    if case.plan is not None:
        yield from _new(case, {event.type for event in case.plan.events}, "planned")


def _new(case: Case, known: set[str], where: str) -> Iterator[str]:
    for number, line in zip(case.draft.turns, case.draft.lines, strict=True):
        if line.speaker == "User" and (more := _found(line.text) - known):
            yield f"Turn {number} tells of {', '.join(sorted(more))}, which is not {where}."
            return


def _found(text: str) -> set[str]:
    return _types(detector().find(text))


def _types(mask: int) -> set[str]:
    return {crisis_type(label) or "" for label in labels_of(mask & CONFIRM_MASK)}


def copied(case: Case) -> Iterator[str]:
    """The user's lines are mostly copied from the post."""
    if case.post is None:
        return
    said = case.draft.user_text.splitlines()
    runs = {run for line in said for run in _runs(line)}
    share = len(runs & _runs(case.post.text)) / len(runs) if runs else 0.0
    if share > MOST_COPIED:
        yield (
            f"{share:.0%} of what the User says is copied from the post. Tell it in a "
            "conversation, in other words."
        )


def _runs(text: str) -> set[tuple[str, ...]]:
    words = words_of(text)
    return {tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1)}


def repeated(case: Case) -> Iterator[str]:
    """A line has the same words as an earlier line."""
    seen: dict[tuple[str, ...], int] = {}
    again = []
    for number, line in zip(case.draft.turns, case.draft.lines, strict=True):
        words = tuple(words_of(line.text))
        if len(words) >= SENTENCE and words in seen:
            again.append(number)
        seen.setdefault(words, number)
    if again:
        yield f"Turns {', '.join(map(str, again))} repeat an earlier turn. Go on with the story."


def identifying_detail(text: str) -> tuple[str, str] | None:
    """Finds a detail that could identify a person: its kind and its words."""
    patterns = {**_IDENTIFYING, "what looks like a name": _NAME}
    found = ((kind, pattern.search(text)) for kind, pattern in patterns.items())
    return next(((kind, match[0]) for kind, match in found if match), None)


def identifying(case: Case) -> Iterator[str]:
    """A detail could identify a person."""
    for number, line in zip(case.draft.turns, case.draft.lines, strict=True):
        if detail := identifying_detail(line.text):
            kind = detail[0]
            todo = "Leave it out." if kind in _IDENTIFYING else "Name nobody and no place."
            yield f"Turn {number} holds {kind}. {todo}"
            return


@cache
def forbidden_detail() -> re.Pattern[str]:
    """Compiles the list of methods, graphic detail, places and brands, in lower case."""
    return re.compile(rf"{re.escape(LEFT_OUT)}|\b(?:{'|'.join(_entries(FORBIDDEN))})\b")


def forbidden(case: Case) -> Iterator[str]:
    """A method, graphic detail, a place or a brand is named."""
    if bad := case.turns(lambda line: forbidden_detail().search(line.text.lower())):
        yield f"Turn {bad[0]} holds a detail that is left out here. Say it in milder words."
