"""Errors of a service, and what follows from each.

A call that brings no answer is made again, ends its question as ``refused`` or ``failed``, or ends
the run, if no further call can succeed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Final, Literal

from cradle_lib.detection.api.replies import lookup, one_line
from cradle_lib.detection.parsing import Outcome
from cradle_lib.detection.session import Answer

HOPELESS_HINT: Final = "Check the key, the model's name and the account"
# Statuses of a service that is too busy: fewer calls may succeed.
_BUSY: Final = frozenset({429, 503, 529})
# Statuses of a service that has not begun to work on an answer, so that nothing is charged.
_TURNED_AWAY: Final = _BUSY | {409, 425}
# The call may succeed later, as after any status from 500 on.
_PASSING: Final = _TURNED_AWAY | {408}
# No call of this run can succeed.
_HOPELESS: Final = {
    401: "the key was not accepted",
    402: "the account has no credit",
    403: "the key may not use this model",
    404: "there is no such model at this endpoint",
}
# The status that an error in a reply of status 200 stands for, by its code or type without a suffix
# such as "_error" or "Exception". The names are those of OpenAI, Anthropic, Google, vLLM,
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
    503: "service_unavailable unavailable engine_overloaded model_overloaded overloaded",
}
_STATUS_OF: Final = {name: status for status, names in _NAMED.items() for name in names.split()}
# Codes and types of a request or an answer that a filter stopped.
_FILTERED: Final = {"content_filter", "content_policy_violation", "data_inspection_failed"}
# Messages of Gemini and Anthropic with status 400, where others send 401 and 402.
_SAID_OTHERWISE: Final = {"api key not valid": 401, "credit balance is too low": 402}


@dataclass(frozen=True, slots=True)
class Fault:
    """What an error of a call means.

    Attributes:
        kind: ``retry`` the call, ``stop`` the run, or end the question as ``refused`` or
            ``failed``.
        reason: The service's message, on one line.
        wait: Seconds that the service asks to wait.
        busy: Whether the service is overloaded.
        unreached: Whether there was no connection at all.
        charged: Whether a call that is made again may cost something: not if the service was not
            reached or turned it away.
        seconds: Time that the call took.
    """

    kind: Literal["retry", "stop", "refused", "failed"]
    reason: str
    wait: float | None = None
    busy: bool = False
    unreached: bool = False
    charged: bool = True
    seconds: float = 0.0

    @property
    def shared(self) -> bool:
        """Whether the other calls of the run have to wait, too."""
        return self.busy or self.unreached or self.wait is not None

    @property
    def answer(self) -> Answer:
        """What stands for an answer if the call is not made again."""
        outcome = Outcome.REFUSED if self.kind == "refused" else Outcome.FAILED
        return Answer("", outcome, self.reason, seconds=self.seconds)


def fault_of_error(sdk: ModuleType, error: Exception) -> Fault | None:
    """Reads an error of either SDK: both come from the same generator and share names.

    ``None`` is for an error that is not the service's fault.
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
        if (away := next((e for e in chain if isinstance(e, missing)), None)) is None:
            kind = type(error.__cause__ or error).__name__
            return Fault("retry", f"the connection broke ({kind})")
        return Fault("retry", one_line(away), unreached=True, charged=False)
    # Broken JSON in a good response reaches us as what the parser raised.
    if isinstance(error, sdk.APIError | ValueError | RecursionError):
        return Fault("failed", f"the answer can't be read ({type(error).__name__})")
    return None


def fault_of_status(
    status: int, headers: Mapping[str, str], body: object, message: str = "", shown_status: str = ""
) -> Fault:
    """Says what an HTTP error means.

    Rate limits and trouble of the server are worth a retry; keys, missing models and empty
    accounts stop the run; a content filter is a refusal; everything else fails this question only.

    Args:
        status: The status, or that which an error in a reply of status 200 stands for.
        headers: The reply's headers, looked up in lower case.
        body: The error itself, or something that holds it (Gemini sends a list).
        message: What to quote if the body says nothing.
        shown_status: How to name the status in the reason; by default by itself.
    """
    first = lookup(body, 0) if isinstance(body, list) else body
    inner = lookup(first, "error") or first
    said = inner if isinstance(inner, str) else ""
    for name in ("message", "msg", "detail"):
        said = said or lookup(inner, name) or ""
    said, shown_status = one_line(said or message), shown_status or f"HTTP {status}"
    reason = f"{shown_status}: {said}"
    words = [str(lookup(inner, name)) for name in ("code", "type")]
    # OpenRouter reports with status 403 which text its moderation has stopped.
    if _FILTERED.intersection(words) or lookup(inner, "metadata", "flagged_input"):
        return Fault("refused", reason)
    meant = next((s for text, s in _SAID_OTHERWISE.items() if text in said.lower()), status)
    if 402 in map(_named_status, words):
        meant = 402
    if meant in _HOPELESS:
        return Fault("stop", f"{_HOPELESS[meant]} ({shown_status})")
    busy = status in _BUSY
    if status in _PASSING or status >= 500:
        charged = status not in _TURNED_AWAY
        return Fault("retry", reason, asked_wait(headers), busy, charged=charged)
    return Fault("failed", reason, busy=busy)


def error_in(reply: object) -> object:
    """Finds an error in a reply of status 200, also beside an answer; ``None`` if there is none."""
    first = lookup(reply, 0) if isinstance(reply, list) else reply
    # OpenRouter reports within the choice that a provider broke off.
    found = lookup(first, "error") or lookup(first, "choices", 0, "error")
    if not found and "error" in (lookup(first, "type"), lookup(first, "object")):
        return first
    return found or None


def fault_in_reply(error: object, headers: Mapping[str, str]) -> Fault:
    """Says what an error in a reply of status 200 means: the same as its status would.

    An error that names no known status counts as trouble of the server.

    Args:
        error: What :func:`error_in` found.
        headers: The reply's headers, looked up in lower case.
    """
    fields = ("code", "status", "status_code", "type")
    found = [error] if isinstance(error, str | int) else [lookup(error, name) for name in fields]
    values = [str(value) for value in found if isinstance(value, str | int | float)]
    # A number counts more than a name.
    numbers = [int(n[1]) for value in values if (n := re.match(r"(?:HTTP )?([45]\d\d)\b", value))]
    names = [status for value in values if (status := _named_status(value)) is not None]
    status = next(iter(numbers + names), None)
    shown_status = "HTTP 200, error" if status is None else f"HTTP 200, error {status}"
    return fault_of_status(status or 500, headers, error, "no message", shown_status)


def _named_status(name: str) -> int | None:
    """Finds the status of a name: "RateLimitError" and "RATE_LIMIT" are "rate_limit"."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])|[ .-]", "_", name).lower()
    return _STATUS_OF.get(re.sub(r"_(error|exception)$", "", snake))


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Reads how many seconds a server asks to wait; ``None`` if it gives no number."""
    with suppress(ValueError):
        seconds = float(headers.get("retry-after", ""))
        # Python reads "nan" and "1e999" as numbers.
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    return None
