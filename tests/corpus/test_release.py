"""Reading and writing the release's format, with its known quirks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib import labels, paths
from cradle_lib.corpus import find_quirks, load_corpus, read_release
from cradle_lib.corpus.release import COLUMNS, build_corpus, write_release
from cradle_lib.corpus.statistics import dialogue_frame
from cradle_lib.errors import CorpusError

ROWS: list[tuple[int, str, str]] = [
    (0, "Listener: Hi, what brings you here?", "none"),
    (1, "User: Three things this week:", "none"),
    (2, "- sleep", "none"),
    (3, "- work, and the fear of it", "alert_past"),
    (4, "Listener: None of that sounds easy.", "none"),
    (5, "User: None", "alert_ongoing; confirm_SH_past"),
    (0, 'User: He said: "User: me"', "none"),
    (1, "Listener: null", "confirm_DV_past"),
]
ENDINGS = ["parquet", "csv", "json", "jsonl"]


def write(path: Path, rows: list[Any] = ROWS, names: tuple[str, ...] = COLUMNS) -> Path:
    frame = pd.DataFrame(rows, columns=names)
    match path.suffix:
        case ".parquet":
            frame.to_parquet(path)
        case ".csv":
            frame.to_csv(path, index=False)
        case ending:
            frame.to_json(path, orient="records", lines=ending == ".jsonl")
    return path


@pytest.mark.parametrize("ending", ENDINGS)
def test_all_four_formats_give_the_same_turns(tmp_path: Path, ending: str) -> None:
    rows = [(*row, id_, "mid", None) for row, id_ in zip(ROWS, [10] * 6 + [7] * 2, strict=True)]
    names = (*COLUMNS, "dialogue_id", "timing", "annotator")
    corpus = read_release(write(tmp_path / f"x.{ending}", rows, names))
    assert [(d.id, len(d.turns)) for d in corpus] == [("10", 6), ("7", 2)]
    assert corpus.meta == {"timing": ["mid", "mid"]}
    assert [t.row for t in corpus.turns] == list(range(8))
    first = corpus.dialogues[0]
    assert "".join(t.speaker[0] for t in first.turns) == "LUUULU"
    assert [t.continues for t in first.turns] == [False, False, True, True, False, False]
    assert [t.turn_id for t in first.user_turns] == [1, 5]
    assert first.utterance(first.turns[1]) == (
        "Three things this week:\n- sleep\n- work, and the fear of it"
    )
    assert first.utterance(first.turns[5]) == "None"
    assert corpus.dialogues[1].turns[1].text == "null"
    assert labels.format_mask(first.mask) == "alert_ongoing; alert_past; confirm_SH_past"
    assert corpus.gold.tolist() == [0, first.turns[5].mask, 0]
    assert corpus.dialogue_of.tolist() == [0, 0, 1]
    assert corpus.dialogues[1].turns[0].text == 'He said: "User: me"'


def test_the_fingerprint_depends_on_texts_labels_and_boundaries() -> None:
    seen = {build_corpus(ROWS, "x").fingerprint}
    for row, change in (
        (0, (0, "Listener: Hi, what brings you here.", "none")),
        (3, (3, "- work, and the fear of it", "alert_ongoing")),
        (6, (6, 'User: He said: "User: me"', "none")),
        (2, (2, "User: - sleep", "none")),
    ):
        rows = list(ROWS)
        rows[row] = change
        if row == 6:
            rows[7] = (7, *ROWS[7][1:])
        seen.add(build_corpus(rows, "x").fingerprint)
    assert len(seen) == 5


@pytest.mark.parametrize(
    ("row", "change", "expected"),
    [
        (0, (3, "User: a", "none"), "row 0: turn_id is 3, expected 0"),
        (2, (4, "- sleep", "none"), "row 2: turn_id is 4, expected 2 or 0"),
        (2, (-1, "- sleep", "none"), "row 2: turn_id is -1"),
        (2, (2, None, "none"), "row 2: text is empty"),
        (2, (2, ["a"], "none"), "row 2: text is of the type list"),
        (2, (2, "a", "confirm_SH_oning"), "row 2: unknown label .*confirm_SH_ongoing"),
        (2, (2, "a", 5), "row 2: labels is 5"),
        (2, (2, "Therapist: a", "none"), "row 2: found 'Therapist:', expected 'User:'"),
        (2, (2, "- sleep TAG: none", "none"), "row 2: the text ends with its labels"),
        (4, (4, "Officer: a", "none"), "row 4: found another name .* of the User"),
        (4, (4, "**Officer:** a", "none"), "row 4: found another name .* of the User"),
        (4, (4, "[Officer]: a", "none"), "row 4: found another name .* of the User"),
        (6, (0, "no speaker", "none"), "row 6: a dialogue starts with a text that names no"),
    ],
)
def test_invalid_rows_are_refused(row: int, change: tuple[Any, Any, Any], expected: str) -> None:
    rows: list[tuple[Any, Any, Any]] = list(ROWS)
    rows[row] = change
    with pytest.raises(CorpusError, match=expected):
        build_corpus(rows, "x")


@pytest.mark.parametrize(
    "start",
    [
        *("user:", "  LISTENER:", "User\uff1a", "\u200bUser:", "\u2067User\u2069:", "User\u00a0:"),
        *("**Listener:**", "**Listener**:", "__Listener__:", "[Listener]", "<listener>", "(User):"),
        *("<|user|>", "| Listener |", "> AI:"),
    ],
)
def test_a_misspelt_speaker_is_refused(tmp_path: Path, start: str) -> None:
    texts = ["User: Hm.", f"{start} I hurt myself.", "Listener: Thank you."]
    table = write(tmp_path / "x.jsonl", [(i, text, "alert_past") for i, text in enumerate(texts)])
    with pytest.raises(CorpusError, match=r"row 1: found .*expected 'User:'") as caught:
        read_release(table)
    # Invisible characters are escaped.
    assert str(caught.value).isprintable()
    assert "hurt" not in str(caught.value)


@pytest.mark.parametrize("start", ["### Listener\n", "Listener -", "Listener\u2014", "(AI) "])
def test_a_word_before_a_dash_is_a_speaker_only_between_utterances_of_the_other(
    start: str,
) -> None:
    texts = ["User: Hm.", f"{start} I see.", "User: Yes."]
    with pytest.raises(CorpusError, match="found another name between two utterances of the User"):
        build_corpus([(i, text, "none") for i, text in enumerate(texts)], "x")
    texts[2] = "Listener: I see."
    assert len(build_corpus([(i, text, "none") for i, text in enumerate(texts)], "x").turns) == 3


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("\n \u00a0User: Hm.", True),
        ("User:\u200bHm.", True),
        ("Users: five of them", False),
        ("- user: my name there", False),
        ("* client: my word for it", False),
        ("\u2022 Listener - a name", False),
        ("user-friendly, at least", False),
        ("AI (the new one) said: no", False),
        ("bot *sigh*", False),
        ("us", False),
    ],
)
def test_other_text_starts_or_continues_an_utterance(text: str, asked: bool) -> None:
    corpus = build_corpus([(0, "User: a", "none"), (1, text, "alert_past")], "x")
    assert corpus.turns[1].asked is asked
    assert corpus.turns[1].continues is not asked


def test_valid_rows_that_are_often_mistakes_are_counted() -> None:
    rows = [
        (0, "User: a", "none"),
        (1, "Listener: the label was self-harm, so confirm_SH_past", "none"),
        (2, "Friend: really? SI_ACTIVE_PAST", "alert_past"),
        (3, "User: I don\u00e2\u20ac\u2122t", "none"),
        (4, "User: \ufffd", "none"),
        (0, "Listener:", "none"),
    ]
    assert find_quirks(build_corpus(rows, "x")) == [
        "dialogues without a user turn, where no model is asked (1, the first: d0001)",
        "rows without a speaker, which continue the row above (1, the first: d0000, turn 2)",
        "rows without a speaker that start with a name (1, the first: d0000, turn 2)",
        "rows without any text (1, the first: d0001, turn 0)",
        "texts with the name of a label (2, the first: d0000, turn 1)",
        "texts that look wrongly decoded (2, the first: d0000, turn 3)",
        "labels on rows where no model is asked (1, the first: d0000, turn 2)",
    ]


ABOUT = {
    "dialogue_id": ["a", "a", " b-2", "c"],
    "scenario": ["S1", "S1", "S2", "Peer conflict & worry"],
    "timing": ["late", "late", "early", "late"],
}
FOUR = [
    (0, "User: a", "alert_past"),
    (1, "Listener: b", "none"),
    (0, "User: c", "none"),
    (0, "User: d", "none"),
]


def test_optional_columns_name_and_describe_the_dialogues() -> None:
    corpus = build_corpus(FOUR, "x", about=ABOUT)
    assert [d.id for d in corpus] == ["a", "b-2", "c"]
    assert corpus.meta == {
        "scenario": ["S1", "S2", "Peer conflict & worry"],
        "timing": ["late", "early", "late"],
    }
    part = corpus.subset([2], "part")
    assert ([d.id for d in part], part.meta["timing"]) == (["c"], ["late"])
    assert ([t.row for t in part.turns], part.dialogue_of.tolist()) == ([3], [0])
    # The fingerprint is of texts and labels only.
    assert corpus.fingerprint == build_corpus(FOUR, "x").fingerprint


@pytest.mark.parametrize(
    ("column", "row", "value", "expected"),
    [
        ("dialogue_id", 1, "b-2", "row 1: dialogue_id is 'b-2', and 'a' in row 0 of the same"),
        ("dialogue_id", 3, "b-2 ", "row 3: dialogue_id 'b-2' is also the id of an earlier"),
        ("dialogue_id", 3, 1.5, "row 3: dialogue_id is 1.5, expected a name"),
        ("dialogue_id", 3, True, "row 3: dialogue_id is True, expected a name"),
        ("dialogue_id", 3, "a<b>", "row 3: .*a name without < >"),
        ("dialogue_id", 3, "x" * 65, "row 3: .*up to 64"),
        ("dialogue_id", 3, "a\nb", "row 3: .*printable"),
        ("dialogue_id", 3, "../a", "row 3: .*letter or digit"),
        ("timing", 1, "", "row 1: timing is '', expected a name.*leave out the column timing"),
    ],
)
def test_invalid_metadata_are_refused(column: str, row: int, value: object, expected: str) -> None:
    cells: list[object] = list(ABOUT[column])
    cells[row] = value
    with pytest.raises(CorpusError, match=expected) as caught:
        build_corpus(FOUR, "x", about={**ABOUT, column: cells})
    assert "\n" not in str(caught.value)


names = st.text(
    st.characters(categories=("L", "N", "P", "S", "Zs"), exclude_characters='<>"`$\\|*[]{}~^'),
    min_size=1,
    max_size=20,
).filter(lambda n: n.isprintable() and n[0].isalnum() and n == n.strip())
# The hyphen prevents that a text starts like a speaker. Line breaks are part of the text.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20).map(
    lambda text: f"-{text}"
)


@settings(max_examples=40)
@given(
    st.lists(
        st.lists(st.tuples(texts, st.integers(0, 0xFFFF)), min_size=1), min_size=1, max_size=4
    ),
    st.lists(st.tuples(names, names, names), min_size=4, max_size=4, unique_by=lambda n: n[0]),
    st.sampled_from([".csv", ".parquet"]),
)
def test_a_corpus_with_metadata_survives_a_round_trip(
    tmp_path_factory: pytest.TempPathFactory,
    content: list[list[tuple[str, int]]],
    about: list[tuple[str, str, str]],
    ending: str,
) -> None:
    rows = [
        (i, f"User: {text}" if i % 2 == 0 else text, labels.format_mask(mask))
        for turns in content
        for i, (text, mask) in enumerate(turns)
    ]
    per_row = zip(*(about[d] for d, turns in enumerate(content) for _ in turns), strict=True)
    columns = dict(zip(("dialogue_id", "scenario", "timing"), per_row, strict=True))
    corpus = build_corpus(rows, "x", about=columns)
    assert [(t.text, t.mask) for t in corpus.turns] == [
        (text.strip(), mask) for turns in content for text, mask in turns
    ]
    path = tmp_path_factory.mktemp("written") / f"x{ending}"
    write_release(corpus, path)
    again = read_release(path)
    assert [d.id for d in again] == [name for name, _, _ in about[: len(content)]]
    assert (again.meta, again.turns) == (corpus.meta, corpus.turns)


def test_a_lone_surrogate_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    corpus = build_corpus([(0, "User: a", "none"), (1, "User: \ud800", "none")], "x")
    with pytest.raises(CorpusError, match="row 1: the text has half a character"):
        write_release(corpus, tmp_path / "x.csv")
    assert not list(tmp_path.iterdir())


def test_a_corpus_without_own_ids_is_written_with_the_releases_columns(tmp_path: Path) -> None:
    write_release(build_corpus(ROWS, "x"), tmp_path / "x.parquet")
    assert pq.read_schema(tmp_path / "x.parquet").names == list(COLUMNS)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("cells", "labelled"),
    [
        (["none", "", "", "", "alert_past"], [True, False, True]),
        (["", "", "", "", "alert_past"], [True, True, True]),
        (["", None, "null", "", ""], [False, False, False]),
        (["none", "none", "none", "", ""], [True, True, False]),
        (["alert_past", "", "[]", "", ""], [True, True, False]),
    ],
)
def test_dialogues_with_empty_label_cells_are_labelled_if_the_file_never_says_none(
    tmp_path: Path, ending: str, cells: list[str | None], labelled: list[bool]
) -> None:
    places = [(0, "User"), (1, "Listener"), (0, "User"), (0, "User"), (1, "Listener")]
    rows = [(n, f"{who}: hi", cell) for (n, who), cell in zip(places, cells, strict=True)]
    corpus = load_corpus(write(tmp_path / f"mine.{ending}", rows))
    assert [dialogue.labelled for dialogue in corpus] == labelled
    bare = [(n, text, cell or "none") for n, text, cell in rows]
    told = load_corpus(write(tmp_path / f"told.{ending}", bare))
    assert [turn.mask for turn in corpus.turns] == [turn.mask for turn in told.turns]
    assert (corpus.fingerprint == told.fingerprint) == all(labelled)
    assert corpus.texts_fingerprint == told.texts_fingerprint
    write_release(corpus, tmp_path / f"again.{ending}")
    assert load_corpus(tmp_path / f"again.{ending}").fingerprint == corpus.fingerprint


def test_the_number_of_comparisons_of_ids_grows_with_the_number_of_dialogues() -> None:
    comparisons, number = 0, 1_000

    class Name(str):
        __hash__ = str.__hash__

        def strip(self, *_: object) -> str:
            return self

        def __eq__(self, other: object) -> bool:
            nonlocal comparisons
            comparisons += 1
            return str.__eq__(self, other)

    rows = [(0, "User: Hello.", "none")] * number
    build_corpus(rows, "many", about={"dialogue_id": [Name(f"x{n}") for n in range(number)]})
    assert comparisons < 10 * number


def test_the_timing_of_the_release_is_that_of_its_first_confirm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The surrogate's test split was planned by the paper's definition of the three timings.
    planned = load_corpus("surrogate")
    for split in ("test", "train"):
        content = (paths.SURROGATE / f"{split}.parquet").read_bytes()
        (tmp_path / f"{split}.parquet").write_bytes(content)
    monkeypatch.setattr(paths, "RELEASE", tmp_path)
    derived = load_corpus("hub")
    assert derived.fingerprint == planned.fingerprint
    pairs = zip(planned, planned.meta["timing"], derived.meta["timing"], strict=True)
    assert all(found == (known if dialogue.mask else "") for dialogue, known, found in pairs)
    known = dialogue_frame(derived)["timing"]
    assert [*known.cat.categories] == ["early", "mid", "late"]
    assert known.isna().sum() == sum(not dialogue.mask for dialogue in planned)
    # In the training prompt the windows overlap.
    assert "timing" not in load_corpus("hub", "train").meta
