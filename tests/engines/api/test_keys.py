"""API keys: read from the environment or ``.env``, sent to the service only, never shown."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_engines.api.dispatch import RetryPolicy
from cradle_engines.api.keys import Redactor, find_key
from cradle_lib.detection import Options, load_registry
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import CradleError, EngineError, RegistryError

from ...detection.dialogues import make_corpus
from .fault_server import FaultServer, Reply, as_json, chat, error, message
from .services import GOOD, HELLO, KEY, SDKS, make_model, make_remote, sessions

pytestmark = pytest.mark.usefixtures("api")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TEST_KEY")
    entry = make_model("openai", "http://127.0.0.1:9")
    key = {"variable": "TEST_KEY", "url": "https://service.test/keys"}
    return Model.model_validate(entry.model_dump() | {"key": key})


def test_a_key_in_the_environment_has_priority_over_dotenv(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("# mine\nOTHER=1\nexport TEST_KEY='sk-$HOME/file'  # here\n")
    assert find_key(model) == "sk-$HOME/file"
    monkeypatch.setenv("TEST_KEY", "")
    assert find_key(model) == "sk-$HOME/file"
    monkeypatch.setenv("TEST_KEY", " sk-real\n")
    assert find_key(model) == "sk-real"
    keyless = Model.model_validate(model.model_dump() | {"key": None})
    assert find_key(keyless) == ""


@pytest.mark.parametrize(
    ("dotenv", "problem"),
    [
        (b"OTHER=1\n", r"TEST_KEY is not set, here or in a file \.env\. Get a key at https://serv"),
        ('TEST_KEY="sk-ключ"\n'.encode(), "TEST_KEY contains a character that keys never have"),
        (b'TEST_KEY="sk-one\\nsk-two"\n', "TEST_KEY contains a character that keys never have"),
        (b"TEST_KEY=sk-\xff\n", r"\.env is not UTF-8"),
    ],
)
def test_a_missing_or_invalid_key_is_reported_without_showing_it(
    model: Model, tmp_path: Path, dotenv: bytes, problem: str
) -> None:
    (tmp_path / ".env").write_bytes(dotenv)
    with pytest.raises(EngineError, match=problem) as refused:
        make_remote(model)
    assert "sk-" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "http://me:{}@127.0.0.1:9/v1",
        "http://127.0.0.1:9/v1?x={}",
        "https://api.example.com/{}/v1",
        "https://api.example.com/v1;api_key={}",
    ],
)
def test_a_key_in_an_address_is_refused_without_showing_it(address: str, tmp_path: Path) -> None:
    entry = make_model("openai", "http://127.0.0.1:9").model_dump(exclude={"id"})
    registry = tmp_path / "models.yml"
    registry.write_text(yaml.safe_dump({"m": entry | {"base_url": address.format(KEY)}}))
    with pytest.raises(RegistryError, match="environment variable under 'key'") as refused:
        load_registry(registry)
    assert KEY[:6] not in str(refused.value)


def test_the_key_itself_in_an_address_is_refused_before_a_journal_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", "a-word-that-looks-like-none")
    model = make_model("openai", "http://127.0.0.1:9/x-a-word-that-looks-like-none-y")
    with pytest.raises(EngineError, match=r"'base_url' in models\.yml contains the key") as refused:
        run(model, HELLO, out=tmp_path)
    assert "a-word" not in str(refused.value)
    assert list(tmp_path.rglob("*.jsonl")) == []


@settings(max_examples=60)
@given(key=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=16, max_size=60))
def test_redacted_text_has_no_eight_characters_of_the_key(key: str) -> None:
    pieces = {key[i : i + 8].lower() for i in range(len(key) - 7)}
    for written in (key, key.lower(), key.upper(), key[:20], key[5:15], key[-9:]):
        for text in (written, f"Incorrect key {written} for you.", f"<{written}>{written}"):
            left = Redactor(key)(text).lower()
            assert not [piece for piece in pieces if piece in left]


@pytest.mark.parametrize(
    ("key", "text", "left"),
    [
        (KEY, f"Bad key {KEY}!", "Bad key [key]!"),
        (KEY, f"{KEY[:20]}... is wrong", "[key]... is wrong"),
        (KEY, "sk-abcd, and then planted", "sk-abcd, and then planted"),
        (KEY, "confirm_SH_ongoing; alert_past", "confirm_SH_ongoing; alert_past"),
        # Short keys are redacted only as a whole. `none` is an answer, not a key.
        ("sk-test", "sk-test sk-tes", "[key] sk-tes"),
        ("none", "none", "none"),
        ("", "none", "none"),
    ],
)
def test_other_text_is_not_redacted(key: str, text: str, left: str) -> None:
    assert Redactor(key)(text) == left


def echoes(engine: str) -> list[Reply]:
    """Returns replies of a service that repeats the caller's key in every field."""
    leak = f"{KEY} and Bearer {KEY}, {KEY.upper()}, {KEY[:15]}"
    answer = {"openai": lambda t: chat(message={"content": t}), "anthropic": message}[engine]
    declined = (
        chat(message={"content": None, "refusal": leak})
        if engine == "openai"
        else message(None, stop_reason="refusal", stop_details={"explanation": leak})
    )
    headers = {"x-request-id": KEY, "www-authenticate": f"Bearer {KEY}"}
    served = {**json.loads(answer("none")[2]), "model": KEY, "system_fingerprint": KEY}
    return [
        answer(f"alert_past {leak}"),
        declined,
        error(400, message="x" * 270 + leak, headers=headers),
        error(500, message=leak, type=KEY, headers=headers),
        (302, {"location": f"http://127.0.0.1:9/{KEY}"}, b""),
        as_json({"error": {"message": leak}}),
        as_json(served),
        error(401, message=f"Incorrect API key provided: {leak}", headers=headers),
    ]


@pytest.mark.parametrize("engine", SDKS)
def test_a_key_repeated_by_a_service_is_not_in_journals_logs_or_messages(
    engine: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    policy = RetryPolicy(attempts=2, deadline=20.0, base=0.0, failures=50)
    monkeypatch.setattr(RetryPolicy, "of", classmethod(lambda *_: policy))
    replies = echoes(engine)
    corpus = make_corpus([[("User", f"turn {i}", "none") for i in range(2 * len(replies))]])
    notices: list[str] = []
    for name in (None, "openai", "anthropic", "httpx2", "aiohttp", "asyncio"):
        caplog.set_level(logging.DEBUG, name)
    logging.getLogger().debug("log is on")
    script = iter(reply for reply in replies for _ in range(2))
    with FaultServer({"echo": lambda n: next(script)}) as server:
        model = make_model(engine, f"{server.url}/echo", temperature=0.0)
        options = Options(concurrency=1, notice=notices.append)
        with pytest.raises(CradleError) as stopped:
            run(model, corpus, out=tmp_path, options=options)
        # This key was used; the 401 comes after all other replies.
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert "the key was not accepted" in str(stopped.value)
    # The notices that another model answered, and that the served model changed.
    assert len(notices) == 2
    journal = (tmp_path / "tiny" / f"m-{engine}.jsonl").read_text()
    assert journal.count("\n") > 8
    assert "[key] and Bearer [key]" in journal
    # Logs were enabled, and the SDKs logged no request.
    assert "log is on" in caplog.text
    assert "POST" not in caplog.text
    streams = capfd.readouterr()
    for text in (journal, caplog.text, streams.out, streams.err, str(stopped.value), *notices):
        # Truncation could have left the first half of the key.
        assert KEY[: len(KEY) // 2].lower() not in text.lower()


@pytest.mark.parametrize("engine", SDKS)
def test_the_key_of_another_service_is_not_sent(
    engine: str, service: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_ORG_ID"):
        monkeypatch.setenv(name, "sk-other")
    path = service.add(lambda n: GOOD[engine]())
    entry = make_model(engine, f"{service.url}/{path}").model_dump()
    keyless = Model.model_validate(entry | {"key": None})
    make_remote(keyless).answer_all(sessions(HELLO), lambda _: None)
    assert not any("sk-other" in value for value in service.headers[0].values())
