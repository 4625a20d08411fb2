"""Turns the labels of annotators into runs, so that they can be scored like a system.

The scores show how much annotators differ. They cannot be compared with those of systems, because
annotations and gold labels are not independent: the annotations that ship were derived from the
gold labels.

References:
    CRADLE-Dialogue (arXiv 2606.10380), Sec 3.2 and Appendix B.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from cradle_lib.annotation.load import load_annotations
from cradle_lib.annotation.pairs import pairs
from cradle_lib.annotation.table import Annotations
from cradle_lib.arguments import checked
from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.detection.protocol.parsing import OUTCOMES, Outcome
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.errors import CorpusError
from cradle_lib.record import Record


@checked
def annotator_runs(corpus: Corpus) -> list[Predictions]:
    """Turns the labels of each annotator into a run over the gold labels.

    Args:
        corpus: Dialogues with their gold labels.

    Returns:
        One run for each annotator of the shipped annotations, sorted by name, over the dialogues
        that they labelled; an empty list for another corpus. Adjudicators and the senior are left
        out, because they saw only the undecided cases. Labels outside user turns are ignored.
    """
    try:
        annotations = load_annotations(corpus)
    except CorpusError:
        return []
    own: dict[str, dict[str, tuple[int, ...]]] = {}
    for entry in annotations.entries:
        if entry.role == "annotator":
            own.setdefault(entry.annotator, {})[entry.dialogue] = entry.masks
    return [_run(corpus, f"annotator-{n}", f"Annotator {n}", m) for n, m in sorted(own.items())]


def annotator_pairs(annotations: Annotations) -> tuple[Corpus, list[Predictions]]:
    """Compares the second annotator of each pair with the first, whose labels serve as gold.

    Args:
        annotations: The labels of all annotators; adjudicators and the senior are left out.

    Returns:
        A corpus of the dialogues that two annotators labelled, with the labels of the first one (by
        name) as gold; and a run for each second annotator, sorted by name. If the dialogues have
        gold labels of their own, these are the last run.

    Raises:
        CorpusError: If a dialogue does not have two annotators, or there are none.
    """
    found = pairs(annotations)
    masks_of = {
        name: both for two in found for name, both in zip(two.dialogues, two.masks, strict=True)
    }
    own = annotations.corpus
    labelled = own.subset(
        [p for p, d in enumerate(own) if d.id in masks_of], f"{own.name}, by people"
    )
    corpus = replace(
        labelled, dialogues=tuple(d.relabelled(masks_of[d.id][0].tolist()) for d in labelled)
    )
    given: dict[str, dict[str, Sequence[int]]] = {}
    for two in found:
        theirs = zip(two.dialogues, two.masks, strict=True)
        given.setdefault(two.second, {}).update({d: both[1].tolist() for d, both in theirs})
    runs = [_run(corpus, f"annotator-{n}", f"Annotator {n}", m) for n, m in sorted(given.items())]
    if labelled.gold.any():
        decided = {d.id: [turn.mask for turn in d.turns] for d in labelled.labelled}
        runs.append(_run(corpus, "gold", "Gold", decided))
    return corpus, runs


def _run(corpus: Corpus, model: str, name: str, given: Mapping[str, Sequence[int]]) -> Predictions:
    """Makes a run of labels that are given by dialogue id, one mask for each row."""
    places = [place for place, dialogue in enumerate(corpus) if dialogue.id in given]
    part = corpus.subset(places, f"{corpus.name}[{len(places)}]")
    masks = [given[d.id][turn.turn_id] for d in part for turn in d.user_turns]
    record = Record.create(
        model=model,
        name=name,
        group="people",
        engine="guidelines",
        prompt="guidelines",
        prompt_hash="",
        decoding={},
        corpus=corpus.name,
        corpus_fingerprint=corpus.fingerprint,
        dialogues=[dialogue.id for dialogue in part],
    )
    return Predictions(
        record=record,
        corpus=part,
        masks=np.array(masks, dtype=np.uint16),
        outcomes=np.full(len(masks), OUTCOMES.index(Outcome.OK), dtype=np.uint8),
        answers=("",) * len(masks),
        of_turns=len(corpus.gold),
    )
