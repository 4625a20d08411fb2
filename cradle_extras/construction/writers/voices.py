"""Styles texts in five user voices, and corrects their punctuation and capitals.

Phrases are written in a neutral, informal register. A voice changes the style and
never the disclosed content: only small talk is shortened.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from typing import Final

from cradle_extras.construction.writers.bank import Bank, Phrase

_SPACES: Final = re.compile(r"\s+")
_SPACE_BEFORE: Final = re.compile(r"\s+([,.;:!?])")
_DOUBLED: Final = re.compile(r"([,;:])\s*([,.;:!?])|([!?])\s*[,.](?!\.)")
_STARTS: Final = re.compile(r"(?:^|(?<=[.!?])\s+)([\"']?[a-z])")
_AN: Final = re.compile(r"\b([Aa]) (?=[aeiou](?!n?e\b|ne-|ni|se|su|ti|ur))")
_A: Final = re.compile(r"\b([Aa])n (?=[b-df-gj-np-tv-z])")
_I: Final = re.compile(r"\bi(?='(?:m|d|ve|ll)\b|\b(?!\.))")
_KEEP_CAPITAL: Final = re.compile(
    r"(?:I\b|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Christmas|Easter|English)"
)
_STATEMENT: Final = re.compile(
    r"(?:I|I'm|I've|I'd|I'll|My|It|It's|He|He's|She|She's|They|We|There|There's|The|That|This|"
    r"Everyone|Everything|Nothing|Nobody|Something|Sometimes|Some|At|Since|Every|When|Most)\b"
    r"[^?]*(?:[.!]|$)"
)
_MORE: Final = re.compile(r"(?<=[.!?])(?<!\.\.) .*")
_SUBJECT: Final = re.compile(r"^I (?=(?:can't|won't|couldn't|didn't|don't|\w{3,}ed)\b)")
_JOINED: Final = re.compile(r"(?:but|like|kinda|lowkey|,)$")
# Probability of a voice's habit, per turn.
_HABIT: Final = {"hedging": 0.6, "formal": 0.35, "slang": 0.5, "rambling": 0.6}

Expand = Callable[[str], str]


def finish(text: str, *, lower: bool = False, stop: bool = True) -> str:
    """Corrects spaces, punctuation, articles and capitals of a text, and puts it on one line.

    ``lower`` writes everything in lower case, as some people do online; ``stop`` adds a full stop
    if the text ends with a letter or digit.
    """
    text = _SPACES.sub(" ", text).strip()
    text = _SPACE_BEFORE.sub(r"\1", text)
    text = _DOUBLED.sub(lambda m: m[3] or (m[1] if m[2] == m[1] else m[2]), text)
    text = _AN.sub(r"\1n ", text)
    text = _A.sub(r"\1 ", text)
    if lower:
        text = text.lower()
    else:
        text = _I.sub("I", text)
        text = _STARTS.sub(lambda m: m.group().upper(), text)
    if stop and text and text[-1].isalnum():
        text += "."
    return text


def lower_start(text: str) -> str:
    """Lowers the first letter, so that the text can follow an opener."""
    return text if _KEEP_CAPITAL.match(text) else text[:1].lower() + text[1:]


class Voices:
    """The five voices, with the words of the bank's ``voice.*`` sections."""

    def __init__(self, bank: Bank) -> None:
        self._bank = bank
        self._replace = {
            name: _replacer(bank.sections[name])
            for name in bank.named(r"voice\..+\.replace|flip\.replace")
        }
        fillers = [re.escape(phrase.text) for phrase in bank.sections.get("voice.terse.drop", ())]
        # A filler of several words is only dropped if commas or sentence ends delimit it.
        self._drop = [
            re.compile(
                rf"(?i)(?:^|(?<=[.!?] )){words}, |, {words}(?=[,.!?])"
                if " " in words
                else rf"(?i)\b{words} (?=\w)"
            )
            for words in fillers
        ]

    def style(
        self, text: str, voice: str, expand: Expand, rng: random.Random, *, grave: bool, light: bool
    ) -> str:
        """Styles a user's text of complete sentences in a voice, with :func:`finish`.

        ``rng`` decides which habits appear. A ``grave`` text is about a crisis: additions come from
        the voice's ``grave`` section, if there is one. A ``light`` text is small talk, of which a
        terse user keeps only the first sentence.
        """
        text = self._swap(text, f"voice.{voice}.replace")
        chance = rng.random()
        if voice == "terse":
            for pattern in self._drop:
                text = pattern.sub("", text)
            if light:
                text = _MORE.sub("", text)
                text = _SUBJECT.sub("", text) if chance < 0.5 else text
        elif chance < _HABIT.get(voice, 0.0) * (0.6 if grave else 1.0):
            tail = voice == "rambling" or (voice == "slang" and rng.random() < 0.3)
            section = f"voice.{voice}.{'tail' if tail else 'opener'}{'.grave' if grave else ''}"
            text = self._add(text, section, expand, rng, tail=tail)
        return finish(text, lower=voice == "slang")

    def flip(self, text: str) -> str:
        """Replaces *he* by *she*, by the bank's section ``flip.replace``."""
        return self._swap(text, "flip.replace")

    def _swap(self, text: str, section: str) -> str:
        if section not in self._replace:
            return text
        pattern, table = self._replace[section]

        def swap(match: re.Match[str]) -> str:
            new = table[match.group().lower()]
            return new[:1].upper() + new[1:] if match.group()[0].isupper() else new

        return pattern.sub(swap, text)

    def _add(
        self, text: str, section: str, expand: Expand, rng: random.Random, *, tail: bool
    ) -> str:
        phrases = self._bank.sections.get(section, ())
        if not phrases or not (tail or _STATEMENT.match(text)):
            return text
        added = expand(phrases[int(rng.random() * len(phrases))].text).strip()
        if tail:
            return f"{text.rstrip('.')}{added}" if added[0] in ",;" else f"{text} {added}"
        if section == "voice.slang.opener" and not _JOINED.search(added):
            added += ","
        return f"{added} {lower_start(text)}"


def _replacer(phrases: Iterable[Phrase]) -> tuple[re.Pattern[str], dict[str, str]]:
    # The longest phrase matches first.
    pairs = sorted(((p.text, p.other or "") for p in phrases), key=lambda p: (-len(p[0]), p))
    table = {old.lower(): new for old, new in pairs}
    words = "|".join(re.escape(old) for old in table)
    return re.compile(rf"(?<![\w'])(?:{words})(?![\w'])", re.IGNORECASE), table
