"""Base of the engines for local weights: loads models, tokenizes prompts, decodes answers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

from cradle_engines.local.adapter import tokenizer_in_use
from cradle_engines.local.chat import Chat, asks_for_date
from cradle_engines.local.generation import checkpoint_settings, inherited_settings, listed
from cradle_engines.local.load import load_generation_config, load_tokenizer, load_weights
from cradle_engines.local.revision import find_adapter, known_pin, weights_pin
from cradle_lib.corpus import Corpus
from cradle_lib.detection.models.dates import today
from cradle_lib.detection.models.engine import Engine, Options, require_packages
from cradle_lib.detection.models.model import Decoding, Model
from cradle_lib.detection.protocol.parsing import Outcome, is_cut
from cradle_lib.detection.protocol.session import Answer, Prompt
from cradle_lib.detection.protocol.thoughts import is_open
from cradle_lib.labels import NONE

if TYPE_CHECKING:
    import torch

# Appended to the prompt of a model without a chat template.
CONTINUATION: Final = "\nAnswer:\n"


@dataclass(frozen=True)
class Local:
    """A loaded model.

    Attributes:
        name: Name of the model, for messages.
        lm: The causal language model, in evaluation mode.
        tokenizer: Its tokenizer.
        decoding: Its decoding settings.
        shipped: The generation settings of its checkpoint, a ``GenerationConfig``.
    """

    name: str
    lm: Any
    tokenizer: Any
    decoding: Decoding
    shipped: Any

    @property
    def device(self) -> torch.device:
        """Device of the token ids."""
        from cradle_engines.local.devices import input_device

        return input_device(self.lm)

    @cached_property
    def context(self) -> int | None:
        """Maximum length of a sequence in tokens; ``None`` if the configuration has none.

        It is a hard limit for learned positions, and otherwise the length in training.
        """
        return getattr(self.lm.config.get_text_config(), "max_position_embeddings", None)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The sampling settings, from the entry or from the checkpoint.

        Raises:
            EngineError: If the entry uses the checkpoint's settings, and one is not supported.
        """
        temperature = self.decoding.temperature
        if self.decoding.from_checkpoint:
            return inherited_settings(self.shipped, str(self.lm.name_or_path), temperature)
        return {} if temperature is None else {"temperature": temperature}

    @cached_property
    def none_token(self) -> int:
        """First token of the answer ``none``, to which ``none_bias`` is added."""
        return int(self.tokenizer(NONE, add_special_tokens=False)["input_ids"][0])

    @property
    def sampled(self) -> bool:
        """Whether tokens are sampled; otherwise decoding is greedy."""
        return bool(self.settings.get("temperature"))

    @cached_property
    def chat(self) -> Chat:
        """The special tokens and the chat template."""
        return Chat(self.tokenizer, self.decoding.chat, self.decoding.date)

    @cached_property
    def ends(self) -> frozenset[int]:
        """Ids that end an answer."""
        return self.chat.ends(self.lm, self.shipped)

    @cached_property
    def may_become_readable(self) -> bool:
        """Whether further text can make an unparsed answer readable."""
        return self.decoding.answer_after is not None or self.chat.may_think

    def ids(self, prompts: Sequence[Prompt]) -> list[list[int]]:
        """Converts prompts, at least one, to token ids.

        The model's chat template is applied; without one, :data:`CONTINUATION` is appended. Text
        that the model's tokenizer would read as a special token is broken up, except in the static
        part of the prompt.
        """
        texts = []
        for prompt in prompts:
            static, rest = prompt.text[: prompt.static], prompt.text[prompt.static :]
            # Sessions break up the control tokens of common formats in the prompts of all models.
            rest = self.chat.special.sub(lambda token: f"{token[0][0]} {token[0][1:]}", rest)
            texts.append(static + rest)
        if self.tokenizer.chat_template:
            chats = [self.chat.messages(text) for text in texts]
            found = self.chat.render(chats, add_generation_prompt=True, return_dict=True)
        else:
            found = self.tokenizer([text + CONTINUATION for text in texts])
            for each in found["input_ids"]:
                # Some tokenizers were saved to append the end token, as in training.
                while each[-1] in self.ends:
                    each.pop()
        ids: list[list[int]] = found["input_ids"]
        return ids

    def too_long(self, length: int, answer: int) -> Answer | None:
        """Fails a question if its prompt and the longest answer don't fit into the context.

        Args:
            length: Tokens of the prompt.
            answer: Maximum number of tokens of the answer. The last one is never an input, so that
                it needs no position.

        Returns:
            The failed answer; ``None`` if the question fits.
        """
        if self.context is None or length + answer - 1 <= self.context:
            return None
        reason = (
            f"the prompt has {length} tokens, its answer up to {answer}, and the model's context "
            f"{self.context}"
        )
        return Answer("", Outcome.FAILED, reason, tokens_in=length)

    def not_finite(self, what: str) -> FloatingPointError:
        """Makes the error for numbers that overflowed in the model's ``dtype``.

        Args:
            what: The numbers, such as ``logits``.
        """
        dtype = str(self.lm.dtype).removeprefix("torch.")
        advice = "" if dtype == "float32" else "; set another `dtype`, such as float32"
        return FloatingPointError(f"the {what} are NaN or infinite in {dtype}{advice}")

    def generate(self, ids: Sequence[int], seed: int = 0, **more: Any) -> list[int]:
        """Decodes with Transformers' own ``generate``, and gives the ids after the prompt.

        Decoding is greedy, or sampled if the settings have a temperature above 0. ``more`` are
        further arguments, such as a cache.

        Raises:
            FloatingPointError: If the logits after a forward pass are NaN or infinite.
        """
        import torch
        from transformers import GenerationConfig

        def require_finite(_: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
            if not logits.isfinite().all():
                raise self.not_finite("logits")
            return logits

        settings = {"top_k": 0} | self.settings if self.sampled else dict(self.settings)
        if not self.sampled:
            settings.pop("temperature", None)
        if self.decoding.none_bias:
            settings["sequence_bias"] = [[[self.none_token], self.decoding.none_bias]]
        config = GenerationConfig(
            **settings,
            do_sample=self.sampled,
            max_new_tokens=self.decoding.max_new_tokens,
            eos_token_id=sorted(self.ends) or None,
            # Transformers requires an id, although a single answer is never padded.
            pad_token_id=min(self.ends, default=None),
        )
        prompt = torch.tensor([ids], device=self.device)
        with torch.inference_mode(), torch.random.fork_rng(enabled=self.sampled):
            if self.sampled:
                torch.manual_seed(seed)
            output = self.lm.generate(
                input_ids=prompt,
                attention_mask=torch.ones_like(prompt),
                generation_config=config,
                logits_processor=[require_finite],
                **more,
            )
        generated: list[int] = output[0, len(ids) :].tolist()
        return generated

    def answer(self, ids: list[int], *, ended: bool, tokens_in: int, tokens_cached: int) -> Answer:
        """Converts the ids after a prompt to an answer.

        End tokens and special tokens are removed, except markers of thoughts. The answer is
        unparsed, with a reason, if it was cut and could still have become readable, if a thought
        that the chat template opened is not closed, or if the marker ``answer_after`` is missing.
        """
        marker = self.decoding.answer_after
        last = len(ids)
        while last and ids[last - 1] in self.ends:
            last -= 1
        raw = str(self.tokenizer.decode(ids[:last]))
        text, reason = self.chat.without_special(raw), None
        opened = self.chat.opened
        if marker is not None and marker in raw:
            text, opened = self.chat.without_special(raw.rpartition(marker)[2]), ""
        elif marker is not None:
            # Special tokens stay: they show what the model wrote instead.
            text = str(self.tokenizer.decode(ids))
            reason = f"no {marker} in the answer"
        if opened and is_open(opened + text):
            reason = reason or f"the thought that the prompt opened ({opened}) is not closed"
        if not ended and (self.chat.may_think or is_cut(opened + text)):
            reason = f"cut at {self.decoding.max_new_tokens} tokens"
        return Answer(
            text=text,
            outcome=None if reason is None else Outcome.UNPARSED,
            reason=reason,
            tokens_in=tokens_in,
            tokens_cached=tokens_cached,
            tokens_out=len(ids),
            ending=None if ended or len(ids) < self.decoding.max_new_tokens else "cut",
        )


def load_local(model: Model, options: Options) -> Local:
    """Loads a model, its tokenizer and its decoding settings.

    If its chat template prints a date and the settings have none, today's date is set. Thinking is
    switched off as :attr:`.Decoding.chat` describes.

    Raises:
        EngineError: As :func:`.load_weights`.
    """
    from transformers import GenerationConfig

    if model.adapter is not None:
        require_packages("peft", extra="local", model=model)
    decoding = model.decoding or Decoding()
    lm, tokenizer = load_weights(model, options)
    if decoding.date is None and asks_for_date(tokenizer):
        decoding = decoding.model_copy(update={"date": today()})
    if switches := _added_switches(tokenizer, decoding):
        decoding = decoding.model_copy(update={"chat": decoding.chat | switches})
    if not tokenizer.chat_template:
        options.notice(
            f"{model.name} has no chat template: it is shown the plain prompt followed by "
            f"{CONTINUATION.strip()!r}."
        )
    # Otherwise `generate` would also apply the checkpoint's own settings.
    shipped, lm.generation_config = lm.generation_config, GenerationConfig()
    return Local(model.name, lm, tokenizer, decoding, shipped)


def _added_switches(tokenizer: Any, decoding: Decoding) -> dict[str, bool]:
    """Finds the switch that turns off thoughts, if answers have no room for them."""
    if decoding.leaves_room_to_think:
        return {}
    return Chat(tokenizer, decoding.chat, decoding.date).thinking_off


class LocalEngine(Engine):
    """Runs a causal language model of Transformers.

    Weights are loaded at the first question, so that a finished run needs none.

    Args:
        model: An entry of the registry.
        options: Execution settings.
        local: The model, if it is already loaded.

    Raises:
        EngineError: If PyTorch or Transformers is not installed, or the adapter is missing or
            damaged.
    """

    kind = "local"
    needs_weights = True
    adds_switches = True

    @classmethod
    def create(cls, model: Model, corpus: Corpus, options: Options) -> Self:
        """Makes the engine, and sets its revision to the current pin of the weights."""
        engine = cls(model, options)
        engine.revision = weights_pin(model)
        return engine

    @classmethod
    def pin(cls, model: Model, corpus: Corpus) -> str:
        """Finds the pin of the weights, with ``*`` for a part that would need the network."""
        return known_pin(model)

    def __init__(self, model: Model, options: Options, local: Local | None = None) -> None:
        require_packages("torch", "transformers", extra="local", model=model)
        wait_passively()
        self._model, self._options, self._loaded = model, options, local
        self._decoding = model.decoding or Decoding()
        adapter = find_adapter(model)
        self.tokenizer = None if adapter is None else tokenizer_in_use(adapter)

    def checkpoint_decoding(self) -> dict[str, Any]:
        """Finds the checkpoint's own decoding settings, if the entry uses them.

        Raises:
            EngineError: If they can't be read, or one is not supported.
        """
        if not self._decoding.from_checkpoint:
            return {}
        config = load_generation_config(self._model)
        return inherited_settings(config, self._model.name, self._decoding.temperature)

    def asks_for_date(self) -> bool:
        """Whether the chat template can print the date; loads the tokenizer to find out."""
        return asks_for_date(self._tokenizer)

    def added_switches(self) -> dict[str, bool]:
        """Finds the switch that turns off thinking; loads the tokenizer to find out."""
        found = _added_switches(self._tokenizer, self._decoding)
        if found:
            self._options.notice(
                f"{self._model.name}: its answers have no room for thoughts, so thinking is "
                f"switched off ({next(iter(found))}=false). `chat` in `decoding` sets it otherwise."
            )
        return found

    @cached_property
    def _tokenizer(self) -> Any:
        return self._loaded.tokenizer if self._loaded else load_tokenizer(self._model)

    @cached_property
    def _local(self) -> Local:
        local = self._loaded
        if local is None:
            local = load_local(self._model, self._options)
            left = checkpoint_settings(local.shipped)
            if left and not self._decoding.from_checkpoint:
                self._options.notice(
                    f"{self._model.name}: generation settings of its checkpoint are not used: "
                    f"{listed(left)}. `from_checkpoint: true` in `decoding` applies the supported "
                    "ones."
                )
        recorded = {"date": self.date, "chat": self.chat}
        changes = {name: value for name, value in recorded.items() if value is not None}
        return replace(local, decoding=local.decoding.model_copy(update=changes))


def shared_length(one: Sequence[int], other: Sequence[int]) -> int:
    """Gives the length of the common prefix of two sequences of ids."""
    differences = (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differences, min(len(one), len(other)))


def wait_passively() -> None:
    """Lets PyTorch's threads sleep while they wait for each other.

    PyTorch divides each operation among its threads and waits for the last of them, hundreds of
    times in a forward pass. By default OpenMP waits in a loop that keeps the core busy. On a
    machine with other busy processes, that loop takes the core that the last thread needs: with
    two cores, six to ten times fewer passes were measured.

    Must be called before PyTorch is imported; later it has no effect. A user's own setting of
    ``OMP_WAIT_POLICY`` is kept.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
