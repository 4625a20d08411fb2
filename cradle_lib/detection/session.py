"""The turn-by-turn protocol: one session leads one model through one dialogue.

At every user turn the model sees the instruction, the dialogue up to that turn with
its own earlier tags, and the current turn, and answers with the labels of the current
turn only (paper, Sec 4.3 and Appendix C.2). A session says what to ask next and takes
the answer; an engine carries questions and answers and knows nothing of the protocol.

A dialogue is data. Line breaks inside a turn become spaces, and whatever could pass
for a speaker, a tag, a section of the prompt or a control token of a chat format is
taken apart, so that a turn can't forge one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Final

from cradle_lib.corpus import Dialogue
from cradle_lib.detection.harmless import harmless
from cradle_lib.detection.parsing import Outcome, read_answer
from cradle_lib.labels import format_mask
from cradle_lib.prompts import Template
from cradle_lib.record import History

TAG: Final = "MODEL_TAG"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question to a model.

    Attributes:
        dialogue: Id of the dialogue.
        turn: ``turn_id`` of the user turn that is asked about.
        text: The whole user message.
        static: ``text[:static]`` is the same in every prompt of a run.
        current: What the user says in this turn, made harmless, without the speaker.
        tagged: Mask of all tags that the history shows.
        history: The dialogue before this turn, as the prompt shows it: one line for what was
            said and, after a user's line, one for its tags.
        ends: Where the history of each question of the dialogue so far ended, this one's
            last. What stands before such a place stands there in all later questions.
    """

    dialogue: str
    turn: int
    text: str
    static: int
    current: str
    tagged: int
    ends: tuple[int, ...] = ()
    history: str = ""

    def __repr__(self) -> str:
        """Says which question it is; never any text of the dialogue."""
        return f"<Prompt {self.dialogue}, turn {self.turn}: {len(self.text):,} characters>"

    @property
    def blocks(self) -> list[str]:
        """The text in pieces: the static part, what each question added, and the rest.

        Joined they are the text. Every piece but the last comes back at the same place in
        later questions, and none is blank.
        """
        pieces = [""]
        for start, end in pairwise((0, self.static, *self.ends, len(self.text))):
            pieces[-1] += self.text[start:end]
            if pieces[-1].strip():
                pieces.append("")
        rest = pieces.pop()
        pieces[-1:] = ["".join([*pieces[-1:], rest])]
        return pieces

    @property
    def messages(self) -> list[dict[str, str]]:
        """The chat messages that every engine sends: the paper's single user message."""
        return [{"role": "user", "content": self.text}]

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits of the text's SHA-256: what an answer is the answer to."""
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine brings back.

    Attributes:
        text: The model's raw text, or an empty text.
        outcome: ``None`` lets the text decide; an engine sets it if there is no
            readable answer for a reason of its own.
        reason: Why the outcome is not ``ok``.
        tokens_in: All tokens of the prompt: read from a cache, written to one, or neither;
            ``None`` if unknown.
        tokens_cached: Those of them that were read from a cache and not computed again.
        tokens_written: Those of them that were written to a cache; ``None`` if not reported.
        tokens_out: Tokens of the answer, reasoning included.
        seconds: Time that the answer took.
        choices: For constrained decoding, at each fork of the answer the log-probability of
            each branch; ``None`` for an answer that was written freely.
        served: What a service says that it ran: the model's name there, and the fingerprint
            if it gave one.
        dropped: Parameters that the registry asks for and the service does not take, so
            that the answer was given without them.
        ending: ``missing`` if the service did not say how the answer ended; else ``None``.
        error: The exception that the model raised instead of answering; a journal keeps its
            ``reason`` only.
    """

    text: str
    outcome: Outcome | None = None
    reason: str | None = None
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    seconds: float = 0.0
    choices: list[dict[str, float]] | None = None
    tokens_written: int | None = None
    served: str | None = None
    dropped: tuple[str, ...] = ()
    ending: str | None = None
    error: Exception | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        """Says how long it is; never what it says, which may quote the dialogue."""
        outcome = f", {self.outcome}" if self.outcome else ""
        return f"<Answer of {len(self.text):,} characters{outcome}>"


#: Longest answer that is kept, in characters: ten times the longest reasoning of today's models.
LONGEST_ANSWER: Final = 2_000_000


def bounded(answer: Answer) -> Answer:
    """Cuts an answer that no model gives; without this, a service could fill the disk.

    Of more than :data:`LONGEST_ANSWER` characters it keeps the beginning, unparsed unless the
    engine knew better, with the length as the reason.
    """
    if len(answer.text) <= LONGEST_ANSWER:
        return answer
    reason = answer.reason or f"cut, it has {len(answer.text):,} characters"
    outcome = answer.outcome or Outcome.UNPARSED
    return replace(answer, text=answer.text[:LONGEST_ANSWER], outcome=outcome, reason=reason)


# What an answer took, under the same names in a prediction.
_TAKEN: Final = tuple(f.name for f in fields(Answer) if f.name not in ("text", "outcome", "reason"))


@dataclass(frozen=True, slots=True)
class Prediction:
    """An answer in its place: one line of a journal.

    Attributes:
        dialogue: Id of the dialogue.
        turn: ``turn_id`` of the user turn.
        key: :attr:`Prompt.key` of the question.
        answer: The model's raw text.
        mask: Its labels; 0 unless the outcome is ``ok``.
        outcome: What became of the question.
        reason: Why the outcome is not ``ok``, where known.

    All that follows is as in :class:`Answer`.
    """

    dialogue: str
    turn: int
    key: str
    answer: str
    mask: int
    outcome: Outcome
    reason: str | None = None
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    seconds: float = 0.0
    choices: list[dict[str, float]] | None = None
    tokens_written: int | None = None
    served: str | None = None
    dropped: tuple[str, ...] = ()
    ending: str | None = None
    error: Exception | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls, prompt: Prompt, answer: Answer, outcome: Outcome, mask: int, reason: str | None
    ) -> Prediction:
        """Puts an answer, and what it took, in its place."""
        own = (prompt.dialogue, prompt.turn, prompt.key, answer.text, mask, outcome, reason)
        return cls(*own, **{name: getattr(answer, name) for name in _TAKEN})

    def __repr__(self) -> str:
        """Says what was tagged where; never the answer, which may quote the dialogue."""
        place = f"{self.dialogue}, turn {self.turn}"
        return f"<Prediction {place}: {self.outcome}, {format_mask(self.mask)}>"


class Session:
    """Leads one model through one dialogue.

    Args:
        dialogue: The dialogue.
        template: A template with the slots ``history`` and ``current_turn``.
        history: Whose tags the history shows: the model's own (``self``, the paper's
            protocol; what is not ``ok`` shows as ``none``), the ``gold`` ones, or no
            tag lines at all (``none``).
        stored: Predictions made before. Wherever the next prompt is word for word the
            one that a stored prediction answers, it is taken and not asked again; after
            the first difference the prompts that follow differ as well, because each
            holds the history before it.

    Attributes:
        prompt: The next question; ``None`` when the dialogue is finished.
        remaining: User turns that are not answered yet, the one that it asks about included.
        taken: The stored predictions that were taken.
    """

    def __init__(
        self,
        dialogue: Dialogue,
        template: Template,
        history: History = "self",
        stored: Iterable[Prediction] = (),
    ) -> None:
        self.dialogue = dialogue
        self.remaining = len(dialogue.user_turns)
        self.taken: list[Prediction] = []
        self._questions = self._ask(template, history, {one.key: one for one in stored})
        self.prompt: Prompt | None = next(self._questions, None)

    def answer(self, answer: Answer) -> Prediction:
        """Takes the answer to :attr:`prompt` and moves on.

        Args:
            answer: What the engine brought back.

        Returns:
            The prediction, with its labels read.

        Raises:
            RuntimeError: If the dialogue is finished: nothing was asked.
        """
        prompt = self.prompt
        if prompt is None:
            raise RuntimeError(f"dialogue {self.dialogue.id} is finished: nothing was asked")
        answer = bounded(answer)
        outcome, mask = (answer.outcome, 0) if answer.outcome else read_answer(answer.text)
        prediction = Prediction.of(prompt, answer, outcome, mask, answer.reason)
        self.prompt = None
        with suppress(StopIteration):
            self.prompt = self._questions.send(prediction)
        return prediction

    def _ask(
        self, template: Template, history: History, stored: Mapping[str, Prediction]
    ) -> Generator[Prompt, Prediction, None]:
        """Reads the dialogue, and asks about each user turn without a stored prediction."""
        lines: list[str] = []
        tagged = 0
        ends: tuple[int, ...] = ()
        for turn in self.dialogue.turns:
            if turn.continues:
                continue
            current = harmless(self.dialogue.utterance(turn))
            said = f"{turn.speaker}: {current}"
            if not turn.asked:
                lines.append(said)
                continue
            before = "\n".join(lines)
            # A template may show the current turn first; then nothing after it stays in place.
            if before and template.slots[0] == "history":
                ends += (template.static + len(before),)
            prompt = Prompt(
                dialogue=self.dialogue.id,
                turn=turn.turn_id,
                text=template.fill(history=before, current_turn=said),
                static=template.static,
                current=current,
                tagged=tagged,
                ends=ends,
                history=before,
            )
            prediction = stored.get(prompt.key)
            if prediction is None:
                prediction = yield prompt
            else:
                self.taken.append(prediction)
            self.remaining -= 1
            lines.append(said)
            if history != "none":
                shown = turn.mask if history == "gold" else prediction.mask
                tagged |= shown
                lines.append(f"{TAG}: {format_mask(shown)}")


def gold_questions(
    dialogue: Dialogue, template: Template, history: History = "self"
) -> Iterator[tuple[Prompt, int]]:
    """Asks all questions of a dialogue as they are asked when each answer is gold.

    Yields for each user turn the question, and the mask of its gold labels.
    """
    session = Session(dialogue, template, history)
    for turn in dialogue.user_turns:
        if session.prompt is None:
            return
        yield session.prompt, turn.mask
        session.answer(Answer(format_mask(turn.mask)))
