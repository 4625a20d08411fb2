"""Runs: questions, resuming, samples and consent."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.corpus.release import write_release
from cradle_lib.detection import (
    Answer,
    Model,
    Options,
    Progress,
    Prompt,
    journal_path,
    load_predictions,
    sample_dialogues,
)
from cradle_lib.detection.models.engine import Consent, Sequential
from cradle_lib.detection.runs import identity
from cradle_lib.detection.runs import run as run_module
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import CorpusError, EngineError, JournalError
from cradle_lib.labels import BITS

from ..dialogues import make_corpus


class RecordingEngine(Sequential):
    """Answers from a list, then ``none``; records the questions."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    def reply(self, prompt: Prompt) -> Answer:
        self.asked.append((prompt.dialogue, prompt.turn))
        return self.answers.pop(0) if self.answers else Answer("none")


def install_engine(monkeypatch: pytest.MonkeyPatch, *answers: Answer) -> RecordingEngine:
    engine = RecordingEngine(*answers)
    monkeypatch.setattr(run_module, "make_engine", lambda *_: engine)
    # The code is not part of the identity, so that runs resume with another engine.
    monkeypatch.setattr(identity, "code_of", lambda _: None)
    return engine


def test_predictions_of_a_run_are_aligned_to_the_user_turns(
    corpus: Corpus, always_none: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_engine(monkeypatch, Answer("none"), Answer("hm"), Answer("confirm_SI_passive_ongoing"))
    known = replace(corpus, meta={"scenario": ["S1", "S2", "S1"]})
    seen: list[Progress] = []
    # Paths may be strings.
    path = run(always_none, known, out=str(tmp_path), options=Options(progress=seen.append))
    assert path == journal_path(always_none.id, known, out=tmp_path)
    predictions = load_predictions(str(path), known)
    confirm = BITS["confirm_SI_passive_ongoing"]
    np.testing.assert_array_equal(predictions.masks, [0, 0, confirm, 0, 0, 0])
    assert predictions.ok.tolist() == [True, False, True, True, True, True]
    assert list(predictions.outcome_counts.values()) == [5, 1, 0, 0]
    assert [(p.done, p.total, p.stored) for p in seen] == [(n, 6, 0) for n in range(7)]
    run(always_none, known, out=tmp_path, options=Options(progress=seen.append))
    assert seen[7:] == [Progress(done=6, total=6, stored=6)]
    frame = predictions.to_frame()
    assert frame["turn"].tolist() == [0, 2, 4, 1, 3, 0]
    assert frame["position"].tolist() == [1, 2, 3, 1, 2, 1]
    assert frame["outcome"].tolist() == ["ok", "unparsed", *["ok"] * 4]
    assert frame["scenario"].tolist() == ["S1"] * 3 + ["S2"] * 2 + ["S1"]
    assert frame["gold"].tolist()[1:3] == ["alert_ongoing", "confirm_SI_passive_ongoing"]


def test_an_edited_turn_and_later_turns_are_asked_again_but_changed_labels_are_not(
    corpus: Corpus, always_none: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = run(always_none, corpus, out=tmp_path)
    first = corpus.dialogues[0]
    relabelled = replace(first, turns=tuple(replace(turn, mask=0) for turn in first.turns))
    others = corpus.dialogues[1:]
    assert len(load_predictions(path, Corpus("tiny", (relabelled, *others))).masks) == 6
    turns = [replace(t, text="Edited.") if t.turn_id == 2 else t for t in first.turns]
    edited = Corpus("tiny", (replace(first, turns=tuple(turns)), *others))
    with pytest.raises(JournalError, match="answers 4 of 6 user turns"):
        load_predictions(path, edited)
    engine = install_engine(monkeypatch, Answer("alert_past"))
    run(always_none, edited, out=tmp_path)
    assert engine.asked == [("d0000", 2), ("d0000", 4)]
    assert load_predictions(path, edited).masks.tolist() == [0, BITS["alert_past"], 0, 0, 0, 0]
    unlike = make_corpus([[("User", "Something else.", "none")]] * 3)
    with pytest.raises(JournalError, match="none of its answers belongs to a question"):
        load_predictions(path, unlike)


def write_corpus(path: Path, *texts: str) -> Corpus:
    write_release(make_corpus([[("User", text, "none") for text in texts]]), path)
    return load_corpus(path)


def test_files_of_the_same_name_never_share_a_journal_and_an_edited_file_resumes_its_own(
    always_none: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a" / "mine.csv"
    one = write_corpus(file, "one", "two")
    two = write_corpus(tmp_path / "b" / "mine.parquet", "three", "four", "five")
    engine = install_engine(monkeypatch)
    path = run(always_none, one, out=tmp_path / "runs")
    assert path == tmp_path / "runs" / "mine" / "always-none.jsonl"
    before = path.read_bytes()
    for out in (tmp_path / "runs", path):
        with pytest.raises(CorpusError, match=r"another file called 'mine'.*Rename"):
            run(always_none, two, out=out)
    assert path.read_bytes() == before
    with pytest.raises(JournalError, match="it was made for mine"):
        load_predictions(path, two)
    # An equal copy in another folder may use the journal, and does not become its owner.
    run(always_none, write_corpus(tmp_path / "c" / "mine.csv", "one", "two"), out=path)
    assert len(engine.asked) == 2
    edited = write_corpus(file, "one", "too", "three")
    run(always_none, edited, out=path)
    assert engine.asked[2:] == [("d0000", 1), ("d0000", 2)]
    assert load_predictions(path, edited).ok.all()


def test_a_history_of_gold_labels_needs_them(
    corpus: Corpus, always_none: Model, tmp_path: Path
) -> None:
    first, *others = corpus
    partly = replace(corpus, dialogues=(*others, replace(first, labelled=False)))
    with pytest.raises(CorpusError, match="d0000 has no gold labels"):
        run(always_none, partly, out=tmp_path, history="gold")
    assert not [*tmp_path.rglob("*.jsonl")]
    run(always_none, partly, out=tmp_path, history="none")


def test_predictions_can_be_restricted_to_some_dialogues(
    corpus: Corpus, always_none: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["none", "alert_past", "none", "none", "confirm_DV_past", "confirm_RA_past"]
    install_engine(monkeypatch, *map(Answer, texts))
    complete = load_predictions(run(always_none, corpus, out=tmp_path), corpus)
    part = complete.subset(corpus.subset([2, 0], "part"))
    assert part.masks.tolist() == [BITS["confirm_RA_past"], 0, BITS["alert_past"], 0]
    assert part.answers == ("confirm_RA_past", "none", "alert_past", "none")


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


def test_text_needs_consent(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = install_engine(monkeypatch)
    questions: list[str] = []

    def answer(agreed: bool) -> Consent:
        return lambda question: bool(questions.append(question)) or agreed

    for consent in (None, answer(False)):
        with pytest.raises(EngineError, match=r"sending 3 dialogues of tiny to far\.example"):
            run(REMOTE, corpus, out=tmp_path, options=Options(consent=consent))
    assert engine.asked == []
    assert questions == [
        "The text of 3 dialogues of tiny will be sent to far.example (Far). Send it?"
    ]
    run(REMOTE, corpus, out=tmp_path, limit=1, options=Options(consent=answer(True)))
    # Consent is asked for the remaining dialogues only, and not if nothing will be sent.
    with pytest.raises(EngineError, match="not agreed"):
        run(REMOTE, corpus, out=tmp_path, options=Options(consent=answer(False)))
    assert "The text of 2 dialogues of tiny" in questions[-1]
    assert {dialogue for dialogue, _ in engine.asked} == {"d0000"}
    run(REMOTE, corpus, out=tmp_path, options=Options(consent=answer(True)))
    run(REMOTE, corpus, out=tmp_path)
    assert len(engine.asked) == 6


def test_a_remote_model_without_an_address_is_refused(
    corpus: Corpus, always_none: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = install_engine(monkeypatch)
    remote = always_none.model_copy(update={"remote": True})
    with pytest.raises(EngineError, match=r"nobody can agree to it\. Set `base_url`"):
        run(remote, corpus, out=tmp_path, options=Options(consent=lambda _: True))
    assert engine.asked == []


def test_another_start_is_refused_until_the_first_one_has_ended(
    corpus: Corpus, always_none: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it reads a journal that is not complete, or renames one that is being written."""
    path = tmp_path / "run.jsonl"
    engine = install_engine(monkeypatch)
    remote = always_none.model_copy(update={"remote": True, "base_url": "https://a.example"})
    changed = always_none.model_copy(update={"neutralise": False})

    def consent(question: str) -> bool:
        for model in (always_none, changed):
            with pytest.raises(JournalError, match="another process is writing"):
                run(model, corpus, out=path)
        return True

    run(remote, corpus, out=path, options=Options(consent=consent))
    assert len(engine.asked) == 6
    assert sorted(file.name for file in tmp_path.iterdir()) == [".run.jsonl.lock", "run.jsonl"]


def test_a_sample_keeps_the_shares_of_scenarios() -> None:
    rows = [[("User", f"{i}", "none")] for i in range(120)]
    scenarios = ["S1"] * 60 + ["S2"] * 40 + ["S3"] * 20
    corpus = replace(
        make_corpus(rows), meta={"scenario": scenarios, "timing": ["early", "mid", "late"] * 40}
    )
    drawn = sample_dialogues(corpus, 12, seed=1)
    # A tenth of each scenario: 6, 4 and 2 dialogues, spread over the timings.
    assert Counter(scenarios[i] for i in drawn) == {"S1": 6, "S2": 4, "S3": 2}
    assert set(Counter(corpus.meta["timing"][i] for i in drawn if i < 60).values()) == {2}
    assert drawn == sorted(set(drawn)) == sample_dialogues(corpus, 12, seed=1)
    assert drawn != sample_dialogues(corpus, 12, seed=2)
    assert sample_dialogues(corpus, 500) == list(range(120))
