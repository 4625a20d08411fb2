"""Runs a real Label Studio on this machine, with its API and a browser.

It has its own virtual environment under the cache folder, because it pins packages that the project
needs in other versions. ``make test-labelstudio`` installs it.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, Page

from cradle_lib import paths

from .page import server_command

PROGRAM = paths.cache() / "label-studio" / "bin" / "label-studio"
_EMAIL, _PASSWORD, _TOKEN = "owner@example.com", secrets.token_hex(8), secrets.token_hex(20)
_SECONDS_TO_START = 600


@dataclass(frozen=True)
class Server:
    """A running server with one user."""

    address: str

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Calls the API and returns the decoded answer."""
        headers = {"Authorization": f"Token {_TOKEN}"}
        url = self.address + path
        answer = httpx.request(method, url, json=body, headers=headers, timeout=60, trust_env=False)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text:.800}"
        return answer.json() if answer.content else None

    def project(self, title: str, config: str, tasks: Path) -> tuple[int, dict[str, int]]:
        """Creates a project with tasks; returns its id, and the ids of tasks by dialogue."""
        project = self.call("POST", "/api/projects", {"title": title, "label_config": config})["id"]
        content = json.loads(tasks.read_text(encoding="utf-8"))
        self.call("POST", f"/api/projects/{project}/import", content)
        listed = self.call("GET", f"/api/tasks?project={project}&page_size=100&fields=all")["tasks"]
        return project, {task["data"]["dialogue_id"]: task["id"] for task in listed}

    def export(self, project: int, target: Path) -> Path:
        """Exports a project to a file."""
        query = "exportType=JSON&download_all_tasks=true"
        content = self.call("GET", f"/api/projects/{project}/export?{query}")
        target.write_text(json.dumps(content), encoding="utf-8")
        return target

    def login(self, browser: Browser) -> Page:
        """Opens a page in which the user is logged in."""
        page = browser.new_context(viewport={"width": 1280, "height": 1000}).new_page()
        page.goto(f"{self.address}/user/login")
        page.fill("input[name=email]", _EMAIL)
        page.fill("input[name=password]", _PASSWORD)
        page.click("button[type=submit]")
        page.wait_for_url(lambda url: "/user/" not in url)
        return page


@contextmanager
def serve(folder: Path) -> Iterator[Server]:
    """Runs a server with an empty database during a block, with the command in the book."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings, arguments = server_command()
    command = [
        str(PROGRAM), *arguments, "--no-browser", "-p", str(port), "--enable-legacy-api-token",
        "--username", _EMAIL, "--password", _PASSWORD, "--user-token", _TOKEN,
    ]  # fmt: skip
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **settings}
    server, log = Server(f"http://127.0.0.1:{port}"), folder / "server.log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file, cwd=folder)
    try:
        for _ in range(_SECONDS_TO_START):
            if _is_up(server) or process.poll() is not None:
                break
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)
        assert _is_up(server), f"Label Studio did not start:\n{log.read_text()[-3000:]}"
        yield server
    finally:
        process.terminate()
        process.wait(timeout=60)


def _is_up(server: Server) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(f"{server.address}/health", timeout=5, trust_env=False).is_success
    return False
