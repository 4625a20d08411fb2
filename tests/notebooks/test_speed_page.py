"""The page of speed, and what the README says of the same runs."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from cradle_lib import paths, run_model
from cradle_lib.corpus import load_corpus
from cradle_lib.detection.journal import read_journal
from cradle_lib.display.notice import Notice
from cradle_lib.display.table import Table
from cradle_lib.labels import labels_of

from .test_notebooks import show

TEXT = "{http://www.w3.org/2000/svg}text"
FREE, CONSTRAINED = "smollm2-135m", "smollm2-135m-constrained"
TUNED = "smollm2-135m-tuned"


def counted(model: str) -> tuple[int, int, int, int]:
    """Answers, unreadable ones, tags and right tags of a run that ships, by its journal alone."""
    _, answers = read_journal(paths.SHIPPED_RUNS / "surrogate-test" / f"{model}.jsonl")
    gold = {
        (dialogue.id, turn.turn_id): Counter(labels_of(turn.mask))
        for dialogue in load_corpus()
        for turn in dialogue.turns
    }
    tags = [(Counter(labels_of(a.mask)), gold[a.dialogue, a.turn]) for a in answers]
    return (
        len(answers),
        sum(a.outcome != "ok" for a in answers),
        sum(given.total() for given, _ in tags),
        sum((given & wanted).total() for given, wanted in tags),
    )


def page(monkeypatch: pytest.MonkeyPatch, **values: Any) -> list[Any]:
    return show("speed", values, monkeypatch)


def tables(shown: list[Any]) -> list[Table]:
    """The tables about the two runs."""
    found = [item for item in shown if isinstance(item, Table)]
    return [table for table in found if not table.caption.startswith("Measured")]


def test_two_runs_are_compared_in_what_they_said_took_and_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agreement, usage, records = tables(page(monkeypatch))
    [flips] = [row for row in agreement.rows if row[0].text == "Dialogues with a flip"]
    # 1 - 0.05^(1/600) = 0.50 %.
    assert [str(cell) for cell in flips[1:]] == ["0", "600", "0.00 [0.00, 0.50]"]
    wave, reference = usage.frame.to_dict("records")
    # The reference engine computes every prompt whole.
    assert wave["computed"] < reference["computed"] == reference["tokens_in"] == wave["tokens_in"]
    assert "engine" in records.frame.index
    assert not {"prompt", "weights"} & {*records.frame.index}


def test_a_token_that_nobody_counted_is_no_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    # Made by a build of the book, if there was one.
    run_model("keyword", load_corpus("surrogate"))
    _, usage, _ = tables(page(monkeypatch, second="keyword"))
    assert usage.frame.loc["keyword", ["tokens_in", "computed"]].isna().all()


def test_a_run_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = page(monkeypatch, second="no<b>.jsonl")
    told = [item for item in shown if isinstance(item, Notice)]
    assert len(told) == 4
    assert told[0].message.startswith("no<b>.jsonl was not run over")
    assert "no&lt;b&gt;.jsonl" in told[0]._repr_html_()


def test_the_readme_says_the_same_of_the_model_that_ships() -> None:
    readme = " ".join((paths.ROOT / "README.md").read_text(encoding="utf-8").split())
    said = re.search(
        r"Untrained, ([\d,]+) of its ([\d,]+) free answers are unreadable, and ([\d,]+) of the "
        r"([\d,]+) labels that it predicts under constrained decoding are correct",
        readme,
    )
    assert said is not None
    answers, unread, _, _ = counted(FREE)
    _, _, tags, right = counted(CONSTRAINED)
    assert said.groups() == (f"{unread:,}", f"{answers:,}", f"{right:,}", f"{tags:,}")
    tuned = re.search(r"it predicts ([\d,]+) labels, of which ([\d,]+) are correct", readme)
    assert tuned is not None
    _, unread, tags, right = counted(TUNED)
    assert (unread, *tuned.groups()) == (0, f"{tags:,}", f"{right:,}")


@pytest.mark.parametrize(
    "name", ["README.md", "book/large-models.md", "notebooks/add-a-model.ipynb"]
)
def test_whoever_recommends_the_wave_engine_says_where_it_has_been_run(name: str) -> None:
    text = " ".join((paths.ROOT / name).read_text(encoding="utf-8").split())
    assert "engine: wave" in text
    assert "has not been run on a GPU by this project" in text
