"""A server of one's own is asked what it serves before it gets a question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cradle_lib.detection import Options, read_journal
from cradle_lib.detection.model import Caching
from cradle_lib.detection.run import run
from cradle_lib.errors import EngineError

from ...extras.cluster.gated_server import MODEL, GatedServer
from ..dialogues import make_corpus
from .fault_server import FaultServer, chat
from .services import make_model

CORPUS = make_corpus([[("User", f"turn {i} {j}", "none") for j in range(2)] for i in range(3)])
pytestmark = pytest.mark.usefixtures("api")


def test_a_server_with_another_model_is_refused_before_it_is_asked(tmp_path: Path) -> None:
    with GatedServer() as server:
        model = make_model("openai", server.url.removesuffix("/v1"))
        with pytest.raises(EngineError) as refused:
            run(model, CORPUS, out=tmp_path / "j.jsonl")
        told = str(refused.value)
        assert f"serves {MODEL}, and m-openai asks for smollm2-135m." in told
        assert "\n" not in told
        assert read_journal(tmp_path / "j.jsonl")[1] == []
        # The same journal goes on when the right one is served.
        right = model.model_copy(update={"weights": MODEL})
        run(right, CORPUS, out=tmp_path / "j.jsonl", options=Options(concurrency=1))
    assert len(read_journal(tmp_path / "j.jsonl")[1]) == 6


def test_a_server_without_the_list_is_believed(tmp_path: Path) -> None:
    with FaultServer({"v1": lambda _: chat()}) as server:
        model = make_model("openai", server.url)
        run(model, CORPUS, out=tmp_path / "j.jsonl")
    assert len(read_journal(tmp_path / "j.jsonl")[1]) == 6


def test_all_questions_of_a_dialogue_have_one_name_that_says_nothing(tmp_path: Path) -> None:
    with FaultServer({"v1": lambda _: chat()}) as server:
        model = make_model("openai", server.url)
        stays = model.model_copy(update={"caching": Caching(affinity="X-Session-ID")})
        run(stays, CORPUS, out=tmp_path / "j.jsonl", options=Options(concurrency=1))
    names = [headers["x-session-id"] for headers in server.headers]
    assert len(set(names)) == len(CORPUS)
    assert names == [name for name in dict.fromkeys(names) for _ in range(2)]
    assert not any(dialogue.id in json.dumps(names) for dialogue in CORPUS)
