"""Fetching the release, with the real client and a small Hub on loopback."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cradle_lib.corpus.hub import REPOSITORY, pinned_revision, release_file
from cradle_lib.corpus.release import read_release

from ..loopback import Handler, Loopback

SHA = "0123456789abcdef0123456789abcdef01234567"
FETCH = "import sys, pathlib; from cradle_lib.corpus import fetch_release; " + (
    "print(fetch_release(pathlib.Path(sys.argv[1])))"
)


def split(text: str) -> bytes:
    buffer = io.BytesIO()
    row = {"turn_id": 0, "text": f"User: {text}", "labels": "none"}
    pq.write_table(pa.Table.from_pylist([row]), buffer)
    return buffer.getvalue()


class Hub(Handler):
    files: ClassVar[dict[str, bytes]] = {}
    requested: ClassVar[list[str]] = []

    def do_HEAD(self) -> None:
        self.reply()

    def do_GET(self) -> None:
        self.reply()

    def reply(self) -> None:
        self.requested.append(self.path)
        prefix = f"/datasets/{REPOSITORY}/resolve/{SHA}/"
        if self.path.startswith(f"/api/datasets/{REPOSITORY}/revision/"):
            siblings = [{"rfilename": name} for name in self.files]
            info = {"id": REPOSITORY, "sha": SHA, "siblings": siblings}
            self.reply_with(json.dumps(info).encode(), "application/json")
        elif self.path.startswith(prefix) and self.path[len(prefix) :] in self.files:
            body = self.files[self.path[len(prefix) :]]
            self.reply_with(body, "application/octet-stream")
        else:
            self.reply_with(b"{}", "application/json", 404)

    def reply_with(self, body: bytes, kind: str, status: int = 200) -> None:
        tag = f'"{hashlib.sha256(body).hexdigest()}"'
        self.send(body, status, {"content-type": kind, "etag": tag, "x-repo-commit": SHA})


@pytest.fixture
def hub() -> Iterator[Loopback]:
    Hub.requested = []
    Hub.files = {
        f"data/{name}-00000-of-00001.parquet": split(name)
        for name in ("train", "validation", "test")
    }
    with Loopback(Hub) as server:
        yield server


def fetch(folder: Path, endpoint: str) -> subprocess.CompletedProcess[str]:
    # In a separate process, because the client reads its endpoint at import.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    environment |= {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(folder / "home"),
        "HF_HUB_DISABLE_XET": "1",
        "NO_PROXY": "127.0.0.1",
    }
    return subprocess.run(
        [sys.executable, "-c", FETCH, str(folder / "release")],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


def test_all_splits_are_fetched_and_their_revision_is_pinned(hub: Loopback, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    first = fetch(tmp_path, hub.url)
    assert first.returncode == 0, first.stderr
    assert first.stdout.strip() == SHA == pinned_revision(folder)
    for ours, theirs in (("train", "train"), ("dev", "validation"), ("test", "test")):
        corpus = read_release(release_file(ours, folder))
        assert corpus.turns[0].text == theirs
    assert sorted(p.name for p in folder.iterdir()) == [
        "REVISION",
        "dev.parquet",
        "test.parquet",
        "train.parquet",
    ]
    Hub.requested = []
    again = fetch(tmp_path, hub.url)
    assert again.returncode == 0, again.stderr
    assert any(path.endswith(f"/revision/{SHA}") for path in Hub.requested)
    assert not any(path.endswith("/revision/main") for path in Hub.requested)
    # A damaged file is refused, and the old one stays.
    Hub.files["data/test-00000-of-00001.parquet"] = split("test")[:100]
    (folder / "REVISION").write_text("main")
    damaged = fetch(tmp_path, hub.url)
    assert "not a complete parquet file" in damaged.stderr
    assert read_release(release_file("test", folder)).turns[0].text == "test"


def test_the_message_without_a_network_says_what_to_do(tmp_path: Path) -> None:
    # No server listens at port 9.
    done = fetch(tmp_path, "http://127.0.0.1:9")
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert "CorpusError: can't fetch SungJoo/Cradle-Dialogue at main" in last
    assert "train.parquet, dev.parquet, test.parquet" in last
    assert not list((tmp_path / "release").glob("*.parquet"))
