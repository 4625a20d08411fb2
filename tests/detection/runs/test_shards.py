"""Joining the journals of shards."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Model, read_journal
from cradle_lib.detection.runs.run import run
from cradle_lib.detection.runs.shards import join
from cradle_lib.errors import JournalError

from ..dialogues import make_corpus, without_timestamps

KEYWORD = Model(id="keyword", name="Keyword", group="baseline", engine="keyword")
CORPUS = make_corpus(
    [
        [("User", f"I hurt myself {i} {row}.", "none") for row in range(1 + (5 * i) % 4)]
        for i in range(11)
    ]
)


def make_shards(folder: Path, **options: Any) -> list[Path]:
    files = [folder / f"k.shard-{index}-of-3.jsonl" for index in range(3)]
    for index, file in enumerate(files):
        run(KEYWORD, CORPUS, out=file, shard=f"{index}/3", **options)
    return files


def test_joined_shards_equal_the_journal_of_one_process(tmp_path: Path) -> None:
    run(KEYWORD, CORPUS, out=tmp_path / "one.jsonl", limit=9)
    shards = make_shards(tmp_path, limit=9)
    joined = tmp_path / "k.jsonl"
    # The order of the shards does not matter.
    join(shards[::-1], joined, CORPUS)
    assert without_timestamps(joined) == without_timestamps(tmp_path / "one.jsonl")
    with pytest.raises(JournalError, match="already exists"):
        join(shards, joined, CORPUS)
    for shard in ("3/3", "1/2/3"):
        with pytest.raises(JournalError, match="expected i/n"):
            run(KEYWORD, CORPUS, out=tmp_path, shard=shard)


def test_joining_keeps_every_paid_answer(tmp_path: Path) -> None:
    shards = make_shards(tmp_path)
    with shards[1].open("a") as file:
        line = json.loads(shards[1].read_text().splitlines()[1])
        again = line | {"outcome": "failed", "answer": "", "labels": "none", "reason": "lost"}
        file.write(json.dumps(again) + "\n")
    joined = tmp_path / "k.jsonl"
    join(shards, joined, CORPUS)
    both = [x for x in joined.read_text().splitlines() if json.loads(x).get("key") == line["key"]]
    assert [json.loads(x)["outcome"] for x in both] == ["ok", "failed"]
    # The last line of a turn counts, as in the shard.
    [last] = [p for p in read_journal(joined)[1] if p.key == line["key"]]
    assert last.outcome == "failed"


EDITED = make_corpus([[("User", f"Otherwise {i}.", "none")] for i in range(11)])


def replace_middle(**options: Any) -> Callable[[list[Path]], None]:
    """Makes a function that replaces the middle shard by another run."""

    def damage(shards: list[Path]) -> None:
        shards[1].unlink()
        run(KEYWORD, options.pop("corpus", CORPUS), out=shards[1], **options)

    return damage


def cut(shards: list[Path]) -> None:
    shards[1].write_bytes(b"".join(shards[1].read_bytes().splitlines(keepends=True)[:-1]))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda shards: shards.pop(1), r"10 of 26 user turns are not answered .* Name all shards"),
        (lambda shards: shards[1].unlink(), r"shard-1-of-3.jsonl: there is no journal"),
        (
            replace_middle(corpus=Corpus("other", CORPUS.dialogues), shard="1/3"),
            r"belongs to another run .* corpus is 'other' here and 'tiny' there",
        ),
        (
            replace_middle(corpus=EDITED, shard="1/3"),
            r"was made for tiny .* Name its corpus with --corpus",
        ),
        (replace_middle(shard="1/4"), r"shards i/n with different n \(0/3, 1/4, 2/3\)"),
        (cut, r"1 of 26 user turns are not answered .* in dialogue d0010"),
    ],
)
def test_incomplete_or_different_shards_are_refused_and_nothing_is_written(
    tmp_path: Path, damage: Callable[[list[Path]], object], message: str
) -> None:
    shards = make_shards(tmp_path)
    damage(shards)
    joined = tmp_path / "k.jsonl"
    with pytest.raises(JournalError, match=message):
        join(shards, joined, CORPUS)
    assert not joined.exists()
    assert not list(tmp_path.glob(".*.part"))
