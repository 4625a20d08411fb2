"""A dialogue in a wave: its session, and how far it is with its question."""

from __future__ import annotations

from dataclasses import dataclass, field

from cradle_lib.detection.engines.constrained import Walk
from cradle_lib.detection.engines.draft import Drafts
from cradle_lib.detection.engines.prefix import common
from cradle_lib.detection.session import Session


@dataclass
class Lane:
    """One dialogue of the wave.

    Attributes:
        session: Its session.
        target: Token ids to be computed: the prompt after the shared prefix, then the answer.
        asked: How many of them are the prompt.
        cached: Token ids whose keys and values are in the slot.
        reused: Prompt tokens that were cached when the question came.
        answer: Ids of the answer so far.
        seconds: Time of the forward passes, by this dialogue's share of their tokens.
        walk: Where in the grammar the answer is, if decoding is constrained.
        drafts: Guesses how its answers go on.
    """

    session: Session
    drafts: Drafts
    target: list[int] = field(default_factory=list)
    asked: int = 0
    cached: list[int] = field(default_factory=list)
    reused: int = 0
    answer: list[int] = field(default_factory=list)
    seconds: float = 0.0
    walk: Walk | None = None

    def start(self, own: list[int], shared: int, walk: Walk | None) -> None:
        """Begins with the session's question, and rolls back what is cached of another text.

        Args:
            own: The question's token ids after the shared prefix.
            shared: Tokens of the prefix.
            walk: The beginning of the grammar, if decoding is constrained.
        """
        self.answer, self.seconds, self.walk = [], 0.0, walk
        self.target, self.asked = own, len(own)
        # The last token is always computed: its logits are the first of the answer.
        keep = min(common(self.cached, own), self.asked - 1)
        del self.cached[keep:]
        self.reused = shared + keep
