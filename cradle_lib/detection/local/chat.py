"""What a tokenizer and its chat template write around a question, and around the answer to it."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cached_property
from typing import Any, Final

from cradle_lib.detection.local.clock import render, today
from cradle_lib.detection.thoughts import is_open, markers, open_marker
from cradle_lib.errors import EngineError
from cradle_lib.labels import LABELS, NONE

# What stands for a question and an answer, to find what the template writes after them.
_QUESTION: Final = "QUESTION"
_ANSWER: Final = "ANSWER"


class Chat:
    """The tokens and the chat template of a model.

    Args:
        tokenizer: The model's tokenizer.
        switches: Switches of the template, such as ``enable_thinking``.
        day: The date that the template prints, if it prints one.
    """

    def __init__(self, tokenizer: Any, switches: dict[str, Any], day: str | None = None) -> None:
        self._tokenizer, self._switches, self._day = tokenizer, switches, day

    @cached_property
    def special(self) -> re.Pattern[str]:
        """Matches the tokenizer's special tokens in a text."""
        texts = set(_special_tokens(self._tokenizer).values())
        # One of a letter or two, such as a line break, can't be taken apart and forges nothing.
        # Labels that were added as special tokens are what is asked for.
        texts = {text for text in texts if len(text.strip()) > 2} - {NONE, *LABELS}
        longest_first = sorted(texts, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    def without_special(self, text: str) -> str:
        """Takes special tokens out of an answer, except those in markers of thoughts."""
        spans = [(marker.start, marker.end) for marker in markers(text)]

        def kept(token: re.Match[str]) -> str:
            marks = any(start <= token.start() and token.end() <= end for start, end in spans)
            return token[0] if marks else ""

        return self.special.sub(kept, text)

    @cached_property
    def opened(self) -> str:
        """The marker of the thought in which a prompt ends; empty if it ends outside of one."""
        return open_marker(self._after_question) or ""

    def require_no_open_thought(self, purpose: str) -> None:
        """Checks that an answer may begin right after the prompt.

        Raises:
            EngineError: If the template opens a thought there.
        """
        if self.opened:
            raise EngineError(
                f"{purpose} puts labels right after the prompt, and there the chat template has "
                f"opened a thought ({self.opened}), in which no label counts. Turn it off under "
                "`chat` (in many templates `enable_thinking: false`), or use a template without it."
            )

    @cached_property
    def may_think(self) -> bool:
        """Whether an answer may contain a thought, also one whose beginning has no marker.

        It may if the chat template or the vocabulary has markers of thoughts, unless the template
        has opened and closed an empty thought before the answer.
        """
        framed = self._after_question
        if any(markers(framed)):
            return is_open(framed)
        template = str(self._tokenizer.chat_template or "")
        texts = (template, *_known_tokens(self._tokenizer).values())
        return any(any(markers(text)) for text in texts)

    def ends(self, lm: Any) -> frozenset[int]:
        """Finds all tokens that end an answer, whichever part of a checkpoint names them.

        These are the end tokens of the generation configuration, of the model's configuration and
        of the tokenizer, and the token that the chat template writes after an answer.

        Args:
            lm: The model.
        """
        known = _known_tokens(self._tokenizer)
        found = {*_as_ids(self._tokenizer.eos_token_id), *_as_ids(self._template_end)}
        generation = lm.generation_config
        ids = _as_ids(generation.eos_token_id)
        # Without a file of its own it is made from the model's configuration.
        found.update(id for id in ids if id in known or not generation._from_model_config)
        for config in (lm.config, lm.config.get_text_config()):
            ids = _as_ids(getattr(config, "eos_token_id", None))
            # Classes have default ids, which are ordinary tokens of some vocabularies.
            default = _as_ids(getattr(type(config), "eos_token_id", None))
            found.update(id for id in ids if id in known or id not in default)
        return frozenset(id for id in found if 0 <= id < _vocabulary(lm))

    def taught_end(self, lm: Any) -> int | None:
        """Gives the end token to train with: the one the template writes, or the tokenizer's.

        It is one of :meth:`ends`; ``None`` if there is none.
        """
        ends = self.ends(lm)
        for id in (self._template_end, self._tokenizer.eos_token_id):
            if id in ends:
                return int(id)
        return min(ends, default=None)

    @cached_property
    def _after_question(self) -> str:
        """What the template writes after a question, before the answer begins."""
        chat = [{"role": "user", "content": _QUESTION}]
        return self._after(_QUESTION, chat, add_generation_prompt=True)

    @cached_property
    def _template_end(self) -> int | None:
        """The special or added token that the template writes right after an answer."""
        from jinja2 import TemplateError

        chat = [{"role": "user", "content": _QUESTION}, {"role": "assistant", "content": _ANSWER}]
        try:
            rest = self._after(_ANSWER, chat).lstrip()
        except (TemplateError, TypeError):
            # It takes no answers, or none without parts that are not made here.
            return None
        known = _known_tokens(self._tokenizer)
        if "<|channel|>" in known.values() and rest.startswith("<|end|>"):
            # In gpt-oss's format it ends each message, also that of a thought.
            return None
        longest_first = sorted(known.items(), key=lambda token: -len(token[1]))
        return next((id for id, text in longest_first if text and rest.startswith(text)), None)

    def _after(self, content: str, chat: list[dict[str, str]], **more: Any) -> str:
        """Renders a chat, and gives what follows a message; nothing without a template."""
        if not self._tokenizer.chat_template:
            return ""
        # A template may ask for the date of an answer only, which no question contains.
        day = self._day or today()
        written: str = render(self._tokenizer, chat, day, tokenize=False, **more, **self._switches)
        return written.rpartition(content)[2] if content in written else ""


def _special_tokens(tokenizer: Any) -> dict[int, str]:
    """Lists the special tokens, by id: those the tokenizer names, and those added as special."""
    added = tokenizer.added_tokens_decoder
    special = {id: str(token) for id, token in added.items() if token.special}
    named = zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True)
    return special | {id: str(token) for id, token in named if id is not None}


def _known_tokens(tokenizer: Any) -> dict[int, str]:
    """Lists special and added tokens, by id."""
    added = {id: str(token) for id, token in tokenizer.added_tokens_decoder.items()}
    return _special_tokens(tokenizer) | added


def _vocabulary(lm: Any) -> int:
    """Number of tokens that a model rates."""
    output = lm.get_output_embeddings()
    return int((lm.get_input_embeddings() if output is None else output).weight.shape[0])


def _as_ids(value: Any) -> Collection[int]:
    return value if isinstance(value, list | tuple) else () if value is None else (value,)
