"""Classifies the errors of a service.

A call without an answer is retried, ends its question as ``refused`` or ``failed``, or ends the run
if no further call can succeed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Final, Literal

from cradle_engines.api.blocks import is_blocked
from cradle_engines.api.replies import fields_of, lookup, one_line, snake_case
from cradle_engines.api.waits import requested_wait
from cradle_lib.detection.protocol.parsing import Outcome
from cradle_lib.detection.protocol.session import Answer

PERMANENT_HINT: Final = "Check the key, the model's name and the account"
# Statuses of a rate limit or an overload: fewer parallel calls may succeed. 498 is Groq's.
_BUSY: Final = frozenset({429, 498, 503, 529})
# Statuses of calls that are rejected before they are processed, so that nothing is charged.
_REJECTED: Final = _BUSY | {409, 425}
# The call may succeed later, as after any status from 500 on.
_TRANSIENT: Final = _REJECTED | {408}
# No call of this run can succeed.
_PERMANENT: Final = {
    401: "the key was not accepted",
    402: "the account has no credit",
    403: "the key may not use this model",
    404: "there is no such model at this endpoint",
}
# The HTTP status for an error in a reply of status 200, by the error's code or type without a
# suffix such as "_error" or "Exception". The names are those of OpenAI, Anthropic, Google, vLLM,
# OpenRouter and DashScope. Any other name counts as status 500.
_NAMED: Final[Mapping[int, str]] = {
    400: "bad_request invalid_request invalid_argument invalid_parameter invalid_prompt "
    "context_length_exceeded exceed_context_size unsupported_parameter unsupported_value "
    "request_too_large",
    401: "authentication unauthenticated unauthorized invalid_api_key invalid_authentication",
    402: "insufficient_quota billing billing_hard_limit_reached billing_not_active "
    "insufficient_balance insufficient_credits insufficient_funds payment_required arrearage",
    403: "permission permission_denied forbidden request_forbidden access_denied "
    "unsupported_country_region_territory",
    404: "not_found model_not_found",
    429: "rate_limit rate_limit_exceeded rate_limited resource_exhausted too_many_requests "
    "requests tokens quota_exceeded throttling",
    503: "service_unavailable unavailable engine_overloaded model_overloaded server_overloaded "
    "overloaded server_busy slow_down service_tier_capacity_exceeded",
}
# Fields with the name or the number of an error; AWS uses ``__type``.
_NAMES: Final = ("code", "status", "status_code", "type", "__type")
_STATUS_OF: Final = {name: status for status, names in _NAMED.items() for name in names.split()}
# Errors whose name is more precise than their status: OpenAI sends 429 for an account without
# credit, Google 403 and gateways 400 or 500 for a rate limit.
_NAME_COUNTS: Final = frozenset({402, 429, 503})
# Messages of Gemini and Anthropic with status 400, where others send 401 and 402; and of OpenAI and
# Groq for a prompt that no wait makes acceptable.
_STATUS_BY_MESSAGE: Final = {
    "api key not valid": 401,
    "credit balance is too low": 402,
    "request too large": 413,
}
# A parameter that the service does not know, and the names of the limit of an answer's length.
_UNSUPPORTED: Final = re.compile(
    r"(?:un|not |n't )(?:support|recogni|known|permit|allow|expect|accept)|cannot find field"
    r"|extra_forbidden|deprecated",
    re.IGNORECASE,
)
_LIMITS: Final = re.compile(r"\bmax_(?:completion_)?tokens\b")


@dataclass(frozen=True, slots=True)
class Fault:
    """The classified error of a call.

    Attributes:
        kind: ``retry`` the call, ``stop`` the run, or end the question as ``refused`` or
            ``failed``.
        reason: The service's message, on one line.
        wait: Seconds that the service asks to wait; ``None`` if it does not.
        busy: Whether the service limits the rate of calls or is overloaded.
        unreachable: Whether there was no connection at all.
        charged: Whether the call may be charged although it is retried; not if the service was
            unreachable or rejected it.
        seconds: Time that the call took.
        limits: Parameters for the limit of an answer's length that an error about an unsupported
            parameter names.
    """

    kind: Literal["retry", "stop", "refused", "failed"]
    reason: str
    wait: float | None = None
    busy: bool = False
    unreachable: bool = False
    charged: bool = True
    seconds: float = 0.0
    limits: frozenset[str] = frozenset()

    @property
    def shared(self) -> bool:
        """Whether the other calls of the run have to wait, too."""
        return self.busy or self.unreachable or self.wait is not None

    @property
    def answer(self) -> Answer:
        """The answer to the question if the call is not retried."""
        outcome = Outcome.REFUSED if self.kind == "refused" else Outcome.FAILED
        return Answer("", outcome, self.reason, seconds=self.seconds)


def fault_of_error(sdk: ModuleType, error: Exception) -> Fault | None:
    """Classifies an exception of either SDK; both are generated by one tool and share names.

    ``None`` if the exception does not come from the service.
    """
    import aiohttp

    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(cause)
    if isinstance(error, sdk.APIStatusError):
        return fault_of_status(error.status_code, error.response.headers, error.body, error.message)
    if isinstance(error, sdk.APIConnectionError):
        # The SDKs report missing and broken connections as the same error of httpx2.
        missing = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
        if (failed := next((e for e in chain if isinstance(e, missing)), None)) is None:
            kind = type(error.__cause__ or error).__name__
            return Fault("retry", f"the connection broke ({kind})")
        return Fault("retry", one_line(failed), unreachable=True, charged=False)
    # Invalid JSON in a successful response raises the parser's exception.
    if isinstance(error, sdk.APIError | ValueError | RecursionError):
        return Fault("failed", f"the answer can't be read ({type(error).__name__})")
    return None


def fault_of_status(
    status: int, headers: Mapping[str, str], body: object, message: str = "", shown_status: str = ""
) -> Fault:
    """Classifies an HTTP error.

    Rate limits and server errors are retried; invalid keys, missing models and empty accounts stop
    the run; a content filter is a refusal; any other error fails only this question.

    Args:
        status: The HTTP status, or its equivalent for an error in a reply of status 200.
        headers: The reply's headers, looked up in lower case.
        body: The error, or JSON that contains it (Gemini sends a list).
        message: The message to quote if the body has none.
        shown_status: Name of the status in the reason; by default ``HTTP`` and its number.
    """
    first = lookup(body, 0) if isinstance(body, list) else body
    inner = lookup(first, "error") or first
    text = one_line(_message(inner) or message)
    shown_status = shown_status or f"HTTP {status}"
    reason = f"{shown_status}: {text}"
    found = list(fields_of(first))
    if is_blocked(status, found, text):
        return Fault("refused", reason)
    words = [str(lookup(each, name)) for each in (inner, first) for name in _NAMES]
    named = min((s for s in map(_named_status, words) if s in _NAME_COUNTS), default=status)
    meant = next((s for part, s in _STATUS_BY_MESSAGE.items() if part in text.lower()), named)
    if meant in _PERMANENT:
        return Fault("stop", f"{_PERMANENT[meant]} ({shown_status})")
    busy = meant in _BUSY
    if meant in _TRANSIENT or meant >= 500:
        charged = meant not in _REJECTED
        return Fault("retry", reason, requested_wait(headers, found), busy, charged=charged)
    texts = " ".join([text, *(value for _, value in found if isinstance(value, str))])
    limits = _LIMITS.findall(texts) if _UNSUPPORTED.search(texts) else ()
    return Fault("failed", reason, limits=frozenset(limits))


def _message(error: object) -> str:
    """Finds the message of an error, without the parts of the request that it repeats."""
    texts = [error] + [lookup(error, name) for name in ("message", "msg", "detail")]
    text = next((text for text in texts if isinstance(text, str) and text), "")
    # Validators list the field and the problem of each error.
    for each in texts[-1] if isinstance(texts[-1], list) else ():
        place = lookup(each, "loc")
        places = [str(part) for part in place] if isinstance(place, list) else []
        text += f"{'.'.join(places)}: {lookup(each, 'msg')}; "
    # OpenRouter quotes the provider's error.
    quoted = lookup(error, "metadata", "raw")
    return f"{text}: {quoted}" if isinstance(quoted, str) else text


def error_in(reply: object) -> object:
    """Finds an error in a reply of status 200, even next to an answer; ``None`` if none."""
    first = lookup(reply, 0) if isinstance(reply, list) else reply
    # OpenRouter reports within the choice that a provider aborted the answer.
    found = lookup(first, "error") or lookup(first, "choices", 0, "error")
    if not found and "error" in (lookup(first, "type"), lookup(first, "object")):
        return first
    return found or None


def fault_in_reply(error: object, headers: Mapping[str, str]) -> Fault:
    """Classifies an error in a reply of status 200 like the HTTP status that it names.

    An error that names no known status counts as a server error.

    Args:
        error: The result of :func:`error_in`.
        headers: The reply's headers, looked up in lower case.
    """
    found = [error] if isinstance(error, str | int) else [lookup(error, name) for name in _NAMES]
    values = [str(value) for value in found if isinstance(value, str | int | float)]
    # Numbers take precedence over names.
    numbers = [int(n[1]) for value in values if (n := re.match(r"(?:HTTP )?([45]\d\d)\b", value))]
    names = [status for value in values if (status := _named_status(value)) is not None]
    status = next(iter(numbers + names), None)
    shown_status = "HTTP 200, error" if status is None else f"HTTP 200, error {status}"
    return fault_of_status(status or 500, headers, error, "no message", shown_status)


def _named_status(name: str) -> int | None:
    """Finds the status of a name: "RateLimitError" and "RATE_LIMIT" are "rate_limit"."""
    return _STATUS_OF.get(snake_case(name))
