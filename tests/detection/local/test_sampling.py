"""Drawing tokens: the shares that the model's probabilities say, at any temperature."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from transformers import AutoTokenizer

from cradle_lib.detection.local.constrained import END, Grammar
from cradle_lib.detection.local.generation import Sampler
from cradle_lib.labels import LABELS, NONE

EOS = 0


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_draws_have_the_shares_of_the_softmax(temperature: float) -> None:
    logits = np.array([0.0, 1.0, -1.0, 0.5])
    sampler = Sampler(temperature, seed=3)
    drawn = Counter(sampler.draw(torch.tensor(logits)) for _ in range(4000))
    shares = np.exp(logits / temperature)
    expected = 4000 * shares / shares.sum()
    assert chisquare([drawn[i] for i in range(4)], expected).pvalue > 1e-4


def test_a_constrained_answer_is_drawn_from_what_the_model_says_of_the_ways_on(
    weights: Path,
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(weights)
    grammar = Grammar(tokenizer, {EOS})
    logits = torch.randn(400, generator=torch.Generator().manual_seed(1))
    sampler = Sampler(0.7, seed=2)
    first: Counter[str] = Counter()
    for _ in range(500):
        walk = grammar.start()
        written = walk.choose(logits, sampler)
        first[tokenizer.decode(written[:1])] += 1
        while not walk.finished:
            written += walk.choose(logits, sampler)
        assert set(tokenizer.decode(written).split("; ")) <= {NONE, *LABELS}
    fork = walk.choices[0]
    assert END not in fork, "nothing has been written yet"
    shares = np.exp(np.array(list(fork.values())) / 0.7)
    expected = 500 * shares / shares.sum()
    assert chisquare([first[name] for name in fork], expected).pvalue > 1e-4
