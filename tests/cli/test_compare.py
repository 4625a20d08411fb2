"""The command ``cradle compare``."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.detection import find_model, load_registry
from cradle_lib.detection.runs.run import run
from cradle_lib.detection.runs.run_model import run_model
from cradle_lib.errors import CradleError

from .in_process import invoke

DIALOGUE = """\
0,User: I have been hurting myself again.,confirm_SH_ongoing
1,User: The bus was late.,none
2,User: I passed my exam!,none
"""
QUICK = ("--permutations", "199")


cradle = partial(invoke, "compare")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "small.csv"
    path.write_text("turn_id,text,labels\n" + 24 * DIALOGUE, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def journals(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    loaded, registry = load_corpus(corpus), load_registry()
    made = {
        name: run(find_model(name, registry), loaded, out=folder)
        for name in ("always-none", "keyword")
    }
    made["part"] = run(find_model("keyword", registry), loaded, out=folder / "part", limit=9)
    return made


def test_a_comparison_prints_differences_and_verdicts(
    corpus: Path, journals: dict[str, Path]
) -> None:
    pair = (journals["always-none"], journals["keyword"], "--corpus", corpus, *QUICK)
    done = cradle(*pair)
    assert done.exit_code == 0, done.output
    assert "+100.0" in done.stdout
    assert "significant" in done.stdout
    assert "No difference varies over the dialogues" in done.stdout
    assert "cradle|lvl:turn|" in done.stdout
    # A small p-value is never shown as 0.
    assert " 0.0000" not in done.stdout
    read = json.loads(cradle(*pair, "--json").stdout)
    rows = read["differences"]
    turn = next(d for d in rows if (d["level"], d["score"]) == ("turn", "micro_f1"))
    assert (turn["baseline_score"], turn["own_score"]) == (0.0, 1.0)
    # None of the 199 seeded permutations is as extreme as the difference.
    assert turn["p"] == 1 / 200


def test_different_dialogues_are_compared_only_with_common(
    corpus: Path, journals: dict[str, Path]
) -> None:
    both = (journals["always-none"], journals["part"], "--corpus", corpus, *QUICK)
    refused = cradle(*both)
    assert isinstance(refused.exception, CradleError)
    assert "27 of 72 user turns" in str(refused.exception)
    assert "--common" in str(refused.exception)
    done = cradle(*both, "--common")
    assert done.exit_code == 0, done.output
    assert "|n:9|" in done.stdout
    assert "too few cases" in done.stdout


def test_stored_runs_are_selected_by_model_id_even_if_a_file_has_that_name(
    corpus: Path, journals: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RUNS", journals["keyword"].parent.parent)
    monkeypatch.setattr(paths, "SHIPPED_RUNS", corpus.parent)
    dotted = cradle("keyword", "qwen2.5-72b", "--corpus", corpus, *QUICK)
    assert isinstance(dotted.exception, CradleError)
    assert "qwen2.5-72b.jsonl: there is no run of" in str(dotted.exception)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "keyword").write_text("not a journal\n", encoding="utf-8")
    done = cradle("keyword", "always-none", "--corpus", corpus, *QUICK)
    assert done.exit_code == 0, done.output
    assert "Against Keyword lexicon" in done.stdout


def test_a_run_without_an_entry_is_compared_by_the_name_of_its_journal(
    corpus: Path, journals: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    loaded = load_corpus(corpus)
    run_model("always-none", loaded)
    run_model(lambda prompt: "none", loaded, name="My function")
    done = cradle("always-none", "my-function", "--corpus", corpus, *QUICK)
    assert done.exit_code == 0, done.output
    assert "My function" in done.stdout
    assert isinstance(cradle("always-none", "absent", "--corpus", corpus).exception, CradleError)
