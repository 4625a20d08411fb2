"""Rate limits and overloads: every way to name a wait, and runs that are delayed but lose nothing.

The forms of errors are those of public reports about the services.
"""

from __future__ import annotations

from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from cradle_engines.api.dispatch import RetryPolicy
from cradle_engines.api.faults import fault_of_status
from cradle_lib.cli.options import split_settings
from cradle_lib.detection import Outcome
from cradle_lib.errors import ArgumentError

from ...cli.in_process import invoke
from .fault_server import FaultServer, Reply, as_json, error
from .services import FakeService, Handler, ServiceRun, after

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
    assert fault_of_status(429, headers, body).wait == pytest.approx(seconds)


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


def limited_run(
    monkeypatch: pytest.MonkeyPatch, busy: Reply, seconds: float, **options: Any
) -> ServiceRun:
    """Runs over one dialogue, with a service that replies with an error for some seconds."""

    def handler(service: FakeService) -> Handler:
        return after(0.0, busy if service.call_times[-1] < seconds else None)

    return ServiceRun(monkeypatch, handler, dialogues=1, **options)


@pytest.mark.parametrize("busy", BUSY)
def test_a_rate_limit_or_an_overload_delays_a_run_and_fails_nothing(
    busy: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = limited_run(monkeypatch, busy, 200)
    assert [one.outcome for one in limited.made] == [Outcome.OK] * 4
    # Waits of 1, 2, 4, 8, 16, 32 and then 60 s.
    assert limited.service.call_times[:8] == [0, 1, 3, 7, 15, 31, 63, 123]
    limited = limited_run(monkeypatch, busy, 1e9)
    assert limited.made == []
    assert limited.service.seconds == 300
    assert limited.error.startswith("Tested: no answer from 127.0.0.1:9 for 300 s (HTTP ")
    assert "Go on later, or let the run wait longer with `--set silence=SECONDS`" in limited.error
    assert limited.error.endswith(
        "The answers so far are kept: run the same command again to go on."
    )
    assert "\n" not in limited.error


def test_the_longest_wait_of_parallel_calls_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def handler(service: FakeService) -> Handler:
        number = len(service.call_times)
        waits = {2: "1", 3: "40"}
        if number not in waits:
            return after(0.0)
        return after(number / 2, error(429, headers={"retry-after": waits[number]}))

    run = ServiceRun(monkeypatch, handler, dialogues=3, turns=1)
    assert [one.outcome for one in run.made] == [Outcome.OK] * 3
    assert run.service.call_times == [0, 0, 0, 41.5, 41.5]


def test_deadline_and_silence_are_those_of_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limited_run(monkeypatch, error(429), 1e9, silence=5.0).service.seconds == 5
    # A wait that would end after that is not begun.
    limited = limited_run(monkeypatch, error(500, headers={"retry-after": "25"}), 1e9, silence=60.0)
    assert limited.service.call_times == [0, 25, 50]
    assert (limited.service.seconds, limited.made) == (50, [])
    assert "does not answer (HTTP 500: it broke; it asks to wait 25 s)" in limited.error
    assert RetryPolicy.of(400.0) == RetryPolicy(deadline=400.0, silence=1000.0)


def test_the_command_line_sets_deadline_and_silence(service: FaultServer, tmp_path: Path) -> None:
    name = service.add(lambda n: error(429, headers={"retry-after": "100"}))
    command = ["infer", "--model", "openai:m", "--out", tmp_path, "--set", "prompt=brief"]
    command += ["--set", f"base_url={service.url}/{name}/v1", "--set", "limit=1"]
    # By default, the run would wait for 100 s.
    stopped = invoke(*command, "--set", "silence=60", "--set", "deadline=12.5")
    assert "it asks to wait 100 s). Go on later" in str(stopped.exception)
    assert service.calls[name] == 1
    assert split_settings(["deadline=12.5"])[1].deadline == 12.5
    for value in ("0", "-1", "soon", ".inf", "true"):
        with pytest.raises(ArgumentError, match=r"^silence is .*between 0.001 and 86400\.$"):
            split_settings([f"silence={value}"])
