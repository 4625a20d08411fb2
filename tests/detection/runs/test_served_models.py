"""Registry entries of self-hosted models, and the guide's settings for their servers."""

from __future__ import annotations

import itertools
import re

import yaml

from cradle_lib.detection import load_registry
from cradle_lib.detection.models.model import Decoding
from cradle_lib.detection.protocol.parsing import Outcome, read_answer
from cradle_lib.labels import LABELS, NONE

from ...notebooks.test_documented_commands import text_of

GUIDE = text_of("notebooks/run-a-model.ipynb")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", GUIDE, re.DOTALL)


def test_every_open_model_of_the_paper_has_an_entry_for_a_server() -> None:
    registry = load_registry()
    open_models = [m for m in registry.values() if m.group == "open" and m.engine == "reference"]
    assert len(open_models) == 8
    for model in open_models:
        served = registry[f"{model.id}-vllm"]
        assert served.weights == model.weights
        assert "never run" in str(served.hardware)
        assert f"`{served.id}`" in GUIDE


def test_the_regular_expression_of_the_guide_matches_only_valid_answers() -> None:
    settings = [
        Decoding.model_validate(yaml.safe_load(block)["decoding"]).extra
        for language, block in BLOCKS
        if language == "yaml" and "regex" in block
    ]
    (vllm, sglang) = settings
    assert vllm["structured_outputs"] == sglang
    pattern = re.compile(sglang["regex"])
    for answer in (NONE, *LABELS, "; ".join(LABELS[:3])):
        assert pattern.fullmatch(answer)
        assert read_answer(answer)[0] is Outcome.OK
    for answer in ("None.", "alert", "none; alert_past", "alert_past;", ""):
        assert not pattern.fullmatch(answer)
    # Of all combinations of the labels' parts, only labels match.
    parts = {part for label in LABELS for part in label.split("_")}
    for words in itertools.chain.from_iterable(itertools.product(parts, repeat=n) for n in (2, 3)):
        answer = "_".join(words)
        assert bool(pattern.fullmatch(answer)) == (answer in LABELS), answer
