"""Runs: what is asked, what is kept, what leaves the machine."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import (
    OUTCOMES,
    Answer,
    Model,
    Outcome,
    Progress,
    Prompt,
    journal_path,
    load_predictions,
    read_journal,
    sample_dialogues,
)
from cradle_lib.detection import run as asking
from cradle_lib.detection.engine import Engine, Sequential
from cradle_lib.detection.model import Decoding, Prices
from cradle_lib.detection.run import Consent, run
from cradle_lib.errors import CorpusError, EngineError, JournalError
from cradle_lib.labels import BITS
from cradle_lib.scoring.subgroups import subgroups

from .dialogues import make_corpus


class Asked(Sequential):
    """Answers from a list, then ``none``; remembers what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    def reply(self, prompt: Prompt) -> Answer:
        self.asked.append((prompt.dialogue, prompt.turn))
        return self.answers.pop(0) if self.answers else Answer("none")


def use(monkeypatch: pytest.MonkeyPatch, *answers: Answer) -> Asked:
    engine = Asked(*answers)
    module = asking
    monkeypatch.setattr(module, "make_engine", lambda *_: engine)
    # As if it shipped with the library: these runs go on from one engine to the other.
    monkeypatch.setattr(module, "code_of", lambda _: None)
    return engine


def test_a_run_gives_predictions_aligned_to_the_user_turns(
    corpus: Corpus, always_none: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Answer("none"), Answer("hm"), Answer("confirm_SI_passive_ongoing"))
    seen: list[Progress] = []
    path = run(always_none, corpus, out=tmp_path, progress=seen.append)
    assert path == journal_path(always_none, corpus, out=tmp_path)
    predictions = load_predictions(path, corpus)
    confirm = BITS["confirm_SI_passive_ongoing"]
    np.testing.assert_array_equal(predictions.masks, [0, 0, confirm, 0, 0, 0])
    assert predictions.masks.dtype == np.uint16
    assert [OUTCOMES[code] for code in predictions.outcomes][:3] == ["ok", "unparsed", "ok"]
    assert predictions.answers[1] == "hm"
    assert predictions.ok.tolist() == [True, False, True, True, True, True]
    assert predictions.outcome_counts == {
        Outcome.OK: 5,
        Outcome.UNPARSED: 1,
        Outcome.REFUSED: 0,
        Outcome.FAILED: 0,
    }
    assert predictions.of_turns == len(corpus.gold) == 6
    assert [(p.done, p.total, p.stored) for p in seen] == [(n, 6, 0) for n in range(7)]


def test_a_run_is_a_frame_with_a_row_for_each_user_turn(
    corpus: Corpus, always_none: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Answer("none"), Answer("hm"), Answer("confirm_SI_passive_ongoing"))
    known = replace(corpus, meta={"scenario": ["S1", "S2", "S1"]})
    # As a user types them: paths that are text.
    run_over = load_predictions(str(run(always_none, known, out=str(tmp_path))), known)
    frame = run_over.to_frame()
    assert list(frame.columns) == [
        "dialogue", "turn", "position", "gold", "gold_mask", "scenario",
        "tagged", "tagged_mask", "outcome", "answer",
    ]  # fmt: skip
    assert frame["dialogue"].tolist() == ["d0000"] * 3 + ["d0001"] * 2 + ["d0002"]
    assert frame["turn"].tolist() == [0, 2, 4, 1, 3, 0]
    assert frame["position"].tolist() == [1, 2, 3, 1, 2, 1]
    assert frame["outcome"].tolist() == ["ok", "unparsed", *["ok"] * 4]
    assert frame["answer"].tolist()[:2] == ["none", "hm"]
    assert frame["scenario"].tolist() == ["S1"] * 3 + ["S2"] * 2 + ["S1"]
    assert frame["gold"].tolist()[1:3] == ["alert_ongoing", "confirm_SI_passive_ongoing"]
    np.testing.assert_array_equal(frame["gold_mask"], known.gold)
    np.testing.assert_array_equal(frame["tagged_mask"], run_over.masks)
    assert frame.attrs["system"] == "Always none"
    whole = known.to_frame()
    assert len(whole) == len(known.turns)
    assert whole["position"].isna().sum() == len(known.turns) - len(known.gold)


def test_a_finished_run_asks_nothing_again(
    corpus: Corpus, always_none: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = run(always_none, corpus, out=tmp_path)
    before = path.read_bytes()
    engine = use(monkeypatch)
    seen: list[Progress] = []
    run(always_none, corpus, out=tmp_path, progress=seen.append)
    assert engine.asked == []
    assert path.read_bytes() == before
    assert seen == [Progress(done=6, total=6, stored=6)]


def test_failed_turns_are_asked_again_and_only_these(
    corpus: Corpus, always_none: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Answer("none"), Answer("", Outcome.FAILED, "HTTP 503"))
    path = run(always_none, corpus, out=tmp_path)
    engine = use(monkeypatch)
    run(always_none, corpus, out=tmp_path)
    assert engine.asked == [("d0000", 2)]
    assert load_predictions(path, corpus).ok.all()


def test_an_edited_turn_is_asked_again_with_all_after_it(
    corpus: Corpus, always_none: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = run(always_none, corpus, out=tmp_path)
    first = corpus.dialogues[0]
    turns = [replace(t, text="Edited.") if t.turn_id == 2 else t for t in first.turns]
    edited = Corpus("tiny", (replace(first, turns=tuple(turns)), *corpus.dialogues[1:]))
    with pytest.raises(JournalError, match="answers 4 of 6 user turns"):
        load_predictions(path, edited)
    engine = use(monkeypatch, Answer("alert_past"))
    run(always_none, edited, out=tmp_path)
    assert engine.asked == [("d0000", 2), ("d0000", 4)]
    assert load_predictions(path, edited).masks.tolist() == [0, BITS["alert_past"], 0, 0, 0, 0]


def test_a_relabelled_corpus_keeps_its_answers(
    corpus: Corpus, always_none: Model, tmp_path: Path
) -> None:
    path = run(always_none, corpus, out=tmp_path)
    first = corpus.dialogues[0]
    turns = tuple(replace(turn, mask=0) for turn in first.turns)
    relabelled = Corpus("tiny", (replace(first, turns=turns), *corpus.dialogues[1:]))
    assert relabelled.fingerprint != corpus.fingerprint
    assert len(load_predictions(path, relabelled).masks) == 6


def write_corpus(path: Path, *said: str) -> Corpus:
    path.parent.mkdir(exist_ok=True)
    rows = [
        {"turn_id": i, "text": f"User: {text}", "labels": "none"} for i, text in enumerate(said)
    ]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pd.DataFrame(rows).to_csv(path, index=False)
    return load_corpus(path)


def test_files_of_the_same_name_never_share_a_journal(
    always_none: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = write_corpus(tmp_path / "a" / "mine.csv", "one", "two")
    two = write_corpus(tmp_path / "b" / "mine.jsonl", "three", "four", "five")
    engine = use(monkeypatch)
    path = run(always_none, one, out=tmp_path / "runs")
    assert path == tmp_path / "runs" / "mine" / "always-none.jsonl"
    before = path.read_bytes()
    for out in (tmp_path / "runs", path):
        with pytest.raises(CorpusError, match=r"another file called 'mine'.*Rename") as error:
            run(always_none, two, out=out)
        assert "\n" not in str(error.value)
    assert path.read_bytes() == before
    assert len(engine.asked) == 2
    with pytest.raises(JournalError, match="it was made for another file called mine"):
        load_predictions(path, two)
    # A corpus of another name is not told that the journal is about a namesake.
    other = write_corpus(tmp_path / "b" / "yours.jsonl", "six")
    with pytest.raises(JournalError, match="it was made for mine"):
        load_predictions(path, other)
    assert path != run(always_none, two, out=tmp_path / "elsewhere")


def test_an_edited_file_goes_on_in_its_journal(
    always_none: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a" / "mine.csv"
    run(always_none, write_corpus(file, "one", "two", "three"), out=tmp_path / "runs")
    engine = use(monkeypatch)
    edited = write_corpus(file, "one", "too", "three")
    path = run(always_none, edited, out=tmp_path / "runs")
    assert engine.asked == [("d0000", 1), ("d0000", 2)]
    assert load_predictions(path, edited).ok.all()


def test_an_equal_copy_goes_on_but_does_not_take_the_journal_over(
    always_none: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write_corpus(tmp_path / "a" / "mine.csv", "one", "two")
    run(always_none, first, out=tmp_path / "runs")
    engine = use(monkeypatch)
    copied = tmp_path / "b" / "mine.csv"
    path = run(always_none, write_corpus(copied, "one", "two"), out=tmp_path / "runs")
    assert engine.asked == []
    with pytest.raises(CorpusError, match="another file called 'mine'"):
        run(always_none, write_corpus(copied, "one", "2"), out=tmp_path / "runs")
    # The first file is not shut out of its own journal.
    run(always_none, write_corpus(tmp_path / "a" / "mine.csv", "one", "two", "three"), out=path)
    assert engine.asked == [("d0000", 2)]


def test_a_corpus_own_ids_name_its_dialogues_in_the_journal(
    always_none: Model, tmp_path: Path
) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(
        "dialogue_id,turn_id,text,labels,timing\ntalk/1,0,User: Hm.,none,late\n"
        "talk 2,0,User: No.,none,early\ntalk 3,0,User: So.,none,early\nx,0,User: A.,none,late\n"
    )
    corpus = load_corpus(file)
    path = run(always_none, corpus, out=tmp_path / "runs", sample=2)
    record, stored = read_journal(path)
    chosen = [corpus.dialogues[i].id for i in sample_dialogues(corpus, 2)]
    assert record.dialogues == chosen
    assert sorted(p.dialogue for p in stored) == sorted(chosen)
    predictions = load_predictions(path, corpus, partial=True)
    assert [d.id for d in predictions.corpus] == chosen
    # One of each timing: the sample keeps their shares.
    by_timing = subgroups(predictions, "timing", draws=0)
    assert dict(zip(by_timing["part"], by_timing["dialogues"], strict=True)) == {
        "early": 1,
        "late": 1,
    }


def test_shards_cover_the_corpus_once_and_merge(
    corpus: Corpus, always_none: Model, tmp_path: Path
) -> None:
    whole = load_predictions(run(always_none, corpus, out=tmp_path), corpus)
    shards = [run(always_none, corpus, out=tmp_path, shard=f"{i}/2") for i in range(2)]
    dealt = [{p.dialogue for p in read_journal(path)[1]} for path in shards]
    assert dealt == [{"d0000", "d0002"}, {"d0001"}]
    assert [read_journal(path)[0].shard for path in shards] == ["0/2", "1/2"]
    merged = load_predictions(shards, corpus)
    np.testing.assert_array_equal(merged.masks, whole.masks)
    with pytest.raises(JournalError, match="answers 4 of 6 user turns of tiny"):
        load_predictions(shards[0], corpus)


@pytest.mark.parametrize("shard", ["2/2", "-1/2", "1", "a/b", "0/0", "1/2/3"])
def test_an_impossible_shard_is_refused(
    corpus: Corpus, always_none: Model, tmp_path: Path, shard: str
) -> None:
    with pytest.raises(JournalError, match="expected i/n"):
        run(always_none, corpus, out=tmp_path, shard=shard)


def test_a_partial_run_is_refused_unless_asked_for(
    corpus: Corpus, always_none: Model, tmp_path: Path
) -> None:
    path = run(always_none, corpus, out=tmp_path, limit=1)
    assert read_journal(path)[0].dialogues == ["d0000"]
    with pytest.raises(JournalError, match="answers 3 of 6 user turns"):
        load_predictions(path, corpus)
    partial = load_predictions(path, corpus, partial=True)
    assert [d.id for d in partial.corpus] == ["d0000"]
    assert (len(partial.masks), partial.of_turns) == (3, 6)
    # The part as a corpus of its own is covered.
    assert len(load_predictions(path, corpus.subset([0], "part")).masks) == 3
    assert read_journal(run(always_none, corpus, out=tmp_path))[0].dialogues is None


def test_predictions_can_be_restricted_to_some_dialogues(
    corpus: Corpus, always_none: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["none", "alert_past", "none", "none", "confirm_DV_past", "confirm_RA_past"]
    use(monkeypatch, *map(Answer, texts))
    whole = load_predictions(run(always_none, corpus, out=tmp_path), corpus)
    part = whole.subset(corpus.subset([2, 0], "part"))
    expected = [BITS["confirm_RA_past"], 0, BITS["alert_past"], 0]
    assert part.masks.tolist() == expected
    assert part.answers == ("confirm_RA_past", "none", "alert_past", "none")
    with pytest.raises(JournalError, match="d0001"):
        part.subset(corpus)


def test_a_run_without_a_user_turn_is_a_frame_with_the_same_types(
    corpus: Corpus, always_none: Model, tmp_path: Path
) -> None:
    silent = make_corpus([[("Listener", "Hello.", "none")]])
    frames = [
        load_predictions(run(always_none, over, out=tmp_path / name), over).to_frame()
        for name, over in (("whole", corpus), ("silent", silent))
    ]
    assert frames[1].empty
    for column in ("outcome", "tagged", "answer"):
        assert frames[1][column].dtype == frames[0][column].dtype


def test_journals_of_different_runs_do_not_mix(
    corpus: Corpus, always_none: Model, tmp_path: Path
) -> None:
    paths = [run(always_none, corpus, out=tmp_path, history=h) for h in ("self", "gold")]
    assert [p.name for p in paths] == ["always-none.jsonl", "always-none.history-gold.jsonl"]
    with pytest.raises(JournalError, match="belongs to another run"):
        load_predictions(paths, corpus)


def test_a_journal_of_another_corpus_is_not_taken_for_this_one(
    corpus: Corpus, always_none: Model, tmp_path: Path
) -> None:
    other = make_corpus([[("User", "Something else.", "none")]] * 3)
    with pytest.raises(JournalError, match="none of its answers is to a question"):
        load_predictions(run(always_none, corpus, out=tmp_path), other)


REMOTE = Model.model_validate(
    {
        "id": "far",
        "name": "Far",
        "group": "proprietary",
        "engine": "openai",
        "weights": "far-1",
        "remote": True,
        "base_url": "https://far.example/v1",
        "key": {"variable": "FAR_KEY", "url": "https://far.example/keys"},
    }
)


def test_text_leaves_the_machine_only_after_consent(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = use(monkeypatch)
    questions: list[str] = []

    def refuse(question: str) -> bool:
        questions.append(question)
        return False

    for consent in (None, refuse):
        with pytest.raises(EngineError, match="not agreed"):
            run(REMOTE, corpus, out=tmp_path, consent=consent)
    assert engine.asked == []
    assert questions == [
        "The text of 3 dialogues of tiny will be sent to far.example (Far). Send it?"
    ]
    run(REMOTE, corpus, out=tmp_path, consent=lambda _: True)
    assert len(engine.asked) == 6
    run(REMOTE, corpus, out=tmp_path, consent=refuse)
    assert len(questions) == 1


def test_consent_is_for_the_dialogues_that_it_was_given_for(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = use(monkeypatch)
    questions: list[str] = []

    def answer(agreed: bool) -> Consent:
        return lambda question: bool(questions.append(question)) or agreed

    path = run(REMOTE, corpus, out=tmp_path, limit=1, consent=answer(True))
    assert read_journal(path)[0].agreed == ["d0000"]
    run(REMOTE, corpus, out=tmp_path, limit=1, consent=answer(False))
    assert len(questions) == 1
    with pytest.raises(EngineError, match=r"sending 2 dialogues of tiny to far\.example"):
        run(REMOTE, corpus, out=tmp_path, consent=answer(False))
    assert "The text of 2 dialogues of tiny" in questions[1]
    assert {dialogue for dialogue, _ in engine.asked} == {"d0000"}
    run(REMOTE, corpus, out=tmp_path, consent=answer(True))
    run(REMOTE, corpus, out=tmp_path, consent=answer(False))
    assert len(questions) == 3
    # What was agreed to is the text as it was then.
    first = corpus.dialogues[0]
    turns = (replace(first.turns[0], text="Something new."), *first.turns[1:])
    edited = Corpus("tiny", (replace(first, turns=turns), *corpus.dialogues[1:]))
    with pytest.raises(EngineError, match="not agreed"):
        run(REMOTE, edited, out=tmp_path, consent=answer(False))


PRICED = REMOTE.model_copy(
    update={
        "prices": Prices(input=1.0, output=1.0, date="2026-01-01", source="here"),
        "decoding": Decoding(max_new_tokens=10),
    }
)


def test_the_limit_of_a_run_binds_every_later_start(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Answer("none", tokens_in=40_000, tokens_out=1))
    yes: Consent = lambda _: True  # noqa: E731 - as short as it is used
    path = run(PRICED, corpus, out=tmp_path, limit=1, consent=yes, max_cost=0.5)
    assert read_journal(path)[0].max_cost == 0.5
    engine = use(monkeypatch, *[Answer("none", tokens_in=900_000, tokens_out=1)] * 2)
    monkeypatch.setattr(asking, "Remote", Asked)
    engine.stop = lambda why: engine.answers.clear() or (_ for _ in ()).throw(EngineError(why))
    with pytest.raises(EngineError, match=r"of --max-cost \$0\.5 are spent"):
        run(PRICED, corpus, out=tmp_path, consent=yes)
    assert len(engine.asked) == 1
    with pytest.raises(EngineError, match="Give a higher limit"):
        run(PRICED, corpus, out=tmp_path, consent=yes)
    # A limit that is named replaces the one that was recorded.
    use(monkeypatch)
    run(PRICED, corpus, out=tmp_path, consent=yes, max_cost=5.0)
    assert read_journal(path)[0].max_cost == 5.0


def test_a_start_that_failed_does_not_stand_in_the_way_of_the_corrected_entry(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistyped = Model(
        id="m", name="M", group="open", engine="openai", weights="w",
        base_url="http://127.0.0.1:1/v1",
    )  # fmt: skip
    right = mistyped.model_copy(update={"base_url": "http://127.0.0.1:2/v1"})
    failed = Answer("", Outcome.FAILED, "no connection")
    use(monkeypatch, *[failed] * 6)
    path = run(mistyped, corpus, out=tmp_path)
    use(monkeypatch, Answer("alert_past"))
    run(right, corpus, out=tmp_path)
    record, stored = read_journal(path)
    assert record.endpoint == "http://127.0.0.1:2/v1"
    assert [p.outcome for p in stored] == [Outcome.OK] * 6
    assert load_predictions(path, corpus).masks[0] == BITS["alert_past"]
    before = path.read_bytes()
    with pytest.raises(JournalError, match=r"endpoint is 'http://127\.0\.0\.1:2/v1' there"):
        run(mistyped, corpus, out=tmp_path)
    assert path.read_bytes() == before


def test_a_limit_of_a_start_that_failed_does_not_bind_the_corrected_entry(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    yes: Consent = lambda _: True  # noqa: E731 - as short as it is used
    wrong = PRICED.model_copy(update={"weights": "mistyped"})
    use(monkeypatch, *[Answer("", Outcome.FAILED, "no such model")] * 6)
    path = run(wrong, corpus, out=tmp_path, consent=yes, max_cost=0.5)
    assert read_journal(path)[0].max_cost == 0.5
    use(monkeypatch)
    run(PRICED, corpus, out=tmp_path, consent=yes)
    record, stored = read_journal(path)
    assert record.max_cost is None
    assert [p.outcome for p in stored] == [Outcome.OK] * 6


def test_the_code_of_an_engine_of_ones_own_is_part_of_its_runs_identity(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(answer: str) -> type[Engine]:
        file = tmp_path / "own_engine.py"
        file.write_text(
            "from cradle_lib.detection import Answer\n"
            "from cradle_lib.detection.engine import Sequential\n"
            "class Own(Sequential):\n"
            f"    def reply(self, prompt):\n        return Answer({answer!r})\n"
        )
        spec = importlib.util.spec_from_file_location("own_engine", file)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "own_engine", module)
        spec.loader.exec_module(module)
        found: type[Engine] = module.Own
        return found

    model = Model(id="own", name="Own", group="own", engine="keyword")
    module = asking
    monkeypatch.setattr(module, "make_engine", lambda *_: load("none")())
    path = run(model, corpus, out=tmp_path)
    code = read_journal(path)[0].code
    assert run(model, corpus, out=tmp_path) == path
    monkeypatch.setattr(module, "make_engine", lambda *_: load("alert_past")())
    with pytest.raises(JournalError, match=f"code is '{code}' there"):
        run(model, corpus, out=tmp_path)


def test_a_sample_and_a_limit_exclude_each_other(
    corpus: Corpus, always_none: Model, tmp_path: Path
) -> None:
    with pytest.raises(JournalError, match="a sample and a limit exclude each other"):
        run(always_none, corpus, out=tmp_path, sample=2, limit=1)


def test_a_missing_key_is_one_line_that_names_the_variable(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAR_KEY", raising=False)
    with pytest.raises(EngineError, match=r"FAR_KEY is not set.*https://far.example/keys") as error:
        run(REMOTE, corpus, out=tmp_path, consent=lambda _: True)
    assert "\n" not in str(error.value)


def test_a_sample_keeps_the_shares_of_scenarios() -> None:
    rows = [[("User", f"{i}", "none")] for i in range(120)]
    scenarios = ["S1"] * 60 + ["S2"] * 40 + ["S3"] * 20
    corpus = replace(
        make_corpus(rows), meta={"scenario": scenarios, "timing": ["early", "mid", "late"] * 40}
    )
    drawn = sample_dialogues(corpus, 12, seed=1)
    # 12 of 120 is a tenth: 6, 4 and 2 dialogues, spread over the timings.
    assert Counter(scenarios[i] for i in drawn) == {"S1": 6, "S2": 4, "S3": 2}
    assert Counter(corpus.meta["timing"][i] for i in drawn if i < 60) == dict.fromkeys(
        ("early", "mid", "late"), 2
    )
    assert drawn == sorted(set(drawn))
    assert drawn == sample_dialogues(corpus, 12, seed=1)
    assert drawn != sample_dialogues(corpus, 12, seed=2)
    assert sample_dialogues(corpus, 500) == list(range(120))
    assert len(sample_dialogues(make_corpus(rows), 7)) == 7
    assert sample_dialogues(corpus, 0) == []
