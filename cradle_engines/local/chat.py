"""Chat templates: the tokens around a question and its answer, and the date that a template prints.

Chat templates call ``strftime_now``, in which Transformers uses the current time. Here it uses the
date in the run's decoding settings, at midnight, so that a run that is resumed on another day has
the same prompts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from functools import cached_property
from threading import Lock
from types import SimpleNamespace
from typing import Any, Final

from cradle_lib.detection.models.dates import today
from cradle_lib.detection.protocol.thoughts import MARKER, SWITCHES, is_open, open_marker
from cradle_lib.errors import EngineError
from cradle_lib.labels import LABELS, NONE

# Placeholders, to find the text that the template writes after a question and an answer.
_QUESTION: Final = "QUESTION"
_ANSWER: Final = "ANSWER"
# Held while Transformers' clock is replaced, which is the same for all threads.
_CLOCK: Final = Lock()


def asks_for_date(tokenizer: Any) -> bool:
    """Whether a chat template can print the date."""
    return "strftime_now" in str(tokenizer.chat_template)


class Chat:
    """The special tokens and the chat template of a model.

    Args:
        tokenizer: The model's tokenizer.
        switches: Variables of the template, such as ``enable_thinking``.
        day: The date that the template prints, if it prints one; ``None`` for today.
    """

    def __init__(self, tokenizer: Any, switches: dict[str, Any], day: str | None = None) -> None:
        self._tokenizer, self._switches, self._day = tokenizer, switches, day or today()

    def render(self, chats: Any, **more: Any) -> Any:
        """Applies the chat template to one chat or several, with the date of the run.

        Further arguments and the result are those of ``apply_chat_template``.
        """
        from transformers.utils import chat_template_utils

        # `strftime_now` reads the clock of this module. It can't be passed as a template variable,
        # because Transformers accepts only data, and a tokenizer has no other setting for it.
        now = datetime.fromisoformat(self._day)
        with _CLOCK:
            real = chat_template_utils.datetime
            chat_template_utils.datetime = SimpleNamespace(now=lambda: now)
            try:
                return self._tokenizer.apply_chat_template(chats, **more, **self._switches)
            finally:
                chat_template_utils.datetime = real

    def messages(self, *texts: str) -> list[dict[str, Any]]:
        """Makes the messages of a question, and optionally its answer, in the template's format.

        Raises:
            EngineError: If the template leaves out the text of a question.
        """
        return _messages(texts, in_parts=self._in_parts)

    @cached_property
    def _in_parts(self) -> bool:
        """Whether the template expects a text as a list of parts, as in multimodal models.

        Some of these templates silently leave out plain text.
        """
        problem = ""
        for in_parts in (False, True):
            chat = _messages([_QUESTION], in_parts=in_parts)
            try:
                if _QUESTION in self.render(chat, tokenize=False):
                    return in_parts
            except Exception as error:  # A template may raise any exception.
                problem = problem or f" ({' '.join(str(error).split())[:200]})"
        raise EngineError(
            f"{self._tokenizer.name_or_path}: the chat template can't be rendered for a question "
            f"without a system message, or leaves out its text{problem}. Check the template, and "
            "`chat` in `decoding`."
        )

    @cached_property
    def special(self) -> re.Pattern[str]:
        """Matches the tokenizer's special tokens in a text."""
        # Tokens of one or two characters, such as a line break, can't be broken up and are
        # harmless. Labels that were added as special tokens are part of an answer.
        texts = {text for text in self._special.values() if len(text.strip()) > 2}
        longest_first = sorted(texts - {NONE, *LABELS}, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    def without_special(self, text: str) -> str:
        """Removes special tokens from an answer, except those in markers of thoughts."""
        spans = [marker.span() for marker in MARKER.finditer(text)]

        def kept(token: re.Match[str]) -> str:
            marks = any(start <= token.start() and token.end() <= end for start, end in spans)
            return token[0] if marks else ""

        return self.special.sub(kept, text)

    @cached_property
    def opened(self) -> str:
        """Opening marker of a thought that the prompt leaves open; empty if there is none."""
        return open_marker(self._after_question) or ""

    def require_no_open_thought(self, purpose: str) -> None:
        """Checks that the prompt does not leave a thought open.

        Raises:
            EngineError: If it does; the message begins with ``purpose``.
        """
        if self.opened:
            raise EngineError(
                f"{purpose} writes labels right after the prompt, where the chat template has "
                f"opened a thought ({self.opened}). Labels in a thought do not count. Turn it "
                "off under `chat` (in many templates `enable_thinking: false`), or use a template "
                "without it."
            )

    @cached_property
    def may_think(self) -> bool:
        """Whether an answer may contain a thought, even one without an opening marker.

        It may if the chat template or the vocabulary has markers of thoughts, unless the template
        has opened and closed an empty thought before the answer.
        """
        if MARKER.search(self._after_question):
            return is_open(self._after_question)
        texts = (str(self._tokenizer.chat_template or ""), *self._known.values())
        return any(MARKER.search(text) for text in texts)

    @cached_property
    def thinking_off(self) -> dict[str, bool]:
        """The switch that turns off thoughts which the template leaves on; empty if none."""
        for name in SWITCHES:
            if name not in self._switches and name in str(self._tokenizer.chat_template):
                off = Chat(self._tokenizer, self._switches | {name: False}, self._day)
                if off._after_question != self._after_question:
                    return {name: False}
        return {}

    def ends(self, lm: Any, shipped: Any) -> frozenset[int]:
        """Finds all tokens that end an answer, according to any part of a checkpoint.

        These are the end tokens of the generation configuration, of the model's configuration and
        of the tokenizer, and the token that the chat template writes after an answer.

        Args:
            lm: The model.
            shipped: The checkpoint's generation configuration.
        """
        found = [self._tokenizer.eos_token_id, self._template_end]
        for config in (lm.config, lm.config.get_text_config(), shipped):
            ids = getattr(config, "eos_token_id", None)
            found += ids if isinstance(ids, list) else [ids]
        # Default ids of configuration classes can be ordinary tokens of a vocabulary.
        return frozenset(self._known.keys() & set(found))

    def training_end(self, ends: frozenset[int]) -> int | None:
        """Gives the end token to train with, one of ``ends``; ``None`` if there is none.

        It is the one that the template writes, or else the tokenizer's, or else the lowest id.
        """
        for id in (self._template_end, self._tokenizer.eos_token_id):
            if id in ends:
                return int(id)
        return min(ends, default=None)

    @cached_property
    def _special(self) -> dict[int, str]:
        """The special tokens, by id: those the tokenizer names, and those added as special."""
        tokenizer = self._tokenizer
        added = tokenizer.added_tokens_decoder.items()
        named = zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True)
        return {id: str(token) for id, token in added if token.special} | {
            id: str(token) for id, token in named if id is not None
        }

    @cached_property
    def _known(self) -> dict[int, str]:
        """The special and the added tokens, by id."""
        added = self._tokenizer.added_tokens_decoder.items()
        return self._special | {id: str(token) for id, token in added}

    @cached_property
    def _after_question(self) -> str:
        """The text that the template writes after a question, before the answer begins."""
        if not self._tokenizer.chat_template:
            return ""
        chat = self.messages(_QUESTION)
        written: str = self.render(chat, tokenize=False, add_generation_prompt=True)
        return written.rpartition(_QUESTION)[2]

    @cached_property
    def _template_end(self) -> int | None:
        """The special or added token that the template writes right after an answer."""
        if not self._tokenizer.chat_template:
            return None
        try:
            written = self.render(self.messages(_QUESTION, _ANSWER), tokenize=False)
        except Exception:  # A template that accepts no answers may raise any exception.
            return None
        rest = written.rpartition(_ANSWER)[2].lstrip() if _ANSWER in written else ""
        if "<|channel|>" in self._known.values() and rest.startswith("<|end|>"):
            # In gpt-oss's format it ends every message, including thoughts.
            return None
        longest_first = sorted(self._known.items(), key=lambda token: -len(token[1]))
        return next((id for id, text in longest_first if text and rest.startswith(text)), None)


def _messages(texts: Iterable[str], *, in_parts: bool) -> list[dict[str, Any]]:
    return [
        {"role": role, "content": [{"type": "text", "text": text}] if in_parts else text}
        for role, text in zip(("user", "assistant"), texts, strict=False)
    ]
