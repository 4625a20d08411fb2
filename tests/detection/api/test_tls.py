"""Certificates matter to HTTPS only, and an error about them names the variable and the path."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cradle_lib.detection import Model, Outcome
from cradle_lib.errors import EngineError

from .fault_server import FaultServer
from .services import GOOD, SDKS, ask, make_model, make_remote

pytestmark = pytest.mark.usefixtures("api")
VARIABLES = ["SSL_CERT_FILE", "SSL_CERT_DIR"]


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def away(engine: str, url: str | None) -> Model:
    """A model at an address of another machine, or at the provider's own."""
    return make_model(engine, None).model_copy(update={"base_url": url})


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize("engine", SDKS)
def test_plain_http_needs_no_certificates(
    engine: str, variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "missing.pem"))
    with FaultServer({"good": lambda n: GOOD[engine]()}) as server:
        assert ask(make_model(engine, f"{server.url}/good")).outcome is Outcome.OK


@pytest.mark.parametrize("url", ["https://service.example", "HTTPS://127.0.0.1:9", None])
@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize("kind", ["missing", "empty", "text", "other"])
def test_https_names_the_variable_and_the_path(
    kind: str, variable: str, url: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "certificates"
    if kind in ("empty", "text"):
        path.write_text("" if kind == "empty" else "-----BEGIN nothing-----\n")
    elif kind == "other" and variable == "SSL_CERT_FILE":
        path.mkdir()
    monkeypatch.setenv(variable, str(path))
    with pytest.raises(EngineError, match=variable) as refused:
        make_remote(away("openai", url))
    told = str(refused.value)
    assert repr(str(path)) in told
    assert re.search(r"Set it to a .*, or unset it\.$", told)
    assert "\n" not in told


def test_a_proxy_that_is_asked_by_https_needs_certificates(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    monkeypatch.setenv("http_proxy", "https://proxy.example:3128")
    with pytest.raises(EngineError, match="SSL_CERT_FILE"):
        make_remote(away("openai", "http://service.example"))


def test_certificates_of_the_environment_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    certifi = pytest.importorskip("certifi")
    monkeypatch.setenv("SSL_CERT_FILE", certifi.where())
    # httpx2 reads the first of the two only.
    monkeypatch.setenv("SSL_CERT_DIR", "/missing")
    make_remote(away("openai", "https://service.example"))
