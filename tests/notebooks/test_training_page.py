"""The page about training: what the model would flag if it had to be surer, counted anew."""

from __future__ import annotations

import json
import math
from collections import Counter

import pandas as pd
import pytest

from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.detection.journal import read_journal
from cradle_lib.detection.registry import load_registry
from cradle_lib.display.table import Table

from .test_notebooks import show

CONSTRAINED = "smollm2-135m-tuned-constrained"
QUIET = "Flagged in dialogues without labels"


@pytest.fixture(scope="module")
def tables() -> list[Table]:
    with pytest.MonkeyPatch.context() as patch:
        page = show("training", {"draws": 20, "permutations": 20}, patch)
    return [each for each in page if isinstance(each, Table)]


@pytest.fixture(scope="module")
def by_odds(tables: list[Table]) -> pd.DataFrame:
    """The table of the page that has a row for each of several odds."""
    [found] = [table.frame for table in tables if "odds" in table.frame]
    return found


def test_what_a_surer_model_flags_is_counted_from_the_journal(by_odds: pd.DataFrame) -> None:
    dev = load_corpus("surrogate", "dev")
    gold = {(d.id, t.turn_id): t.mask for d in dev for t in d.turns if t.asked}
    quiet = {d.id for d in dev if not any(t.mask for t in d.turns)}
    _, lines = read_journal(paths.SHIPPED_RUNS / dev.name / f"{CONSTRAINED}.jsonl")
    for odds, rows in by_odds.groupby("odds"):
        seen = Counter[str]()
        for line in lines:
            assert line.choices is not None
            chances = {branch: math.exp(value) for branch, value in line.choices[0].items()}
            flagged = max(chances["alert"], chances["confirm"]) > odds * chances["none"]
            labelled = gold[line.dialogue, line.turn] > 0
            seen["gold"] += labelled
            seen["flagged"] += flagged
            seen["hits"] += flagged and labelled
            seen["quiet"] += line.dialogue in quiet
            seen["alarms"] += flagged and line.dialogue in quiet
        values = rows.set_index("measure")["value"]
        assert values[QUIET] == pytest.approx(seen["alarms"] / seen["quiet"])
        assert values["Recall of turns with a label"] == pytest.approx(seen["hits"] / seen["gold"])
        assert values["Precision of flagged turns"] == pytest.approx(seen["hits"] / seen["flagged"])


def test_the_entries_take_the_least_odds_that_dev_allows(by_odds: pd.DataFrame) -> None:
    few = by_odds[(by_odds["measure"] == QUIET) & (by_odds["value"] < 1 / 100)]
    for model in ("smollm2-135m-tuned", CONSTRAINED, "smollm2-135m-tuned-reference"):
        decoding = load_registry()[model].decoding
        assert decoding is not None
        assert decoding.none_bias == round(math.log(few["odds"].min()), 1)


def test_the_papers_recipe_is_costed_with_the_papers_dialogues(tables: list[Table]) -> None:
    [costs] = [table.frame for table in tables if "way" in table.frame]
    record = json.loads(
        (paths.DATA / "adapters/smollm2-135m-tuned/training.json").read_text("utf-8")
    )
    tokens = 3 * 3058 * record["tokens"] / 2000  # three epochs, Sec 4.2 and Appendix D.2
    assert record["dialogues"] == 2000
    row = costs.set_index("way").loc["one sequence per dialogue"]
    assert row["tokens"] == pytest.approx(tokens)
    assert row["hours"] == pytest.approx(6 * 32.761446400e9 * tokens / (2 * 989e12 / 2) / 3600)
