"""What can go wrong with a call to a service, and what follows from it.

Every way in which a call can end lands in one of the four outcomes with its reason
kept, in another attempt, or in the end of the run where no further call can succeed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, Literal

from cradle_lib.detection.answers import Outcome, is_cut
from cradle_lib.detection.session import Answer

HOPELESS_HINT: Final = "Check the key, the model's name and the account"
# Worth another try: the same call may succeed a moment later.
_PASSING: Final = frozenset({408, 409, 425, 429})
# Nothing that this run asks can succeed.
_HOPELESS: Final = {
    401: "the key was not accepted",
    402: "the account has no credit",
    403: "the key may not use this model",
    404: "there is no such model at this endpoint",
}
_NO_CREDIT: Final = frozenset({"insufficient_quota", "billing_error", "billing_hard_limit_reached"})


@dataclass(frozen=True, slots=True)
class Fault:
    """What an error of a call means.

    Attributes:
        kind: ``retry`` the call, ``stop`` the run, or end the question as ``refused``
            or ``failed``.
        reason: What the service said, without secrets.
        wait: Seconds that the service asks to wait.
    """

    kind: Literal["retry", "stop", "refused", "failed"]
    reason: str
    wait: float | None = None


def finished(
    text: object,
    *,
    cut: bool,
    limit: int,
    tokens_in: int | None,
    tokens_cached: int | None,
    tokens_out: int | None,
) -> Answer:
    """Makes the answer of a call that ended in the ordinary way.

    Args:
        text: What the model wrote.
        cut: Whether the token limit ended it.
        limit: The token limit.
        tokens_in: Tokens of the prompt, cached ones included.
        tokens_cached: Those of them that came from a cache.
        tokens_out: Tokens of the answer, reasoning included.

    Returns:
        The answer; unparsed, with its reason, if it is empty or cut within the line
        that counts.
    """
    written = text if isinstance(text, str) else ""
    reason = None if written.strip() else "empty answer"
    if cut and is_cut(written):
        reason = f"cut at {limit} tokens"
    return Answer(
        text=written,
        outcome=None if reason is None else Outcome.UNPARSED,
        reason=reason,
        tokens_in=tokens_in,
        tokens_cached=tokens_cached,
        tokens_out=tokens_out,
    )


def refused(answer: Answer, reason: str) -> Answer:
    """Marks an answer as refused and keeps what the provider said about it, on one line."""
    return replace(answer, outcome=Outcome.REFUSED, reason=" ".join(reason.split())[:300])


def fault_of_status(
    status: int, headers: Mapping[str, str], code: object, kind: object, message: str
) -> Fault:
    """Says what an HTTP error means.

    Args:
        status: HTTP status.
        headers: The response's headers, looked up in lower case.
        code: ``code`` in the error's body, if there is one.
        kind: ``type`` in the error's body, if there is one.
        message: The error's text.

    Returns:
        What to do. Rate limits and trouble of the server are worth a retry; keys,
        missing models and empty accounts stop the run; a content filter is a refusal;
        everything else fails this question only.
    """
    reason = f"HTTP {status}: {message}"
    if {str(code), str(kind)} & _NO_CREDIT:
        return Fault("stop", f"{_HOPELESS[402]} (HTTP {status})")
    if status in _HOPELESS:
        return Fault("stop", f"{_HOPELESS[status]} (HTTP {status})")
    if "content_filter" in (code, kind) or code == "content_policy_violation":
        return Fault("refused", reason)
    passing = status in _PASSING or status >= 500
    if passing and headers.get("x-should-retry") != "false":
        return Fault("retry", reason, _asked_wait(headers))
    return Fault("failed", reason)


def _asked_wait(headers: Mapping[str, str]) -> float | None:
    """Reads how long a server asks to wait: milliseconds, seconds, or a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            return max(float(value) / unit, 0.0)
        except ValueError:
            pass
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max((date - datetime.now(UTC)).total_seconds(), 0.0)
