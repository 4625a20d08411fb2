"""Constrained decoding: only answers that parse can be written.

An answer is ``none``, or labels joined by ``; ``, none of them twice. Its tokens form a small
automaton. In a state with one transition the token is forced and costs no forward pass; in a
state with several the likeliest is taken. The log-probability of each is kept, so that thresholds
can be studied later.

A constrained model never misses the format and is not credited for finding it. So it is another
system than the same model decoding freely, and has rows of its own in every table.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, cast

import torch
from torch import Tensor

from cradle_lib.labels import LABELS, NONE

END: Final = "<end>"
#: Tokens that are still to be written, and the label that is complete then.
Rest = tuple[list[int], str]


class Grammar:
    """All answers that parse, over the tokens of one tokenizer.

    Args:
        tokenizer: The model's tokenizer.
        ends: Token ids that end an answer; one of them at least.
        none_bias: Added to the logit of ``none`` where an answer begins.

    Raises:
        ValueError: If the tokenizer writes a label differently after each other label, so
            that the answers are not one automaton.
    """

    def __init__(self, tokenizer: Any, ends: Collection[int], none_bias: float = 0.0) -> None:
        self._tokenizer = tokenizer
        line_break = self._encode("\n")
        self.ends = sorted({*ends, *(line_break if len(line_break) == 1 else ())})
        self.first: list[Rest] = [(self._encode(text), text) for text in (NONE, *LABELS)]
        self.none, self.none_bias = self._encode(NONE)[0], none_bias
        # Tokens of "; b" do not depend on the label before: checked, because a tokenizer may
        # merge across the join.
        self.more: list[Rest] = []
        for label in LABELS:
            tails = set()
            for other in LABELS:
                head, joined = self._encode(other), self._encode(f"{other}; {label}")
                if joined[: len(head)] != head:
                    raise ValueError(f"tokens of {other!r} change when a label follows")
                tails.add(tuple(joined[len(head) :]))
            if len(tails) != 1:
                raise ValueError(f"tokens of {label!r} depend on the label before it")
            self.more.append((list(tails.pop()), label))

    def _encode(self, text: str) -> list[int]:
        return cast(list[int], self._tokenizer(text, add_special_tokens=False)["input_ids"])

    @property
    def longest(self) -> int:
        """Most tokens of an answer: that of all labels."""
        more = {label: len(ids) for ids, label in self.more}
        # One label comes first, without the separator.
        first = max(len(ids) - more[label] for ids, label in self.first if label in more)
        return first + sum(more.values())

    def text(self, token: int) -> str:
        """Writes a token as text."""
        return str(self._tokenizer.decode([token]))


class GrammarState:
    """How far one answer is in the grammar.

    Attributes:
        ahead: What may follow: the rest of each label that can still be written.
        complete: Whether a label ends here, so that the answer may.
        finished: Whether the answer is complete and nothing may follow.
        choices: For each state with several transitions, the log-probability of each over the
            whole vocabulary, by the text of its token; ``<end>`` for ending there.
    """

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._written: list[str] = []
        self.ahead = grammar.first
        self.complete = self.finished = False
        self.choices: list[dict[str, float]] = []

    def choose(self, logits: Tensor) -> list[int]:
        """Takes the likeliest transition, and every forced one after it.

        Gives the tokens: at least one unless the answer ends here. The logits of the next token
        have shape (vocabulary,).
        """
        chances = torch.log_softmax(logits, -1)
        tokens = list(dict.fromkeys(ids[0] for ids, _ in self.ahead))
        branches = dict(zip(tokens, chances[tokens].tolist(), strict=True))
        ways: dict[int | None, float] = {}
        named = {self._grammar.text(token): chance for token, chance in branches.items()}
        if self.complete:
            # Ending comes first: of two that are equally likely the answer ends.
            ways[None] = named[END] = float(torch.logsumexp(chances[self._grammar.ends], -1))
        self.choices.append(named)
        if len(self.choices) == 1:
            # What is kept is what the model says; what is written follows the settings.
            branches[self._grammar.none] += self._grammar.none_bias
        ways.update(branches.items())
        taken = max(ways, key=ways.__getitem__)
        if taken is None:
            self.finished = True
            return []
        return self._follow(taken)

    def _follow(self, token: int) -> list[int]:
        taken = [token]
        self._step(token)
        while not self.complete and len(forced := {ids[0] for ids, _ in self.ahead}) == 1:
            taken += forced
            self._step(taken[-1])
        return taken

    def _step(self, token: int) -> None:
        rests = [(ids[1:], label) for ids, label in self.ahead if ids[0] == token]
        # A label may be the beginning of another's tokens; its own continuations stay open.
        self.ahead = [rest for rest in rests if rest[0]]
        self.complete = len(self.ahead) < len(rests)
        if self.complete:
            self._written += [label for ids, label in rests if not ids]
            if self._written != [NONE]:
                self.ahead += [rest for rest in self._grammar.more if rest[1] not in self._written]
            self.finished = not self.ahead
