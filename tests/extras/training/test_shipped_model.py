"""The shipped tuned model: its training data, checksums and model card."""

from __future__ import annotations

from pathlib import Path

import pytest

from cradle_engines.local.revision import adapter_digest
from cradle_extras.training.card import write_card
from cradle_extras.training.recipe import load_extra, load_recipe
from cradle_extras.training.record import load_learned, read_training
from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.detection import load_registry
from cradle_lib.errors import EngineError

NAME = "smollm2-135m-tuned"
ADAPTER = paths.DATA / "adapters" / NAME


def test_the_shipped_model_was_trained_on_the_shipped_train_split() -> None:
    record = read_training(ADAPTER)
    splits = {name: load_corpus("surrogate", name) for name in ("train", "dev", "test")}
    assert record.fingerprint == splits["train"].fingerprint
    assert record.recipe == load_recipe("processor")
    extra = load_extra(record.recipe)
    assert extra is not None
    assert record.extra == extra.fingerprint
    assert record.held_out == {
        splits[name].name: splits[name].fingerprint for name in ("dev", "test")
    }
    best = max(record.dev, key=lambda row: row["micro_f1"])
    assert record.chosen == int(best["step"])


def test_the_dialogues_that_were_learned_are_those_of_the_record() -> None:
    record = read_training(ADAPTER)
    train, extra = load_learned(record)
    assert train is not None
    assert extra is not None
    assert (train.name, train.fingerprint) == (record.corpus, record.fingerprint)
    assert (extra.fingerprint, len(train), len(extra)) == (record.extra, 3058, 1210)
    # A file of somebody's own is not found by its name.
    own = record.model_copy(update={"corpus": "mine"})
    assert load_learned(own)[0] is None
    found = load_learned(own, paths.SURROGATE / "train.parquet")[0]
    assert found is not None
    assert found.fingerprint == record.fingerprint


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"fingerprint": "0" * 12}, "surrogate-train"),
        ({"corpus": "mine", "fingerprint": "0" * 12}, "surrogate-test"),
        ({"extra": "0" * 12}, "short_texts"),
    ],
)
def test_other_dialogues_than_those_learned_are_refused(changes: dict[str, str], name: str) -> None:
    record = read_training(ADAPTER).model_copy(update=changes)
    file = paths.SURROGATE / "test.parquet" if record.corpus == "mine" else ""
    message = f"{name} has the fingerprint .* training on {record.corpus} has 0{{12}}"
    with pytest.raises(EngineError, match=message):
        load_learned(record, file)


@pytest.mark.parametrize("name", [NAME, f"{NAME}-constrained"])
def test_the_registry_pins_the_adapter_and_its_base(name: str) -> None:
    model = load_registry()[name]
    assert model.adapter_revision == adapter_digest(ADAPTER)
    assert model.base == read_training(ADAPTER).base
    assert model.base_revision == read_training(ADAPTER).base_revision
    assert model.prompt == read_training(ADAPTER).recipe.prompt


def test_the_model_card_is_the_one_that_training_writes(tmp_path: Path) -> None:
    folder = tmp_path / NAME
    write_card(folder, read_training(ADAPTER))
    assert (folder / "README.md").read_bytes() == (ADAPTER / "README.md").read_bytes()
