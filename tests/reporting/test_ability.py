"""How far the models of a page do the task, on pages and in the README."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection.journal import read_journal
from cradle_lib.errors import RegistryError
from cradle_lib.labels import labels_of
from cradle_lib.reporting.ability import ability_table
from cradle_lib.reporting.notice import Notice
from cradle_lib.reporting.tables import Table

FREE, CONSTRAINED = "smollm2-135m", "smollm2-135m-constrained"


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


def test_a_page_says_how_often_an_answer_is_unreadable_and_a_tag_right() -> None:
    table = ability_table(load_corpus(), [FREE, CONSTRAINED, FREE])
    assert isinstance(table, Table)
    assert len(table.rows) == 2
    for row, model in zip(table.rows, (FREE, CONSTRAINED), strict=True):
        values = [cell.value for cell in row.cells[1:]]
        answers, unread, tags, right = counted(model)
        assert values[:2] == [answers, unread]
        assert values[2] == pytest.approx(100 * unread / answers)
        assert values[3:5] == [tags, right]
    assert table.rows[0].cells[2].text == "4,527"


def test_models_that_were_not_run_are_left_out(corpus: Corpus) -> None:
    other = ability_table(corpus.subset([0], "elsewhere"), [FREE])
    assert isinstance(other, Notice)
    assert "None of smollm2-135m was run over elsewhere" in other.message
    assert isinstance(ability_table(corpus, []), Notice)
    with pytest.raises(RegistryError):
        ability_table(corpus, ["absent"])


def test_the_readme_says_the_same_of_the_model_that_ships() -> None:
    readme = " ".join((paths.ROOT / "README.md").read_text(encoding="utf-8").split())
    said = re.search(
        r"writing freely, ([\d,]+) of its ([\d,]+) answers can't be read as labels; allowed to "
        r"write only labels, ([\d,]+) of its ([\d,]+) tags are right",
        readme,
    )
    assert said is not None
    answers, unread, _, _ = counted(FREE)
    _, _, tags, right = counted(CONSTRAINED)
    assert said.groups() == (f"{unread:,}", f"{answers:,}", f"{right:,}", f"{tags:,}")


@pytest.mark.parametrize("name", ["README.md", "book/large-models.md", "book/add-a-model.md"])
def test_whoever_recommends_the_wave_engine_says_where_it_has_been_run(name: str) -> None:
    text = " ".join((paths.ROOT / name).read_text(encoding="utf-8").split())
    assert "engine: wave" in text
    assert "has not been run on a GPU by this project" in text
