"""The shipped surrogate, read with pandas only, and its build."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from cradle_lib.errors import CorpusError
from tools.surrogate import build
from tools.surrogate.build import build_surrogate

FOLDER = Path(__file__).resolve().parents[3] / "data" / "surrogate"
PHASES = {"early": {3, 5, 7}, "mid": {7, 9, 11}, "late": {11, 13, 15}}

# Counted on the real release, rows that start with "User:".
USER_ROW_LABELS = {
    "alert_ongoing": 172,
    "alert_past": 64,
    "confirm_CA_ongoing": 8,
    "confirm_CA_past": 27,
    "confirm_DV_ongoing": 25,
    "confirm_DV_past": 31,
    "confirm_RA_ongoing": 7,
    "confirm_RA_past": 59,
    "confirm_SH_ongoing": 77,
    "confirm_SH_past": 27,
    "confirm_SHA_ongoing": 23,
    "confirm_SHA_past": 40,
    "confirm_SI_active_ongoing": 58,
    "confirm_SI_active_past": 11,
    "confirm_SI_passive_ongoing": 78,
    "confirm_SI_passive_past": 4,
}


@cache
def rows(split: str) -> pd.DataFrame:
    """Returns the rows of a split: dialogue number, turn from 1, speaker, text, tuple of labels."""
    table = pd.read_parquet(FOLDER / f"{split}.parquet")
    dialogue = table["turn_id"].eq(0).cumsum() - 1
    assert table["turn_id"].equals(table.groupby(dialogue).cumcount())
    parts = table["text"].str.extract(r"(?s)^(?:(User|Listener): )?(.+)")
    names = [() if cell == "none" else tuple(cell.split("; ")) for cell in table["labels"]]
    return pd.DataFrame(
        {
            "dialogue": dialogue,
            "turn": table["turn_id"] + 1,
            "speaker": parts[0].fillna(""),
            "said": parts[1],
            "labels": names,
        }
    )


def meta(split: str) -> pd.DataFrame:
    """Returns one row per dialogue of a split, with the labels of all its rows."""
    every = pd.read_parquet(FOLDER / "meta.parquet")
    labels = rows(split).groupby("dialogue")["labels"].sum()
    return every[every["split"] == split].reset_index(drop=True).assign(labels=labels)


def has(labels: pd.Series, stage: str) -> pd.Series:
    return labels.map(lambda names: any(name.startswith(stage) for name in names))


def test_the_test_split_has_the_published_counts() -> None:
    every, about = rows("test"), meta("test")
    users = every[every["speaker"] == "User"]
    assert (len(about), len(every), len(users)) == (600, 8975, 4527)
    assert Counter(users["labels"].explode().dropna()) == USER_ROW_LABELS
    # 703 rows, 711 labels: eight rows with two.
    assert Counter(users["labels"].map(len)) == {0: 4527 - 703, 1: 695, 2: 8}
    others = every[every["speaker"].ne("User") & every["labels"].map(bool)]
    assert sorted(zip(others["speaker"], others["labels"], strict=True)) == [
        ("", ("confirm_SH_ongoing",)), ("Listener", ("alert_ongoing",)),
    ]  # fmt: skip
    kinds = Counter(
        zip(has(about["labels"], "alert"), has(about["labels"], "confirm"), strict=True)
    )
    assert kinds == {(True, True): 203, (True, False): 23, (False, True): 214, (False, False): 160}
    assert Counter(about["scenario"]) == {
        "S1": 96, "S2": 97, "S3": 91, "S4": 67, "S5": 56, "S6": 97, "S7": 96,
    }  # fmt: skip
    assert Counter(about["timing"]) == {"early": 200, "mid": 200, "late": 200}


@pytest.mark.parametrize(
    ("split", "dialogues", "size"), [("train", 3058, 48557), ("dev", 420, 6679)]
)
def test_generated_dialogues_follow_the_rules_of_the_training_prompt(
    split: str, dialogues: int, size: int
) -> None:
    every, about = rows(split), meta(split)
    assert (len(about), len(every)) == (dialogues, size)
    assert every.groupby("dialogue").size().min() >= 15
    assert every["speaker"].eq(every["turn"].map(lambda turn: ("Listener", "User")[turn % 2])).all()
    alerts, confirms = (every[has(every["labels"], stage)] for stage in ("alert", "confirm"))
    for labelled in (alerts, confirms):
        assert labelled["speaker"].eq("User").all()
        assert labelled["dialogue"].is_unique
    timings = about["timing"][confirms["dialogue"]]
    assert all(turn in PHASES[t] for turn, t in zip(confirms["turn"], timings, strict=True))
    both = alerts.merge(confirms, on="dialogue")
    assert (both["turn_x"] < both["turn_y"]).all()
    assert round(len(both) / dialogues, 2) == 0.5
    assert (
        round(
            every["labels"].explode().eq("alert_ongoing").sum() / about["labels"].map(len).sum(), 2
        )
        == 0.3
    )
    counts = about["timing"].value_counts()
    assert counts.max() - counts.min() <= 1


def test_each_alert_in_a_dialogue_with_confirms_has_a_later_confirm() -> None:
    about = meta("test")
    for number, turns in rows("test").groupby("dialogue")["labels"]:
        confirms = [name for name in about["labels"][number] if name.startswith("confirm")]
        assert len({*confirms}) == len(confirms)
        # Going backwards, each alert uses up one of the later confirms of its state.
        unused: Counter[str] = Counter()
        for name in (name for names in reversed([*turns]) for name in sorted(names) if confirms):
            state = name.rpartition("_")[2]
            unused[state] += 1 if name.startswith("confirm") else -1
            assert unused[state] >= 0


def sentences(split: str, *, labelled: bool = False) -> list[str]:
    """Gives the sentences of at least five words, in lower case."""
    every = rows(split)
    texts = every[every["labels"].map(bool)]["said"] if labelled else every["said"]
    parts = (part.strip(" ,'\"-") for part in re.split(r"[.!?\n]", "\n".join(texts).lower()))
    return [part for part in parts if len(part.split()) >= 5]


def test_no_sentence_is_frequent_and_few_labelled_ones_are_in_another_split() -> None:
    every = {split: Counter(sentences(split)) for split in ("train", "dev", "test")}
    for split, counts in every.items():
        assert len(counts) > 5000
        assert {s: n for s, n in counts.items() if n > len(counts) / 300} == {}
        labelled_sentences = {*sentences(split, labelled=True)}
        assert len(labelled_sentences) > 500
        for other in every.keys() - {split}:
            # Those of a few words, such as "I don't want to be alive", occur by chance.
            shared = labelled_sentences & every[other].keys()
            assert len(shared) < 0.02 * len(labelled_sentences), (split, other, shared)


def test_the_text_files_give_the_shipped_bytes(tmp_path: Path) -> None:
    build_surrogate(tmp_path)
    names = ["SHA256SUMS", "dev.parquet", "meta.parquet", "test.parquet", "train.parquet"]
    assert names == sorted(path.name for path in tmp_path.iterdir())
    for name in names:
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()


def test_the_rows_are_the_lines_of_the_text_files() -> None:
    every = rows("test")
    lines = [
        re.sub(r"(?: |^)\[[^\[\]]*\]$", "", line)
        for path in sorted((FOLDER / "dialogues" / "test").glob("*.txt"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("# ")
    ]
    texts = (every["speaker"] + ": ").where(every["speaker"].ne(""), "") + every["said"]
    assert lines == [*texts]


def test_half_a_corpus_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = FOLDER / "dialogues" / "test" / "000.txt"
    damaged = tmp_path / "test" / "000.txt"
    damaged.parent.mkdir()
    damaged.write_text(first.read_text(encoding="utf-8").replace("User:", "Usr:", 1), "utf-8")
    monkeypatch.setattr(build, "file_paths", lambda: [first.with_name("001.txt"), damaged])
    with pytest.raises(CorpusError, match=r"test.000\.txt: test-0000, row 0: "):
        build.build_surrogate(tmp_path / "out")
    assert not (tmp_path / "out").exists()
