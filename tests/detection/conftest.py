from __future__ import annotations

import pytest

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Model
from cradle_lib.prompts import Template, parse_template

from .dialogues import make_corpus


@pytest.fixture
def corpus() -> Corpus:
    return make_corpus(
        [
            [
                ("User", "Hi, rough week at work.", "none"),
                ("Listener", "What happened?", "none"),
                ("User", "I can't see the point of any of it.", "alert_ongoing"),
                ("Listener", "Do you think of dying?", "none"),
                ("User", "Yes, I wish I was dead.", "confirm_SI_passive_ongoing"),
            ],
            [
                ("Listener", "Welcome back.", "none"),
                ("User", "This exam is killing me.", "none"),
                ("+", "- and the next one too", "none"),
                ("User", "Anyway, my husband hit me last night.", "confirm_DV_ongoing"),
            ],
            [("User", "Just saying hello.", "none")],
        ]
    )


@pytest.fixture
def tiny_template() -> Template:
    return parse_template("tiny", "Label the turn.\n{history}\nNow: {current_turn}")


@pytest.fixture
def always_none() -> Model:
    return Model(id="always-none", name="Always none", group="baseline", engine="always-none")
