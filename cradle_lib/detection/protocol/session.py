"""The turn-by-turn protocol: a session asks one model about one dialogue.

At every user turn the model sees the instruction, the dialogue up to that turn with
its own earlier predictions, and the current turn, and answers with the labels of the current
turn only (paper, Sec 4.3 and Appendix C.2). A session builds each question and records its
answer; engines do not depend on the protocol.

:mod:`.neutralise` prevents the text of a turn from acting as a part of the prompt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Annotated, ClassVar, Final

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from cradle_lib.corpus import Dialogue
from cradle_lib.corpus.dialogue import valid_unicode
from cradle_lib.detection.protocol.neutralise import neutralise as neutralised
from cradle_lib.detection.protocol.parsing import Outcome, read_answer
from cradle_lib.errors import CorpusError
from cradle_lib.labels import format_mask
from cradle_lib.prompts import Template
from cradle_lib.record import History
from cradle_lib.validation import faults

TAG: Final = "MODEL_TAG"
#: Branch in :attr:`Metadata.choices` that ends the answer.
END: Final = "<end>"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question to a model.

    Attributes:
        dialogue: Id of the dialogue.
        turn: ``turn_id`` of the user turn that is asked about.
        text: The whole user message.
        static: ``text[:static]`` is the same in every prompt of a run.
        current: Text of this turn as the prompt shows it, without the speaker.
        tagged: Mask of all tags that the history shows.
        history: The dialogue before this turn, as the prompt shows it: one line per turn and,
            after a user's turn, one with its tags.
        ends: Offsets in ``text`` at which the history ended in each question of the dialogue so
            far, this one last. All later questions start with the text before each offset.
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
        """Identifies the question, without any text of the dialogue."""
        return f"<Prompt {self.dialogue}, turn {self.turn}: {len(self.text):,} characters>"

    @property
    def blocks(self) -> list[str]:
        """The text in pieces for prompt caching: static part, additions to the history, and rest.

        Joined, they give the text. All pieces but the last recur at the same offset in later
        questions, and none is blank.
        """
        pieces = [""]
        for start, end in pairwise((0, self.static, *self.ends, len(self.text))):
            pieces[-1] += self.text[start:end]
            if pieces[-1].strip():
                pieces.append("")
        # A blank rest is joined to the piece before it.
        rest = pieces.pop()
        pieces[-1:] = ["".join([*pieces[-1:], rest])]
        return pieces

    @property
    def messages(self) -> list[dict[str, str]]:
        """The chat messages that every engine sends: the paper's single user message."""
        return [{"role": "user", "content": self.text}]

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits of the text's SHA-256, which identify an answer's question."""
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """Metadata of an answer, as far as the engine reports them.

    Attributes:
        tokens_in: All tokens of the prompt, cached or not; ``None`` if unknown.
        tokens_cached: Tokens of the prompt that were read from a cache and not computed again.
        tokens_written: Tokens of the prompt that were written to a cache; ``None`` if not reported.
        tokens_out: Tokens of the answer, reasoning included.
        seconds: Time that the answer took.
        choices: For constrained decoding, the log-probability of each branch at each branching
            point of the answer; ``None`` for unconstrained answers.
        served: The model's name, provider and fingerprint, as a service reports them.
        limited_by: Name of the parameter for the limit of the answer's length, if the service
            refused the usual one.
        ending: ``missing`` if the service did not say how the answer ended; ``cut`` if it ended at
            the token limit; else ``None``.
        error: The exception that the model raised instead of answering; a journal keeps only the
            ``reason``.
    """

    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    seconds: float = 0.0
    choices: list[dict[str, float]] | None = None
    tokens_written: int | None = None
    served: str | None = None
    limited_by: str | None = None
    ending: str | None = None
    error: Exception | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Answer(Metadata):
    """The answer that an engine gives to one question.

    Attributes:
        text: The model's raw text, or an empty text.
        outcome: ``None`` to parse the text; set by an engine that knows that there is no usable
            answer.
        reason: Why the outcome is not ``ok``.
    """

    text: str
    outcome: Outcome | None = None
    reason: str | None = None

    def __repr__(self) -> str:
        """Shows the length and not the text, which may quote the dialogue."""
        outcome = f", {self.outcome}" if self.outcome else ""
        return f"<Answer of {len(self.text):,} characters{outcome}>"


@dataclass(frozen=True, slots=True)
class Prediction(Metadata):
    """The answer to one user turn with its labels: one line of a journal.

    Attributes:
        dialogue: Id of the dialogue.
        turn: ``turn_id`` of the user turn.
        key: :attr:`Prompt.key` of the question.
        answer: The model's raw text.
        mask: Its labels; 0 unless the outcome is ``ok``.
        outcome: Outcome of the question.
        reason: Why the outcome is not ``ok``, where known.
    """

    # A journal's line has these fields and no others.
    __pydantic_config__: ClassVar = ConfigDict(
        extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False
    )

    dialogue: str
    turn: Annotated[int, Field(ge=0)]
    key: str
    answer: str
    mask: int
    outcome: Outcome
    reason: str | None = None

    @classmethod
    def of(cls, prompt: Prompt, answer: Answer) -> Prediction:
        """Makes the prediction of a question; parses the answer, unless its outcome is set.

        It is ``failed`` if what the engine says about its answer can't be written as JSON, such as
        a NaN, and ``unparsed`` if its text is not text, such as the ``None`` of a service. Numbers
        of tokens that are not whole, or negative, count as not reported.
        """
        answer = _storable(answer)
        metadata = {f.name: getattr(answer, f.name) for f in fields(Metadata)}
        if answer.outcome is None:
            outcome, mask = read_answer(answer.text)
        else:
            outcome, mask = Outcome(answer.outcome), 0
        own = (prompt.dialogue, prompt.turn, prompt.key, answer.text, mask, outcome, answer.reason)
        return cls(*own, **metadata)

    def __repr__(self) -> str:
        """Shows the turn and the labels, and not the answer, which may quote the dialogue."""
        place = f"{self.dialogue}, turn {self.turn}"
        return f"<Prediction {place}: {self.outcome}, {format_mask(self.mask)}>"


#: Checks the fields of a journal's line.
PREDICTION: Final = TypeAdapter(Prediction)
_COUNTS: Final = ("tokens_in", "tokens_cached", "tokens_written", "tokens_out")


def _storable(answer: Answer) -> Answer:
    """Makes an engine's answer one that a journal can have, whatever types its fields have."""
    text: object = answer.text
    if not isinstance(text, str):
        problem = f"the answer is {type(text).__name__}, expected text"
        outcome = answer.outcome or Outcome.UNPARSED
        answer = replace(answer, text="", outcome=outcome, reason=answer.reason or problem)
    for name in _COUNTS:
        count = getattr(answer, name)
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            answer = replace(answer, **{name: None})  # type: ignore[arg-type]
    names = {f.name for f in fields(Answer)} - {"error", "text"}
    line = {name: getattr(answer, name) for name in names} | {"answer": answer.text, "mask": 0}
    line |= {"dialogue": "", "turn": 0, "key": "", "outcome": answer.outcome or Outcome.OK}
    try:
        PREDICTION.validate_python(json.loads(json.dumps(line, allow_nan=False)))
    except (TypeError, ValueError) as error:
        problem = faults(error, Prediction) if isinstance(error, ValidationError) else str(error)
        reason = f"what the engine says about its answer can't be stored: {problem}"
        return Answer(answer.text, Outcome.FAILED, reason, error=error)
    return answer


class Session:
    """Asks one model about one dialogue, turn by turn.

    Args:
        dialogue: The dialogue.
        template: A template with the slots ``history`` and ``current_turn``.
        history: Tags that the history shows: the model's own (``self``, the paper's protocol;
            unusable answers show as ``none``), the ``gold`` labels, or no tag lines (``none``).
        stored: Earlier predictions, which are reused for identical prompts. After the first prompt
            that differs all later ones differ, too, because each contains the history before it.
        neutralise: Whether turns are neutralised. If not, they keep their line breaks, and a turn
            can imitate a part of the prompt.

    Raises:
        CorpusError: If the history should show gold labels and the dialogue has none.

    Attributes:
        prompt: The next question; ``None`` when the dialogue is finished.
        remaining: Number of unanswered user turns, including that of ``prompt``.
        taken: The stored predictions that were reused.
    """

    def __init__(
        self,
        dialogue: Dialogue,
        template: Template,
        history: History = "self",
        stored: Iterable[Prediction] = (),
        *,
        neutralise: bool = True,
    ) -> None:
        if history == "gold" and not dialogue.labelled:
            problem = f"{dialogue.id} has no gold labels, which the history would show"
            raise CorpusError(problem, hint="Leave out history=gold, or label the dialogues first.")
        self.dialogue = dialogue
        self.remaining = len(dialogue.user_turns)
        self.taken: list[Prediction] = []
        self._shown = neutralised if neutralise else valid_unicode
        self._questions = self._ask(template, history, {one.key: one for one in stored})
        self.prompt: Prompt | None = next(self._questions, None)

    def answer(self, answer: Answer) -> Prediction:
        """Records the answer to :attr:`prompt` and advances to the next question.

        Args:
            answer: The engine's answer.

        Returns:
            The prediction, with the parsed labels.

        Raises:
            RuntimeError: If the dialogue is finished, so that there was no question.
        """
        prompt = self.prompt
        if prompt is None:
            raise RuntimeError(f"dialogue {self.dialogue.id} is finished: nothing was asked")
        if answer.outcome == Outcome.OK:
            # Only the text says which labels it has.
            answer = replace(answer, outcome=None)
        prediction = Prediction.of(prompt, answer)
        self.prompt = None
        with suppress(StopIteration):
            self.prompt = self._questions.send(prediction)
        return prediction

    def _ask(
        self, template: Template, history: History, stored: Mapping[str, Prediction]
    ) -> Generator[Prompt, Prediction, None]:
        """Yields the prompt of each user turn without a stored prediction."""
        lines: list[str] = []
        tagged = 0
        ends: tuple[int, ...] = ()
        for turn in self.dialogue.turns:
            if turn.continues:
                continue
            current = self._shown(self.dialogue.utterance(turn))
            line = f"{turn.speaker}: {current}"
            if not turn.asked:
                lines.append(line)
                continue
            before = "\n".join(lines)
            # If a template shows the current turn first, the history has no fixed offset.
            if before and template.slots[0] == "history":
                ends += (template.static + len(before),)
            prompt = Prompt(
                dialogue=self.dialogue.id,
                turn=turn.turn_id,
                text=template.fill(history=before, current_turn=line),
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
            lines.append(line)
            if history != "none":
                shown = turn.mask if history == "gold" else prediction.mask
                tagged |= shown
                lines.append(f"{TAG}: {format_mask(shown)}")


def gold_questions(dialogue: Dialogue, template: Template) -> Iterator[tuple[Prompt, int]]:
    """Yields the question of each user turn, with gold labels in the history, and its gold mask."""
    session = Session(dialogue, template)
    for turn in dialogue.user_turns:
        if session.prompt is None:
            return
        yield session.prompt, turn.mask
        session.answer(Answer(format_mask(turn.mask)))
