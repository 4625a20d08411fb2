"""The shipped probe set, read with pandas only."""

from __future__ import annotations

import re

import pandas as pd

from cradle_lib import load_corpus, paths
from cradle_lib.labels import BITS

FILE = paths.DATA / "probes" / "probes.csv"


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
