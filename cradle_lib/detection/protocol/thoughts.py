"""Removes the reasoning that a model writes before its answer, found by its markers.

Chat templates mark reasoning ("thoughts") in a few forms, such as ``<think>...</think>``,
``[THINK]...[/THINK]`` or ``<|START_THINKING|>...<|END_THINKING|>``. Many write the opening marker
themselves at the end of the prompt, so that the model's text has only the closing marker.
"""

from __future__ import annotations

import re
from typing import Final

#: Variables of chat templates with which thoughts are switched on or off.
SWITCHES: Final = ("enable_thinking", "thinking")
_WORD: Final = r"(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|cot)"
# Names of tags, perhaps with further words: seed:think, inner_thoughts, think_fast.
_NAME: Final = rf"(?:[a-z0-9]{{1,20}}[:_-]){{0,3}}{_WORD}(?:[_-][a-z0-9]{{1,20}}){{0,2}}"
_BAR: Final = "[|｜]"  # noqa: RUF001 - DeepSeek writes the wide one.
_OF: Final = "(?:[_▁]of)?[_▁]"
_TO_MESSAGE: Final = r"[^<]{0,40}(?:<\|constrain\|>[^<]{0,40})?<\|message\|>"
# Each form: the opening marker and the closing one. A group is the name, which both must share.
_FORMS: Final = (
    (rf"<({_NAME})(?:\s[^<>]{{0,80}})?>", rf"</({_NAME})>"),
    (r"\[(think|thinking|thought)\]", r"\[/(think|thinking|thought)\]"),
    (rf"◁({_WORD})▷", rf"◁/({_WORD})▷"),
    (rf"<{_BAR}(?:begin|start){_OF}({_WORD}){_BAR}>", rf"<{_BAR}end{_OF}({_WORD}){_BAR}>"),
    (rf"<{_BAR}({_WORD})_(?:begin|start){_BAR}>", rf"<{_BAR}({_WORD})_end{_BAR}>"),
    (rf"<{_BAR}({_NAME}){_BAR}>", rf"<(?:/{_BAR}|{_BAR}/)({_NAME}){_BAR}>"),
    # gpt-oss, Gemma, MedGemma and Apertus.
    (
        rf"<\|channel\|>()(?:analysis|commentary){_TO_MESSAGE}",
        rf"<\|channel\|>()final{_TO_MESSAGE}",
    ),
    (r"<\|channel>()thought\b", r"<channel\|>()"),
    (r"<unused94>()thought\b", r"<unused95>()"),
    (r"<\|inner_prefix\|>()", r"<\|inner_suffix\|>()"),
)
MARKER: Final = re.compile(
    "|".join(f"{marker}" for form in _FORMS for marker in form), re.IGNORECASE
)
# Tags that some models put around the answer after a thought.
_FRAME: Final = re.compile(
    r"</?(?:answer|response|solution|output)>"
    r"|<\|(?:begin|start|end)(?:_of)?_(?:answer|response|solution|output)\|>",
    re.IGNORECASE,
)


def _split(text: str) -> tuple[str, str | None]:
    """Gives a text without its thoughts, and the opening marker of an unclosed thought, if any."""
    kept: list[str] = []
    opened: tuple[tuple[int, str], re.Match[str]] | None = None
    end, thought = 0, False
    for found in MARKER.finditer(text):
        group = found.lastindex or 1
        form, closes = divmod(group - 1, 2)
        # Equal for the opening and the closing marker of a thought.
        kind = form, found[group].lower()
        if not closes:
            opened = opened or (kind, found)
            continue
        if opened is None:
            kept.clear()
        elif opened[0] == kind:
            kept.append(text[end : opened[1].start()])
        else:
            continue
        opened, end, thought = None, found.end(), True
    answer = "".join(kept) + text[end:]
    return _FRAME.sub("", answer) if thought else answer, opened[1][0] if opened else None


def without_thoughts(text: str) -> str:
    """Removes thoughts from a text.

    A closing marker without an opening one ends a thought that the prompt opened: all text before
    it is removed. An unclosed thought stays.
    """
    return _split(text)[0]


def open_marker(text: str) -> str | None:
    """Gives the opening marker of an unclosed thought at the end of a text; ``None`` if none."""
    return _split(text)[1]


def is_open(text: str) -> bool:
    """Whether a text ends within an unclosed thought."""
    return open_marker(text) is not None
