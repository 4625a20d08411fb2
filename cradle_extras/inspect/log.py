"""Exports a journal as a log that ``inspect view`` opens."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from inspect_ai import log as logs
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput
from inspect_ai.scorer import Score

from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.detection.protocol.session import Prediction
from cradle_lib.detection.runs.journal import journal_files, parse_lines, to_bytes
from cradle_lib.detection.runs.predictions import (
    Predictions,
    load_predictions,
    require_finished,
)
from cradle_lib.errors import CradleError
from cradle_lib.files import replacing
from cradle_lib.record import Record
from cradle_lib.scoring.conventions import LEVELS
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.scores import OVERALL

if TYPE_CHECKING:
    import pandas as pd

TASK: Final = "cradle_dialogue"
#: Key of a dialogue's journal lines in the store and score of a sample that Inspect has run.
ANSWERS: Final = "cradle_answers"


def export_log(journal: Path, corpus: Corpus, path: Path) -> int:
    """Writes a run as a log of Inspect, ``.eval`` or ``.json``, with one sample for each dialogue.

    The log contains the text of all dialogues of the run, except those without user turns, about
    which no model was asked. If the journal does not exist, its shards are used.

    Returns:
        The number of dialogues in the log.

    Raises:
        CradleError: If the run is not finished or does not fit the corpus, or the log exists or
            can't be written.
    """
    if path.exists():
        raise CradleError(
            "already exists", path=path, hint="Move it away, or name another log with --out."
        )
    run = load_predictions(journal_files(journal), corpus, partial=True)
    require_finished(run)
    record = run.record
    rows = run.to_frame().groupby("dialogue", sort=False)
    samples = [
        _sample(dialogue, rows.get_group(dialogue.id), record)
        for dialogue in run.corpus
        if dialogue.user_turns
    ]
    metrics = {
        name: logs.EvalMetric(name=name, value=value) for name, value in overall_scores(run).items()
    }
    ids = [sample.id for sample in samples]
    content = logs.EvalLog(
        status="success",
        eval=logs.EvalSpec(
            created=record.started,
            task=TASK,
            task_registry_name=f"cradle_extras/{TASK}",
            dataset=logs.EvalDataset(name=corpus.name, samples=len(samples), sample_ids=ids),
            model=f"{record.engine}/{record.model}",
            config=logs.EvalConfig(),
            packages=record.packages,
            metadata={"cradle_record": record.model_dump()},
        ),
        results=logs.EvalResults(
            total_samples=len(samples),
            completed_samples=len(samples),
            scores=[logs.EvalScore(name="labels", scorer="labels", metrics=metrics)],
        ),
        samples=samples,
    )
    with replacing(path) as part:
        logs.write_eval_log(content, part, "json" if path.suffix == ".json" else "eval")
    return len(samples)


def overall_scores(run: Predictions) -> dict[str, float]:
    """Maps ``LEVEL_SCORE`` to each overall score at each level; undefined scores are NaN."""
    results = {level: evaluate(run, level=level, draws=0) for level in LEVELS}
    return {
        f"{level}_{name}": float(result.estimate(name).value)
        for level, result in results.items()
        for name in OVERALL
    }


def read_answers(lines: Iterable[Any], record: Record, place: str) -> list[Prediction]:
    """Reads the journal lines in a log with the checks of a journal.

    Raises:
        JournalError: If a line is damaged or was edited; the message names the ``place``.
    """
    written = [to_bytes(record), *(json.dumps(line).encode() for line in lines)]
    return parse_lines(written, Path(place))[1]


def transcript(turns: Iterable[Turn]) -> str:
    """Formats turns for display in Inspect, one per line."""
    return "\n".join(f"{turn.speaker}: {turn.text}" for turn in turns)


def _sample(dialogue: Dialogue, rows: pd.DataFrame, record: Record) -> logs.EvalSample:
    """Makes a sample of a dialogue and the rows of its user turns."""
    messages: list[Any] = []
    ends = rows["turn"] + 1
    for start, end, answer in zip([0, *ends], ends, rows["answer"], strict=False):
        messages.append(ChatMessageUser(content=transcript(dialogue.turns[start:end])))
        messages.append(ChatMessageAssistant(content=answer))
    # An unusable answer is never correct, even on a turn without gold labels.
    right = float((rows["gold"] == rows["predicted"]).where(rows["gold"].notna()).mean())
    return logs.EvalSample(
        id=dialogue.id,
        epoch=1,
        input=transcript(dialogue.turns),
        target=list(rows["gold"].dropna()),
        messages=messages,
        output=ModelOutput.from_content(record.model, messages[-1].content),
        scores={"labels": Score(value=right, answer=" | ".join(rows["predicted"]))},
    )
