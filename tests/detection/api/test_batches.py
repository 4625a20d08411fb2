"""Batches through the real SDKs, against the interfaces on real sockets."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cradle_lib.detection import Outcome, Prediction
from cradle_lib.errors import EngineError, JournalError

from .batch_server import BatchServer
from .services import HURRY, KEY, SDKS, long_corpus, make_model, make_remote, sessions

FAST = replace(HURRY, poll=0.0)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)


def run(
    sdk: str,
    server: BatchServer,
    path: Path,
    stored: list[Prediction] | None = None,
    dialogues: int = 3,
    turns: int = 2,
    concurrency: int = 100,
    **decoding: float,
) -> list[Prediction]:
    found: list[Prediction] = []
    model = make_model(sdk, server.url, **decoding)
    engine = make_remote(model, FAST, concurrency, batches=path)
    engine.answer_all(sessions(long_corpus(dialogues, turns), stored), found.append)
    return found


@pytest.mark.parametrize("sdk", SDKS)
def test_each_round_is_one_batch_and_answers_find_their_questions(sdk: str, tmp_path: Path) -> None:
    with BatchServer(lambda prompt, _: "none" if "0.0" in prompt else "alert_past") as server:
        found = run(sdk, server, tmp_path / "ids.jsonl")
        assert len(server.batches) == 2
        assert {p.outcome for p in found} == {Outcome.OK}
        assert {(p.dialogue, p.turn): p.answer for p in found} == {
            (f"d{i:04d}", j): "none" if i == 0 else "alert_past" for i in range(3) for j in range(2)
        }
        assert found[0].tokens_in == 9
        assert all(KEY in auth for auth in server.auth)


@pytest.mark.parametrize("sdk", SDKS)
def test_a_limit_divides_a_round_into_several_batches(sdk: str, tmp_path: Path) -> None:
    with BatchServer(lambda *_: "none") as server:
        assert (
            len(run(sdk, server, tmp_path / "ids.jsonl", dialogues=5, turns=1, concurrency=2)) == 5
        )
        assert [len(batch["answers"]) for batch in server.batches.values()] == [2, 2, 1]


@pytest.mark.parametrize("sdk", SDKS)
def test_a_stopped_run_takes_its_batch_up_again_and_pays_once(sdk: str, tmp_path: Path) -> None:
    path = tmp_path / "ids.jsonl"
    with BatchServer(lambda *_: "none", looks=2) as server:
        # Fails when it looks at the batch, for good.
        server.faults = lambda method, where, call: 401 if method == "GET" else 0
        with pytest.raises(EngineError, match="key was not accepted"):
            run(sdk, server, path, turns=1)
        server.faults = lambda *_: 0
        found = run(sdk, server, path, turns=1)
        assert len(found) == 3
        assert len(server.batches) == 1
        assert set(server.asked.values()) == {1}
        assert run(sdk, server, path, stored=found, turns=1) == []


def test_what_comes_too_late_to_stop_a_run_does_no_harm(tmp_path: Path) -> None:
    with BatchServer(lambda *_: "none") as server:
        engine = make_remote(make_model("openai", server.url), FAST, batches=tmp_path / "ids.jsonl")
        engine.answer_all(sessions(long_corpus(1, 1)), lambda _: None)
        engine.stop("interrupted")


def is_sent(method: str, where: str) -> bool:
    return method == "POST" and where.endswith("batches")


@pytest.mark.parametrize("sdk", SDKS)
def test_a_batch_whose_id_did_not_come_is_looked_for_before_another_is_sent(
    sdk: str, tmp_path: Path
) -> None:
    with BatchServer(lambda *_: "none") as server:
        cut: list[int] = []

        def faults(method: str, where: str, call: int) -> int:
            if is_sent(method, where) and not cut:
                cut.append(call)
                return -2
            return 0

        server.faults = faults
        assert len(run(sdk, server, tmp_path / "ids.jsonl", turns=1)) == 3
        assert cut
        assert len(server.batches) == 1
        assert set(server.asked.values()) == {1}


@pytest.mark.parametrize("sdk", SDKS)
def test_the_batch_of_another_run_is_not_taken_for_one_s_own(sdk: str, tmp_path: Path) -> None:
    path = tmp_path / "ids.jsonl"
    with BatchServer(lambda *_: "none") as server:
        server.faults = lambda method, where, _: 401 if is_sent(method, where) else 0
        with pytest.raises(EngineError, match="key was not accepted"):
            run(sdk, server, path, turns=1)
        server.faults = lambda *_: 0
        # The same questions, sent from somewhere else meanwhile.
        assert len(run(sdk, server, tmp_path / "other.jsonl", turns=1)) == 3
        assert len(run(sdk, server, path, turns=1)) == 3
        assert len(server.batches) == 2
        assert set(server.asked.values()) == {2}


@pytest.mark.parametrize("sdk", SDKS)
def test_a_service_that_lists_no_batches_is_asked_twice_only_if_somebody_wants_that(
    sdk: str, tmp_path: Path
) -> None:
    path = tmp_path / "ids.jsonl"
    with BatchServer(lambda *_: "none") as server:
        server.faults = lambda method, where, _: (
            -2 if is_sent(method, where) else 404 if where.partition("?")[2] else 0
        )
        with pytest.raises(EngineError, match="HTTP 404"):
            run(sdk, server, path, turns=1)
        with pytest.raises(EngineError, match="delete the last line of") as caught:
            run(sdk, server, path, turns=1)
        assert "ids.jsonl" in str(caught.value)
        assert len(server.batches) == 1


@pytest.mark.parametrize("sdk", SDKS)
@pytest.mark.parametrize("status", [500, 429, -1])
def test_trouble_on_the_way_is_tried_again(sdk: str, status: int, tmp_path: Path) -> None:
    with BatchServer(lambda *_: "none") as server:
        server.faults = lambda method, path, call: status if call % 4 == 1 else 0
        assert len(run(sdk, server, tmp_path / "ids.jsonl", turns=1)) == 3


@pytest.mark.parametrize("sdk", SDKS)
def test_what_a_batch_leaves_fails_and_is_asked_again(sdk: str, tmp_path: Path) -> None:
    def write(prompt: str, times: int) -> str | int | None:
        return "none" if times or "0.0" in prompt else 400 if "1.0" in prompt else None

    path = tmp_path / "ids.jsonl"
    with BatchServer(write) as server:
        first = run(sdk, server, path, turns=1)
        assert sorted(p.outcome for p in first) == ["failed", "failed", "ok"]
        again = run(sdk, server, path, stored=first, turns=1)
        assert [p.outcome for p in again] == ["ok", "ok"]


@pytest.mark.parametrize("sdk", SDKS)
def test_all_questions_of_a_parameter_that_is_not_taken_are_asked_again_without_it(
    sdk: str, tmp_path: Path
) -> None:
    said = "temperature is deprecated for this model."
    with BatchServer(lambda _, times: "none" if times else 400, said=said) as server:
        found = run(sdk, server, tmp_path / "ids.jsonl", turns=1, temperature=0.0)
        assert [(p.outcome, p.dropped) for p in found] == [(Outcome.OK, ("temperature",))] * 3
        assert len(server.batches) == 2


def test_a_batch_that_is_refused_stops_the_run_and_is_not_waited_for_again(tmp_path: Path) -> None:
    path = tmp_path / "ids.jsonl"
    with BatchServer(lambda *_: "none", refuse=True) as server:
        with pytest.raises(EngineError, match="a line is no request"):
            run("openai", server, path, turns=1)
        server.refuse = False
        assert len(run("openai", server, path, turns=1)) == 3
        assert len(server.batches) == 2


@pytest.mark.parametrize(
    "spoil", [lambda text: text + '{"batch": "ba', lambda text: text], ids=["torn", "whole"]
)
def test_a_torn_last_line_of_the_ids_is_dropped(
    spoil: Callable[[str], str], tmp_path: Path
) -> None:
    path = tmp_path / "ids.jsonl"
    with BatchServer(lambda *_: "none") as server:
        run("openai", server, path, turns=1)
        path.write_text(spoil(path.read_text()))
        run("openai", server, path, turns=1)
        assert [set(json.loads(line)) for line in path.read_text().splitlines()] == [
            *[{"intent", "since", "questions"}, {"batch", "intent", "questions"}, {"done"}] * 2,
        ]  # fmt: skip


def test_a_damaged_file_of_ids_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "ids.jsonl"
    path.write_text("not json\n")
    with (
        BatchServer(lambda *_: "none") as server,
        pytest.raises(JournalError, match="ids of"),
    ):
        run("openai", server, path)
