"""What readers answered, compared with the plans."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from sklearn.metrics import cohen_kappa_score

from tools.surrogate import readings
from tools.surrogate.dialogue_files import Row, Written
from tools.surrogate.readings import measure_readings, report

ROWS = [
    Row("U", "hello"),
    Row("L", "what is it"),
    Row("U", "it was bad at home then", ("alert_past",)),
    Row("L", "tell me"),
    Row("U", "he pushed me, my ex", ("confirm_DV_past",)),
]


@pytest.fixture(autouse=True)
def corpus(monkeypatch: pytest.MonkeyPatch) -> dict[str, Written]:
    """Two written dialogues with the same plan."""
    second = [Row("U", "good morning"), *ROWS[1:]]
    found = {
        "dev-a": Written("dev-a", rows=list(ROWS)),
        "dev-b": Written("dev-b", rows=second),
    }
    monkeypatch.setattr(readings, "written", lambda split: found)
    return found


def checksum(rows: list[Row]) -> str:
    """Names a text as the kept answers do, computed independently."""
    content = json.dumps([[row.speaker, row.text] for row in rows])
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def answer(one: Written, labels: dict[str, list[str]], **more: object) -> dict[str, object]:
    """Gives a reader's answer to the present text of a dialogue."""
    own = {"dialogue": one.id, "text": checksum(one.rows), "labels": labels, "objection": ""}
    return own | {"coherence": 4, "believability": 3} | more


def kept(path: Path, *answers: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in answers), encoding="utf-8")
    return path


def test_answers_are_compared_with_the_plan(corpus: dict[str, Written], tmp_path: Path) -> None:
    anchor = {"dialogue": "real", "text": "0", "labels": {}, "objection": "", "coherence": 4}
    anchor["believability"] = 5
    labels = {"one": {"2": ["alert_past"], "4": ["confirm_DV_past"]}}
    labels["two"] = {"2": ["confirm_DV_past"]}
    files = []
    for reader, given in labels.items():
        objection = "an unsafe reply" if reader == "two" else ""
        answers = (
            answer(corpus["dev-a"], given),
            answer(corpus["dev-b"], {}, objection=objection),
            anchor,
        )
        files.append(kept(tmp_path / f"dev-00-{reader}.jsonl", *answers))
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
    guesses = [
        {"dialogue": name, "text": checksum(corpus[name].rows[:3]), "guess": guess}
        for name, guess in (("dev-a", "DV"), ("dev-b", "?"))
    ]
    path = kept(tmp_path / "dev-00-A-hints.jsonl", *guesses)
    assert list(report([path])) == ["types guessed at alerts: 0.50 of 2"]
    corpus["dev-b"].rows = [Row("U", "changed"), *ROWS[1:]]
    assert list(report([path])) == ["types guessed at alerts: 1.00 of 1"]


def test_readings_of_a_changed_text_count_for_the_grades_only(
    corpus: dict[str, Written], tmp_path: Path
) -> None:
    path = kept(tmp_path / "dev-00-A.jsonl", *(answer(one, {}) for one in corpus.values()))
    corpus["dev-a"].rows = [Row("U", "changed"), *ROWS[1:]]
    lines = list(report([path]))
    assert "coherence of written: 4.00 (2 readings)" in lines
    assert any(line.startswith("1 dialogues read") for line in lines)


def test_a_label_on_a_continued_row_belongs_to_the_row_above(
    corpus: dict[str, Written], tmp_path: Path
) -> None:
    rows = [*ROWS[:4], Row("U", "well:"), Row("-", "he pushed me", ("confirm_DV_past",))]
    corpus["dev-a"].rows = rows
    given = answer(corpus["dev-a"], {"2": ["alert_past"], "4": ["confirm_DV_past"]})
    path = kept(tmp_path / "dev-00-A.jsonl", given)
    assert "user rows equal to the plan: 1.000" in report([path])


def test_grades_and_guesses_are_measured_without_the_anchors(
    corpus: dict[str, Written], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings, "READINGS", tmp_path)
    first, second = corpus.values()
    anchor = answer(first, {}, dialogue="stitched", coherence=1)
    kept(tmp_path / "dev-00-A.jsonl", answer(first, {}), answer(second, {}, coherence=5), anchor)
    guess = {"dialogue": "dev-a", "text": checksum(first.rows[:3]), "guess": "DV"}
    kept(tmp_path / "dev-00-A-hints.jsonl", guess)
    found = {one.name: (one.value, one.met) for one in measure_readings()}
    assert found == {
        "readers: coherence": (4.5, True),
        "readers: believability": (3.0, False),
        "readers: % of types guessed at alerts": (100.0, False),
    }
