"""A server with programmed faults; the first part of a request's path selects the scenario."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from ...loopback import Handler, Loopback

Reply = tuple[int, dict[str, str], bytes]
# Maps the number of an attempt, from 0, to its reply. ``None`` hangs until the server closes,
# ``b""`` resets the connection.
Scenario = Callable[[int], Reply | bytes | None]


def as_json(body: Any, status: int = 200, **headers: str) -> Reply:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, {"content-type": "application/json", **fields}, json.dumps(body).encode()


def chat(**choice: Any) -> Reply:
    message = {"role": "assistant", "content": "none"} | choice.pop("message", {})
    about = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "smollm2-135m-2026-01-01",
    }
    usage = {
        **{"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
    }
    choices = [{"index": 0, "finish_reason": "stop", "message": message} | choice]
    return as_json(about | {"system_fingerprint": "fp_1", "choices": choices, "usage": usage})


def message(text: str | None = "none", **fields: Any) -> Reply:
    about = {"id": "m", "type": "message", "role": "assistant", "model": "smollm2-135m-2026-01-01"}
    # The same tokens as in a chat completion, in Anthropic's fields.
    usage = {
        **{"input_tokens": 2, "output_tokens": 2},
        **{"cache_read_input_tokens": 4, "cache_creation_input_tokens": 3},
    }
    content = [] if text is None else [{"type": "text", "text": text}]
    ending = {"stop_reason": "end_turn", "stop_sequence": None}
    return as_json(about | {"content": content, "usage": usage} | ending | fields)


def with_prompt_tokens(content: bytes, body: dict[str, Any], most: int = 10**6) -> bytes:
    """Replaces the 9 prompt tokens of :func:`chat` and :func:`message` for long prompts."""
    tokens = min(max(9, len(json.dumps(body.get("messages"))) // 6), most)
    content = content.replace(b'"prompt_tokens": 9,', b'"prompt_tokens": %d,' % tokens)
    return content.replace(b'"input_tokens": 2,', b'"input_tokens": %d,' % (tokens - 7))


def error(status: int, **fields: Any) -> Reply:
    headers = fields.pop("headers", {})
    body = {"type": "error", "error": {"message": "it broke", **fields}}
    return as_json(body, status, **headers)


class FaultServer(Loopback):
    """Serves scenarios on loopback and counts the calls of each.

    Args:
        scenarios: Scenarios by name.
        seen: List for the bodies of requests; filled before the scenario is called.
    """

    def __init__(
        self, scenarios: dict[str, Scenario], seen: list[dict[str, Any]] | None = None
    ) -> None:
        self.calls: Counter[str] = Counter()
        self.seen: list[dict[str, Any]] = [] if seen is None else seen
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        #: Context length in tokens; longer prompts are truncated silently.
        self.context = 10**6
        self._scenarios = scenarios
        self._closing = threading.Event()
        lock = threading.Lock()
        outer = self

        class Faulty(Handler):
            def do_POST(self) -> None:
                # Requests to a proxy have a complete URL, which gives the empty name.
                name = self.path.split("/")[1]
                body = json.loads(self.body())
                with lock:
                    attempt = outer.calls[name]
                    outer.calls[name] += 1
                    outer.seen.append(body)
                    outer.paths.append(self.path)
                    outer.headers.append({k.lower(): v for k, v in self.headers.items()})
                reply = scenarios[name](attempt)
                if reply is None:
                    outer._closing.wait(30)
                    self.close_connection = True
                elif isinstance(reply, bytes):
                    linger = struct.pack("ii", 1, 0)
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    self.close_connection = True
                else:
                    status, headers, content = reply
                    content = with_prompt_tokens(content, body, outer.context)
                    # A scenario's content-length may be wrong, so close the connection.
                    self.close_connection |= "content-length" in headers
                    self.send(content, status, headers)

        super().__init__(Faulty)

    def add(self, scenario: Scenario) -> str:
        """Adds a scenario while the server runs and returns its name."""
        name = f"s{len(self._scenarios)}"
        self._scenarios[name] = scenario
        return name

    def __exit__(self, *error: object) -> None:
        self._closing.set()
        super().__exit__(*error)
