"""Functions and specs as models: prompts, identity of runs, and errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import (
    Prompt,
    load_registry,
    read_journal,
    resolve,
    run_model,
    stored_runs,
)
from cradle_lib.detection.models import registry
from cradle_lib.errors import CorpusError, EngineError, RegistryError
from cradle_lib.labels import BITS

pytestmark = pytest.mark.usefixtures("home")


def test_a_function_gets_the_prompt_and_runs_like_any_model(corpus: Corpus) -> None:
    seen: list[Prompt] = []

    def careful(prompt: Prompt) -> str:
        seen.append(prompt)
        return "confirm_SI_passive_ongoing" if "wish" in prompt.current else "none"

    predictions = run_model(careful, corpus)
    first = corpus.dialogues[0]
    assert predictions.masks.tolist()[:3] == [0, 0, BITS["confirm_SI_passive_ongoing"]]
    last = seen[2]
    assert last.current == first.turns[4].text
    assert last.history.startswith(f"User: {first.turns[0].text}\nMODEL_TAG: none\nListener: ")
    assert last.messages == [{"role": "user", "content": last.text}]
    record = predictions.record
    assert (record.model, record.group, record.engine) == ("careful", "own", "function")
    assert str(record.source).startswith("def careful(prompt: Prompt) -> str:")


def test_a_changed_function_is_run_again(
    corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run_model(lambda prompt: "none", corpus, name="One")
    made = first.files[0].read_bytes()
    again = run_model(lambda prompt: "alert_past", corpus, name="One")
    assert first.record.code != again.record.code
    assert (first.masks == 0).all()
    assert (again.masks == BITS["alert_past"]).all()
    assert "The previous file was renamed to" in capsys.readouterr().err
    assert first.files[0].with_suffix(".outdated").read_bytes() == made
    versioned = run_model(lambda prompt: "alert_past", corpus, name="One", version="2")
    assert str(versioned.record.code).endswith(" version:2")
    kept = sorted(file.name for file in (paths.RUNS / corpus.name).glob("[!.]*"))
    assert kept == ["one.jsonl", "one.outdated", "one.outdated-2"]


def test_an_exception_fails_its_turn_and_a_non_string_is_unparsed(corpus: Corpus) -> None:
    answers = iter(["none", ValueError("odd\nturn"), 7, "none", "alert_past", CorpusError("k")])

    def unstable(prompt: Prompt) -> object:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    run_model(unstable, corpus, version="1")
    [path] = (paths.RUNS / corpus.name).glob("*.jsonl")
    stored = read_journal(path)[1]
    assert [str(p.outcome) for p in stored] == ["ok", "failed", "unparsed", "ok", "ok", "failed"]
    assert stored[1].reason == "ValueError: odd turn"
    # A CradleError raised by an engine ends its run, but not the run of a function.
    assert stored[5].reason == "CorpusError: k"
    assert stored[2].reason == "the answer is int, expected text"


def test_a_function_is_identified_by_its_source_or_version(corpus: Corpus) -> None:
    class Lexicon:
        def __call__(self, prompt: Prompt) -> str:
            return "none"

    record = run_model(Lexicon(), corpus, version="1").record
    assert (record.name, record.code, record.source) == ("Lexicon", "version:1", None)
    scope: dict[str, Callable[[Prompt], object]] = {}
    exec("def answer(prompt):\n    return 'none'\n", scope)
    with pytest.raises(EngineError, match=r"answer uses `answer` \(no source\)"):
        run_model(scope["answer"], corpus)
    assert run_model(scope["answer"], corpus, version="3").record.code == "version:3"
    with pytest.raises(RegistryError, match="a function takes no temperature"):
        run_model(lambda prompt: "none", corpus, name="F", temperature=1)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Qwen3-32B", "own-qwen3-32b"),
        ("QWEN3_32B", "own-qwen3-32b"),
        ("keyword", "own-keyword"),
        ("Qwen3-33B", "qwen3-33b"),
        ("keyword.history-gold", "keyword-history-gold"),
        ("x.shard-0-of-2", "x-shard-0-of-2"),
    ],
)
def test_a_function_never_has_an_id_of_the_registry(
    name: str, expected: str, corpus: Corpus
) -> None:
    run_model("keyword", corpus)
    mine = run_model(lambda prompt: "alert_past", corpus, name=name)
    assert (mine.record.model, mine.record.name) == (expected, name)
    assert mine.record.model not in load_registry()
    assert mine.files[0].name == f"{expected}.jsonl"
    # The run of the registry's model is another one.
    assert run_model("keyword", corpus).masks.tolist() != mine.masks.tolist()
    assert len(stored_runs(corpus)) == 2


def test_a_spec_never_has_an_id_of_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = load_registry()
    entries["hf-lab-tiny"] = entries["qwen3-32b"].model_copy(update={"id": "hf-lab-tiny"})
    entries["own-hf-lab-tiny"] = entries["hf-lab-tiny"]
    monkeypatch.setattr(registry, "load_registry", lambda: entries)
    assert resolve("hf:lab/tiny").id == "own-own-hf-lab-tiny"
    assert resolve("hf:LAB/tiny 2").id == "hf-lab-tiny-2"


def test_a_spec_becomes_a_registry_entry() -> None:
    folder = resolve("hf:./out/best", engine="reference", temperature=0.7)
    assert (folder.id, folder.engine, folder.weights) == ("hf-out-best", "reference", "./out/best")
    assert folder.decoding
    assert folder.decoding.settings == {"max_new_tokens": 512, "temperature": 0.7}
    here = resolve("anthropic:mine", base_url="http://127.0.0.1:8000")
    assert not here.remote
    assert here.key is None
    there = resolve("openai:mine", base_url="https://far.example/v1", key="FAR_KEY")
    assert there.remote
    assert there.key
    assert there.key.variable == "FAR_KEY"


@pytest.mark.parametrize(
    ("spec", "settings", "message"),
    [
        ("magic:x", {}, "Expected hf:ORG/NAME"),
        ("hf:x", {"temprature": 1}, "unknown field `temprature` in `decoding`; did you"),
        ("hf:x", {"extra": {"top_p": 1}}, "engine wave does not use 'decoding.extra'"),
        ("hf:x", {"base_url": "http://127.0.0.1:1"}, "has no 'base_url'"),
        ("hf:x", {"engine": "none"}, "no engine 'none'"),
    ],
)
def test_an_invalid_spec_is_refused(spec: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(RegistryError, match=message) as error:
        resolve(spec, **settings)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_names_that_a_legend_would_omit_are_refused_or_shortened(corpus: Corpus) -> None:
    def _private(prompt: Prompt) -> str:
        return "none"

    assert run_model(_private, corpus).record.name == "private"
    problems = {"_private": "field `name` must be one line", "..": r"'\.\.' has no letter or digit"}
    for name, problem in problems.items():
        with pytest.raises(EngineError, match=rf"{problem}.*Give another `name=`"):
            run_model(_private, corpus, name=name)
