"""The settings of a run's calls, without those that the service turns out not to take.

Providers withdraw parameters (a temperature from newer models), never knew some (Gemini
and seeds), or know one under another name (the token limit). Such a call is refused
with status 400 or 422 and a message that names the parameter. It is then left out for
the rest of the run, and every answer that was given without it says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

# One limit under two names: the other name is tried, because no limit could cost a fortune.
_OTHER_NAME: Final = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}
# What a run can do without. Without the model or the messages there is no question.
_SPARE: Final = {"temperature", "seed", "chat_template_kwargs", "cache_control"}
# How services say that they don't take a parameter, rather than that a prompt is too long.
_NOT_TAKEN: Final = re.compile(
    r"unsupported|not support|unknown|unrecognized|unrecognised|unexpected|not permitted"
    r"|not allowed|deprecated|cannot find|extra|removed|only the default|no longer",
    re.IGNORECASE,
)


class Parameters:
    """What is sent beside the model's name and the messages: at first, all that is wanted."""

    def __init__(self, wanted: Mapping[str, Any]) -> None:
        self.sent = dict(wanted)
        self.dropped: tuple[str, ...] = ()

    def drop(self, names: Iterable[str]) -> None:
        """Leaves parameters out from now on; unknown names and those left out are skipped."""
        for name in names:
            if name not in self.sent or not (name in _SPARE or name in _OTHER_NAME):
                continue
            self.sent = dict(self.sent)
            value = self.sent.pop(name)
            self.dropped = (*self.dropped, name)
            if name in _OTHER_NAME:
                self.sent[_OTHER_NAME[name]] = value

    def refused(self, sent: Mapping[str, Any], message: str, param: str | None) -> str | None:
        """Finds the parameter that a refusal is about, if the call can do without it.

        ``sent`` is what it was when the call was made; ``param`` is named in a field of its own by
        some services. The second name of the token limit is never found after the first.
        """
        if not _NOT_TAKEN.search(message):
            return None
        for name in re.findall(r"\w+", param or message):
            if name in sent and (name in _SPARE or self._has_other_name(name)):
                return str(name)
        return None

    def _has_other_name(self, name: str) -> bool:
        other = _OTHER_NAME.get(name)
        return other is not None and other not in self.dropped
