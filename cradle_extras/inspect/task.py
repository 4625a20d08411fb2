"""The benchmark as a task of Inspect: ``inspect eval cradle_extras/cradle_dialogue --model ...``.

A sample is a dialogue. The solver asks the model about one user turn after the other, and stores a
journal line for each answer. From these lines the metrics compute the scores of ``cradle score``.
Inspect finds the task through an entry point.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any, Final

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    get_model,
)
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from cradle_engines.api.replies import completed_answer, one_line
from cradle_extras.inspect.log import ANSWERS, overall_scores, read_answers, transcript
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection.protocol.parsing import Outcome
from cradle_lib.detection.protocol.session import Answer, Session
from cradle_lib.detection.runs.journal import to_line
from cradle_lib.detection.runs.predictions import aligned
from cradle_lib.labels import UNUSABLE, format_mask
from cradle_lib.prompts import load_template
from cradle_lib.record import History, Record

# The paper's limit for an answer.
_MOST_TOKENS: Final = 512
_CUT: Final = "cut at its limit of tokens"
_ENDINGS: Final = {"stop": None, "content_filter": None, "max_tokens": _CUT, "model_length": _CUT}
_corpus = cache(load_corpus)


@task
def cradle_dialogue(
    corpus: str = "surrogate", split: str = "test", history: History = "self", prompt: str = "turn"
) -> Task:
    """Crisis detection, turn by turn.

    Args:
        corpus: ``surrogate``, ``hub``, or the path of a file in the release's format.
        split: ``train``, ``dev`` or ``test``, for a corpus by name.
        history: Whose tags the history shows: ``self`` (the paper's), ``gold`` or ``none``.
        prompt: Name of the prompt template.

    Returns:
        The task, with one sample for each dialogue.

    Raises:
        CradleError: If the corpus or the template does not exist.
    """
    loaded, template = _corpus(corpus, split), load_template(prompt)
    protocol = {"corpus": corpus, "split": split, "history": history, "prompt": prompt}
    samples = [
        Sample(
            id=dialogue.id,
            input=transcript(dialogue.turns),
            target=[format_mask(turn.mask) for turn in dialogue.user_turns if dialogue.labelled],
            metadata=protocol,
        )
        for dialogue in loaded
    ]
    return Task(
        dataset=MemoryDataset(samples, name=loaded.name),
        solver=turn_by_turn(),
        scorer=labels(),
        config=GenerateConfig(temperature=0.0, max_tokens=_MOST_TOKENS),
        metadata={
            **protocol,
            "prompt_hash": template.hash,
            "corpus_name": loaded.name,
            "corpus_fingerprint": loaded.fingerprint,
        },
    )


@solver
def turn_by_turn() -> Solver:
    """Asks about one user turn after the other, with the tags of the chosen history."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        protocol = state.metadata
        loaded = _corpus(protocol["corpus"], protocol["split"])
        dialogue = next(one for one in loaded if one.id == state.sample_id)
        session = Session(dialogue, load_template(protocol["prompt"]), protocol["history"])
        lines: list[dict[str, Any]] = []
        state.messages = []
        while (prompt := session.prompt) is not None:
            state.output = await get_model().generate([ChatMessageUser(content=prompt.text)])
            lines.append(to_line(session.answer(answer_of(state.output))))
            state.store.set(ANSWERS, lines)
            # The event of the call has the full prompt; the messages show the dialogue.
            state.messages += [
                ChatMessageUser(content=prompt.current),
                ChatMessageAssistant(content=state.output.completion),
            ]
        return state

    return solve


def answer_of(output: ModelOutput) -> Answer:
    """Reads a provider's reply; an answer counts as failed unless it is known to be complete."""
    counts: dict[str, int | None] = {}
    if (usage := output.usage) is not None:
        read, written = usage.input_tokens_cache_read or 0, usage.input_tokens_cache_write or 0
        counts = {
            "tokens_in": usage.input_tokens + read + written,
            "tokens_cached": read,
            "tokens_written": written,
            "tokens_out": usage.output_tokens,
        }
    text, ended = output.completion, output.stop_reason if output.choices else None
    if output.error:
        problem = f"the model's provider reports an error: {one_line(output.error)}"
        return Answer("", Outcome.FAILED, problem, seconds=output.time or 0.0)
    declined = "content filter" if ended == "content_filter" else None
    answer = completed_answer(
        text, "stop_reason", ended, _ENDINGS, declined=declined, served=output.model, **counts
    )
    return replace(answer, seconds=output.time or 0.0)


def benchmark_scores(scores: list[SampleScore]) -> dict[str, float]:
    """Scores all dialogues of an evaluation, as ``cradle score`` does.

    The result is empty if no dialogue was answered completely.
    """
    found = [score.score.metadata or {} for score in scores]
    if not found:
        return {}
    first = found[0]
    corpus: Corpus = _corpus(first["corpus"], first["split"])
    template = load_template(first["prompt"])
    record = Record.create(
        model="inspect",
        name="inspect",
        group="inspect",
        engine="inspect",
        prompt=template.name,
        prompt_hash=template.hash,
        decoding={},
        history=first["history"],
        corpus=corpus.name,
        corpus_fingerprint=corpus.fingerprint,
    )
    answers = [line for each in found for line in read_answers(each[ANSWERS], record, corpus.name)]
    run = aligned(record, answers, corpus)
    return overall_scores(run) if len(run.corpus) else {}


@metric
def benchmark() -> Metric:
    """The benchmark's overall scores at its three levels, such as ``turn_micro_f1``."""
    return benchmark_scores


@scorer(metrics=[benchmark()])
def labels() -> Scorer:
    """Gives a dialogue's share of turns with exactly the gold labels, and its answers.

    The share is NaN for a dialogue without gold labels.
    """

    async def score(state: TaskState, target: Target) -> Score:
        lines = state.store.get(ANSWERS, [])
        # An unusable answer is never correct, even on a turn without gold labels.
        predicted = [line["labels"] if line["outcome"] == "ok" else UNUSABLE for line in lines]
        right = sum(a == b for a, b in zip(predicted, target, strict=False))
        return Score(
            value=right / len(target) if len(target) else math.nan,
            answer=" | ".join(predicted),
            metadata={ANSWERS: lines, **state.metadata},
        )

    return score
