"""Training of tiny models: losses, selection, resuming, and errors."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig
from transformers.models.llama.modeling_llama import LlamaMLP

from cradle_engines.local import chat, local_engine
from cradle_engines.local.local_engine import Local, load_local
from cradle_engines.local.revision import WEIGHTS
from cradle_extras.training.checkpoints import complete_checkpoints, score_checkpoint
from cradle_extras.training.recipe import AdapterSettings, Recipe, load_recipe, recipe_names
from cradle_extras.training.record import read_training
from cradle_extras.training.train import Trained, train_model
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import Model, Options, load_predictions
from cradle_lib.detection.runs import identity
from cradle_lib.detection.runs.journal import read_journal
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import CradleError, EngineError, JournalError
from cradle_lib.scoring.evaluate import evaluate

from ...detection.dialogues import make_corpus
from ...engines.local.tiny_models import CHAT, make_model, make_weights
from .dialogues import talks

RECIPE = Recipe(
    prompt="short",
    max_length=2048,
    epochs=2,
    accumulation=2,
    learning_rate=5e-3,
    dtype="float32",
    adapter=AdapterSettings(rank=4, alpha=8),
    save_steps=3,
)


def train(weights: Path, out: Path, corpus: Corpus, **changes: Any) -> Trained:
    recipe = RECIPE.model_copy(update=changes.pop("recipe", {}))
    return train_model(make_model(weights), corpus, out, recipe=recipe, **changes)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("trained")
    weights = make_weights(folder / "weights")
    return train(weights, folder / "out", talks(8), dev=talks(4), shared=True)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[Any]]:
    """References to the models that were loaded for training; they don't keep a model in memory."""
    models: list[weakref.ref[Any]] = []

    def loading(model: Model, options: Options) -> Any:
        local = load_local(model, options)
        models.append(weakref.ref(local.lm))
        return local

    monkeypatch.setattr("cradle_extras.training.train.load_local", loading)
    return models


def write_texts(path: Path, text: str, labels: str) -> None:
    """Writes a corpus of one dialogue with one user turn."""
    path.write_text(f"dialogue_id,turn_id,text,labels\n1,0,User: {text},{labels}\n", "utf-8")


def stop_at(last: int) -> Callable[..., None]:
    """Makes a function that interrupts training after a step."""

    def stop(step: int, *_: object) -> None:
        if step == last:
            raise KeyboardInterrupt

    return stop


def test_the_card_does_not_claim_a_comparison_of_splits_that_was_skipped(trained: Trained) -> None:
    assert trained.record.held_out == {}
    card = (trained.folder / "README.md").read_text("utf-8")
    assert "not checked" in card
    assert "shares no dialogue" not in card


def test_the_loss_falls_and_the_record_is_complete(trained: Trained, corpus: Corpus) -> None:
    record = read_training(trained.folder)
    assert record == trained.record
    losses = [row["loss"] for row in record.losses]
    assert len(losses) == 2 * len(corpus) // 2
    assert sum(losses[-3:]) < 0.96 * sum(losses[:3])
    assert record.dialogues == len(corpus)
    assert record.turns == sum(len(dialogue.user_turns) for dialogue in corpus)
    assert record.tokens < record.plain_tokens
    assert record.packages.keys() >= {"trl", "peft", "torch"}
    assert [row["hours"] for row in record.losses] == sorted(r["hours"] for r in record.losses)


def test_each_epoch_is_scored_on_dev_and_the_best_is_kept(trained: Trained) -> None:
    record = trained.record
    steps = [row["step"] for row in record.dev]
    assert steps == [4, 8]
    best = max(record.dev, key=lambda row: (row["micro_f1"], -row["step"]))
    assert record.chosen == best["step"]
    # The kept weights give the recorded score.
    dev = talks(4)
    path = run(trained.model, dev, out=trained.folder / "again.jsonl")
    assert evaluate(load_predictions(path, dev), draws=0).estimate("micro_f1").value == (
        pytest.approx(best["micro_f1"])
    )


def test_all_weights_can_be_trained(weights: Path, corpus: Corpus, tmp_path: Path) -> None:
    done = train(weights, tmp_path / "out", corpus, recipe={"adapter": None, "epochs": 1})
    before = load_file(weights / "model.safetensors")
    after = load_file(done.folder / "model.safetensors")
    assert before.keys() == after.keys()
    assert all(not torch.equal(before[name], after[name]) for name in before if "q_proj" in name)
    path = run(done.model, corpus, out=tmp_path / "run.jsonl")
    assert load_predictions(path, corpus).record.weights == str(done.folder)


def test_the_papers_recipe_learns_as_in_float32_and_weights_in_bfloat16_would_not(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = load_file(weights / "model.safetensors")
    # These weights are thirty times as large as those of the paper's model, and so is the rate.
    settings = {
        "prompt": "short",
        "max_length": 2048,
        "epochs": 3,
        "accumulation": 1,
        "learning_rate": 2e-4,
    }
    settings["gradient_checkpointing"] = False
    changed, falls, done = {}, {}, {}
    for name, dtype in (("float32", "float32"), ("paper", "bfloat16"), ("pure", "bfloat16")):
        if name == "pure":
            monkeypatch.setattr(Recipe, "base_dtype", "bfloat16")
        recipe = load_recipe("paper").model_copy(update={**settings, "dtype": dtype})
        done[name] = train_model(make_model(weights), talks(8), tmp_path / name, recipe=recipe)
        *_, last = complete_checkpoints(tmp_path / name)
        after = load_file(last / "model.safetensors")
        same = sum(int((after[part] == before[part]).sum()) for part in before)
        changed[name] = 1 - same / sum(tensor.numel() for tensor in before.values())
        losses = [row["loss"] for row in done[name].record.losses]
        falls[name] = sum(losses[:6]) - sum(losses[-6:])
    # The others are embeddings of tokens that do not occur.
    assert changed["float32"] > 0.8
    assert changed["paper"] == pytest.approx(changed["float32"], rel=0.01)
    assert falls["paper"] == pytest.approx(falls["float32"], rel=0.1)
    assert falls["pure"] < falls["float32"] / 3
    # Checkpoints can be resumed in float32; the model for inference is half as large.
    stored = load_file(done["paper"].folder / "model.safetensors")
    *_, last = complete_checkpoints(done["paper"].folder)
    exact = load_file(last / "model.safetensors")
    assert {tensor.dtype for tensor in exact.values()} == {torch.float32}
    assert all(torch.equal(stored[name], exact[name].to(torch.bfloat16)) for name in exact)
    config = AutoConfig.from_pretrained(done["paper"].folder)
    assert config.dtype is torch.bfloat16


def test_adapters_are_trained_in_float32_and_leave_memory_before_checkpoints_are_scored(
    weights: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    loaded: list[weakref.ref[Any]],
) -> None:
    formats: dict[bool, set[torch.dtype]] = {True: set(), False: set()}

    def look(*_: object) -> None:
        for parameter in loaded[0]().parameters():
            formats[parameter.requires_grad].add(parameter.dtype)

    def scoring(*arguments: Any) -> Any:
        assert loaded[0]() is None
        return score_checkpoint(*arguments)

    monkeypatch.setattr("cradle_extras.training.train.score_checkpoint", scoring)
    recipe = {"dtype": "bfloat16", "epochs": 1, "save_steps": None}
    done = train(
        weights, tmp_path, talks(2), dev=talks(1), shared=True, recipe=recipe, progress=look
    )
    assert formats == {True: {torch.float32}, False: {torch.bfloat16}}
    assert len(done.record.dev) == 1


@pytest.mark.parametrize("adapter", [RECIPE.adapter, None])
def test_gradient_checkpointing_keeps_fewer_activations_and_changes_no_loss(
    weights: Path,
    corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    adapter: AdapterSettings | None,
) -> None:
    computed = 0
    real = LlamaMLP.forward

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        nonlocal computed
        # Checkpoints of the training are not scored here, but loading runs the model too.
        computed += self.training
        return real(self, x)

    monkeypatch.setattr(LlamaMLP, "forward", forward)
    passes, losses = [], []
    for checkpointing in (False, True):
        computed = 0
        recipe = {"adapter": adapter, "epochs": 1, "gradient_checkpointing": checkpointing}
        done = train(weights, tmp_path / str(checkpointing), corpus, recipe=recipe)
        passes.append(computed)
        losses.append([row["loss"] for row in done.record.losses])
    # One pass of two layers for each dialogue, and each layer again.
    assert passes == [2 * len(corpus), 4 * len(corpus)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_a_stopped_training_can_be_resumed(
    trained: Trained, corpus: Corpus, tmp_path: Path
) -> None:
    base, out = Path(trained.record.base), tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        train(base, out, corpus, progress=stop_at(7))
    # An incomplete checkpoint is not used, and neither is another folder.
    for name in ("checkpoint-8", "checkpoint-best"):
        (out / name).mkdir()
    again = train(base, out, corpus).record
    expected = [row["loss"] for row in trained.record.losses]
    assert [row["loss"] for row in again.losses] == pytest.approx(expected, rel=1e-4)
    assert [row["step"] for row in again.losses] == list(range(1, 9))


def test_a_nan_loss_stops_training_and_keeps_the_last_checkpoint(
    weights: Path, corpus: Corpus, tmp_path: Path, loaded: list[weakref.ref[Any]]
) -> None:
    def poison(step: int, *_: object) -> None:
        if step == 5:
            for parameter in loaded[0]().parameters():
                parameter.data.fill_(float("nan"))

    with pytest.raises(EngineError, match="loss became nan at step 6"):
        train(weights, tmp_path / "out", corpus, progress=poison)
    *_, kept = complete_checkpoints(tmp_path / "out")
    assert kept.name == "checkpoint-4"
    assert not any(t.isnan().any() for t in load_file(kept / WEIGHTS).values())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"test": talks(3)}, "shares 3 dialogues with tiny"),
        ({"recipe": {"extra": "absent.csv"}}, "`extra` is 'absent.csv', and there is no such file"),
        ({"recipe": {"extra": "unlabelled.csv"}}, "unlabelled: no dialogue has gold labels"),
        (
            {"recipe": {"extra": "data/probes/probes.csv"}},
            "shares 330 dialogues with probes",
        ),
        ({"recipe": {"max_length": 16}}, "no first user turn, .* fits into 16 tokens"),
        ({"recipe": {"max_length": 2049}}, "max_length is 2,049 .* reads at most 2,048"),
        ({"corpus": "unlabelled"}, "no user turn has a label"),
        ({"weights": "plain"}, "has no chat template"),
    ],
)
def test_invalid_corpora_and_bases_are_refused(
    weights: Path,
    corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    words: str,
) -> None:
    if changes.pop("corpus", None):
        corpus = make_corpus([[("User", "Hello there.", "none")]])
    if changes.pop("weights", None):
        weights = make_weights(tmp_path / "plain", chat=None)
    monkeypatch.chdir(tmp_path)
    write_texts(Path("unlabelled.csv"), "Hello there.", "")
    with pytest.raises(CradleError, match=words):
        train(weights, tmp_path / "out", corpus, **changes)
    assert not (tmp_path / "out").exists()


def test_extra_dialogues_are_all_learned_and_must_not_be_in_a_held_out_split(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_texts(Path("extra.csv"), "I wish I were dead.", "confirm_SI_passive_ongoing")
    short = {"extra": "extra.csv", "dialogues": 2, "epochs": 1}
    done = train(weights, tmp_path / "out", talks(8), recipe=short)
    extra = load_corpus("extra.csv")
    assert (done.record.dialogues, done.record.extra) == (2 + len(extra), extra.fingerprint)
    card = (done.folder / "README.md").read_text("utf-8")
    assert "those of `extra.csv` included" in card
    assert "no real person" not in card
    with pytest.raises(EngineError, match="extra shares 1 dialogues with extra"):
        train(weights, tmp_path / "other", talks(8), recipe=short, test=extra)
    write_texts(Path("extra.csv"), "I was hit.", "confirm_DV_past")
    with pytest.raises(EngineError, match="another extra"):
        train(weights, tmp_path / "out", talks(8), recipe=short)


def test_a_finished_training_is_not_repeated(trained: Trained, corpus: Corpus) -> None:
    def never(*now: object) -> None:
        raise AssertionError(now)

    base = Path(trained.record.base)
    again = train(base, trained.folder, corpus, dev=talks(4), shared=True, progress=never).record
    assert (again.losses, again.dev) == (trained.record.losses, trained.record.dev)
    assert again.chosen == trained.record.chosen
    with pytest.raises(EngineError, match=r"another recipe \(learning_rate\)"):
        train(base, trained.folder, corpus, recipe={"learning_rate": 1e-4})
    # The stored predictions are about another dev split.
    with pytest.raises(JournalError, match="belongs to another run"):
        train(base, trained.folder, corpus, dev=replace(talks(4), name="other"), shared=True)
    assert read_training(trained.folder) == again


@pytest.mark.parametrize(
    "name", ["checkpoint-500/config.json", "checkpoint-best/a", "model.safetensors", "README.md"]
)
def test_the_folder_of_another_program_is_refused_and_kept(
    weights: Path, corpus: Corpus, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "out" / name
    file.parent.mkdir(parents=True)
    file.write_text("another program's")
    with pytest.raises(
        EngineError, match=rf"out: contains {name.partition('/')[0]} and no training"
    ):
        train(weights, tmp_path / "out", corpus)
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == [file]


def test_a_dev_score_of_0_and_a_cropped_corpus_are_stated(
    weights: Path, corpus: Corpus, tmp_path: Path
) -> None:
    notices: list[str] = []
    short = {"epochs": 1, "crop": 0.5, "save_steps": None, "learning_rate": 1e-9}
    dev = talks(2)
    done = train(
        weights, tmp_path, corpus, dev=dev, shared=True, recipe=short, notice=notices.append
    )
    assert [row["micro_f1"] for row in done.record.dev] == [0]
    assert any("micro F1 of 0 on tiny" in notice for notice in notices)
    assert "50 % of the dialogues cropped" in (done.folder / "README.md").read_text("utf-8")


def test_a_resumed_training_keeps_its_first_date(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts: set[str] = set()
    real = Local.ids

    def recording(self: Local, questions: Any) -> list[list[int]]:
        ids = real(self, questions)
        prompts.update(self.tokenizer.decode(each)[:10] for each in ids)
        return ids

    monkeypatch.setattr(Local, "ids", recording)
    for module in (chat, identity, local_engine):
        monkeypatch.setattr(module, "today", lambda: "2031-03-03")
    weights = make_weights(tmp_path / "dated", "{{ strftime_now('%Y-%m-%d') }}" + CHAT)
    short, out = {"epochs": 1}, tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        train(weights, out, corpus, recipe=short, progress=stop_at(1))
    # Training resumes on another day, and scores dev.
    for module in (chat, identity, local_engine):
        monkeypatch.setattr(module, "today", lambda: "2031-03-04")
    done = train(weights, out, corpus, dev=talks(2), shared=True, recipe=short)
    assert done.record.date == "2031-03-03"
    # Inference uses the date of training.
    path = run(done.model, corpus, out=tmp_path, limit=1)
    assert read_journal(path)[0].decoding["date"] == "2031-03-03"
    assert prompts == {"2031-03-03"}
    dated = make_model(weights, date="2031-03-05")
    with pytest.raises(EngineError, match="another date"):
        train_model(dated, corpus, out, recipe=RECIPE.model_copy(update=short), shared=True)


def test_shipped_recipes_are_valid_and_one_has_the_papers_settings() -> None:
    assert recipe_names() == ["lora", "paper", "processor"]
    paper = load_recipe("paper")
    assert (paper.epochs, paper.max_length, paper.accumulation) == (3, 4096, 16)
    assert (paper.learning_rate, paper.warmup, paper.adapter) == (5e-6, 0.05, None)
    saves_memory = {name: load_recipe(name).gradient_checkpointing for name in recipe_names()}
    assert saves_memory == {"lora": True, "paper": True, "processor": False}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("epoch: 3", "mine.yml: unknown field `epoch`; did you mean `epochs`"),
        ("a: [", "can't be read"),
    ],
)
def test_an_invalid_recipe_is_refused_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "mine.yml"
    file.write_text(text)
    with pytest.raises(EngineError, match=words):
        load_recipe(file)
    with pytest.raises(EngineError, match="no recipe 'absent'"):
        load_recipe("absent")
