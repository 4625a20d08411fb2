"""Both providers' batch interfaces on real sockets, as their documentation describes them."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from ...loopback import Handler, Loopback

# What a question gets: a text, an HTTP status for an error, or None for a batch that expires.
Writer = Callable[[str, int], "str | int | None"]


class BatchServer(Loopback):
    """Answers batches.

    Args:
        write: Gives the answer to a prompt, and how often it was asked before.
        looks: How often a batch is looked at before it is finished.
        faults: Makes a call fail: ``(method, path, number of call)`` to an HTTP status, 0 for none,
            -1 for a connection that is cut at once, -2 for one that is cut when all is done.
        refuse: Whether every batch is refused as a whole.
        said: The message of an error.
    """

    def __init__(
        self,
        write: Writer,
        looks: int = 1,
        faults: Callable[[str, str, int], int] = lambda *_: 0,
        refuse: bool = False,
        said: str = "planted",
    ) -> None:
        self.write, self.looks, self.faults, self.refuse = write, looks, faults, refuse
        self.said = said
        self.files: dict[str, str] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.asked: dict[str, int] = {}
        self.calls = 0
        self.auth: set[str] = set()

        outer = self

        class Answering(Handler):
            def do_POST(self) -> None:
                self._serve("POST", self.body())

            def do_GET(self) -> None:
                self._serve("GET", b"")

            def _serve(self, method: str, body: bytes) -> None:
                outer.calls += 1
                outer.auth.add(self.headers.get("authorization") or "")
                status = outer.faults(method, self.path, outer.calls)
                reply: Any = {"error": {"message": "planted", "type": "planted"}}
                if status == -1:
                    # Closing alone would leave it open: the handler's files hold it.
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                if status in (0, -2):
                    cut = status
                    status, reply = outer.serve(method, self.path, body)
                    if cut:
                        self.connection.shutdown(socket.SHUT_RDWR)
                        self.close_connection = True
                        return
                data = reply.encode() if isinstance(reply, str) else json.dumps(reply).encode()
                kind = "application/jsonl" if isinstance(reply, str) else "application/json"
                self.send(data, status, {"content-type": kind})

        super().__init__(Answering)
        self._lock = threading.Lock()

    def serve(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        with self._lock:
            parts = path.partition("?")[0].strip("/").split("/")
            if method == "GET" and parts[-1] == "batches":
                show = self._anthropic if "messages" in parts else self._openai
                newest = [show(name, look=False) for name in reversed(self.batches)]
                return 200, {"object": "list", "data": newest, "has_more": False}
            if parts == ["v1", "files"]:
                # The part of the form that is the file.
                text = body.decode()
                lines = [line for line in text.splitlines() if line.startswith('{"custom_id"')]
                name = f"file-{len(self.files)}"
                self.files[name] = "\n".join(lines)
                return 200, {
                    "id": name,
                    "object": "file",
                    "purpose": "batch",
                    "bytes": 1,
                    "created_at": 1,
                    "filename": "batch.jsonl",
                    "status": "processed",
                }
            if parts[:2] == ["v1", "files"]:
                return 200, self.files[parts[2]]
            if parts == ["v1", "batches"]:
                asked = json.loads(body)
                lines = self.files[asked["input_file_id"]].splitlines()
                started = self._start([json.loads(line) for line in lines], asked["metadata"])
                return 200, self._openai(started)
            if parts[:2] == ["v1", "batches"]:
                return 200, self._openai(parts[2])
            if parts == ["v1", "messages", "batches"]:
                found = [
                    {"custom_id": r["custom_id"], "body": r["params"]}
                    for r in json.loads(body)["requests"]
                ]
                return 200, self._anthropic(self._start(found))
            if parts[-1] == "results":
                return 200, "\n".join(json.dumps(r) for r in self._results(parts[3])) + "\n"
            return 200, self._anthropic(parts[3])

    def _start(self, requests: list[dict[str, Any]], about: object = None) -> str:
        name = f"batch_{len(self.batches)}"
        answers = []
        for request in requests:
            prompt = json.dumps(request["body"]["messages"])
            times = self.asked.get(prompt, 0)
            self.asked[prompt] = times + 1
            answers.append((request["custom_id"], self.write(prompt, times)))
        self.batches[name] = {"answers": answers, "looks": 0, "about": about, "at": time.time()}
        return name

    def _finished(self, name: str, look: bool) -> bool:
        self.batches[name]["looks"] += look
        return bool(self.batches[name]["looks"] > self.looks)

    def _openai(self, name: str, look: bool = True) -> dict[str, Any]:
        done = self._finished(name, look)
        body: dict[str, Any] = {
            "id": name,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "created_at": int(self.batches[name]["at"]),
            "metadata": self.batches[name]["about"],
            "input_file_id": "file-0",
            "completion_window": "24h",
            "status": "completed" if done else "in_progress",
        }
        if self.refuse and done:
            problem = {"object": "list", "data": [{"message": "a line is no request"}]}
            return body | {"status": "failed", "errors": problem}
        if done:
            answers = self.batches[name]["answers"]
            if any(found is None for _, found in answers):
                body["status"] = "expired"
            good = [self._chat(key, found) for key, found in answers if isinstance(found, str)]
            bad = [self._error(key, found) for key, found in answers if isinstance(found, int)]
            # The order of the results is no business of the order of the questions.
            self.files[f"{name}-out"] = "\n".join(json.dumps(line) for line in reversed(good))
            self.files[f"{name}-err"] = "\n".join(json.dumps(line) for line in bad)
            body |= {
                "output_file_id": f"{name}-out" if good else None,
                "error_file_id": f"{name}-err" if bad else None,
            }
        return body

    def _chat(self, key: str, text: str) -> dict[str, Any]:
        body = {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": text},
                }
            ],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
        }
        return {
            "id": "r",
            "custom_id": key,
            "error": None,
            "response": {"status_code": 200, "request_id": "q", "body": body},
        }

    def _error(self, key: str, status: int) -> dict[str, Any]:
        body = {"error": {"message": self.said, "type": "invalid_request_error"}}
        return {
            "id": "r",
            "custom_id": key,
            "error": None,
            "response": {"status_code": status, "request_id": "q", "body": body},
        }

    def _anthropic(self, name: str, look: bool = True) -> dict[str, Any]:
        done = self._finished(name, look)
        counts = dict.fromkeys(("canceled", "errored", "expired", "processing", "succeeded"), 0)
        counts["succeeded" if done else "processing"] = len(self.batches[name]["answers"])
        made = datetime.fromtimestamp(self.batches[name]["at"], UTC)
        return {
            "id": name,
            "type": "message_batch",
            "created_at": made.isoformat(),
            "expires_at": "2100-01-02T00:00:00Z",
            "request_counts": counts,
            "processing_status": "ended" if done else "in_progress",
            # A host that nobody agreed to: it must not be asked.
            "results_url": "http://192.0.2.1/results" if done else None,
            "archived_at": None,
            "cancel_initiated_at": None,
            "ended_at": None,
        }

    def _results(self, name: str) -> list[dict[str, Any]]:
        lines = []
        for key, found in reversed(self.batches[name]["answers"]):
            result: dict[str, Any] = {"type": "expired"}
            if isinstance(found, str):
                message = {
                    "id": "m",
                    "type": "message",
                    "role": "assistant",
                    "model": "m",
                    "content": [{"type": "text", "text": found}],
                    "stop_reason": "end_turn",
                    "usage": {"input_tokens": 9, "output_tokens": 2},
                }
                result = {"type": "succeeded", "message": message}
            elif isinstance(found, int):
                inner = {"type": "invalid_request_error", "message": self.said}
                result = {"type": "errored", "error": {"type": "error", "error": inner}}
            lines.append({"custom_id": key, "result": result})
        return lines
