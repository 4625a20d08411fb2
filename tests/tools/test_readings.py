"""Blind readings: sheets, the check of answers, and their report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sklearn.metrics import cohen_kappa_score

from cradle_lib.errors import CorpusError
from tools.surrogate import readings
from tools.surrogate.dialogue_files import Row, Written
from tools.surrogate.readings import collect, hint_texts, report, sheet_ids, sheet_texts

ROWS = [
    Row("U", "hello"),
    Row("L", "what is it"),
    Row("U", "it was bad at home then", ("alert_past",)),
    Row("L", "tell me"),
    Row("U", "he pushed me, my ex", ("confirm_DV_past",)),
]


@pytest.fixture(autouse=True)
def corpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Written]:
    """Two written dialogues with the same plan."""
    second = [Row("U", "good morning"), *ROWS[1:]]
    found = {
        name: Written(name, rows=rows) for name, rows in zip("ab", (ROWS, second), strict=True)
    }
    found = {f"dev-{name}": Written(f"dev-{name}", rows=one.rows) for name, one in found.items()}
    monkeypatch.setattr(readings, "written", lambda split: found)
    monkeypatch.setattr(readings, "sheet_ids", lambda split, number: list(found))
    monkeypatch.setattr(readings, "READINGS", tmp_path / "readings")
    return found


@pytest.fixture
def anchors(tmp_path: Path) -> Path:
    path = tmp_path / "anchors.jsonl"
    path.write_text(json.dumps({"kind": "real", "rows": [["U", "hi"], ["L", "hi you"]]}))
    return path


def answer(name: str, labels: dict[str, list[str]], **more: object) -> str:
    grades = {"coherence": 4, "believability": 3}
    return json.dumps({"id": name, "labels": labels} | grades | more)


def test_the_sheets_of_the_test_split_are_the_groups_of_the_study() -> None:
    sheets = [sheet_ids("test", number) for number in range(12)]
    assert {len(sheet) for sheet in sheets} == {50}
    assert len({name for sheet in sheets for name in sheet}) == 600


def test_a_sheet_shows_no_label_and_no_kind(anchors: Path) -> None:
    texts = sheet_texts("dev", 0, anchors)
    shown = "\n".join(map(str, texts))
    assert [text.name for text in texts] == sorted(text.name for text in texts)
    assert shown.count("===") == 3
    assert "4 User: he pushed me, my ex" in shown
    assert not any(word in shown for word in ("alert", "confirm", "real", "dev-"))


def test_answers_are_compared_with_the_plan(anchors: Path, tmp_path: Path) -> None:
    sheet = sheet_texts("dev", 0, anchors)
    texts = {text.dialogue: text.name for text in sheet}
    given = {
        "one": {"2": ["alert_past"], "4": ["confirm_DV_past"]},
        "two": {"2": ["confirm_DV_past"]},
    }
    files = []
    for reader, labels in given.items():
        path = tmp_path / f"{reader}.jsonl"
        lines = [
            answer(texts["dev-a"], labels),
            answer(texts["dev-b"], {}, objection="an unsafe reply" if reader == "two" else ""),
            answer(texts[""], {}, believability=5),
        ]
        path.write_text("\n".join(lines))
        files.append(collect(path, sheet, f"dev-00-{reader}"))
    found = list(report(files))
    assert "believability of real: 5.00 (2 readings)" in found
    assert "believability of written: 3.00 (4 readings)" in found
    # Of 12 user rows, rows 2 and 4 of the second dialogue differ twice, of the first once.
    assert "user rows equal to the plan: 0.500" in found
    decisions = [(1, 1)] * 2 + [(1, 0)] * 6 + [(0, 1)] + [(0, 0)] * (8 * 16 - 9)
    one, other = zip(*decisions, strict=True)
    assert f"kappa with the plan, labelled rows: {cohen_kappa_score(one, other):.2f}" in found
    assert "2 dialogues read, 2 to write again" in found
    assert any("dev-a: row 2: a reader confirms DV at the alert" in line for line in found)
    assert any("dev-b: objection: an unsafe reply; row 2: plan" in line for line in found)


def test_crisis_types_are_guessed_from_the_beginning(
    corpus: dict[str, Written], tmp_path: Path
) -> None:
    first, second = hint_texts("dev", 0)
    assert [len(text.rows) for text in (first, second)] == [3, 3]
    path = tmp_path / "hints.jsonl"
    guesses = [{"id": first.name, "guess": "DV"}, {"id": second.name, "guess": "?"}]
    path.write_text("\n".join(map(json.dumps, guesses)))
    kept = collect(path, [first, second], "dev-00-A-hints", hints=True)
    assert list(report([kept])) == ["types guessed at alerts: 0.50 of 2"]
    corpus[second.dialogue].rows = [Row("U", "changed"), *ROWS[1:]]
    assert list(report([kept])) == ["types guessed at alerts: 1.00 of 1"]
    path.write_text(json.dumps({"id": first.name, "guess": "XY"}))
    with pytest.raises(CorpusError, match="XY"):
        collect(path, [first], "dev-00-A-hints", hints=True)


def test_readings_of_a_changed_text_count_for_the_grades_only(
    corpus: dict[str, Written], tmp_path: Path
) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text("\n".join(answer(text.name, {}) for text in sheet_texts("dev", 0, None)))
    kept = collect(path, sheet_texts("dev", 0, None), "dev-00-A")
    corpus["dev-a"].rows = [Row("U", "changed"), *ROWS[1:]]
    assert "1 dialogues read, 1 to write again" not in report([kept])
    assert any(line.startswith("1 dialogues read") for line in report([kept]))


def test_a_label_on_a_continued_row_belongs_to_the_row_above(
    corpus: dict[str, Written], tmp_path: Path
) -> None:
    rows = [*ROWS[:4], Row("U", "well:"), Row("-", "he pushed me", ("confirm_DV_past",))]
    corpus["dev-a"].rows = rows
    del corpus["dev-b"]
    path = tmp_path / "one.jsonl"
    [text] = sheet_texts("dev", 0, None)
    path.write_text(answer(text.name, {"2": ["alert_past"], "5": ["confirm_DV_past"]}))
    assert "user rows equal to the plan: 1.000" in report([collect(path, [text], "dev-00-A")])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"id": "ffffffff"}, "ffffffff"),
        ({"labels": {"1": ["alert_past"]}}, "row 1"),
        ({"labels": {"2": ["alert"]}}, "row 2"),
        ({"labels": {"9": ["alert_past"]}}, "line 1"),
        ({"coherence": 6}, "coherence"),
    ],
)
def test_a_malformed_answer_is_refused(
    change: dict[str, object], words: str, tmp_path: Path
) -> None:
    name = sheet_texts("dev", 0, None)[0].name
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps(json.loads(answer(name, {})) | change))
    with pytest.raises(CorpusError, match=words):
        collect(path, sheet_texts("dev", 0, None), "dev-00-A")
    assert not (tmp_path / "readings").exists()


def test_a_missing_answer_is_refused(tmp_path: Path) -> None:
    first, second = sheet_texts("dev", 0, None)
    path = tmp_path / "one.jsonl"
    path.write_text(answer(first.name, {}))
    with pytest.raises(CorpusError, match=f"no answer to {second.name}"):
        collect(path, sheet_texts("dev", 0, None), "dev-00-A")
