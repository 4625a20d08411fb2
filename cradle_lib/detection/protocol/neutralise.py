"""Neutralises the text of a turn, so that it can't act as a part of the prompt.

Line breaks inside a turn become spaces, and every text that looks like a speaker, a tag, a section
of the prompt or a control token of a chat format is broken up.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_ROLE: Final = re.compile(
    r"\b(user|listener|assistant|system|model_?tag|tag|answer|current turn)\b(\W{0,3}?)\s*[:：]+",  # noqa: RUF001
    re.IGNORECASE,
)
# <|im_end|>, </s>, <start_of_turn>, <think>, DeepSeek's with full-width bars and U+2581: tokenizers
# read these inside any text. People also write ordinary words in square brackets, so there only
# known control tokens are broken up.
_CONTROL: Final = re.compile(
    r"<([|｜]?/?\w[\w .\u2581-]{0,40}[|｜]?)>"  # noqa: RUF001
    r"|\[(/?(?:INST|SYSTEM_PROMPT|MODEL_SETTINGS|AVAILABLE_TOOLS|TOOL_(?:CALLS|RESULTS|CONTENT)"
    r"|ARGS|CALL_ID|THINK|IMG(?:_BREAK|_END)?|(?:BEGIN_)?AUDIO|TRANSCRIBE|PREFIX|MIDDLE|SUFFIX"
    r"|[gs]?MASK|CLS|SEP|PAD|UNK|BOS|EOS|multimodal|unused\d+|@\w{1,40}@|\|\w{1,40}\|))\]"
)
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


# Large enough for all turns of a split, so that its runs share the results.
@lru_cache(maxsize=1 << 14)
def neutralise(text: str) -> str:
    """Converts the text of a turn to one neutralised line.

    Args:
        text: The text of the turn, on one line or several.

    Returns:
        One line. Line breaks are spaces; ``User:``, ``MODEL_TAG:`` and the like lose their colon,
        control tokens are spaced out, and lone surrogates are replaced. Other text is unchanged.
    """
    line = " ".join(part.strip() for part in text.splitlines() if part.strip())
    line = _LONE_SURROGATE.sub("\ufffd", line)
    if "<" in line or "[" in line:
        line = _CONTROL.sub(lambda m: f"< {m[1]} >" if m[1] else f"[ {m[2]} ]", line)
    # Repeated, because a second colon may follow the first; skipped for text without a colon.
    before = "" if ":" in line or "\uff1a" in line else line
    while line != before:
        before, line = line, _ROLE.sub(lambda m: f"{m[1]}{m[2]} -", line)
    return line
