"""A key comes from the environment or from ``.env``, and goes to the service alone."""

from __future__ import annotations

import base64
import json
import logging
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.detection import Options, Session, load_registry
from cradle_lib.detection.api.dispatch import Patience
from cradle_lib.detection.api.keys import Redactor, find_key
from cradle_lib.detection.model import Model
from cradle_lib.detection.run import run
from cradle_lib.errors import CradleError, EngineError, RegistryError

from ..dialogues import make_corpus
from .fault_server import FaultServer, Reply, as_json, chat, error, message
from .services import HELLO, KEY, SDKS, TEMPLATE, make_model, make_remote

pytestmark = pytest.mark.usefixtures("api")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TEST_KEY")
    entry = make_model("openai", "http://127.0.0.1:9")
    key = {"variable": "TEST_KEY", "url": "https://service.test/keys"}
    return Model.model_validate(entry.model_dump() | {"key": key})


def test_a_key_is_read_from_the_environment_first_and_from_dotenv_else(
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


@pytest.mark.parametrize("dotenv", [None, "", "TEST_KEY=\n", "TEST_KEY\n", "OTHER=1\n"])
def test_a_missing_key_is_one_line_with_the_variable_and_where_to_get_one(
    model: Model, tmp_path: Path, dotenv: str | None
) -> None:
    if dotenv is not None:
        (tmp_path / ".env").write_text(dotenv)
    with pytest.raises(EngineError) as missing:
        make_remote(model)
    assert str(missing.value) == (
        "Tested: the environment variable TEST_KEY is not set, here or in a file .env. "
        "Get a key at https://service.test/keys."
    )


@pytest.mark.parametrize("key", ["sk-one two", "sk-ключ", "sk-a\x00b", "sk-a\nb"])
def test_what_can_not_be_a_key_is_refused_without_showing_it(
    model: Model, key: str, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text(f'TEST_KEY="{key}"\n', encoding="utf-8")
    with pytest.raises(EngineError, match=r"TEST_KEY holds a space or a character") as refused:
        find_key(model)
    assert "sk-" not in str(refused.value)


def test_a_dotenv_that_is_no_text_is_one_line(model: Model, tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"TEST_KEY=\xff\xfe\n")
    with pytest.raises(EngineError, match=r"\.env: can't be read \(UnicodeDecodeError\)"):
        find_key(model)


@pytest.mark.parametrize("url", [f"http://me:{KEY}@127.0.0.1:9/v1", f"http://{KEY}@127.0.0.1:9/v1"])
def test_credentials_in_an_address_are_refused_without_showing_them(
    url: str, tmp_path: Path
) -> None:
    entry = make_model("openai", "http://127.0.0.1:9").model_dump(exclude={"id"})
    registry = tmp_path / "models.yml"
    registry.write_text(yaml.safe_dump({"m": entry | {"base_url": url}}))
    with pytest.raises(RegistryError, match="'base_url' holds a user name or password") as refused:
        list(load_registry(registry).values())
    assert KEY not in str(refused.value)


IN_AN_ADDRESS = {
    "query": "/v1?key={}",
    "query of another name": "/v1?x={}",
    "fragment": "/v1#{}",
    "path": "/{}/v1",
    "parameter": "/v1;api_key={}",
    "name in the path": "/token={}/v1",
}
KEYS = [KEY, "gsk_AbCdEfGh12345678", "AIzaSyD-9tSrke72PouQMnMX", "q9XwRt4LmZp8VbNc2KdJ"]


@pytest.mark.parametrize("place", IN_AN_ADDRESS)
@pytest.mark.parametrize("key", KEYS)
def test_a_key_in_an_address_is_refused_without_showing_it(
    key: str, place: str, tmp_path: Path
) -> None:
    entry = make_model("openai", "http://127.0.0.1:9").model_dump(exclude={"id"})
    registry = tmp_path / "models.yml"
    for host in ("127.0.0.1:9", "api.example.com"):
        url = f"http://{host}{IN_AN_ADDRESS[place].format(key)}"
        registry.write_text(yaml.safe_dump({"m": entry | {"base_url": url}}))
        with pytest.raises(RegistryError, match="'base_url' holds a query, a frag") as refused:
            list(load_registry(registry).values())
        assert key[:6] not in str(refused.value)
        with pytest.raises(ValueError, match="'base_url' holds a query, a frag") as invalid:
            Model.model_validate(entry | {"id": "m", "base_url": url})
        assert key[:6] not in str(invalid.value)


@pytest.mark.parametrize(
    "path",
    [
        *("", "/v1", "/v1beta/openai", "/openai/deployments/gpt-5-mini-2026-01-01/"),
        "/client/v4/accounts/0123456789abcdef0123456789abcdef/ai/v1",
        *("/hf-inference/models/Qwen/Qwen3-32B/v1", "/v2/sk/monkeys", "/Meta-Llama-3-70B/v1"),
    ],
)
def test_what_is_no_key_may_stand_in_an_address(path: str) -> None:
    fields = {"base_url": f"https://api.example.com{path}", "remote": True}
    assert Model.model_validate(make_model("openai", None).model_dump() | fields)


@pytest.mark.parametrize("written", ["{}", "x-{}-y", "{0:.12}"])
def test_the_key_itself_in_an_address_is_refused_before_there_is_a_journal(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "a-word-that-looks-like-none"
    monkeypatch.setenv("TEST_KEY", key)
    model = make_model("openai", f"http://127.0.0.1:9/{written.format(key)}")
    with pytest.raises(EngineError, match=r"'base_url' in models\.yml holds the key") as refused:
        run(model, HELLO, out=tmp_path)
    assert key[:8] not in str(refused.value)
    assert list(tmp_path.rglob("*.jsonl")) == []


def forms(key: str) -> dict[str, str]:
    """What a key may be written as, each made by the standard library."""
    return {
        "plain": key,
        "lower": key.lower(),
        "upper": key.upper(),
        "first 20": key[:20],
        "middle": key[5:17],
        "last": key[-9:],
        "base64": base64.b64encode(key.encode()).decode(),
        "address": quote(key, safe=""),
        "query": urlencode({"key": key}),
    }


@settings(deadline=None, max_examples=60)
@given(key=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=16, max_size=60))
def test_no_eight_characters_of_a_key_or_its_forms_are_left(key: str) -> None:
    hide = Redactor(key)
    for name, written in forms(key).items():
        for text in (written, f"Incorrect key {written} for you.", f"<{written}>{written}"):
            left = hide(text)
            for form in (key, base64.b64encode(key.encode()).decode()[:-4]):
                pieces = [form[i : i + 8].lower() for i in range(len(form) - 7)]
                assert not [p for p in pieces if p in left.lower()], (name, left)
        assert hide(written) != written, name


@pytest.mark.parametrize(
    ("key", "text", "left"),
    [
        (KEY, f"Bad key {KEY}!", "Bad key [key]!"),
        (KEY, f"{KEY[:20]}... is wrong", "[key]... is wrong"),
        (KEY, "sk-abcd, and then planted", "sk-abcd, and then planted"),
        (KEY, "confirm_SH_ongoing; alert_past", "confirm_SH_ongoing; alert_past"),
        # Short keys are taken out whole; words in the place of one are words.
        ("sk-test", "sk-test sk-tes", "[key] sk-tes"),
        ("none", "none", "none"),
        ("EMPTY", "EMPTY", "EMPTY"),
        ("", "none", "none"),
    ],
)
def test_what_is_no_part_of_the_key_is_left(key: str, text: str, left: str) -> None:
    assert Redactor(key)(text) == left


def echoes(engine: str) -> dict[str, Reply]:
    """Replies of a service that puts the caller's key wherever it can, and however it can."""
    said = f"{KEY} and Bearer {KEY}, {' '.join(forms(KEY).values())}"
    answer = {"openai": lambda t: chat(message={"content": t}), "anthropic": message}[engine]
    declined = (
        chat(message={"content": None, "refusal": said})
        if engine == "openai"
        else message(None, stop_reason="refusal", stop_details={"explanation": said})
    )
    headers = {"x-request-id": KEY, "www-authenticate": f"Bearer {KEY}"}
    return {
        "none": answer("none"),
        "text": answer(f"alert_past {said}"),
        "declined": declined,
        "filter": error(400, code="content_filter", type="content_filter", message=said),
        "400": error(400, message="x" * 270 + said, headers=headers),
        "500": error(500, message=said, type=KEY, headers=headers),
        "503": error(503, message=said, headers=headers),
        "html": (500, {"content-type": "text/html"}, said.encode()),
        "redirect": (302, {"location": f"http://127.0.0.1:9/{KEY}"}, b""),
        "error-in-200": as_json({"error": {"message": said}}),
        "not-json": (200, {"content-type": "text/plain"}, said.encode()),
        "served": as_json(
            {**json.loads(answer("none")[2]), "model": KEY, "system_fingerprint": KEY}
        ),
        "temperature": error(400, message=f"temperature is deprecated {said}"),
        "401": error(401, message=f"Incorrect API key provided: {said}", headers=headers),
    }


@pytest.mark.parametrize("engine", SDKS)
@pytest.mark.parametrize("place", ["environment", "dotenv"])
def test_a_planted_key_is_in_nothing_that_a_run_writes_or_says(
    engine: str,
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    home.mkdir()
    monkeypatch.chdir(home)
    if place == "dotenv":
        monkeypatch.delenv("TEST_KEY")
        (home / ".env").write_text(f"TEST_KEY={KEY}\n")
    monkeypatch.setattr(
        "cradle_lib.detection.api.client.Patience.of",
        lambda _: Patience(attempts=2, deadline=20.0, base=0.0, failures=50),
    )
    replies = list(echoes(engine).values())
    corpus = make_corpus([[("User", f"turn {i}", "none") for i in range(2 * len(replies))]])
    told: list[str] = []
    root = logging.getLogger()
    log = logging.FileHandler(out.with_suffix(".log"))
    root.addHandler(log)
    caplog.set_level(logging.DEBUG)
    for name in ("openai", "anthropic", "httpx2", "aiohttp", "asyncio"):
        caplog.set_level(logging.DEBUG, name)
    root.debug("log is on")
    script = iter(reply for reply in replies for _ in range(2))
    try:
        with FaultServer({"echo": lambda n: next(script)}) as server:
            model = make_model(engine, f"{server.url}/echo", temperature=0.0)
            options = Options(concurrency=1, notice=told.append)
            with pytest.raises(CradleError) as stopped:
                run(model, corpus, out=out, options=options)
            sent = server.headers
    finally:
        root.removeHandler(log)
        log.close()
    # It was the key that was used, and everything above was met before the 401.
    assert sent[0]["authorization"] == f"Bearer {KEY}"
    assert "the key was not accepted" in str(stopped.value)
    assert len(told) == 1
    journal = (out / "tiny" / f"m-{engine}.jsonl").read_text()
    assert journal.count("\n") > 12
    assert "[key] and Bearer [key]" in journal
    log_text = out.with_suffix(".log").read_text()
    # Logs were on, and the SDKs did not use them.
    assert "log is on" in log_text
    assert "POST" not in log_text
    written = {
        str(path): path.read_bytes().decode(errors="replace")
        for path in tmp_path.rglob("*")
        if path.is_file() and path.name != ".env"
    }
    streams = capfd.readouterr()
    said = [*written.values(), caplog.text, streams.out, streams.err, str(stopped.value), *told]
    for text in said:
        for name, form in forms(KEY).items():
            # Not even the first half of it, which shortening could have left.
            assert form[: len(form) // 2] not in text, name


def test_the_key_of_another_service_is_not_sent_along(monkeypatch: pytest.MonkeyPatch) -> None:
    others = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_ORG_ID")
    for name in others:
        monkeypatch.setenv(name, "sk-other")
    for engine in SDKS:
        good = chat() if engine == "openai" else message()
        with FaultServer({"ok": lambda n, good=good: good}) as server:
            entry = make_model(engine, f"{server.url}/ok").model_dump()
            keyless = Model.model_validate(entry | {"key": None})
            session = Session(HELLO.dialogues[0], TEMPLATE)
            make_remote(keyless).answer_all([session], lambda _: None)
            for name, value in server.headers[0].items():
                assert "sk-other" not in value, name
