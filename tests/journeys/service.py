"""A server for models, on loopback, with the addresses and replies of both kinds of service."""

from __future__ import annotations

import itertools
import json
import threading
from typing import Any

from ..loopback import Handler


class Service(Handler):
    """Answers every question with a label if its current turn mentions crying, else with none.

    Attributes:
        busy: Set after twenty answers.
        goes_on: Further answers wait for it.
        answers: Counts the answers.
    """

    busy = threading.Event()
    goes_on = threading.Event()
    goes_on.set()
    answers = itertools.count(1)

    def do_GET(self) -> None:
        self.send_json({"data": [{"id": name} for name in ("toy", "toy-one", "toy-two")]})

    def do_POST(self) -> None:
        question: dict[str, Any] = json.loads(self.body())
        text = json.dumps(question["messages"])
        answer = "alert_ongoing" if "cry" in text[-400:] else "none"
        tokens = len(text) // 4
        if self.path.endswith("/messages"):
            reply = {
                **{"id": "m", "type": "message", "role": "assistant", "model": "toy"},
                **{"content": [{"type": "text", "text": answer}], "stop_reason": "end_turn"},
                "usage": {"input_tokens": tokens, "output_tokens": 3},
            }
        else:
            message = {"role": "assistant", "content": answer}
            reply = {
                **{"id": "c", "object": "chat.completion", "created": 1, "model": "toy"},
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                "usage": {"prompt_tokens": tokens, "completion_tokens": 3},
            }
        number = next(self.answers)
        if number > 20:
            self.busy.set()
            self.goes_on.wait()
        self.send_json(reply)
