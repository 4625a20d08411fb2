"""Runs the validators over a corpus or over a writer's attempts, and counts their findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import pandas as pd

from cradle_extras.construction.assemble import Construction
from cradle_extras.construction.plan import TIMINGS, Event, Kind, Plan, Step
from cradle_extras.construction.validators.checks import VALIDATORS, Finding, check_draft
from cradle_extras.construction.validators.draft import draft_of, read_draft, texts_of
from cradle_extras.construction.validators.duplicates import NAME, near_duplicates, words_of
from cradle_extras.construction.validators.rules import Case
from cradle_lib.arguments import checked
from cradle_lib.corpus import Corpus
from cradle_lib.labels import labels_of, stage

# Turns with fewer words are not compared, because short turns are often equal by chance.
_MIN_WORDS: Final = 5
_Judged = tuple[str, Case, Sequence[Finding]]


@checked
def check_dialogues(
    corpus: Corpus, kind: Kind = "training", *, against: Iterable[Corpus] = ()
) -> pd.DataFrame:
    """Runs the validators over a corpus.

    A dialogue's labels count as planned, and so does its ``timing``, if the corpus has that column.

    Args:
        corpus: The corpus.
        kind: Kind of its dialogues: ``annotated`` or ``training``.
        against: Corpora to search for near-duplicates of its dialogues.

    Returns:
        One row for each validator.

        - ``validator``, ``section`` (str): its name, and the section of the paper with the rule.
        - ``severity`` (str): ``reject`` or ``flag``.
        - ``dialogues`` (int): number of dialogues to which it applies.
        - ``found`` (int): number of these in which it found something.
        - ``share`` (float): ``found`` / ``dialogues``; NaN if it applies to none.

        ``attrs["findings"]`` is a list with a record for each finding: ``dialogue``,
        ``validator``, ``severity``, ``words`` (str).
    """
    judged: list[_Judged] = []
    for place, dialogue in enumerate(corpus):
        case = Case(draft_of(dialogue), kind, _own_plan(corpus, place, kind), None)
        judged.append((dialogue.id, case, check_draft(case)))
    texts = [(name, case.draft.text) for name, case, _ in judged]
    return _summary(judged, near_duplicates([*texts_of(against), *texts]))


@checked
def contamination(train: Corpus, test: Corpus) -> pd.DataFrame:
    """Counts the dialogues and turns of a test split that also occur in the train split.

    Args:
        train: The split that a model is trained on.
        test: The split that it is tested on.

    Returns:
        Three rows: dialogues of the test split, found if train has a near-duplicate; its user
        turns, found if a user turn of train has the same words in the same order; and its user
        turns with a label. Turns of fewer than five words are left out.

        - ``what`` (str): the unit; ``number`` (int): its number in the test split.
        - ``found`` (int): number of them found in train; ``value`` (float): their share, NaN if
          there are none.
    """
    # The prefixes distinguish the splits even if both corpora have the same name.
    sides = {"train": train, "test": test}
    texts = [(f"{side} {d.id}", draft_of(d).text) for side, corpus in sides.items() for d in corpus]
    pairs = ((name, earlier) for name, earlier, _ in near_duplicates(texts))
    copies = sum(name.startswith("test") and earlier.startswith("train") for name, earlier in pairs)
    known = {words for words, _ in _user_words(train)}
    said = [(words in known, mask) for words, mask in _user_words(test)]
    labelled = [found for found, mask in said if mask]
    rows = [
        ("dialogues", len(test), copies),
        ("user turns", len(said), sum(found for found, _ in said)),
        ("user turns with a label", len(labelled), sum(labelled)),
    ]
    frame = pd.DataFrame(rows, columns=["what", "number", "found"])
    return frame.assign(value=frame["found"] / frame["number"].where(frame["number"] > 0))


def _user_words(corpus: Corpus) -> Iterable[tuple[tuple[str, ...], int]]:
    for dialogue in corpus:
        for turn in dialogue.user_turns:
            words = words_of(dialogue.utterance(turn))
            if len(words) >= _MIN_WORDS:
                yield tuple(words), turn.mask


@checked
def check_attempts(made: Construction) -> pd.DataFrame:
    """Runs the validators on the first attempt at every plan, to evaluate its writer.

    Args:
        made: The outcome of a construction.

    Returns:
        As :func:`check_dialogues`, without plans that have no attempt.
    """
    judged: list[_Judged] = []
    for outcome in made.outcomes:
        if outcome.attempts:
            text, found = outcome.attempts[0]
            post = made.posts.by_id.get(outcome.plan.post)
            case = Case(read_draft(text), outcome.plan.kind, outcome.plan, post)
            judged.append((outcome.plan.dialogue, case, found))
    # Attempts without dialogue lines are all equal, and already have a finding.
    written = [(name, case.draft.text) for name, case, _ in judged if case.draft.lines]
    return _summary(judged, near_duplicates(written))


def _summary(
    judged: Sequence[_Judged], duplicates: Iterable[tuple[str, str, float]]
) -> pd.DataFrame:
    mine = {name for name, _, found in judged if all(f.validator != NAME for f in found)}
    copies = [(name, earlier) for name, earlier, _ in duplicates if name in mine]
    findings = [
        (name, f.validator, f.severity, f.words) for name, _, found in judged for f in found
    ]
    findings += [(name, NAME, "reject", f"It nearly equals {earlier}.") for name, earlier in copies]
    frame = pd.DataFrame(findings, columns=["dialogue", "validator", "severity", "words"])
    found_in = frame.groupby("validator")["dialogue"].nunique()
    applied = {v.name: sum(v.applies(case) for _, case, _ in judged) for v in VALIDATORS}
    rows = [(v.name, v.section, v.severity, applied[v.name]) for v in VALIDATORS]
    rows.append((NAME, "4.2", "reject", len(judged)))
    table = pd.DataFrame(rows, columns=["validator", "section", "severity", "dialogues"])
    table["found"] = table["validator"].map(found_in).fillna(0).astype(int)
    table["share"] = table["found"] / table["dialogues"].where(table["dialogues"] > 0)
    # Plain records, because frames with frames in their attributes can't be joined.
    table.attrs["findings"] = frame.to_dict("records")
    return table


def _own_plan(corpus: Corpus, place: int, kind: Kind) -> Plan | None:
    """Makes a plan from a dialogue's labels and timing; ``None`` if it has no timing."""
    timings = corpus.meta.get("timing")
    timing = next((t for t in TIMINGS if timings and timings[place] == t), None)
    if timing is None:
        return None
    scenarios, dialogue = corpus.meta.get("scenario"), corpus.dialogues[place]
    steps = tuple(Step(stage(label), (Event.of(label),)) for label in labels_of(dialogue.mask))
    scenario = scenarios[place] if scenarios else ""
    return Plan(dialogue.id, kind, scenario, timing, "", steps, tuple(range(len(steps))))
