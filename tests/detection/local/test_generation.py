"""Decoding follows the recorded settings; a checkpoint's own act only if they are taken over.

The oracle for those is Transformers' ``generate`` with the checkpoint's ``generation_config.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Options, Prediction, Session, read_journal
from cradle_lib.detection.local.generation import sampling_seed
from cradle_lib.detection.local.local_engine import Local, LocalEngine, load_local
from cradle_lib.detection.local.reference import Reference
from cradle_lib.detection.local.wave.engine import Wave
from cradle_lib.detection.parsing import first_line
from cradle_lib.detection.run import run
from cradle_lib.errors import EngineError, RegistryError
from cradle_lib.prompts import load_template

from ..dialogues import make_corpus
from .tiny_models import LIMIT, make_model

pytestmark = pytest.mark.usefixtures("short_prompt")

# As Qwen3 ships it, and settings of other checkpoints.
QWEN = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95}
SHIPPED: dict[str, dict[str, Any]] = {
    "qwen3": QWEN,
    "repetition": {"repetition_penalty": 1.3},
    "ngrams": {"no_repeat_ngram_size": 1},
    "bad words": {"bad_words_ids": [[n] for n in range(4, 150)]},
    "suppressed": {"suppress_tokens": list(range(150, 330))},
    "suppressed at first": {"begin_suppress_tokens": list(range(4, 350))},
    "biased": {"sequence_bias": [[[20], 30.0]]},
    "shortest": {"min_new_tokens": 5, "sequence_bias": [[[0], 60.0]]},
    "shortest in all": {"min_length": 38, "sequence_bias": [[[0], 60.0]]},
    "n-grams of the prompt": {"encoder_no_repeat_ngram_size": 1, "encoder_repetition_penalty": 2.0},
    "decaying": {"exponential_decay_length_penalty": [2, 2.5]},
    "forced end": {"forced_eos_token_id": 0},
    "minimal p": QWEN | {"min_p": 0.2, "top_k": 0},
    "typical": QWEN | {"typical_p": 0.7},
    "cut off": QWEN | {"epsilon_cutoff": 0.01, "eta_cutoff": 0.01},
    "hot": {"do_sample": True, "temperature": 1.7, "repetition_penalty": 1.1},
}
# Settings that leave answers of one sequence as they are, or that can't be obeyed.
REFUSED: dict[str, dict[str, Any]] = {
    "beams": {"num_beams": 4},
    "stop string": {"stop_strings": ["none"]},
    "watermark": {"watermarking_config": {"greenlist_ratio": 0.3}},
    "guidance": {"guidance_scale": 1.5},
    "time": {"max_time": 0.001},
    "several": {"num_return_sequences": 2, "num_beams": 2},
    "lookup": {"prompt_lookup_num_tokens": 3},
    "cache": {"cache_implementation": "quantized"},
    "contrastive": {"penalty_alpha": 0.6, "top_k": 4},
    "layers": {"dola_layers": "high"},
    "of another library": {"presence_penalty": 1.5, "temperature": 0.7},
}


DECODING: list[dict[str, Any]] = [{}, {"temperature": 0.9, "seed": 4}, {"none_bias": 3.0}]
ENGINES: list[type[LocalEngine]] = [Reference, Wave]


@pytest.fixture(scope="module")
def loaded(weights: Path) -> Local:
    return load_local(make_model(weights), Options())


@pytest.fixture
def small() -> Corpus:
    rows = [("User", "hello", "none"), ("Listener", "hi", "none"), ("User", "well", "none")]
    return make_corpus([rows, [("User", "I am tired", "none")]])


@pytest.fixture(scope="module")
def usual() -> dict[str, list[str]]:
    """Answers without a checkpoint's settings, so that they are asked for once only."""
    return {}


def with_settings(plain: Path, folder: Path, settings: dict[str, Any]) -> Path:
    folder.mkdir()
    for file in plain.iterdir():
        (folder / file.name).symlink_to(file)
    (folder / "generation_config.json").unlink()
    written = json.dumps({"eos_token_id": 0, **settings})
    (folder / "generation_config.json").write_text(written)
    return folder


@contextmanager
def shipping(local: Local, folder: Path) -> Iterator[None]:
    """Gives a loaded model the settings that another folder ships, as loading it would."""
    own = local.lm.generation_config
    local.lm.generation_config = GenerationConfig.from_pretrained(folder)
    yield
    local.lm.generation_config = own


def answers(kind: type[LocalEngine], local: Local, corpus: Corpus, **decoding: Any) -> list[str]:
    model = make_model(Path("unused"), **decoding)
    assert model.decoding is not None
    # Settings are computed once for a loaded model.
    local = Local(local.lm, local.tokenizer, model.decoding, local.context)
    found: list[Prediction] = []
    sessions = [Session(dialogue, load_template("short")) for dialogue in corpus]
    kind(model, Options(batch=2), local).answer_all(sessions, found.append)
    found.sort(key=lambda prediction: (prediction.dialogue, prediction.turn))
    return [first_line(prediction.answer) for prediction in found]


@pytest.mark.parametrize("settings", [*SHIPPED.values(), *REFUSED.values()], ids=str)
def test_a_checkpoints_settings_change_nothing_unless_they_are_taken_over(
    weights: Path,
    loaded: Local,
    small: Corpus,
    usual: dict[str, list[str]],
    tmp_path: Path,
    settings: dict[str, Any],
) -> None:
    for kind, decoding in product(ENGINES, DECODING):
        name = f"{kind.__name__} {decoding}"
        if name not in usual:
            usual[name] = answers(kind, loaded, small, max_new_tokens=5, **decoding)
        with shipping(loaded, with_settings(weights, tmp_path / name, settings)):
            assert answers(kind, loaded, small, max_new_tokens=5, **decoding) == usual[name]
    assert len(set(map(tuple, usual.values()))) == len(DECODING), "the entry's own settings act"


@pytest.mark.parametrize("settings", SHIPPED.values(), ids=SHIPPED)
def test_settings_that_are_taken_over_are_those_of_generate_in_both_engines(
    weights: Path,
    loaded: Local,
    corpus: Corpus,
    usual: dict[str, list[str]],
    tmp_path: Path,
    settings: dict[str, Any],
) -> None:
    folder, expected = with_settings(weights, tmp_path / "own", settings), []
    with shipping(loaded, folder):
        for dialogue in corpus:
            session = Session(dialogue, load_template("short"))
            while (prompt := session.prompt) is not None:
                ids = loaded.encode(prompt)
                torch.manual_seed(sampling_seed(None, prompt))
                # Where the file sets no top_k Transformers puts in 50.
                more = {} if "top_k" in settings else {"top_k": 0}
                written = loaded.lm.generate(ids, max_new_tokens=LIMIT, pad_token_id=0, **more)
                text = loaded.tokenizer.decode(written[0, ids.shape[1] :], skip_special_tokens=True)
                expected.append(first_line(text))
                session.answer(loaded.answer([], ended=True, tokens_in=0, tokens_cached=0))
        for kind in ENGINES:
            assert answers(kind, loaded, corpus, from_checkpoint=True) == expected, kind
    if "corpus" not in usual:
        usual["corpus"] = answers(Reference, loaded, corpus)
    assert usual["corpus"] != expected, "they change answers"


@pytest.mark.parametrize("engine", ["reference", "wave"])
def test_settings_that_are_taken_over_are_recorded_one_by_one(
    weights: Path, corpus: Corpus, tmp_path: Path, engine: str
) -> None:
    settings = QWEN | {"repetition_penalty": 1.05, "max_length": 77}
    without = read_journal(run(make_model(weights, engine), corpus, out=tmp_path / "without"))[1]
    weights = with_settings(weights, tmp_path / "own", settings)
    said: list[str] = []
    options = Options(notice=said.append)
    own = {"max_new_tokens": LIMIT, "dtype": "float32"}
    path = run(make_model(weights, engine), corpus, out=tmp_path / "a", options=options)
    record, answered = read_journal(path)
    assert record.decoding == own
    assert [p.answer for p in answered] == [p.answer for p in without]
    assert len(said) == 1
    for name, value in settings.items():
        assert f"{name} {value}" in said[0]
    model = make_model(weights, engine, from_checkpoint=True, temperature=0.8, seed=3)
    path = run(model, corpus, out=tmp_path / "b", options=options)
    recorded = own | {"from_checkpoint": True, "seed": 3, "temperature": 0.8}
    assert read_journal(path)[0].decoding == recorded | {
        "top_k": 20,
        "top_p": 0.95,
        "repetition_penalty": 1.05,
    }
    assert len(said) == 1
    # A finished run needs no file of the checkpoint.
    size = path.stat().st_size
    weights.rename(tmp_path / "elsewhere")
    run(model, corpus, out=tmp_path / "b")
    assert path.stat().st_size == size


@pytest.mark.parametrize("engine", ["reference", "wave"])
@pytest.mark.parametrize("settings", REFUSED.values(), ids=REFUSED)
def test_what_can_not_be_obeyed_is_refused_before_anything_runs(
    weights: Path, corpus: Corpus, tmp_path: Path, settings: dict[str, Any], engine: str
) -> None:
    weights = with_settings(weights, tmp_path / "own", settings)
    model = make_model(weights, engine, from_checkpoint=True)
    path = tmp_path / "run.jsonl"
    with pytest.raises(EngineError, match=f"decodes with .*{next(iter(settings))}") as error:
        run(model, corpus, out=path)
    assert "\n" not in str(error.value)
    assert not path.exists()


@pytest.mark.parametrize("engine", ["reference", "wave"])
def test_a_least_length_beyond_the_limit_is_obeyed(
    weights: Path, corpus: Corpus, tmp_path: Path, engine: str
) -> None:
    settings = {"min_length": 500, "sequence_bias": [[[0], 60.0]]}
    weights = with_settings(weights, tmp_path / "own", settings)
    model = make_model(weights, engine, from_checkpoint=True)
    found = read_journal(run(model, corpus, out=tmp_path / "runs"))[1]
    assert {p.tokens_out for p in found} == {LIMIT}


def test_constrained_decoding_takes_no_settings_over() -> None:
    with pytest.raises((RegistryError, ValueError), match="does not go with 'mode: constrained'"):
        make_model(Path("any"), "wave", mode="constrained", from_checkpoint=True)
