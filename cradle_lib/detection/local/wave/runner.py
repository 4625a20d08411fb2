"""One wave: the loop of forward passes in which many dialogues advance together.

The token ids of a prompt are compared with those that are cached, and everything after the first
difference is computed again. Nothing about the template is assumed.

In every forward pass each dialogue takes part with the tokens that it needs next, a piece of a
prompt or the last tokens of an answer, in one row without padding. A finished dialogue is replaced
immediately. Generation ends early after a line that can't be read: the answer is unparsed then.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import torch

from cradle_lib.detection.engine import Emit, Questions
from cradle_lib.detection.local.constrained import Grammar, GrammarState
from cradle_lib.detection.local.generation import draw, sampling_seed
from cradle_lib.detection.local.local_engine import Local, shared_length
from cradle_lib.detection.local.wave.attention import BatchLayout, KeyValueStore, Piece, sharing
from cradle_lib.detection.model import Model
from cradle_lib.detection.session import Prompt
from cradle_lib.errors import EngineError

# New tokens of one forward pass: enough to keep matrix products busy, few enough that
# answers do not wait long behind another dialogue's prompt.
BUDGET: Final = 1024
# Ways to go on after the static text; a tokenizer may merge its end with any of them.
_PROBES: Final = ("~", "0", "\n")


@dataclass
class SequenceState:
    """One dialogue of the wave: its session, and how far its question is computed.

    Attributes:
        session: Its session.
        slot: Where its keys and values are stored.
        target: Token ids to be computed: the prompt after the shared prefix, then the answer.
        asked: How many of them are the prompt.
        cached: Token ids whose keys and values are stored.
        reused: Tokens of the prompt that were cached when the question came, prefix included.
        answer: Ids of the answer so far.
        seconds: Time of the forward passes, divided among dialogues by their tokens.
        grammar: State of the answer in the grammar, if decoding is constrained.
        chance: Source of the answer's draws, if the temperature is above 0.
    """

    session: Questions
    slot: int
    target: list[int] = field(default_factory=list)
    asked: int = 0
    cached: list[int] = field(default_factory=list)
    reused: int = 0
    answer: list[int] = field(default_factory=list)
    seconds: float = 0.0
    grammar: GrammarState | None = None
    chance: torch.Generator | None = None


class Runner:
    """One wave at one size, from the first forward pass to the last."""

    def __init__(
        self, model: Model, local: Local, size: int, waiting: deque[Questions], emit: Emit
    ) -> None:
        self._model, self._local, self._waiting, self._emit = model, local, waiting, emit
        self._size, self._free = size, list(range(size))
        self._sequences: list[SequenceState] = []
        self._store = KeyValueStore(size)
        self._grammar: Grammar | None = None
        if local.decoding.mode == "constrained":
            local.chat.require_no_open_thought(f"{model.name}: `mode: constrained`")
            self._grammar = Grammar(local.tokenizer, local.ends, local.decoding.none_bias or 0.0)
        grammar = self._grammar
        self._longest = grammar.longest if grammar is not None else local.decoding.max_new_tokens
        self._prefix = self._shared_prefix(waiting[0].prompt)

    def run(self) -> None:
        """Answers until nobody waits and no dialogue is unfinished.

        If it is broken off, unfinished dialogues wait again.

        Raises:
            UnsupportedAttentionError: If the model's attention can't be shared; nothing has been
                answered then.
        """
        try:
            with sharing(self._local.lm, self._store):
                self._compute_prefix()
                while self._waiting or self._sequences:
                    if self._waiting and self._free:
                        self._admit()
                    else:
                        self._step()
                    self._retire()
        finally:
            self._waiting.extendleft(sequence.session for sequence in reversed(self._sequences))

    def _shared_prefix(self, prompt: Prompt | None) -> list[int]:
        """Finds the tokens that every prompt of a run starts with, from any of the prompts.

        They are the tokens that its encoding shares with encodings in which the static text goes on
        in other ways. There are none if the static text alone is too long for the model's context.
        """
        if prompt is None:
            return []
        static = prompt.text[: prompt.static]
        probes = (replace(prompt, text=static + probe) for probe in _PROBES)
        encoded, *others = self._local.ids([prompt, *probes])
        shared = encoded[: min(shared_length(encoded, other) for other in others)]
        return shared if self._local.too_long(len(shared), self._longest) is None else []

    def _compute_prefix(self) -> None:
        for start in range(0, len(self._prefix), BUDGET):
            piece = self._prefix[start : start + BUDGET]
            self._forward([Piece(0, start, len(piece))], piece, [])
        self._store.freeze_prefix(len(self._prefix), self._local.lm)

    def _admit(self) -> None:
        """Fills free slots with waiting dialogues."""
        new = []
        while self._waiting and self._free:
            new.append(SequenceState(self._waiting.popleft(), self._free.pop()))
        self._sequences += new
        self._ask(new)

    def _retire(self) -> None:
        """Takes out dialogues that are finished, and frees their slots."""
        self._free += [s.slot for s in self._sequences if s.session.prompt is None]
        self._sequences = [s for s in self._sequences if s.session.prompt is not None]

    def _ask(self, sequences: Sequence[SequenceState]) -> None:
        """Starts the dialogues' next questions; those that are too long fail here."""
        # Together, because tokenizers take several texts to several cores.
        while asked := [(s, p) for s in sequences if (p := s.session.prompt) is not None]:
            encoded = self._local.ids([prompt for _, prompt in asked])
            sequences = []
            for (sequence, prompt), ids in zip(asked, encoded, strict=True):
                if (failed := self._local.too_long(len(ids), self._longest)) is not None:
                    self._emit(sequence.session.answer(failed))
                    sequences.append(sequence)
                else:
                    self._start(sequence, prompt, ids)

    def _start(self, sequence: SequenceState, prompt: Prompt, ids: list[int]) -> None:
        """Begins with a dialogue's question, and drops cached tokens that differ from it."""
        shared = len(self._prefix)
        if ids[:shared] != self._prefix:
            raise EngineError(
                f"{self._model.name}: a prompt of {prompt.dialogue} does not start with the "
                "tokens of the static part. Run this model with the reference engine."
            )
        if self._grammar is not None:
            sequence.grammar = GrammarState(self._grammar)
        if self._local.sampled:
            seed = sampling_seed(self._local.decoding.seed, prompt)
            sequence.chance = torch.Generator().manual_seed(seed)
        sequence.answer, sequence.seconds = [], 0.0
        sequence.target, sequence.asked = ids[shared:], len(ids) - shared
        # The last token is always computed: its logits are the first of the answer.
        keep = min(shared_length(sequence.cached, sequence.target), sequence.asked - 1)
        del sequence.cached[keep:]
        sequence.reused = shared + keep

    def _step(self) -> None:
        """Computes new tokens of the dialogues in one pass, and goes on with their answers."""
        pieces: list[Piece] = []
        ids: list[int] = []
        taking: list[SequenceState] = []
        answering: list[SequenceState] = []
        last: list[int] = []
        budget = max(BUDGET, len(self._sequences))
        # Answers go on; the rest of the budget goes to dialogues with most turns to come first,
        # so that none is left to run alone at the end.
        for sequence in sorted(self._sequences, key=lambda s: (not s.answer, -s.session.remaining)):
            start = len(sequence.cached)
            new = sequence.target[start : start + budget]
            if not new:
                continue
            budget -= len(new)
            pieces.append(Piece(sequence.slot, start, len(new)))
            taking.append(sequence)
            ids += new
            if start + len(new) == len(sequence.target):
                answering.append(sequence)
                last.append(len(ids) - 1)
        began = time.perf_counter()
        logits = self._forward(pieces, ids, last)
        if self._grammar is None and self._local.decoding.none_bias:
            logits[:, self._local.none_token] += self._local.decoding.none_bias
        likeliest = logits.argmax(-1).tolist()
        passed = time.perf_counter() - began
        for sequence, piece in zip(taking, pieces, strict=True):
            sequence.cached += sequence.target[piece.start : piece.end]
            sequence.seconds += passed * piece.tokens / len(ids)
        written = zip(answering, logits, likeliest, strict=True)
        self._ask([sequence for sequence, *said in written if self._take(sequence, *said)])

    def _forward(
        self, pieces: Sequence[Piece], ids: Sequence[int], keep: Sequence[int]
    ) -> torch.Tensor:
        """Computes the tokens of pieces; gives the logits after the tokens at some indices."""
        device = self._local.device
        layout = BatchLayout(pieces, device)
        self._store.begin(layout)
        output = self._local.lm(
            input_ids=torch.tensor([ids], device=device),
            position_ids=(layout.place + self._store.prefix_length).unsqueeze(0),
            use_cache=False,
            logits_to_keep=torch.tensor(keep, dtype=torch.long, device=device),
        )
        logits: torch.Tensor = output.logits[0].float()
        return logits

    def _take(self, sequence: SequenceState, logits: torch.Tensor, likeliest: int) -> bool:
        """Adds a token to an answer, or several of the grammar, and emits it if it is complete.

        Args:
            sequence: The dialogue.
            logits: Of the next token. Shape (vocabulary,).
            likeliest: The token with the largest logit.

        Returns:
            Whether the answer is complete.
        """
        local, grammar = self._local, sequence.grammar
        if grammar is not None:
            # The grammar bounds the answer; a limit would cut it where it does not parse.
            sequence.answer += grammar.choose(logits)
            complete = ended = grammar.finished
        else:
            token = likeliest
            if sequence.chance is not None:
                token = draw(logits, local.settings["temperature"], sequence.chance)
            sequence.answer.append(token)
            ended = token in local.ends
            complete = ended or len(sequence.answer) == local.decoding.max_new_tokens
        answer = None
        # An answer is also complete as soon as it can no longer be read; a grammar's always can.
        if complete or (grammar is None and not local.reads_on):
            answer = local.answer(
                sequence.answer,
                ended=ended,
                tokens_in=len(self._prefix) + sequence.asked,
                tokens_cached=sequence.reused,
            )
        if answer is None or (not complete and answer.reason is not None):
            sequence.target = sequence.target[: sequence.asked] + sequence.answer
            return False
        choices = grammar.choices if grammar is not None else None
        answer = replace(answer, seconds=round(sequence.seconds, 4), choices=choices)
        self._emit(sequence.session.answer(answer))
        return True
