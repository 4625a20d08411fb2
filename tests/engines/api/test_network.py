"""Proxies, which are used only if needed and named to the user, and certificates for HTTPS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cradle_lib.detection import Options, Outcome
from cradle_lib.detection.models.addresses import find_proxy, host_of, proxy_of
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError

from .fault_server import FaultServer
from .services import GOOD, HELLO, KEY, SDKS, ask, make_model, make_remote

pytestmark = pytest.mark.usefixtures("api")

VARIABLES = [
    spelled
    for name in ("http_proxy", "https_proxy", "all_proxy")
    for spelled in (name, name.upper())
]


@pytest.fixture(params=SDKS)
def engine(request: pytest.FixtureRequest) -> str:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def proxy(engine: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    """A proxy that answers all requests, set in the environment."""
    with FaultServer({"": lambda n: GOOD[engine]()}) as found:
        for name in VARIABLES:
            monkeypatch.setenv(name, f"http://me:secret-word@{found.place}")
        yield found


def remote_model(engine: str, url: str = "http://service.invalid") -> Model:
    fields = {"base_url": url, "remote": True}
    return Model.model_validate(make_model(engine, "http://127.0.0.1:9").model_dump() | fields)


def test_local_addresses_use_no_proxy(
    engine: str, proxy: FaultServer, service: FaultServer
) -> None:
    name = service.add(lambda n: GOOD[engine]())
    for url in (service.url, service.url.replace("127.0.0.1", "localhost")):
        assert ask(make_model(engine, f"{url}/{name}")).outcome is Outcome.OK
    assert proxy.paths == []


# The SDK's transport warns about the user and password of a proxy.
@pytest.mark.filterwarnings("ignore:.*is deprecated and will be removed:DeprecationWarning")
def test_the_consent_names_the_proxy(engine: str, proxy: FaultServer, tmp_path: Path) -> None:
    questions: list[str] = []

    def agree(question: str) -> bool:
        questions.append(question)
        return len(questions) > 1

    with pytest.raises(EngineError, match="was not agreed to"):
        run(remote_model(engine), HELLO, out=tmp_path, options=Options(consent=agree))
    assert proxy.paths == []
    path = run(remote_model(engine), HELLO, out=tmp_path, options=Options(consent=agree))
    assert f"sent to service.invalid through the proxy {proxy.place} (Tested)" in questions[0]
    assert proxy.paths[0].startswith("http://service.invalid/")
    # The proxy's password is sent to the proxy only, and is not in questions or journals.
    assert proxy.headers[0]["proxy-authorization"].startswith("Basic ")
    assert proxy.headers[0]["authorization"] == f"Bearer {KEY}"
    assert "secret-word" not in questions[0] + path.read_text()


def test_private_addresses_and_no_proxy_bypass_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, "http://proxy.example:3128")
    private = ("127.0.0.1", "LOCALHOST.", "[::1]:8000", "10.1.2.3:80", "172.16.0.1", "gpu.internal")
    for host in private:
        assert find_proxy(f"https://{host}/v1") is None
    assert find_proxy("https://api.example.com/v1") == "http://proxy.example:3128"
    monkeypatch.setenv("no_proxy", "other.example, service.invalid")
    assert proxy_of(remote_model("openai")) is None
    for sdk, host in (("openai", "api.openai.com"), ("anthropic", "api.anthropic.com")):
        model = make_model(sdk, None)
        assert (host_of(model), proxy_of(model)) == (host, "proxy.example:3128")
        # The engine uses the same host.
        assert make_remote(model).base.startswith(f"https://{host}")


def test_an_unsupported_proxy_is_refused_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks5://me:secret-word@proxy.example:1080")
    with pytest.raises(EngineError, match=r"socks5://proxy\.example:1080, is neither an") as fault:
        make_remote(remote_model("openai"))
    assert "secret-word" not in str(fault.value)
    make_remote(make_model("openai", "http://127.0.0.1:9"))


# ---- Certificates --------------------------------------------------------------------


def test_missing_certificates_are_an_error_for_https_only(
    service: FaultServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "missing"
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with pytest.raises(EngineError, match=f"SSL_CERT_FILE names '{path}'") as refused:
        make_remote(remote_model("openai", "https://service.example"))
    assert "\n" not in str(refused.value)
    name = service.add(lambda n: GOOD["openai"]())
    assert ask(make_model("openai", f"{service.url}/{name}")).outcome is Outcome.OK
    # An HTTPS proxy needs certificates, too.
    monkeypatch.setenv("http_proxy", "https://proxy.example:3128")
    with pytest.raises(EngineError, match="SSL_CERT_FILE"):
        make_remote(remote_model("openai"))
