"""Damaged corpora and journals are read correctly or refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cradle_lib.corpus import Corpus, convert, load_corpus, read_release
from cradle_lib.corpus.release import write_release
from cradle_lib.detection import Outcome, load_predictions, load_registry, read_journal
from cradle_lib.detection.runs.run import run
from cradle_lib.labels import BITS, format_mask

from ..detection.dialogues import make_corpus
from .attack import altered, as_json, attempt, cases, damaged

pytestmark = pytest.mark.hostile


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    surrogate = load_corpus("surrogate")
    chosen = [i for i, dialogue in enumerate(surrogate) if dialogue.mask][:6]
    rows = [
        [("+" if t.continues else t.speaker, t.text, format_mask(t.mask)) for t in d.turns]
        for d in (surrogate.dialogues[i] for i in chosen)
    ]
    return make_corpus(rows, "part")


def _formats(corpus: Corpus, folder: Path) -> dict[str, bytes]:
    made = {}
    for ending in (".parquet", ".csv"):
        write_release(corpus, folder / f"c{ending}")
        made[ending] = (folder / f"c{ending}").read_bytes()
    frame = pd.read_parquet(folder / "c.parquet")
    made[".json"] = frame.to_json(orient="records").encode()
    made[".jsonl"] = frame.to_json(orient="records", lines=True).encode()
    return made


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".json", ".jsonl"])
def test_a_damaged_corpus_is_valid_or_refused(corpus: Corpus, tmp_path: Path, ending: str) -> None:
    content = _formats(corpus, tmp_path)[ending]
    path = tmp_path / f"mutant{ending}"
    for rng in cases(ending):
        path.write_bytes(damaged(content, rng))
        read = attempt(lambda: read_release(path))
        if read is not None:
            assert [t.row for t in read.turns] == list(range(len(read.turns)))
            for dialogue in read:
                assert [t.turn_id for t in dialogue.turns] == list(range(len(dialogue.turns)))
            assert all(0 <= turn.mask < 1 << 16 for turn in read.turns)
            read.to_frame()


def test_a_corpus_with_unexpected_values_is_read_or_refused(corpus: Corpus, tmp_path: Path) -> None:
    rows = json.loads(_formats(corpus, tmp_path)[".json"])[:12]
    path = tmp_path / "mutant.json"
    for rng in cases("values"):
        path.write_bytes(as_json(altered(rows, rng)))
        read = attempt(lambda: read_release(path))
        if read is not None:
            assert len(read.to_frame()) == len(list(read.turns))


CHAT = {
    "conversation_id": "c1",
    "topic": ["bus"],
    "messages": [
        {"role": "user", "content": "Hi", "ts": "2024-03-12T21:00", "meta": {"mood": "calm"}},
        {"role": "assistant", "content": [{"type": "text", "text": "Yes?"}], "ts": "2024-03-12T22"},
        {"role": "user", "content": "I hurt", "ts": "2024-03-13", "labels": ["alert_past"]},
    ],
}
TABLE = (
    "Session;Turn;created_at;Speaker;Text;Labels\n"
    'a;0;05/03/24 10:00;Patient;"Hi; there";none\n'
    "a;1;05/03/24 10:01;Therapist;Yes?;\n"
    "b;0;06/03/24 10:00;Patient;I hurt;Alert: past\n"
)
EXPORT = (
    "12/03/24, 21:00 - Anna joined\n12/03/24, 21:00 - Patient: Hi\nthere\n\n"
    "12/03/24, 21:01 - Therapist: Yes?\n[12.03.24, 21:02:05] Patient: <Media omitted>\n"
)
FORMS = {"x.jsonl": json.dumps(CHAT) + "\n", "x.csv": TABLE, "x.txt": EXPORT}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("single", [False, True])
def test_a_users_damaged_file_is_converted_or_refused(
    name: str, single: bool, tmp_path: Path
) -> None:
    path, out = tmp_path / name, tmp_path / "out.csv"
    for rng in cases(f"convert {name}"):
        content = damaged(FORMS[name].encode(), rng)
        if name == "x.jsonl" and rng.random() < 0.7:
            content = as_json(altered([CHAT], rng))
        path.write_bytes(content)
        options: dict[str, Any] = {
            "labels": rng.choice((None, "none", "meta.mood")),
            "dialogue": rng.choice((None, "file")),
            "order": rng.choice((None, "file", "reversed", "ts", "created_at")),
            "cumulative": rng.choice((None, None, True, False)),
            "leave_out": rng.choice(((), ("Anna",))),
        }
        found = attempt(lambda: convert(path, out, single=single, **options))  # noqa: B023
        if found is not None:
            assert load_corpus(out).fingerprint == found.corpus.fingerprint


@pytest.fixture(scope="module")
def journal(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return run(load_registry()["keyword"], corpus, out=tmp_path_factory.mktemp("j")).read_bytes()


def _mask_of(answer: str) -> int:
    """Parses an answer of the keyword baseline, which has only labels."""
    return sum(BITS[name] for name in answer.split("; ") if name != "none")


def test_a_damaged_journal_is_valid_or_fails(
    corpus: Corpus, journal: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(journal)
    known = {(p.dialogue, p.turn, p.key): p for p in read_journal(path)[1]}
    for rng in cases("journal"):
        path.write_bytes(damaged(journal, rng))
        read = attempt(lambda: read_journal(path))
        for found in read[1] if read is not None else ():
            if found.outcome is Outcome.OK and found.answer == found.answer.strip():
                original = known.get((found.dialogue, found.turn, found.key))
                if original is not None and found.answer == original.answer:
                    assert found.mask == _mask_of(found.answer)
        attempt(lambda: load_predictions(path, corpus, partial=True))


def test_a_journal_with_unexpected_values_is_read_or_refused(
    corpus: Corpus, journal: bytes, tmp_path: Path
) -> None:
    lines = [json.loads(line) for line in journal.splitlines()]
    path = tmp_path / "j.jsonl"
    for rng in cases("journal values"):
        mutant = list(lines)
        place = rng.randrange(len(lines))
        mutant[place] = altered(lines[place], rng)
        path.write_bytes(b"".join(as_json(line) + b"\n" for line in mutant))
        read = attempt(lambda: load_predictions(path, corpus, partial=True))
        if read is not None:
            frame = read.to_frame()
            assert {*frame["dialogue"]} == {dialogue.id for dialogue in read.corpus}
            assert {*frame["outcome"]} <= {*Outcome}
