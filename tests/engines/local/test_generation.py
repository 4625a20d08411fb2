"""Decoding follows the recorded settings; those of a checkpoint apply only if adopted.

The oracle for adopted settings is Transformers' ``generate`` with ``generation_config.json``.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from cradle_engines.local.generation import sampling_seed
from cradle_engines.local.local_engine import Local, LocalEngine, load_local
from cradle_engines.local.reference import Reference
from cradle_engines.local.wave.engine import Wave
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Options, Prediction, Session, read_journal
from cradle_lib.detection.protocol.parsing import first_line
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError
from cradle_lib.prompts import load_template

from .tiny_models import LIMIT, change_settings, make_model

pytestmark = pytest.mark.usefixtures("short_prompt")

# Settings of Qwen3 and of other checkpoints.
QWEN = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95}
SHIPPED: list[dict[str, Any]] = [
    QWEN,
    {"do_sample": True, "temperature": 1.7, "min_p": 0.2, "repetition_penalty": 1.1},
]
# Settings that can't be adopted; `presence_penalty` is of another library.
REFUSED: list[dict[str, Any]] = [
    {"num_beams": 4},
    {"no_repeat_ngram_size": 2},
    {"presence_penalty": 1.5, "temperature": 0.7},
]
ENGINES: list[type[LocalEngine]] = [Reference, Wave]


@pytest.fixture
def corpus(corpus: Corpus) -> Corpus:
    """One dialogue with three questions."""
    return corpus.subset([0], "one")


def with_settings(plain: Path, folder: Path, settings: dict[str, Any]) -> Path:
    shutil.copytree(plain, folder)
    change_settings(folder, "generation_config.json", _from_model_config=False, **settings)
    return folder


def answers(
    kind: type[LocalEngine], local: Local, corpus: Corpus, shipped: Any = None, **decoding: Any
) -> list[str]:
    """Returns the first lines of answers, with ``shipped`` as the checkpoint's settings."""
    model = make_model(Path(), **decoding)
    assert model.decoding is not None
    local = replace(local, decoding=model.decoding, shipped=shipped or local.shipped)
    engine, found = kind(model, Options(), local), list[Prediction]()
    sessions = [Session(dialogue, load_template("short")) for dialogue in corpus]
    engine.answer_all(sessions, found.append)
    return [first_line(p.answer) for p in sorted(found, key=lambda p: (p.dialogue, p.turn))]


@pytest.mark.parametrize(
    "decoding", [{}, {"temperature": 0.9, "seed": 4}, {"none_bias": 5.0}], ids=str
)
def test_only_settings_of_the_entry_are_used_by_default_in_both_engines(
    weights: Path, loaded: Local, corpus: Corpus, tmp_path: Path, decoding: dict[str, Any]
) -> None:
    usual = answers(Reference, loaded, corpus, **decoding)
    shipped = with_settings(weights, tmp_path / "own", QWEN | REFUSED[0] | SHIPPED[1] | REFUSED[1])
    local = load_local(make_model(shipped), Options())
    for kind in ENGINES:
        assert answers(kind, local, corpus, **decoding) == usual
    assert not decoding or usual != answers(Reference, loaded, corpus), "they change answers"


@pytest.mark.parametrize("settings", SHIPPED, ids=str)
def test_adopted_settings_give_the_answers_of_generate_in_both_engines(
    loaded: Local, corpus: Corpus, settings: dict[str, Any]
) -> None:
    config, expected = GenerationConfig(eos_token_id=0, **settings), []
    for dialogue in corpus:
        session = Session(dialogue, load_template("short"))
        while (prompt := session.prompt) is not None:
            ids = torch.tensor(loaded.ids([prompt]))
            torch.manual_seed(sampling_seed(None, prompt))
            # Without top_k in the file, Transformers would use 50.
            more = {"max_new_tokens": LIMIT, "pad_token_id": 0}
            more |= {} if "top_k" in settings else {"top_k": 0}
            written = loaded.lm.generate(ids, generation_config=config, **more)
            text = loaded.tokenizer.decode(written[0, ids.shape[1] :], skip_special_tokens=True)
            expected.append(first_line(text))
            session.answer(loaded.answer([], ended=True, tokens_in=0, tokens_cached=0))
    for engine in ENGINES:
        assert answers(engine, loaded, corpus, config, from_checkpoint=True) == expected
    assert answers(Reference, loaded, corpus) != expected, "they change answers"


def test_adopted_settings_are_recorded(weights: Path, corpus: Corpus, tmp_path: Path) -> None:
    settings = QWEN | {"repetition_penalty": 1.05, "max_length": 77}
    weights = with_settings(weights, tmp_path / "own", settings)
    notices: list[str] = []
    options = Options(notice=notices.append)
    own = {"max_new_tokens": LIMIT, "dtype": "float32"}
    path = run(make_model(weights), corpus, out=tmp_path / "a", options=options)
    assert read_journal(path)[0].decoding == own
    [sentence] = notices
    assert all(
        f"{name} {value}" in sentence for name, value in settings.items() if name != "max_length"
    )
    model = make_model(weights, from_checkpoint=True, temperature=0.8, seed=3)
    path = run(model, corpus, out=tmp_path / "b", options=options)
    recorded = own | {"from_checkpoint": True, "seed": 3, "temperature": 0.8}
    recorded |= {"top_k": 20, "top_p": 0.95, "repetition_penalty": 1.05}
    assert read_journal(path)[0].decoding == recorded
    assert len(notices) == 1


@pytest.mark.parametrize("settings", REFUSED, ids=str)
def test_unsupported_settings_are_refused_before_anything_runs(
    weights: Path, corpus: Corpus, tmp_path: Path, settings: dict[str, Any]
) -> None:
    model = make_model(with_settings(weights, tmp_path / "own", settings), from_checkpoint=True)
    path = tmp_path / "run.jsonl"
    with pytest.raises(EngineError, match=f"decodes with .*{next(iter(settings))}") as error:
        run(model, corpus, out=path)
    assert "\n" not in str(error.value)
    assert not path.exists()


def test_constrained_decoding_refuses_sampling_settings() -> None:
    for more in ({"from_checkpoint": True}, {"temperature": 0.7}):
        with pytest.raises(ValueError, match="can't be combined with 'mode: constrained'"):
            make_model(Path("any"), "wave", mode="constrained", **more)
