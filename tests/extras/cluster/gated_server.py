"""Starts commands, and a loopback server that can delay its answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import zlib
from collections.abc import Mapping
from pathlib import Path

from cradle_lib import paths

from ...loopback import Handler, Loopback, is_question

ANSWERS = ("none", "none", "alert_ongoing", "confirm_SH_past; alert_ongoing")
MODEL = "m"


def start(*words: str | Path, environment: Mapping[str, str] = os.environ) -> subprocess.Popen[str]:
    """Starts a ``cradle`` command in a new process."""
    return subprocess.Popen(
        [sys.executable, "-m", "cradle_lib.cli", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=paths.ROOT,
        env={**environment, "COLUMNS": "200", "PYTHONPATH": str(paths.ROOT)},
        # Background jobs of a shell would ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


class GatedServer(Loopback):
    """A server with OpenAI's interface that delays answers until it is opened.

    Args:
        free: Number of immediate answers per client; ``None`` to delay nothing.

    Attributes:
        asked: Number of questions of all clients, including delayed ones.
    """

    def __init__(self, free: int | None = None) -> None:
        self._free, self._held, self.asked = free, 0, 0
        self._changed = threading.Condition()
        outer = self

        class Asked(Handler):
            # Counts the questions of one client: each connection has its own handler, and clients
            # with one concurrent call have one connection.
            asked = 0

            def do_GET(self) -> None:
                self.send_json({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

            def do_POST(self) -> None:
                body = json.loads(self.body())
                text = body["messages"][-1]["content"]
                if is_question(text):
                    self.asked += 1
                    outer._pass(self.asked)
                answer = ANSWERS[zlib.crc32(text.encode()) % len(ANSWERS)]
                choice = {"index": 0, "finish_reason": "stop"}
                choice["message"] = {"role": "assistant", "content": answer}
                usage = {"prompt_tokens": len(text), "completion_tokens": 2}
                usage["total_tokens"] = len(text) + 2
                self.send_json({"id": "c", "model": MODEL, "choices": [choice], "usage": usage})

        super().__init__(Asked)
        self.url += "/v1"

    def _pass(self, asked: int) -> None:
        with self._changed:
            self.asked += 1
            if self._free is not None and asked > self._free:
                self._held += 1
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._free is None)

    def wait_for(self, held: int) -> bool:
        """Waits until ``held`` questions are delayed; returns False after a timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: self._held >= held, 150)

    def open(self) -> None:
        """Sends all delayed answers, and delays no further ones."""
        with self._changed:
            self._free = None
            self._changed.notify_all()

    def __exit__(self, *error: object) -> None:
        self.open()
        super().__exit__(*error)
