"""The date that chat templates print: one for a run, on whatever days it is answered."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from transformers.utils import chat_template_utils

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Model, read_journal
from cradle_lib.detection.local import chat
from cradle_lib.detection.local.local_engine import Local
from cradle_lib.detection.model import Decoding
from cradle_lib.detection.run import run
from cradle_lib.detection.shards import join
from cradle_lib.errors import EngineError, JournalError
from cradle_lib.record import Record

from .tiny_models import make_model as make_any_model
from .tiny_models import make_tokenizer, make_weights

pytestmark = pytest.mark.usefixtures("short_prompt")

MESSAGES = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
#: How families of models write the date, and what a prompt of 3 March 2031 then shows.
PRINTING = {
    "gpt-oss": ('Current date: {{ strftime_now("%Y-%m-%d") }}\n', "Current date: 2031-03-03\n"),
    "llama-3.2": (
        "{% if not date_string is defined %}{% if strftime_now is defined %}"
        '{% set date_string = strftime_now("%d %b %Y") %}'
        "{% else %}{% set date_string = '26 Jul 2024' %}{% endif %}{% endif %}"
        "Today Date: {{ date_string }}\n",
        "Today Date: 03 Mar 2031\n",
    ),
    "macro and alias": (
        "{% macro head() %}{% set now = strftime_now %}({{ now('%j/%y %H:%M') }}){% endmacro %}"
        "{{ head() }}",
        "(062/31 00:00)",
    ),
}


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Llama, the chat template of which the tests replace."""
    return make_weights(tmp_path_factory.mktemp("dated"))


def make_model(folder: Path, engine: str = "reference", **decoding: Any) -> Model:
    """Answers of three tokens differ between prompts."""
    return make_any_model(folder, engine, max_new_tokens=3, **decoding)


class Day:
    """Sets the clock, ours and that of Transformers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.set("2031-03-03T17:45:10")

    def set(self, moment: str) -> None:
        class Frozen(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> Any:
                return datetime.fromisoformat(moment).replace(tzinfo=tz)

        self._patch.setattr(chat, "datetime", Frozen)
        self._patch.setattr(chat_template_utils, "datetime", Frozen)


@pytest.fixture
def day(monkeypatch: pytest.MonkeyPatch) -> Day:
    return Day(monkeypatch)


@pytest.fixture
def prompts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All prompts that are rendered for questions."""
    found: list[str] = []
    real = Local.ids

    def noting(self: Local, questions: Any) -> list[list[int]]:
        ids = real(self, questions)
        found.extend(map(self.tokenizer.decode, ids))
        return ids

    monkeypatch.setattr(Local, "ids", noting)
    return found


def read_record(path: Path) -> Record:
    return read_journal(path)[0]


def answers(path: Path) -> dict[tuple[str, int], tuple[str, int | None]]:
    return {(p.dialogue, p.turn): (p.answer, p.tokens_in) for p in read_journal(path)[1]}


@pytest.mark.parametrize(
    ("family", "engine"),
    [("gpt-oss", "reference"), ("llama-3.2", "wave"), ("macro and alias", "wave")],
)
def test_a_run_that_goes_on_another_day_shows_the_first_day(
    family: str,
    engine: str,
    weights: Path,
    corpus: Corpus,
    tmp_path: Path,
    day: Day,
    prompts: list[str],
) -> None:
    head, shown = PRINTING[family]
    make_tokenizer(weights, head + MESSAGES)
    model = make_model(weights, engine)
    whole = run(model, corpus, out=tmp_path / "whole.jsonl")
    parted = run(model, corpus, out=tmp_path / "parted.jsonl", limit=2)
    day.set("2032-11-24T08:01:02")
    assert run(model, corpus, out=parted) == parted
    assert answers(parted) == answers(whole)
    assert prompts
    assert all(prompt.startswith(shown) for prompt in prompts)
    record = read_record(parted)
    assert record.decoding["date"] == "2031-03-03"
    assert record.identity == read_record(whole).identity
    later = read_record(run(model, corpus, out=tmp_path / "later.jsonl", limit=1))
    assert later.decoding["date"] == "2032-11-24"
    assert later.identity != record.identity


@pytest.mark.parametrize(
    "head",
    [
        "{% if not date_string is defined %}{% set date_string = '26 Jul 2024' %}{% endif %}"
        "Today Date: {{ date_string }}\n",
        "{# strftime_now('%Y') #}strftime_now",
    ],
)
def test_a_template_that_prints_no_date_has_none_in_its_identity(
    head: str, weights: Path, corpus: Corpus, tmp_path: Path
) -> None:
    make_tokenizer(weights, head + MESSAGES)
    path = run(make_model(weights), corpus, out=tmp_path, limit=1)
    assert "date" not in read_record(path).decoding
    make_tokenizer(weights, "{{ raise_exception('A system message is needed.') }}")
    with pytest.raises(EngineError, match=r"can't be rendered .*A system message is needed"):
        run(make_model(weights), corpus, out=tmp_path / "refused")


def test_a_date_of_the_entry_is_shown(
    weights: Path, corpus: Corpus, tmp_path: Path, day: Day, prompts: list[str]
) -> None:
    make_tokenizer(weights, PRINTING["llama-3.2"][0] + MESSAGES)
    set_day = make_model(weights, date="2030-01-02")
    path = run(set_day, corpus, out=tmp_path / "set.jsonl", limit=1)
    assert prompts[-1].startswith("Today Date: 02 Jan 2030\n")
    assert read_record(path).decoding["date"] == "2030-01-02"
    switched = make_model(weights, chat={"date_string": "a fine day"})
    path = run(switched, corpus, out=tmp_path / "switched.jsonl", limit=1)
    assert prompts[-1].startswith("Today Date: a fine day\n")
    assert "date" not in read_record(path).decoding
    with pytest.raises(JournalError, match="another run: decoding"):
        run(make_model(weights, date="2030-01-03"), corpus, out=tmp_path / "set.jsonl")
    with pytest.raises(ValueError, match="expected a day such as 2026-11-25"):
        Decoding(date="soon")
    # As YAML reads a date without quotes.
    assert Decoding(date=datetime(2030, 1, 2, tzinfo=UTC).date()).date == "2030-01-02"  # type: ignore[arg-type]


def test_shards_of_a_run_show_one_date(
    weights: Path, corpus: Corpus, tmp_path: Path, day: Day, prompts: list[str]
) -> None:
    make_tokenizer(weights, PRINTING["gpt-oss"][0] + MESSAGES)
    first = run(make_model(weights), corpus, out=tmp_path, shard="0/2")
    day.set("2031-03-04T00:00:01")
    second = run(make_model(weights), corpus, out=tmp_path, shard="1/2")
    assert all(prompt.startswith("Current date: 2031-03-03") for prompt in prompts)
    whole = join([first, second], tmp_path / "whole.jsonl", corpus)
    assert whole.decoding["date"] == "2031-03-03"


def test_a_date_that_only_some_questions_show_must_be_set(
    weights: Path, corpus: Corpus, tmp_path: Path, day: Day, prompts: list[str]
) -> None:
    head = "{% if messages[0]['content'] | length > 60 %}{{ strftime_now('%Y') }}{% endif %}"
    make_tokenizer(weights, head + MESSAGES)
    with pytest.raises(EngineError, match=r"Set one in `decoding`, such as `date: 2031-03-03`"):
        run(make_model(weights), corpus, out=tmp_path)
    run(make_model(weights, date="2030-01-02"), corpus, out=tmp_path / "set")
    assert any(prompt.startswith("2030") for prompt in prompts)
