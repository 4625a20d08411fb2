"""Recognises that a provider has blocked a prompt or an answer because of its content.

For texts about self-harm this is common. Each provider and each gateway reports it in another form:
with status 400, 403 or 200, by a code, or only by a sentence. A sentence counts only if it is about
the content: a key, an account or a model that is not permitted is another error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from cradle_engines.api.replies import snake_case

# Codes, types and endings, in snake case.
_NAMES: Final = re.compile(
    r"content_(?:filter|filtered|moderation|blocked|policy_violation)|(?:output|input)_blocked"
    r"|data_inspection_failed|responsible_aipolicy_violation|\w*sensitive_content_detected"
    r"|moderation(?:_blocked)?|guardrail_intervened|prohibited_content|safety|image_safety"
    r"|blocklist|spii|recitation|sensitive|error_toxic|refusal|safety_check_type_\w+"
)
_WHAT: Final = (
    r"\b(?:prompt|input|output|response|content|text|completion|answer|message|request|query|"
    r"generation|candidate)s?\b"
)
_ABOUT: Final = (
    r"content (?:filter|management|moderation|polic|safety)"
    r"|(?:usage|safety|filtering|moderation|responsible ai|(?:prohibited|acceptable) use) "
    r"(?:polic|guideline|system|setting|filter|reason|practice)"
    r"|\bsafety\b|guardrail|moderation|security configurations|prohibited use|our policies"
    r"|inappropriate|(?<!case.)sensitive|harmful|unsafe|offensive|self.harm|high risk"
)
_VERBS: Final = r"\b(?:flagged|blocked|filtered|rejected|refused|stopped|violat\w+|trigger\w*)\b"
# A sentence is about blocked content if it matches all expressions of a line.
_SENTENCES: Final = [
    [re.compile(part) for part in parts]
    for parts in (
        (_WHAT, _VERBS, _ABOUT),
        (_WHAT, r"\bcontain", r"inappropriate|sensitive|harmful|unsafe|offensive|prohibited"),
        (r"\b(?:input|prompt|output|content|text|message)s? (?:was|were|has been|is) flagged",),
        (r"violat\w+ (?:\w+ ){0,2}(?:guardrail|moderation|content (?:safety|policy))",),
        (r"content exists risk|limited access to this content|敏感内容|敏感词|违规内容",),
        # The codes of a provider, quoted by a gateway.
        (
            r"content_?policy_?violation|responsible_?ai_?policy_?violation|data_?inspection_?failed",
        ),
        (r"\b(?:code|type|reason|status|finish_?reason)[\"']*\s*[:=]\s*[\"']content_?filter",),
    )
]
# An account that is blocked, or a condition that its owner has to meet, is another error.
_ACCOUNT: Final = re.compile(
    r"\b(?:account|organi[sz]ation|api key|workspace|subscription|tenant|team|your access)\b"
    r"[^.]{0,20}\b(?:has been|have been|was|were|is|are) (?:\w+ )?(?:flagged|blocked|suspended"
    r"|disabled|terminated|banned|deactivated|restricted|revoked)\b"
    r"|\b(?:until|unless) you\b|\bmust (?:accept|agree|be verified)\b"
)
# Statuses whose sentences are about the key, the account, the model, or the service's load.
_OTHERS: Final = frozenset({401, 402, 404, 408, 425, 429, 503, 529})


def is_block(name: object) -> bool:
    """Whether a code, a type or an ending means that content was blocked.

    Gemini appends a name to another: "content_filter: PROHIBITED_CONTENT".
    """
    own = snake_case(name.partition(":")[0]) if isinstance(name, str) else ""
    return _NAMES.fullmatch(own) is not None


def is_blocked(status: int, fields: Iterable[tuple[str, object]], text: str) -> bool:
    """Whether an error means that a provider blocked the content of a prompt or an answer.

    Args:
        status: The status of the error.
        fields: The fields of the error at any depth, as :func:`.fields_of` gives them.
        text: The message of the error.
    """
    texts = [text]
    for name, value in fields:
        # OpenRouter quotes the text that its moderation has flagged; Azure lists its filters.
        if name in ("flagged_input", "filtered") and value:
            return True
        if isinstance(value, str):
            texts.append(value)
            if name in ("code", "type", "status", "reason", "block_reason") and is_block(value):
                return True
    if status in _OTHERS or any(_ACCOUNT.search(each.lower()) for each in texts):
        return False
    sentences = (s.lower() for each in texts for s in re.split(r"[.!?]\s|\n", each))
    return any(
        all(part.search(sentence) for part in parts)
        for sentence in sentences
        for parts in _SENTENCES
    )
