"""The date that a chat template prints: one for a whole run, whenever parts of it are answered.

Chat templates ask for the time by calling ``strftime_now``, which Transformers answers with the
present. Here it is answered with the date in the run's decoding settings, at midnight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator

from cradle_lib.errors import EngineError


def _day(value: object) -> str:
    try:
        # YAML reads an unquoted date as a date.
        return date.fromisoformat(str(value)).isoformat()
    except ValueError:
        raise ValueError("expected a day such as 2026-11-25") from None


#: A date such as ``2026-11-25``, as text.
Day = Annotated[str, BeforeValidator(_day)]


def today() -> str:
    """Gives today's date in UTC, such as ``2026-11-25``."""
    return datetime.now(UTC).date().isoformat()


def render(tokenizer: Any, chats: Any, day: str | None, **more: Any) -> Any:
    """Applies a chat template as if it were a given day.

    Args:
        tokenizer: The tokenizer that has the template.
        chats: A chat, or several.
        day: The run's date; ``None`` if rendering an example did not ask for one.
        **more: Further arguments of ``apply_chat_template``, such as switches of the template.

    Returns:
        What ``apply_chat_template`` gives.

    Raises:
        EngineError: If the template asks for a date and none is given. An answer must not depend
            on a date that is not recorded.
    """

    def now() -> datetime:
        if day is None:
            raise EngineError(
                f"{tokenizer.name_or_path}: the chat template prints a date for this question, "
                "and for others it does not, so that no date was recorded. Set one in "
                f"`decoding`, such as `date: {today()}`, and start the run anew."
            )
        return datetime.fromisoformat(day)

    with _clock(now):
        return tokenizer.apply_chat_template(chats, **more)


def asks_for_date(tokenizer: Any, chat: dict[str, Any]) -> bool:
    """Whether a tokenizer's chat template reads the clock, found by rendering a question.

    Args:
        tokenizer: The tokenizer.
        chat: Switches of the template; a switch can give the date itself.

    Raises:
        EngineError: If the template can't be rendered.
    """
    from jinja2 import TemplateError

    if not tokenizer.chat_template:
        return False
    asked = []

    def now() -> datetime:
        asked.append(True)
        return datetime.fromisoformat(today())

    question = [{"role": "user", "content": "Question"}]
    try:
        with _clock(now):
            tokenizer.apply_chat_template(
                question, add_generation_prompt=True, tokenize=False, **chat
            )
    except TemplateError as error:
        reason = " ".join(str(error).split())[:200]
        raise EngineError(
            f"{tokenizer.name_or_path}: the chat template can't be rendered for a question "
            f"without a system message ({reason}). Check `chat` in `decoding`, or the template."
        ) from error
    return bool(asked)


@dataclass(frozen=True)
class _Clock:
    """Takes the place of the class that Transformers asks for the present."""

    now: Callable[[], datetime]


@contextmanager
def _clock(now: Callable[[], datetime]) -> Iterator[None]:
    """Replaces the clock of Transformers' chat templates.

    It can't be given as a variable of the template: Transformers passes on plain data only.
    """
    from transformers.utils import chat_template_utils

    templates: Any = chat_template_utils
    real = templates.datetime
    templates.datetime = _Clock(now)
    try:
        yield
    finally:
        templates.datetime = real
