"""Converts a corpus and its runs to the data of the explorer: one JSON value for each file.

``core`` has everything except texts: gold labels, and each system's pairs of gold labels and
predictions. ``text-N`` has the utterances of some of the dialogues, ``answers-N`` the raw answers
of the N-th system and the log-probabilities of its choices; the page loads these on demand. Columns
of numbers are the base64 of little-endian integers, one for each user turn or row.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cradle_lib.annotation.load import load_annotations
from cradle_lib.arguments import checked
from cradle_lib.corpus.dialogue import Corpus, Dialogue, valid_unicode
from cradle_lib.detection.protocol.neutralise import neutralise
from cradle_lib.detection.protocol.parsing import OUTCOMES
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.errors import CorpusError
from cradle_lib.scoring.analyses.annotators import annotator_pairs
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.label_pairs import CELLS, KINDS, classify

#: Dialogues in each file of texts.
PART: Final = 250
#: Characters of an answer that are shown; journals have the full answer.
LONGEST: Final = 4000
_NOT_ASKED: Final = 255
_LISTENER, _ASKED, _CONTINUED = range(3)


@checked
def explorer_data(
    corpus: Corpus, runs: Sequence[Predictions], *, text: bool = False
) -> dict[str, Any]:
    """Gathers the data of the explorer, for :func:`.explore`.

    Args:
        corpus: All dialogues.
        runs: One or more runs over all or some of these dialogues, one for each system.
        text: Whether to include the text of a corpus that is not the surrogate, and the answers of
            systems, which may quote it. Do not publish such a site.

    Returns:
        Content of each file by name, ready for JSON.
    """
    kind = "own" if corpus.synthetic else "foreign" if text else "absent"
    data: dict[str, Any] = {"core": core(corpus, runs) | {"text": kind, "part": PART}}
    for number, run in enumerate(runs):
        data[f"answers-{number}"] = answers(corpus, run, words=kind != "absent")
    for part in range(-(-len(corpus) // PART) if kind != "absent" else 0):
        data[f"text-{part}"] = texts(corpus, part)
    return data


@checked
def annotators_data(
    corpus: Corpus, annotations: str | Path = "surrogate", *, text: bool = False
) -> dict[str, Any] | None:
    """Gathers the annotators' labels for :func:`.explore`, which shows them in place of systems.

    Args:
        corpus: The dialogues that were labelled.
        annotations: As for :func:`.load_annotations`.
        text: As for :func:`explorer_data`.

    Returns:
        As :func:`explorer_data`, for :func:`.annotator_pairs`; ``None`` if the annotations are the
        shipped ones and the dialogues are others.

    Raises:
        CorpusError: If other annotations can't be read, or were made on other dialogues.
    """
    try:
        labelled = load_annotations(corpus, annotations)
    except CorpusError:
        if annotations == "surrogate":
            return None
        raise
    return explorer_data(*annotator_pairs(labelled), text=text)


def core(corpus: Corpus, runs: Sequence[Predictions]) -> dict[str, Any]:
    """Gathers all data except texts and answers.

    Returns:
        ``corpus`` (its name); ``cells``, ``categories``, ``kinds`` and ``outcomes`` (the meanings
        of codes); ``dialogues`` (ids), ``rows`` (number of rows of each), ``speakers`` (of each
        row: 0 for the Listener, 1 for a user turn, 2 for a row that continues the one above) and
        ``gold`` (the mask of each row); ``unlabelled`` (positions of the dialogues without gold
        labels); ``about`` (coded columns such as the scenario of each dialogue); ``best`` (the
        position of the system with the highest micro F1 among those with the most turns; ``None``
        for people); and ``systems``.
    """
    turns = corpus.turns
    kinds = [_CONTINUED if t.continues else _ASKED if t.asked else _LISTENER for t in turns]
    return {
        "corpus": f"{corpus.name} ({corpus.fingerprint})",
        "cells": CELLS,
        "categories": ["right", *KINDS],
        "kinds": KINDS,
        "outcomes": OUTCOMES,
        "dialogues": [valid_unicode(dialogue.id) for dialogue in corpus],
        "rows": _numbers([len(dialogue.turns) for dialogue in corpus], "<u4"),
        "speakers": _numbers(kinds, "u1"),
        "gold": _numbers([turn.mask for turn in turns], "<u2"),
        "unlabelled": [n for n, dialogue in enumerate(corpus) if not dialogue.labelled],
        "about": {name: _coded(column) for name, column in corpus.meta.items()},
        "best": _best(runs),
        "systems": [
            {"id": name} | _system(corpus, run) for name, run in zip(_ids(runs), runs, strict=True)
        ],
    }


def texts(corpus: Corpus, part: int) -> list[list[list[str]]]:
    """Gathers the utterances of up to ``PART`` dialogues, from position ``part * PART`` on.

    An utterance has one text, or also the text shown to models if :func:`.neutralise` changed it.
    """
    return [_utterances(dialogue) for dialogue in corpus.dialogues[part * PART : (part + 1) * PART]]


def answers(corpus: Corpus, run: Predictions, *, words: bool) -> dict[str, Any]:
    """Gathers a system's raw answers and the log-probabilities of its choices.

    Without ``words`` the answers are left out, because they may quote a dialogue.

    Returns:
        ``answers`` (distinct texts), ``index`` (the position of each user turn's answer in them;
        empty without answers), and ``choices`` (for each user turn the log-probabilities at the
        choices of its answer, or 0).
    """
    places = _places(corpus, run)
    found: dict[str, Any] = {"answers": [], "index": "", "choices": []}
    # Runs of annotators have no answers.
    if words and any(run.answers):
        cut = [valid_unicode(answer[:LONGEST]) for answer in run.answers]
        codes = {answer: code for code, answer in enumerate(dict.fromkeys(cut))}
        index = np.zeros(len(corpus.gold), dtype=np.uint32)
        index[places] = [codes[answer] for answer in cut]
        found |= {"answers": list(codes), "index": _numbers(index, "<u4")}
    if any(run.choices):
        choices: list[Any] = [0] * len(corpus.gold)
        for place, branches in zip(places.tolist(), run.choices, strict=True):
            rounded = (
                {text: round(value, 3) for text, value in branch.items()}
                for branch in branches or ()
            )
            choices[place] = list(rounded) or 0
        found["choices"] = choices
    return found


def _ids(runs: Sequence[Predictions]) -> list[str]:
    """Gives the id of each system in links: its model's id, or its name if the id is not unique."""
    models = [run.record.model for run in runs]
    return [m if models.count(m) == 1 else r.record.name for m, r in zip(models, runs, strict=True)]


def _best(runs: Sequence[Predictions]) -> int | None:
    if runs[0].record.group == "people":
        return None

    def rank(place: int) -> tuple[int, float, bool]:
        masks, found = runs[place].masks, evaluate(runs[place], draws=0)
        score = float(found.estimate("micro_f1").value)
        return len(masks), 0.0 if math.isnan(score) else score, bool(masks.any())

    return max(range(len(runs)), key=rank)


def _system(corpus: Corpus, run: Predictions) -> dict[str, Any]:
    places, turns = _places(corpus, run), len(corpus.gold)
    outcomes = np.full(turns, _NOT_ASKED)
    outcomes[places] = run.outcomes
    pairs = classify(run.corpus.gold, run.masks, run.corpus.dialogue_of)
    sizes = np.zeros(turns, dtype=np.int64)
    sizes[places] = np.bincount(pairs["row"], minlength=len(places))
    code: NDArray[np.int64] = np.zeros(len(pairs), dtype=np.int64)
    for name, shift in (("category", 1), ("gold", 0), ("predicted", 0)):
        code = code * len(CELLS) + pairs[name].cat.codes.to_numpy(np.int64) + shift
    # Sort pairs by turns of the corpus; the run may have its dialogues in another order.
    order = np.argsort(places[pairs["row"].to_numpy()], kind="stable")
    record = run.record
    return {
        "name": record.name,
        "history": record.history,
        "prompt": f"{record.prompt} ({record.prompt_hash})",
        "outcomes": _numbers(outcomes, "u1"),
        "sizes": _numbers(sizes, "u1"),
        "pairs": _numbers(code[order], "<u2"),
    }


def _places(corpus: Corpus, run: Predictions) -> NDArray[np.int64]:
    """Gives for each user turn of a run its position among those of the corpus."""
    if run.corpus is corpus:
        return np.arange(len(corpus.gold))
    starts = np.searchsorted(corpus.dialogue_of, np.arange(len(corpus) + 1))
    place_of = {dialogue.id: place for place, dialogue in enumerate(corpus)}
    covered = [place_of[dialogue.id] for dialogue in run.corpus]
    return np.concatenate([np.arange(*starts[i : i + 2]) for i in covered])


def _utterances(dialogue: Dialogue) -> list[list[str]]:
    spoken = (dialogue.utterance(turn) for turn in dialogue.turns if not turn.continues)
    return [list(dict.fromkeys((valid_unicode(said), neutralise(said)))) for said in spoken]


def _coded(column: Sequence[str]) -> dict[str, Any]:
    codes, names = pd.factorize(np.array(column, dtype=object), sort=True)
    return {"names": [valid_unicode(name) for name in names], "codes": _numbers(codes, "<u4")}


def _numbers(values: ArrayLike, kind: str) -> str:
    return base64.b64encode(np.asarray(values).astype(kind).tobytes()).decode()
