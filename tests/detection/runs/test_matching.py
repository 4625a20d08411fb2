"""A stored run is returned only for the question that it answers."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

from cradle_lib import paths
from cradle_lib.cli import options as opt
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import Answer, Model, Options, Prompt, read_journal, resolve, run_model
from cradle_lib.detection.models.engine import Sequential
from cradle_lib.detection.models.model import Decoding
from cradle_lib.detection.runs.find_runs import load_run, stored_runs
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import JournalError, NoRunError
from cradle_lib.labels import format_mask
from cradle_lib.record import canonical

from ..installed_engines import install_engines

SHIPPED = "smollm2-135m"


class Echo(Sequential):
    """A local model whose answers tell its settings and the history apart."""

    uses = frozenset(Decoding.model_fields)
    asked: ClassVar[list[str]] = []

    def __init__(self, settings: str) -> None:
        self.settings = settings

    @classmethod
    def create(cls, model: Model, corpus: Corpus, options: Options) -> Self:
        decoding = model.decoding.settings if model.decoding else {}
        return cls(canonical([model.engine, model.weights, model.prompt, decoding]))

    def reply(self, prompt: Prompt) -> Answer:
        self.asked.append(prompt.key)
        return Answer(expected(self.settings + prompt.text))


class Other(Echo):
    """The same under another name."""


def expected(text: str) -> str:
    return format_mask(1 << sum(text.encode()) % 16)


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Model:
    others = {"echo": f"{__name__}:Echo", "other": f"{__name__}:Other"}
    install_engines(tmp_path_factory.mktemp("others"), monkeypatch, **others)
    monkeypatch.setattr(Echo, "asked", [])
    fields = {"name": "Mine", "group": "open", "engine": "echo", "decoding": {"max_new_tokens": 8}}
    return Model.model_validate({"id": "mine", "weights": "w", **fields})


OTHER_SETTINGS: list[dict[str, Any]] = [
    {"temperature": 0.7},
    {"temperature": 0.7, "seed": 1},
    {"temperature": 0.0},
    {"prompt": "brief"},
    {"none_bias": 1.4},
    {"chat": {"thinking": 1}},
    {"chat": {"thinking": True}},
    {"date": "2025-01-01"},
    {"extra": {"top_p": 0.9}},
    {"engine": "other"},
    {"neutralise": False},
    {"history": "gold"},
    {"history": "none"},
]
NOT_DECODING = ("prompt", "engine", "history", "neutralise")


@pytest.mark.usefixtures("home")
def test_each_setting_gives_a_run_of_its_own_that_is_read_again(
    echo: Model, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every question is asked once, whatever was asked before."""
    first = run_model(echo, corpus)
    questions = [{}, *OTHER_SETTINGS]
    made = [run_model(echo, corpus, **settings) for settings in questions]
    files = {file for made_run in made for file in made_run.files}
    assert len(files) == len(questions)
    assert first.files == made[0].files == (paths.RUNS / "tiny" / "mine.jsonl",)
    for settings, made_run in zip(questions, made, strict=True):
        own = {k: v for k, v in settings.items() if k not in NOT_DECODING}
        assert made_run.record.decoding == {"max_new_tokens": 8} | own
        usual = {"history": "self", "prompt": "turn", "neutralise": None, "engine": "echo"}
        for name, value in usual.items():
            assert getattr(made_run.record, name) == settings.get(name, value)
    asked = len(Echo.asked)
    assert asked == 6 * len(questions)
    # Again, and on a page, which runs nothing.
    for page in ("", "any"):
        monkeypatch.setenv(paths.PAGE, page)
        for settings, made_run in zip(reversed(questions), reversed(made), strict=True):
            again = run_model(echo, corpus, **settings)
            assert (again.answers, again.files) == (made_run.answers, made_run.files)
            assert again.record.settings == made_run.record.settings
    assert len(Echo.asked) == asked
    with pytest.raises(NoRunError, match="A page runs no model"):
        run_model(echo, corpus, history="gold", seed=2)
    # All runs with the paper's history have a row, with different names.
    names = [each.record.name for each in stored_runs(corpus)]
    assert len(names) == len({*names}) == len(questions) - 2
    assert {"Mine", "Mine, prompt brief", "Mine, temperature 0.7, seed 1"} < {*names}


@pytest.mark.usefixtures("home", "api")
def test_options_of_this_machine_change_nothing(echo: Model, corpus: Corpus) -> None:
    first = run_model(echo, corpus)
    options = Options(device="cuda:7", concurrency=3, batch=2, deadline=1.0)
    assert run_model(echo, corpus, options=options).files == first.files
    # The display name is not a setting.
    renamed = run_model(echo, corpus, name="Renamed")
    assert (renamed.files, renamed.record.name) == (first.files, "Renamed")
    assert len(Echo.asked) == 6


@pytest.mark.usefixtures("home")
def test_a_part_is_restricted_to_its_dialogues(echo: Model, corpus: Corpus) -> None:
    part = run_model(echo, corpus, limit=1)
    assert [d.id for d in part.corpus] == part.record.dialogues == ["d0000"]
    assert read_journal(part.files[0])[0].dialogues == ["d0000"]
    assert len(Echo.asked) == 3
    whole = run_model(echo, corpus)
    assert (len(whole.corpus), whole.record.dialogues, len(Echo.asked)) == (3, None, 6)
    for chosen in ({"limit": 2}, {"sample": 2}, {"sample": 2, "limit": 1}):
        part = run_model(echo, corpus, **chosen)
        ids = [d.id for d in part.corpus]
        assert part.record.dialogues == ids
        assert len(ids) == min(chosen.values())
        assert (part.is_finished, part.covers_corpus, part.of_turns) == (True, False, 6)
        rows = whole.to_frame().query("dialogue in @ids")
        assert part.to_frame()["answer"].tolist() == rows["answer"].tolist()
    # The journal still is that of the whole run.
    assert read_journal(whole.files[0])[0].dialogues is None
    assert run_model(echo, corpus, limit=9).record.dialogues is None
    assert len(Echo.asked) == 6


def test_a_page_reads_a_part_only_if_all_its_dialogues_are_answered(
    echo: Model, corpus: Corpus, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_model(echo, corpus, limit=1)
    monkeypatch.setenv(paths.PAGE, "any")
    assert len(run_model(echo, corpus, limit=1).corpus) == 1
    with pytest.raises(NoRunError, match=r"settings asked for: not all dialogues \(.*mine.jsonl"):
        run_model(echo, corpus, limit=2)
    # An unfinished run is shown as such.
    assert not run_model(echo, corpus).covers_corpus
    # A shipped run of some dialogues does not answer a question about others.
    monkeypatch.delenv(paths.PAGE)
    (home / "runs").rename(home / "shipped")
    assert run_model(echo, corpus, limit=1).files[0].is_relative_to(home / "shipped")
    assert run_model(echo, corpus, limit=2).files[0].is_relative_to(home / "runs")
    assert run_model(echo, corpus, limit=1).files[0].is_relative_to(home / "shipped")


def test_a_changed_prompt_is_another_question(
    echo: Model, corpus: Corpus, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "PROMPTS", home)
    (home / "mine.txt").write_text("One.\n{history}\n{current_turn}")
    first = run_model(echo, corpus, prompt="mine")
    (home / "mine.txt").write_text("Two.\n{history}\n{current_turn}")
    entry = resolve(echo, prompt="mine")
    # The command refuses, so that no long run begins anew by mistake.
    with pytest.raises(JournalError, match="this journal belongs to another run: prompt_hash is"):
        run(entry, corpus, out=paths.RUNS)
    with pytest.raises(NoRunError, match="prompt_hash is"):
        load_run(entry, corpus)
    second = run_model(echo, corpus, prompt="mine")
    assert first.files != second.files
    (home / "mine.txt").write_text("One.\n{history}\n{current_turn}")
    assert run_model(echo, corpus, prompt="mine").files == first.files
    assert len(Echo.asked) == 12


def test_shards_of_one_question_are_one_run(echo: Model, corpus: Corpus, home: Path) -> None:
    run_model(echo, corpus, temperature=0.7)
    for shard in ("0/2", "1/2"):
        run(echo, corpus, out=paths.RUNS, shard=shard)
    names = sorted(file.name for file in (home / "runs" / "tiny").glob("mine*"))
    assert names[-1] == "mine.jsonl"
    assert len({name.partition(".shard-")[0] for name in names[:-1]}) == 1
    assert len(Echo.asked) == 12
    found = load_run(echo, corpus)
    assert (len(found.files), found.record.decoding) == (2, {"max_new_tokens": 8})


# ---- Shipped runs ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def surrogate() -> Corpus:
    return load_corpus()


def test_the_shipped_run_is_returned_for_its_question_only(
    surrogate: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(paths.PAGE, "any")
    run_of_five = run_model(SHIPPED, surrogate, limit=5)
    assert [d.id for d in run_of_five.corpus] == [d.id for d in surrogate][:5]
    assert run_model(SHIPPED, surrogate, max_new_tokens=48, dtype="float32").covers_corpus
    assert len(run_model("smollm2-135m-openai", surrogate).corpus) == 20


QUESTIONS: list[tuple[str, dict[str, Any], str]] = [
    (SHIPPED, {"temperature": 0.7}, "temperature is 0.7 here and not set there"),
    (SHIPPED, {"prompt": "brief", "limit": 5}, "prompt is 'brief' here and 'turn' there"),
    (SHIPPED, {"chat": {"thinking": False}, "sample": 7}, "chat is"),
    (SHIPPED, {"history": "gold"}, "there is no run of"),
    (
        "smollm2-135m-openai",
        {"base_url": "http://127.0.0.1:9/v1", "extra": {"stop": ["\n", "1"]}},
        "endpoint is",
    ),
    ("hf:./no such folder", {"name": "Mine", "answer_after": "'1'"}, "there is no run of Mine"),
]


@pytest.mark.parametrize(("model", "asked", "message"), QUESTIONS)
def test_a_page_says_which_settings_differ_and_which_command_makes_the_run(
    model: str,
    asked: dict[str, Any],
    message: str,
    surrogate: Corpus,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(paths.PAGE, "any")
    with pytest.raises(NoRunError, match=message) as error:
        run_model(model, surrogate, **asked)
    assert "\n" not in str(error.value)
    words = shlex.split(str(error.value).split("`")[1])
    # The command line reads the same question from these words.
    found = dict(zip(words[2::2], words[3::2], strict=True))
    given = [value for name, value in zip(words[2::2], words[3::2], strict=True) if name == "--set"]
    settings = opt.run_settings(found["--model"], given)
    rest = {name: asked.pop(name, None) for name in ("limit", "sample", "history")}
    assert settings.model == resolve(model, **asked)
    assert (settings.limit, settings.history) == (rest["limit"], rest["history"] or "self")
    sample = rest["sample"] or resolve(model).sample
    assert found.get("--sample") == (None if sample is None else str(sample))
