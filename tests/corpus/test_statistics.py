from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.corpus import Corpus, Dialogue, Turn, check_counts
from cradle_lib.corpus.statistics import corpus_statistics
from cradle_lib.errors import CorpusError
from cradle_lib.labels import BITS, LABELS, labels_of
from cradle_lib.published import published, published_label_counts, published_table

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


def user(*masks: int) -> list[Row]:
    return [("User", False, mask) for mask in masks]


@settings(deadline=None, max_examples=60)
@given(corpora)
def test_statistics_equal_those_of_a_table_of_labels(dialogues: Sequence[Sequence[Row]]) -> None:
    corpus = build(dialogues)
    found = corpus_statistics(corpus)
    table = pd.DataFrame(
        [
            (dialogue.index, turn.turn_id, turn.asked, label)
            for dialogue in corpus
            for turn in dialogue.turns
            for label in labels_of(turn.mask)
        ],
        columns=["dialogue", "turn", "asked", "label"],
    )
    everyone = pd.RangeIndex(len(corpus))
    assert found.labels == len(table)
    for counts, rows in (
        (found.occurrences, table),
        (found.user_occurrences, table[table["asked"].astype(bool)]),
    ):
        expected = rows["label"].value_counts().reindex(list(LABELS), fill_value=0)
        assert counts == expected.to_dict()
    for spread, start in (
        (found.labels_per_dialogue, ""),
        (found.alerts_per_dialogue, "alert"),
        (found.confirms_per_dialogue, "confirm"),
    ):
        part = table[table["label"].astype(str).str.startswith(start)]
        unique = part.groupby("dialogue")["label"].nunique().reindex(everyone, fill_value=0)
        assert spread.mean == pytest.approx(unique.mean())
        assert spread.sd == pytest.approx(unique.std(ddof=0))
        assert (spread.low, spread.median, spread.high) == (
            unique.min(),
            unique.median(),
            unique.max(),
        )
    for stage in ("alert", "confirm"):
        part = table[table["label"].astype(str).str.startswith(stage)]
        first = part.groupby("dialogue")["turn"].min().value_counts().sort_index()
        assert found.onsets[stage] == first.to_dict()
    assert sum(found.lengths.values()) == found.dialogues == len(corpus)
    assert sum(size * n for size, n in found.lengths.items()) == found.turns


@settings(deadline=None, max_examples=60)
@given(corpora)
def test_the_four_groups_of_dialogues_fit_together_and_equal_the_check(
    dialogues: Sequence[Sequence[Row]],
) -> None:
    corpus = build(dialogues)
    found = corpus_statistics(corpus)
    either = found.with_alert + found.with_confirm - found.with_both
    assert either + found.with_neither == found.dialogues
    by_name = {check.name: check.found for check in check_counts(corpus)}
    assert by_name["dialogues with both"] == found.with_both
    assert by_name["dialogues with neither"] == found.with_neither
    assert by_name["labels"] == found.labels
    assert by_name["user turns"] == found.user_turns


def test_the_published_label_counts_give_the_published_shares() -> None:
    corpus = build(
        [user(BITS[label]) for label, n in published_label_counts().items() for _ in range(n)]
    )
    found = corpus_statistics(corpus)
    assert found.labels == 711
    assert found.ongoing_percent == pytest.approx(100 * 448 / 711)
    assert round(found.ongoing_percent) == published("corpus.ongoing_share")
    assert found.percent["alert_ongoing"] == pytest.approx(100 * 172 / 711)
    assert sum(found.percent.values()) == pytest.approx(100)


def test_density_counts_a_label_once_per_dialogue_and_occurrences_each_time() -> None:
    # Distinct labels 2 and 0: mean 1, variance ((2-1)^2 + (0-1)^2) / 2 = 1.
    found = corpus_statistics(build([user(SHO, SHO, AO), user(0)]))
    assert found.occurrences["confirm_SH_ongoing"] == 2
    assert (found.labels_per_dialogue.mean, found.labels_per_dialogue.sd) == (1, 1)
    assert found.share(found.with_both) == 50
    assert found.onsets == {"alert": {2: 1}, "confirm": {0: 1}}


def test_labels_on_other_rows_count_as_labels_but_not_on_user_turns() -> None:
    corpus = build([[("User", False, AO), ("User", True, SHO), ("Listener", False, SHP)]])
    found = corpus_statistics(corpus)
    assert (found.turns, found.user_turns, found.labels) == (3, 1, 3)
    assert sum(found.user_occurrences.values()) == 1


def test_scenarios_and_timings_are_counted_where_they_are_known() -> None:
    corpus = build([user(0), user(0), user(0)])
    assert corpus_statistics(corpus).scenarios is None
    assert corpus_statistics(corpus).timings is None
    known = replace(corpus, meta={"scenario": ["S7", "S1", "S7"], "timing": ["late", "mid", "mid"]})
    found = corpus_statistics(known)
    assert found.scenarios == {"S1": 1, "S7": 2}
    assert list(found.timings.items()) == [("early", 0), ("mid", 2), ("late", 1)]
    assert found.by_key()["scenario.S7"] == 2


def test_every_key_is_a_published_one() -> None:
    corpus = replace(build([user(0)]), meta={"scenario": ["S1"], "timing": ["mid"]})
    assert corpus_statistics(corpus).by_key().keys() <= published_table().keys()


def test_shares_of_no_labels_are_undefined() -> None:
    found = corpus_statistics(build([user(0)]))
    assert math.isnan(found.ongoing_percent)
    assert all(math.isnan(share) for share in found.percent.values())


def test_a_corpus_without_dialogues_is_refused() -> None:
    with pytest.raises(CorpusError, match="tiny has no dialogues"):
        corpus_statistics(Corpus("tiny", ()))
