"""Statistics of a corpus, compared with plain loops."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.corpus import Corpus, Dialogue, Turn, load_corpus
from cradle_lib.corpus.statistics import corpus_statistics, dialogue_frame, label_frame
from cradle_lib.errors import CorpusError
from cradle_lib.labels import BITS, CRISIS_TYPES, LABELS, labels_of
from cradle_lib.published import published_table

# Speaker, whether the row continues the one above, mask.
Row = tuple[Literal["User", "Listener"], bool, int]

AO, SHO, SHP = BITS["alert_ongoing"], BITS["confirm_SH_ongoing"], BITS["confirm_SH_past"]

row = st.tuples(
    st.sampled_from(["User", "Listener"]),
    st.booleans(),
    st.one_of(st.sampled_from([0, 0, AO, SHO, AO | SHP]), st.integers(0, 65535)),
)
corpora = st.lists(st.lists(row, min_size=1, max_size=6), min_size=1, max_size=8)


def build(dialogues: Sequence[Sequence[Row]]) -> Corpus:
    turns = [
        tuple(
            Turn(0, i, speaker, "text", mask, i > 0 and more) for i, (speaker, more, mask) in rows
        )
        for rows in (list(enumerate(dialogue)) for dialogue in dialogues)
    ]
    return Corpus("tiny", tuple(Dialogue(i, rows) for i, rows in enumerate(turns)))


def values(corpus: Corpus) -> dict[str, float]:
    frame = corpus_statistics(corpus)
    assert set(frame["corpus"]) == {corpus.name}
    assert frame["value"].dtype == float
    assert frame["quantity"].is_unique
    return dict(zip(frame["quantity"], frame["value"], strict=True))


@settings(deadline=None, max_examples=20)
@given(corpora)
def test_statistics_equal_those_of_plain_loops(dialogues: Sequence[Sequence[Row]]) -> None:
    corpus = build(dialogues)
    found = values(corpus)
    sets = [{name for turn in d.turns for name in labels_of(turn.mask)} for d in corpus]
    every = [name for turn in corpus.turns for name in labels_of(turn.mask)]
    alert, confirm = (
        [any(name.startswith(stage) for name in names) for names in sets]
        for stage in ("alert", "confirm")
    )
    assert found["dialogues"] == len(corpus.dialogues)
    assert found["turns"] == sum(map(len, dialogues))
    assert found["user_turns"] == sum(turn.asked for turn in corpus.turns)
    assert found["mean_turns"] == pytest.approx(statistics.fmean(map(len, dialogues)))
    assert found["labels"] == len(every)
    assert found["dialogues_with_alert"] == sum(alert)
    assert found["dialogues_with_confirm"] == sum(confirm)
    both = sum(a and c for a, c in zip(alert, confirm, strict=True))
    neither = sum(not names for names in sets)
    assert (found["dialogues_with_both"], found["dialogues_with_neither"]) == (both, neither)
    assert found["both_share"] == pytest.approx(both / len(sets))
    assert found["no_label_share"] == pytest.approx(neither / len(sets))
    for name, start in (("labels", ""), ("alerts", "alert"), ("confirms", "confirm")):
        density = [sum(label.startswith(start) for label in names) for names in sets]
        assert found[f"{name}_per_dialogue_mean"] == pytest.approx(statistics.fmean(density))
        assert found[f"{name}_per_dialogue_sd"] == pytest.approx(statistics.pstdev(density))
    counted = Counter(every)
    for label in LABELS:
        if every:
            assert found[f"{label}_share"] == pytest.approx(counted[label] / len(every))
        else:
            assert math.isnan(found[f"{label}_share"])


@settings(deadline=None, max_examples=20)
@given(corpora)
def test_every_label_is_listed_with_its_position(dialogues: Sequence[Sequence[Row]]) -> None:
    corpus = build(dialogues)
    expected = []
    for dialogue in corpus:
        asked = 0
        for turn in dialogue.turns:
            asked += turn.asked
            position = asked if turn.asked else None
            expected += [(dialogue.id, turn.turn_id, position, n) for n in labels_of(turn.mask)]
    frame = label_frame(corpus)
    place = [None if pd.isna(found) else found for found in frame["position"]]
    by_label = zip(frame["dialogue"], frame["turn"], place, frame["label"], strict=True)
    assert list(by_label) == expected
    for name, stage, kind, state in zip(
        frame["label"], frame["stage"], frame["kind"], frame["temporal"], strict=True
    ):
        ids = {words: crisis for crisis, words in CRISIS_TYPES.items()}
        parts = [stage, ids[kind], state] if stage == "confirm" else [kind, state]
        assert "_".join(parts) == name
    each = dialogue_frame(corpus)
    assert [*each["turns"]] == [len(d.turns) for d in corpus]
    assert [*each["user_turns"]] == [sum(t.asked for t in d.turns) for d in corpus]
    assert [*each["labels"]] == [*(each["alerts"] + each["confirms"])]


def test_the_shipped_corpus_has_the_published_statistics() -> None:
    # The published values are rounded.
    found = values(load_corpus("surrogate", "test"))
    stated = {k: v for k, v in published_table().items() if k.startswith("corpus.")}
    for key, entry in stated.items():
        value = found[key.removeprefix("corpus.")] * (100 if entry.unit == "percent" else 1)
        digits = 0 if entry.unit in ("percent", "count") else 2
        assert round(value, digits) == entry.value, key
    assert len(stated) == 16


def test_scenarios_and_timings_are_listed_if_they_are_known() -> None:
    masks = [[0], [0, AO], [SHO]]
    corpus = build([[("User", False, mask) for mask in turns] for turns in masks])
    for unknown in (dialogue_frame(corpus), label_frame(corpus)):
        assert unknown[["scenario", "timing"]].isna().all(axis=None)
    meta = {"scenario": ["S7", "School", "S1"], "timing": ["late", "mid", "first week"]}
    known = replace(corpus, meta=meta)
    each, by_label = dialogue_frame(known), label_frame(known)
    assert each["scenario"].value_counts(sort=False).to_dict() == {
        "S1": 1, "S2": 0, "S3": 0, "S4": 0, "S5": 0, "S6": 0, "S7": 1, "School": 1,
    }  # fmt: skip
    assert [*each["timing"].cat.categories] == ["early", "mid", "late", "first week"]
    assert [*by_label["scenario"]] == ["School", "S1"]
    assert [*by_label["timing"]] == ["mid", "first week"]


def test_a_corpus_without_dialogues_is_refused() -> None:
    empty = Corpus("tiny", ())
    with pytest.raises(CorpusError, match="tiny has no dialogues"):
        corpus_statistics(empty)
    assert len(dialogue_frame(empty)) == len(label_frame(empty)) == 0
