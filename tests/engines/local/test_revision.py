"""Weights from the Hub: a record has the commit that was loaded, not the branch or tag.

The tests create the files of a Hub cache and need no network.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cradle_engines.local import revision
from cradle_engines.local.revision import base_pin
from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Model, Options, read_journal, run_model, stored_runs
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError, NoRunError

from .conftest import NEW, OLD
from .tiny_models import make_model, make_weights

pytestmark = pytest.mark.usefixtures("short_prompt")


def of_hub(revision: str | None) -> Model:
    changes = {"weights": "lab/tiny", "revision": revision}
    return make_model(Path(), "wave").model_copy(update=changes)


def test_a_resumed_run_uses_its_recorded_commit(refs: Path, corpus: Corpus, tmp_path: Path) -> None:
    path = run(of_hub(None), corpus, out=tmp_path / "runs", limit=1)
    assert read_journal(path)[0].revision == NEW
    (refs / "main").write_text(OLD)
    revision._resolved.cache_clear()
    run(of_hub(None), corpus, out=path)
    record, predictions = read_journal(path)
    assert (record.revision, len(predictions)) == (NEW, len(corpus.gold))
    tagged = run(of_hub("v1"), corpus, out=tmp_path / "tagged", limit=1)
    assert read_journal(tagged)[0].revision == OLD


@pytest.mark.usefixtures("refs")
def test_missing_weights_are_reported_in_one_line_without_a_journal(
    corpus: Corpus, tmp_path: Path
) -> None:
    with pytest.raises(EngineError, match=r"the weights of Tiny .lab/tiny. can't") as error:
        run(of_hub("v2"), corpus, out=tmp_path / "run.jsonl")
    assert "\n" not in str(error.value)
    assert "`hf download lab/tiny`" in str(error.value)
    assert not (tmp_path / "run.jsonl").exists()


def test_a_folder_that_changed_is_asked_again_and_one_that_was_restored_is_not(
    corpus: Corpus, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Python, and on a page, which runs no model."""
    folder = make_weights(tmp_path / "mine")
    kept = shutil.copytree(folder, tmp_path / "kept")
    spec, options = f"hf:{folder}", Options(device="cpu")
    settings = {"prompt": "short", "max_new_tokens": 4, "limit": 1, "options": options}
    first = run_model(spec, corpus, **settings)
    (folder / "README.md").write_text("Notes.")
    assert run_model(spec, corpus, **settings).files == first.files
    make_weights(folder, family="qwen3")
    monkeypatch.setenv(paths.PAGE, "any")
    with pytest.raises(NoRunError, match=f"revision is .* here and '{first.record.revision}' ther"):
        run_model(spec, corpus, **settings)
    monkeypatch.delenv(paths.PAGE)
    second = run_model(spec, corpus, **settings)
    assert second.files != first.files
    assert second.record.revision == base_pin(make_model(folder))
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
    monkeypatch.setenv(paths.PAGE, "any")
    again = run_model(spec, corpus, **settings)
    assert (again.files, again.answers) == (first.files, first.answers)
    # Without the folder, its run is all that is known.
    shutil.rmtree(folder)
    assert run_model(spec, corpus, **settings).files == first.files


def test_specs_with_the_same_id_have_different_runs(
    corpus: Corpus, tmp_path: Path, home: Path
) -> None:
    make_weights(tmp_path / "a" / "b")
    make_weights(tmp_path / "a_b", family="qwen3")
    settings = {"prompt": "short", "max_new_tokens": 4, "options": Options(device="cpu")}
    specs = [f"hf:{tmp_path / 'a' / 'b'}", f"hf:{tmp_path / 'a_b'}"]
    made = [run_model(spec, corpus, **settings) for spec in specs]
    assert made[0].record.model == made[1].record.model
    assert [found.record.weights for found in made] == [spec.partition(":")[2] for spec in specs]
    assert made[0].answers != made[1].answers
    for spec, found in zip(specs, made, strict=True):
        assert run_model(spec, corpus, **settings).answers == found.answers
    assert len(stored_runs(corpus)) == 2
