"""Measures of the written dialogues, and their targets: does the text read like talk?

The targets are between the counts of real support chats and those of dialogues that blind readers
took for real.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from configparser import ConfigParser
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from cradle_extras.construction.validators.duplicates import near_duplicates
from tools.surrogate.dialogue_files import SENTENCE, Row, Written

#: Four-grams are counted within this many user turns.
WINDOW: Final = 1900
GRAM: Final = 4
#: No two of this many dialogues open alike.
BATCH: Final = 60
#: A content word may occur in this share of the dialogues, and always in :data:`FEW`.
MOST: Final = 0.12
FEW: Final = 3
#: Two rows are near duplicates if the Jaccard index of their words is at least this.
NEAR: Final = 0.7

_WORD: Final = re.compile(r"[a-z0-9]+(?:'[a-z]+)*")
_ENDING: Final = re.compile(r"('s|s|ing|ed)$")
_END: Final = re.compile(r"[.!?…)\"”:]$|[\U0001F300-\U0001FAFF☀-➿]$")
_SENTENCES: Final = re.compile(r"(?<=[.!?…])\s+")
_DATE: Final = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:january|february|april|june|july|august"
    r"|september|october|november|december|christmas|xmas|easter|new year'?s?|halloween"
    r"|thanksgiving|diwali|ramadan|eid)\b|\b(?:in|last|next|since|until|by|of) (?:march|may)\b",
    re.IGNORECASE,
)
_EMPATHY: Final = re.compile(
    r"\bsorry (?:to hear|about|for|you|that|it|this|things)|\b(?:so|really|very) sorry\b"
    r"|\bthat (?:sounds|must be|must have been|is) (?:\w+ )?(?:hard|tough|rough|difficult|awful"
    r"|horrible|terrible|exhausting|scary|frightening|lonely|stressful|painful|annoying|frustrating)"
    r"|\b(?:that's|thats|how) (?:\w+ )?(?:hard|tough|rough|awful|horrible|terrible|a lot|sad)"
    r"|\bpoor (?:you|thing)|\boh no\b|\bno wonder\b|\bi can imagine\b|\bi understand\b"
    r"|\b(?:oh|aw+) (?:love|hun|man|dear)\b",
    re.IGNORECASE,
)
_FEELING: Final = re.compile(
    r"\b(?:sad|angry|afraid|scared|ashamed|lonely|guilty|worried|anxious|nervous|upset|happy|relieved"
    r"|frustrated|embarrassed|jealous|numb|empty|hopeless|overwhelmed|stressed|annoyed|fed up|proud"
    r"|hurt|bored|miserable|furious|depressed|tired|exhausted|hate|miss (?:him|her|them|it|my)"
    r"|love|cry|crying|cried|stupid|useless|worthless|low|frightened|terrified|panic\w*"
    r"|feel (?:bad|awful|terrible|weird|sick|stuck|lost|alone|better|worse|good))\b",
    re.IGNORECASE,
)
_SAFETY: Final = re.compile(
    r"\b(?:are you|feel|be|keep (?:you|yourself)) safe|safe (?:at home|tonight|now|there|where)"
    r"|thoughts? (?:of|about) (?:hurting|harming|ending|dying|killing|not)"
    r"|(?:hurt|harm|kill)(?:ing)? yourself|end(?:ing)? your life|end(?:ing)? it all|suicid"
    r"|not (?:want(?:ing)? to )?be(?:ing)? (?:here|alive)|in danger",
    re.IGNORECASE,
)
_CLICHE: Final = re.compile(
    r"i hear you|your feelings are valid|it takes (?:a lot of )?(?:courage|strength)"
    r"|thank you for (?:sharing|trusting|telling)|i'm here for you|you(?:'re| are) not alone"
    r"|it makes sense that|safe space|at the end of the day|hold(?:ing)? space|it's okay not to be"
    r"|proud of you|one step at a time|be gentle with yourself|what would that look like"
    r"|how does that make you feel|a lot to carry|carrying (?:this|that|it) alone|sit with that"
    r"|i'm glad you (?:said|told|wrote|came)|i believe you\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Measure:
    """A measured value with its target range, and examples of what to change."""

    name: str
    value: float
    low: float = 0.0
    high: float = float("inf")
    examples: tuple[str, ...] = ()

    @property
    def met(self) -> bool:
        """Whether the value is in the range."""
        return self.low <= round(self.value, 3) <= self.high


def words_of(text: str) -> list[str]:
    """Gives the words of a text in lower case, with apostrophes inside words."""
    return _WORD.findall(text.lower().replace("\u2019", "'"))


@cache
def _word_lists() -> dict[str, frozenset[str]]:
    parser = ConfigParser(allow_no_value=True, delimiters="=", interpolation=None)
    parser.read_string(Path(__file__).with_name("common_words.txt").read_text(encoding="utf-8"))
    lists = {name: " ".join(parser[name]).split() for name in parser.sections()}
    return {name: frozenset([*w, *(_stem(word) for word in w)]) for name, w in lists.items()}


def _stem(word: str) -> str:
    return _ENDING.sub("", word)


@cache
def content_words(text: str, *, rare: bool = False) -> frozenset[str]:
    """Gives the stems of the words of at least four letters that are not function words.

    Args:
        text: The text of a row.
        rare: Leave out the words that any talk may contain, too.
    """
    lists = _word_lists()
    known = lists["function"] | lists["common"] if rare else lists["function"]
    long = {word for word in words_of(text) if len(word) > 3} - known
    return frozenset(stem for word in long if len(stem := _stem(word)) > 2) - known


def measure(dialogues: Sequence[Written]) -> list[Measure]:
    """Measures dialogues.

    Args:
        dialogues: At least one dialogue.

    Returns:
        The measures, in the order in which they are printed.
    """
    rows = [dialogue.rows for dialogue in dialogues]
    user = [row.text for one in rows for row in one if row.speaker == "U"]
    listener = [row.text for one in rows for row in one if row.speaker == "L"]
    return [
        *_user_measures(user),
        *_listener_measures(listener),
        *_dialogue_measures(dialogues),
        *_repetition(dialogues, user),
    ]


def _percent(items: Sequence[Any], holds: Callable[[Any], object]) -> float:
    return 100 * sum(bool(holds(item)) for item in items) / len(items) if items else 0.0


def _sentence_count(text: str) -> int:
    return sum(bool(words_of(part)) for part in _SENTENCES.split(text))


def _chained(text: str) -> bool:
    return _sentence_count(text) == 1 and text.count(",") > 1


def _user_measures(user: Sequence[str]) -> Iterator[Measure]:
    lengths = [len(words_of(text)) for text in user]
    commas = sum(text.count(",") for text in user) / max(1, sum(lengths))
    yield Measure("median words", statistics.median(lengths), 8, 15)
    yield Measure("% of three words or fewer", _percent(lengths, lambda n: n <= 3), 12, 34)
    yield Measure("% above 40 words", _percent(lengths, lambda n: n > 40), 4, 9)
    yield Measure("% without end punctuation", _percent(user, lambda t: not _END.search(t)), 30, 56)
    yield Measure("% in lower case", _percent(user, lambda t: t[:1].islower()), 20, 42)
    yield Measure("% with a question", _percent(user, lambda t: "?" in t), 8, 25)
    yield Measure(
        "% of several sentences", _percent(user, lambda t: _sentence_count(t) > 1), 25, 55
    )
    yield Measure("% single sentences with two commas", _percent(user, _chained), 0, 10)
    yield Measure("commas per word", commas, 0, 0.06)
    yield Measure("% that name a feeling", _percent(user, _FEELING.search), 12, 40)


def _listener_measures(listener: Sequence[str]) -> Iterator[Measure]:
    lengths = [len(words_of(text)) for text in listener]
    yield Measure("Listener: sd of words", statistics.pstdev(lengths), 11)
    yield Measure("Listener: longest row in words", max(lengths), 50)
    yield Measure("Listener: % with a question", _percent(listener, lambda t: "?" in t), 30, 60)
    yield Measure("Listener: % plain empathy", _percent(listener, _EMPATHY.search), 12, 40)


def _dialogue_measures(dialogues: Sequence[Written]) -> Iterator[Measure]:
    rows = [[row for row in dialogue.rows if row.speaker != "-"] for dialogue in dialogues]
    every = ["\n".join(row.text for row in one) for one in rows]
    heard = ["\n".join(row.text for row in one if row.speaker == "L") for one in rows]
    linked = [link for one in rows for link in _links(one)]
    yield Measure("% of rows that share a content word", _percent(linked, bool), 25)
    yield Measure("% of dialogues with a date", _percent(every, _DATE.search), 0, 35)
    yield Measure("% with a question about safety", _percent(heard, _SAFETY.search), 0, 55)
    recalls = [d.id for d, one in zip(dialogues, rows, strict=True) if _recalls(one)]
    share = 100 * len(recalls) / len(rows)
    yield Measure("% whose end recalls the beginning", share, 0, 30, tuple(recalls))


def _links(rows: Sequence[Row]) -> Iterator[bool]:
    """For each row with content words: does it share one with the two rows before?"""
    words = [content_words(row.text) for row in rows]
    for at in range(1, len(rows)):
        if words[at]:
            yield bool(words[at] & frozenset().union(*words[max(0, at - 2) : at]))


def _recalls(rows: Sequence[Row]) -> bool:
    """Whether the last row has a content word of the first four rows."""
    first = frozenset().union(*(content_words(row.text, rare=True) for row in rows[:4]))
    return bool(content_words(rows[-1].text, rare=True) & first)


def _repetition(dialogues: Sequence[Written], user: Sequence[str]) -> Iterator[Measure]:
    parts = [user[at : at + WINDOW] for at in range(0, len(user), WINDOW)]
    # A short rest at the end is no measure of its own.
    parts = [part for part in parts if len(part) == WINDOW] or [user]
    worst = max((_repeated_grams(part) for part in parts), key=lambda found: found[0])
    yield Measure("% repeated four-grams", worst[0], 0, 6, worst[1])

    own = {
        dialogue.id: frozenset().union(
            *(content_words(row.text, rare=True) for row in dialogue.rows)
        )
        for dialogue in dialogues
    }
    frequency = Counter(word for words in own.values() for word in words)
    most = max(FEW, int(MOST * len(own)))
    frequent = [f"{word} ({n})" for word, n in frequency.most_common() if n > most]
    name = f"content words in more than {most} dialogues"
    yield Measure(name, len(frequent), 0, 0, tuple(frequent))

    alike = tuple(_alike_openings(dialogues))
    yield Measure("dialogues that open alike", len(alike), 0, 0, alike)

    texts = [
        (f"{dialogue.id} row {number}", row.text)
        for dialogue in dialogues
        for number, row in enumerate(dialogue.rows)
    ]
    long = [(place, text) for place, text in texts if len(words_of(text)) >= SENTENCE]
    found = near_duplicates(long, parts=lambda text: set(words_of(text)), threshold=NEAR)
    near = tuple(f"{earlier} and {later}" for later, earlier, _ in found)
    yield Measure("near-duplicate rows", len(near), 0, len(texts) // 1000, near)
    polished = [f"{place}: {m[0]}" for place, text in texts if (m := _CLICHE.search(text))]
    yield Measure("polished phrases", len(polished), 0, len(texts) // 1000, tuple(polished))


def _alike_openings(dialogues: Sequence[Written]) -> Iterator[str]:
    """Gives dialogues that open with the same four words as one of the :data:`BATCH` before."""
    last: dict[tuple[str, ...], int] = {}
    for at, dialogue in enumerate(dialogues):
        opening = tuple(words_of(dialogue.rows[0].text)[:GRAM])
        before = last.get(opening, -BATCH)
        if len(opening) == GRAM and at - before < BATCH:
            yield f"{' '.join(opening)} ({dialogues[before].id}, {dialogue.id})"
        last[opening] = at


def _repeated_grams(texts: Iterable[str]) -> tuple[float, tuple[str, ...]]:
    grams: Counter[tuple[str, ...]] = Counter()
    for text in texts:
        words = words_of(text)
        grams.update(tuple(words[at : at + GRAM]) for at in range(len(words) - GRAM + 1))
    repeated = [(gram, n) for gram, n in grams.most_common() if n > 1]
    share = 100 * sum(n for _, n in repeated) / max(1, grams.total())
    return share, tuple(f"{' '.join(gram)} ({n})" for gram, n in repeated)
