"""Chat templates: the tokens around a question and its answer, and the date that a template prints.

Chat templates ask for the time by calling ``strftime_now``, which Transformers answers with the
present. Here it is answered with the date in the run's decoding settings, at midnight, so that a
run that is resumed on another day shows the same prompts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import UTC, date, datetime
from functools import cached_property
from types import SimpleNamespace
from typing import Annotated, Any, Final

from pydantic import BeforeValidator

from cradle_lib.detection.thoughts import MARKER, is_open, open_marker
from cradle_lib.errors import EngineError
from cradle_lib.labels import LABELS, NONE

# A question and an answer, to find what the template writes after them.
_QUESTION: Final = "QUESTION"
_ANSWER: Final = "ANSWER"


def _day(value: object) -> str:
    try:
        # YAML reads an unquoted date as a date.
        return date.fromisoformat(str(value)).isoformat()
    except ValueError:
        raise ValueError("expected a day such as 2026-11-25") from None


#: A date such as ``2026-11-25``, as text.
Day = Annotated[str, BeforeValidator(_day)]


class UndatedError(EngineError):
    """A chat template prints a date, and none is given."""


def today() -> str:
    """Gives today's date in UTC, such as ``2026-11-25``."""
    return datetime.now(UTC).date().isoformat()


def render(tokenizer: Any, chats: Any, day: str | None, **more: Any) -> Any:
    """Applies a chat template as if it were a given day.

    Args:
        tokenizer: The tokenizer that has the template.
        chats: A chat, or several.
        day: The run's date; ``None`` if no question has needed one yet.
        **more: Further arguments of ``apply_chat_template``, such as switches of the template.

    Returns:
        The result of ``apply_chat_template``.

    Raises:
        UndatedError: If the template asks for a date and none is given. An answer must not depend
            on a date that is not recorded.
        EngineError: If the template can't be rendered.
    """
    from jinja2 import TemplateError
    from transformers.utils import chat_template_utils

    def now() -> datetime:
        if day is None:
            raise UndatedError(
                f"{tokenizer.name_or_path}: the chat template prints a date for this question "
                "but not for others, so no date was recorded. Set one in "
                f"`decoding`, such as `date: {today()}`, and start the run again."
            )
        return datetime.fromisoformat(day)

    # The clock can't be given as a variable of the template: Transformers passes on data only.
    templates: Any = chat_template_utils
    real, templates.datetime = templates.datetime, SimpleNamespace(now=now)
    try:
        return tokenizer.apply_chat_template(chats, **more)
    except TemplateError as error:
        reason = " ".join(str(error).split())[:200]
        raise EngineError(
            f"{tokenizer.name_or_path}: the chat template can't be rendered for a question "
            f"without a system message ({reason}). Check `chat` in `decoding`, or the template."
        ) from error
    finally:
        templates.datetime = real


class Chat:
    """The special tokens and the chat template of a model.

    Args:
        tokenizer: The model's tokenizer.
        switches: Switches of the template, such as ``enable_thinking``.
        day: The date that the template prints, if it prints one.
    """

    def __init__(self, tokenizer: Any, switches: dict[str, Any], day: str | None = None) -> None:
        self._tokenizer, self._switches, self._day = tokenizer, switches, day

    def messages(self, *texts: str) -> list[dict[str, Any]]:
        """Makes the chat of a question, and perhaps its answer, in the form the template takes.

        Raises:
            EngineError: If the template leaves out the text of a question.
        """
        return _messages(texts, in_parts=self._in_parts)

    @cached_property
    def _in_parts(self) -> bool:
        """Whether the template takes a list of parts for a text, as those of multimodal models do.

        Given plain text, some of these write a prompt without it, and raise no error.
        """
        problems = []
        for in_parts in (False, True):
            chat = _messages([_QUESTION], in_parts=in_parts)
            try:
                if _QUESTION in self._written(chat):
                    return in_parts
            except (EngineError, TypeError) as error:
                problems.append(error)
        if problems:
            raise problems[0]
        raise EngineError(
            f"{self._tokenizer.name_or_path}: the chat template leaves out the text of a question. "
            "Check the template, and `chat` in `decoding`."
        )

    def asks_for_date(self) -> bool:
        """Whether the chat template prints a date, found by rendering a question.

        Raises:
            EngineError: If the template can't be rendered.
        """
        if not self._tokenizer.chat_template:
            return False
        chat = self.messages(_QUESTION)
        try:
            render(self._tokenizer, chat, None, add_generation_prompt=True, **self._switches)
        except UndatedError:
            return True
        return False

    @cached_property
    def special(self) -> re.Pattern[str]:
        """Matches the tokenizer's special tokens in a text."""
        # One of a letter or two, such as a line break, can't be taken apart and forges nothing.
        # Labels that were added as special tokens are part of an answer.
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
        """The marker of the thought in which a prompt ends; empty if it ends outside of one."""
        return open_marker(self._after_question) or ""

    def require_no_open_thought(self, purpose: str) -> None:
        """Checks that an answer may begin right after the prompt.

        Raises:
            EngineError: If the template opens a thought there.
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
        """Whether an answer may contain a thought, also one whose beginning has no marker.

        It may if the chat template or the vocabulary has markers of thoughts, unless the template
        has opened and closed an empty thought before the answer.
        """
        if MARKER.search(self._after_question):
            return is_open(self._after_question)
        texts = (str(self._tokenizer.chat_template or ""), *self._known.values())
        return any(MARKER.search(text) for text in texts)

    def ends(self, lm: Any, shipped: Any) -> frozenset[int]:
        """Finds all tokens that end an answer, whichever part of a checkpoint names them.

        These are the end tokens of the generation configuration, of the model's configuration and
        of the tokenizer, and the token that the chat template writes after an answer.

        Args:
            lm: The model.
            shipped: The checkpoint's generation configuration.
        """
        found = {*_as_ids(self._tokenizer.eos_token_id), *_as_ids(self._template_end)}
        for config in (lm.config, lm.config.get_text_config(), shipped):
            ids = _as_ids(getattr(config, "eos_token_id", None))
            # Classes have default ids, which are ordinary tokens of some vocabularies. A generation
            # configuration without a file of its own copies them.
            default = _as_ids(getattr(type(config), "eos_token_id", None))
            doubted = ids if getattr(config, "_from_model_config", False) else default
            found.update(id for id in ids if id in self._known or id not in doubted)
        rated = (lm.get_output_embeddings() or lm.get_input_embeddings()).weight.shape[0]
        return frozenset(id for id in found if 0 <= id < rated)

    def taught_end(self, ends: frozenset[int]) -> int | None:
        """Gives the end token to train with: the one the template writes, or the tokenizer's.

        It is one of :meth:`ends`; ``None`` if there is none.
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
        written = self._written(self.messages(_QUESTION), add_generation_prompt=True)
        return written.rpartition(_QUESTION)[2]

    @cached_property
    def _template_end(self) -> int | None:
        """The special or added token that the template writes right after an answer."""
        if not self._tokenizer.chat_template:
            return None
        try:
            written = self._written(self.messages(_QUESTION, _ANSWER))
        except (EngineError, TypeError):
            # The template takes no answers, or only answers in several parts.
            return None
        rest = written.rpartition(_ANSWER)[2].lstrip() if _ANSWER in written else ""
        if "<|channel|>" in self._known.values() and rest.startswith("<|end|>"):
            # In gpt-oss's format it ends each message, also that of a thought.
            return None
        longest_first = sorted(self._known.items(), key=lambda token: -len(token[1]))
        return next((id for id, text in longest_first if text and rest.startswith(text)), None)

    def _written(self, chat: list[dict[str, Any]], **more: Any) -> str:
        """Renders a chat as text."""
        # A template may ask for the date of an answer only, which no question contains.
        day = self._day or today()
        text: str = render(self._tokenizer, chat, day, tokenize=False, **more, **self._switches)
        return text


def _messages(texts: Iterable[str], *, in_parts: bool) -> list[dict[str, Any]]:
    return [
        {"role": role, "content": [{"type": "text", "text": text}] if in_parts else text}
        for role, text in zip(("user", "assistant"), texts, strict=False)
    ]


def _as_ids(value: Any) -> Collection[int]:
    return value if isinstance(value, list | tuple) else () if value is None else (value,)
