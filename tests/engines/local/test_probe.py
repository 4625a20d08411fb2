"""The probe, compared with scikit-learn on hidden states of plain forward passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler

from cradle_engines.local import local_engine, probe
from cradle_engines.local.local_engine import Local, load_local
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.corpus.release import write_release
from cradle_lib.detection import Model, Outcome, load_predictions, read_journal
from cradle_lib.detection.baselines.tfidf import fit_labels
from cradle_lib.detection.models import engine as engine_module
from cradle_lib.detection.models.engine import Options
from cradle_lib.detection.protocol.session import Answer, Session
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError
from cradle_lib.labels import BITS, format_mask
from cradle_lib.prompts import Template, load_template

from ...detection.dialogues import make_corpus
from .tiny_models import first_prompt, make_model, make_random, make_weights

LINES = [("I am so tired of it all.", "alert_ongoing"), ("The bus was late.", "none")]
LINES += [("I hurt myself again.", "confirm_SH_ongoing"), ("We had soup.", "none")]


def write_split(path: Path, dialogues: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    orders = [chance.permutation(len(LINES)) for _ in range(dialogues)]
    lines = [[LINES[place] for place in order] for order in orders]
    rows = [
        [("User", f"{t} {chance.integers(99)}", labels) for t, labels in each] for each in lines
    ]
    write_release(make_corpus(rows), path)


def states(corpus: Corpus, local: Local, template: Template) -> tuple[np.ndarray, np.ndarray]:
    found, masks = [], []
    for dialogue in corpus:
        session = Session(dialogue, template)
        for turn in dialogue.user_turns:
            assert session.prompt is not None
            ids = torch.tensor(local.ids([session.prompt]))
            with torch.no_grad():
                hidden = local.lm(ids, output_hidden_states=True).hidden_states
            found.append(hidden[round(2 / 3 * (len(hidden) - 1))][0, -1].double().numpy())
            masks.append(turn.mask)
            session.answer(Answer(format_mask(turn.mask)))
    return np.stack(found), np.array(masks)


@pytest.fixture
def splits(tmp_path: Path) -> tuple[Corpus, Corpus]:
    """The test split and the train split, from files in one folder."""
    write_split(tmp_path / "train.csv", 6, seed=1)
    write_split(tmp_path / "test.csv", 2, seed=2)
    return load_corpus(str(tmp_path / "test.csv")), load_corpus(str(tmp_path / "train.csv"))


def probe_of(folder: Path) -> Model:
    return make_model(folder).model_copy(update={"engine": "probe", "prompt": "brief"})


LINEAR = {"linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 8}
LINEAR |= {"linear_value_head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2}
LINEAR |= {"moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "head_dim": 8}
LINEAR |= {"layer_types": ["linear_attention", "full_attention"]}
# The frequencies change among the lengths of the prompts.
LONG = {"rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 270}
LONG |= {"short_factor": [1.0] * 4, "long_factor": [1.0, 2.0, 4.0, 16.0]}


@pytest.mark.parametrize(
    ("kind", "settings", "cached"),
    [
        ("llama", {"num_hidden_layers": 3}, True),
        # The window is longer than the prompts, but not than every prompt.
        ("mistral", {"sliding_window": 1000}, False),
        ("phi3", {"rope_parameters": LONG, "original_max_position_embeddings": 270}, False),
        ("qwen3_next", LINEAR, False),
        ("mamba", {"state_size": 4}, False),
    ],
)
def test_the_probe_equals_scikit_learn_on_hidden_states_of_whole_prompts(
    splits: tuple[Corpus, Corpus], tmp_path: Path, kind: str, settings: dict[str, Any], cached: bool
) -> None:
    test, train = splits
    model, notices = probe_of(make_random(tmp_path / "model", kind, **settings)), list[str]()
    options = Options(device="cpu", notice=notices.append)
    predictions = load_predictions(
        run(model, test, out=tmp_path, history="gold", options=options), test
    )
    local, template = load_local(model, Options(device="cpu")), load_template("brief")
    learned, masks = states(train, local, template)
    used = [bit for bit in BITS.values() if (masks & bit).any()]
    scaler = StandardScaler().fit(learned)
    oracle = OneVsRestClassifier(LogisticRegression(class_weight="balanced", max_iter=1000))
    oracle.fit(scaler.transform(learned), np.stack([masks & bit > 0 for bit in used], axis=1))
    found = oracle.predict(scaler.transform(states(test, local, template)[0]))
    assert predictions.masks.tolist() == (found @ np.array(used)).tolist()
    assert predictions.masks.any()
    assert f"train:{train.fingerprint}" in str(predictions.record.revision)
    # A cache that can't be reused is reported.
    assert any("can't be reused for another prompt" in each for each in notices) is not cached


@pytest.mark.parametrize("engine", ["probe", "reference"])
def test_loading_and_training_do_not_count_as_time_of_an_answer(
    splits: tuple[Corpus, Corpus], tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = [0]

    def slow(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            hours[0] += 1
            return function(*args, **more)

        return call

    monkeypatch.setattr(local_engine, "load_local", slow(load_local))
    monkeypatch.setattr(probe, "fit_labels", slow(fit_labels))
    clock = SimpleNamespace(perf_counter=lambda: 3600.0 * hours[0])
    monkeypatch.setattr(engine_module, "time", clock)
    model = probe_of(make_random(tmp_path / "model", "llama"))
    path = run(model.model_copy(update={"engine": engine}), splits[0], out=tmp_path)
    assert hours == [2 if engine == "probe" else 1]
    assert {answer.seconds for answer in read_journal(path)[1]} == {0}


def test_without_a_train_split_no_weights_are_loaded(tmp_path: Path) -> None:
    write_split(tmp_path / "test.csv", 1, seed=0)
    with pytest.raises(EngineError, match="learns from the train split"):
        run(probe_of(tmp_path / "nowhere"), load_corpus(str(tmp_path / "test.csv")), out=tmp_path)


def test_a_prompt_longer_than_the_context_fails_with_both_numbers(
    weights: Path, splits: tuple[Corpus, Corpus], tmp_path: Path
) -> None:
    local = load_local(make_model(weights), Options(device="cpu"))
    longest = max(len(local.ids([first_prompt(each, "brief")])[0]) for each in splits[0])
    # The first questions of the dialogues fit, and later ones do not.
    folder = make_weights(tmp_path / "narrow", context=longest)
    answers = read_journal(run(probe_of(folder), splits[0], out=tmp_path, history="gold"))[1]
    failed = [answer for answer in answers if answer.outcome is Outcome.FAILED]
    assert 0 < len(failed) < len(answers)
    assert all(f"and the model's context {longest}" in str(a.reason) for a in failed)
