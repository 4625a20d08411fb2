"""The state of one dialogue in a wave: its session, and how far its question is computed."""

from __future__ import annotations

from dataclasses import dataclass, field

from cradle_lib.detection.engine import Questions
from cradle_lib.detection.local.constrained import GrammarState
from cradle_lib.detection.local.sampling import Sampler
from cradle_lib.detection.local.wave.prefix import common


@dataclass
class SequenceState:
    """One dialogue of the wave.

    Attributes:
        session: Its session.
        target: Token ids to be computed: the prompt after the shared prefix, then the answer.
        asked: How many of them are the prompt.
        cached: Token ids whose keys and values are stored.
        reused: Tokens of the prompt that were cached when the question came, prefix included.
        answer: Ids of the answer so far.
        seconds: Time of the forward passes, divided among dialogues by their tokens.
        grammar: State of the answer in the grammar, if decoding is constrained.
        sampler: What draws the answer's tokens, if the temperature is above 0.
    """

    session: Questions
    target: list[int] = field(default_factory=list)
    asked: int = 0
    cached: list[int] = field(default_factory=list)
    reused: int = 0
    answer: list[int] = field(default_factory=list)
    seconds: float = 0.0
    grammar: GrammarState | None = None
    sampler: Sampler | None = None

    def start(
        self,
        own: list[int],
        shared: int,
        grammar: GrammarState | None,
        sampler: Sampler | None,
    ) -> None:
        """Begins with the session's question, and drops cached tokens that differ from it.

        Args:
            own: The question's token ids after the shared prefix.
            shared: Tokens of the prefix.
            grammar: The initial state of the grammar, if decoding is constrained.
            sampler: What draws the answer's tokens, if the temperature is above 0.
        """
        self.answer, self.seconds, self.grammar, self.sampler = [], 0.0, grammar, sampler
        self.target, self.asked = own, len(own)
        # The last token is always computed: its logits are the first of the answer.
        keep = min(common(self.cached, own), self.asked - 1)
        del self.cached[keep:]
        self.reused = shared + keep
