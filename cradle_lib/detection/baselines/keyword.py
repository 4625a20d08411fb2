"""The keyword baseline: an editable lexicon, with rules for negation and for other persons.

Sentences are split into clauses. A phrase counts only if its clause is about the user: not after a
negation, not in a hypothetical, and not with another person as its subject. Time expressions in the
sentence select the state; ongoing takes precedence. A label that the history already shows is not
predicted again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Final

from cradle_lib.detection.models.engine import Sequential, checksum
from cradle_lib.detection.protocol.session import Answer, Prompt
from cradle_lib.labels import ALERT_MASK, BITS, CONFIRM_MASK, CRISIS_TYPES, format_mask

LEXICON: Final = Path(__file__).with_name("lexicon.txt")
# A negation applies to a phrase if it is among this many words before it.
REACH: Final = 4

_SENTENCE: Final = re.compile(r"[.!?…\n]+")
_CLAUSE: Final = re.compile(r"[,;:()\u2013\u2014]+|\s-+\s|\b(?:but|because|although|though)\b")
_WORD: Final = re.compile(r"[\w'*-]+")
# Long sentences are read in pieces of at most 1,000 characters, split between words if possible,
# because the search before each phrase would otherwise take quadratic time.
_PIECE: Final = re.compile(r".{1,1000}(?:\s|$)|.{1000}", re.DOTALL)


class Keyword(Sequential):
    """Predicts labels from the phrases in a turn. Its revision has the lexicon's checksum."""

    kind = "baseline"
    # The checksum that earlier releases computed of the code: existing runs keep their identity.
    version = "5f553caba8f7"

    def __init__(self) -> None:
        parser = ConfigParser(
            allow_no_value=True,
            delimiters="=",
            comment_prefixes="#",
            inline_comment_prefixes="#",
            interpolation=None,
        )
        parser.read_string(LEXICON.read_text(encoding="utf-8"))
        sections = {name: list(parser[name]) for name in parser.sections()}
        self.revision = f"lexicon:{checksum(LEXICON)}"
        self._past_by_default = set(sections.pop("past by default"))
        self._patterns = {name: _pattern(phrases) for name, phrases in sections.items()}
        self._any = _pattern([p for name in ("alert", *CRISIS_TYPES) for p in sections[name]])

    def reply(self, prompt: Prompt) -> Answer:
        """Predicts the labels of the current turn, except those that the history already shows."""
        found = self.find(prompt.current) & ~prompt.tagged
        # An event that has been confirmed needs no alert any more.
        if prompt.tagged & CONFIRM_MASK:
            found &= ~ALERT_MASK
        return Answer(text=format_mask(found))

    def find(self, text: str) -> int:
        """Looks for the lexicon's phrases.

        Args:
            text: The text of one user turn.

        Returns:
            Mask of the labels found. A confirm suppresses alerts, and of two related types only
            the more severe one is kept (rape over sexual harassment, active over passive
            ideation).
        """
        mask = 0
        for sentence in _sentences(text):
            plain = self._patterns["idiom"].sub(" ", sentence)
            # Most sentences have no phrase: one search instead of many.
            if not self._any.search(plain):
                continue
            ongoing = bool(self._patterns["ongoing cue"].search(plain))
            past = bool(self._patterns["past cue"].search(plain)) and not ongoing
            clauses = _CLAUSE.split(plain)
            for name in ("alert", *CRISIS_TYPES):
                if any(self._is_disclosed(name, clause) for clause in clauses):
                    in_past = past or (name.lower() in self._past_by_default and not ongoing)
                    stem = name if name == "alert" else f"confirm_{name}"
                    mask |= BITS[f"{stem}_{'past' if in_past else 'ongoing'}"]
        return _most_severe(mask)

    def _is_disclosed(self, name: str, clause: str) -> bool:
        matches = self._patterns[name].finditer(clause)
        return any(self._is_about_user(clause, match) for match in matches)

    def _is_about_user(self, clause: str, match: re.Match[str]) -> bool:
        """Whether the clause says the phrase about the user, as a fact."""
        before = clause[: match.start()]
        reach = " ".join(_WORD.findall(before)[-REACH:])
        if self._patterns["negation"].search(reach):
            return False
        if self._patterns["hypothetical"].search(before):
            return False
        others = list(self._patterns["other person"].finditer(before))
        start = others[-1].end() if others else 0
        if self._patterns["oneself"].search(clause[start : match.end()]):
            return True
        return not others and not self._patterns["somebody"].search(before)


def _sentences(text: str) -> Iterator[str]:
    plain = text.lower().replace("’", "'")  # noqa: RUF001
    for sentence in _SENTENCE.split(plain):
        yield from _PIECE.findall(sentence) if len(sentence) > 1000 else (sentence,)


def _most_severe(mask: int) -> int:
    for severe, mild in (("RA", "SHA"), ("SI_active", "SI_passive")):
        for state in ("ongoing", "past"):
            if mask & BITS[f"confirm_{severe}_{state}"]:
                mask &= ~BITS[f"confirm_{mild}_{state}"]
    return mask & ~ALERT_MASK if mask & CONFIRM_MASK else mask


def _pattern(phrases: list[str]) -> re.Pattern[str]:
    """Matches any of the phrases as whole words; a star matches the rest of a word."""
    ordered = sorted(phrases, key=len, reverse=True)
    alternatives = (
        r"\s+".join(re.escape(word).replace(r"\*", r"[\w'-]*") for word in phrase.lower().split())
        for phrase in ordered
    )
    return re.compile(rf"(?<![\w'])(?:{'|'.join(alternatives)})(?![\w'])")
