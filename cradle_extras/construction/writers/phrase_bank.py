"""The shipped writer: makes the text of a plan from the phrase bank, with limited repetition.

A *ledger* counts every sentence and refuses a text that would make one occur a fourth time. It
also separates two splits: no labelled sentence of one occurs in the other.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from cradle_extras.construction.plan import Plan
from cradle_extras.construction.validators.draft import Line, write_line
from cradle_extras.construction.writers.bank import Bank, Phrase, SurfaceForms
from cradle_extras.construction.writers.script import LABELLED, Mix, Move, Script
from cradle_extras.construction.writers.voices import Voices, finish, lower_start
from cradle_lib.errors import CorpusError

LIMIT: Final = 3
TRIES: Final = 60
# Refusals in a row after which a phrase is no longer drawn.
_EXHAUSTED: Final = 15
_SENTENCE_END: Final = re.compile(r"[.!?\n]+")
_EDGE: Final = re.compile(r"^[\W_]+|[\W_]+$")
_ABOUT_OTHERS: Final = re.compile(r"(alert|confirm2?|after|support|ask)\.")


def sentences(text: str) -> list[str]:
    """Splits a text, without the speaker's name, into sentences for counting.

    Sentences end at ``.``, ``!``, ``?`` and line ends. They are in lower case, without punctuation
    or spaces at the edges; empty ones are left out.
    """
    parts = (_EDGE.sub("", part) for part in _SENTENCE_END.split(text.lower()))
    return [" ".join(part.split()) for part in parts if part]


@dataclass
class Ledger:
    """Counts the sentences of a split so far, and records those on labelled rows.

    ``other`` is the ledger of a split that must share no labelled sentence with this one.
    """

    counts: Counter[str] = field(default_factory=Counter)
    labelled: set[str] = field(default_factory=set)
    other: Ledger | None = None

    def admits(self, found: list[str], *, labels: bool) -> bool:
        """Whether a text with these sentences may be added."""
        banned: Container[str] = ()
        if self.other is not None:
            banned = self.other.counts if labels else self.other.labelled
        return (
            bool(found)
            and len(set(found)) == len(found)
            and all(self.counts[s] < LIMIT and s not in banned for s in found)
        )

    def add(self, found: list[str], *, labels: bool) -> None:
        """Counts a text's sentences."""
        self.counts.update(found)
        if labels:
            self.labelled.update(found)


class Decks:
    """Draws phrases of a section in shuffled rounds, so that all are used evenly.

    A phrase that was refused too often in a row is no longer drawn. Every second phrase of a
    labelled section (odd indices from 0) is reserved for the test split.
    """

    def __init__(self, bank: Bank, *, test: bool, mix: Mix, seed: str) -> None:
        self._bank, self._test, self._mix = bank, test, mix
        self._rng = random.Random(f"{seed} decks")
        self._decks: dict[tuple[str, bool], list[Phrase]] = {}
        self._refused: Counter[str] = Counter()

    def draw(self, section: str) -> Phrase | None:
        """Gives the next phrase of a section, or ``None`` if none may be used any more."""
        if not self._test:
            return self._next(section, reserved=False)
        labelled = re.fullmatch(LABELLED, section) is not None
        reserved = labelled and self._rng.random() >= self._mix.familiar
        return self._next(section, reserved=reserved) or self._next(section, reserved=not reserved)

    def judge(self, phrase: Phrase, *, admitted: bool) -> None:
        """Records whether a text with the phrase was admitted."""
        self._refused[phrase.where] = 0 if admitted else self._refused[phrase.where] + 1

    def _next(self, section: str, *, reserved: bool) -> Phrase | None:
        key = (section, reserved)
        if not self._decks.get(key):
            phrases = self._bank.sections.get(section, ())
            if re.fullmatch(LABELLED, section):
                phrases = phrases[1::2] if reserved else phrases[::2]
            usable = [p for p in phrases if self._refused[p.where] < _EXHAUSTED]
            drawn = sorted((self._rng.random(), i) for i in range(len(usable)))
            self._decks[key] = [usable[i] for _, i in drawn]
        return self._decks[key].pop() if self._decks[key] else None


class PhraseBank:
    """Writes dialogues from the phrase bank, with the difficulty of ``mix``.

    ``seed`` is the seed of all random choices. The labelled turns of a test split use separate
    phrases, except for the share ``mix.familiar``. The ledger grows with every dialogue.
    """

    def __init__(
        self,
        bank: Bank,
        mix: Mix,
        *,
        seed: str,
        test: bool = False,
        ledger: Ledger | None = None,
    ) -> None:
        self.bank = bank.with_split_slots(LABELLED, test=test)
        self.mix, self.seed = mix, seed
        self.ledger = ledger or Ledger()
        self.decks = Decks(self.bank, test=test, mix=mix, seed=seed)
        self.voices = Voices(self.bank)

    def text(self, plan: Plan, attempt: int = 0) -> str:
        """Writes one dialogue in the form that language models return.

        ``attempt`` is the number of earlier attempts. Dialogues for human annotation have no tags.
        """
        again = f" {attempt}" if attempt else ""
        lines, _ = self.write(plan, self.dialogue_seed(f"{plan.dialogue}{again}"))
        if plan.kind == "annotated":
            lines = [replace(line, mask=0) for line in lines]
        return "\n".join(map(write_line, lines))

    def dialogue_seed(self, dialogue: str) -> int:
        """Gives the seed of one dialogue: a positive 63-bit number."""
        digest = hashlib.blake2b(f"{self.seed} {dialogue}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") >> 1

    def write(self, plan: Plan, seed: int) -> tuple[list[Line], list[str]]:
        """Writes one dialogue; ``seed`` is the seed of all random choices within it.

        Gives its rows with their labels, and the names of its hard cases.

        Raises:
            CorpusError: If no phrase of a section may be used any more.
        """
        return _Dialogue(self, plan, random.Random(str(seed))).write()


class _Dialogue:
    """One dialogue that is being written: its sentences so far and its random state."""

    def __init__(self, writer: PhraseBank, plan: Plan, rng: random.Random) -> None:
        self._writer, self._plan, self._rng = writer, plan, rng
        self._moves = Script(writer.bank, plan, writer.mix, rng).moves()
        self._forms = SurfaceForms(writer.bank, lambda n: int(rng.random() * n))
        self._flip = rng.random() < 0.25
        self._lower = plan.scenario in ("S6", "S7") and rng.random() < 0.5
        self._said: set[str] = set()
        self._used: set[str] = set()

    def write(self) -> tuple[list[Line], list[str]]:
        masks = self._plan.masks()
        lines = []
        for who, move, mask in zip(self._plan.rows, self._moves, masks, strict=True):
            speaker = "User" if who in "Uu" else "Listener"
            text = self._find(move, speaker, labels=bool(mask))
            lines.append(Line(speaker, text, mask, continues=who in "ul"))
        return lines, sorted({move.case for move in self._moves if move.case})

    def _find(self, move: Move, speaker: str, *, labels: bool) -> str:
        """Draws phrases until the ledger admits their text."""
        longest = max(len(chain) for chain in move.parts)
        for level in range(longest):
            sections = [chain[min(level, len(chain) - 1)] for chain in move.parts]
            for _ in range(TRIES):
                phrases = [self._writer.decks.draw(section) for section in sections]
                drawn = [phrase for phrase in phrases if phrase is not None]
                if len(drawn) < len(phrases):
                    break
                if any(p.where in self._used for p in drawn) and self._rng.random() < 0.9:
                    continue
                text = self._render(move, sections, drawn, speaker)
                found = sentences(text)
                admitted = self._writer.ledger.admits(found, labels=labels) and not (
                    self._said & set(found)
                )
                for phrase in drawn:
                    self._writer.decks.judge(phrase, admitted=admitted)
                if admitted:
                    self._writer.ledger.add(found, labels=labels)
                    self._said.update(found)
                    self._used.update(p.where for p in drawn)
                    return text
        raise CorpusError(
            f"the phrase bank is too small for {self._writer.seed}: every sentence of "
            f"{' or '.join(sorted({s for chain in move.parts for s in chain}))} "
            f"already occurs {LIMIT} times",
            hint="Add phrases, alternatives or slots to one of these sections",
        )

    def _render(self, move: Move, sections: list[str], phrases: list[Phrase], speaker: str) -> str:
        listener = speaker == "Listener"
        texts = []
        for section, phrase in zip(sections, phrases, strict=True):
            text = self._forms.expand(phrase.text, listener=listener)
            if self._flip and _ABOUT_OTHERS.match(section):
                text = self._writer.voices.flip(text)
            texts.append(text)
        text = " ".join(texts)
        lower = self._lower if listener else self._plan.voice == "slang"
        if move.kind == "item":
            return "- " + lower_start(finish(text, lower=lower, stop=False).rstrip("."))
        if listener or move.kind == "list":
            return finish(text, lower=lower, stop=move.kind != "list")
        return self._writer.voices.style(
            finish(text),
            self._plan.voice,
            partial(self._forms.expand, listener=False),
            self._rng,
            grave=move.kind in ("alert", "confirm", "after", "before"),
            light=move.kind in ("open", "topic", "chat", "close"),
        )
