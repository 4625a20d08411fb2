"""Constrained decoding: the model can generate only answers that parse.

An answer is ``none``, or labels joined by ``; ``, without repetition. Its tokens form a small
automaton. In a state with one transition the token is forced and costs no forward pass; in a
state with several, the most likely is taken. The log-probability of each is stored, so that
thresholds can be studied later.

A constrained model can't break the format. It therefore counts as a different system from the same
model without constraints, and has separate rows in every table.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

import torch
from torch import Tensor

from cradle_lib.detection.protocol.session import END
from cradle_lib.labels import LABELS, NONE

#: The remaining tokens of a label, and the label.
Rest = tuple[list[int], str]


class Grammar:
    """The answers that parse, as tokens of one tokenizer.

    Args:
        tokenizer: The model's tokenizer.
        ends: Token ids that end an answer; at least one.
        none_bias: Added to the logit of ``none`` at the beginning of an answer.

    Raises:
        ValueError: If the tokens of a label depend on the label before it, so that the answers are
            not one automaton.
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
        """Maximum number of tokens of an answer, which is the one with all labels."""
        more = {label: len(ids) for ids, label in self.more}
        # One label comes first, without the separator.
        first = max(len(ids) - more[label] for ids, label in self.first if label in more)
        return first + sum(more.values())

    def text(self, token: int) -> str:
        """Decodes one token."""
        return str(self._tokenizer.decode([token]))


class GrammarState:
    """State of one answer in the grammar.

    Attributes:
        ahead: The remaining tokens of each label that may follow.
        complete: Whether a label ends here, so that the answer may end.
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
        """Takes the most likely transition, and every forced one after it.

        Args:
            logits: Logits of the next token. Shape (vocabulary,).

        Returns:
            The tokens taken; empty if the answer ends here.
        """
        scores = torch.log_softmax(logits, -1)
        tokens = list(dict.fromkeys(ids[0] for ids, _ in self.ahead))
        branches = dict(zip(tokens, scores[tokens].tolist(), strict=True))
        transitions: dict[int | None, float] = {}
        named = {self._grammar.text(token): score for token, score in branches.items()}
        if self.complete:
            # Inserted first, so that the answer ends if two transitions are equally likely.
            transitions[None] = named[END] = float(torch.logsumexp(scores[self._grammar.ends], -1))
        self.choices.append(named)
        if len(self.choices) == 1:
            # The stored log-probabilities do not include the bias.
            branches[self._grammar.none] += self._grammar.none_bias
        transitions.update(branches.items())
        taken = max(transitions, key=transitions.__getitem__)
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
        # The tokens of a label may be a prefix of another label's, which then stays possible.
        self.ahead = [rest for rest in rests if rest[0]]
        self.complete = len(self.ahead) < len(rests)
        if self.complete:
            self._written += [label for ids, label in rests if not ids]
            if self._written != [NONE]:
                self.ahead += [rest for rest in self._grammar.more if rest[1] not in self._written]
            self.finished = not self.ahead
