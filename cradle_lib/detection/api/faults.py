"""What can go wrong with a call to a service, and what follows from it.

Every way in which a call can end lands in one of the four outcomes with its reason
kept, in another attempt, or in the end of the run where no further call can succeed.
"""

from __future__ import annotations

import math
import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Final, Literal

import pandas as pd

from cradle_lib.detection.api.replies import ReplyTooLargeError, lookup, one_line
from cradle_lib.detection.parsing import Outcome
from cradle_lib.detection.session import Answer

HOPELESS_HINT: Final = "Check the key, the model's name and the account"
# The service is too busy: worth asking for less at once.
_BUSY: Final = frozenset({429, 503, 529})
# It has not worked on an answer either.
_TURNED_AWAY: Final = _BUSY | {409, 425}
# Worth another try, like all trouble of the server: the call may succeed a moment later.
_PASSING: Final = _TURNED_AWAY | {408}
# Nothing that this run asks can succeed.
_HOPELESS: Final = {
    401: "the key was not accepted",
    402: "the account has no credit",
    403: "the key may not use this model",
    404: "there is no such model at this endpoint",
}
_NO_CREDIT: Final = frozenset({"insufficient_quota", "billing_error", "billing_hard_limit_reached"})
# The status that an error in a reply of status 200 stands for, by its code or type without a suffix
# such as "_error" or "Exception". The names are those of OpenAI, Anthropic, Google, vLLM,
# OpenRouter and DashScope.
_NAMED: Final[Mapping[int, str]] = {
    400: "bad_request invalid_request invalid_argument invalid_parameter invalid_prompt "
    "context_length_exceeded exceed_context_size unsupported_parameter unsupported_value",
    401: "authentication unauthenticated unauthorized invalid_api_key invalid_authentication",
    402: "insufficient_quota billing billing_hard_limit_reached billing_not_active "
    "insufficient_balance insufficient_credits insufficient_funds payment_required arrearage",
    403: "permission permission_denied forbidden request_forbidden access_denied "
    "unsupported_country_region_territory",
    404: "not_found model_not_found",
    413: "request_too_large",
    429: "rate_limit rate_limit_exceeded rate_limited resource_exhausted too_many_requests "
    "requests tokens quota_exceeded throttling",
    500: "api server internal internal_server",
    503: "service_unavailable unavailable engine_overloaded model_overloaded",
    504: "timeout deadline_exceeded",
    529: "overloaded",
}
_STATUS_OF: Final = {name: status for status, names in _NAMED.items() for name in names.split()}
# Codes and types of a request or an answer that a filter stopped.
_FILTERED: Final = frozenset(
    {"content_filter", "content_policy_violation", "data_inspection_failed"}
)
# What Gemini and Anthropic say with status 400, where others say 401 and 402.
_SAID_OTHERWISE: Final = {"api key not valid": 401, "credit balance is too low": 402}

# What a service may say, as a status and the code in the body.
_SAID: Final = (
    ("Wrong key", 401, None),
    ("No credit left", 429, "insufficient_quota"),
    ("Key not allowed", 403, None),
    ("No such model", 404, None),
    ("Too many requests", 429, None),
    ("Overloaded", 503, None),
    ("Overloaded, as Anthropic says it", 529, None),
    ("Trouble of the server", 500, None),
    ("Timeout of the server", 408, None),
    ("Content filter", 400, "content_filter"),
    ("Request not understood", 400, None),
    ("Too large", 413, None),
)

_AWAY: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (ConnectionRefusedError, "nothing listens there"),
    (socket.gaierror, "there is no such host"),
    (ssl.SSLCertVerificationError, "its certificate is not trusted"),
    (ssl.SSLError, "it does not speak TLS as expected"),
    (TimeoutError, "it does not take connections"),
)


@dataclass(frozen=True, slots=True)
class Fault:
    """What an error of a call means.

    Attributes:
        kind: ``retry`` the call, ask ``again`` at once because the call was made differently,
            ``stop`` the run, or end the question as ``refused`` or ``failed``.
        reason: What the service said, on one line.
        wait: Seconds that the service asks to wait.
        busy: Whether the service said that it has too much to do.
        param: The parameter that the service complains about, if it names one; an empty
            text if it found something wrong with the request and does not say where.
        unreached: Whether there was no connection at all.
        charged: Whether a call that is made again may cost something: not if the service was not
            reached or turned it away.
        seconds: Time that the call took.
        dropped: Parameters that it was made without.
    """

    kind: Literal["retry", "again", "stop", "refused", "failed"]
    reason: str
    wait: float | None = None
    busy: bool = False
    param: str | None = None
    unreached: bool = False
    charged: bool = True
    seconds: float = 0.0
    dropped: tuple[str, ...] = ()

    @property
    def answer(self) -> Answer:
        """What stands for an answer if the call is not made again."""
        outcome = Outcome.REFUSED if self.kind == "refused" else Outcome.FAILED
        return Answer("", outcome, self.reason, seconds=self.seconds, dropped=self.dropped)


def fault_of_error(sdk: ModuleType, error: Exception) -> Fault | None:
    """Reads an error of either SDK: both come from the same generator and share names.

    ``None`` is for an error that is not the service's fault.
    """
    # As it is, or wrapped, by where the SDK was reading.
    if large := next((e for e in _chain(error) if isinstance(e, ReplyTooLargeError)), None):
        return Fault("failed", str(large))
    if isinstance(error, sdk.APIStatusError):
        return fault_of_status(error.status_code, error.response.headers, error.body, error.message)
    if isinstance(error, sdk.APIConnectionError):
        return _broken(error)
    # Broken JSON in a good response slips through the SDKs as what the parser raised.
    if isinstance(error, sdk.APIError | ValueError | RecursionError):
        return Fault("failed", f"the answer can't be read ({type(error).__name__})")
    return None


def _chain(error: BaseException) -> list[BaseException]:
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(cause)
    return chain


def _broken(error: Exception) -> Fault:
    """Tells a service that can't be reached from a connection that broke."""
    import aiohttp

    chain = _chain(error)
    # The SDKs translate all of these, and broken connections too, to one error of httpx2.
    away = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, ConnectionRefusedError)
    found = next((e for e in chain if isinstance(e, away)), None)
    if found is None:
        return Fault("retry", f"the connection broke ({type(error.__cause__ or error).__name__})")
    why = next((words for kind, words in _AWAY if any(isinstance(e, kind) for e in chain)), "")
    # Of a host with several addresses, only the errors' texts are left.
    why = why or ("nothing listens there" if "Connect call failed" in str(found) else "")
    return Fault("retry", why or type(found).__name__, unreached=True, charged=False)


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
    inner = _inner(body)
    said, shown_status = _message(inner) or one_line(message), shown_status or f"HTTP {status}"
    words = {str(lookup(inner, "code")), str(lookup(inner, "type"))}
    reason = f"{shown_status}: {said}"
    # OpenRouter reports with status 403 which text its moderation has stopped.
    if words & _FILTERED or lookup(inner, "metadata", "flagged_input"):
        return Fault("refused", reason)
    meant = next((s for text, s in _SAID_OTHERWISE.items() if text in said.lower()), status)
    if words & _NO_CREDIT:
        meant = 402
    if meant in _HOPELESS:
        return Fault("stop", f"{_HOPELESS[meant]} ({shown_status})")
    busy = status in _BUSY
    if (status in _PASSING or status >= 500) and headers.get("x-should-retry") != "false":
        charged = status not in _TURNED_AWAY
        return Fault("retry", reason, asked_wait(headers), busy, charged=charged)
    param = str(lookup(inner, "param") or "") if status in (400, 422) else None
    return Fault("failed", reason, busy=busy, param=param)


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
    status = _status_in(error)
    shown_status = "HTTP 200, error" if status is None else f"HTTP 200, error {status}"
    return fault_of_status(status or 500, headers, error, "no message", shown_status)


def _inner(body: object) -> object:
    """Finds the error within a body, which may hold it in a list or in a field."""
    first = lookup(body, 0) if isinstance(body, list) else body
    return lookup(first, "error") or first


def _message(error: object) -> str:
    """Finds what an error says, on one line; an empty text if it says nothing."""
    if isinstance(error, str):
        return one_line(error)
    found = (lookup(error, name) for name in ("message", "msg", "detail"))
    return next((one_line(said) for said in found if said), "")


def _status_in(error: object) -> int | None:
    """Finds the status that an error stands for: a number first, then a name that is known."""
    fields = ("code", "status", "status_code", "type")
    found = [error] if isinstance(error, str | int) else [lookup(error, name) for name in fields]
    values = [str(value) for value in found if isinstance(value, str | int | float)]
    for value in values:
        if number := re.match(r"(?:HTTP )?([45]\d\d)\b", value):
            return int(number[1])
    for value in values:
        # "RateLimitError" and "RATE_LIMIT" are "rate_limit".
        name = re.sub(r"(?<=[a-z])(?=[A-Z])|[ .-]", "_", value).lower()
        name = re.sub(r"_(error|exception)$", "", name)
        if name in _STATUS_OF:
            return _STATUS_OF[name]
    return None


def service_faults() -> pd.DataFrame:
    """Lists the errors of a service, and how a run responds to each.

    Returns:
        Columns ``said`` (str), ``status`` (str, of HTTP), ``kind`` (str: what becomes of the
        question, as in :class:`Fault`) and ``busy`` (bool: whether fewer calls go out at once).
    """
    rows = []
    for said, status, code in _SAID:
        fault = fault_of_status(status, {}, {"error": {"code": code, "message": ""}})
        rows.append({"said": said, "status": str(status), "kind": fault.kind, "busy": fault.busy})
    return pd.DataFrame(rows)


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Reads how long a server asks to wait: milliseconds, seconds, or a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) / unit
        except ValueError:
            continue
        # Python reads "nan" and "1e999" as numbers.
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        seconds = (date - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(seconds, 0.0)
