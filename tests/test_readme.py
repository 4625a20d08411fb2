"""The README's numbers for the shipped model, recounted from its journals."""

from __future__ import annotations

import re
from collections import Counter

from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.detection.runs.journal import read_journal
from cradle_lib.labels import labels_of


def counted(model: str) -> tuple[int, int, int, int]:
    """Counts answers, unusable answers, predicted labels and true positives of a shipped run."""
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


def test_the_readme_states_the_results_of_the_shipped_model() -> None:
    readme = " ".join((paths.ROOT / "README.md").read_text(encoding="utf-8").split())
    sentence = re.search(
        r"all of its ([\d,]+) unconstrained answers are unparsed; with constrained decoding, "
        r"which allows only valid answers, it predicts ([\d,]+) labels, of which "
        r"([\d,]+) are correct",
        readme,
    )
    assert sentence is not None
    answers, unparsed, _, _ = counted("smollm2-135m")
    _, _, tags, right = counted("smollm2-135m-constrained")
    assert sentence.groups() == (f"{answers:,}", f"{tags:,}", f"{right:,}")
    assert unparsed == answers
    tuned = re.search(r"short texts it predicts ([\d,]+), of which ([\d,]+) are correct", readme)
    assert tuned is not None
    _, unparsed, tags, right = counted("smollm2-135m-tuned-constrained")
    assert (unparsed, *tuned.groups()) == (0, f"{tags:,}", f"{right:,}")
