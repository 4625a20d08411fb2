"""One wave: the loop of forward passes in which many dialogues advance together.

What is new in a prompt is not assumed from the template: its token ids are compared with
those that are cached, and everything after the first difference is computed again.

In every forward pass each dialogue takes part with what it needs next, a piece of a prompt or the
last tokens of an answer, in one row without padding. A finished dialogue is replaced at once.
Generation ends with the first line, because nothing after it is read.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import torch

from cradle_lib.detection.engine import Emit, Questions
from cradle_lib.detection.local.constrained import Grammar
from cradle_lib.detection.local.loading import Local
from cradle_lib.detection.local.sampling import Sampler, sampling_seed
from cradle_lib.detection.local.wave.batch_layout import Piece, lay_out
from cradle_lib.detection.local.wave.key_value_store import KeyValueStore
from cradle_lib.detection.local.wave.prefix import shared_prefix
from cradle_lib.detection.local.wave.sequence_state import SequenceState
from cradle_lib.detection.local.wave.shared_attention import attach, detach
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.parsing import Outcome, is_cut
from cradle_lib.detection.session import Answer, Prompt
from cradle_lib.errors import EngineError

# New tokens of one forward pass: enough to keep matrix products busy, few enough that
# answers do not wait long behind another dialogue's prompt.
BUDGET: Final = 1024


class Runner:
    """One wave at one size, from the first forward pass to the last."""

    def __init__(
        self, model: Model, local: Local, size: int, waiting: deque[Questions], emit: Emit
    ) -> None:
        self._model, self._local, self._waiting, self._emit = model, local, waiting, emit
        self._sequences: list[SequenceState] = []
        self._implementation = local.lm.config._attn_implementation
        self._store = KeyValueStore(size)
        self._ends = local.ends
        self._grammar = _grammar(local, self._ends)
        self._processors = local.processors()
        self._prefix = shared_prefix(local, waiting[0].prompt)
        self._limit = local.decoding.max_new_tokens
        self._size = size

    def close(self) -> None:
        """Gives the model its own attention back."""
        detach(self._local.lm, self._implementation)

    def unfinished(self) -> list[Questions]:
        """The sessions that the wave was in the middle of: all of them, if it was broken off."""
        return [sequence.session for sequence in self._sequences]

    def run(self) -> None:
        """Answers until nobody waits and no dialogue is unfinished.

        Raises:
            UnsupportedAttentionError: If the model's attention can't be shared; nothing has been
                answered then.
        """
        attach(self._local.lm, self._store)
        for start in range(0, len(self._prefix), BUDGET):
            piece = self._prefix[start : start + BUDGET]
            self._forward([Piece(0, start, len(piece))], piece, [])
        self._store.freeze_prefix(len(self._prefix), self._local.lm)
        while self._waiting or self._sequences:
            full = len(self._sequences)
            while self._waiting and len(self._sequences) < self._size:
                session = self._waiting.popleft()
                if session.prompt is not None:
                    self._sequences.append(SequenceState(session))
            self._ask(self._sequences[full:])
            self._retire()
            if self._sequences:
                self._step()

    def _ask(self, sequences: Sequence[SequenceState]) -> None:
        """Starts the dialogues' next questions; those that can't be computed are settled here."""
        # Together, because tokenizers take several texts to several cores.
        while asked := [
            (sequence, p) for sequence in sequences if (p := sequence.session.prompt) is not None
        ]:
            settled = []
            encoded = self._local.ids([prompt for _, prompt in asked])
            for (sequence, prompt), ids in zip(asked, encoded, strict=True):
                limit = self._local.context
                if limit is not None and len(ids) >= limit:
                    reason = f"the prompt has {len(ids)} tokens, the model's context {limit}"
                    failed = Answer("", Outcome.FAILED, reason, tokens_in=len(ids))
                    self._emit(sequence.session.answer(failed))
                    settled.append(sequence)
                else:
                    self._start(sequence, prompt, ids)
            sequences = settled

    def _start(self, sequence: SequenceState, prompt: Prompt, ids: list[int]) -> None:
        shared = len(self._prefix)
        if ids[:shared] != self._prefix:
            raise EngineError(
                f"{self._model.name}: a prompt of {prompt.dialogue} does not start with the "
                "tokens of the static part. Run this model with the reference engine."
            )
        grammar, decoding = self._grammar, self._local.decoding
        sampler = None
        if decoding.temperature:
            sampler = Sampler(decoding.temperature, sampling_seed(decoding.seed, prompt))
        sequence.start(ids[shared:], shared, None if grammar is None else grammar.start(), sampler)

    def _retire(self) -> None:
        """Takes finished dialogues out; the last one moves to the slot that falls free."""
        for slot in range(len(self._sequences) - 1, -1, -1):
            if self._sequences[slot].session.prompt is None:
                last = self._sequences.pop()
                if slot < len(self._sequences):
                    self._store.move(len(self._sequences), slot, len(last.cached))
                    self._sequences[slot] = last

    def _step(self) -> None:
        pieces: list[Piece] = []
        ids: list[int] = []
        rows: list[int] = []
        asking: list[SequenceState] = []
        budget = max(BUDGET, len(self._sequences))
        # Answers go on; the rest of the budget goes to dialogues with most turns to come first,
        # so that none is left to run alone at the end.
        order = sorted(
            range(len(self._sequences)),
            key=lambda slot: (
                not self._sequences[slot].answer,
                -self._sequences[slot].session.remaining,
            ),
        )
        for slot in order:
            sequence, start = self._sequences[slot], len(self._sequences[slot].cached)
            new = sequence.target[start : start + budget]
            if not new:
                continue
            budget -= len(new)
            if start + len(new) == len(sequence.target):
                rows.append(len(ids) + len(new) - 1)
                asking.append(sequence)
            pieces.append(Piece(slot, start, len(new)))
            ids += new
        began = time.perf_counter()
        logits = self._forward(pieces, ids, rows)
        # On a processor NumPy finds the greatest of a long row several times faster.
        rated: Any = logits.numpy() if logits.device.type == "cpu" else logits
        likeliest = rated.argmax(-1).tolist()
        passed = time.perf_counter() - began
        for slot, start, count in pieces:
            sequence = self._sequences[slot]
            sequence.cached += sequence.target[start : start + count]
            sequence.seconds += passed * count / len(ids)
        self._ask(
            [
                sequence
                for sequence, row, token in zip(asking, logits, likeliest, strict=True)
                if self._take(sequence, row, token)
            ]
        )

    def _forward(
        self, pieces: Sequence[Piece], ids: Sequence[int], keep: Sequence[int]
    ) -> torch.Tensor:
        device = self._local.lm.get_input_embeddings().weight.device
        self._store.reserve(max(piece.end for piece in pieces))
        self._store.layout = lay_out(pieces, device)
        output: Any = self._local.lm(
            input_ids=torch.tensor([ids], device=device),
            position_ids=(self._store.layout.place + self._store.prefix_length).unsqueeze(0),
            use_cache=False,
            logits_to_keep=torch.tensor(keep, dtype=torch.long, device=device),
        )
        logits: torch.Tensor = output.logits[0].float()
        return logits

    def _take(self, sequence: SequenceState, logits: torch.Tensor, likeliest: int) -> bool:
        """Appends to an answer what the logits say, and emits it if it is complete.

        Args:
            sequence: The dialogue.
            logits: What the model says about the next token. Shape (vocabulary,).
            likeliest: The token with the largest.

        Returns:
            Whether it is complete.
        """
        new, finished, ended = self._next(sequence, logits, likeliest)
        sequence.answer += new
        if not finished:
            sequence.target = sequence.target[: sequence.asked] + sequence.answer
            return False
        answer = self._local.answer(
            sequence.answer,
            ended=ended,
            tokens_in=len(self._prefix) + sequence.asked,
            tokens_cached=sequence.reused,
        )
        choices = sequence.grammar.choices if sequence.grammar is not None else None
        answer = replace(answer, seconds=round(sequence.seconds, 4), choices=choices)
        self._emit(sequence.session.answer(answer))
        return True

    def _next(
        self, sequence: SequenceState, logits: torch.Tensor, likeliest: int
    ) -> tuple[list[int], bool, bool]:
        """Decides what follows an answer: tokens, whether it is complete, and ended by itself."""
        if sequence.grammar is not None:
            # The grammar bounds the answer; a limit would cut it where it does not parse.
            new = sequence.grammar.choose(logits, sequence.sampler)
            return new, sequence.grammar.finished, sequence.grammar.finished
        if self._processors:
            seen = [*self._prefix, *sequence.target[: sequence.asked], *sequence.answer]
            logits = self._processors(
                torch.tensor([seen], device=logits.device), logits.unsqueeze(0)
            )[0]
            likeliest = int(logits.argmax())
        token = likeliest if sequence.sampler is None else sequence.sampler.draw(logits)
        written = [*sequence.answer, token]
        ended = token in self._ends
        return [token], ended or len(written) == self._limit or self._has_line(written), ended

    def _has_line(self, ids: list[int]) -> bool:
        marker = self._local.decoding.answer_after
        text = str(self._local.tokenizer.decode(ids, skip_special_tokens=marker is None))
        if marker is not None:
            _, found, text = text.rpartition(marker)
            if not found:
                return False
        return not is_cut(text)


def _grammar(local: Local, ends: frozenset[int]) -> Grammar | None:
    if local.decoding.mode != "constrained":
        return None
    return Grammar(local.tokenizer, ends, local.decoding.none_bias or 0.0)
