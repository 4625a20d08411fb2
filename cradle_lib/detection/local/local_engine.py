"""What engines for weights on this machine share: loading them, tokens of prompts and answers."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.engine import Engine, Options
from cradle_lib.detection.local.adapter_tokenizer import tokenizer_in_use
from cradle_lib.detection.local.clock import asks_for_date, render, today
from cradle_lib.detection.local.load import load_tokenizer, load_weights
from cradle_lib.detection.local.snapshot import weights_pin
from cradle_lib.detection.models.model import Decoding, Model
from cradle_lib.detection.parsing import Outcome, is_cut
from cradle_lib.detection.session import Answer, Prompt
from cradle_lib.errors import EngineError
from cradle_lib.labels import NONE

if TYPE_CHECKING:
    import torch

# What a model without a chat template is shown after the prompt, so that it answers.
CONTINUATION: Final = "\nAnswer:\n"
_CONTROL: Final = re.compile(r"<\|[a-z_]+\|>")


@dataclass(frozen=True)
class Local:
    """A loaded model.

    Attributes:
        lm: The causal language model, in evaluation mode.
        tokenizer: Its tokenizer.
        decoding: The settings that shape its answers.
        context: Longest sequence that the model was built for; ``None`` if it does not say.
    """

    lm: Any
    tokenizer: Any
    decoding: Decoding
    context: int | None

    @cached_property
    def ends(self) -> frozenset[int]:
        """Ids that end an answer."""
        ends = self.lm.generation_config.eos_token_id
        return frozenset(ends if isinstance(ends, list) else [ends]) - {None}

    def processors(self) -> Any:
        """What ``generate`` does to logits when greedy: processors, mostly none.

        A repetition penalty is one.
        """
        return self.lm._get_logits_processor(
            generation_config=self.lm.generation_config,
            input_ids_seq_length=0,
            encoder_input_ids=None,
            prefix_allowed_tokens_fn=None,
            logits_processor=[],
        )

    def ids(self, prompts: Sequence[Prompt]) -> list[list[int]]:
        """Turns prompts, one at least, into token ids.

        They go through the model's chat template; for a model that has none, :data:`CONTINUATION`
        follows the text.
        """
        texts = [self._without_special(prompt) for prompt in prompts]
        if self.tokenizer.chat_template:
            chats = [[{"role": "user", "content": text}] for text in texts]
            found = render(
                self.tokenizer,
                chats,
                self.decoding.date,
                add_generation_prompt=True,
                return_dict=True,
                **self.decoding.chat,
            )
        else:
            found = self.tokenizer([text + CONTINUATION for text in texts])
        ids: list[list[int]] = found["input_ids"]
        return ids

    def _without_special(self, prompt: Prompt) -> str:
        """Takes apart what this model's own tokenizer would read as a control token.

        Those of the usual formats a session has taken apart already, in every prompt alike.
        """
        static, said = prompt.text[: prompt.static], prompt.text[prompt.static :]
        return static + self._special.sub(lambda m: f"{m[0][0]} {m[0][1:]}", said)

    @cached_property
    def _special(self) -> re.Pattern[str]:
        tokens = {str(token) for token in self.tokenizer.all_special_tokens}
        added = self.tokenizer.added_tokens_decoder.values()
        tokens |= {str(token) for token in added if token.special}
        # One of a letter or two, such as a line break, can't be taken apart and forges nothing.
        longest_first = sorted((t for t in tokens if len(t.strip()) > 2), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    def encode(self, prompt: Prompt) -> torch.Tensor:
        """Turns a prompt into token ids: int64, shape (1, tokens), where the embedding is."""
        import torch

        device = self.lm.get_input_embeddings().weight.device
        return torch.tensor(self.ids([prompt]), device=device)

    def too_long(self, length: int) -> Answer | None:
        """Answers a prompt that leaves the model's context no room; ``None`` if there is room."""
        if self.context is None or length < self.context:
            return None
        reason = f"the prompt has {length} tokens, the model's context {self.context}"
        return Answer("", Outcome.FAILED, reason, tokens_in=length)

    def generate(self, ids: torch.Tensor, seed: int = 0, **more: Any) -> list[int]:
        """Decodes with Transformers' own ``generate``, and gives the ids after the prompt.

        Greedily, or sampled from the whole distribution where the settings have a temperature
        above 0. The prompt has shape (1, tokens); a cache may be among ``more``.
        """
        import torch

        sampled = bool(self.decoding.temperature)
        with torch.inference_mode(), torch.random.fork_rng(enabled=sampled):
            if sampled:
                torch.manual_seed(seed)
            output = self.lm.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=self.decoding.max_new_tokens,
                pad_token_id=self.tokenizer.pad_token_id or self.tokenizer.eos_token_id,
                do_sample=sampled,
                temperature=self.decoding.temperature or None,
                # What a model brings along to cut the distribution is not in the record, and void.
                top_p=1.0 if sampled else None,
                top_k=0 if sampled else None,
                **more,
            )
        generated: list[int] = output[0, ids.shape[1] :].tolist()
        return generated

    def answer(self, ids: list[int], *, ended: bool, tokens_in: int, tokens_cached: int) -> Answer:
        """Turns the ids after a prompt into an answer.

        If the model did not end by itself and the answer could still have become readable, or if
        the final channel is missing, it is unparsed and has the reason.
        """
        marker = self.decoding.answer_after
        text = str(self.tokenizer.decode(ids, skip_special_tokens=marker is None))
        reason = None
        if marker is not None:
            head, found, tail = text.rpartition(marker)
            text = _CONTROL.sub("", tail) if found else head + tail
            if not found:
                reason = f"no {marker} in the answer"
        if not ended and is_cut(text):
            reason = f"cut at {self.decoding.max_new_tokens} tokens"
        return Answer(
            text=text,
            outcome=None if reason is None else Outcome.UNPARSED,
            reason=reason,
            tokens_in=tokens_in,
            tokens_cached=tokens_cached,
            tokens_out=len(ids),
        )


class LocalEngine(Engine):
    """Runs a causal language model of Transformers.

    Weights are loaded when the first question comes, so that a finished run needs none.

    Args:
        model: An entry of the registry.
        options: How this machine runs it.
        local: The model, if it has been loaded already.

    Raises:
        EngineError: If PyTorch or Transformers is not installed.
    """

    kind = "local"
    needs_weights = True

    @classmethod
    def create(cls, model: Model, corpus: Corpus, options: Options) -> Self:
        """Makes the engine, for the weights as they are now."""
        engine = cls(model, options)
        engine.revision = weights_pin(model)
        return engine

    def __init__(self, model: Model, options: Options, local: Local | None = None) -> None:
        require_packages("torch", "transformers", extra="local", model=model)
        wait_passively()
        self._model, self._options, self._loaded = model, options, local
        self.tokenizer = tokenizer_in_use(model)

    def asks_for_date(self) -> bool:
        """Whether the chat template prints the date; loads the tokenizer to find out."""
        tokenizer = self._loaded.tokenizer if self._loaded else load_tokenizer(self._model)
        return asks_for_date(tokenizer, (self._model.decoding or Decoding()).chat)

    @cached_property
    def _local(self) -> Local:
        local = self._loaded or load_local(self._model, self._options)
        if self.date is None:
            return local
        return replace(local, decoding=local.decoding.model_copy(update={"date": self.date}))


def require_packages(*names: str, extra: str, model: Model) -> None:
    """Checks that packages are installed, without importing them.

    Raises:
        EngineError: If one is missing; the message says what to install.
    """
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise EngineError(
                f"{model.name} needs the package {name}, which is not installed. "
                f"Install it with `{paths.install_command(extra)}`."
            )


def wait_passively() -> None:
    """Lets PyTorch's threads sleep while they wait for each other.

    PyTorch divides each operation among its threads and waits for the last of them, hundreds of
    times in a forward pass. By default OpenMP waits in a loop that keeps the core busy. On a
    machine with other busy processes, that loop takes the core which the last thread needs: six
    to ten times fewer passes were counted on two cores.

    Must be called before PyTorch is imported; later it has no effect. A user's own setting of
    ``OMP_WAIT_POLICY`` is kept.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def load_local(model: Model, options: Options) -> Local:
    """Loads a model, its tokenizer and the settings of its answers.

    If its chat template prints a date and the settings have none, it is today's.

    Raises:
        EngineError: As :func:`.load_weights`.
    """
    if model.adapter is not None:
        require_packages("peft", extra="local", model=model)
    decoding = model.decoding or Decoding()
    lm, tokenizer = load_weights(model, options)
    if decoding.date is None and asks_for_date(tokenizer, decoding.chat):
        decoding = decoding.model_copy(update={"date": today()})
    if decoding.none_bias:
        first = tokenizer(NONE, add_special_tokens=False)["input_ids"][0]
        lm.generation_config.sequence_bias = [[[first], decoding.none_bias]]
    if not tokenizer.chat_template:
        options.notice(
            f"{model.name} has no chat template: it is shown the plain prompt and, after it, "
            f"{CONTINUATION.strip()!r}."
        )
    context = getattr(lm.config.get_text_config(), "max_position_embeddings", None)
    return Local(lm, tokenizer, decoding, context)
