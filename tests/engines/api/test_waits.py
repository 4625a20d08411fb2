"""Rate limits and overloads: every way to name a wait, and runs that are delayed but lose nothing.

The forms of errors are those of public reports about the services.
"""

from __future__ import annotations

import asyncio
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx2
import pytest

from cradle_engines.api.dispatch import RetryPolicy
from cradle_engines.api.replies import fields_of
from cradle_engines.api.waits import requested_wait
from cradle_lib.cli.options import split_settings
from cradle_lib.detection import Options, Outcome, Prediction, read_journal
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import ArgumentError, EngineError

from ...cli.in_process import invoke
from .fault_server import FaultServer, Reply, as_json, chat, error
from .services import FakeService, ask, long_corpus, make_model, response

pytestmark = pytest.mark.usefixtures("api")

NOW = "Wed, 21 Oct 2026 07:28:00 GMT"
RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "40s"}
OPENROUTER = {"metadata": {"headers": {"Retry-After": "40"}}}
# Headers, body and the wait in seconds.
HINTS: list[tuple[dict[str, str], Any, float | None]] = [
    ({"retry-after": "40"}, None, 40),
    ({"retry-after": "40.5"}, None, 40.5),
    ({"retry-after": "Wed, 21 Oct 2026 07:28:40 GMT", "date": NOW}, None, 40),
    ({"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT", "date": NOW}, None, 0),
    ({"retry-after": formatdate(1, usegmt=True)}, None, 0),
    ({"retry-after-ms": "40000"}, None, 40),
    ({"retry-after-ms": "40000", "retry-after": "3"}, None, 40),
    ({}, [{"error": {"details": [{"reason": "x"}, RETRY_INFO]}}], 40),
    ({}, {"details": [RETRY_INFO | {"retryDelay": "40.2s"}]}, 40.2),
    ({}, {"details": [RETRY_INFO | {"retryDelay": {"seconds": "40", "nanos": 0}}]}, 40),
    ({}, {"error": {"code": 429} | OPENROUTER}, 40),
    ({}, {"error": {"retry_after": 40}}, 40),
    ({}, {"message": "Rate limit reached: Limit 3. Please try again in 1m10.5s. See x"}, 70.5),
    ({}, {"message": "Please retry after 26 seconds. 5 sessions"}, 26),
    ({}, {"message": "Please try again in 250ms."}, 0.25),
    ({}, {"message": "No deployments available, Try again in 1 hour"}, 3600),
    ({}, {"message": "Retry later. 40 s"}, None),
    ({"retry-after": "soon"}, None, None),
    ({"retry-after": "1e999"}, {"retry_delay": "9" * 400}, None),
    ({"retry-after": "nan", "retry-after-ms": ""}, [[]], None),
    ({"retry-after": "-5"}, None, 0),
]


@pytest.mark.parametrize(("headers", "body", "seconds"), HINTS)
def test_the_longest_wait_that_is_named_is_read(
    headers: dict[str, str], body: Any, seconds: float | None
) -> None:
    assert requested_wait(headers, fields_of(body)) == pytest.approx(seconds)


BUSY: list[Reply] = [
    error(429),
    error(429, type="requests", code="rate_limit_exceeded"),
    error(498),
    error(503),
    error(529, type="overloaded_error"),
    error(500, type="overloaded_error"),
    as_json([{"error": {"code": 403, "status": "RESOURCE_EXHAUSTED"}}], 403),
    as_json({"__type": "ThrottlingException", "message": "slow down"}, 400),
    as_json({"error": {"code": 429, "message": "slow down"}}),
    as_json([{"error": {"code": 503, "status": "UNAVAILABLE"}}], 503),
    error(429, headers={"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}),
]


class Limited:
    """A run over one dialogue, with a service that replies with an error for some seconds."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, busy: Reply, seconds: float, **options: Any
    ) -> None:
        self.made: list[Prediction] = []
        self.error = ""

        async def handler(request: httpx2.Request) -> httpx2.Response:
            return response(busy if self.service.call_times[-1] < seconds else chat())

        self.service = FakeService(monkeypatch, handler)
        try:
            self.service.ask(long_corpus(1, 4), self.made, **options)
        except EngineError as found:
            self.error = str(found)


@pytest.mark.parametrize("busy", BUSY)
def test_a_rate_limit_or_an_overload_delays_a_run_and_fails_nothing(
    busy: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = Limited(monkeypatch, busy, 200)
    assert [one.outcome for one in limited.made] == [Outcome.OK] * 4
    # Waits of 1, 2, 4, 8, 16, 32 and then 60 s.
    assert limited.service.call_times[:8] == [0, 1, 3, 7, 15, 31, 63, 123]
    limited = Limited(monkeypatch, busy, 1e9)
    assert limited.made == []
    assert limited.service.seconds == 300
    assert limited.error.startswith("Tested: no answer from 127.0.0.1:9 for 300 s (HTTP ")
    assert "Go on later, or let the run wait longer with `--set silence=SECONDS`" in limited.error
    assert limited.error.endswith(
        "The answers so far are kept: run the same command again to go on."
    )
    assert "\n" not in limited.error


@pytest.mark.parametrize(("headers", "body"), [hint[:2] for hint in HINTS if hint[2] == 40])
def test_no_call_begins_before_the_named_wait_ends(
    headers: dict[str, str], body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = Limited(monkeypatch, as_json(body or {}, 429, **headers), 40)
    assert [one.outcome for one in limited.made] == [Outcome.OK] * 4
    assert limited.service.call_times[:2] == [0, 40]


def test_the_longest_wait_of_parallel_calls_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    async def handler(request: httpx2.Request) -> httpx2.Response:
        number = len(service.call_times)
        waits = {2: "1", 3: "40"}
        if number not in waits:
            return response(chat())
        await asyncio.sleep(number / 2)
        return response(error(429, headers={"retry-after": waits[number]}))

    service = FakeService(monkeypatch, handler)
    made: list[Prediction] = []
    service.ask(long_corpus(3, 1), made)
    assert [one.outcome for one in made] == [Outcome.OK] * 3
    assert service.call_times == [0, 0, 0, 41.5, 41.5]


def test_deadline_and_silence_are_those_of_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Limited(monkeypatch, error(429), 1e9, silence=1000.0).service.seconds == 1000
    assert Limited(monkeypatch, error(429), 1e9, silence=5.0).service.seconds == 5
    # A longer wait than that is not begun.
    limited = Limited(monkeypatch, error(429, headers={"retry-after": "90"}), 1e9, silence=60.0)
    assert (limited.service.seconds, len(limited.service.call_times)) == (0, 1)
    assert (
        "does not answer (HTTP 429: it broke; it asks to wait 90 s). Go on later" in limited.error
    )
    assert RetryPolicy.of(400.0) == RetryPolicy(deadline=400.0, silence=1000.0)
    assert RetryPolicy.of(400.0, 50.0) == RetryPolicy(deadline=400.0, silence=50.0)
    assert RetryPolicy.of() == RetryPolicy()


def test_the_command_line_sets_deadline_and_silence(service: FaultServer, tmp_path: Path) -> None:
    name = service.add(lambda n: error(429, headers={"retry-after": "100"}))
    command = ["infer", "--model", "openai:m", "--out", tmp_path, "--set", "prompt=brief"]
    command += ["--set", f"base_url={service.url}/{name}/v1", "--set", "limit=1"]
    # By default, the run would wait for 100 s.
    stopped = invoke(*command, "--set", "silence=60", "--set", "deadline=12.5")
    assert "it asks to wait 100 s). Go on later" in str(stopped.exception)
    assert service.calls[name] == 1
    assert split_settings(["silence=60", "deadline=12.5"])[1].silence == 60
    assert split_settings(["silence=60", "deadline=12.5"])[1].deadline == 12.5
    for value in ("0", "-1", "soon", ".inf", "true"):
        with pytest.raises(ArgumentError, match=r"^silence is .*between 0.001 and 86400\.$"):
            split_settings([f"silence={value}"])


def test_a_limited_run_keeps_its_answers_and_goes_on(service: FaultServer, tmp_path: Path) -> None:
    limited, wait = True, error(429, headers={"retry-after": "1000"})
    name = service.add(lambda n: wait if limited and n >= 2 else chat())
    model, corpus = make_model("openai", f"{service.url}/{name}"), long_corpus(2, 2)
    with pytest.raises(EngineError, match=r"HTTP 429.*answers so far are kept"):
        run(model, corpus, out=tmp_path, options=Options(concurrency=1))
    limited, calls = False, service.calls[name]
    path = run(model, corpus, out=tmp_path)
    assert [one.outcome for one in read_journal(path)[1]] == [Outcome.OK] * 4
    assert service.calls[name] == calls + 2


def test_a_prompt_that_exceeds_a_rate_limit_by_itself_fails(service: FaultServer) -> None:
    text = "Request too large for m on tokens per min (TPM): Limit 10, Requested 20."
    for status in (413, 429):
        reply = error(status, message=text, type="tokens", code="rate_limit_exceeded")
        name = service.add(lambda n, reply=reply: reply)
        assert ask(make_model("openai", f"{service.url}/{name}")).outcome == Outcome.FAILED
