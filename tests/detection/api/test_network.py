"""Text goes to a proxy only if it must, and whoever agrees to that has read its name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cradle_lib.detection.api.network import find_proxy, host_of, proxy_of
from cradle_lib.detection.model import Model
from cradle_lib.detection.run import run
from cradle_lib.errors import EngineError

from ...loopback import Handler, Loopback
from .fault_server import FaultServer
from .services import GOOD, HELLO, KEY, SDKS, make_model, make_remote

pytestmark = pytest.mark.usefixtures("api")

VARIABLES = [
    spelled
    for name in ("http_proxy", "https_proxy", "all_proxy")
    for spelled in (name, name.upper())
]


class Proxy(Loopback):
    """Keeps the first line and the headers of whatever comes, and answers for everybody."""

    def __init__(self, engine: str) -> None:
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        outer = self

        class Answering(Handler):
            def do_POST(self) -> None:
                outer.asked.append(self.requestline)
                outer.headers.append({k.lower(): v for k, v in self.headers.items()})
                self.body()
                status, headers, content = GOOD[engine]()
                self.send(content, status, headers)

            def do_CONNECT(self) -> None:
                outer.asked.append(self.requestline)
                self.send_error(502)

        super().__init__(Answering)


@pytest.fixture(params=SDKS)
def engine(request: pytest.FixtureRequest) -> str:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def proxy(engine: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    with Proxy(engine) as found:
        for name in VARIABLES:
            monkeypatch.setenv(name, f"http://me:secret-word@{found.place}")
        yield found


def test_an_address_on_this_machine_is_asked_without_the_proxy(
    engine: str, proxy: Proxy, tmp_path: Path
) -> None:
    with FaultServer({"ok": lambda n: GOOD[engine]()}) as server:
        for url in (server.url, server.url.replace("127.0.0.1", "localhost")):
            run(make_model(engine, f"{url}/ok"), HELLO, out=tmp_path / url[7:10])
        assert server.calls["ok"] == 2
    assert proxy.asked == []


def elsewhere(engine: str) -> Model:
    fields = {"base_url": "http://service.invalid", "remote": True}
    return Model.model_validate(make_model(engine, "http://127.0.0.1:9").model_dump() | fields)


# The SDKs' own transport makes it of a proxy's user and password.
@pytest.mark.filterwarnings("ignore:.*is deprecated and will be removed:DeprecationWarning")
def test_whoever_agrees_to_send_text_elsewhere_has_read_the_proxys_name(
    engine: str, proxy: Proxy, tmp_path: Path
) -> None:
    questions: list[str] = []

    def agree(question: str) -> bool:
        questions.append(question)
        return len(questions) > 1

    with pytest.raises(EngineError, match="was not agreed to"):
        run(elsewhere(engine), HELLO, out=tmp_path, consent=agree)
    assert proxy.asked == []
    path = run(elsewhere(engine), HELLO, out=tmp_path, consent=agree)
    assert f"sent to service.invalid through the proxy {proxy.place} (Tested)" in questions[0]
    (line,) = proxy.asked
    assert line.startswith("POST http://service.invalid/")
    # Its own password is the proxy's alone, and stands in no sentence and no journal.
    assert proxy.headers[0]["proxy-authorization"].startswith("Basic ")
    assert proxy.headers[0]["authorization"] == f"Bearer {KEY}"
    assert "secret-word" not in questions[0] + path.read_text()


def test_a_host_in_no_proxy_is_asked_directly(
    proxy: Proxy, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "other.example, service.invalid")
    assert proxy_of(elsewhere(engine)) is None
    monkeypatch.setenv("no_proxy", "other.example")
    assert proxy_of(elsewhere(engine)) == proxy.place


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "LOCALHOST.", "[::1]:8000", "10.1.2.3:80"),
        *("192.168.0.9", "172.16.0.1", "a.local", "gpu.internal"),
    ],
)
def test_no_private_address_has_a_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, "http://proxy.example:3128")
    for scheme in ("http", "https"):
        assert find_proxy(f"{scheme}://{host}/v1") is None
        assert find_proxy(f"{scheme}://api.example.com/v1") == "http://proxy.example:3128"


def test_the_providers_own_endpoints_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "proxy.example:3128")
    for engine, host in (("openai", "api.openai.com"), ("anthropic", "api.anthropic.com")):
        model = make_model(engine, None)  # type: ignore[arg-type]
        assert (host_of(model), proxy_of(model)) == (host, "proxy.example:3128")
        # The engines ask there.
        assert make_remote(model).endpoint.startswith(f"https://{host}")


def test_a_proxy_that_can_not_be_used_is_one_line_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("all_proxy", "socks5://me:secret-word@proxy.example:1080")
    with pytest.raises(EngineError, match=r"socks5://proxy\.example:1080, is not of the") as fault:
        make_remote(elsewhere("openai"))
    assert "secret-word" not in json.dumps(str(fault.value))
    make_remote(make_model("openai", "http://127.0.0.1:9"))
