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

from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.corpus.hub import REPOSITORY, pinned_revision, release_file
from cradle_lib.corpus.release import read_release
from cradle_lib.errors import CorpusError
from cradle_lib.labels import format_mask

from ..loopback import Handler, Loopback

SHA = "0123456789abcdef0123456789abcdef01234567"
FETCH = "import sys, pathlib; from cradle_lib.corpus import fetch_release; " + (
    "print(fetch_release(pathlib.Path(sys.argv[1]), report=lambda t: print(t, file=sys.stderr)))"
)
Rows = list[tuple[object, ...]]


def parquet(rows: Rows) -> bytes:
    buffer = io.BytesIO()
    names = ("turn_id", "text", "labels")
    pq.write_table(
        pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows]), buffer
    )
    return buffer.getvalue()


def split(text: str) -> bytes:
    return parquet([(0, f"User: {text}", "none")])


class Hub(Handler):
    files: ClassVar[dict[str, bytes]] = {}
    requested: ClassVar[list[str]] = []
    gated: ClassVar[bool] = False

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
        elif self.gated and self.path.startswith(prefix):
            self.send(b"", 403, {"x-error-code": "GatedRepo", "x-error-message": "Restricted."})
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
    Hub.gated = False
    Hub.files = {
        f"data/{name}-00000-of-00001.parquet": split(name)
        for name in ("train", "validation", "test")
    }
    with Loopback(Hub) as server:
        yield server


def fetch(folder: Path, endpoint: str, before: str = "") -> subprocess.CompletedProcess[str]:
    # In a separate process, because the client reads its endpoint at import.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    environment |= {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(folder / "home"),
        "HF_HUB_DISABLE_XET": "1",
        "NO_PROXY": "127.0.0.1",
    }
    return subprocess.run(
        [sys.executable, "-c", before + FETCH, str(folder / "release")],
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
    # The pinned commit is fetched again. Of the same commit, the old file of a damaged one stays;
    # of another, it does not.
    Hub.files["data/test-00000-of-00001.parquet"] = split("test")[:100]
    for commit, kept in ((SHA, True), ("main", False)):
        (folder / "REVISION").write_text(commit)
        Hub.requested = []
        damaged = fetch(tmp_path, hub.url)
        asked = [path for path in Hub.requested if "/revision/" in path]
        assert asked
        assert all(path.endswith(f"/revision/{commit}") for path in asked)
        assert damaged.returncode == 0, damaged.stderr
        assert "test: not a complete parquet file" in damaged.stderr
        assert "test: not saved" in damaged.stderr
        assert release_file("test", folder).exists() is kept
        assert read_release(release_file("train", folder)).turns[0].text == "train"


GOOD: Rows = [(0, "User: a", "none"), (1, "Listener: b", None), (2, "User: c", "alert_past")]
TAGGED = (2, "User: c TAG: alert_past; anybody there", "alert_past")
LONG = (2, "User: c", "confirm_childabuse_endangerment_past; alert_past")
# Dialogues of a split: rows, and the reason for which the dialogue is left out.
CHECKED: list[tuple[Rows, str | None]] = [
    (GOOD, None),
    ([*GOOD[:2], TAGGED], "row 5: the text ends with its labels"),
    ([GOOD[0], (1, "Therapist: b", "none"), GOOD[2]], "row 7: found 'Therapist:', expected"),
    ([GOOD[0], (1, "Mr. Lee: b", "none"), GOOD[2]], "row 10: found another name"),
    ([*GOOD[:2], (2, "User: c", "confirm_no_crisis")], "row 14: unknown label 'confirm_no_crisis'"),
    ([*GOOD[:2], (4, "User: c", "none")], "row 17: turn_id is 4, expected 2"),
    ([(0, "anybody there", "none"), *GOOD[1:]], "row 18: a dialogue starts with a text that"),
    ([GOOD[0], (1, None, "none"), GOOD[2]], "row 22: text is empty, expected text"),
    ([GOOD[0], (1, "[Listener] b", "none"), GOOD[2]], "row 25: found '[Listener]', expected"),
    ([*GOOD[:2], LONG], None),
    ([*GOOD, (3, "Note: it rained", "none"), (4, "Listener: d", "none")], None),
]


def test_all_rows_are_checked_and_what_is_right_is_saved(hub: Loopback, tmp_path: Path) -> None:
    rows = [row for dialogue, _ in CHECKED for row in dialogue]
    del Hub.files["data/validation-00000-of-00001.parquet"]
    # Two files, the first of which ends within a dialogue.
    Hub.files["data/validation-00001-of-00002.parquet"] = parquet(rows[4:])
    missing = fetch(tmp_path, hub.url)
    assert "has 1 parquet files for validation, expected 2" in missing.stderr
    assert not list((tmp_path / "release").glob("*.parquet"))
    Hub.files["data/validation-00000-of-00002.parquet"] = parquet(rows[:4])
    done = fetch(tmp_path, hub.url)
    assert done.returncode == 0, done.stderr
    reasons = [reason for _, reason in CHECKED if reason]
    reported = done.stderr.strip().splitlines()
    assert len(reported) == len(reasons)
    for line, reason in zip(reported, reasons, strict=True):
        assert line.startswith(f"dev, {reason}")
        assert not any(words in line for words in ("anybody there", "Lee"))
    corpus = read_release(release_file("dev", tmp_path / "release"))
    kept = [dialogue for dialogue, reason in CHECKED if reason is None]
    assert [len(dialogue.turns) for dialogue in corpus] == [len(dialogue) for dialogue in kept]
    assert format_mask(corpus.dialogues[1].mask) == "alert_past; confirm_CA_past"


@pytest.mark.parametrize(
    "cells",
    [
        ["none", None, None, None, "alert_past"],
        ["none", "none", "", "nan", "none"],
        [[], [], None, None, ["alert_past"]],
        [None, None, None, None, None],
        [None, None, None, None, "alert_past"],
    ],
)
def test_a_fetched_split_has_the_same_gold_labels_as_its_file(
    hub: Loopback, tmp_path: Path, cells: list[object]
) -> None:
    places = [(0, "User"), (1, "Listener"), (0, "User"), (0, "User"), (1, "Listener")]
    rows: Rows = [(n, f"{who}: a", cell) for (n, who), cell in zip(places, cells, strict=True)]
    content = Hub.files["data/test-00000-of-00001.parquet"] = parquet(rows)
    (tmp_path / "own.parquet").write_bytes(content)
    done = fetch(tmp_path, hub.url)
    assert (done.returncode, done.stderr) == (0, "")
    own, fetched = map(read_release, (tmp_path / "own.parquet", tmp_path / "release/test.parquet"))
    assert [d.labelled for d in fetched] == [d.labelled for d in own]
    assert fetched.fingerprint == own.fingerprint


def test_splits_that_the_hub_lacks_are_reported(hub: Loopback, tmp_path: Path) -> None:
    Hub.files = {"data/validation-00000-of-00001.parquet": split("validation")}
    folder = tmp_path / "release"
    folder.mkdir()
    # From another commit.
    (folder / "REVISION").write_text("main")
    (folder / "train.parquet").write_bytes(b"old")
    done = fetch(tmp_path, hub.url)
    assert done.returncode == 0, done.stderr
    assert [path.stem for path in folder.glob("*.parquet")] == ["dev"]
    reported = [line.partition(" at ")[0] for line in done.stderr.splitlines()]
    assert reported == [f"{name}: the Hub has no {name} split" for name in ("train", "test")]


# Interrupts a fetch, as Ctrl-C does, before the second split is saved.
INTERRUPTED = """
from cradle_lib.corpus import hub
save = hub.save_table
def interrupt(table, path):
    if path.stem == "dev":
        raise KeyboardInterrupt
    save(table, path)
hub.save_table = interrupt
"""


def test_splits_of_two_revisions_are_not_loaded_together(
    hub: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "release"
    monkeypatch.setattr(paths, "RELEASE", folder)
    assert fetch(tmp_path, hub.url).returncode == 0
    (folder / "REVISION").write_text("main")
    for name in ("train", "validation"):
        Hub.files[f"data/{name}-00000-of-00001.parquet"] = split(f"new {name}")
    del Hub.files["data/test-00000-of-00001.parquet"]
    assert "KeyboardInterrupt" in fetch(tmp_path, hub.url, INTERRUPTED).stderr
    kept = [read_release(release_file(name, folder)).turns[0].text for name in ("train", "dev")]
    assert kept == ["new train", "validation"]
    for name in ("train", "dev", "test"):
        with pytest.raises(CorpusError, match=r"was interrupted.* Run `cradle data fetch`"):
            load_corpus("hub", name)
    again = fetch(tmp_path, hub.url)
    assert again.stdout.strip() == SHA == pinned_revision(folder)
    assert load_corpus("hub", "dev").turns[0].text == "new validation"
    assert not release_file("test", folder).exists()


def test_a_release_without_usable_splits_replaces_nothing(hub: Loopback, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    assert fetch(tmp_path, hub.url).returncode == 0
    (folder / "REVISION").write_text("main")
    Hub.files = dict.fromkeys(Hub.files, b"damaged")
    assert "no split of SungJoo/Cradle-Dialogue at" in fetch(tmp_path, hub.url).stderr
    assert read_release(release_file("test", folder)).turns[0].text == "test"
    assert pinned_revision(folder) == "main"


def test_a_missing_split_is_not_an_unfetched_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RELEASE", tmp_path)
    with pytest.raises(CorpusError, match="the release has not been fetched"):
        load_corpus("hub", "train")
    (tmp_path / "test.parquet").write_bytes(split("test"))
    assert len(load_corpus("hub")) == 1
    with pytest.raises(CorpusError, match="the release was fetched without its train split"):
        load_corpus("hub", "train")


def test_without_access_it_says_how_to_get_it(hub: Loopback, tmp_path: Path) -> None:
    Hub.gated = True
    done = fetch(tmp_path, hub.url)
    last = done.stderr.strip().splitlines()[-1]
    for words in ("gives no access", f"huggingface.co/datasets/{REPOSITORY}", "HF_TOKEN"):
        assert words in last
    assert not list((tmp_path / "release").glob("*.parquet"))


def test_the_message_without_a_network_says_what_to_do(tmp_path: Path) -> None:
    # No server listens at port 9.
    done = fetch(tmp_path, "http://127.0.0.1:9")
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert "CorpusError: can't fetch SungJoo/Cradle-Dialogue at main" in last
    assert "train.parquet, dev.parquet, test.parquet" in last
    assert not list((tmp_path / "release").glob("*.parquet"))
