"""The model registry: the shipped entries, and messages about invalid ones."""

from __future__ import annotations

import json
import math
import re
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import pytest

from cradle_lib import load_corpus, paths, strict_yaml
from cradle_lib.cli.console import err
from cradle_lib.cli.options import run_settings
from cradle_lib.detection import Decoding, Model, Options, find_model, load_registry, resolve
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError, RegistryError
from cradle_lib.prompts import load_template
from cradle_lib.published import published_table

from ...cli.in_process import invoke


def test_every_model_with_published_numbers_is_registered_once() -> None:
    suffixes = {
        key.rsplit(".", 1)[1] if "2.5-72b" not in key else "qwen2.5-72b"
        for key in published_table()
        if key.startswith("result.")
    }
    keys = [m.published for m in load_registry().values() if m.published]
    assert suffixes <= set(keys)
    assert len(keys) == len(set(keys)) == 10


def test_models_of_the_paper_have_its_decoding_settings_and_prices() -> None:
    # Appendix C.1: open models bfloat16, greedy, 512 tokens; APIs 256 tokens, temperature
    # 0 for Claude and Gemini, the default for GPT.
    for model in load_registry().values():
        assert load_template(model.prompt)
        if model.engine == "reference" and model.group in ("open", "fine-tuned"):
            assert model.decoding
            assert (model.decoding.max_new_tokens, model.decoding.dtype) == (512, "bfloat16")
        if model.group == "proprietary":
            assert model.decoding
            usual = None if model.id == "gpt-5.1" or not model.published else 0.0
            assert (model.decoding.max_new_tokens, model.decoding.temperature) == (256, usual)
            assert model.remote
            assert model.key
            assert model.prices
            assert model.prices.cached is not None
            assert model.prices.cached < model.prices.input < model.prices.output
    assert load_registry()["cradle-qwen3-32b"].weights == "SungJoo/cradle-dialogue-qwen3-32b-2epoch"


ENTRY = "a: {name: A, group: open, weights: w, engine: "
SERVED = {"id": "m", "name": "M", "group": "open", "engine": "openai", "weights": "w"}
KEYWORD = "{}: {{name: A, group: baseline, engine: keyword}}\n"
PRICES = "output: 1, date: 2026-01-01, source: s}}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {name: A, group: open, engine: reference}", "model `a`: engine reference needs"),
        (
            "A b: {name: A, group: baseline, engine: keyword}",
            "model `A b`: field `id` must be lower-case letters, digits",
        ),
        (ENTRY + "wave, temperature: 0}", "unknown field `temperature`; it belongs in `decoding`"),
        (ENTRY + "openai, key: sk-secret}", "field `key` must be the name of an environment var"),
        (
            ENTRY + "wave, decoding: {chat: {x: []}, date: soon, mode: free}}",
            "`decoding.mode` must be 'constrained'; field `decoding.chat.x` must be text, a number"
            ", true or false; field `decoding.date`: must be a date such as 2026",
        ),
        ("a: {id: b, name: A, engine: wave}", "its `id` must be its key, a"),
        ("a:\n\tname: A", r"a tab. Indent with spaces \(line 2, column 1\)"),
        ("a:\n name: My: 8B", r"Put quotes around a text with a colon.*\(line 2, column 10\)"),
        (ENTRY + "openai}", "a provider's own endpoint is not on this machine"),
        (ENTRY + "openai, remote: true}", "needs 'key'"),
        (ENTRY + "wave, prices: {input: 1, " + PRICES, "engine wave calls no service"),
        (
            ENTRY + "openai, base_url: 'http://[::1]/v1', prices: {input: -1, " + PRICES,
            "field `prices.input` must be at least 0",
        ),
        ("a: 3", "model `a`: the content must be a mapping with the fields id, name"),
        (
            'a: {name: "<b>A</b>", group: open, engine: wave, weights: w}',
            "field `name` must be one",
        ),
        ("- a", "expected a mapping"),
        (KEYWORD.format(3) + KEYWORD.format("'3'"), "model `3` appears twice"),
    ],
)
def test_an_invalid_registry_is_refused_by_field(
    tmp_path: Path, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "models.yml"
    path.write_text(text)
    with pytest.raises(RegistryError, match=message) as error:
        load_registry(path)
    assert "\n" not in str(error.value)
    assert "sk-secret" not in str(error.value)
    # `cradle infer` prints the same sentence, whichever model it is to run.
    monkeypatch.setattr(load_registry, "__defaults__", (path,))
    assert str(invoke("infer", "--model", "keyword").exception) == str(error.value)


@pytest.mark.parametrize("url", ["http://localhost:8000/v1", "http://[::1]:8000/v1"])
def test_an_address_of_this_machine_is_not_remote(url: str) -> None:
    assert Model(**SERVED, base_url=url).remote is False  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("https://api.example.com/v1", "set 'remote: true'"),
        ("http://localhost.example.com/v1", "set 'remote: true'"),
        ("http://local\thost:8000/v1", "must be an address such as"),
        ("localhost:8000", "must be an address such as"),
        ("http://\u0131ocalhost/v1", "must be an address such as"),
    ],
)
def test_addresses_are_valid_and_remote_ones_are_declared(url: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Model(**SERVED, base_url=url)  # type: ignore[arg-type]


def test_all_faults_of_all_entries_are_named_and_a_similar_id_is_suggested(tmp_path: Path) -> None:
    path = tmp_path / "models.yml"
    path.write_text(
        "good: {name: Good, group: baseline, engine: keyword, default: true}\n"
        "bad: {name: 3, group: open, engine: wave, colour: red}\n"
        "odd: {name: Odd, group: open, engine: magic}\n"
    )
    with pytest.raises(RegistryError) as error:
        load_registry(path)
    for fault in ("`bad`: field `name` must be text; ", "`odd`: no engine 'magic'", "`colour`"):
        assert fault in str(error.value)
    with pytest.raises(RegistryError, match="Did you mean 'keyword'"):
        find_model("keywort", load_registry())
    with pytest.raises(RegistryError, match="can't be read"):
        load_registry(tmp_path / "absent.yml")


def test_options_of_a_provider_are_recorded_and_cannot_override_the_protocol() -> None:
    fields: dict[str, Any] = SERVED | {"base_url": "http://127.0.0.1:1/v1"}
    options = {"top_p": 0.9, "reasoning_effort": "low"}
    model = Model(**fields, decoding={"extra": options})
    assert model.decoding
    assert model.decoding.settings["extra"] == options
    with pytest.raises(ValueError, match="messages, temperature: not allowed in 'extra'"):
        Model(**fields, decoding={"extra": {"temperature": 1, "messages": []}})
    with pytest.raises(ValueError, match="not JSON compliant"):
        Model(**fields, decoding={"extra": {"top_p": math.nan}})
    with pytest.raises(RegistryError, match=r"^Decoding: unknown field `temprature`; did you mean"):
        Decoding(temprature=1)
    with pytest.raises(RegistryError, match=r"^Decoding: values need names\. Fields: max_new_tok"):
        Decoding("greedy")


def test_numbers_in_options_are_parsed_in_any_notation() -> None:
    text = "extra: {top_p: 9e-1, list: [1_0, 0x10]}, chat: {budget: 1e3, level: 2, on_top: true}"
    decoding = Decoding.model_validate(strict_yaml.load(f"{{{text}}}"))
    # Compared as JSON, which distinguishes 1, true and "1".
    assert json.dumps([decoding.extra, decoding.chat]) == (
        '[{"top_p": 0.9, "list": [10, 16]}, {"budget": 1000.0, "level": 2, "on_top": true}]'
    )


def test_models_that_the_sdk_calls_deprecated_are_marked_and_have_a_successor() -> None:
    from anthropic.resources.messages.messages import DEPRECATED_MODELS
    from anthropic.types import model
    from openai.types.shared import chat_model

    known = {
        "anthropic": get_args(get_args(model.Model)[0]),
        "openai": get_args(chat_model.ChatModel),
    }
    registry = load_registry()
    asked = [one for one in registry.values() if one.remote and one.base_url is None]
    assert len(asked) >= 3
    for one in asked:
        assert one.weights in known[one.engine], one.id
        ends = DEPRECATED_MODELS.get(str(one.weights))
        assert (one.retired is not None) == (ends is not None), one.id
        if one.retired and ends:
            day = datetime.strptime(re.sub(r"(st|nd|rd|th),", ",", ends), "%B %d, %Y")
            assert one.retired.date == day.date()
            successor = registry[str(one.retired.successor)]
            assert successor.retired is None
            assert successor.prices
            assert one.retirement in invoke("models").stdout.replace("\n", " ")


def test_a_run_of_a_retired_model_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    model = load_registry()["claude-4.5-sonnet"]
    options = Options(notice=said.append, consent=lambda *_: False)
    with pytest.raises(EngineError):
        run(model, load_corpus("surrogate"), out=tmp_path, limit=1, options=options)
    assert said[0] == (
        "claude-4.5-sonnet is retired by its provider on 2026-11-30. Its successor here is "
        "claude-5.5-sonnet."
    )


HUB, LAN = "SungJoo/cradle-dialogue-qwen3-32b-2epoch", "http://10.0.0.2:8000/v1"


@pytest.mark.parametrize(
    ("spec", "settings", "id"),
    [
        (f"hf:{HUB}", {}, "cradle-qwen3-32b"),
        # The Hub ignores case.
        (f"hf:{HUB.lower()}", {"engine": "wave"}, "cradle-qwen3-32b"),
        ("hf:embedded:SmolLM2-135M-Instruct + ./data/adapters/smollm2-135m-tuned/", {},
         "smollm2-135m-tuned"),
        ("openai:gpt-5.1", {"max_new_tokens": 64}, "gpt-5.1"),
        ("openai:Qwen/Qwen3-32B", {"base_url": LAN}, "qwen3-32b-vllm"),
    ],
)  # fmt: skip
def test_a_spec_of_weights_in_the_registry_uses_their_settings_and_says_so(
    spec: str, settings: dict[str, Any], id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(paths.ROOT)
    said: list[str] = []
    assert resolve(spec, notice=said.append, **settings) == resolve(id, **settings)
    [sentence] = said
    assert sentence.startswith(f"{spec} is {id} in models.yml")
    for name, value in settings.items():
        assert name == "base_url" or f"{name}={value}" in sentence
    given = [f"{name}={value}" for name, value in settings.items()]
    with err.capture() as printed:
        assert run_settings(spec, given).model == resolve(id, **settings)
    assert sentence in printed.get().replace("\n", " ")
    resolve(id, notice=said.append)
    assert len(said) == 1


@pytest.mark.parametrize(
    ("spec", "settings"),
    [
        (f"hf:{HUB}-awq", {}),
        (f"hf:{HUB} + lab/adapter", {}),
        (f"hf:{'long' * 200}/x", {}),
        # Another provider, and a server whose weights the entry pins.
        ("openai:Qwen/Qwen3-32B", {}),
        ("openai:gpt-5.1", {"base_url": LAN}),
        ("openai:smollm2-135m", {"base_url": LAN}),
    ],
)
def test_a_spec_of_other_weights_or_another_address_is_an_entry_of_its_own(
    spec: str, settings: dict[str, Any]
) -> None:
    said: list[str] = []
    found = resolve(spec, notice=said.append, **settings)
    assert found.id not in load_registry()
    assert (found.group, found.weights) == ("own", spec.partition(":")[2])
    assert not said


def test_a_folder_is_not_taken_for_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / HUB.lower()).mkdir(parents=True)
    assert resolve(f"hf:{HUB.lower()}").group == "own"


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"base_model_name_or_path": "/no/such/base"}, "names /no/such/base, which is neither a"),
        ({"base_model_name_or_path": "lab/base-bnb-4bit"}, "`--set trained_on=lab/base-bnb-4bit`"),
        ({}, r"names no base\. .*`--set trained_on=NAME`"),
        ([], "its adapter_config.json can't be read"),
    ],
)
def test_an_adapter_whose_base_cannot_be_used_by_its_name_is_refused(
    written: Any, words: str, tmp_path: Path
) -> None:
    (tmp_path / "adapter_config.json").write_text(json.dumps(written))
    with pytest.raises(RegistryError, match=words):
        resolve(f"hf:{tmp_path}")
    assert resolve(f"hf:lab/base + {tmp_path}").adapter == str(tmp_path)


def test_the_base_of_an_adapter_is_found_offline_in_the_hubs_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    repository, said = tmp_path / "models--lab--adapter", list[str]()
    (repository / "snapshots" / "a").mkdir(parents=True)
    assert resolve("hf:lab/adapter").weights == "lab/adapter"
    names = json.dumps({"base_model_name_or_path": HUB})
    (repository / "snapshots" / "a" / "adapter_config.json").write_text(names)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a")
    found = resolve("hf:lab/adapter", max_new_tokens=9, notice=said.append)
    assert found == resolve(f"hf:{HUB} + lab/adapter", max_new_tokens=9)
    assert len(said) == 1
