"""One wave: dialogues in lanes, one forward pass after the other.

What is new in a prompt is not assumed from the template: its token ids are compared with
those that are cached, and everything after the first difference is rolled back.

In every forward pass each dialogue takes part with what it needs next, be it a piece of a
prompt or a token of an answer and what is guessed to follow it, packed without padding. A
dialogue that is finished is replaced at once. Generation ends with the first line, because
nothing after it is read.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import torch

from cradle_lib.detection.answers import Outcome, is_cut
from cradle_lib.detection.engine import Emit
from cradle_lib.detection.engines.constrained import Grammar
from cradle_lib.detection.engines.draft import END, Drafts, Habits
from cradle_lib.detection.engines.lane import Lane
from cradle_lib.detection.engines.local import Local
from cradle_lib.detection.engines.pack import Piece, pack
from cradle_lib.detection.engines.prefix import common, shared_prefix
from cradle_lib.detection.engines.shared_attention import Store, attach, detach
from cradle_lib.detection.registry import Model
from cradle_lib.detection.session import Answer, Prompt, Session
from cradle_lib.errors import EngineError

# New tokens of one forward pass: enough to keep matrix products busy, few enough that
# answers do not wait long behind another dialogue's prompt.
BUDGET: Final = 1024
# What a pass costs beside its tokens, in tokens: a right guess saves its dialogue a pass, a wrong
# one costs a token. Measured on two cores; on a GPU by arithmetic: in the time that one H200
# needs to read the weights of a 32B model in bfloat16, it computes so many tokens.
PASS: Final = {"cpu": 20.0, "cuda": 150.0}
# How far a dialogue moves at once to fill a gap: less copies more, more mixes ages.
LEAP: Final = 24


class Runner:
    """One wave at one size, from the first forward pass to the last."""

    def __init__(
        self, model: Model, local: Local, size: int, waiting: deque[Session], emit: Emit
    ) -> None:
        self._model, self._local, self._waiting, self._emit = model, local, waiting, emit
        self._lanes: list[Lane] = []
        self._implementation = local.lm.config._attn_implementation
        self._store: Store = Store(size)
        self._ends = local.ends
        self._grammar = _grammar(local, self._ends)
        self._processors = local.processors()
        self._prefix = shared_prefix(local, waiting[0].prompt)
        self._habits = Habits()
        self._pass = PASS.get(local.lm.device.type, PASS["cuda"])
        self._limit = local.decoding.max_new_tokens
        self._size = size

    def close(self) -> None:
        """Gives the model its own attention back."""
        detach(self._local.lm, self._implementation)

    def unfinished(self) -> list[Session]:
        """The sessions that the wave was in the middle of: all of them, if it was broken off."""
        return [lane.session for lane in self._lanes]

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
        while self._waiting or self._lanes:
            full = len(self._lanes)
            while self._waiting and len(self._lanes) < self._size:
                session = self._waiting.popleft()
                if session.prompt is not None:
                    self._lanes.append(Lane(session, Drafts(self._habits)))
            self._ask(self._lanes[full:])
            self._retire()
            if self._lanes:
                self._step()

    def _ask(self, lanes: Sequence[Lane]) -> None:
        """Starts the lanes' next questions; those that can't be computed are settled here."""
        # Together, because tokenizers take several texts to several cores.
        while asked := [(lane, p) for lane in lanes if (p := lane.session.prompt) is not None]:
            settled = []
            encoded = self._local.ids([prompt for _, prompt in asked])
            for (lane, prompt), ids in zip(asked, encoded, strict=True):
                limit = self._local.context
                if limit is not None and len(ids) >= limit:
                    reason = f"the prompt has {len(ids)} tokens, the model's context {limit}"
                    failed = Answer("", Outcome.FAILED, reason, tokens_in=len(ids))
                    self._emit(lane.session.answer(failed))
                    settled.append(lane)
                else:
                    self._start(lane, prompt, ids)
            lanes = settled

    def _start(self, lane: Lane, prompt: Prompt, ids: list[int]) -> None:
        shared = len(self._prefix)
        if ids[:shared] != self._prefix:
            raise EngineError(
                f"{self._model.name}: a prompt of {prompt.dialogue} does not start with the "
                "tokens of the static part. Run this model with the reference engine."
            )
        grammar = self._grammar
        lane.start(ids[shared:], shared, None if grammar is None else grammar.start())

    def _retire(self) -> None:
        """Takes finished dialogues out, and keeps the slots of the others without gaps.

        New dialogues come last. A gap is filled from a few slots further on, and that gap again,
        so that neighbours stay of about one age, and with it of one length: see ``pack``.
        """
        for slot in range(len(self._lanes) - 1, -1, -1):
            if self._lanes[slot].session.prompt is not None:
                continue
            last, gap = len(self._lanes) - 1, slot
            while gap < last:
                source = min(gap + LEAP, last)
                lane = self._lanes[source]
                self._store.move(source, gap, len(lane.cached))
                self._lanes[gap], gap = lane, source
            self._lanes.pop()

    def _step(self) -> None:
        pieces: list[Piece] = []
        ids: list[int] = []
        rows: list[int] = []
        guesses: dict[int, list[int]] = {}
        budget = max(BUDGET, len(self._lanes))
        sure = 1 / (1 + self._pass / len(self._lanes))
        # Answers go on; the rest of the budget goes to dialogues with most turns to come first,
        # so that none is left to run alone at the end.
        order = sorted(
            range(len(self._lanes)),
            key=lambda slot: (not self._lanes[slot].answer, -self._lanes[slot].session.remaining),
        )
        for slot in order:
            lane, start = self._lanes[slot], len(self._lanes[slot].cached)
            new = lane.target[start : start + budget]
            if not new:
                continue
            budget -= len(new)
            if start + len(new) == len(lane.target):
                room = budget
                if lane.walk is None:
                    # After the last token that is allowed nothing is asked.
                    room = min(budget, self._limit - len(lane.answer) - 1)
                guess = lane.drafts.guess(lane.answer, sure, room)
                budget -= len(guess)
                new += guess
                guesses[slot] = guess
                rows += range(len(ids) + len(new) - len(guess) - 1, len(ids) + len(new))
            pieces.append(Piece(slot, start, len(new)))
            ids += new
        began = time.perf_counter()
        logits = self._forward(pieces, ids, rows)
        # On a processor NumPy finds the greatest of a long row several times faster.
        found: Any = logits.numpy() if logits.device.type == "cpu" else logits
        likeliest = found.argmax(-1).tolist()
        passed = time.perf_counter() - began
        row, finished = 0, []
        for slot, start, count in pieces:
            lane = self._lanes[slot]
            lane.cached += lane.target[start : start + count]
            lane.seconds += passed * count / len(ids)
            if slot in guesses:
                here = slice(row, row + len(guesses[slot]) + 1)
                if self._take(lane, guesses[slot], logits[here], likeliest[here]):
                    finished.append(lane)
                row = here.stop
        self._ask(finished)

    def _forward(
        self, pieces: Sequence[Piece], ids: Sequence[int], keep: Sequence[int]
    ) -> torch.Tensor:
        device = self._local.lm.get_input_embeddings().weight.device
        self._store.reserve(max(piece.end for piece in pieces))
        self._store.pack = pack(pieces, device)
        output: Any = self._local.lm(
            input_ids=torch.tensor([ids], device=device),
            position_ids=(self._store.pack.place + self._store.prefix_length).unsqueeze(0),
            use_cache=False,
            logits_to_keep=torch.tensor(keep, dtype=torch.long, device=device),
        )
        logits: torch.Tensor = output.logits[0].float()
        return logits

    def _take(
        self, lane: Lane, guess: list[int], logits: torch.Tensor, likeliest: list[int]
    ) -> bool:
        """Appends to the lane's answer what the logits say, and finishes it if it is whole.

        Args:
            lane: The lane.
            guess: Tokens that were computed ahead of the answer.
            logits: What the model says after the last token of the answer and after each of the
                guess. Shape (1 + guessed tokens, vocabulary).
            likeliest: The greatest of each row.

        Returns:
            Whether it is whole.
        """
        begin, right, finished, ended = len(lane.answer), 0, False, False
        while not finished:
            new, finished, ended = self._next(lane, logits[right], likeliest[right])
            lane.answer += new
            if guess[right : right + len(new)] != new:
                break
            right += len(new)
        written = lane.answer[begin:]
        lane.cached += written[: common(written, guess)]
        if not finished:
            lane.drafts.learn(lane.answer, begin)
            lane.target = lane.target[: lane.asked] + lane.answer
            return False
        # Nothing is asked after the tokens that make an answer whole: no use to guess them.
        lane.drafts.learn([*lane.answer[: len(lane.answer) - len(new)], END], begin)
        answer = self._local.answer(
            lane.answer,
            ended=ended,
            tokens_in=len(self._prefix) + lane.asked,
            tokens_cached=lane.reused,
        )
        choices = lane.walk.choices if lane.walk is not None else None
        answer = replace(answer, seconds=round(lane.seconds, 4), choices=choices)
        self._emit(lane.session.answer(answer))
        return True

    def _next(
        self, lane: Lane, logits: torch.Tensor, likeliest: int
    ) -> tuple[list[int], bool, bool]:
        """Decides what follows an answer: tokens, whether it is whole, and ended by itself."""
        if lane.walk is not None:
            # The grammar bounds the answer; a limit would cut it where it does not parse.
            new = lane.walk.choose(logits)
            return new, lane.walk.finished, lane.walk.finished
        if self._processors:
            seen = [*self._prefix, *lane.target[: lane.asked], *lane.answer]
            found = self._processors(
                torch.tensor([seen], device=logits.device), logits.unsqueeze(0)
            )
            likeliest = int(found.argmax())
        written = [*lane.answer, likeliest]
        ended = likeliest in self._ends
        return [likeliest], ended or len(written) == self._limit or self._has_line(written), ended

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
    return Grammar(local.tokenizer, ends)
