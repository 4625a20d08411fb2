"""The loop of forward passes of the wave engine, each with tokens of many dialogues.

The token ids of a prompt are compared with the cached ones, and everything after the first
difference is computed again. Nothing about the template is assumed.

A forward pass contains the next tokens of each dialogue (a piece of a prompt, or the last tokens of
an answer), in one row without padding. A finished dialogue is replaced immediately. Generation
stops early after a line that can't be read, because the answer is unparsed then.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import torch

from cradle_engines.local.constrained import Grammar, GrammarState
from cradle_engines.local.generation import draw, sampling_seed
from cradle_engines.local.local_engine import Local, shared_length
from cradle_engines.local.wave.attention import (
    BatchLayout,
    KeyValueStore,
    Piece,
    forward,
    sharing,
)
from cradle_lib.detection.models.engine import Emit, Questions, failure
from cradle_lib.detection.protocol.session import Prompt
from cradle_lib.errors import EngineError

# Token budget of one forward pass: large enough for efficient matrix products, small enough that
# answers do not wait long for another dialogue's prompt.
BUDGET: Final = 1024
# Different continuations of the static text: a tokenizer may merge its end with what follows.
_PROBES: Final = ("~", "0", "\n")


@dataclass
class SequenceState:
    """State of one dialogue: its session, and the progress of its current question.

    Attributes:
        session: Its session.
        slot: Its slot in the store of keys and values.
        target: Token ids to be computed: the prompt after the shared prefix, then the answer.
        prompt_length: Number of tokens in ``target`` that belong to the prompt.
        cached: Token ids whose keys and values are stored.
        reused: Number of tokens of the prompt that were already cached, including the prefix.
        answer: Ids of the answer so far.
        seconds: Time of the forward passes, divided among dialogues by their tokens.
        grammar: State of the answer in the grammar, if decoding is constrained.
        generator: Random number generator of the answer, if the temperature is above 0.
    """

    session: Questions
    slot: int
    target: list[int] = field(default_factory=list)
    prompt_length: int = 0
    cached: list[int] = field(default_factory=list)
    reused: int = 0
    answer: list[int] = field(default_factory=list)
    seconds: float = 0.0
    grammar: GrammarState | None = None
    generator: torch.Generator | None = None


class Runner:
    """Runs the forward passes for one batch size."""

    def __init__(self, local: Local, size: int, waiting: deque[Questions], emit: Emit) -> None:
        self._local, self._waiting, self._emit = local, waiting, emit
        self._size, self._free = size, list(range(size))
        self._sequences: list[SequenceState] = []
        self._store = KeyValueStore(size)
        self._grammar: Grammar | None = None
        if local.decoding.mode == "constrained":
            local.chat.require_no_open_thought(f"{local.name}: `mode: constrained`")
            self._grammar = Grammar(local.tokenizer, local.ends, local.decoding.none_bias or 0.0)
        grammar = self._grammar
        self._longest = grammar.longest if grammar is not None else local.decoding.max_new_tokens
        self._prefix = self._shared_prefix(waiting[0].prompt)

    def run(self) -> None:
        """Answers all questions of the waiting dialogues.

        After an exception, unfinished dialogues are waiting again.
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
        """Finds the tokens that all prompts of a run start with, given any of the prompts.

        They are the tokens that its encoding shares with those of other continuations of the static
        text. The list is empty if the static text alone is too long for the model's context.
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
        """Removes finished dialogues, and frees their slots."""
        self._free += [s.slot for s in self._sequences if s.session.prompt is None]
        self._sequences = [s for s in self._sequences if s.session.prompt is not None]

    def _ask(self, sequences: Sequence[SequenceState]) -> None:
        """Starts the dialogues' next questions; questions that are too long fail here."""
        # Encoded together, because tokenizers process several texts in parallel.
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
        """Starts a dialogue's question, and drops the cached tokens after the first difference."""
        shared = len(self._prefix)
        if ids[:shared] != self._prefix:
            raise EngineError(
                f"{self._local.name}: a prompt of {prompt.dialogue} does not start with the "
                "tokens of the static part. Run this model with the reference engine."
            )
        if self._grammar is not None:
            sequence.grammar = GrammarState(self._grammar)
        if self._local.sampled:
            seed = sampling_seed(self._local.decoding.seed, prompt)
            sequence.generator = torch.Generator().manual_seed(seed)
        sequence.answer, sequence.seconds = [], 0.0
        sequence.target, sequence.prompt_length = ids[shared:], len(ids) - shared
        # The last token is always computed, because its logits give the answer's first token.
        keep = min(shared_length(sequence.cached, sequence.target), sequence.prompt_length - 1)
        del sequence.cached[keep:]
        sequence.reused = shared + keep

    def _step(self) -> None:
        """Runs one forward pass, and extends the answers of the dialogues that are computed."""
        pieces: list[Piece] = []
        ids: list[int] = []
        computed: list[SequenceState] = []
        answering: list[SequenceState] = []
        last: list[int] = []
        budget = max(BUDGET, len(self._sequences))
        # Answers come first, then the dialogues with the most remaining turns, so that no long
        # dialogue runs alone at the end.
        for sequence in sorted(self._sequences, key=lambda s: (not s.answer, -s.session.remaining)):
            start = len(sequence.cached)
            new = sequence.target[start : start + budget]
            if not new:
                continue
            budget -= len(new)
            pieces.append(Piece(sequence.slot, start, len(new)))
            computed.append(sequence)
            ids += new
            if start + len(new) == len(sequence.target):
                answering.append(sequence)
                last.append(len(ids) - 1)
        began = time.perf_counter()
        logits = self._forward(pieces, ids, last)
        if self._grammar is None and self._local.decoding.none_bias:
            logits[:, self._local.none_token] += self._local.decoding.none_bias
        likeliest, finite = logits.argmax(-1).tolist(), logits.isfinite().all(-1).tolist()
        passed = time.perf_counter() - began
        for sequence, piece in zip(computed, pieces, strict=True):
            sequence.cached += sequence.target[piece.start : piece.end]
            sequence.seconds += passed * piece.tokens / len(ids)
        answered = [
            sequence
            for sequence, row, token, usable in zip(
                answering, logits, likeliest, finite, strict=True
            )
            if (self._extend(sequence, row, token) if usable else self._fail(sequence))
        ]
        self._ask(answered)

    def _forward(
        self, pieces: Sequence[Piece], ids: Sequence[int], keep: Sequence[int]
    ) -> torch.Tensor:
        """Computes the tokens of pieces; gives the logits after the tokens at indices ``keep``."""
        layout = BatchLayout(pieces, self._local.device)
        return forward(self._local.lm, self._store, layout, ids, keep)

    def _fail(self, sequence: SequenceState) -> bool:
        """Fails a question whose logits are not finite, and clears its keys and values.

        Returns:
            ``True``: the question is answered.
        """
        # Masks do not hide NaN, so that it must not stay in a slot.
        self._store.clear(sequence.slot)
        sequence.cached.clear()
        failed = failure(self._local.not_finite("logits"))
        tokens_in = len(self._prefix) + sequence.prompt_length
        seconds = round(sequence.seconds, 4)
        self._emit(sequence.session.answer(replace(failed, tokens_in=tokens_in, seconds=seconds)))
        return True

    def _extend(self, sequence: SequenceState, logits: torch.Tensor, likeliest: int) -> bool:
        """Adds the next token to an answer, or several of the grammar; emits a complete answer.

        Args:
            sequence: The dialogue.
            logits: Logits of the next token. Shape (vocabulary,).
            likeliest: The token with the largest logit.

        Returns:
            Whether the answer is complete.
        """
        local, grammar = self._local, sequence.grammar
        if grammar is not None:
            # The grammar limits the length; any other limit could make the answer unparsed.
            sequence.answer += grammar.choose(logits)
            complete = ended = grammar.finished
        else:
            token = likeliest
            if sequence.generator is not None:
                token = draw(logits, local.settings["temperature"], sequence.generator)
            sequence.answer.append(token)
            ended = token in local.ends
            complete = ended or len(sequence.answer) == local.decoding.max_new_tokens
        answer = None
        # An answer also ends as soon as it can't become readable, except with a grammar.
        if complete or (grammar is None and not local.may_become_readable):
            answer = local.answer(
                sequence.answer,
                ended=ended,
                tokens_in=len(self._prefix) + sequence.prompt_length,
                tokens_cached=sequence.reused,
            )
        # A reason means that the cut answer could still become readable.
        if answer is None or (not complete and answer.reason is not None):
            sequence.target = sequence.target[: sequence.prompt_length] + sequence.answer
            return False
        choices = grammar.choices if grammar is not None else None
        answer = replace(answer, seconds=round(sequence.seconds, 4), choices=choices)
        self._emit(sequence.session.answer(answer))
        return True
