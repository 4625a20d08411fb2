"""Constrained decoding: only answers that parse can be written.

An answer is ``none``, or labels joined by ``; ``, none of them twice. Its tokens form a small
automaton. In a state with one transition the token is forced and costs no forward pass; in a
state with several the likeliest is taken, or, where the settings have a temperature, one is
drawn. The log-probability of each is kept, so that thresholds can be studied later.

A constrained model never misses the format and is not credited for finding it. So it is another
system than the same model decoding freely, and has rows of its own in every table.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final, cast

import torch
from torch import Tensor

from cradle_lib.detection.local.sampling import Sampler
from cradle_lib.labels import LABELS, NONE

END: Final = "<end>"
Choice = dict[str, float]


@dataclass
class _Node:
    """A state: the tokens that may follow, and the label that ends here, if one does."""

    next: dict[int, _Node] = field(default_factory=dict)
    label: str | None = None

    def add(self, ids: list[int], label: str) -> None:
        node = self
        for token in ids:
            node = node.next.setdefault(token, _Node())
        node.label = label


class Grammar:
    """The automaton of all answers that parse, over the tokens of one tokenizer.

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
        self.first = _Node()
        self._texts: dict[int, str] = {}
        self.ends = sorted({*ends, *_line_breaks(tokenizer)})
        for text in (NONE, *LABELS):
            self.first.add(self._encode(text), text)
        self.bias = {self._encode(NONE)[0]: none_bias}
        # Tokens of "; b" do not depend on the label before: checked, because a tokenizer may
        # merge across the join.
        self.more: dict[str, list[int]] = {}
        for label in LABELS:
            tails = set()
            for other in LABELS:
                head, whole = self._encode(other), self._encode(f"{other}; {label}")
                if whole[: len(head)] != head:
                    raise ValueError(f"tokens of {other!r} change when a label follows")
                tails.add(tuple(whole[len(head) :]))
            if len(tails) != 1:
                raise ValueError(f"tokens of {label!r} depend on the label before it")
            self.more[label] = list(tails.pop())

    def _encode(self, text: str) -> list[int]:
        return cast(list[int], self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def text(self, token: int) -> str:
        """Writes a token as text."""
        if token not in self._texts:
            self._texts[token] = str(self._tokenizer.decode([token]))
        return self._texts[token]

    def start(self) -> GrammarState:
        """Begins an answer."""
        return GrammarState(self)


class GrammarState:
    """How far one answer is in the grammar.

    Attributes:
        finished: Whether the answer is complete.
        choices: For each state with several transitions, the log-probability of each over the
            whole vocabulary, by the text of its token; ``<end>`` for ending there.
    """

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._node = grammar.first
        self._written: list[str] = []
        self.finished = False
        self.choices: list[Choice] = []

    def choose(self, logits: Tensor, sampler: Sampler | None = None) -> list[int]:
        """Takes the likeliest transition, or one by chance, and every forced one after it.

        Args:
            logits: What the model says about the next token. Shape (vocabulary,).
            sampler: Draws the transition; ``None`` takes the likeliest.

        Returns:
            The tokens, at least one unless the answer ends here.
        """
        chances = torch.log_softmax(logits, -1)
        found = chances[list(self._node.next)].tolist()
        branches = dict(zip(self._node.next, found, strict=True))
        end = float(torch.logsumexp(chances[self._grammar.ends], -1)) if self._node.label else None
        named = {self._grammar.text(token): chance for token, chance in branches.items()}
        self.choices.append(named if end is None else {**named, END: end})
        if not branches:
            self.finished = True
            return []
        if self._node is self._grammar.first:
            # What is kept is what the model says; what is written follows the settings.
            branches = {
                token: c + self._grammar.bias.get(token, 0) for token, c in branches.items()
            }
        # Ending comes first: of two that are equally likely the answer ends.
        ways = ({} if end is None else {None: end}) | branches
        if sampler is None:
            taken = max(ways, key=ways.__getitem__)
        else:
            taken = list(ways)[sampler.draw(torch.tensor(list(ways.values())))]
        if taken is None:
            self.finished = True
            return []
        return self._follow(taken)

    def _follow(self, token: int) -> list[int]:
        taken = [token]
        self._step(token)
        while not self.finished and self._node.label is None and len(self._node.next) == 1:
            (forced,) = self._node.next
            taken.append(forced)
            self._step(forced)
        return taken

    def _step(self, token: int) -> None:
        self._node = self._node.next[token]
        label = self._node.label
        if label is None:
            return
        self._written.append(label)
        # A label may be the beginning of another's tokens; its own continuations stay open.
        after = _Node(next=dict(self._node.next), label=label)
        if label != NONE:
            for other, ids in self._grammar.more.items():
                if other not in self._written:
                    after.add(ids, other)
        self._node = after
        self.finished = not after.next


def _line_breaks(tokenizer: Any) -> set[int]:
    ids = tokenizer("\n", add_special_tokens=False)["input_ids"]
    return {ids[0]} if len(ids) == 1 else set()
