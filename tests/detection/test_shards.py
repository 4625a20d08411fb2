"""Shards that are joined are the run of one process; what does not belong together is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Model, Options, read_journal
from cradle_lib.detection.run import run
from cradle_lib.detection.shards import join
from cradle_lib.errors import JournalError

from .dialogues import make_corpus
from .local.tiny_models import make_model, make_weights

SHARDS = 3
MEASURED = re.compile(rb'"(?:seconds|started)": (?:"[^"]*"|[0-9.e-]+)')
KEYWORD = Model(id="keyword", name="Keyword", group="baseline", engine="keyword")
CORPUS = make_corpus(
    [
        [("User", f"I hurt myself {i} {row}.", "none") for row in range(1 + (5 * i) % 4)]
        for i in range(11)
    ]
)


def normal(path: Path) -> bytes:
    return MEASURED.sub(b"-", path.read_bytes())


def make_shards(folder: Path, model: Model = KEYWORD, **options: Any) -> list[Path]:
    files = []
    for index in range(SHARDS):
        files.append(folder / f"k.shard-{index}-of-{SHARDS}.jsonl")
        run(model, CORPUS, out=files[-1], shard=f"{index}/{SHARDS}", **options)
    return files


def turns_of(corpus: Corpus) -> dict[str, int]:
    return {dialogue.id: len(dialogue.user_turns) for dialogue in corpus}


@pytest.mark.parametrize("limit", [None, 7])
def test_joined_shards_are_the_bytes_of_one_process(tmp_path: Path, limit: int | None) -> None:
    run(KEYWORD, CORPUS, out=tmp_path / "one.jsonl", limit=limit)
    shards = make_shards(tmp_path, limit=limit)
    joined = tmp_path / "k.jsonl"
    # In whatever order they are named.
    join(shards[::-1], joined, dialogues=len(CORPUS), turns=turns_of(CORPUS))
    assert normal(joined) == normal(tmp_path / "one.jsonl")


def test_an_engine_that_leads_many_dialogues_writes_the_same_lines_in_its_own_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "short.txt").write_text("Label.\n{history}\n{current_turn}\n")
    monkeypatch.setattr(paths, "PROMPTS", tmp_path)
    model = make_model(make_weights(tmp_path / "weights"), "wave")
    run(model, CORPUS, out=tmp_path / "one.jsonl")
    shards = make_shards(tmp_path, model=model)
    join(shards, tmp_path / "k.jsonl", dialogues=len(CORPUS), turns=turns_of(CORPUS))
    one, joined = (normal(tmp_path / name).splitlines() for name in ("one.jsonl", "k.jsonl"))
    assert one != joined
    assert one[0] == joined[0]
    assert sorted(one) == sorted(joined)


def test_every_line_that_was_paid_for_is_kept(tmp_path: Path) -> None:
    shards = make_shards(tmp_path)
    with shards[1].open("a") as file:
        line = json.loads(shards[1].read_text().splitlines()[1])
        again = line | {"outcome": "failed", "answer": "", "labels": "none", "reason": "lost"}
        file.write(json.dumps(again) + "\n")
    joined = tmp_path / "k.jsonl"
    join(shards, joined, dialogues=len(CORPUS))
    both = [x for x in joined.read_text().splitlines() if json.loads(x).get("key") == line["key"]]
    assert [json.loads(x)["outcome"] for x in both] == ["ok", "failed"]
    # The later line of a turn counts, as in the shard.
    [last] = [p for p in read_journal(joined)[1] if p.key == line["key"]]
    assert last.outcome == "failed"


def test_answers_outside_the_run_survive(tmp_path: Path) -> None:
    whole, parts = tmp_path / "k.jsonl", [tmp_path / f"k.shard-{i}-of-2.jsonl" for i in range(2)]
    for limit in (None, 4):
        for index, part in enumerate(parts):
            run(KEYWORD, CORPUS, out=part, limit=limit, shard=f"{index}/2")
    answers = [answer for part in parts for answer in read_journal(part)[1]]
    record = join(parts, whole, dialogues=len(CORPUS))
    assert record.dialogues == [dialogue.id for dialogue in CORPUS.dialogues[:4]]
    joined = read_journal(whole)[1]
    assert sorted(joined, key=lambda one: one.key) == sorted(answers, key=lambda one: one.key)


def test_a_machine_that_differs_has_a_header_of_its_own(tmp_path: Path) -> None:
    shards = make_shards(tmp_path)
    other = shards[2].read_text().replace('"platform": "', '"platform": "Other ')
    shards[2].write_text(other)
    join(shards, tmp_path / "k.jsonl", dialogues=len(CORPUS))
    lines = [json.loads(line) for line in (tmp_path / "k.jsonl").read_text().splitlines()]
    headers = [line["record"]["platform"] for line in lines if "record" in line]
    assert headers[0].startswith("Other ")
    assert not headers[1].startswith("Other ")
    assert len(headers) == 2


def _missing(shards: list[Path]) -> None:
    shards.pop(1)


def _absent(shards: list[Path]) -> None:
    shards[1].unlink()


def _twice(shards: list[Path]) -> None:
    shards[2] = shards[1]


def _other_corpus(shards: list[Path]) -> None:
    shards[1].unlink()
    run(KEYWORD, Corpus("other", CORPUS.dialogues), out=shards[1], shard="1/3")


def _edited_corpus(shards: list[Path]) -> None:
    shards[1].unlink()
    edited = make_corpus([[("User", f"Otherwise {i}.", "none")] for i in range(11)])
    run(KEYWORD, edited, out=shards[1], shard="1/3")


def _whole(shards: list[Path]) -> None:
    shards[1].unlink()
    run(KEYWORD, CORPUS, out=shards[1])


def _other_division(shards: list[Path]) -> None:
    shards[1].unlink()
    run(KEYWORD, CORPUS, out=shards[1], shard="1/4")


def _unfinished(shards: list[Path]) -> None:
    lines = shards[1].read_bytes().splitlines(keepends=True)
    shards[1].write_bytes(b"".join(lines[:-1]))


def _other_limit(shards: list[Path]) -> None:
    shards[1].unlink()
    run(KEYWORD, CORPUS, out=shards[1], shard="1/3", limit=5)


def _damaged(shards: list[Path]) -> None:
    shards[1].write_bytes(shards[1].read_bytes() + b"{}\n")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_missing, r"shard 1/3 is missing beside"),
        (_absent, r"shard-1-of-3.jsonl: there is no journal"),
        (_twice, r"is shard 1/3, and so is"),
        (_other_corpus, r"belongs to another run .* corpus is 'other', there 'tiny'"),
        (_edited_corpus, r"for another version of it"),
        (_whole, r"is no shard, but a run by itself"),
        (_other_division, r"is shard 1/4, .* is 0/3. Join those of one division"),
        (_unfinished, r"shard 1/3 answers \d+ of its \d+ user turns. Finish it with"),
        (_other_limit, r"are over different choices of dialogues \(4, 2, 3 of them\)"),
        (
            _damaged,
            r"shard-1-of-3.jsonl, line \d+: the line can't be read: dialogue. Field",
        ),
    ],
)
def test_what_is_not_all_of_one_run_is_refused_and_nothing_is_written(
    tmp_path: Path, spoil: Any, message: str
) -> None:
    shards = make_shards(tmp_path)
    spoil(shards)
    before = {path: path.read_bytes() for path in shards if path.exists()}
    joined = tmp_path / "k.jsonl"
    with pytest.raises(JournalError, match=message):
        join(shards, joined, dialogues=len(CORPUS), turns=turns_of(CORPUS))
    assert not joined.exists()
    assert {path: path.read_bytes() for path in before} == before
    assert not list(tmp_path.glob(".*.part"))


def test_a_journal_that_is_there_is_never_written_over(tmp_path: Path) -> None:
    shards = make_shards(tmp_path)
    run(KEYWORD, CORPUS, out=tmp_path / "k.jsonl", options=Options())
    with pytest.raises(JournalError, match="is there already"):
        join(shards, tmp_path / "k.jsonl", dialogues=len(CORPUS))
