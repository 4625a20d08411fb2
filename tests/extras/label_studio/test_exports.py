"""Exports: what was written is read back, and whatever is wrong is refused with its place."""

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
from cradle_lib.annotation.table import (
    Annotations,
    read_annotations,
    write_annotations,
)
from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.errors import CorpusError

from ...hostile.attack import altered, as_json, attempt, cases, damaged

Files = dict[str, list[dict[str, Any]]]
Make = Callable[[], Files]
Write = Callable[[dict[str, Any]], list[Path]]


def test_json_is_read_back_as_it_was_annotated_plain_or_gzipped(
    exports: Make,
    written: Write,
    study: Study,
    corpus: Corpus,
    annotations: Annotations,
    tmp_path: Path,
) -> None:
    assert read_exports(written(exports()), study, corpus).entries == annotations.entries
    files = []
    for name, tasks in exports().items():
        files.append(tmp_path / f"{name}.json.gz")
        files[-1].write_bytes(gzip.compress(json.dumps(tasks).encode()))
    assert read_exports(files, study, corpus).entries == annotations.entries
    with pytest.raises(CorpusError, match=r"dialogue d\d+: not annotated by \w; \d+ of \d+"):
        read_exports(files[1:], study, corpus)
    with pytest.raises(CorpusError, match="has annotated dialogue d"):
        read_exports([*files, files[0]], study, corpus)
    files[0].write_bytes(files[0].read_bytes()[:-40])
    with pytest.raises(CorpusError, match=r"round\d-\w\.json\.gz: can't be read"):
        read_exports(files, study, corpus)


Change = Callable[[dict[str, Any]], Any]


def _labelled(files: Files) -> dict[str, Any]:
    return next(t for tasks in files.values() for t in tasks if t["annotations"][0]["result"])


def value(task: dict[str, Any]) -> dict[str, Any]:
    """The value of the first region of a task."""
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
        (lambda t: t["data"].pop("annotators"), r"task \d+: data\.annotators: Field required"),
        (lambda t: value(t).update(paragraphlabels=["angry"]), "are not labels of the interface"),
        (lambda t: value(t).update(paragraphlabels=[]), "are not labels of the interface"),
        (lambda t: value(t).update(end="8"), r"turn \d: a region runs over several turns"),
        (lambda t: value(t).update(start="9", end="9"), "turn 9: the dialogue has 9 turns"),
        (
            lambda t: value(t).update(text="Somebody else."),
            r"turn \d: a region with a text that the turn does not have.*another task",
        ),
        # A result that may carry a label is never ignored.
        (
            lambda t: t["annotations"][0]["result"][0].update(type="choices"),
            r"annotations\.0\.result\.0\.type: Input should be 'paragraphlabels'",
        ),
    ],
)
def test_what_is_wrong_is_refused_and_named(
    change: Change, message: str, exports: Make, written: Write, study: Study, corpus: Corpus
) -> None:
    files = exports()
    change(_labelled(files))
    with pytest.raises(CorpusError, match=message):
        read_exports(written(files), study, corpus)


@pytest.mark.hostile
def test_an_export_of_odd_values_is_read_or_refused_in_a_line(
    exports: Make, written: Write, study: Study, corpus: Corpus
) -> None:
    paths = written(exports())
    content = paths[0].read_bytes()
    for rng in cases("export"):
        for changed in (as_json(altered(json.loads(content), rng)), damaged(content, rng)):
            paths[0].write_bytes(changed)
            attempt(lambda: read_exports(paths, study, corpus))


# As Label Studio 1.23.2 exports them from a configuration with these controls; the last one is on a
# turn, and shares its id with the turn's labels.
BESIDE = [
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


def test_results_without_a_label_are_ignored_and_counted(
    exports: Make, written: Write, study: Study, corpus: Corpus, annotations: Annotations
) -> None:
    files = exports()
    task = _labelled(files)
    task["annotations"][0]["result"] = [*task["annotations"][0]["result"], *BESIDE]
    ignored: Counter[str] = Counter()
    found = read_exports(written(files), study, corpus, ignored=ignored)
    assert found.entries == annotations.entries
    assert +ignored == {"results without a label": len(BESIDE)}


def test_a_task_that_was_skipped_and_submitted_was_submitted(
    exports: Make, written: Write, study: Study, corpus: Corpus, annotations: Annotations
) -> None:
    files = exports()
    for place, task in enumerate(task for tasks in files.values() for task in tasks):
        cancelled = {"id": 5, "completed_by": {"id": 7}, "was_cancelled": True, "result": []}
        task["annotations"].insert(place % 2, cancelled)
    ignored: Counter[str] = Counter()
    found = read_exports(written(files), study, corpus, ignored=ignored)
    assert found.entries == annotations.entries
    assert +ignored == {"skipped annotations": len(study.assignments)}


def test_a_region_without_line_breaks_or_of_a_part_of_a_turn_is_taken(
    exports: Make, written: Write, study: Study, corpus: Corpus, annotations: Annotations
) -> None:
    files = exports()
    for result in (r for ts in files.values() for t in ts for r in t["annotations"][0]["result"]):
        text = result["value"]["text"]
        result["value"]["text"] = text[: len(text) // 2 + 1].replace(" ", "\n")
    assert read_exports(written(files), study, corpus).entries == annotations.entries


def test_another_corpus_is_refused_whatever_its_labels(
    exports: Make, written: Write, study: Study, corpus: Corpus
) -> None:
    turns = corpus.dialogues[0].turns
    relabelled = Dialogue(0, tuple(replace(turn, mask=0) for turn in turns))
    same = Corpus("other labels", (relabelled, *corpus.dialogues[1:]))
    read_exports(written(exports()), study, same)
    reworded = Dialogue(0, (replace(turns[0], text="Hello."), *turns[1:]))
    other = Corpus("other words", (reworded, *corpus.dialogues[1:]))
    with pytest.raises(CorpusError, match="the study was made on small"):
        read_exports(written(exports()), study, other)


def test_tasks_hold_no_labels_and_are_one_file_for_each_person_and_round(
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


def test_a_table_is_read_back_from_parquet_and_csv(
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
