"""Printed objects have no dialogue text, because outputs of notebooks may be published."""

from __future__ import annotations

from pathlib import Path

from IPython.core.formatters import DisplayFormatter

from cradle_lib.corpus.release import build_corpus
from cradle_lib.detection import (
    Answer,
    Model,
    Outcome,
    Prediction,
    Session,
    load_predictions,
)
from cradle_lib.detection.runs.run import run
from cradle_lib.prompts import load_template

SECRET = "nobody may read this"


def test_objects_are_printed_without_dialogue_text(tmp_path: Path) -> None:
    rows = [(0, f"User: {SECRET}", "none"), (1, SECRET, "alert_past"), (2, "Listener: x", "none")]
    private = build_corpus(rows, "mine")
    model = Model(id="always-none", name="Always none", group="baseline", engine="always-none")
    predictions = load_predictions(run(model, private, out=tmp_path), private)
    (dialogue,) = private
    session = Session(dialogue, load_template("turn"))
    prompt = session.prompt
    assert prompt is not None
    assert SECRET in prompt.text
    prediction = Prediction("d0000", 0, "k", SECRET, 0, Outcome.UNPARSED, reason=SECRET)
    show = DisplayFormatter().format
    for thing in (
        private,
        dialogue,
        dialogue.turns[1],
        prompt,
        Answer(SECRET),
        prediction,
        predictions,
    ):
        (shown,) = show(thing)[0].values()
        assert shown == repr(thing) == str(thing)
        assert SECRET not in shown
        assert len(shown) < 160
        assert "\n" not in shown
    for thing in ([private], private.dialogues, {"turns": private.turns}, session):
        assert SECRET not in str(show(thing)) + repr(thing)
