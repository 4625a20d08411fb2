"""The data files of the explorer, decoded and compared with the corpus and runs."""

from __future__ import annotations

import base64
import json
import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Predictions
from cradle_lib.display.explorer.explorer import explore
from cradle_lib.scoring.analyses.explorer_data import LONGEST, answers, core, texts

from ...forty_dialogues import HOSTILE, corpus, make_run, runs

__all__ = ["corpus", "make_run", "runs"]


def numbers(packed: str, kind: str) -> NDArray[np.int64]:
    return np.frombuffer(base64.b64decode(packed), dtype=kind).astype(np.int64)


def test_answers_are_indexed_by_turn_and_truncated(corpus: Corpus, runs: list[Predictions]) -> None:
    sample = runs[2]
    short = tuple(f"answer {place % 3}" for place in range(len(sample.masks) - 1))
    forks = [{"none": -math.inf, "alert": -0.12345}]
    choices = (forks, *[None] * len(short))
    run = replace(sample, answers=("x" * (LONGEST + 1), *short), choices=choices)
    found = answers(corpus, run, words=True)
    index = numbers(found["index"], "<u4")
    [first] = np.flatnonzero(corpus.dialogue_of == 3)[:1]
    assert found["answers"][index[first]] == "x" * LONGEST
    assert [found["answers"][i] for i in index[first + 1 : first + 4]] == list(short[:3])
    assert found["choices"][first] == [{"none": -math.inf, "alert": -0.123}]
    assert found["choices"].count(0) == len(corpus.gold) - 1
    quiet = answers(corpus, run, words=False)
    assert (quiet["answers"], quiet["index"]) == ([], "")
    # Annotators have no answers.
    people = answers(corpus, replace(run, answers=("",) * len(run.answers)), words=True)
    assert (people["answers"], people["index"]) == ([], "")


def test_an_utterance_has_a_second_text_if_a_model_was_shown_another(corpus: Corpus) -> None:
    pairs = texts(corpus, 0)[5]
    assert len(pairs) == 8
    assert pairs[-1][0] == f"5.7 {HOSTILE}\n5.8 and more"
    # The line break is a space, and a possible control token is escaped.
    assert pairs[-1][1].startswith("5.7 < /details >")
    assert texts(corpus, 1) == []


def test_a_data_script_is_ascii_and_one_call() -> None:
    text = explore({"core": {"said": "</script>\u2028\ud800"}}).files["core.js"]
    assert text.isascii()
    inside = text.removeprefix('cradleExplorer.receive("core",').removesuffix(");\n")
    assert json.loads(inside) == {"said": "</script>\u2028\ud800"}


def test_runs_of_one_model_have_different_ids(corpus: Corpus, runs: list[Predictions]) -> None:
    renamed = runs[1].record.model_copy(update={"name": "Another"})
    found = core(corpus, [runs[1], replace(runs[1], record=renamed)])
    assert [system["id"] for system in found["systems"]] == ["Model <keyword>", "Another"]
