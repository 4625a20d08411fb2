"""From moves to words, within the limits on repetition.

A *ledger* per split counts every sentence and refuses a text that would make one occur
a fourth time. Labelled sentences of train and dev never occur in test, and the other
way round.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from cradle_lib.corpus.surrogate.bank import Bank, Phrase, Voicebox
from cradle_lib.corpus.surrogate.plan import Plan
from cradle_lib.corpus.surrogate.script import LABELLED, Mix, Move, Script
from cradle_lib.corpus.surrogate.voices import Voices, finish, lower_start
from cradle_lib.errors import CorpusError

LIMIT: Final = 3
TRIES: Final = 60
_TIRED: Final = 15
_SENTENCE_END: Final = re.compile(r"[.!?\n]+")
_EDGE: Final = re.compile(r"^[\W_]+|[\W_]+$")
_ABOUT_OTHERS: Final = re.compile(r"(alert|confirm2?|after|support|ask)\.")


def sentences(text: str) -> list[str]:
    """Splits a text into sentences for counting.

    Args:
        text: Without the speaker's name.

    Returns:
        What stands between ``.``, ``!``, ``?`` and line ends, in lower case and without
        punctuation or blanks at the edges; empty ones are left out.
    """
    parts = (_EDGE.sub("", part) for part in _SENTENCE_END.split(text.lower()))
    return [" ".join(part.split()) for part in parts if part]


@dataclass
class Ledger:
    """The sentences of one split.

    Attributes:
        counts: How often each sentence occurs so far.
        labelled: The sentences of labelled rows.
        elsewhere: All sentences of the splits this one is kept apart from.
        elsewhere_labelled: The labelled ones among them.
    """

    counts: Counter[str] = field(default_factory=Counter)
    labelled: set[str] = field(default_factory=set)
    elsewhere: frozenset[str] = frozenset()
    elsewhere_labelled: frozenset[str] = frozenset()

    def admits(self, found: list[str], *, labels: bool) -> bool:
        """Says whether a text with these sentences may be added."""
        banned = self.elsewhere if labels else self.elsewhere_labelled
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

    A phrase that has been refused often in a row is used up and leaves its deck.

    Args:
        bank: The phrase bank.
        test: Whether the test split is written. Every second phrase of a labelled
            section is kept for it: the odd ones, counted from 0.
        mix: How hard the corpus is.
        seed: Start of the shuffles.
    """

    def __init__(self, bank: Bank, *, test: bool, mix: Mix, seed: str) -> None:
        """Shuffles nothing yet; see the class."""
        self._bank, self._test, self._mix = bank, test, mix
        self._rng = random.Random(f"{seed} decks")
        self._whole: dict[tuple[str, bool], list[Phrase]] = {}
        self._rest: dict[tuple[str, bool], list[Phrase]] = {}
        self._refused: Counter[str] = Counter()

    def draw(self, section: str) -> Phrase | None:
        """Gives the next phrase of a section, or ``None`` when all are used up."""
        own = (
            self._test
            and re.fullmatch(LABELLED, section) is not None
            and self._rng.random() >= self._mix.familiar
        )
        return self._next(section, own) or (self._next(section, not own) if self._test else None)

    def judge(self, phrase: Phrase, *, taken: bool) -> None:
        """Notes whether a surface form of the phrase was admitted."""
        self._refused[phrase.where] = 0 if taken else self._refused[phrase.where] + 1

    def _next(self, section: str, own: bool) -> Phrase | None:
        key = (section, own)
        if key not in self._whole:
            phrases = self._bank.sections.get(section, ())
            if re.fullmatch(LABELLED, section):
                phrases = phrases[1::2] if own else phrases[::2]
            self._whole[key] = list(phrases)
        if not self._rest.get(key):
            alive = [p for p in self._whole[key] if self._refused[p.where] < _TIRED]
            self._whole[key] = alive
            drawn = sorted((self._rng.random(), i) for i in range(len(alive)))
            self._rest[key] = [alive[i] for _, i in drawn]
        return self._rest[key].pop() if self._rest[key] else None


@dataclass(frozen=True, slots=True)
class Written:
    """A dialogue in words.

    Attributes:
        texts: One per row, in the release's format.
        masks: The labels of each row.
        cases: The hard cases it holds, sorted.
    """

    texts: tuple[str, ...]
    masks: tuple[int, ...]
    cases: tuple[str, ...]


class Writer:
    """Writes the dialogues of one split.

    Args:
        bank: The phrase bank.
        ledger: The split's sentences; grows with every dialogue.
        decks: The split's decks.
        mix: How hard the corpus is.
    """

    def __init__(self, bank: Bank, ledger: Ledger, decks: Decks, mix: Mix) -> None:
        """Keeps what it is given; see the class."""
        self._bank, self._ledger, self._decks, self._mix = bank, ledger, decks, mix
        self._voices = Voices(bank)

    def write(self, plan: Plan, seed: str) -> Written:
        """Finds the words for one dialogue.

        Args:
            plan: The dialogue.
            seed: Start of all choices within it.

        Raises:
            CorpusError: If the bank has no sentence left that may be used.
        """
        return _Dialogue(
            self._bank,
            self._ledger,
            self._decks,
            self._mix,
            self._voices,
            plan,
            random.Random(seed),
        ).write()


class _Dialogue:
    def __init__(
        self,
        bank: Bank,
        ledger: Ledger,
        decks: Decks,
        mix: Mix,
        voices: Voices,
        plan: Plan,
        rng: random.Random,
    ) -> None:
        self._ledger, self._decks, self._voices = ledger, decks, voices
        self._plan, self._rng = plan, rng
        self._moves = Script(bank, plan, mix, rng).moves()
        self._box = Voicebox(bank, lambda n: int(rng.random() * n))
        self._flip = rng.random() < 0.25
        self._lower = plan.scenario in ("S6", "S7") and rng.random() < 0.5
        self._said: set[str] = set()
        self._used: set[str] = set()

    def write(self) -> Written:
        plan = self._plan
        masks = plan.masks()
        texts: list[str] = []
        for row, who in enumerate(plan.rows):
            speaker = "User" if who in "Uu" else "Listener"
            if who in "ul":
                texts.append("- " + self._item(row, speaker, masks[row]))
                continue
            text = self._find(self._moves[row], speaker, bool(masks[row]))
            texts.append(f"{speaker}: {text}")
        cases = {move.case for move in self._moves.values() if move.case}
        return Written(tuple(texts), tuple(masks), tuple(sorted(cases)))

    def _item(self, row: int, speaker: str, mask: int) -> str:
        prefix = "" if speaker == "User" else "listener."
        section = f"{prefix}bullets.{self._plan.scenario}"
        if mask:
            step = self._plan.case.steps[self._plan.places.index(row)]
            section = f"confirm.{step.events[0].key}"
        text = self._find(Move("item", ((section,),)), speaker, bool(mask))
        return text

    def _find(self, move: Move, speaker: str, labels: bool) -> str:
        """Draws surface forms until the ledger admits one."""
        longest = max(len(chain) for chain in move.parts)
        for level in range(longest):
            for _ in range(TRIES):
                phrases = [
                    self._decks.draw(chain[min(level, len(chain) - 1)]) for chain in move.parts
                ]
                drawn = [phrase for phrase in phrases if phrase is not None]
                if len(drawn) < len(phrases):
                    break
                if any(p.where in self._used for p in drawn) and self._rng.random() < 0.9:
                    continue
                text = self._word(move, level, drawn, speaker)
                found = sentences(text)
                taken = self._ledger.admits(found, labels=labels) and not (self._said & set(found))
                for phrase in drawn:
                    self._decks.judge(phrase, taken=taken)
                if taken:
                    self._ledger.add(found, labels=labels)
                    self._said.update(found)
                    self._used.update(p.where for p in drawn)
                    return text
        raise CorpusError(
            f"the phrase bank is too small for {self._plan.split}: every sentence of "
            f"{' or '.join(sorted({s for chain in move.parts for s in chain}))} "
            f"occurs {LIMIT} times already",
            hint="Add phrases, alternatives or slots to one of these sections",
        )

    def _word(self, move: Move, level: int, phrases: list[Phrase], speaker: str) -> str:
        listener = speaker == "Listener"
        texts = []
        for chain, phrase in zip(move.parts, phrases, strict=True):
            text = self._box.say(phrase, listener=listener)
            section = chain[min(level, len(chain) - 1)]
            if self._flip and _ABOUT_OTHERS.match(section):
                text = self._voices.flip(text)
            texts.append(text)
        text = " ".join(texts)
        lower = self._lower if listener else self._plan.voice == "slang"
        if move.kind == "item":
            return lower_start(finish(text, lower=lower, stop=False).rstrip("."))
        if listener or move.kind == "list":
            return finish(text, lower=lower, stop=move.kind != "list")
        say = lambda phrase: self._box.say(phrase, listener=False)  # noqa: E731
        return self._voices.style(
            finish(text),
            self._plan.voice,
            say,
            self._rng,
            grave=move.kind in ("alert", "confirm", "after", "before"),
            light=move.kind in ("open", "topic", "chat", "close"),
        )
