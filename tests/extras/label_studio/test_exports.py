"""Label Studio's exports: reading, and messages about invalid ones."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cradle_extras.label_studio.exports import read_exports
from cradle_extras.label_studio.study import Study
from cradle_extras.label_studio.tasks import write_tasks
from cradle_lib.annotation.table import Annotations, read_annotations, write_annotations
from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.errors import CorpusError

from ...hostile.attack import altered, as_json, attempt, cases, damaged
from .conftest import Exports, Read

Task = dict[str, Any]
Write = Callable[[Exports], list[Path]]


def test_exports_may_be_gzipped_and_must_be_complete(
    exports: Exports, written: Write, study: Study, corpus: Corpus, annotations: Annotations
) -> None:
    files = written(exports)
    packed = [file.with_suffix(".json.gz") for file in files]
    for file, target in zip(files, packed, strict=True):
        target.write_bytes(gzip.compress(file.read_bytes()))
    assert read_exports(packed, study, corpus).entries == annotations.entries
    with pytest.raises(CorpusError, match=r"dialogue d\d+: not annotated by \w; \d+ of \d+"):
        read_exports(files[1:], study, corpus)
    with pytest.raises(CorpusError, match="has annotated dialogue d"):
        read_exports([*files, files[0]], study, corpus)
    packed[0].write_bytes(packed[0].read_bytes()[:-40])
    with pytest.raises(CorpusError, match=r"\w+-\w\.json\.gz: can't be read"):
        read_exports(packed, study, corpus)


def labelled(files: Exports) -> Task:
    """Returns the first task with a label."""
    return next(t for tasks in files.values() for t in tasks if t["annotations"][0]["result"])


def value(task: Task) -> dict[str, Any]:
    """Returns the value of the first region of a task."""
    found: dict[str, Any] = task["annotations"][0]["result"][0]["value"]
    return found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t["annotations"].clear(), r"dialogue d\d+: not annotated by \w; 1 of \d+"),
        (
            lambda t: t["annotations"].append(t["annotations"][0]),
            r"task \d+ \(dialogue d\d+\), annotator (\w): \1 has annotated dialogue d\d+ already",
        ),
        (lambda t: t["annotations"][0].update(was_cancelled=True), "and 1 tasks were skipped"),
        (lambda t: t["data"].update(texts="0" * 12), "annotator .: made for corpus 'small' with"),
        (lambda t: t["data"]["turns"][3].update(text="milder"), "turn 3: the text was edited"),
        (lambda t: t["data"].update(dialogue_id="d0999"), "dialogue 'd0999' is not in small"),
        (lambda t: t["data"].update(annotators=["Z"]), "annotator Z: not assigned to Z"),
        (lambda t: t["data"].pop("annotators"), r"task \d+: field `data.annotators` is missing"),
        (lambda t: value(t).update(paragraphlabels=["angry"]), "are not labels of the interface"),
        (lambda t: value(t).update(paragraphlabels=[]), "are not labels of the interface"),
        (lambda t: value(t).update(end="88"), r"turn \d: a region spans several turns"),
        (lambda t: value(t).update(start="99", end="99"), r"turn 99: the dialogue has \d+ turns"),
        (
            lambda t: value(t).update(text="Somebody else."),
            r"turn \d: the turn does not contain the text of a region.*another task",
        ),
        # Unknown results that may have a label are never ignored.
        (
            lambda t: t["annotations"][0]["result"][0].update(type="choices"),
            "field `annotations.0.result.0.type` must be 'paragraphlabels'",
        ),
    ],
)
def test_an_invalid_export_is_refused_with_its_position(
    change: Callable[[Task], Any], message: str, exports: Exports, read: Callable[[], Read]
) -> None:
    change(labelled(exports))
    with pytest.raises(CorpusError, match=message):
        read()


@pytest.mark.hostile
def test_an_export_with_unexpected_values_is_read_or_refused(
    exports: Exports, written: Write, study: Study, corpus: Corpus
) -> None:
    paths = written(exports)
    content = paths[0].read_bytes()
    for rng in cases("export"):
        for changed in (as_json(altered(json.loads(content), rng)), damaged(content, rng)):
            paths[0].write_bytes(changed)
            read = attempt(lambda: read_exports(paths, study, corpus))
            if read is not None:
                assert {entry.dialogue for entry in read.entries} <= {d.id for d in corpus}


# Results of other controls, as exported by Label Studio 1.23.2. The last one is on a turn and has
# the id of the turn's labels.
OTHER_RESULTS = [
    {"from_id": "turn1", "to_id": "turn3", "type": "relation", "direction": "right"},
    {"from_name": "r", "to_name": "dialogue", "type": "rating", "value": {"rating": 3}},
    {
        "id": "turn1",
        "from_name": "on_turn",
        "to_name": "dialogue",
        "type": "textarea",
        "value": {"start": "1", "end": "1", "startOffset": 0, "endOffset": 3, "text": ["unsure"]},
    },
]


def test_results_without_labels_and_skips_are_ignored_and_counted(
    exports: Exports, read: Callable[[], Read], annotations: Annotations
) -> None:
    labelled(exports)["annotations"][0]["result"] += OTHER_RESULTS
    tasks = [task for tasks in exports.values() for task in tasks]
    for place, task in enumerate(tasks):
        # Skipped before or after submission.
        task["annotations"].insert(place % 2, {"id": 5, "was_cancelled": True, "result": []})
    found, ignored = read()
    assert found.entries == annotations.entries
    counts = {"results without a label": len(OTHER_RESULTS), "skipped annotations": len(tasks)}
    assert ignored == counts


def test_accounts_of_several_people_are_named(exports: Exports, read: Callable[[], Read]) -> None:
    assert read()[1] == {}
    tasks = exports["round1-A"]
    a, b = (exports[f"round1-{name}"][0]["annotations"][0]["completed_by"] for name in "AB")
    given = Counter(t["data"]["annotators"][0] for ts in exports.values() for t in ts)
    tasks[0]["annotations"][0]["completed_by"] = {"id": b, "email": "b@example.org"}
    assert read()[1] == {
        f"annotations by account {b}, which submitted for A, B: their agreement may compare a "
        "person with themselves": given["B"] + 1,
        f"annotations of A, from several accounts: {a}, {b}": given["A"],
    }
    for task in (task for tasks in exports.values() for task in tasks):
        task["annotations"][0]["completed_by"] = "all@example.org"
    [(note, count)] = read()[1].items()
    assert "all@example.org, which submitted for A, B, C, D" in note
    assert count == given.total()


def test_newer_drafts_are_counted(exports: Exports, read: Callable[[], Read]) -> None:
    task = labelled(exports)
    task["annotations"][0]["updated_at"] = "2024-05-01T10:00:00.000000Z"
    newer, older = "2024-05-01T12:30:00+02:00", "2024-05-01T11:59:00+02:00"
    # The time of the last one is unknown.
    task["drafts"] = [{"updated_at": newer}, {"updated_at": older}, 17]
    assert read()[1]["drafts newer than the submitted annotation"] == 2
    task["annotations"].clear()
    with pytest.raises(CorpusError, match="1 have only a draft"):
        read()


def test_a_region_may_be_a_part_of_a_turn_with_other_white_space(
    exports: Exports, read: Callable[[], Read], annotations: Annotations
) -> None:
    for result in (r for ts in exports.values() for t in ts for r in t["annotations"][0]["result"]):
        text = result["value"]["text"]
        result["value"]["text"] = text[: len(text) // 2 + 1].replace(" ", "\n")
    assert read()[0].entries == annotations.entries


def test_other_texts_are_refused(
    exports: Exports, written: Write, study: Study, corpus: Corpus
) -> None:
    def with_first(**changes: Any) -> Corpus:
        turn, *turns = corpus.dialogues[0].turns
        first = Dialogue(0, (replace(turn, **changes), *turns))
        return Corpus("other", (first, *corpus.dialogues[1:]))

    read_exports(written(exports), study, with_first(mask=2))
    with pytest.raises(CorpusError, match="the study was made on small"):
        read_exports(written(exports), study, with_first(text="Hello."))


def test_tasks_have_no_labels_and_one_file_per_person_and_round(
    study: Study, corpus: Corpus, tmp_path: Path
) -> None:
    first = [item for item in study.assignments if item.role == "annotator"]
    files = write_tasks(study, corpus, tmp_path, first)
    assert sorted(path.stem for path in files) == [
        f"round{number}-{name}" for number in (1, 2) for name in "ABCD"
    ]
    text = files[0].read_text(encoding="utf-8")
    assert "alert_" not in text
    assert "confirm_" not in text


def test_a_table_survives_a_round_trip_through_parquet_and_csv(
    annotations: Annotations, corpus: Corpus, tmp_path: Path
) -> None:
    for ending in (".parquet", ".csv"):
        path = tmp_path / f"table{ending}"
        write_annotations(annotations, path)
        assert read_annotations(path, corpus).entries == annotations.entries
    text = path.read_text(encoding="utf-8")
    for old, new, message in (
        (corpus.texts_fingerprint, "0" * 12, "made on texts 000000000000"),
        (",annotator,none", ",boss,none", "role is 'boss'"),
        ("alert_ongoing", "alert_soon", "unknown label 'alert_soon'"),
    ):
        path.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(CorpusError, match=message):
            read_annotations(path, corpus)
    (tmp_path / "table.parquet").write_bytes(b"PAR1 but not really")
    for name in ("table.parquet", "gone.csv"):
        with pytest.raises(CorpusError, match=name):
            read_annotations(tmp_path / name, corpus)
