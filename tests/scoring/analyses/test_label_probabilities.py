"""Label probabilities from stored choices, compared with a walk over the grammar."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from cradle_engines.local.constrained import Grammar, GrammarState
from cradle_lib.detection.protocol.session import END
from cradle_lib.labels import ALERT_MASK, ALL_MASK, BITS, CONFIRM_MASK, LABELS, NONE
from cradle_lib.scoring.analyses.label_probabilities import (
    probability,
    share_on_branches,
    slot_probabilities,
)


class Words:
    """A tokenizer with the given tokens; other text is split into letters."""

    def __init__(self, *words: str) -> None:
        self.words = sorted(words, key=len, reverse=True)
        self.ids: dict[str, int] = {}

    def __call__(self, text: str, add_special_tokens: bool = False) -> dict[str, list[int]]:
        found = []
        while text:
            word = next((w for w in self.words if text.startswith(w)), text[0])
            # ``SHA`` is never split after ``SH``.
            word = "S" if text.startswith("SHA") and "S" in self.words else word
            found.append(self.ids.setdefault(word, 2 + len(self.ids)))
            text = text[len(word) :]
        return {"input_ids": found}

    def decode(self, ids: list[int]) -> str:
        return "".join(word for i in ids for word, known in self.ids.items() if known == i)


TOKENIZERS = {
    "pieces": ("alert", "confirm", " alert", " confirm", "_", "ongo", "past", "SI", "SH", "S"),
    "letters": (),
    "parts": ("alert", "confirm", " alert", " confirm", "SHA", "SH", "ongoing", "past", "passive"),
}


def greedy(grammar: Grammar, generator: np.random.Generator) -> tuple[str, list[dict[str, float]]]:
    state, written = GrammarState(grammar), ""
    while not state.finished:
        logits = torch.from_numpy(generator.normal(0, 2, size=200))
        written += "".join(grammar.text(token) for token in state.choose(logits))
    return written, state.choices


def by_walk(grammar: Grammar, answer: str, forks: list[dict[str, float]]) -> np.ndarray:
    """Computes the same probabilities by walking through the grammar's automaton."""
    left, state = list(forks), GrammarState(grammar)
    found: list[np.ndarray] = []
    row, mass = np.zeros(16), 1.0
    targets = [*answer.split("; ")]
    while not state.finished:
        ahead, fork = state.ahead, left.pop(0)
        tokens = dict.fromkeys(ids[0] for ids, _ in ahead)
        if state.complete:
            found.append(row)
            row, mass = np.zeros(16), 1.0
        shares = {b: math.exp(p) for b, p in fork.items()}
        total = sum(shares.values())
        best = max(fork, key=lambda b: (fork[b], b == END))
        for token in tokens:
            text = grammar.text(token)
            if text != best:
                behind = {label for ids, label in ahead if ids[0] == token}
                size = len(behind)
                for label in behind - {NONE}:
                    row[LABELS.index(label)] += mass * shares[text] / total / size
        mass *= shares[best] / total
        written = len(state._written)
        logits = torch.full((200,), -1e9, dtype=torch.float64)
        token = next((t for t in tokens if grammar.text(t) == best), grammar.ends[0])
        logits[token] = 0.0
        state.choose(logits)
        if len(state._written) > written and (label := targets[written]) != NONE:
            row[LABELS.index(label)] += mass
    found.append(row)
    return np.array(found)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_probabilities_equal_those_of_a_walk_over_the_grammar(name: str) -> None:
    grammar = Grammar(Words(*TOKENIZERS[name]), [0])
    generator = np.random.default_rng(3)
    longest = 0
    for _ in range(60):
        answer, forks = greedy(grammar, generator)
        found = slot_probabilities(forks, answer)
        assert found is not None, (answer, [list(fork) for fork in forks])
        assert found == pytest.approx(by_walk(grammar, answer, forks)), answer
        assert (found.sum(axis=1) <= 1 + 1e-12).all()
        longest = max(longest, len(found))
    assert longest > 3


def logs(**shares: float) -> dict[str, float]:
    return {name.replace("END", END): math.log(share) for name, share in shares.items()}


def test_a_confirm_after_an_alert_has_its_probability() -> None:
    first = {"none": math.log(0.1), "alert": math.log(0.8), "confirm": math.log(0.1)}
    state = logs(ongo=0.9, past=0.1)
    more = {";": math.log(0.75), END: math.log(0.25)}
    stage = {" alert": math.log(0.2), " confirm": math.log(0.8)}
    crisis = {"CA": 0.0, "D": -9.0, "RA": -9.0, "S": -9.0, "SH": -9.0, "SI": -9.0}
    end = {";": math.log(0.1), END: math.log(0.9)}
    forks = [first, state, more, stage, crisis, state, end]
    found = slot_probabilities(forks, "alert_ongoing; confirm_CA_ongoing")
    assert found is not None
    # A confirm has probability 0.1 in the first slot and 0.75 * 0.8 in the second. In the third, 13
    # of the 14 remaining labels are confirms and share 0.1.
    expected = 1 - (1 - 0.1) * (1 - 0.6) * (1 - 0.1 * 13 / 14)
    assert probability(found, CONFIRM_MASK) == pytest.approx(expected)
    assert probability(found, ALL_MASK) == pytest.approx(0.9)
    past = 1 - (1 - 0.8 * 0.1) * (1 - 0.75 * 0.2) * (1 - 0.1 / 14)
    assert probability(found, BITS["alert_past"]) == pytest.approx(past)
    assert probability(found, ALERT_MASK) == pytest.approx(1 - 0.2 * 0.85 * (1 - 0.1 / 14))


def test_shares_are_relative_to_the_branches_even_if_all_are_unlikely() -> None:
    fork = {"none": -2000.0, "alert": -2001.0, "confirm": -2001.0}
    found = slot_probabilities([fork], "none")
    assert found is not None
    assert probability(found, ALL_MASK) == pytest.approx(2 / (2 + math.e))
    assert share_on_branches(logs(none=0.5, alert=0.2)) == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("forks", "answer"),
    [
        ([], "none"),
        ([logs(none=0.5, alert=0.5)], "none"),
        ([logs(none=0.5, alert=0.2, confirm=0.3)], "alert_ongoing"),
        ([logs(none=0.5, alert=0.2, confirm=0.3)] * 2, "none"),
        ([logs(none=0.5, alert=0.2, confirm=0.3)], "something else"),
    ],
)
def test_forks_must_match_the_answer(forks: list[dict[str, float]], answer: str) -> None:
    assert slot_probabilities(forks, answer) is None
