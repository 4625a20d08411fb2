"""The shipped probe set and the short texts for training, read with pandas only."""

from __future__ import annotations

import re

import pandas as pd

from cradle_lib import load_corpus, paths
from cradle_lib.labels import BITS

FILE = paths.DATA / "probes" / "probes.csv"
LEARNED = paths.DATA / "short_texts" / "short_texts.csv"
#: A text that shares this many words in a row with a probe is not learned.
RUN = 7


def test_the_last_message_of_each_text_has_the_label_that_its_kind_says() -> None:
    table = pd.read_csv(FILE)
    last = table.groupby("dialogue_id", sort=False).tail(1)
    assert last["text"].str.startswith("User: ").all()
    assert table.drop(last.index)["labels"].eq("none").all()
    disclosed = last["kind"].str.contains("disclosure")
    assert last.loc[~disclosed, "labels"].eq("none").all()
    assert {x for cell in last.loc[disclosed, "labels"] for x in cell.split("; ")} <= {*BITS}
    counts = last["kind"].value_counts()
    assert counts["disclosure_first"] == counts["disclosure_after"] == 60
    readme = (FILE.parent / "README.md").read_text("utf-8")
    assert {*counts.index} <= {*re.findall(r"`(\w+)`", readme)}
    assert f"{len(last)} short texts" in readme
    assert len(load_corpus(FILE)) == len(last)


def test_the_same_disclosures_come_first_and_after_an_exchange() -> None:
    table = pd.read_csv(FILE)
    first = table[table["kind"] == "disclosure_first"]
    after = table[table["kind"] == "disclosure_after"]
    last = after.groupby("dialogue_id", sort=False).tail(1)
    assert first["turn_id"].eq(0).all()
    assert last["turn_id"].ge(2).all()
    assert [*first["text"]] == [*last["text"]]
    assert [*first["labels"]] == [*last["labels"]]


def test_only_last_messages_of_learned_texts_have_labels_and_the_readme_counts_them() -> None:
    table = pd.read_csv(LEARNED)
    last = table.groupby("dialogue_id", sort=False).tail(1)
    assert last["text"].str.startswith("User: ").all()
    assert table.drop(last.index)["labels"].eq("none").all()
    assert ((last["kind"] == "disclosure") == (last["labels"] != "none")).all()
    assert {x for cell in last["labels"] for x in cell.split("; ")} == {*BITS, "none"}
    readme = (LEARNED.parent / "README.md").read_text("utf-8")
    assert f"{len(last):,} short texts" in readme
    assert f"{(last['language'] != 'en').sum()} texts are in" in readme
    for row in re.finditer(r"^\| (`.*`) \| ([\d, ]+) \|", readme, re.MULTILINE):
        kinds, counts = re.findall(r"\w+", row[1]), re.findall(r"\d+", row[2])
        assert [str((last["kind"] == kind).sum()) for kind in kinds] == counts


def test_no_learned_text_repeats_a_run_of_words_of_a_probe() -> None:
    def runs(text: str) -> set[tuple[str, ...]]:
        words = re.findall(r"\w+(?:'\w+)?", text.partition(": ")[2].lower())
        return {tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1)}

    probed = set().union(*map(runs, pd.read_csv(FILE)["text"]))
    learned = pd.read_csv(LEARNED).groupby("dialogue_id", sort=False).tail(1)["text"]
    assert [text for text in learned if runs(text) & probed] == []
