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


@cache
def rows(split: str) -> pd.DataFrame:
    """Returns the rows of a split: text and labels, ``none`` for no label."""
    return pd.read_parquet(FOLDER / f"{split}.parquet")


@pytest.mark.parametrize("split", ["train", "dev"])
def test_train_and_dev_have_the_published_shares(split: str) -> None:
    every = rows(split)
    dialogue = every["turn_id"].eq(0).cumsum()
    alert, confirm = (
        every["labels"].str.contains(stage).groupby(dialogue).any()
        for stage in ("alert", "confirm")
    )
    assert round((alert & confirm).mean(), 2) == 0.5
    labels = every["labels"].str.split("; ").explode()
    assert round(labels[labels.ne("none")].eq("alert_ongoing").mean(), 2) == 0.3


def sentences(split: str, *, labelled: bool = False) -> list[str]:
    """Gives the sentences of at least five words, in lower case."""
    every = rows(split)
    said = every["text"].str.replace(r"^(?:User|Listener): ", "", regex=True)
    texts = said[every["labels"].ne("none")] if labelled else said
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


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_the_rows_are_the_lines_of_the_text_files(split: str) -> None:
    lines = [
        re.fullmatch(r"(.*?)(?: ?\[([^\[\]]*)\])?", line)
        for path in sorted((FOLDER / "dialogues" / split).glob("*.txt"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("# ")
    ]
    every = rows(split)
    assert [line and line[1] for line in lines] == every["text"].tolist()
    assert [line and (line[2] or "none") for line in lines] == every["labels"].tolist()


def test_half_a_corpus_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = FOLDER / "dialogues" / "test" / "000.txt"
    damaged = tmp_path / "test" / "000.txt"
    damaged.parent.mkdir()
    damaged.write_text(first.read_text(encoding="utf-8").replace("User:", "Usr:", 1), "utf-8")
    monkeypatch.setattr(build, "file_paths", lambda: [first.with_name("001.txt"), damaged])
    with pytest.raises(CorpusError, match=r"test.000\.txt: test-0000, row 0: "):
        build.build_surrogate(tmp_path / "out")
    assert not (tmp_path / "out").exists()
