"""The command ``cradle construct``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cradle_lib import load_corpus
from cradle_lib.errors import CradleError

from ...cli.in_process import invoke
from ...engines.api.fault_server import FaultServer, Reply, chat
from .stub_writer import good

POSTS = """\
id,title,text,labels
a,T,"A long week, and I am tired.",no_crisis
b,T,I have been hurting myself.,selfharm_ongoing
c,T,It was years ago.,SI_passive_past
"""


def test_dialogues_are_written_and_checked(tmp_path: Path) -> None:
    (tmp_path / "posts.csv").write_text(POSTS)
    options = ["--posts", tmp_path / "posts.csv", "--out", tmp_path / "out", "--writer"]
    seen: list[dict[str, Any]] = []

    def reply(call: int) -> Reply:
        return chat(message={"content": good(seen[call]["messages"][0]["content"])})

    with FaultServer({"ok": reply}, seen) as server:
        url = f"base_url={server.url}/ok/v1"
        written = invoke("construct", "write", *options, "openai:stub", "--set", url)
        calls = len(seen)
        again = invoke("construct", "write", *options, "openai:stub", "--set", url, "--json")
    assert written.exit_code == 0, written.output
    assert "3 plans: 3 accepted, 0 rejected, 0 failed." in written.stdout
    assert json.loads(again.stdout)["counts"] == {"accepted": 3, "rejected": 0, "failed": 0}
    assert len(seen) == calls
    corpus = tmp_path / "out" / "corpus.parquet"
    assert len(load_corpus(corpus)) == 3
    order = ["construct", "check", corpus]
    assert invoke(*order).exit_code == 0
    copy = invoke(*order, "--against", corpus)
    assert copy.exit_code == 1
    assert "near-duplicate" in copy.stdout


@pytest.mark.parametrize("mistake", [("--kind", "other"), ("--posts", "none.csv")])
def test_an_invalid_option_is_a_cradle_error(tmp_path: Path, mistake: tuple[str, str]) -> None:
    usual = ("--out", tmp_path, "--writer", "openai:stub")
    found = invoke("construct", "write", *usual, *mistake)
    assert isinstance(found.exception, CradleError)
